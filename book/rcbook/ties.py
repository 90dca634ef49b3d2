"""Equally good models as in thesis2007: BDA7 and its rivals take one at random, local classifiers the smallest size.

The classifiers of the library take the model of least log-loss then, so that the same data give the same model.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

import rcpkg
from rcbook.bounded_leave_one_out import grid_loo_errors
from rcpkg.base import constructed
from rcpkg.choice import ERROR_ROUNDING, Choice, least, wrong_predictions
from rcpkg.gaussians import Sample
from rcpkg.gaussians.bayesian import PredictiveGrid
from rcpkg.gaussians.classifier import Grid, blocks
from rcpkg.linalg import Array
from rcpkg.local.base import LocalClassifier

Local = TypeVar("Local", bound=LocalClassifier)


def smallest_size(model: Local) -> Local:
    """A local classifier that chose its number of neighbours, now with the smallest of the sizes of least error."""
    fewest = model.cv_errors_ <= model.cv_errors_.min() * (1 + 1e-9) + ERROR_ROUNDING
    model.n_neighbors_ = int(model.grid_[np.argmax(fewest)])
    return model


class RandomTies:
    """Mixin of the classifiers that choose one of a grid of models: by the 0-1 errors of leave-one-out alone.

    Of several models with the fewest errors each is as likely; ``cv``, ``scoring`` and ``cost`` keep their defaults.
    A subclass has the parameter ``random_state``.
    """

    def _cross_validated(
        self, grid: Grid, sample: Sample, present: NDArray[np.bool_], groups: ArrayLike | None, block: int
    ) -> tuple[Array, None, Array | None]:
        errors = []
        for rows in blocks(np.arange(len(sample.y)), block):
            prior = self._prior_left_out(sample, rows)
            if isinstance(grid, PredictiveGrid) and sample.weights is None:
                errors.append(grid_loo_errors(sample, prior, grid.dofs, grid.seeds, rows).wrong)
            else:
                errors.append(wrong_predictions(grid.left_out(sample, rows) + prior, sample.y[rows]))
        return np.concatenate(errors, axis=-1), None, sample.weights

    def _choose(self, errors: Array, losses: None, weights: Array | None, exists: NDArray[np.bool_]) -> Choice:
        error = np.average(errors, axis=-1, weights=weights)
        places = np.argwhere(least(error, exists, ERROR_ROUNDING * errors.max()))
        place = places[check_random_state(self.random_state).randint(len(places))]
        return Choice(tuple(int(i) for i in place), error, None)


@constructed
class BDA7(RandomTies, rcpkg.BDA7):
    """`rcpkg.BDA7` with ties broken at random."""

    random_state: int | None = None


@constructed
class QuadraticBayes(RandomTies, rcpkg.QuadraticBayes):
    """`rcpkg.QuadraticBayes` with ties broken at random."""

    random_state: int | None = None


@constructed
class RDA(RandomTies, rcpkg.RDA):
    """`rcpkg.RDA` with ties broken at random."""

    random_state: int | None = None


@constructed
class EDDA(RandomTies, rcpkg.EDDA):
    """`rcpkg.EDDA` with ties broken at random."""

    random_state: int | None = None
