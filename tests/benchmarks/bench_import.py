"""Importing rcpkg against importing scikit-learn's naive Bayes, in fresh processes that take turns."""

import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.benchmark(group="import")
ROUNDS = 5
MOST = 1.5  # times the processor time of what it rests on


def seconds_of_import(module: str) -> float:
    """Processor time of an import in a fresh process."""
    code = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_import_takes_little_longer_than_what_it_rests_on(benchmark):
    pairs = benchmark.pedantic(
        lambda: [[seconds_of_import(module) for module in ("rcpkg", "sklearn.naive_bayes")] for _ in range(ROUNDS)]
    )
    ratio = np.divide(*np.median(pairs, axis=0))
    print(f"import rcpkg: {ratio:.2f} times scikit-learn's naive Bayes")
    assert ratio < MOST
