"""What rows left out say after a fit, and the closed form without blocks of rows."""

import numpy as np
import pytest
from model_cases import ML, rows_for
from numpy.testing import assert_allclose
from sklearn.base import clone

from rcpkg import LDA, QDA, CategoricalNB, GaussianNB, RiskCalibration
from rcpkg.base import InvalidStatistics
from rcpkg.calibration import left_out
from rcpkg.calibration.objective import Objective, log_posterior_of
from rcpkg.families.portions import rows_at

AT_ONCE = {
    **{name: ML[name] for name in ("GaussianNB", "SharedVarianceGaussianNB", "LDA", "QDA", "CategoricalNB", "TAN")},
    "prior of numbers": GaussianNB(prior_strength=2.0, prior_mean=0.5, prior_covariance=3.0),
    "prior by names": QDA(prior_strength=2.0, prior_mean="grand", prior_covariance="pooled", class_prior_strength=3.0),
    "counts with a prior": CategoricalNB(prior_strength=0.5, class_prior_strength=1.0),
}


def one_by_one(F, family, n_blocks):
    """log p(y | x) of the closed form without the block of each row, by `parameters` and `log_joint`."""
    weights, log_P = F.rows.only("").weights(len(family.classes_)), np.empty((len(F.y), len(family.classes_)))
    for first in range(n_blocks):
        rows = slice(first, None, n_blocks)
        X = rows_at(F.X, rows)
        parameters = family.parameters(F.labels - family.statistics(X, weights[rows]))
        log_P[rows] = log_posterior_of(family, X, parameters)
    return log_P


@pytest.mark.parametrize("n_blocks", [5, 60])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", AT_ONCE)
def test_the_closed_form_without_all_blocks_at_once_is_that_without_one_after_another(name, weighted, n_blocks):
    X, y = rows_for(name if name in ML else "CategoricalNB" if "counts" in name else "QDA")
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    model = clone(AT_ONCE[name])
    rows = model._training_rows(X, y, weight)
    F, n_blocks = Objective.from_rows(model, rows, target_weight=1.0), min(n_blocks, len(y))
    family, weights = model.family_, F.rows.only("").weights(len(np.unique(y)))
    found = family.log_posterior_without_blocks(F.X, weights, F.labels, n_blocks)
    try:
        expected = one_by_one(F, family, n_blocks)
    except InvalidStatistics:
        assert found is None
    else:
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        for block, log_P in left_out.closed_form_on_blocks(F, family, n_blocks):
            assert_allclose(log_P, expected[block], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", [GaussianNB(), QDA(), CategoricalNB()])
def test_a_block_without_which_there_is_no_closed_form_has_the_worst_loss(model):
    """A feature that varies within a class by one row alone, which its block takes away; or a class of one row."""
    X, y = rows_for("CategoricalNB" if isinstance(model, CategoricalNB) else "QDA")
    X, y = X[:40].copy(), np.arange(40) % 2
    if isinstance(model, CategoricalNB):
        y[y == 0], y[7] = 1, 0
    else:
        X[y == 0, 1], X[2, 1] = 0.0, 1.0
    model = clone(model)
    rows = model._training_rows(X, y, None)
    F, family = Objective.from_rows(model, rows), model.family_
    block_of = 7 % 5 if isinstance(model, CategoricalNB) else 2
    for first, (_, log_P) in enumerate(left_out.closed_form_on_blocks(F, family, 5)):
        assert np.isneginf(log_P).all() == (first == block_of)


@pytest.mark.parametrize("model", [LDA(prior_strength=3.0), GaussianNB(prior_strength=3.0)])
def test_labels_that_repeat_in_the_order_of_rows_hide_no_better_closed_form(model):
    """Each fifth row has all rows of a class, and the closed form without a class is none."""
    rng, r = np.random.default_rng(4), 5 if isinstance(model, LDA) else 10
    y = np.arange(150) % r
    X = 0.5 * rng.normal(size=(r, 3))[y] + rng.normal(size=(150, 3))
    with pytest.warns(UserWarning, match="rows left out speak against calibration"):
        RiskCalibration(model).fit(X, y)
