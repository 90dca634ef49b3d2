"""Figures 4.1 and 4.2 of thesis2007 as numbers: distribution-based against parameter-based Bayesian QDA (chapter 15).

The figures are pictures without printed numbers, so this is a study: the six problems of section 4.5, 40 training and
100 test rows, with all classifiers on the same draws and their differences paired.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from rcbook.experiments import readings
from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcbook.experiments.prior_if_singular import PriorIfSingular
from rcbook.experiments.studies.tables_of_bda7 import TEST_ROWS, TRAINING_ROWS
from rcbook.simulation import CHAPTER4_CASES, chapter4_problem
from rcpkg.base import GenerativeClassifier
from rcpkg.families import QDA
from rcpkg.gaussians import PredictiveNotDefined
from rcpkg.gaussians.bayesian import BayesianQDA
from rcpkg.gaussians.discriminant import NearestMeans

STUDY_NAME = "figures-4.1-4.2"
DIMENSIONS = (4, 8, 12, 16, 20, 30, 40, 60)
RUNS = 200  # of 1000 as stated
PAIRS = {
    "distribution, inverse Wishart": (
        "parameter, inverse Wishart",
        "distribution, noninformative",
        "QDA",
        "nearest means",
    ),
    "distribution, noninformative": ("parameter, noninformative",),
}


# The classifiers of section 4.5, for d features: B_h = tr(Sigma_h)/d I and q = d + 3 where there is a seed. The
# parameter-based densities are those of q - d - 2. QDA predicts the largest class where it is singular.
CLASSIFIERS: dict[str, Callable[[int], GenerativeClassifier]] = {
    "distribution, inverse Wishart": lambda d: BayesianQDA(),
    "parameter, inverse Wishart": lambda d: BayesianQDA(dof=1.0),
    "distribution, noninformative": lambda d: BayesianQDA(prior="noninformative"),
    "parameter, noninformative": lambda d: BayesianQDA(seed=np.zeros((d, d)), dof=-1.0),
    "QDA": lambda d: PriorIfSingular(QDA(class_prior_strength=2, singular_ridge=0.0)),
    "nearest means": lambda d: NearestMeans(),
}


def simulate(cell: Cell, seed: int) -> list[Record]:
    """Mean test error of each classifier (none where it cannot be fitted in some run), and paired differences:
    method "a - b"."""
    problem = chapter4_problem(cell.row, int(cell.setting_value))
    runs = []
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        rng = np.random.RandomState(run)
        (X, y), (X_test, y_test) = problem.sample(TRAINING_ROWS, rng), problem.sample(TEST_ROWS, rng)
        errors = {}
        for name, classifier in CLASSIFIERS.items():
            try:
                model = classifier(X.shape[1]).fit(X, y)
                errors[name] = 100 * float(np.mean(model.predict(X_test) != y_test))
            except PredictiveNotDefined:
                errors[name] = np.nan
        runs.append(errors)
    table = pd.DataFrame(runs)
    for first, others in PAIRS.items():
        for other in others:
            table[f"{first} - {other}"] = table[first] - table[other]
    return [
        Record(name, "test_error_percent", None, None, len(column))
        if column.isna().any()
        else mean_record(name, "test_error_percent", column)
        for name, column in table.items()
    ]


Study(
    STUDY_NAME,
    rows=CHAPTER4_CASES,
    settings=DIMENSIONS,
    protocol=simulate,
    arguments={"repetitions": RUNS},
    stream=lambda cell: f"{cell.row}:{cell.setting_value}",
    quick=lambda cell: cell.setting_value == str(DIMENSIONS[0]),
)


tidy = partial(readings.tidy, STUDY_NAME, row="case", setting_value="d")
