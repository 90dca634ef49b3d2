"""Steps that freeze what would turn invalid (rc2024 §III)."""

import numpy as np
import pytest
from model_cases import INVALID, MODELS, invalid_rows, rows_for
from numpy.testing import assert_allclose
from rcbook.freezing import Freezing, frozen
from sklearn.base import clone

from rcpkg import RiskCalibration
from rcpkg.families import Family, Unsupported, one_hot


@pytest.mark.filterwarnings("ignore:the first step, Fixed")
@pytest.mark.parametrize("name", INVALID)
def test_freeze_keeps_what_would_turn_invalid(name):
    """rc2024 §III: cells, or classes of a Gaussian model, that would turn invalid keep their value."""
    model, lr = INVALID[name]
    X, y = invalid_rows(name)
    halted = RiskCalibration.as_published(model, learning_rate=lr, max_iter=9, stopping="none").fit(X, y)
    old = halted.estimator_.statistics_
    frozen = RiskCalibration.as_published(model, step=Freezing(lr), max_iter=halted.n_iter_ + 1, stopping="none").fit(
        X, y
    )
    assert frozen.n_iter_ == halted.n_iter_ + 1
    new = frozen.estimator_.statistics_
    Y = one_hot(y, 3)
    moved = old + lr * halted.estimator_.statistics(X, Y - halted.predict_proba(X))
    kept = np.isclose(new.ravel(), old.ravel(), rtol=1e-12)
    assert_allclose(new.ravel()[~kept], moved.ravel()[~kept], rtol=1e-8)
    assert kept.any()
    assert not kept.all()
    if name == "CategoricalNB":
        assert_allclose(new.cells, np.where(moved.cells >= 0, moved.cells, old.cells), rtol=1e-8)
    longer = RiskCalibration.as_published(model, step=Freezing(lr), max_iter=9, stopping="none").fit(X, y)
    assert longer.n_iter_ == 9
    assert np.isfinite(longer.history_[["soft_error", "error"]]).all(axis=None)


@pytest.mark.filterwarnings("ignore:the first step, Freezing")
@pytest.mark.parametrize("name", MODELS)
def test_every_family_freezes(name):
    rc = RiskCalibration.as_published(clone(MODELS[name]), step=Freezing(3.0), max_iter=5, stopping="none")
    assert not rc.fit(*rows_for(name)).history_.isna().any(axis=None)


def test_a_family_without_a_rule_is_refused():
    bare = type("Bare", (Family,), dict.fromkeys(Family.__abstractmethods__))()
    with pytest.raises(Unsupported, match="no rule says which statistics of Bare to freeze"):
        frozen(bare, None, None)
