"""Rivals that sum out exactly: what a row lacks is summed or integrated out of the law of complete rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from rcbook.exact_rivals import AODE, GenerativeForest, MixturePerClass
from scipy.special import logsumexp


def table(n=120):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n) + y,
            "width": rng.standard_normal(n) * (1 + y),
            "kind": rng.choice(["a", "b", "c"], n),
            "other": np.where(rng.random(n) < 0.2 + 0.6 * y, "a", "b"),
        }
    )
    return X, np.array(["no", "yes"])[y]


def log_joint(model, X):
    return model._log_joint(*model._parts(X))


CATEGORIES = ["kind", "other"]
MODELS = {
    "aode": (AODE(), CATEGORIES),
    "forest": (GenerativeForest(4, mixture=True, n_estimators=5), [*CATEGORIES, "size", "width"]),
    "diag": (MixturePerClass(2, "diag"), [*CATEGORIES, "size", "width"]),
    "full": (MixturePerClass(2, "full"), [*CATEGORIES, "size", "width"]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [["kind"], ["kind", "other"]])
def test_missing_categories_are_summed_out(name, lost):
    model, columns = MODELS[name]
    X, y = table()
    model.fit(X[columns], y)
    rows = X[columns][:20]
    filled = [rows.assign(**dict(zip(lost, states))) for states in np.ndindex(*(len(model.states_[c]) for c in lost))]
    filled = [f.assign(**{c: model.states_[c][f[c].iloc[0]] for c in lost}) for f in filled]
    expected = logsumexp([log_joint(model, f) for f in filled], axis=0)
    assert_allclose(log_joint(model, rows.assign(**dict.fromkeys(lost, None))), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["forest", "diag", "full"])
def test_a_missing_number_is_integrated_out(name):
    model, columns = MODELS[name]
    X, y = table()
    model.fit(X[columns], y)
    row, grid = X[columns][:1], np.linspace(-12, 12, 24_001)
    many = pd.concat([row] * len(grid), ignore_index=True)
    many["width"] = grid * model.scale_[1][1] + model.scale_[0][1]
    expected = logsumexp(log_joint(model, many), axis=0) + np.log(grid[1] - grid[0])
    assert_allclose(log_joint(model, row.assign(width=np.nan))[0], expected, atol=2e-3)


def test_a_generative_forest_of_complete_rows_is_the_forest():
    X, y = table()
    model = GenerativeForest(3, n_estimators=20).fit(X, y)
    expected = model.forest_.predict_proba(model._codes(*model._parts(X)))
    assert_allclose(model.predict_proba(X), expected, atol=1e-12)


def test_averaged_one_dependence_estimators_by_hand():
    X = pd.DataFrame({"a": ["0", "0", "1", "1"], "b": ["0", "1", "1", "1"]})
    y = np.array([0, 0, 1, 1])
    model = AODE().fit(X, y)
    # p(y, a) p(b | y, a) and p(y, b) p(a | y, b) of the row (0, 1), a pseudo-row for each distribution
    first = np.array([(2 + 1 / 4) / 5 * (1 + 1 / 2) / 3, (0 + 1 / 4) / 5 * (1 / 2)])
    second = np.array([(1 + 1 / 4) / 5 * (1 + 1 / 2) / 2, (2 + 1 / 4) / 5 * (0 + 1 / 2) / 3])
    row = pd.DataFrame({"a": ["0"], "b": ["1"]})
    assert_allclose(np.exp(log_joint(model, row))[0], first + second)
    assert_allclose(model.predict_proba(row)[0], (first + second) / (first + second).sum())
