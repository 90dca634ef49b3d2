"""What a calibration climbs: a family, rows, a rule and a target make an objective, whose points are models."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array, InvalidStatistics, log_posterior, posterior
from rcpkg.calibration.in_view import check_in_view, shown
from rcpkg.calibration.rules import Losses, Rule, calibration_weights, row_losses, soft_error_weights, sum_of_losses
from rcpkg.checks import check_number
from rcpkg.families import ClosedFormClassifier, Family, Statistics, can, class_counts, one_hot, require
from rcpkg.families.portions import encoded
from rcpkg.families.statistics import finite_sums
from rcpkg.linalg import IN_CACHE, slices
from rcpkg.rows import Block, Blocks, OfX, Rows, check_lengths

TargetName = Literal["pooled", "generative", "grand", "nested"]


def log_posterior_of(family: Family, X: Any, parameters: Any) -> Array:
    """log p(y | x) of encoded rows X at some ``parameters``, shape (n, r)."""
    return log_posterior(family.log_joint(X, parameters), family.log_class_probabilities(parameters))


def log_posterior_of_new(family: Family, X: Any, parameters: Any) -> Array:
    """The same of validated rows X that are not encoded."""
    return log_posterior_of(family, family.encode_new(X), parameters)


def sample_size(statistics: Statistics) -> float:
    """Total weight m of statistics: the sum of their class counts."""
    return float(class_counts(statistics).sum())


@dataclass(frozen=True)
class Target:
    """The model that the penalty b [⟨s̄, η⟩ − m̄ ψ(η)] draws to: s̄ = m̄ E[s(x, y)], pseudo-rows m̄ and weight b.

    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> target = Objective.from_estimator(QDA(), *load_iris(return_X_y=True), target_weight=0.5).target
    >>> target.size, target.weight, target.statistics.count
    (15.0, 0.5, array([5., 5., 5.]))
    """

    statistics: Statistics
    size: float
    weight: float


@dataclass(frozen=True)
class Point:
    """A model on the way: its statistics and parameters, and what one pass over the rows of an objective tells of it.

    Attributes
    ----------
    objective : Objective
        Where it was evaluated.
    statistics : Statistics
        s, with θ(s) = ``parameters``.
    parameters : object
        θ.
    gradient : Statistics
        s(X, W) + b s̄.
    losses : Losses
        Mean losses of the rows.
    step : float
        Length of the step that led to it; 0 at the start.

    Examples
    --------
    >>> from rcpkg import QDA
    >>> F = Objective.from_estimator(QDA(), [[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1])
    >>> point = F.evaluate(F.start)
    >>> point.losses.error, point.model.predict([[4.0]]), point.log_posterior(F.X).shape
    (0.0, array([1]), (4, 2))
    """

    objective: Objective
    statistics: Statistics
    parameters: Any
    gradient: Statistics
    losses: Losses
    step: float = 0.0

    @cached_property
    def natural(self) -> Statistics:
        """Natural parameters η of the point."""
        return self.objective.family.natural_parameters(self.parameters)

    @cached_property
    def mean(self) -> Statistics:
        """Mean parameters μ of the point."""
        return self.objective.family.mean_parameters(self.parameters)

    @cached_property
    def value(self) -> float:
        """What is climbed: minus the summed loss, plus b ⟨s̄, η⟩, where ψ(η) = 0."""
        F = self.objective
        value = -F.total_weight * getattr(self.losses, F.loss)
        return value + F.target.weight * F.target.statistics.dot(self.natural) if F.target else value

    separated, extras = False, {}  # what searches in coordinates alone tell

    @cached_property
    def promise(self) -> float:
        """What the next step gains; see `Objective.promised_gain`."""
        return self.objective.promised_gain(self)

    @property
    def estimate(self) -> float:
        """The promise, or an estimate of it that costs no further pass."""
        return self.promise

    @property
    def model(self) -> ClosedFormClassifier:
        """A fitted classifier."""
        return self.objective.classifier(self.statistics, self.parameters)

    def log_posterior(self, X: Any) -> Array:
        """log p(y | x) of encoded rows X, shape (n, r)."""
        return log_posterior_of(self.objective.family, X, self.parameters)


@dataclass(frozen=True)
class Objective:
    """F(η) = Σ_i w_i log p(y_i | x_i) + b [⟨s̄, η⟩ − m̄ ψ(η)], and minus the soft errors in place of the first sum
    with `soft_error_weights`; for another rule what its weights W move. x_i is what there is of row i.

    Parameters
    ----------
    family : Family
        A family that is prepared for the rows; with a target one without a prior.
    rows : Rows, array, sparse array or tuple of arrays
        Rows as the family encodes them, with class numbers and weights; or X alone, in memory.
    Y : array of shape (n, r), optional
        One-hot labels of such X.
    sample_weight : array of shape (n,), optional
        Weights w ≥ 0 of the rows X.
    rule : function, default=`calibration_weights`
        Signed weights W of posteriors P and labels Y.
    target : Target, optional
        s̄, m̄ and b.
    labels : Statistics, optional
        s(X, Y), rows counting by their weights, or what EM leads to where values are missing, if it is known already.
    start : Statistics, optional
        Where to begin: s(X, Y), or with a target (s(X, Y) + b s̄) / (1 + b m̄/m), in which no state it allows is empty.
    closed_form : object, optional
        θ(s(X, Y)), if it is known already.
    estimator : ClosedFormClassifier, optional
        The classifier that the models of its points are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> X, y = load_iris(return_X_y=True)
    >>> F = Objective.from_estimator(QDA(), X, y, target_weight=1.0)
    >>> F.total_weight, F.size, F.with_weight(2.0).size
    (150.0, 165.0, 180.0)
    >>> a = F.evaluate(F.start)
    >>> b = F.evaluate(F.moved(a.statistics, a.gradient, 0.5))  # a step of length ½
    >>> b.value > a.value, F.promised_gain(b) < F.promised_gain(a), F.distance(a, b) > 0
    (True, True, True)
    >>> np.allclose(F.ascent(a).count, a.gradient.count - F.pull(a.statistics) * a.statistics.count)
    True
    >>> F.classifier(b.statistics).score(X, y), F.weights(a.log_posterior(F.X[:5]), np.arange(5)).shape
    (0.98, (5, 3))
    """

    family: Family
    rows: Any
    Y: Array | None = None
    sample_weight: Array | None = None
    rule: Rule = calibration_weights
    target: Target | None = None
    labels: Statistics | None = None
    start: Statistics | None = None
    closed_form: Any = None
    estimator: ClosedFormClassifier | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.rows, Rows):
            if np.ndim(self.Y) != 2:
                raise ValueError("Y must be one-hot labels of shape (n, r), as one_hot(numbers, r) of rcpkg.families")
            block = check_lengths(Block(self.rows, self.Y.argmax(axis=1), self.sample_weight))
            object.__setattr__(self, "rows", Blocks([block]))
            object.__setattr__(self, "Y", None)
            object.__setattr__(self, "sample_weight", None)
        if self.labels is None:
            object.__setattr__(self, "labels", self.family.closed_form_statistics(self.rows))
        if self.start is None:
            start = self.labels
            if self.target:
                start = self.moved(start, self.target.weight * self.target.statistics, 1.0)
            object.__setattr__(self, "start", start)

    @classmethod
    def from_estimator(
        cls,
        estimator: ClosedFormClassifier,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        rule: Rule = calibration_weights,
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        keep_prior: bool = False,
        gaps_in_view: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """The objective of an ``estimator``, which is cloned, on rows X with labels y that ``sample_weight`` counts.

        Rows of weight zero are left out, and with them states that no others have.

        The ``rule``, ``target``, ``target_weight``, ``gaps_in_view`` and ``random_state`` are those of
        `RiskCalibration`; with gaps in view the rows are those given and their masked copies. A prior of the
        estimator shapes the start, or the target, and nothing else, unless it is to ``keep_prior`` (the sources'
        algorithm does): of the parameters of MAP an update need not be a direction of ascent.
        """
        model = clone(estimator)
        rows = model._training_rows(X, y, sample_weight)
        return cls.from_rows(model, rows, rule, target, target_weight, keep_prior, gaps_in_view, random_state)

    @classmethod
    def from_rows(
        cls,
        model: ClosedFormClassifier,
        rows: Rows,
        rule: Rule = calibration_weights,
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        keep_prior: bool = False,
        gaps_in_view: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """As `from_estimator`, of a ``model`` whose family is prepared, and validated rows with class numbers."""
        family = model.family_
        if (target_weight or not keep_prior) and family.priors is not None:
            raise ValueError(
                "priors of the estimator must be None: calibration fits the class weights of the training rows, and "
                "would undo them; for a population with other weights take predict_proba(X, class_prior=…)"
            )
        family.learn_structure(rows)
        given_rows, encode = rows, partial(encoded, copy(family))
        rows = rows.map(encode).kept()
        labels = finite_sums(family.closed_form_statistics, rows)
        given = {"rule": rule, "labels": labels, "estimator": model}
        closed_form = family.fix_prior(labels, rows.sum(attrgetter("n")))
        check_in_view(gaps_in_view)
        if gaps_in_view is not None:
            block = shown(given_rows.only("gaps_in_view"), model, gaps_in_view, check_random_state(random_state))
            rows = Blocks([encode(block)])
        if target_weight:
            drawn = target_of(family, labels, target, target_weight)
            # the prior has made the target, which takes its place: μ is then s/m, as the pull m̄μ = (m̄/m) s says
            return cls(family.without_prior(), rows, target=drawn, closed_form=closed_form, **given)
        if keep_prior or not family.has_prior:
            return cls(family, rows, closed_form=closed_form, **given)
        if can(family, "distances of joint models"):
            closed_form = family.parameters(labels) if closed_form is None else closed_form
            start = sample_size(labels) * family.mean_parameters(closed_form)
        else:
            start = family.with_pseudo_rows(labels)
        return cls(family.without_prior(), rows, start=start, closed_form=closed_form, **given)

    def classifier(self, statistics: Statistics, parameters: Any = None) -> ClosedFormClassifier:
        """The classifier of its family that has these statistics."""
        if self.estimator is None:
            raise ValueError("an Objective that is to give classifiers needs the estimator that they are copies of")
        return self.estimator._with_family(self.family, statistics, parameters)

    def with_weight(self, weight: float) -> Self:
        """The same with another ``weight`` b of the target."""
        return replace(self, target=replace(self.target, weight=weight), start=None)

    @property
    def _block(self) -> Block:
        return self.rows.only("Newton's method, and what needs all rows at once,")

    @property
    def X(self) -> Any:
        """The encoded rows, where they are one block."""
        return self._block.X

    @property
    def y(self) -> NDArray[np.intp]:
        """Class numbers of the rows, where they are one block."""
        return self._block.y

    @property
    def weight(self) -> Array | None:
        """Weights of the rows, if any, where they are one block."""
        return self._block.weight

    @cached_property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return self.rows.sum(attrgetter("total_weight"))

    @property
    def class_frequencies(self) -> Array:
        """Shares of the classes in the rows, by their weights, shape (r,)."""
        return class_counts(self.labels) / self.total_weight

    @property
    def size(self) -> float:
        """Rows and pseudo-rows by their weights: m + b m̄."""
        return self.total_weight + (self.target.weight * self.target.size if self.target else 0.0)

    @property
    def loss(self) -> str:
        """Name of the loss that the rule descends: "soft_error" with `soft_error_weights`, else "log_loss"."""
        return "soft_error" if self.rule is soft_error_weights else "log_loss"

    def evaluate(self, statistics: Statistics, parameters: Any = None, step: float = 0.0) -> Point:
        """The point of ``statistics``, by one pass over the rows; of ``parameters``, where they are known already.

        ``step`` is entered as the length of the step that led there. Raises `InvalidStatistics` if there is no model.
        """
        parameters = self.family.parameters(statistics) if parameters is None else parameters
        gradient, sums = self.rows.sum(Pass(self.family, parameters, self.rule))
        if self.target:
            gradient = gradient + self.target.weight * self.target.statistics
        losses = Losses(*(sums / self.total_weight).tolist())
        return Point(self, statistics, parameters, gradient, losses, step)

    def weights(self, log_P: Array, index: NDArray[np.intp]) -> Array:
        """diag(w) · rule(P, Y) on some rows, overwriting their log posteriors ``log_P``."""
        P = np.exp(log_P, out=log_P)
        return signed_weights(self.rule, P, self.y[index], None if self.weight is None else self.weight[index])

    def moved(self, statistics: Statistics, gradient: Statistics, lr: float, share: float = 1.0) -> Statistics:
        """[s + lr · (s(X, W) + b s̄)] / (1 + lr b m̄/m): implicit in the target, hence stable for every b.

        s are the ``statistics``; ``gradient`` is s(X, W) + b s̄, or what a ``share`` of the rows gives of it.
        """
        moved = statistics + lr * gradient
        return moved / (1 + lr * share * self.pull(statistics)) if self.target else moved

    def pull(self, statistics: Statistics) -> float:
        """b m̄/m of ``statistics`` of size m."""
        return self.target.weight * self.target.size / sample_size(statistics) if self.target else 0.0

    def ascent(self, point: Point) -> Statistics:
        """s(X, W) + b (s̄ − (m̄/m) s): the direction of a step from a ``point``, of the length lr / (1 + lr b m̄/m)."""
        return point.gradient - self.pull(point.statistics) * point.statistics

    def distance(self, a: Point, b: Point) -> float:
        """m [KL(a ‖ b) + KL(b ‖ a)] = m ⟨μ_a − μ_b, η_a − η_b⟩ of two joint models; zero if the family gives no μ."""
        if not can(self.family, "distances of joint models"):
            return 0.0
        divergence = a.mean.dot(a.natural) - a.mean.dot(b.natural) - b.mean.dot(a.natural) + b.mean.dot(b.natural)
        return sample_size(a.statistics) * max(divergence, 0.0)

    def promised_gain(self, point: Point) -> float:
        """⟨g, Δη⟩ / (m + b m̄): what a plain safe step of length one gains from ``point`` to first order, per row and
        pseudo-row.

        It is the square of the gradient g in the metric of the model, hence of no unit, and zero at a stationary point
        alone. With a target F is strongly concave relative to ψ: near its maximum F* the rest (F* − F) / (m + b m̄) is
        at most (m + b m̄) / (2 b m̄) times it. It is infinite for a model without natural parameters.
        """
        if not can(self.family, "convergence"):
            return np.inf
        ascent, m = self.ascent(point), sample_size(point.statistics)
        try:
            statistics = self.family.safe_update(point.statistics, (m / self.size) * ascent)
            natural = self.family.natural_parameters(self.family.parameters(statistics))
        except InvalidStatistics:  # rounding can make a covariance singular that is not so in exact arithmetic
            return np.inf
        return abs(ascent.dot(natural) - ascent.dot(point.natural)) / self.size


@dataclass(frozen=True)
class Pass:
    """One pass over an encoded block at some ``parameters``: s(X, W), and the sums of the losses of the rows.

    The posteriors are those of log p(x, y) with an ``offset`` added, shape (r,).
    """

    family: Family
    parameters: Any
    rule: Rule
    offset: Array | None = None

    def __call__(self, block: Block) -> Statistics:
        log_prior = self.family.log_class_probabilities(self.parameters)
        by_row = np.empty((3, block.n))

        def weigh(joint: Array, rows: slice | NDArray[np.intp]) -> Array:
            joint = joint if self.offset is None else joint + self.offset
            y, weight = block.y[rows], None if block.weight is None else block.weight[rows]
            losses = np.empty((3, len(y)))
            for part in slices(len(y), max(1, IN_CACHE // joint.shape[1])):
                P, log_P = posterior(joint[part], log_prior)
                losses[:, part] = row_losses(log_P, y[part])
                joint[part] = signed_weights(self.rule, P, y[part], None if weight is None else weight[part])
            by_row[:, rows] = losses
            return joint

        gradient = self.family.weighted_statistics(block.X, self.parameters, weigh)
        return Statistics(gradient=gradient, losses=sum_of_losses(by_row, block.weight))


def check_each(rows: Rows, refuse: Callable[[Any], None]) -> None:
    """Have the X of each block looked at by what ``refuse``s it."""
    for _ in rows.each(OfX(refuse)):
        pass


def signed_weights(rule: Rule, P: Array, y: NDArray[np.intp], weight: Array | None) -> Array:
    """diag(w) · rule(P, Y) of class numbers y."""
    W = rule(P, one_hot(y, P.shape[1]))
    return W if weight is None else W * weight[:, None]


def check_target(target: Any, target_weight: Any) -> None:
    """Refuse what is neither a name of a target nor a model, and weights that are none."""
    check_number("target_weight", target_weight, 0)
    names, model = get_args(TargetName), target.estimator if isinstance(target, FrozenEstimator) else target
    if not (target in names if isinstance(target, str) else isinstance(model, ClosedFormClassifier)):
        raise ValueError(f"target must be a fitted model or one of {', '.join(names)}; got {target!r}")


def target_of(family: Family, statistics: Statistics, target: str | ClosedFormClassifier, weight: float) -> Target:
    """The ``target`` of a ``family`` whose closed form has these ``statistics``, with a ``weight`` b.

    One on the boundary of the model is refused: a state of probability zero makes the penalty infinite.
    """
    require(family, "target_weight > 0")
    parameters, size = target_parameters(family, statistics, target)
    natural = family.natural_parameters(parameters).ravel()
    if isinstance(target, str) and target in ("pooled", "grand"):
        natural = natural[~np.isneginf(natural)]  # a state of no row has no part in the model, nor in the penalty
    if not np.isfinite(natural).all():
        raise InvalidStatistics(
            "the target lies on the boundary of the model (a state of probability zero): the penalty would be "
            "infinite; set prior_strength > 0, drop unused states, or choose another target"
        )
    return Target(size * family.mean_parameters(parameters), size, weight)


def target_parameters(family: Family, statistics: Statistics, target: str | ClosedFormClassifier) -> tuple[Any, float]:
    """Parameters of the ``target`` of a ``family`` whose closed form has these ``statistics``; the pseudo-rows m̄."""
    if not isinstance(target, str):
        forgotten = "clone, which cross_val_score and GridSearchCV call, forgets a fit"
        check_is_fitted(target, msg=f"target is not fitted; {forgotten}: pass FrozenEstimator(model) of sklearn.frozen")
        if not family.same_form(target.family_):
            raise ValueError(
                "target must be a fitted model of the same type as estimator, with the same classes, features and "
                "states"
            )
        return target._fitted_parameters(), sample_size(target.statistics_)
    if target == "generative":
        return family.parameters(statistics), sample_size(statistics)
    require(family, f"target={target!r}")
    return getattr(family, f"{target}_parameters")(statistics)
