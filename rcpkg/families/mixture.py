r"""Mixtures: a hidden component within each class, which is a categorical feature that is missing in every row.

The complete rows (x, y, k) are those of a family whose classes are the pairs (y, k). With ρ_ik = p(k | x_i, y),

    s(X, W) = Σ_i Σ_y W_iy Σ_k ρ_ik s(x_i, y, k)

is the expectation that every family takes of rows with gaps: the E-step of EM for W = Y, and for W = Y − P the gradient
of Σ_i log p(y_i | x_i). What is proved of its ascent, and what is not, is in the chapter *Hidden components*.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from rcpkg.base import Array, InvalidStatistics, constructed
from rcpkg.capabilities import Unsupported
from rcpkg.checks import check_number, refusal, warn
from rcpkg.choice import FOLDS, folds, log_losses
from rcpkg.families.classifier import ClosedFormClassifier
from rcpkg.families.constants import LOST, MOST_COMPONENTS, ROWS_PER_COMPONENT
from rcpkg.families.em import Ascent, best_ascent
from rcpkg.families.family import Family, PriorSettings, Weigh, if_all_have
from rcpkg.families.portions import COLUMNS, BlockSummary, encoded, first_rows, rows_and_weight
from rcpkg.families.statistics import Statistics, class_counts
from rcpkg.linalg import one_hot
from rcpkg.progress import telling
from rcpkg.rows import Block, Blocks, Rows


class MixtureParameters(NamedTuple):
    """Class log probabilities (r,), and the parameters of the components, whose class probabilities are p(y, k)."""

    log_prior: Array
    components: Any


@constructed
class MixtureSettings(PriorSettings):
    """Settings of a mixture: its components have their own."""

    n_components: int | str = "cv"
    n_starts: int = 4
    max_iter: int = 300
    tol: float = 1e-5
    prior_strength: float = 1.0
    class_prior_strength: float = 0.0
    random_state: int | np.random.RandomState | None = None


def _that_of(part: str, name: str) -> Any:
    """The method or property of a ``part`` of the mixture, as one of the mixture."""
    return property(lambda mixture: getattr(getattr(mixture, part), name))


@constructed
class MixtureFamily(MixtureSettings, Family):
    """Mixtures of members of a family ``component``, whose classes are the pairs (y, k).

    Statistics: ``count`` (r,), and ``components``, those of the family, with the weights of all (y, k).
    """

    component: Family

    sizes: ClassVar[NDArray[np.intp] | None] = None  # numbers of components of the classes, once rows are known
    log_likelihoods: ClassVar[Array] = np.empty(0)  # of the steps of EM, with the log prior, in nats a row
    _number = 1  # of components, greatest
    _pseudo: ClassVar[Statistics | None] = None  # of each component a row, on average one of its class
    _decided: ClassVar[tuple[Statistics, MixtureParameters] | None] = None  # where EM has ended

    @property
    def families(self) -> list[Family]:
        return [self.component]

    def describe(self, **rows: Any) -> Self:
        self.component = copy(self.component).describe(**rows)
        return super().describe(**rows)

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        if isinstance(self.n_components, str) and self.n_components != "cv":
            raise refusal("n_components", 'be "cv" or a number of components', self.n_components)
        check_number("tol", self.tol, 0)
        for name in ("n_starts", "max_iter", *(["n_components"] if self.n_components != "cv" else [])):
            check_number(name, getattr(self, name), 1, integer=True)
        self._number = self._number if self.n_components == "cv" else int(self.n_components)

    def _lay_out(self, sizes: ArrayLike) -> None:
        """Number the pairs (y, k), by class, of so many components each."""
        self.sizes = np.asarray(sizes)
        self.classes_of = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.starts = np.cumsum(self.sizes) - self.sizes
        if hasattr(self, "classes_"):
            numbers = np.arange(len(self.classes_of)) - self.starts[self.classes_of]
            names = [f"{self.classes_[y]} (component {k})" for y, k in zip(self.classes_of, numbers)]
            self.component = copy(self.component).describe(classes_=np.array(names))

    def _by_class(self, log_pairs: Array) -> tuple[Array, Array]:
        """log Σ_k exp of the pairs, (…, r), and the shares of the pairs in it, equal where all are zero."""
        largest = np.maximum.reduceat(log_pairs, self.starts, axis=-1)
        largest[np.isneginf(largest)] = 0.0
        share = np.exp(log_pairs - largest[..., self.classes_of])
        total = np.add.reduceat(share, self.starts, axis=-1)
        empty = total == 0
        np.copyto(share, 1.0, where=empty[..., self.classes_of])
        share /= np.where(empty, self.sizes, total)[..., self.classes_of]
        with np.errstate(divide="ignore"):
            return np.log(total) + largest, share

    def _split(self, X: Any, parameters: MixtureParameters) -> tuple[Array, Array]:
        """log p(x, y), (n, r), and the responsibilities p(k | x, y), (n, pairs)."""
        return self._by_class(self.component.log_joint(X, parameters.components))

    def _expected(self, X: Any, weights: Array, shares: Array, *theta: Any) -> Statistics:
        """Statistics of rows of weights (n, r), with the ``shares`` of the pairs; complete rows need no θ."""
        take = self.component.expected_statistics if theta else self.component.statistics
        components = take(X, weights[:, self.classes_of] * shares, *theta)
        return Statistics(count=weights.sum(axis=0), components=components)

    def log_joint(self, X: Any, parameters: MixtureParameters) -> Array:
        """log p(x, y) = log Σ_k p(x, y, k)."""
        return self._split(X, parameters)[0]

    def statistics(self, X: Any, weights: Array) -> Statistics:
        """s(X, W) where nothing tells the components of a class apart: each has an equal share in its rows."""
        if self.sizes is None:
            self._lay_out(np.full(weights.shape[1], 1 if self.n_components == "cv" else self.n_components))
        return self._expected(X, weights, (1 / self.sizes)[self.classes_of])

    def expected_statistics(self, X: Any, weights: Array, parameters: MixtureParameters) -> Statistics:
        """Σ_i Σ_y W_iy Σ_k p(k | x_i, y) s(x_i, y, k), and of rows with gaps the expectation of that."""
        return self._expected(X, weights, self._split(X, parameters)[1], parameters.components)

    def weighted_statistics(self, X: Any, parameters: MixtureParameters, weigh: Weigh) -> Statistics:
        """Responsibilities and posteriors of one pass."""
        joint, shares = self._split(X, parameters)
        return self._expected(X, weigh(joint, slice(None)), shares, parameters.components)

    def parameters(self, statistics: Statistics) -> MixtureParameters:
        """θ of the components with their pseudo-rows, and p(k | y) from the weights of the pairs with theirs."""
        log_prior = self.class_log_prior(statistics.count)
        components = self.component.parameters(self.with_pseudo_rows(statistics).components)
        log_pairs = self.component.log_class_probabilities(components)
        log_pairs = log_pairs + (log_prior - self._by_class(log_pairs)[0])[self.classes_of]
        return MixtureParameters(log_prior, components._replace(log_prior=log_pairs))

    def with_pseudo_rows(self, statistics: Statistics) -> Statistics:
        """Statistics with those of the prior of the components."""
        return statistics if self._pseudo is None else statistics + self.prior_strength * self._pseudo

    @if_all_have
    def natural_parameters(self, parameters: MixtureParameters) -> Statistics:
        """η of the complete rows: that of the components."""
        components = self.component.natural_parameters(parameters.components)
        return Statistics(count=np.zeros_like(parameters.log_prior), components=components)

    @if_all_have
    def mean_parameters(self, parameters: MixtureParameters) -> Statistics:
        """μ of the complete rows."""
        components = self.component.mean_parameters(parameters.components)
        return Statistics(count=np.exp(parameters.log_prior), components=components)

    @if_all_have
    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + log Σ_k exp of that of the components."""
        components = self.component.class_log_partition(natural.components)
        return self._by_class(components)[0] + natural.count

    @if_all_have
    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """That of the components with their pseudo-rows."""
        smoothed = self.with_pseudo_rows(old)
        components = self.component.safe_update(smoothed.components, change.components)
        components = components - (smoothed - old).components
        return Statistics(count=np.add.reduceat(class_counts(components), self.starts), components=components)

    @if_all_have
    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        components = self.component.precondition(old.components, expected.components, change.components)
        return Statistics(count=change.count, components=components)

    @if_all_have
    def pooled_parameters(self, statistics: Statistics) -> tuple[MixtureParameters, float]:
        """Observed weights of classes and components, which are pooled ones of their family."""
        components, size = self.component.pooled_parameters(self.with_pseudo_rows(statistics).components)
        return MixtureParameters(self.class_log_prior(statistics.count), components), size

    @if_all_have
    def grand_parameters(self, statistics: Statistics) -> tuple[MixtureParameters, float]:
        """Equal weights of the classes, of the components of a class, and for all of them the grand one."""
        components, size = self.component.grand_parameters(self.with_pseudo_rows(statistics).components)
        log_prior = np.full(len(self.sizes), -np.log(len(self.sizes)))
        log_pairs = (log_prior - np.log(self.sizes))[self.classes_of]
        return MixtureParameters(log_prior, components._replace(log_prior=log_pairs)), size

    encode, encode_new = _that_of("component", "encode"), _that_of("component", "encode_new")
    representatives = _that_of("component", "representatives")
    log_base, unseen = _that_of("component", "log_base"), _that_of("component", "unseen")

    @property
    def has_prior(self) -> bool:
        """Of the classes, or of the components."""
        return bool(self.class_prior_strength) or self._pseudo is not None or self.component.has_prior

    def without_prior(self) -> Self:
        model = super().without_prior()
        model._pseudo, model.component = None, self.component.without_prior()
        return model

    def same_form(self, other: object) -> bool:
        """With as many components of the same form in each class."""
        alike = super().same_form(other) and np.array_equal(self.sizes, other.sizes)
        return alike and self.component.same_form(other.component)

    def check_complete(self, X: Any) -> None:
        message = "a mixture does not know the component of any row, which leaves calibration by safe steps"
        raise Unsupported(f"{message}: take RiskCalibration or RiskCalibrationCV")

    check_full = check_complete

    @if_all_have
    def expected_rows(self, X: Array, weights: Array, parameters: MixtureParameters) -> Any:
        """Σ_y W_iy Σ_k p(k | what there is of x_i, y) E[x_i | what there is, y, k]."""
        shares = weights[:, self.classes_of] * self._split(X, parameters)[1]
        return self.component.expected_rows(X, shares, parameters.components)

    @if_all_have
    def draw(self, parameters: MixtureParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        log_pairs = self.component.log_class_probabilities(parameters.components)
        shares, components = self._by_class(log_pairs)[1], np.empty(len(y), dtype=np.intp)
        for c, size in enumerate(self.sizes):
            pairs = np.arange(self.starts[c], self.starts[c] + size)
            components[y == c] = rng.choice(pairs, size=np.count_nonzero(y == c), p=shares[pairs])
        return self.component.draw(parameters.components, components, rng)

    @property
    def learns_structure(self) -> bool:  # type: ignore[override]
        """Whether the number of components is chosen, or the family learns a structure."""
        return self.n_components == "cv" or self.component.learns_structure

    def learn_structure(self, rows: Rows) -> None:
        """That of the component's family, the same for all; then the number of components, if it is to be chosen."""
        self.component.learn_structure(rows)
        if self.n_components == "cv":
            self._number = self._chosen(rows)

    def _chosen(self, rows: Rows) -> int:
        """The least number whose log-loss on rows left out is within an error of the best; BIC would rate p(x), too."""
        block = rows.only("n_components='cv'")
        if np.ndim(block.y) == 2 or (most := int(np.bincount(block.y).max())) < 2:
            return 1
        divisions = list(folds(min(FOLDS, most), block.X, block.y, np.ones(block.n, dtype=bool)))
        losses: list[Array] = []
        for k in range(1, MOST_COMPONENTS + 1):
            losses.append(np.concatenate([self._left_out(block, k, *fold) for fold in divisions]))
            if k > 1 and not losses[-1].mean() < losses[-2].mean():
                break
        with np.errstate(invalid="ignore"):  # infinite losses, of which no difference is within an error
            excess = np.array(losses) - min(losses, key=np.mean)
            near = excess.mean(axis=1) <= excess.std(axis=1) / np.sqrt(excess.shape[1])
        return 1 + int(near.argmax())

    def _left_out(self, block: Block, k: int, train: NDArray, held: NDArray) -> Array:
        """Log-losses of the rows ``held`` at the closed form of the others with k components, infinite if none."""
        family, held_out = deepcopy(self), block.part(held)
        try:
            best, _ = family._search(Blocks([encoded(family, block.part(train))]), k)
        except InvalidStatistics:
            return np.full(held_out.n, np.inf)
        return log_losses(family.log_joint(family.encode_new(held_out.X), best.parameters), held_out.y)

    def raw_statistics(self, rows: Rows) -> Statistics:
        return self.closed_form_statistics(rows.map(partial(encoded, copy(self))).kept())

    def fix_prior(self, statistics: Statistics, n_rows: int) -> MixtureParameters | None:
        """EM has decided on that of the components already."""
        return self._decided[1] if self._decided and statistics is self._decided[0] else None

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        """The statistics that EM leads to from the best of `n_starts` starts; one component is the family itself."""
        best, number = self._search(rows, self._number)
        if number < self._number:
            message = f"with {self._number} components EM lost one from each of {self.n_starts} starts"
            warn(f"{message}: there are {number}; set prior_strength > 0, or more n_starts", ConvergenceWarning)
        if not best.converged:
            message = f"EM still gained more than tol={self.tol:g} nats a row after {len(best.values)} steps"
            warn(f"{message}: raise max_iter, or tol", ConvergenceWarning)
        self.log_likelihoods, self._decided = np.array(best.values), (best.statistics, best.parameters)
        return best.statistics

    def _search(self, rows: Rows, most: int) -> tuple[Ascent, int]:
        """EM with as many components a class, at most ``most``, as some start keeps, and this number."""
        rng, counts = check_random_state(self.random_state), rows.sum(partial(rows_and_weight, len(self.classes_)))
        for number in range(most, 0, -1):
            if best := self._best_ascent(rows, counts, number, rng):
                return best, number
        raise InvalidStatistics("EM has found no valid components: set prior_strength > 0, or take n_components=1")

    def _best_ascent(self, rows: Rows, counts: Statistics, number: int, rng: np.random.RandomState) -> Ascent | None:
        """EM with at most a ``number`` of components a class; None where no start keeps all of them."""
        n_rows = int(counts.rows.sum())
        self._lay_out(np.clip(counts.rows // ROWS_PER_COMPONENT, 1, number).astype(np.intp))
        self._pseudo, alone = None, (self.sizes == 1).all()
        everywhere = rows if alone else rows.map(partial(_in_all, self))
        components = self.component.closed_form_statistics(everywhere)
        theta = self.component.fix_prior(components, n_rows)
        if alone:
            statistics = Statistics(count=counts.weight, components=components)
            return Ascent(statistics, self.parameters(statistics), [], True)
        theta = theta or self.component.parameters(components)
        self._pseudo = rows.sum(partial(_spread, self, theta, 1 / counts.weight))
        return best_ascent(self, rows, self._starting(rows, theta, counts.weight, rng))

    def _starting(self, rows: Rows, theta: Any, weight: Array, rng: np.random.RandomState) -> Iterator[Statistics]:
        """Statistics of which each component has half from its class and half from one row of it."""
        share = weight / (2 * self.sizes)
        half = rows.sum(partial(_spread, self, theta, share / weight))
        pools = first_rows(rows, len(self.sizes))
        for _ in range(self.n_starts):
            seeds = np.concatenate([pool[rng.permutation(len(pool))[: self.sizes[y]]] for y, pool in enumerate(pools)])
            start = half
            for number, block in enumerate(rows):
                here = np.flatnonzero(seeds[:, 0] == number)
                if len(here):
                    seed = block.part(seeds[here, 1])
                    of_pairs = (self.classes_of == seed.y[:, None]) & (np.arange(len(self.classes_of)) == here[:, None])
                    W = share * one_hot(seed.y, len(self.sizes))
                    start = start + self._expected(seed.X, W, of_pairs.astype(float), theta)
            yield start

    def log_prior_density(self, parameters: MixtureParameters) -> float:
        """That of the pseudo-rows, up to a constant, where the components are an exponential family."""
        if self._pseudo is None or not hasattr(self.component, "natural_parameters"):
            return 0.0
        return self.prior_strength * self._pseudo.dot(self.natural_parameters(parameters))

    def has_lost(self, statistics: Statistics) -> bool:
        """Whether a component has next to no rows, and no pseudo-rows."""
        return not self.prior_strength and bool((class_counts(statistics.components) < LOST).any())


def _in_all(mixture: MixtureFamily, block: Block) -> Block:
    """Rows that count in each component that they may belong to."""
    return block._replace(y=block.weights(len(mixture.sizes))[:, mixture.classes_of], weight=None)


def _spread(mixture: MixtureFamily, theta: Any, factor: Array, block: Block) -> Statistics:
    """Statistics of such rows, which count a ``factor`` of their class, at parameters θ of the components."""
    return mixture._expected(block.X, block.weights(len(factor)) * factor, np.ones(len(mixture.classes_of)), theta)


class Mixture(MixtureSettings, ClosedFormClassifier, family=MixtureFamily):
    """Hidden components: p(x, y) = Σ_k p(y, k) p(x | y, k), where p(x | y, k) is that of another model.

    Each class is a mixture of members of the family of ``model``, which may be a product, whose numbers and categories
    then depend on each other through the component. The closed form is what EM leads to. Calibration takes the update
    s(X, Y − P) with responsibilities: `RiskCalibration` ascends by safe steps, from the closed form, to a stationary
    point, which need not be the global optimum.

    Parameters
    ----------
    model : ClosedFormClassifier
        The model of a component, such as ``GaussianNB()``, ``QDA()`` or a `ProductModel`; its classes are the
        components. Missing values and text go where it takes them. It has no ``priors``.
    n_components : int or "cv", default="cv"
        Components a class; a class has no more than half its rows. "cv": of 1 to 4 the least whose log-loss in five
        folds is within one standard error of the best. One component is the model itself.
    n_starts : int, default=4
        Starts of EM, of which the most probable after ten steps goes on. Each component starts halfway between its
        class and one of its rows, which are drawn.
    max_iter : int, default=300
        Greatest number of steps of EM.
    tol : float, default=1e-5
        EM ends where a step gains no more of the log-likelihood, in nats a row.
    prior_strength : float, default=1.0
        Pseudo-rows m ≥ 0 of each component, which have the distribution of its class. 0 is maximum likelihood, which is
        unbounded where a component may shrink to a few rows; a start that ends so, or loses a component, is given up.
    class_prior_strength : float, default=0.0
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class.
    random_state : int or RandomState, optional
        Of the starts.
    priors, cost
        As in `QDA`.
    verbose : int, default=0
        1: print a line a second while a fit goes on, and at its ends; 2: one an iteration. The logger "rcpkg" gets
        the same, of the levels INFO and DEBUG.

    Attributes
    ----------
    classes_, class_log_prior_
        As in `QDA`.
    n_components_ : array of shape (r,)
        Components of each class.
    n_iter_ : int
        Steps of EM, or one where each class has one component.
    statistics_ : Statistics
        count (r,), and components, those of the family of ``model``, whose classes are all (y, k), by class.
    parameters_ : MixtureParameters
        log_prior (r,), and components, those of the family of ``model``, with the log prior log p(y, k).
    family_ : MixtureFamily
        Its ``log_likelihoods`` are those of the steps of EM, with the log density of the prior, in nats a row; they
        never fall, but where ``model`` has a prior of its own, whose density they leave out.

    Warns
    -----
    ConvergenceWarning
        Where EM has not converged, or there are fewer components than asked for.

    References
    ----------
    None of the sources. Mixture discriminant analysis: Hastie and Tibshirani (1996); the update with responsibilities
    is that of extended Baum-Welch (Gopalakrishnan et al., 1991).

    Examples
    --------
    >>> import numpy as np
    >>> from rcpkg import GaussianNB, Mixture
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 200)
    >>> X = rng.standard_normal((400, 2)) + 4 * np.where(y, rng.choice([-1, 1], 400), 0)[:, None]
    >>> [round(model.fit(X, y).score(X, y), 2) for model in (GaussianNB(), Mixture(GaussianNB(), random_state=0))]
    [0.97, 1.0]
    """

    model: ClosedFormClassifier = field(kw_only=False)
    verbose: int = 0

    fit = telling(ClosedFormClassifier.fit)

    @property
    def n_components_(self) -> NDArray[np.intp]:
        """Numbers of components of the classes."""
        return self.family_.sizes

    @property
    def n_iter_(self) -> int:
        """Steps of EM, or one where each class has one component."""
        return max(1, len(self.family_.log_likelihoods))

    def _new_family(self) -> MixtureFamily:
        """Mixtures of the family of ``model``."""
        return MixtureFamily(component=getattr(self, "model_", self.model)._new_family(), **self._settings())

    def _description(self) -> dict[str, Any]:
        return self.model_._description() | super()._description()

    def _prepare(self, X: Array) -> None:
        self.model_ = copy(self.model_)
        vars(self.model_).update(ClosedFormClassifier._description(self))
        self.model_._prepare(X)
        self.family_ = MixtureFamily(component=self.model_.family_, **self._settings()).describe(**self._description())
        self.family_.prepare(X)

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        if reset:
            self._take_model()
        checked = self.model_._check_rows(X, y, reset)
        self._take_columns()
        return checked

    def _take_model(self) -> None:
        if not isinstance(self.model, ClosedFormClassifier) or isinstance(self.model, Mixture):
            raise ValueError(f"model must be a closed form of rcpkg, such as QDA(), and no Mixture; got {self.model!r}")
        if getattr(self.model, "priors", None) is not None:
            raise ValueError("model must have no priors, since its classes are components: give them to the Mixture")
        self.model_ = clone(self.model)

    def _take_columns(self) -> None:
        vars(self).pop("feature_names_in_", None)
        vars(self).update({name: value for name, value in vars(self.model_).items() if name in COLUMNS})

    def _set_columns(self, summaries: list[BlockSummary]) -> None:
        self._take_model()
        self.model_._set_columns(summaries)
        self._take_columns()

    _check_X, _all_representatives = _that_of("model_", "_check_X"), _that_of("model_", "_all_representatives")

    def _with_family(self, family: MixtureFamily, statistics: Statistics, parameters: Any = None) -> Self:
        """With the settings of the components, too."""
        model = super()._with_family(family, statistics, parameters)
        model.model_ = self.model_._with_family(family.component, statistics.components, model.parameters_.components)
        model.model = clone(model.model_)
        return model

    @property
    def partial_fit(self) -> Any:
        """Missing: EM goes through all rows many times."""
        raise AttributeError("Mixture has no partial_fit, since EM goes through all rows many times: fit takes Rows")

    def __sklearn_tags__(self):
        return getattr(self.model, "__sklearn_tags__", super().__sklearn_tags__)()
