"""What a user does by mistake is refused in a sentence, or does no harm: streams, refits, weights, odd inputs."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.multiclass import OneVsOneClassifier

from rcpkg import (
    BDA7,
    LDA,
    QDA,
    WANBIAC,
    CategoricalNB,
    GaussianNB,
    LocalBDA,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
)

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 3)), np.arange(40) % 2
STATES = RNG.integers(3, size=(40, 2)).astype(float)
MIXED = ProductModel([("state", CategoricalNB(prior_strength=1.0), [0]), ("size", QDA(), [1, 2])])


def state_and_size():
    return np.column_stack([STATES[:, 0], X[:, :2]])


@pytest.mark.parametrize("model", [QDA(), GaussianNB(), MIXED, MultinomialNB(prior_strength=1.0)], ids=repr)
def test_a_portion_that_overflows_leaves_the_stream_as_it_was(model):
    rows = np.abs(state_and_size())
    model.partial_fit(rows, Y, classes=[0, 1])
    before = model.predict_proba(rows)
    huge = rows.copy()
    huge[:, 0] = 7.0
    huge[:, 1] *= 1e200 if not isinstance(model, MultinomialNB) else 1.5e307
    with pytest.raises(ValueError, match="rescale"), np.errstate(over="ignore"):
        model.partial_fit(huge, Y)
    assert_array_equal(model.predict_proba(rows), before)
    again = model.partial_fit(rows, Y).predict_proba(rows)
    assert np.isfinite(again).all() and again.shape == before.shape


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize(
    "model", [QDA(), WANBIAC(), BDA7(), LocalBDA(), RiskCalibration(LDA()), RiskCalibrationCV(LDA(), cv=3)], ids=repr
)
def test_the_label_of_rows_without_a_label(model, kind):
    rows = STATES if isinstance(model, WANBIAC) else X
    with pytest.warns(UserWarning, match="the label -1 is taken for a class"):
        model.fit(rows, np.r_[Y[:30], -np.ones(10)].astype(kind))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(rows, (2 * Y - 1).astype(kind))  # the usual labels of two classes
    assert not any("-1" in str(warning.message) for warning in said)


@pytest.mark.parametrize("far", [1e4, 1e5, 1e6, 1e7])
@pytest.mark.parametrize("model", [QDA(), LDA()], ids=repr)
def test_portions_lose_no_more_digits_than_the_covariances_have(model, far):
    """What differs from a fit at once is rounding, times the condition of a correlation matrix and the distance."""
    rng = np.random.default_rng(1)
    rows = np.r_[-np.outer([0.0, 1.0], np.ones(3)), rng.standard_normal((400, 3)) + far]
    y = np.r_[0, 1, (rows[2:, 0] - far + rng.standard_normal(400) > 0)]
    at_once = clone(model).fit(rows, y).predict_log_proba(rows)
    streamed = clone(model).partial_fit(rows[:2], y[:2], classes=[0, 1]).partial_fit(rows[2:], y[2:])
    condition = max(np.linalg.cond(np.corrcoef(rows[y == k].T)) for k in (0, 1))
    squares = ((rows[2:] - far) ** 2).sum(axis=1).max()  # about (x − μ)ᵀ Σ⁻¹ (x − μ), of the rows that lie together
    bound = 4 * np.finfo(float).eps * condition * squares
    assert np.abs(streamed.predict_log_proba(rows) - at_once)[2:].max() <= bound


def test_a_product_says_what_its_blocks_cannot_be_given():
    words = ProductModel([("words", MultinomialNB(prior_strength=1.0), slice(0, 2))])
    with pytest.raises(TypeError, match="toarray"):
        words.fit(csr_array(STATES), Y)
    table = pd.DataFrame(X, columns=list("abc"))
    named = ProductModel([("size", QDA(), ["a", "b"])])
    with pytest.raises(ValueError, match=r"by integers.* or names of a DataFrame, which a transformer makes after set"):
        OneVsOneClassifier(named).fit(table, Y)
    numbered = ProductModel([("size", QDA(), [0, 1])])
    assert_array_equal(OneVsOneClassifier(numbered).fit(table, Y).predict(table), named.fit(table, Y).predict(table))
