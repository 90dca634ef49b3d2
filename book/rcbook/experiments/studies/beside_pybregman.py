"""Compare rcpkg with pyBregMan on what both compute: values, and time per pair (chapter 2).

pyBregMan 0.1.1 asks for numpy < 2 but runs with the numpy of this project, so that both sides share it here. It is
no dependency of the book, which reads what this study has stored::

    python -m venv compare && compare/bin/pip install pybregman==0.1.1 scipy scikit-learn pandas joblib tqdm pooch
    compare/bin/pip install --no-deps numpy==2.4.6
    PYTHONPATH=.:book compare/bin/python -m rcbook run study:beside-pybregman
"""

import timeit
from importlib.metadata import version
from statistics import median

import numpy as np
from scipy.special import rel_entr

from rcbook.experiments.cells import Cell, Row, Study
from rcpkg.bregman import divergences, gaussian_kl

PAIRS = 1000


def seconds(statement, number: int) -> float:
    """Median time of one call over 7 repetitions of ``number`` calls."""
    return median(timeit.repeat(statement, number=number, repeat=7)) / number


def categorical(rng, size):
    """Relative entropy of two distributions over ``size`` categories.

    Their ``kl_divergence(a, b)`` is the divergence of natural parameters, KL(b | a): we hand over the pair reversed.
    """
    from bregman.application.distribution.exponential_family.categorical import CategoricalManifold
    from bregman.base import LAMBDA_COORDS, Point

    p, q = rng.dirichlet(np.ones(size), size=(2, PAIRS))
    manifold = CategoricalManifold(k=size)
    points = [Point(LAMBDA_COORDS, a[0]) for a in (p, q)]
    d = divergences["kl"]
    reference = float(rel_entr(p[0], q[0]).sum())
    return reference, d, (p, q), lambda: manifold.kl_divergence(*reversed(points))


def gaussian(rng, size):
    """Relative entropy of two Gaussians in ``size`` dimensions."""
    from bregman.application.distribution.exponential_family.gaussian import GaussianManifold
    from bregman.base import LAMBDA_COORDS, Point

    means = rng.normal(size=(2, PAIRS, size))
    roots = rng.normal(size=(2, PAIRS, size, 2 * size))
    covs = roots @ roots.swapaxes(-1, -2) / size
    manifold = GaussianManifold(size)
    points = [Point(LAMBDA_COORDS, np.concatenate([m[0], c[0].ravel()])) for m, c in zip(means, covs)]
    ratio = np.linalg.inv(covs[1, 0]) @ covs[0, 0]
    gap = means[1, 0] - means[0, 0]
    reference = np.trace(ratio) - size - np.linalg.slogdet(ratio)[1] + gap @ np.linalg.inv(covs[1, 0]) @ gap
    arguments = (means[0], covs[0], means[1], covs[1])
    return float(reference / 2), gaussian_kl, arguments, lambda: manifold.kl_divergence(*reversed(points))


def log_det(rng, size, diagonal):
    """Log-determinant divergence of two positive definite matrices."""
    from bregman.application.psd import PSDManifold
    from bregman.base import THETA_COORDS, DualCoords, Point
    from bregman.dissimilarity.bregman import BregmanDivergence as TheirDivergence

    roots = rng.normal(size=(2, PAIRS, size, 2 * size))
    x, y = roots @ roots.swapaxes(-1, -2) / size
    if diagonal:
        x, y = x * np.eye(size), y * np.eye(size)
    manifold = PSDManifold(size)
    triangle = np.triu_indices(size)
    points = [Point(THETA_COORDS, a[0][triangle]) for a in (x, y)]
    theirs = TheirDivergence(manifold, DualCoords.THETA)
    ratio = np.linalg.inv(y[0]) @ x[0]
    reference = float(np.trace(ratio) - size - np.linalg.slogdet(ratio)[1])
    return reference, divergences["log_det"], (x, y), lambda: theirs(*points)


CASES = {
    "relative entropy, 10 categories": lambda rng: categorical(rng, 10),
    "relative entropy, Gaussians in 3 dimensions": lambda rng: gaussian(rng, 3),
    "log det, diagonal 2 x 2": lambda rng: log_det(rng, 2, diagonal=True),
    "log det, full 2 x 2": lambda rng: log_det(rng, 2, diagonal=False),
}


def measure(cell: Cell, seed: int) -> list[Row]:
    """All quantities, of one stream of random numbers: values, the direct formula, and microseconds a pair."""
    rng, rows = np.random.default_rng(0), []
    for quantity, case in CASES.items():
        reference, ours, arguments, theirs = case(rng)
        first = tuple(a[0] for a in arguments)
        rows.append(
            {
                "quantity": quantity,
                "direct_formula": reference,
                "rcpkg": float(ours(*first)),
                "pybregman": float(theirs()),
                "rcpkg_us": 1e6 * seconds(lambda: ours(*first), 200),  # noqa: B023 (called at once)
                "rcpkg_batch_us": 1e6 * seconds(lambda: ours(*arguments), 3) / PAIRS,  # noqa: B023 (called at once)
                "pybregman_us": 1e6 * seconds(theirs, 200),
                "pybregman_version": version("pybregman"),
            }
        )
    return rows


Study("beside-pybregman", rows=("all",), protocol=measure, metered=("rcpkg_us", "rcpkg_batch_us", "pybregman_us"))
