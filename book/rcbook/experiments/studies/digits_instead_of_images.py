"""Digits in place of the network features of images, which were not published (chapter 18).

"digits-instead-of-images": the protocols of rc2024 and rc2025 on three sets of digits. "digits-curves": training errors
on one of them, over as many iterations as rc2024 Figures 1-3 show. "digits-random-start": those of logistic regression
there from five random models, the same for RC and gradient descent, as in rc2024 Figure 4, which shows one;
how its start was drawn is not stated.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from rcbook.experiments.cells import Cell, Grid, Record, Study
from rcbook.experiments.studies.data_and_models_of_rc import LEARNING_RATE, rc_data
from rcbook.experiments.studies.tables_of_rc2024 import (
    all_rows_history,
    calibrated_cells,
    random_model,
    rc2024_all_rows,
)
from rcbook.experiments.studies.tables_of_rc2025 import PRINTED_REPETITIONS, rc2025_splits
from rcbook.projected_descent import Projected
from rcpkg.calibration import Fixed, Objective, Stop, climb
from rcpkg.families import SharedVarianceGaussianNB, one_hot

CURVE_ITERATIONS = 128  # of rc2024 Figures 1-4
DIGITS = ("pendigits", "usps", "mnist")
TOO_LARGE = {  # passes over hundreds of features in thousands of rows, dozens of times
    ("QDA", "all rows"): {"mnist"},
    ("QDA", "splits"): {"usps", "mnist"},
    ("NB", "splits"): {"mnist"},
}


def training_curve(cell: Cell, seed: int) -> list[Record]:
    """Training error of iterations 1 to 128, as in rc2024 Figures 1-3; metrics are ``error|<iteration>``."""
    errors = all_rows_history(cell, cell.method, CURVE_ITERATIONS).error
    return [Record(cell.method, f"error|{t}", float(error)) for t, error in enumerate(errors, start=1)]


def curve_from_random_model(cell: Cell, seed: int) -> list[Record]:
    """Training error of iterations 1 to 128 of logistic regression from a random model, as in rc2024 Figure 4."""
    X, y = rc_data(cell.arguments["name"], "rc2024", "LR")
    model = SharedVarianceGaussianNB(singular_ridge=0.0).fit(X, y)
    Y = one_hot(np.searchsorted(model.classes_, y), len(model.classes_))
    start = random_model(Y.shape[1], X.shape[1], np.random.default_rng(seed))
    # as `path_from` and `descent_from` do, but for the number of iterations
    step = Fixed(LEARNING_RATE) if cell.method == "RC" else Projected(LEARNING_RATE, "corrected")
    objective = Objective(model.family_, X, Y, start=len(y) * model.family_.mean_parameters(start))
    path = climb(objective, step, Stop(), CURVE_ITERATIONS - 1)
    return [Record(cell.method, f"error|{t}", float(error)) for t, error in enumerate(path.frame.error, start=1)]


def _grids() -> Iterator[Grid]:
    """The protocols of both papers on digits in place of the network features of images."""
    for name, classifier, closed_form in product(DIGITS, ("NB", "QDA", "LR"), ("ML", "MAP")):
        variant = "rc2024-nb" if classifier == "NB" else "rc2024"
        models = {"name": name, "variant": variant, "classifier": classifier, "closed_form": closed_form}
        for rows, protocol, number in (
            ("all rows", rc2024_all_rows, {}),
            ("splits", rc2025_splits, {"repetitions": PRINTED_REPETITIONS}),
        ):
            divided = classifier != "LR" and closed_form == "ML"
            if name not in TOO_LARGE.get((classifier, rows), ()) and (divided or rows == "all rows"):
                yield Grid(
                    rows=(name,),
                    methods=(closed_form, "RC", "GD", "DFE"),
                    settings=(f"{classifier} {closed_form} {rows}",),
                    protocol=protocol,
                    arguments=models | number,
                    stream=name,
                )


Study("digits-instead-of-images", *_grids())


Study(
    "digits-curves",
    rows=calibrated_cells,
    methods=("RC", "GD"),
    protocol=training_curve,
    where=lambda cell: cell.stream == "optdigits",
)

Study(
    "digits-random-start",
    rows=("optdigits",),
    methods=("RC", "GD"),
    settings=range(5),
    protocol=curve_from_random_model,
    arguments={"name": "optdigits"},
    stream=lambda cell: f"random start {cell.setting_value}",
)
