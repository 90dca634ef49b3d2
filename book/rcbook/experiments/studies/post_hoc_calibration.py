"""Scores rescaled, or the model calibrated: Platt, isotonic, temperature, beta, Venn-Abers (chapter 11; ours).

Fixed before the first run. Sets, features, divisions and settings are those of the study ``gain-of-calibration``, the
first division of each set and number of rows, so that `RiskCalibrationCV` and its rivals meet the same rows. The new
rivals rescale the posteriors of the closed form: Platt's sigmoid, isotonic regression and temperature scaling of
scikit-learn, beta calibration, and Venn-Abers predictors of the package venn-abers. All five are given the
posteriors of rows left out in five folds, and rescale those of the closed form of all rows. Sigmoid, isotonic, beta
and Venn-Abers scale class against rest, and the results are divided by their sum.

Reliability is that of the predicted class, in `BINS` bins of equal width of its probability.

Hypotheses, for naive Bayes and for QDA each, over the sets (mean over the numbers of rows), margins as in the honest
comparison:

1. `RiskCalibrationCV` has less log-loss than the best of the five, the one of least mean log-loss, on more sets than
   more.
2. It has fewer errors than the closed form rescaled by temperature, which has those of the closed form, on more sets
   than more.
3. Temperature scaling has a calibration error at most that of `RiskCalibrationCV`, within the margin, on most sets.
4. Temperature scaling after `RiskCalibration` adds nothing: the mean of log-loss differs by at most 0.01.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from rcbook.experiments.cells import SEARCHED, STUDY, Cell, Record, Study
from rcbook.experiments.comparisons import contest
from rcbook.experiments.rescalings import RESCALINGS, TEMPERATURE, rescaled
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies import gain_of_calibration as gain
from rcbook.experiments.studies.honest_comparison import ROPE, scores
from rcpkg.base import Array

STUDY_NAME = "post-hoc"
BINS = 10
RESCALED = tuple(f"{gain.CLOSED}, {name}" for name in RESCALINGS)
FOLLOWED = f"{gain.FIXED}, {TEMPERATURE}"


def learners(family: str) -> dict[str, Any]:
    """Those of the study of `RiskCalibrationCV`, the rescaled closed forms, and RC followed by temperature scaling."""
    found = gain.learners(family)
    found |= dict(zip(RESCALED, rescaled(found[gain.CLOSED]).values()))
    return found | {FOLLOWED: rescaled(found[gain.FIXED])[TEMPERATURE]}


def reliability(P: Array, y: NDArray[np.intp]) -> dict[str, float]:
    """Rows, sum of probabilities and right predictions of each bin that has rows, by the predicted class."""
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y
    bins = np.minimum((BINS * confidence).astype(int), BINS - 1)
    sums = {"rows": np.ones(len(y)), "confidence": confidence, "right": right}
    return {f"{name}/{b}": float(values[bins == b].sum()) for b in np.unique(bins) for name, values in sums.items()}


def compared(cell: Cell, seed: int) -> list[Record]:
    """The four scores and the reliability of all learners on one division."""
    family, size = cell.arguments["family"], cell.arguments["rows"]
    X, y, X_test, y_test = gain.division(*gain.rows_of(cell.row, cell.arguments["variant"]), size, seed % 2**32)
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = gain.prepared(family, X, X_test)
        fits = {name: (learner, data) for name, learner in learners(family).items()}
        if family == "NB":
            forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=seed % 2**32)
            fits[gain.FOREST] = forest, (X, X_test)
        for name, (learner, (train, test)) in fits.items():
            P = learner.fit(train, y).predict_proba(test)
            found = scores(P, y_test) | reliability(P, y_test)
            records += [Record(name, metric, value) for metric, value in found.items()]
    return records


def _first_divisions(cell: Cell) -> Iterator[str]:
    return (setting for setting in gain.settings_of(cell) if setting.endswith("/0"))


Study(
    STUDY_NAME,
    tolerance=SEARCHED,
    rows=gain.VARIANTS,
    settings=_first_divisions,
    protocol=compared,
    arguments=gain.arguments_of,
    stream=lambda cell: f"{cell.row}/0",
    quick=lambda cell: cell.row == "haberman",
)


# What the stored study says -------------------------------------------------------------------------


def _of_study() -> pd.DataFrame:
    found = results(STUDY, STUDY_NAME)
    keys = found.setting_value.str.split("/", expand=True).set_axis(["family", "size", "division"], axis=1)
    group = np.where(found.row.isin(list(gain.SET_ASIDE)), "set aside", "development")
    return found.assign(**keys, set=found.row, group=group)


def means(metric: str) -> pd.DataFrame:
    """Mean of a score over the numbers of rows: a row each group, family and set, a column a learner."""
    found = _of_study()
    found = found[found.metric == metric]
    return found.pivot_table(index=["group", "family", "set"], columns="method", values="value", sort=False)


def against(metric: str, rival: str) -> pd.DataFrame:
    """On how many sets `RiskCalibrationCV` is better, level and worse than a rival, a row each family."""
    table = means(metric)
    return pd.DataFrame(
        {
            family: contest(part, [(gain.CHOSEN, rival)], ROPE[metric]).loc[0, ["better", "level", "worse"]]
            for family, part in table.groupby("family")
        }
    ).T


def hypotheses() -> pd.DataFrame:
    """The measure of each hypothesis over all sets and whether it holds, a row each family."""
    log_loss = means("log_loss").groupby("family").mean()
    tempered = f"{gain.CLOSED}, {TEMPERATURE}"
    rows = {}
    for family, mean in log_loss.iterrows():
        best = mean[[*RESCALED]].idxmin()
        losses, errors, reliable = (
            against(metric, rival).loc[family]
            for metric, rival in (("log_loss", best), ("error_percent", tempered), ("calibration_error", tempered))
        )
        change = mean[FOLLOWED] - mean[gain.FIXED]
        found = {
            f"1 log-loss, better/level/worse than {best.removeprefix('closed form, ')}": losses,
            "2 errors, better/level/worse than temperature": errors,
            "3 calibration error, better/level/worse than temperature": reliable,
        }
        held = losses.better > losses.worse, errors.better > errors.worse, reliable.better < reliable.sum() / 2
        for (name, tally), holds in zip(found.items(), held):
            rows[family, name] = "/".join(map(str, tally)), holds
        rows[family, "4 log-loss, change by temperature after RiskCalibration"] = f"{change:+.3f}", abs(change) <= 0.01
    return pd.DataFrame(rows, index=["measure", "holds"]).T


def reliability_curves(methods: tuple[str, ...]) -> pd.DataFrame:
    """Share of rows, mean probability and share of right predictions in each bin, every division with equal weight."""
    found = _of_study()
    parts = found.metric.str.split("/", expand=True).set_axis(["sum", "bin"], axis=1)
    found = found.assign(**parts)[parts.bin.notna() & found.method.isin(methods)]
    index = ["family", "method", "set", "size", "bin"]
    sums = found.pivot_table(index=index, columns="sum", values="value").reset_index()
    rows = sums.groupby(["family", "method", "set", "size"])["rows"].transform("sum")
    sums[["rows", "confidence", "right"]] = sums[["rows", "confidence", "right"]].div(rows, axis=0)
    pooled = sums.groupby(["family", "method", "bin"])[["rows", "confidence", "right"]].sum()
    divisions = sums.groupby("family")[["set", "size"]].apply(lambda part: len(part.drop_duplicates()))
    share = pooled["rows"] / divisions.reindex(pooled.index, level="family")
    return pooled[["confidence", "right"]].div(pooled["rows"], axis=0).assign(share=share)
