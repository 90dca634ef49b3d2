"""The study of conditional Shapley values: its closed forms against draws, its ways, and the stored results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import conditional_shapley as study

SEEN = np.array([True, False, False, True, True, False, True, False])


@pytest.mark.parametrize("function", study.FUNCTIONS)
def test_values_of_sets_are_means_over_the_hidden_features(function):
    """By draws from their law given those seen, within five standard errors."""
    rng, rho, draws = np.random.default_rng(0), 0.5, 40_000
    X = study.drawn(function, rho, 3, rng)[0]
    laws = study.classes(rho) if function == study.POSTERIOR else study.classes(rho)[:1]
    means, deviations = [], []
    for mean, cov in laws:
        m, V = study.given(SEEN, X, mean, cov)
        root = np.linalg.cholesky(V[np.ix_(~SEEN, ~SEEN)])
        rows = np.repeat(m[:, None], draws, axis=1)
        rows[..., ~SEEN] += rng.standard_normal((*rows.shape[:2], len(root))) @ root.T
        value = study.value_at(function, rho, rows.reshape(-1, study.FEATURES)).reshape(3, draws)
        means.append(value.mean(axis=1))
        deviations.append(value.std(axis=1))
    if function == study.POSTERIOR:
        found = study.posterior(SEEN, X, rho)
        means = [(1 - found) * means[0] + found * means[1]]
    else:
        found = study.mean_value(function, *study.given(SEEN, X, *laws[0]))
    assert (np.abs(found - means[0]) < 5 * np.max(deviations, axis=0) / np.sqrt(draws)).all()


def test_independent_features_of_an_additive_function_have_their_own_terms():
    X = study.drawn(study.COSINES, 0.0, 20, np.random.default_rng(0))[0]
    assert_allclose(study.truth(study.COSINES, 0.0, X), study.FIRST[1:] * (np.cos(X) - np.exp(-0.5)), atol=1e-12)


@pytest.mark.parametrize("way", study.WAYS)
@pytest.mark.parametrize("function", [study.BOTH, study.POSTERIOR])
def test_each_way_explains_all_of_a_prediction(monkeypatch, function, way):
    """Shapley values add up to v(all) − v(none)."""
    monkeypatch.setattr(study, "DRAWS", 2)
    monkeypatch.setattr(study, "HistGradientBoostingRegressor", lambda **settings: study.LinearRegression())
    rng = np.random.default_rng(0)
    train, y = study.drawn(function, 0.5, 200, rng)
    X = train[:4]
    found = study.estimated(way, function, 0.5, train, y, X, rng)
    assert found.shape == (4, study.FEATURES)
    # the fit explains its own posterior, and Monte Carlo draws v(none) anew for each row
    if (way, function) != (study.JOINT, study.POSTERIOR) and way != study.MONTE_CARLO:
        f = study.value_at(function, 0.5, X)
        assert_allclose(np.ptp(f - found.sum(axis=1)), 0, atol=1e-10)


def test_the_stored_study_is_whole():
    error, seconds = study.table("error"), study.table("seconds")
    assert error.shape == (len(study.FUNCTIONS) * len(study.CORRELATIONS), len(study.WAYS))
    assert (error > 0).all(axis=None) and (seconds > 0).all(axis=None)
    assert study.verdicts().all()  # what the page says
