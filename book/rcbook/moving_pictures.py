"""What the pictures that move on the page *Three ideas to move* are drawn from, made anew at each build of the book."""

import json
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.figures import look
from rcbook.simulation import clouds
from rcpkg import QDA, RiskCalibration
from rcpkg.base import Array

WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
LEARNING_RATE = 0.1
ROWS_TO_HIDE = 8


def calibrated_clouds() -> dict[str, Any]:
    """Training rows of the clouds, new rows to judge by, and the settings that the sliders offer."""
    rng = np.random.default_rng(40)
    (rows, label), (fresh, fresh_label) = clouds(300, rng), clouds(2000, rng)
    return {
        "rows": rows.round(3).tolist(),
        "labels": label.tolist(),
        "fresh": fresh.round(3).tolist(),
        "freshLabels": fresh_label.tolist(),
        "weights": WEIGHTS,
        "rate": LEARNING_RATE,
    }


def leaf_and_fibre() -> dict[str, Any]:
    """How often class 0 has each of its three states; class 1 is the mirror image. Each feature comes in copies."""
    settings = {"copies": 3, "rate": 0.2, "gradientStep": 0.002, "updates": 400}
    colours = {way: look(method)["color"] for way, method in (("calibrated", "published"), ("gradient", "gradient"))}
    return {"counts": [50, 30, 20], "start": [0.1, 0.3], **settings, "colours": colours}


def gap_classifiers() -> tuple[dict[str, Any], Array, Array]:
    """Three classifiers fitted to complete rows of iris, and rows with classes that they have not seen."""
    X, y = load_iris(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    logistic = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    classifiers = {
        "calibrated QDA, hidden values summed out": RiskCalibration(QDA()),
        "logistic regression, means filled in": logistic,
        "gradient boosting, its own rule for gaps": HistGradientBoostingClassifier(random_state=0),
    }
    return {name: classifier.fit(X, y) for name, classifier in classifiers.items()}, X_new, y_new


def hidden_features() -> dict[str, Any]:
    """What each classifier says of some rows of iris for all patterns of hidden features.

    ``scorer`` is the first classifier, ``posteriors[row][pattern][classifier]`` are class probabilities of the others,
    ``expected[row][pattern]`` the features, those hidden by their mean given the others; bit j of a pattern hides
    feature j.
    """
    classifiers, X, y = gap_classifiers()
    rows, labels = X[:ROWS_TO_HIDE], y[:ROWS_TO_HIDE]
    d = rows.shape[1]
    hides = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    masked = np.where(hides, np.nan, rows[:, None, :])
    flat = masked.reshape(-1, d)
    ours, *others = classifiers.values()
    posteriors = np.stack([c.predict_proba(flat) for c in others], axis=1)
    iris = load_iris()
    return {
        "features": [name.removesuffix(" (cm)") for name in iris.feature_names],
        "classes": iris.target_names.tolist(),
        "classifiers": list(classifiers),
        "rows": rows.tolist(),
        "labels": labels.tolist(),
        "scorer": json.loads(ours.scorer().to_json()),
        "posteriors": posteriors.round(4).reshape(len(rows), 2**d, len(others), -1).tolist(),
        "expected": np.asarray(ours.conditional_mean(flat)).round(2).reshape(masked.shape).tolist(),
    }


PICTURES = {"clouds": calibrated_clouds, "leaf": leaf_and_fibre, "gaps": hidden_features}
