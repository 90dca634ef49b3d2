"""The weight of the target where rows are few, chosen by leave-one-out and by five folds (chapter 11).

``weights-on-few-rows``: wine and breast cancer, sixty training rows in six splits, models with more parameters than
rows; the log-loss that `RiskCalibrationCV` reports of the weights, and that of each weight and of the chosen ones on
all other rows. ``weights-on-the-clouds``: Gaussian naive Bayes on ten draws of 20, 60 and 300 rows of the clouds, in
closed form, with the default weight, and with chosen weights; log-loss on 20,000 new rows. The chapter computed both
whenever it ran before they were stored, so no hypothesis stands before the run.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcbook.experiments.studies.honest_comparison import WEIGHT_ALONE, scores
from rcbook.simulation import clouds
from rcpkg import LDA, QDA, GaussianNB, RiskCalibration, RiskCalibrationCV

FEW_STUDY, CLOUDS_STUDY = "weights-on-few-rows", "weights-on-the-clouds"
ESTIMATES = {"leave-one-out": "loo", "five folds": 5}
OTHERS = "other rows"
CASES = {  # rows, model and its number of parameters
    "wine, Gaussian naive Bayes": (load_wine, GaussianNB(), 80),
    "breast cancer, Gaussian naive Bayes": (load_breast_cancer, GaussianNB(), 121),
    "wine, LDA": (load_wine, LDA(), 132),
    "wine, QDA": (load_wine, QDA(), 314),
}
LEARNERS = {
    "closed form": GaussianNB(),
    "weight 3": RiskCalibration(GaussianNB()),
    "chosen": RiskCalibrationCV(GaussianNB(), **WEIGHT_ALONE),
    "by five folds": RiskCalibrationCV(GaussianNB(), **WEIGHT_ALONE | {"cv": 5}),
}


def on_few_rows(cell: Cell, seed: int) -> list[Row]:
    """Log-losses of a case: of each weight by each estimate, and of the weight that the estimate chooses."""
    load, model, _ = CASES[cell.row]
    X, y = load(return_X_y=True)
    found = []
    for split, (train, rest) in enumerate(StratifiedShuffleSplit(6, train_size=60, random_state=0).split(X, y)):
        scale = StandardScaler().fit(X[train])
        rows, others, names = scale.transform(X[train]), scale.transform(X[rest]), {"case": cell.row, "split": split}
        for estimate, cv in ESTIMATES.items():
            with warnings.catch_warnings(action="ignore"):  # of the end of the grid
                fit = RiskCalibrationCV(model, **WEIGHT_ALONE | {"cv": cv}).fit(rows, y[train])
            reported = fit.cv_results_.set_index("target_weight").log_loss
            on_others = scores(fit.predict_proba(others), y[rest])["log_loss"]
            found.append(names | {"estimate": estimate, "reported": reported.min(), "on other rows": on_others})
            weights = reported.iloc[:-1]  # without the closed form
            found += [names | {"estimate": estimate, "weight": b, "log_loss": loss} for b, loss in weights.items()]
        for b in weights.index:
            P = RiskCalibration(model, target_weight=b).fit(rows, y[train]).predict_proba(others)
            loss = scores(P, y[rest])["log_loss"]
            found.append(names | {"estimate": OTHERS, "weight": b, "log_loss": loss})
    return found


def on_the_clouds(cell: Cell, seed: int) -> list[Row]:
    """Log-losses of the learners on ten draws of so many rows."""
    fresh, truth = clouds(20_000, np.random.default_rng(113))
    n, found = int(cell.row), []
    for draw in range(10):
        rows, label = clouds(n, np.random.default_rng([112, draw, n]))
        for name, learner in LEARNERS.items():
            with warnings.catch_warnings(action="ignore"):  # of the end of the grid
                P = clone(learner).fit(rows, label).predict_proba(fresh)
            loss = scores(P, truth)["log_loss"]
            found.append({"rows": n, "draw": draw, "learner": name, "log_loss": loss})
    return found


Study(FEW_STUDY, rows=CASES, protocol=on_few_rows, tolerance=SEARCHED)
Study(CLOUDS_STUDY, rows=(20, 60, 300), protocol=on_the_clouds, tolerance=SEARCHED)
