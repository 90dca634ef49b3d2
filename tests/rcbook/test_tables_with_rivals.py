"""The study of raw tables beside rivals: its sets and its learners."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from rcbook.experiments.studies import tables_with_rivals as study


def table(n=90, gaps=0.15):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n) + y,
            "width": rng.standard_normal(n),
            "kind": np.where(rng.random(n) < 0.2 + 0.6 * y, "a", "b"),
        }
    )
    return X.mask(rng.random(X.shape) < gaps), y


def test_a_model_per_pattern_is_the_regression_of_what_is_there():
    X, y = table(gaps=0.0)
    model = study.ModelPerPattern().fit(X, y)
    hidden = X.assign(kind=None)
    expected = study.logistic().fit(X[["size", "width"]], y).predict_proba(X[["size", "width"]])
    assert_allclose(model.predict_proba(hidden), expected)
    nothing = model.predict_proba(X[:2].mask(np.ones((2, 3), dtype=bool)))
    assert_allclose(nothing, 0.5)
