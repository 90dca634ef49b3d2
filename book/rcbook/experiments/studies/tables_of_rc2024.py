"""The tables of rc2024: training errors on all rows, from the closed form and from random models (chapter 18)."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from rcbook.experiments.cells import Cell, Record, Study, cells_of, mean_record
from rcbook.experiments.studies.data_and_models_of_rc import (
    ITERATIONS,
    RC_PRIOR,
    REPETITIONS,
    descent_from,
    first_reach,
    fitted,
    path_from,
    rc_cells,
    rc_data,
    rc_learner,
    rc_model,
    rc_size,
)
from rcpkg.families import GaussianParameters, SharedVarianceGaussianNB, one_hot

RC2024_MODELS = {
    "II": ("NB", "ML"),
    "III": ("NB", "MAP"),
    "IV": ("QDA", "ML"),
    "V": ("QDA", "MAP"),
    "VI": ("LR", "ML"),
    "VII": ("LR", "MAP"),
    "VIII": ("LR", "Random"),
    "IX": ("NB", "ML"),
}


def all_rows_history(cell: Cell, method: str, iterations: int = ITERATIONS) -> pd.DataFrame:
    """Training losses of iterations 1 (the closed form) to 64 on all rows (rc2024 §IV)."""
    classifier, closed_form = cell.arguments["classifier"], cell.arguments["closed_form"]
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], classifier)
    model = rc_model(classifier, closed_form, X, len(np.unique(y)), RC_PRIOR[classifier])
    on_invalid = "freeze" if classifier == "NB" else "halt"
    learner = rc_learner(method, model, "best_error", on_invalid, iterations)
    return fitted(learner, X, y).history_


def rc2024_all_rows(cell: Cell, seed: int) -> list[Record]:
    """rc2024 Tables II-VII and IX: least training error of 64 iterations on all rows, and where it is reached.

    "Reach" is the first iteration at which RC is as good as the other learner at its best; it is printed in RC's
    columns and computed with the other learner.
    """
    errors = all_rows_history(cell, cell.method).error.to_numpy()
    records = [Record(cell.method, "empirical_error_fraction", float(errors.min()))]
    if cell.method in ("ML", "MAP"):
        return records
    records.append(Record(cell.method, "iterations", int(errors.argmin()) + 1))
    if cell.method != "RC":
        records.append(Record("RC", "reach", first_reach(all_rows_history(cell, "RC").error.to_numpy(), errors)))
    return records


def random_model(n_classes: int, n_features: int, rng: np.random.Generator) -> GaussianParameters:
    """p(y) from the uniform distribution on the simplex, class means from N(0, 1), variances one."""
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    ones = np.ones(n_features)
    return GaussianParameters(log_prior, rng.standard_normal((n_classes, n_features)), ones, ones)


def rc2024_random(cell: Cell, seed: int) -> list[Record]:
    """rc2024 Table VIII: RC and GD for LR from one random model of the z-scores, the same for both, many times over.

    How the parameters were drawn is not stated; `random_model` is our choice. RC starts from the statistics that
    this model expects of m rows. "Reach" is the mean over the runs in which RC gets there.
    """
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "LR")
    model = SharedVarianceGaussianNB(singular_ridge=0.0).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    Y = one_hot(codes, len(model.classes_))
    runs, reach = [], []
    for stream in np.random.SeedSequence(seed).spawn(cell.arguments["repetitions"]):
        start = random_model(Y.shape[1], X.shape[1], np.random.default_rng(stream))
        statistics = len(y) * model.family_.mean_parameters(start)
        ours = path_from(model, X, Y, statistics).frame.error.to_numpy()
        if cell.method == "Random":
            runs.append(ours[:1])
        elif cell.method == "RC":
            runs.append(ours)
        else:
            runs.append(descent_from(model, X, Y, start).frame.error.to_numpy())
            reach.append(next((t for t, error in enumerate(ours, start=1) if error <= runs[-1].min()), None))
    records = [mean_record(cell.method, "empirical_error_fraction", (run.min() for run in runs))]
    if cell.method != "Random":
        records.append(mean_record(cell.method, "iterations", (run.argmin() + 1 for run in runs)))
    if cell.method == "GD":
        reached = [t for t in reach if t is not None]
        records.append(mean_record("RC", "reach", reached) if len(reached) > 1 else Record("RC", "reach", None))
    return records


Study("I", source="rc2024", rows=partial(rc_cells, "rc2024", "I", rc_size, "rc2024"))
for _table, (_classifier, _closed_form) in RC2024_MODELS.items():
    _variant = "rc2024-nb" if _classifier == "NB" else "rc2024"
    if _closed_form == "Random":
        _rows = partial(rc_cells, "rc2024", _table, rc2024_random, _variant, repetitions=REPETITIONS)
    else:
        _models = {"classifier": _classifier, "closed_form": _closed_form}
        _rows = partial(rc_cells, "rc2024", _table, rc2024_all_rows, _variant, **_models)
    Study(_table, source="rc2024", rows=_rows)


def calibrated_cells() -> Iterator[Cell]:
    """RC on each data set, once for each of Tables II-VII: what the studies of training take up."""
    for table in ("II", "III", "IV", "V", "VI", "VII"):
        yield from (cell for cell in cells_of("rc2024", table) if cell.method == "RC" and not cell.reason)
