"""Compare rcpkg with pyBregMan on what both compute: values, and time per pair.

pyBregMan 0.1.1 asks for numpy < 2 but runs with the numpy of this project, so that both sides share it here. It is
no dependency of the book, which reads the table that this script writes::

    python -m venv compare && compare/bin/pip install pybregman==0.1.1 scipy scikit-learn pandas
    compare/bin/pip install --no-deps numpy==2.4.6
    PYTHONPATH=. compare/bin/python tests/benchmarks/compare_pybregman.py data/results/pybregman_comparison.csv
"""

import sys
import timeit
from importlib.metadata import version
from statistics import median

import numpy as np
import pandas as pd
from bregman.application.distribution.exponential_family.categorical import CategoricalManifold
from bregman.application.distribution.exponential_family.gaussian import GaussianManifold
from bregman.application.psd import PSDManifold
from bregman.base import LAMBDA_COORDS, THETA_COORDS, DualCoords, Point
from bregman.dissimilarity.bregman import BregmanDivergence as TheirDivergence
from scipy.special import rel_entr

from rcpkg.bregman import divergences, gaussian_kl

PAIRS = 1000


def seconds(statement, number: int) -> float:
    """Median time of one call over 7 repetitions of ``number`` calls."""
    return median(timeit.repeat(statement, number=number, repeat=7)) / number


def categorical(rng, size):
    """Relative entropy of two distributions over ``size`` categories.

    Their ``kl_divergence(a, b)`` is the divergence of natural parameters, KL(b | a): we hand over the pair reversed.
    """
    p, q = rng.dirichlet(np.ones(size), size=(2, PAIRS))
    manifold = CategoricalManifold(k=size)
    points = [Point(LAMBDA_COORDS, a[0]) for a in (p, q)]
    d = divergences["kl"]
    reference = float(rel_entr(p[0], q[0]).sum())
    return reference, d, (p, q), lambda: manifold.kl_divergence(*reversed(points))


def gaussian(rng, size):
    """Relative entropy of two Gaussians in ``size`` dimensions."""
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


def main(path: str) -> None:
    """Write one row a quantity: the two values, the direct formula, and times per pair in microseconds."""
    rng = np.random.default_rng(0)
    cases = {
        "relative entropy, 10 categories": categorical(rng, 10),
        "relative entropy, Gaussians in 3 dimensions": gaussian(rng, 3),
        "log det, diagonal 2 x 2": log_det(rng, 2, diagonal=True),
        "log det, full 2 x 2": log_det(rng, 2, diagonal=False),
    }
    rows = []
    for quantity, (reference, ours, arguments, theirs) in cases.items():
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
                "versions": ", ".join(f"{p} {version(p)}" for p in ("pybregman", "numpy", "scipy")),
            }
        )
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.10g")


if __name__ == "__main__":
    main(sys.argv[1])
