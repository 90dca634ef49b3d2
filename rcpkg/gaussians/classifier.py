"""What the classifiers of counts, means and scatter matrices share: their training rows, and the choice from a grid."""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from rcpkg.base import GenerativeClassifier, InvalidStatistics, SquareableRows, constructed, one_thread_if_small
from rcpkg.checks import check_choice, check_cost, counting, feature_name, warn
from rcpkg.choice import (
    Choice,
    choose,
    decision_losses,
    folds,
    log_class_prior,
    log_class_prior_loo,
    log_losses,
    refuse_groups,
)
from rcpkg.gaps import GappyRows
from rcpkg.gaussians.predictive import Gaussians, StudentTs
from rcpkg.gaussians.scatter import ClassStatistics, Sample
from rcpkg.linalg import AT_A_TIME, Array, slices
from rcpkg.rows import Rows, in_memory


class MomentClassifier(SquareableRows, GenerativeClassifier):
    """A classifier by one density a class, made of the classes' counts, means and scatter matrices, which take weights.

    A subclass has ``covariances_``, or other densities with marginals than Gaussians.
    """

    def _densities(self) -> Gaussians | StudentTs:
        return Gaussians(self.statistics_.means, self.covariances_)

    def _joint_log_proba(self, X: Array) -> Array:
        return self._densities().log_density(X) + self.class_log_prior_

    def expected_rows(self, X: Array, weights: Array) -> Array:
        """Σ_y W_iy E[x_i | what is there of x_i, y], shape (n, d), for weights W that sum to one in each row: by the
        regressions μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o), with D in place of Σ for t densities; of a row without any value the
        centres, as the mean of a t density does not exist for a − d + 1 ≤ 1."""
        densities = self._densities()
        return GappyRows(X).expected(weights, densities.means, densities.scales)

    def _sample(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Sample:
        """The training rows of positive weight; sets ``classes_``."""
        X, y, weight, _ = self._counting_rows(X, y, sample_weight)
        weighted = weight is not None and not (weight == 1).all()
        sample = Sample(X, y, len(self.classes_), weight if weighted else None)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(sample.statistics.pooled).all()
        if not finite:
            raise ValueError("X or sample_weight hold numbers so large that scatter matrices overflow: rescale them")
        return sample


class Grid:
    """A grid of models in closed form. Arrays have the grid's axes first; -inf where a class has no density.

    >>> class Means(Grid):  # of one model: classes are points
    ...     def class_densities(self, statistics, sizes, X):
    ...         return -((X[..., None, :] - statistics.means[..., None, :, :]) ** 2).sum(axis=-1)[None]
    >>> sample = Sample(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), 2)
    >>> Means().log_density(sample, sample.X).argmax(axis=2), Means().left_out(sample, np.array([1])).argmax(axis=2)
    (array([[0, 0, 1]]), array([[0]]))
    """

    def class_densities(self, statistics: ClassStatistics, sizes: Array, X: Array) -> Array:
        """Log densities (..., n, r) of rows X (..., n, d) under each model and class, for a batch (...) of statistics.

        ``sizes`` (..., r) are the different rows of each class, whatever their weights.
        """
        raise NotImplementedError

    def log_density(self, sample: Sample, X: Array) -> Array:
        """Log densities (..., n, r) of the rows X under each model and class, fitted to a sample."""
        return self.class_densities(sample.statistics, sample.class_sizes, X)

    def left_out(self, sample: Sample, rows: NDArray[np.intp]) -> Array:
        """Log densities (..., n, r) of each of n ``rows`` of a sample, fitted without it."""
        r, d = sample.n_classes, sample.X.shape[1]
        parts = []
        for without in blocks(rows, max(1, AT_A_TIME // (r * d * d))):
            # a row that counts several times leaves once, and its class keeps as many different rows
            leaves = np.ones(len(without)) if sample.weights is None else sample.weights[without] <= 1
            sizes = sample.class_sizes - leaves[:, None] * np.eye(r)[sample.y[without]]
            parts.append(self.class_densities(sample.without_each(without), sizes, sample.X[without, None])[..., 0, :])
        return np.concatenate(parts, axis=-2)


@constructed
class GridClassifier(MomentClassifier):
    """A classifier that picks one of a grid of closed-form models by cross-validation.

    A subclass has the parameters below, makes its `Grid` in ``_grid(d)``, which checks its other parameters, and takes
    the chosen model over in ``_adopt(grid, place, sample)``.
    """

    cv: int | str | BaseCrossValidator = "loo"
    scoring: Literal["error", "log_loss"] = "error"
    cost: ArrayLike | None = None

    statistics_: ClassVar[ClassStatistics]
    cv_errors_: ClassVar[Array]
    cv_log_loss_: ClassVar[Array]
    class_prior = "laplace"

    def _grid(self, d: int) -> Grid:
        raise NotImplementedError

    def _adopt(self, grid: Grid, place: tuple[int, ...], sample: Sample) -> None:
        raise NotImplementedError

    @in_memory
    @one_thread_if_small
    def fit(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the model by cross-validation, and fit it to all rows.

        Rows count ``sample_weight`` times; leave-one-out leaves out one of them, or all of less than one. A splitter
        ``cv`` that keeps ``groups`` of rows together, such as GroupKFold, takes their labels, one a row.
        """
        sample, present = self._sample(X, y, sample_weight), counting(sample_weight, _num_samples(X))
        grid = self._grid(sample.X.shape[1])
        check_choice("scoring", self.scoring, ("error", "log_loss"))
        one = grid.log_density(sample, sample.X[:1])
        exists = np.isfinite(one).all(axis=(-2, -1))
        if not exists.any():
            raise InvalidStatistics(
                "no model of the grid gives every class a density: too few rows, or features constant within classes: "
                "drop these, or take GaussianNB"
            )
        if not exists.all():
            self._warn_of_constants(sample, np.mean(exists))
        block = max(1, AT_A_TIME // one.size)
        errors, losses, weights = self._cross_validated(grid, sample, present, groups, block)
        place, self.cv_errors_, self.cv_log_loss_ = self._choose(errors, losses, weights, exists)
        self.statistics_ = sample.statistics
        self.class_log_prior_ = log_class_prior(sample.statistics.counts, self.class_prior, self)
        self._adopt(grid, place, sample)
        return self

    def _warn_of_constants(self, sample: Sample, share: float) -> None:
        """Name a feature that is constant in all rows, or within each class, and leaves that share of the models."""
        firsts = sample.X[np.unique(sample.y, return_index=True)[1]]
        for what, values in (
            ("in all rows", sample.X[0]),
            ("within each class, and not the same in all", firsts[sample.y]),
        ):
            constant = np.flatnonzero((values == sample.X).all(axis=0))
            if constant.size:
                name = feature_name(self, constant[0])
                warn(f"{name} is constant {what}, which leaves {share:.0%} of the models: drop it")
                return

    def _cross_validated(
        self, grid: Grid, sample: Sample, present: NDArray[np.bool_], groups: ArrayLike | None, block: int
    ) -> tuple[Array, Array | None, Array | None]:
        """Errors or costs, and log-losses, (..., n) of each model on each held-out row; and the weights of these
        rows."""
        cost = check_cost(self.cost, self.classes_)
        rows, errors, losses = [], [], []
        for test, scores in self._held_out(grid, sample, present, groups, block):
            rows.append(test)
            errors.append(decision_losses(scores, sample.y[test], cost))
            losses.append(log_losses(scores, sample.y[test]))
        weights = None if sample.weights is None else sample.weights[np.concatenate(rows)]
        return np.concatenate(errors, axis=-1), np.concatenate(losses, axis=-1), weights

    def _choose(self, errors: Array, losses: Array | None, weights: Array | None, exists: NDArray[np.bool_]) -> Choice:
        return choose(errors, losses, weights=weights, among=exists, scoring=self.scoring)

    def _held_out(
        self, grid: Grid, sample: Sample, present: NDArray[np.bool_], groups: ArrayLike | None, block: int
    ) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """Held-out rows, in blocks, and their scores log p(x, y) by every model fitted without them, (..., rows, r)."""
        if isinstance(self.cv, str) and self.cv == "loo":
            refuse_groups(groups)
            for rows in blocks(np.arange(len(sample.y)), block):
                yield rows, grid.left_out(sample, rows) + self._prior_left_out(sample, rows)
            return
        for train, test in folds(self.cv, sample.X, sample.y, present, groups):
            part = sample.take(train)
            prior = log_class_prior(part.statistics.counts, self.class_prior, self)
            for rows in blocks(test, block):
                yield rows, grid.log_density(part, sample.X[rows]) + prior

    def _prior_left_out(self, sample: Sample, rows: Array) -> Array:
        return log_class_prior_loo(sample.y, sample.n_classes, self.class_prior, sample.weights, rows, self)


def blocks(rows: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    return [rows[part] for part in slices(len(rows), size)]
