"""The estimator that has a family: scikit-learn's ``fit`` and ``partial_fit`` of closed forms, and predictions."""

from __future__ import annotations

from copy import copy
from dataclasses import field, fields
from functools import partial
from operator import add
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, atomic, constructed, one_thread_if_small
from rcpkg.capabilities import require
from rcpkg.checks import check_number, check_weights, feature_name, number_labels, warn
from rcpkg.columns import as_labels
from rcpkg.families.family import Family, PriorSettings
from rcpkg.families.portions import COLUMNS, BlockSummary, check_blocks, check_same_columns, describe_block, numbered
from rcpkg.families.scorer import FORMAT, Scorer
from rcpkg.families.statistics import Statistics, finite_sums
from rcpkg.rows import Block, Blocks, Rows


@constructed
@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class ClosedFormClassifier(GenerativeClassifier):
    """Base of the classifiers with a closed-form learner a = θ∘s (rc2025 §3).

    ``class PoissonNB(ConjugateClassifier, family=PoissonFamily)`` is the classifier of a family, whose settings are the
    parameters of its constructor. After a fit ``family_`` is the family, with what it has learnt of the training rows,
    ``statistics_`` s, and ``parameters_`` θ(s), or None while the rows of ``partial_fit`` do not suffice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QDA().fit(X, y)
    >>> rows = model.family_.encode(X)
    >>> theta = model.parameters(model.statistics(rows, np.eye(3)[y]))
    >>> np.allclose(model.log_joint(rows, theta), model.predict_joint_log_proba(X))
    True
    >>> model.sample(5, random_state=0)[0].shape, model.scorer().predict_proba(X[70]).round(2)
    ((5, 4), array([0.  , 0.33, 0.67]))
    """

    cost: ArrayLike | None = None

    family_: ClassVar[Family]
    statistics_: ClassVar[Statistics]
    parameters_: ClassVar[Any]
    _family_type: ClassVar[type[Family]] = Family

    def __init_subclass__(cls, family: type[Family] | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if family is not None:
            cls._family_type = family
        if "__init__" not in vars(cls):
            constructed(cls)
        settings, kind = {each.name for each in fields(cls._family_type)}, cls._family_type
        for name in cls._get_param_names():
            if hasattr(kind, name) and name not in settings:
                remedy = f"annotate it in {kind.__name__}, and decorate that with @constructed of rcpkg.base"
                raise TypeError(f"{name} of {cls.__name__} would never reach its family: {remedy}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    def _settings(self) -> dict[str, Any]:
        """The parameters of the constructor that are settings of the family."""
        names = [each.name for each in fields(self._family_type) if each.init]
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _new_family(self) -> Family:
        """The family that these parameters make; ``family_`` is the one that knows the training rows."""
        return self._family_type(**self._settings())

    def _description(self) -> dict[str, Any]:
        """What is known of the labels and columns of the rows."""
        names = "classes_", "n_features_in_", "feature_names_in_", "_columns"
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _prepare(self, X: Array) -> None:
        """Take a family that knows the validated training rows X."""
        self.family_ = self._new_family().describe(**self._description())
        self.family_.prepare(X)
        unseen = self.family_.unseen
        if len(unseen):
            name = feature_name(self, unseen[0])
            others = f", and so do {len(unseen) - 1} more" if len(unseen) > 1 else ""
            warn(f"{name} holds missing values only{others}: it says nothing of the classes; leave it out")

    def _extend(self, X: Array) -> None:
        """Have the family and the statistics of the rows so far take the form that further rows X ask for."""
        self.family_ = copy(self.family_).describe(**self._settings(), **self._description())
        self.statistics_ = self.family_.extend_statistics(X, self.statistics_)

    def _known_family(self) -> Family:
        """The fitted family or, before any fit, one that is made once."""
        if not hasattr(self, "family_"):
            self.family_ = self._new_family()
        return self.family_

    def statistics(self, X: Array, weights: Array) -> Statistics:
        """Statistics Σ_i Σ_y W_iy s(x_i, y) for weights W of shape (n, r), soft, hard or signed."""
        return self._known_family().statistics(X, weights)

    def parameters(self, statistics: Statistics) -> Any:
        """Parameter map θ(s); raises `InvalidStatistics` where s gives no valid model."""
        return self._known_family().parameters(statistics)

    def log_joint(self, X: Array, parameters: Any) -> Array:
        """Joint log density log p(x, y), shape (n, r)."""
        return self._known_family().log_joint(X, parameters)

    @one_thread_if_small
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form θ(s(X, Y)); rows count ``sample_weight`` times. ``fit(rows)`` takes `Rows`, of any size.

        Where a model takes rows with gaps (NaN), what is missing is taken to be missing at random (Rubin, 1976).
        """
        rows = self._training_rows(X, y, sample_weight)
        self.family_.learn_structure(rows)
        statistics = finite_sums(self.family_.raw_statistics, rows)
        return self._set_statistics(statistics, self.family_.fix_prior(statistics, self._n_rows))

    @atomic
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add the statistics of further rows; the first call names all ``classes``.

        While the statistics do not suffice (too few rows of a class so far), predictions raise `InvalidStatistics`.
        """
        first = not hasattr(self, "statistics_")
        if first:
            self._set_classes(classes)
        elif classes is not None and not np.array_equal(np.unique(as_labels(classes, "classes")), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as on last call to partial_fit, {self.classes_.tolist()}"
            )
        X, y = self._check_rows(X, y, reset=first)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"The target label(s) {unknown.tolist()} in y do not exist in the initial classes "
                f"{self.classes_.tolist()}: name them in the first call to partial_fit"
            )
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        block = Block(X, np.searchsorted(self.classes_, y), weight).counting()
        rows = Blocks([block])
        if first:
            self._prepare(block.X)
            self.family_.learn_structure(rows)
        else:
            self._refuse_first_values(block.X)
            self._extend(block.X)
        statistics = finite_sums(self.family_.raw_statistics, rows)
        self._n_rows = block.n + (0 if first else getattr(self, "_n_rows", 0))
        if not first:
            statistics = finite_sums(add, self.statistics_, statistics)
        try:
            self._set_statistics(statistics, self.family_.fix_prior(statistics, self._n_rows))
        except InvalidStatistics as error:
            self.statistics_ = statistics
            self.parameters_, self._insufficient = None, str(error)
            self.class_log_prior_ = self.family_.log_class_probabilities(None)
        return self

    def _refuse_first_values(self, X: Array) -> None:
        """Refuse further rows with values of a feature that had none so far, and has no place in the statistics."""
        for j in self.family_.unseen:
            if not np.isnan(X[:, j]).all():
                name = feature_name(self, j)
                raise ValueError(f"{name} held missing values only so far: begin partial_fit with rows that have some")

    def _set_classes(self, classes: ArrayLike | None) -> None:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        self.classes_ = np.unique(as_labels(classes, "classes"))
        if len(self.classes_) < 2:
            raise ValueError(f"classes must name at least 2 classes; got {classes!r}")

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, NDArray]:
        """Draw rows and labels (X, y) from the fitted joint distribution p(x, y)."""
        check_is_fitted(self)
        require(self, "sampling")
        check_number("n_samples", n_samples, 0, integer=True)
        rng = check_random_state(random_state)
        y = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        return self.family_.draw(self._fitted_parameters(), y, rng), self.classes_[y]

    def scorer(self) -> Scorer:
        """The model frozen to arrays, for one row at a time: `Scorer`."""
        check_is_fitted(self)
        require(self, "a scorer")
        theta, columns = self._fitted_parameters(), getattr(self, "_columns", [])
        if columns == [*range(len(columns))] or not all(type(column) is int for column in columns):
            columns = []  # what is left are names of which scikit-learn takes no notice
        names = getattr(self, "feature_names_in_", np.empty(0)).tolist() or columns
        labels = {"classes": self.classes_.tolist(), "n_features": self.n_features_in_, "features": names}
        parts = {"product": hasattr(self.family_, "blocks"), "parts": self.family_.frozen(theta)}
        return Scorer({"format": FORMAT, **labels, "log_prior": theta.log_prior, **parts})

    def _training_rows(self, X: ArrayLike | Rows, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Rows:
        """Validated rows of positive weight with class numbers; sets ``classes_`` and prepares the family."""
        if isinstance(X, Rows):
            return self._of_blocks(X.without(y, sample_weight))
        block = self._counting_rows(X, y, sample_weight)
        self._prepare(block.X)
        self._n_rows = block.n
        return Blocks([block])

    def _of_blocks(self, rows: Rows) -> Rows:
        """Validated blocks; what one of them would tell the model, all of them tell it together."""
        summaries: list[BlockSummary] = []
        for block in rows.each(partial(describe_block, self)):
            summaries.append(block)
            check_same_columns(summaries[0], block)
        check_blocks(summaries)
        self._set_columns(summaries)
        self._n_rows = sum(block.n for block in summaries)  # by the same pass, which may read files
        self._set_labels(number_labels(np.concatenate([block.labels for block in summaries]))[0])
        self._prepare(self._all_representatives([block for block in summaries if block.n]))
        rows = rows.map(partial(numbered, copy(self)))
        if len(summaries) == 1:  # which needs no representatives
            self._prepare(rows.only("prepare").X)
        return rows

    def _set_columns(self, summaries: list[BlockSummary]) -> None:
        """Names and numbers of the columns, as the blocks have them."""
        others = {name: value for name, value in vars(self).items() if name not in COLUMNS}
        self.__dict__ = others | summaries[0].columns

    def _all_representatives(self, summaries: list[BlockSummary]) -> Array:
        """The representatives of all blocks."""
        parts = [block.X for block in summaries]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def _set_statistics(self, statistics: Statistics, parameters: Any = None) -> Self:
        """Take on statistics, and the parameters they give."""
        self.parameters_ = self.family_.parameters(statistics) if parameters is None else parameters
        self.statistics_ = statistics
        self.class_log_prior_ = self.family_.log_class_probabilities(self.parameters_)
        return self

    def _with_family(self, family: Family, statistics: Statistics, parameters: Any = None) -> Self:
        """This classifier with another ``family`` of its type, whose settings it takes, and its statistics."""
        model = copy(self)
        vars(model).update({name: getattr(family, name) for name in self._settings()}, family_=family)
        return model._set_statistics(statistics, parameters)

    def _fitted_parameters(self) -> Any:
        """The parameters; raises `InvalidStatistics` while the rows of ``partial_fit`` do not suffice."""
        if self.parameters_ is None:
            raise InvalidStatistics(f"not enough data so far: {self._insufficient}")
        return self.parameters_

    def _joint_log_proba(self, X: Array) -> Array:
        joint = self.family_.log_joint(self.family_.encode_new(X), self._fitted_parameters())
        if joint.shape != (shape := (X.shape[0], len(self.classes_))) or np.isnan(joint.sum()):
            asked = f"log_joint of {type(self.family_).__name__} must give an array of shape (n, r), without NaN"
            raise ValueError(f"{asked}; for n, r = {shape} it gave {joint.shape} with {np.isnan(joint).sum()} NaN")
        return joint

    def _expected_rows(self, X: Array, weights: Array) -> Any:
        return self.family_.expected_rows(X, weights, self._fitted_parameters())

    def _log_base(self, X: Array) -> Array | float:
        return self.family_.log_base(X)


class ConjugateClassifier(PriorSettings, ClosedFormClassifier):
    """A closed-form classifier whose parameters are those of a prior: of ML, or of conjugate MAP."""
