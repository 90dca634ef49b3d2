"""The models of the book on two small data sets, and what the checks of chapters 5 and 6 do with their statistics.

The sets have the same three classes. In ``codes``, categories, features depend on each other; ``rows`` are
continuous, with heavy tails. Naive Bayes is wrong about the first and normal distributions about the second; classes
overlap in both. ``noisy`` are the continuous features that ``codes`` has bins of. The multinomial model has counts of
its own, drawn from it: ``documents``.
"""

from collections.abc import Callable

import numpy as np

from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    ClosedFormClassifier,
    GaussianNB,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    SharedVarianceGaussianNB,
    Statistics,
)
from rcpkg.base import Array

__all__ = [
    "Y",
    "calibrated",
    "codes",
    "derivative",
    "documents",
    "entries",
    "every_x",
    "families",
    "gradient_of",
    "log_likelihood",
    "n",
    "nb",
    "noisy",
    "posterior_curvature",
    "random_like",
    "row_statistics",
    "rows",
    "softmax_rows",
    "y",
]

n = 240
y = np.arange(n) % 3
Y = np.eye(3)[y]

_drawn = np.random.default_rng(5)
_hidden = _drawn.normal(size=(n, 1)) + 0.7 * (y[:, None] - 1)
noisy = _hidden + 0.8 * _drawn.normal(size=(n, 3))
codes = np.column_stack([np.digitize(noisy[:, j], np.linspace(-1, 1, k)) for j, k in enumerate((1, 2, 3))])
codes = codes.astype(float)
every_x = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(4)], float)  # codes has no others
rows = _drawn.standard_t(4, size=(n, 2)) * (1 + 0.4 * y[:, None]) + 0.8 * y[:, None]
_drawn = np.random.default_rng(4)
documents = np.array([_drawn.multinomial(6, (1 + (np.arange(4) == c)) / 5) for c in y], float)

families: dict[str, tuple[ClosedFormClassifier, Array]] = {
    "CategoricalNB": (CategoricalNB(), codes),
    "QDA": (QDA(), rows),
    "LDA": (LDA(), rows),
    "GaussianNB": (GaussianNB(), rows),
    "SharedVarianceGaussianNB": (SharedVarianceGaussianNB(), rows),
    "BernoulliNB": (BernoulliNB(), codes),  # whether the code exceeds zero
    "MultinomialNB": (MultinomialNB(), documents),  # rows of one length
    "ProductModel": (
        ProductModel([("code", CategoricalNB(), [0, 1]), ("size", QDA(), [2, 3])]),
        np.hstack([codes[:, :2], rows]),
    ),
}
for _model, _X in families.values():
    _model.fit(_X, y)
nb = families["CategoricalNB"][0]


def softmax_rows(scores: Array) -> Array:
    """Posteriors (n, r) of scores (n, r)."""
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def log_likelihood(model: ClosedFormClassifier, X: Array, theta: object, Y: Array = Y) -> float:
    """Conditional log-likelihood of labels Y (n, r), one-hot, under the model with parameters theta."""
    joint = model.log_joint(X, theta)
    return float(np.sum((joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))[Y > 0]))


def gradient_of(
    model: ClosedFormClassifier, X: Array, statistics: Statistics, Y: Array = Y
) -> tuple[tuple, Statistics]:
    """The parameters that statistics lead to, and s(X, Y - P), the gradient of CLL, at them."""
    theta = model.parameters(statistics)
    return theta, model.statistics(X, Y - softmax_rows(model.log_joint(X, theta)))


def calibrated(model: ClosedFormClassifier, lr: float, steps: int, X: Array, y: Array = y) -> ClosedFormClassifier:
    """The model after so many updates of RC with a fixed rate."""
    settings = {"learning_rate": lr, "max_iter": steps, "stopping": "none", "on_invalid": "raise"}
    return RiskCalibration.as_published(model, **settings).fit(X, y).estimator_


def row_statistics(model: ClosedFormClassifier, X: Array, r: int = 3) -> Array:
    """s(x_i, y) as vectors, shape (n, r, K)."""
    one, (distinct, of_row) = np.eye(r), np.unique(X, axis=0, return_inverse=True)
    found = np.array([[model.statistics(x[None], one[[c]]).ravel() for c in range(r)] for x in distinct])
    return found[of_row.ravel()]  # numpy 2.0.0 gives a column


def posterior_curvature(S: Array, P: Array) -> Array:
    """Sum over the rows of Cov s(x_i, y) under the posteriors P (n, r), for statistics S (n, r, K)."""
    mean = np.einsum("iy,iyk->ik", P, S)
    return np.einsum("iy,iyk,iyl->kl", P, S, S, optimize=True) - mean.T @ mean


def random_like(statistics: Statistics, rng: np.random.Generator, scale: float = 1.0) -> Statistics:
    """A random direction with the structure (and symmetry) of statistics."""

    def draw(part: Array | Statistics) -> Array | Statistics:
        if isinstance(part, Statistics):  # of a block
            return random_like(part, rng, scale)
        v = scale * rng.normal(size=part.shape)
        square = part.ndim >= 2 and part.shape[-1] == part.shape[-2]
        symmetric = square and np.allclose(part, np.swapaxes(part, -1, -2))
        return (v + np.swapaxes(v, -1, -2)) / 2 if symmetric else v

    return Statistics(**{name: draw(part) for name, part in vars(statistics).items()})


def entries(model: ClosedFormClassifier, X: Array) -> list[Statistics]:
    """A direction of η for each entry of the statistics, symmetric in its matrices and so long that the entry has the
    mean square one over rows and classes."""

    def symmetric(part: Array | Statistics, like: Array | Statistics) -> Array | Statistics:
        if isinstance(part, Statistics):  # of a block
            return part.map(symmetric, like)
        square = part.ndim >= 2 and part.shape[-1] == part.shape[-2]
        if square and np.allclose(like, np.swapaxes(like, -1, -2)):
            return (part + np.swapaxes(part, -1, -2)) / 2
        return part

    eta, S = model.family_.natural_parameters(model.parameters_), row_statistics(model, X)
    squares = np.mean(S**2, axis=(0, 1))
    lengths = 1 / np.sqrt(squares + (squares == 0))
    return [eta.unravel(e).map(symmetric, eta) for e in np.diag(lengths)]


def derivative(f: Callable, at: Statistics, v: Statistics, t: float = 1e-4):
    """Of f at ``at`` along v, but for terms of fourth order in t."""
    near, far = (f(at + k * t * v) - f(at - k * t * v) for k in (1, 2))
    return (8 * near - far) / (12 * t)
