"""What every generative classifier of the package shares: one hook, ``log p(x, y)``, and all predictions from it."""

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from math import prod
from threading import Lock
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from rcpkg._bases import BaseEstimator, ClassifierMixin
from rcpkg._version import __version__
from rcpkg.capabilities import MARGINALS, given_if, require
from rcpkg.checks import (
    check_class_prior,
    check_cost,
    check_magnitude,
    check_weights,
    number_labels,
    one_fit,
    validate,
    warn,
)
from rcpkg.columns import as_labels
from rcpkg.linalg import AT_A_TIME, ROUNDING, Array, log_sum_exp
from rcpkg.progress import Fit
from rcpkg.rows import Block, Rows, by_block

SMALL = AT_A_TIME  # values of a table that is small
WITHOUT_SETTER = {"class_prior": UNUSED}
UNLABELLED = "the label -1 is taken for a class like the others: leave out rows that have no label"


class InvalidStatistics(ValueError):
    """Statistics from which no valid parameters follow (a negative count, a singular covariance, ...).

    Examples
    --------
    >>> from rcpkg import QDA
    >>> QDA(singular_ridge=0.0).fit([[0.0], [0.0], [1.0], [2.0]], ["a", "a", "b", "b"])
    Traceback (most recent call last):
        ...
    rcpkg.base.InvalidStatistics: feature 0 has no positive variance within class a, with n = 2 rows ...
    """


def log_posterior(joint: Array, log_prior: Array | float) -> Array:
    r"""Log posterior log p(y | x), shape (..., r), from the log joint density.

    .. math:: \log p(y\mid x) = \log p(x, y) - \log\sum_{y'} p(x, y')

    ``joint`` is log p(x, y), (..., r). A row that is impossible under every class (all -inf) gets ``log_prior``, (r,).
    """
    return posterior(joint, log_prior)[1]


def posterior(joint: Array, log_prior: Array | float) -> tuple[Array, Array]:
    """p(y | x) and its logarithm, as `log_posterior`.

    In memory the rows of a class follow each other, since numpy takes ten times as long for the sums of many short rows
    as for a sum of few long ones: each iteration of calibration takes them.
    """
    by_class = np.ascontiguousarray(joint.T)
    largest = by_class.max(axis=0)
    impossible = largest == -np.inf
    if impossible.any():
        by_class = np.where(impossible, np.broadcast_to(log_prior, joint.shape).T, by_class)
        largest = by_class.max(axis=0)
    log_P = by_class - largest
    P = np.exp(log_P)
    total = P.sum(axis=0)
    P /= total
    log_P -= np.log(total)
    return P.T, log_P.T


class InconsistentVersion(UserWarning):
    """An estimator was saved by another version of rcpkg: a parameter may be missing, or mean something else."""


def atomic(fit: Fit) -> Fit:
    """Decorator of ``fit``, which makes it all or nothing.

    A fit that fails or is interrupted leaves the estimator as it was, so that the labels of one fit never meet the
    parameters of another. Warnings that are given once a fit are given anew in the next. A matrix that is singular
    after a warning of ``sample_weight`` is a ValueError, which names it.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with one_fit() as warned:
                return fit(self, *args, **kwargs)
        except BaseException as error:
            self.__dict__ = before
            if isinstance(error, np.linalg.LinAlgError) and (message := warned.get("sample_weight")):
                raise ValueError(f"rounding leaves a matrix of this fit singular: {message}") from error
            raise

    return cast(Fit, whole)


class Estimator(BaseEstimator):
    """An estimator that is saved with the version of rcpkg, by pickle, joblib or skops; reading warns of another. A fit
    is atomic, whatever the class."""

    def __init_subclass__(cls, **options: Any) -> None:
        owner = next((each for each in cls.__mro__ if "fit" in vars(each)), None)
        if owner is cls or (owner and not issubclass(owner, Estimator)):  # its own, or that of a mixin
            cls.fit = atomic(cls.fit)
        super().__init_subclass__(**options)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_rcpkg_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved_by = state.pop("_rcpkg_version", "(version unknown)")
        if saved_by != __version__:
            message = f"{type(self).__name__} was saved by rcpkg {saved_by} and is read by {__version__}, where it may "
            warnings.warn(InconsistentVersion(f"{message}predict differently: fit it anew"), stacklevel=2)
        super().__setstate__(state)


Class = TypeVar("Class", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def constructed(cls: Class) -> Class:
    """Decorator that makes the constructor of an estimator from its annotated attributes: they are its parameters, by
    keyword, and stand before those that it inherits from a class which is so decorated."""
    doc, order = cls.__doc__, ["self", *inspect.get_annotations(cls), *inspect.signature(cls.__init__).parameters]
    cls = dataclass(kw_only=True, eq=False, repr=False)(cls)
    cls.__doc__ = doc  # where there is none, as under python -OO, a dataclass makes one
    signature = inspect.signature(cls.__init__)
    places = {name: place for place, name in reversed([*enumerate(order)])}
    ordered = sorted(signature.parameters.values(), key=lambda p: (p.kind, places.get(p.name, len(order))))
    cls.__init__.__signature__ = signature.replace(parameters=ordered)
    return cls


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries that are loaded, looked for anew where modules have been imported, which may have brought one."""
    return ThreadpoolController()


_LIMITING = Lock()


def one_thread_if_small(fit: Fit) -> Fit:
    """Decorator of a ``fit`` that runs BLAS on one thread where the table X is small.

    numpy and scipy bring a BLAS and its threads each, which hold up those of the other; only large products gain from
    them. The bar is `RiskCalibrationCV`, whose LDA takes 86 in place of 350 ms of two processors on wine; of the other
    classifiers QuadraticBayes takes 5 in place of 340 ms. The operations are the same. Of fits that overlap, the first
    to begin limits the threads of the process and gives back what it has found.
    """

    @wraps(fit)
    def limited(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        sizes = [n if isinstance(n, int) else np.inf for n in getattr(X, "shape", [np.inf])]
        small = prod(sizes) <= SMALL
        if not small or not _LIMITING.acquire(blocking=False):
            return fit(self, X, *args, **kwargs)
        try:
            with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
                return fit(self, X, *args, **kwargs)
        finally:
            _LIMITING.release()

    return cast(Fit, limited)


class Classifier(ClassifierMixin, Estimator):
    """A classifier of validated rows, whose classes are numbered."""

    classes_: NDArray
    class_log_prior_: Array
    n_features_in_: int
    feature_names_in_: NDArray

    def _check_X(self, X: ArrayLike) -> Array:
        return validate(self, X, reset=False)

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        """Validated X, and y as labels."""
        X, y = validate(self, X, y, reset=reset)
        if y.dtype.kind not in "biu" or 2 * (int(y.max()) - int(y.min()) + 1) > len(y):  # few integers are labels
            check_classification_targets(y)
        return X, y

    def _check_X_y(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
        """Validated X, and y as indices into ``classes_``, which is set."""
        return self._counting_rows(X, y)[:2]

    def _counting_rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Block:
        """Validated rows of positive weight, whose labels are indices into ``classes_``, which is set.

        Rows of weight zero are left out: they tell nothing, not even which classes and states there are.
        """
        X, y = self._check_rows(X, y)
        block = Block(X, y, None if sample_weight is None else check_weights(sample_weight, len(y))).counting()
        classes, numbers = number_labels(block.y)
        self._set_labels(classes)
        return block._replace(y=numbers)

    def _set_labels(self, classes: NDArray) -> None:
        """Take on the labels of the training rows, sorted."""
        self.classes_ = classes
        if len(self.classes_) < 2:
            label = self.classes_.tolist()[0]
            raise ValueError(
                f"y holds one class only ({label!r}); a classifier needs at least 2 classes of positive weight"
            )
        if self.classes_.dtype.kind in "if" and self.classes_[0] == -1 and self.classes_.tolist() != [-1, 1]:
            warn(UNLABELLED)
        check_cost(getattr(self, "cost", None), self.classes_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose label is predicted, by ``sample_weight``; y holds labels as ``fit`` takes them."""
        return super().score(X, as_labels(y), sample_weight)


def _has_marginals(model: Any) -> None:
    """Refuse ``score_samples`` and ``conditional_mean`` of a model without marginals."""
    require(model, MARGINALS)


class GenerativeClassifier(Classifier):
    """A classifier through its joint density.

    A subclass sets ``classes_`` and ``class_log_prior_`` in ``fit`` and implements ``_joint_log_proba(X)``, the
    (n, r) array of log p(x, y); the predictions are derived from it here, once. A ``cost`` attribute, where the
    subclass has one, turns `predict` into the minimiser of the expected cost.

    A joint model that gives ``expected_rows(X, W)``, Σ_y W_iy E[x_i | what is there of x_i, y], takes rows with gaps
    (NaN) in predictions, for which ``_joint_log_proba`` marginalises; only it has the methods that tell of p(x).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> model = QDA().fit(*load_iris(return_X_y=True))
    >>> gappy = [[5.9, 3.2, 4.8, None]]
    >>> model.predict(gappy), model.predict_proba(gappy).round(2)
    (array([2]), array([[0.  , 0.43, 0.57]]))
    >>> model.predict_proba(gappy, class_prior=[0.2, 0.6, 0.2]).round(2)
    array([[0.  , 0.69, 0.31]])
    >>> model.score_samples(gappy).round(2), model.conditional_mean(gappy).round(2)
    (array([-2.18]), array([[5.9 , 3.2 , 4.8 , 1.87]]))
    >>> joint = model.predict_joint_log_proba(gappy)
    >>> np.allclose(log_posterior(joint, 0.0), model.predict_log_proba(gappy)), model.decision_function(gappy).shape
    (True, (1, 3))
    """

    __metadata_request__predict = __metadata_request__predict_proba = WITHOUT_SETTER
    __metadata_request__predict_log_proba = WITHOUT_SETTER

    expected_rows: Callable[..., Any]  # given where p(x, y) is a density with marginals; families have θ for a third

    def get_metadata_routing(self) -> Any:
        """scikit-learn's requests of metadata: predictions ask for ``class_prior``, always."""
        requests = super().get_metadata_routing()
        for method in "predict", "predict_proba", "predict_log_proba":
            getattr(requests, method).add_request(param="class_prior", alias=True)
        return requests

    def _joint_log_proba(self, X: Array) -> Array:
        raise NotImplementedError

    def _expected_rows(self, X: Array, weights: Array) -> Any:
        return self.expected_rows(X, weights)

    def _log_base(self, X: Array) -> Array | float:
        """What ``_joint_log_proba`` leaves out of log p(x, y), the same for every class: (n,), or a number."""
        return 0.0

    @property
    def _cost_of_decisions(self) -> ArrayLike | None:
        return getattr(self, "cost", None)

    @property
    def _calibrated_at(self) -> Array:
        """Log class weights of the population whose posteriors are predicted."""
        return self.class_log_prior_

    @by_block
    def predict_joint_log_proba(self, X: ArrayLike | Rows) -> Array:
        """Joint log density log p(x, y) for each row and class, shape (n, r); of what a row with gaps has."""
        check_is_fitted(self)
        return self._joint_log_proba(self._check_X(X))

    @given_if(_has_marginals)
    @by_block
    def score_samples(self, X: ArrayLike | Rows) -> Array:
        """Log density log p(x) = log Σ_y p(x, y) of the rows, shape (n,); of what a row with gaps has."""
        check_is_fitted(self)
        X = self._check_X(X)
        return log_sum_exp(self._joint_log_proba(X)) + self._log_base(X)

    @given_if(_has_marginals)
    def conditional_mean(self, X: ArrayLike) -> Any:
        """E[x | what is there] = Σ_y p(y | what is there) E[x | what is there, y]: the rows (n, d), gaps filled.

        Of categories it is the probabilities of the states of each feature, d arrays (n, r_j) in the order of
        ``categories_``; of a `ProductModel` either, by the names of the blocks.
        """
        check_is_fitted(self)
        X = self._check_X(X)
        return self._expected_rows(X, np.exp(log_posterior(self._joint_log_proba(X), self.class_log_prior_)))

    @by_block
    def predict_log_proba(self, X: ArrayLike | Rows, class_prior: ArrayLike | Mapping | None = None) -> Array:
        """Log posterior log p(y | x), shape (n, r); a row impossible under every class gets the class prior.

        With ``class_prior``, positive class weights π' that sum to one, in the order of ``classes_`` or by label, that
        of a population in which the classes have these: p'(y | x) ∝ p(y | x) π'_y / π_y, where π are those of the
        model or, of a calibrated one, of its training rows.
        A row of gaps only gets π', and without it the model's p(y).
        """
        joint, log_prior = self.predict_joint_log_proba(X), self.class_log_prior_
        if class_prior is not None:
            log_prior = np.log(check_class_prior(class_prior, self.classes_))
            never = np.isneginf(self._calibrated_at)
            if never.any():
                label = self.classes_[never].tolist()[0]
                raise ValueError(f"class_prior cannot change the weight of {label!r}, which is zero in the model")
            silent = np.isclose(joint, self.class_log_prior_, rtol=0.0, atol=ROUNDING).all(axis=1, keepdims=True)
            joint = np.where(silent, log_prior, joint + (log_prior - self._calibrated_at))
        return log_posterior(joint, log_prior)

    @by_block
    def decision_function(self, X: ArrayLike | Rows) -> Array:
        """Log odds log p(y_2 | x) − log p(y_1 | x), shape (n,), of two classes; log p(y | x), shape (n, r), of more."""
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) > 2:
            return log_proba
        with np.errstate(invalid="ignore"):
            return log_proba[:, 1] - log_proba[:, 0]

    @by_block
    def predict_proba(self, X: ArrayLike | Rows, class_prior: ArrayLike | Mapping | None = None) -> Array:
        """Posterior p(y | x), shape (n, r); with ``class_prior`` for other class weights, as `predict_log_proba`."""
        return np.exp(self.predict_log_proba(X, class_prior))

    @by_block
    def predict(self, X: ArrayLike | Rows, class_prior: ArrayLike | Mapping | None = None) -> NDArray:
        """Class of largest posterior or, with a ``cost``, of least expected cost; ties go to the first class.

        With ``class_prior`` the posterior is that for other class weights, as in `predict_log_proba`.
        """
        log_proba = self.predict_log_proba(X, class_prior)
        cost = check_cost(self._cost_of_decisions, self.classes_)
        if cost is None:
            return self.classes_[np.argmax(log_proba, axis=1)]
        return self.classes_[np.argmin(np.exp(log_proba) @ cost.T, axis=1)]


class SquareableRows:
    """Mixin in front of `Classifier`: rows whose squares leave the range of numbers are refused."""

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        X, y = super()._check_rows(X, y, reset=reset)
        return check_magnitude(X, fitting=True), y

    def _check_X(self, X: ArrayLike) -> Array:
        return check_magnitude(super()._check_X(X))
