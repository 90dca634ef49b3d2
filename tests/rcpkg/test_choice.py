"""The choice of one model of a grid by its losses on rows left out."""


import numpy as np
import pytest
from model_cases import peak_memory
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from rcpkg import BDA7, EDDA, RDA, InvalidStatistics, QuadraticBayes
from rcpkg.choice import choose
from rcpkg.gaussians import classifier

ERRORS = np.array([[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]])  # 2 by 2 models, 3 rows
LOG_LOSSES = np.array([[[0.1, 0.9, 0.9], [0.4, 0.4, 0.8]], [[0.7, 0.3, 0.4], [2.0, 2.0, 2.0]]])


def test_least_error_and_of_equals_least_log_loss():
    choice = choose(ERRORS, LOG_LOSSES)
    assert choice.place == (1, 0)  # both have one error
    assert_allclose(choice.errors, [[2 / 3, 1 / 3], [1 / 3, 1]])
    assert_allclose(choice.log_loss, LOG_LOSSES.mean(axis=-1))
    without = choose(ERRORS)  # ties go to the first
    assert without.place == (0, 1) and without.log_loss is None


def test_differences_within_rounding_are_ties():
    errors = np.array([[0.1 + 0.2, 0.0], [0.3, 0.0]])
    assert errors[0, 0] > errors[1, 0] and choose(errors).place == (0,)
    losses = np.array([[0.5 + 1e-11], [0.5]])
    assert choose(np.zeros((2, 1)), losses, scoring="log_loss").place == (0,)


def test_weights_and_models_that_may_be_chosen():
    weights = np.array([9.0, 1.0, 1.0])
    choice = choose(ERRORS, LOG_LOSSES, weights=weights)
    assert choice.place == (0, 1) and choice.errors[0, 1] == pytest.approx(1 / 11)
    assert choose(ERRORS, LOG_LOSSES, among=np.array([[True, False], [False, True]])).place == (0, 0)


def test_the_one_model_of_finite_log_loss_wins_and_none_is_an_error():
    losses = LOG_LOSSES.copy()
    losses[..., 0] = np.inf
    losses[1, 1, 0] = 5.0
    assert choose(ERRORS, losses, scoring="log_loss").place == (1, 1)
    losses[1, 1, 1] = np.inf
    with pytest.raises(InvalidStatistics, match='scoring="error"'):
        choose(ERRORS, losses, scoring="log_loss")


GRIDS = [BDA7(), BDA7(cv=3), QuadraticBayes(), RDA(), EDDA(models=("EII", "VVV"))]


@pytest.mark.parametrize("model", GRIDS, ids=repr)
def test_blocks_of_held_out_rows_do_not_matter(model, monkeypatch):
    X, y = load_iris(return_X_y=True)
    X = X[::2] * [1.0, 1.0, 1.0, 1e-3]
    X[3] *= 1e4  # a row that dominates its class
    whole = model.fit(X, y[::2]).cv_errors_, model.cv_log_loss_, model.predict_joint_log_proba(X)
    monkeypatch.setattr(classifier, "AT_A_TIME", 7 * 42 * 3)
    parts = model.fit(X, y[::2]).cv_errors_, model.cv_log_loss_, model.predict_joint_log_proba(X)
    assert_allclose(parts[0], whole[0], atol=0)
    assert_allclose(parts[1], whole[1], rtol=1e-9)
    assert_allclose(parts[2], whole[2], rtol=1e-12)


@pytest.mark.parametrize("model", [BDA7(), pytest.param(RDA(), marks=pytest.mark.slow)], ids=repr)
def test_memory_does_not_grow_with_classes_times_rows(model, monkeypatch):
    monkeypatch.setattr(classifier, "AT_A_TIME", 2**13)
    y = np.repeat(np.arange(20), 3)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + y[:, None]
    # all at once 1.8 MB: an array of 25 or 42 models, 60 rows and 20 classes takes 0.2 or 0.4
    assert peak_memory(lambda: model.fit(X, y)) < 1e6
