"""Threads of BLAS: one in fits to small tables, and as many as before afterwards."""

import contextlib
import sys
import threading
import time
import types

import numpy as np
import pytest
from model_cases import refused
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from rcpkg import GaussianNB, RiskCalibrationCV, base


def of_blas():
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class WatchingFamily(type(GaussianNB()._new_family())):
    """Notes the threads of BLAS whenever statistics are taken."""

    def statistics(self, X, weights):
        seen.append(set(of_blas().values()))
        return super().statistics(X, weights)


class Watching(GaussianNB, family=WatchingFamily):
    """Its classifier."""


seen: list = []


class Threads:
    """The number of threads of a process, in the place of the libraries."""

    number = 4

    @contextlib.contextmanager
    def limit(self, limits, user_api):
        before, self.number = self.number, limits or self.number
        try:
            yield
        finally:
            self.number = before


def test_fits_that_overlap_leave_blas_as_it_was(monkeypatch):
    """The second fit begins while the first one runs, and ends after it."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    begun, ended, threads = threading.Event(), threading.Event(), Threads()
    monkeypatch.setattr(base, "_libraries", lambda *modules: threads)
    seen.clear()

    class MeetingFamily(type(GaussianNB()._new_family())):
        def statistics(self, X, weights):
            if threading.current_thread().name == "first":
                begun.wait(20)
                seen.append(threads.number)
            else:
                begun.set()
                ended.wait(20)
            return super().statistics(X, weights)

    class Meeting(GaussianNB, family=MeetingFamily):
        """Its classifier."""

    first, second = (threading.Thread(target=Meeting().fit, args=(X, y), name=name) for name in ("first", "second"))
    first.start()
    while threads.number != 1:
        time.sleep(0.001)
    second.start()
    first.join()
    ended.set()
    second.join()
    assert seen[0] == 1 and threads.number == 4
    Meeting().fit(X, y)
    assert threads.number == 4


def test_libraries_that_are_loaded_later_are_found(monkeypatch):
    """A library of BLAS that a module brings after the first fit is limited, too."""
    GaussianNB().fit([[0.0], [1.0], [0.5], [2.0]], [0, 1, 0, 1])
    asked = []
    monkeypatch.setattr(base, "ThreadpoolController", lambda: asked.append(1) or ThreadpoolController())
    monkeypatch.setitem(sys.modules, "a_module_that_brings_blas", types.ModuleType("a_module_that_brings_blas"))
    X = np.array([[0.0], [1.0], [0.5], [2.0]])
    GaussianNB().fit(X, [0, 1, 0, 1])
    GaussianNB().fit(X, [0, 1, 0, 1])
    assert asked == [1]


@pytest.mark.parametrize("small, fails", [(True, False), (False, True)])
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
            refused("target", model.fit, X, y)
        else:
            model.fit(X, y)
            assert seen and set().union(*seen) == ({1} if small else set(before.values()))
        assert of_blas() == before
