"""One iteration of risk-based calibration against one scikit-learn fit and prediction, and its growth with the sizes.

An iteration is what the loop does, as the study `price_of_speed` measures and stores it: here it is seen at once. Times
are processor times on one BLAS thread; the sides of a ratio take turns, and their medians are compared.
Run by ``make bench``.
"""

import numpy as np
import pytest
from rcbook.experiments.studies.price_of_speed import ITERATIONS, beside_sklearn, gaussian_rows, iteration, medians

from rcpkg import QDA
from rcpkg.local import density

LIMITS = (0.65, 0.7, 0.35, 0.25, 0.25)  # no looser than the bars of the study, so that they warn before it does


@pytest.mark.parametrize("case, limit", [*zip(ITERATIONS, LIMITS, strict=True)])
def test_iteration(case, limit):
    ours, theirs = beside_sklearn(*case)
    print(f"\n{case}: {1e3 * ours:.1f} ms, {ours / theirs:.2f} of scikit-learn")
    assert ours / theirs <= limit


@pytest.mark.parametrize("other, power", [((40000, 16, 8), 1), ((5000, 64, 8), 2), ((5000, 16, 64), 1)])
def test_growth(other, power):
    """Linear in n; at most quadratic in d, and linear in r, but for the overhead of small arrays."""
    first = (5000, 16, 8)
    small, large = medians(*(iteration(QDA(), *gaussian_rows(*shape)) for shape in (first, other)))
    print(f"\nQDA {first}: {1e3 * small:.1f} ms, {other}: {1e3 * large:.1f} ms")
    assert large / small <= 1.5 * (np.prod(other) / np.prod(first)) ** power


def test_a_growing_factor_of_local_bda_is_twice_as_fast_where_features_are_few(monkeypatch):
    Z = np.random.default_rng(0).standard_normal((500, 100, 2))

    def by_one_factor():
        with monkeypatch.context() as patch:
            patch.setattr(density, "UPDATED_NEIGHBOURS", np.inf)
            density.local_bda_log_density(Z)

    ours, theirs = medians(lambda: density.local_bda_log_density(Z), by_one_factor)
    print(f"\nlocal BDA, 100 neighbours of 2 features: {1e3 * ours:.1f} ms, {ours / theirs:.2f} of one K×K factor")
    assert ours / theirs <= 0.5
