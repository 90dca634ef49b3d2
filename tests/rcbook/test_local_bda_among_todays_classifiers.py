"""The comparison of local BDA with today's classifiers in chapter 16: errors are paired."""

import numpy as np
import pytest
from rcbook import datasets
from rcbook.experiments.cells import Cell
from rcbook.experiments.studies import local_bda_among_todays_classifiers as comparison


def test_2026_compares_in_pairs(monkeypatch):
    monkeypatch.setattr(comparison, "CONTENDERS", {name: comparison.CONTENDERS[name] for name in ("local BDA", "k-NN")})
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.standard_normal((60, 2)) + 2 * y[:, None], np.ones(60)])
    monkeypatch.setattr(datasets, "load", lambda *arguments: type("Data", (), {"data": X, "target": y}))
    found = {
        (r.method, r.metric): r
        for r in comparison.local_2026(Cell("study", "local-2026", "x", "", "", {"repetitions": 3}), 5)
    }
    assert found["local BDA", "minus_local_bda"].value == 0
    difference = found["k-NN", "test_error_percent"].value - found["local BDA", "test_error_percent"].value
    assert found["k-NN", "minus_local_bda"].value == pytest.approx(difference)
