"""What the checks of the chapter *When to calibrate* try: weights on few rows and on the clouds."""

import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from rcbook.experiments.studies import honest_comparison as honest
from rcbook.simulation import clouds
from rcpkg import LDA, QDA, GaussianNB, RiskCalibration, RiskCalibrationCV


def few_rows() -> tuple[dict[str, pd.DataFrame], pd.DataFrame, list[str], dict[tuple, type]]:
    """Log-loss by weight on few rows, and the weights that are chosen."""
    few_losses, few_curves = {}, {}
    for case, load, model, parameters in (
        ("wine, Gaussian naive Bayes", load_wine, GaussianNB(), 80),
        ("breast cancer, Gaussian naive Bayes", load_breast_cancer, GaussianNB(), 121),
        ("wine, LDA", load_wine, LDA(), 132),
        ("wine, QDA", load_wine, QDA(), 314),
    ):
        X, y = load(return_X_y=True)
        losses, curves_of_splits = [], []
        for train, rest in StratifiedShuffleSplit(6, train_size=60, random_state=0).split(X, y):
            scale = StandardScaler().fit(X[train])
            rows, others = scale.transform(X[train]), scale.transform(X[rest])

            def loss(learner, others=others, truth=y[rest]):
                return honest.scores(learner.predict_proba(others), truth)["log_loss"]

            found, curve = {}, {}
            for name, cv in {"leave-one-out": "loo", "five folds": 5}.items():
                with warnings.catch_warnings(action="ignore"):  # of the end of the grid
                    fit = RiskCalibrationCV(model, **honest.WEIGHT_ALONE | {"cv": cv}).fit(rows, y[train])
                found["reported", name] = fit.cv_results_.log_loss.min()
                found["on other rows", name] = loss(fit)
                curve[name] = fit.cv_results_.set_index("target_weight").log_loss.iloc[:-1]
            curve["other rows"] = [
                loss(RiskCalibration(model, target_weight=b).fit(rows, y[train]))
                for b in curve["five folds"].index
            ]
            losses.append(found)
            curves_of_splits.append(pd.DataFrame(curve))
        losses = pd.DataFrame(losses)
        lead = losses["on other rows", "leave-one-out"] - losses["on other rows", "five folds"]
        few_losses[case] = losses.mean().round(3).to_dict() | {
            ("splits with folds", "better"): (lead > 0.01).sum(),
            ("splits with folds", "worse"): (lead < -0.01).sum(),
        }
        few_losses[case] = {("", "parameters"): parameters} | few_losses[case]
        few_curves[case] = sum(curves_of_splits) / len(curves_of_splits)
    few_table = pd.DataFrame(few_losses).T
    order = ["", "reported", "on other rows", "splits with folds"]
    whole = {column: int for column in few_table if column[0] in (order[0], order[-1])}
    return few_curves, few_table, order, whole


def chosen_on_the_clouds() -> pd.DataFrame:
    """Log-loss of chosen weights on the clouds, draw by draw."""
    cloud_fresh, cloud_truth = clouds(20_000, np.random.default_rng(113))
    cloud_learners = {
        "closed form": GaussianNB(),
        "weight 3": RiskCalibration(GaussianNB()),
        "chosen": RiskCalibrationCV(GaussianNB(), **honest.WEIGHT_ALONE),
        "by five folds": RiskCalibrationCV(GaussianNB(), **honest.WEIGHT_ALONE | {"cv": 5}),
    }
    cloud_runs = []
    for n in (20, 60, 300):
        for seed in range(10):
            rows, label = clouds(n, np.random.default_rng([112, seed, n]))
            for name, learner in cloud_learners.items():
                with warnings.catch_warnings(action="ignore"):  # of the end of the grid
                    P = learner.fit(rows, label).predict_proba(cloud_fresh)
                loss = honest.scores(P, cloud_truth)["log_loss"]
                cloud_runs.append({"rows": n, "draw": seed, "learner": name, "log-loss": loss})
    cloud_losses = pd.DataFrame(cloud_runs).pivot(
        index=["rows", "draw"], columns="learner", values="log-loss"
    )[[*cloud_learners]]
    lower = cloud_losses.lt(cloud_losses["closed form"], axis=0).groupby("rows").sum()
    return pd.concat(
        {
            "mean log-loss": cloud_losses.groupby("rows").mean().T.map("{:.3f}".format),
            "draws on which it is lower": lower.T.iloc[1:].astype(object),
        },
        names=[None, None],
    )
