"""Threads of BLAS: one in fits to small tables, and as many as before afterwards."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from rcpkg import GaussianNB, RiskCalibrationCV, base


def of_blas():
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class Watching(GaussianNB):
    """Notes the threads of BLAS whenever statistics are taken."""

    def statistics(self, X, weights):
        seen.append(set(of_blas().values()))
        return super().statistics(X, weights)


seen: list = []


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_fits_to_small_tables_take_one_thread_of_blas(small, fails, monkeypatch):
    if not small:
        monkeypatch.setattr(base, "SMALL", 10)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    seen.clear()
    with threadpool_limits(2, user_api="blas"):
        before = of_blas()
        model = RiskCalibrationCV(Watching(), target="unknown" if fails else "pooled")
        if fails:
            with pytest.raises(ValueError, match="target"):
                model.fit(X, y)
        else:
            model.fit(X, y)
            assert seen and set().union(*seen) == ({1} if small else set(before.values()))
        assert of_blas() == before
