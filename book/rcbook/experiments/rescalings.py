"""Rescalings of posteriors after the fit: what the literature calls the calibration of a classifier.

A rescaling learns from posteriors of rows left out in five folds, and changes those of the classifier of all rows.
Sigmoid, isotonic, beta and Venn-Abers scale class against rest, and divide by the sum over the classes.
"""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from rcpkg.base import Array

FOLDS = 5
NO_PENALTY = 1e6  # C of the logistic regression in beta calibration, whose three coefficients need none
EPS = np.finfo(float).eps
SIGMOID, ISOTONIC, TEMPERATURE, BETA, VENN_ABERS = "sigmoid", "isotonic", "temperature", "beta", "Venn-Abers"
RESCALINGS = (SIGMOID, ISOTONIC, TEMPERATURE, BETA, VENN_ABERS)
Rescaling = Callable[[Array, NDArray[np.intp], Array], Array]


def beta_calibrated(P: Array, y: NDArray[np.intp], P_new: Array) -> Array:
    """Class against rest, logit q = a log p − b log(1 − p) + c with a, b ≥ 0, divided by the sum over the classes.

    A coefficient that would be negative is zero, and the others are fitted again (Kull, Silva Filho and Flach, 2017).
    """
    scaled = [_beta_of_class(P[:, k], y == k, P_new[:, k]) for k in range(P.shape[1])]
    return np.column_stack(scaled) / np.sum(scaled, axis=0)[:, None]


def _beta_of_class(p: Array, is_class: NDArray[np.bool_], p_new: Array) -> Array:
    Z, Z_new = (np.column_stack([np.log(q), -np.log1p(-q)]) for q in (np.clip(v, EPS, 1 - EPS) for v in (p, p_new)))
    used = np.array([0, 1])
    while len(used):
        fit = LogisticRegression(C=NO_PENALTY, max_iter=1000).fit(Z[:, used], is_class)
        if np.all(fit.coef_ >= 0):
            return fit.predict_proba(Z_new[:, used])[:, 1]
        used = np.delete(used, fit.coef_[0].argmin())
    return np.full(len(p_new), is_class.mean())


def venn_abers(P: Array, y: NDArray[np.intp], P_new: Array) -> Array:
    """Class against rest, the two isotonic probabilities of a row merged for the log-loss (Vovk and others, 2015)."""
    with np.errstate():  # the module hides invalid numbers of all that runs after it
        from venn_abers import VennAbersCalibrator  # not where only another rescaling is wanted, as on a page that runs

    with warnings.catch_warnings():  # of slices without a number, inside the package; its result has none such
        warnings.simplefilter("ignore", RuntimeWarning)
        return VennAbersCalibrator().predict_proba(p_cal=P, y_cal=y, p_test=P_new, va_type="one_vs_rest")


def temperature_scaled(P: Array, y: NDArray[np.intp], P_new: Array) -> Array:
    """p^(1/T), normalised, where the temperature T has the least log-loss on the rows left out (Guo and others, 2017).

    scikit-learn has it from version 1.8 on.
    """
    logs, logs_new = (np.log(np.clip(p, EPS, None)) for p in (P, P_new))

    def log_loss(inverse: float) -> float:
        return -np.log(np.clip(softmax(inverse * logs, axis=1)[np.arange(len(y)), y], EPS, None)).mean()

    inverse = np.exp(minimize_scalar(lambda log_inverse: log_loss(np.exp(log_inverse)), bounds=(-10, 10)).x)
    return softmax(inverse * logs_new, axis=1)


class Rescaled(ClassifierMixin, BaseEstimator):
    """Posteriors of a classifier, rescaled by what those of rows left out in five folds teach."""

    def __init__(self, estimator: Any, rescaling: Rescaling) -> None:
        self.estimator = estimator
        self.rescaling = rescaling

    def fit(self, X: Array, y: NDArray[np.intp]) -> Self:
        """Posteriors out of the folds, and the classifier of all rows."""
        self.left_out_ = cross_val_predict(self.estimator, X, y, cv=FOLDS, method="predict_proba")
        self.y_ = y
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Array) -> NDArray:
        """The class of the largest rescaled posterior."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        """Rescaled posteriors (n, r)."""
        return self.rescaling(self.left_out_, self.y_, self.estimator_.predict_proba(X))


def rescaled(model: Any) -> dict[str, Any]:
    """The five rescalings of a model."""
    of_sklearn = {
        name: CalibratedClassifierCV(model, method=name, cv=FOLDS, ensemble=False)
        for name in (SIGMOID, ISOTONIC, TEMPERATURE)
    }
    return of_sklearn | {BETA: Rescaled(model, beta_calibrated), VENN_ABERS: Rescaled(model, venn_abers)}
