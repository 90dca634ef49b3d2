"""The choices of the tables of thesis2007: errors of leave-one-out by bounds, ties broken at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import ALL_SEEDS, breaking_problem
from numpy.testing import assert_allclose
from rcbook import ties
from rcbook.bounded_leave_one_out import grid_loo_errors
from sklearn.base import clone
from sklearn.datasets import load_iris

import rcpkg
from rcpkg.choice import wrong_predictions
from rcpkg.gaussians import BDA7_SEEDS, Sample, grid_log_predictive_loo

MODELS = [
    ties.BDA7(random_state=0),
    ties.QuadraticBayes(random_state=0),
    ties.RDA(random_state=0),
    ties.EDDA(models=("EII", "VVV"), random_state=0),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_certified_errors_are_the_exact_ones(seed):
    X, y, r, d = breaking_problem(seed)
    X = np.vstack([X, X + np.random.default_rng(seed).normal(size=X.shape)])
    y = np.r_[y, y]
    prior = np.log(np.random.default_rng(seed).dirichlet(np.ones(r), size=len(X)))
    dofs = [float(d), 4.0 * d]
    exact = wrong_predictions(grid_log_predictive_loo(Sample(X, y, r), dofs, ALL_SEEDS) + prior, y)
    certified = grid_loo_errors(Sample(X, y, r), prior, dofs, ALL_SEEDS)
    assert (certified.wrong == exact).all()
    assert 0 <= certified.exact_share <= 1


def test_the_certificate_spares_most_rows_and_can_fail():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 8)) + y[:, None] / 2
    prior = np.log(np.full((300, 3), 1 / 3))
    assert grid_loo_errors(Sample(X, y, prior.shape[1]), prior, [8.0, 48.0]).exact_share < 0.1
    assert grid_loo_errors(Sample(X[:12], y[:12], prior.shape[1]), prior[:12], [8.0, 48.0]).exact_share > 0


def test_random_ties_are_broken_by_the_seed_only():
    X, y = load_iris(return_X_y=True)
    first = ties.BDA7(random_state=0).fit(X, y)
    tied = np.argwhere(first.cv_errors_ == first.cv_errors_.min())
    assert len(tied) > 1
    chosen = {(m.dof_, m.seed_) for m in (ties.BDA7(random_state=k).fit(X, y) for k in range(12))}
    assert len(chosen) > 1
    assert chosen <= {(4.0 * (a + 1), BDA7_SEEDS[b]) for a, b in tied}
    assert len({ties.BDA7(random_state=3).fit(X, y).dof_ for _ in range(3)}) == 1


@each_model
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_the_library(model, weighted):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3] * [1.0, 1.0, 1.0, 1e-3], y[::3]
    w = np.random.default_rng(1).uniform(0.1, 1.0, len(y)) if weighted else None
    settings = {name: value for name, value in model.get_params().items() if name != "random_state"}
    library = getattr(rcpkg, type(model).__name__)(**settings).fit(X, y, sample_weight=w)
    assert_allclose(clone(model).fit(X, y, sample_weight=w).cv_errors_, library.cv_errors_, atol=1e-12)


@pytest.mark.parametrize("cost", [None, [[0, 1, 10.1], [1, 0, 1], [2, 1, 0]]])
def test_the_smallest_of_the_sizes_of_least_error(cost):
    X, y = load_iris(return_X_y=True)
    for kind in (rcpkg.LocalBDA, rcpkg.BregmanKNN):
        library = kind(n_neighbors=range(1, 30), cost=cost).fit(X, y)
        least = np.isclose(library.cv_errors_, library.cv_errors_.min(), rtol=0, atol=1e-9)
        assert cost or least.sum() > 1 or kind is rcpkg.LocalBDA
        model = ties.smallest_size(library)
        assert model.n_neighbors_ == 1 + np.argmax(least)
        chosen = kind(n_neighbors=model.n_neighbors_, cost=cost).fit(X, y)
        assert (model.predict(X) == chosen.predict(X)).all()
