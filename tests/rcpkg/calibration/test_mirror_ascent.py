"""The theory of mirror ascent that the chapters check on fewer models: the leaf of a target, and empty cells."""

import numpy as np
import pytest
from model_cases import ML, fitted, row_statistics, rows_for
from sklearn.base import clone

from rcpkg import CategoricalNB, ConditionalLikelihood, RiskCalibration

as_published = RiskCalibration.as_published
SAFE = {"step": "safe", "target_weight": 0.0, "tol": 0.0}


def unseen_directions(model, X, r=3):
    """Orthonormal basis of the v with ⟨v, s(x_i, y)⟩ the same for all y (definition of the leaf)."""
    S = row_statistics(model, X, r)
    A = (S - S[:, :1]).reshape(-1, S.shape[-1])
    values, vectors = np.linalg.eigh(A.T @ A)
    return vectors[:, values < 1e-10 * values[-1]].T


@pytest.mark.parametrize("name", ML)
@pytest.mark.parametrize("target", ["generative", "pooled", "another"])
def test_the_path_of_the_weights_stays_on_the_leaf_of_its_target(name, target):
    """⟨v, μ(η_b)⟩ = ⟨v, μ̄⟩ for unseen v (corollary on the path of the weights, part 1)."""
    model, X, y, _ = fitted(name)
    if target == "pooled":
        mu_bar = model.family_.mean_parameters(model.family_.pooled_parameters(model.statistics_)[0])
    elif target == "generative":
        mu_bar = model.family_.mean_parameters(model.parameters_)
    else:
        target = clone(ML[name]).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
        mu_bar = target.family_.mean_parameters(target.parameters_)
    unseen = unseen_directions(model, X)
    for b in (1.0, 10.0):
        best = ConditionalLikelihood(clone(ML[name]), target=target, target_weight=b, tol=1e-6).fit(X, y).estimator_
        off = (best.family_.mean_parameters(best.parameters_) - mu_bar).ravel()
        assert np.abs(unseen @ off).max() < 1e-4  # tol (n + b m̄) / (b m̄), for m̄ = 3 pseudo-rows
    if target == "pooled" and name not in ("LDA", "SharedVarianceGaussianNB"):  # whose pooled model is the closed form
        assert np.abs(off).max() > 1e-3  # there was a way to go


def rows_with_an_empty_cell():
    X, y = rows_for("CategoricalNB")
    X = X.copy()
    X[(X[:, 2] == 4) & (y == 0), 2] = 3  # the last state of the last feature is never seen in class 0
    return X, y


def test_empty_cells_stay_empty_and_have_the_same_supremum():
    """RC on the face ends at the supremum of the whole family (proposition on empty cells)."""
    X, y = rows_with_an_empty_cell()
    closed = CategoricalNB().fit(X, y)
    empty = closed.statistics_.cells == 0
    assert empty.sum() == 1
    whole = ConditionalLikelihood(CategoricalNB(prior_strength=1.0), solver="lbfgs", tol=1e-7).fit(X, y)
    fixed = as_published(CategoricalNB(), learning_rate=0.3, max_iter=3000, stopping="none").fit(X, y)
    safe = RiskCalibration(CategoricalNB(), max_iter=100, **SAFE).fit(X, y)
    for fit in (fixed, safe):
        assert not fit.estimator_.statistics_.cells[empty].any()
        assert fit.history_.log_loss.iloc[-1] == pytest.approx(whole.history_.log_loss.iloc[-1], abs=1e-7)
    assert whole.estimator_.parameters_.log_prob[empty] < -20  # on its way to minus infinity
