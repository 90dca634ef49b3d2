"""Mixtures: the E-step is the expectation of a hidden category, EM climbs, and calibration climbs from there."""


import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import random_direction, refused, slow
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    GaussianNB,
    Mixture,
    ProductModel,
    RiskCalibration,
    Rows,
    explain,
)
from rcpkg.calibration import Safe, climb
from rcpkg.calibration.objective import Objective
from rcpkg.calibration.stops import Converged
from rcpkg.families import class_counts, one_hot

BLOCKS = [("codes", CategoricalNB(prior_strength=1.0), [0, 1]), ("sizes", GaussianNB(), [2, 3])]
MODELS = {
    "QDA": QDA(),
    "LDA": LDA(),
    "GaussianNB": GaussianNB(),
    "CategoricalNB": CategoricalNB(prior_strength=1.0),
    "TAN": TAN(),
    "ProductModel": ProductModel(BLOCKS),
}


def table(name="QDA", n=120, gaps=0.0, seed=0):
    """Two classes, each of two clouds; codes follow the cloud."""
    rng = np.random.default_rng(seed)
    y, cloud = rng.permutation(np.arange(n) % 2), rng.integers(2, size=n)
    centres = np.array([[[0.0, 0.0], [3.0, 1.0]], [[1.0, 3.0], [-2.0, -2.0]]])
    sizes = centres[y, cloud] + rng.standard_normal((n, 2))
    codes = (rng.uniform(size=(n, 3)) < np.where((y + cloud)[:, None] % 2, 0.8, 0.3)).astype(float)
    X = codes if name in ("CategoricalNB", "TAN") else np.hstack([codes[:, :2], sizes]) if "Product" in name else sizes
    X[rng.uniform(size=X.shape) < gaps] = np.nan
    return X, y


def mixture(name, n_components=2, **settings):
    return Mixture(clone(MODELS[name]), n_components=n_components, random_state=0, **settings)


@pytest.mark.parametrize("gaps", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["QDA", "CategoricalNB", "ProductModel", *slow("LDA", "GaussianNB", "TAN")])
def test_gradient_of_conditional_likelihood_is_that_of_responsibilities(name, gaps):
    """By central differences of Σ log p(y_i | x_i) along the statistics: θ(s + ε Δ) moves η by ε ∇η Δ."""
    X, y = table(name, gaps=gaps)
    model = mixture(name).fit(X, y)
    F = Objective.from_estimator(model, X, y)
    family, start = F.family, F.evaluate(F.start)
    rng = np.random.default_rng(1)
    rows = np.arange(len(y))
    change = 1e-3 * family.expected_statistics(F.X, rng.uniform(size=(len(y), 2)), start.parameters)

    def at(step):
        theta = family.parameters(start.statistics + step * change)
        joint = family.log_joint(F.X, theta)
        return (joint[rows, y] - logsumexp(joint, axis=1)).sum(), family.natural_parameters(theta)

    (up, eta_up), (down, eta_down) = at(1.0), at(-1.0)
    finite = np.isfinite(eta_up.ravel()) & np.isfinite(eta_down.ravel())
    moved = (eta_up.ravel() - eta_down.ravel())[finite]
    assert_allclose(start.gradient.ravel()[finite] @ moved, up - down, rtol=2e-4, atol=1e-9)
    assert abs(up - down) > 1e-6


@pytest.mark.parametrize("name", [name for name in MODELS if name != "TAN"])
def test_natural_and_mean_parameters_are_those_of_the_complete_rows(name):
    X, y = table(name)
    model = mixture(name).fit(X, y)
    family, theta = model.family_, model.parameters_
    natural, mean = family.natural_parameters(theta), family.mean_parameters(theta)
    assert_allclose(family.log_partition(natural), 0.0, atol=1e-9)
    direction = 1e-4 * random_direction(mean, np.random.default_rng(0))
    ahead, behind = family.log_partition(natural + direction), family.log_partition(natural - direction)
    assert_allclose((ahead - behind) / 2, mean.dot(direction), rtol=1e-5, atol=1e-9)
    again = family.without_prior().parameters(mean)
    assert_allclose(family.log_joint(X, again), family.log_joint(X, theta), atol=1e-8)


@settings(max_examples=5, deadline=None)
@given(
    st.sampled_from(list(MODELS)),
    st.integers(0, 2**16),
    st.sampled_from([0.0, 0.25]),
    st.integers(2, 3),
    st.sampled_from([0.0, 1.0]),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_each_step_of_em_raises_the_likelihood_of_what_is_there(name, seed, gaps, k, strength):
    base = clone(MODELS[name])
    base.set_params(**{key: 0.0 for key in base.get_params() if key.endswith("prior_strength")})
    model = Mixture(base, n_components=k, prior_strength=strength, tol=0.0, max_iter=40, random_state=seed)
    values = model.fit(*table(name, n=60, gaps=gaps, seed=seed)).family_.log_likelihoods
    assert not len(values) or np.diff(values).min(initial=0.0) >= -1e-10


@pytest.mark.parametrize(("name", "kind"), [("QDA", "full"), ("GaussianNB", "diag")])
def test_em_ends_where_scikit_learn_stays(name, kind):
    """A fixed point: one step of its EM from our components leads nowhere, and its densities are ours."""
    X, y = table(n=400)
    model = mixture(name, prior_strength=0.0, tol=1e-14, max_iter=5000).fit(X, y)
    _, mean, covariance, _ = model.parameters_.components
    share = np.exp(model.parameters_.components.log_prior)
    for c in range(2):
        own = slice(2 * c, 2 * c + 2)
        theirs = GaussianMixture(
            2,
            covariance_type=kind,
            reg_covar=0.0,
            max_iter=1,
            weights_init=share[own] / share[own].sum(),
            means_init=mean[own],
            precisions_init=np.linalg.inv(covariance[own]) if kind == "full" else 1 / covariance[own],
        )
        with pytest.warns(ConvergenceWarning):
            theirs.fit(X[y == c])
        assert_allclose(theirs.means_, mean[own], atol=1e-5)
        assert_allclose(theirs.covariances_, covariance[own], atol=1e-5)
        joint = model.predict_joint_log_proba(X)[:, c] - model.class_log_prior_[c]
        assert_allclose(theirs.score_samples(X), joint, atol=1e-4)


@pytest.mark.parametrize("name", ["CategoricalNB", "TAN"])
def test_marginals_of_gappy_categories_are_sums_over_all_states(name):
    model = mixture(name, n_components=3).fit(*table(name, gaps=0.1))
    whole = np.array([[a, b, c] for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)])
    joint = model.predict_joint_log_proba(whole)
    assert_allclose(logsumexp(joint), 0.0, atol=1e-12)
    for gappy in ([np.nan, 1.0, 0.0], [np.nan, np.nan, 1.0], [0.0, np.nan, np.nan]):
        fits = (np.isnan(gappy) | (whole == gappy)).all(axis=1)
        assert_allclose(model.predict_joint_log_proba([gappy])[0], logsumexp(joint[fits], axis=0), atol=1e-12)
        means = model.conditional_mean([gappy])
        p = np.exp(logsumexp(joint[fits], axis=1))
        for j in range(3):
            expected = [p[whole[fits, j] == v].sum() / p.sum() for v in (0.0, 1.0)]
            assert_allclose(np.asarray(means[j])[0], expected, atol=1e-10)


@pytest.mark.parametrize("name", ["QDA", "ProductModel"])
def test_samples_have_the_mean_statistics_of_the_model(name):
    model = mixture(name).fit(*table(name))
    n = 20_000
    drawn, labels = model.sample(n, random_state=0)
    numbers = np.searchsorted(model.classes_, labels)
    found = model.family_.expected_statistics(drawn, one_hot(numbers, 2), model.parameters_) / n
    expected = model.family_.mean_parameters(model.parameters_)
    assert_allclose(found.ravel(), expected.ravel(), atol=5 * 30 / np.sqrt(n))
    assert_allclose(found.count, expected.count, atol=5 * 0.5 / np.sqrt(n))
    pairs, expected_pairs = class_counts(found.components), class_counts(expected.components)
    assert_allclose(pairs, expected_pairs, atol=5 * 0.5 / np.sqrt(n))


@pytest.mark.parametrize("gaps", [0.0, 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", MODELS)
def test_one_component_is_the_model_itself(name, gaps):
    X, y = table(name, gaps=gaps)
    model = clone(MODELS[name]).fit(X, y)
    assert_allclose(mixture(name, 1).fit(X, y).predict_joint_log_proba(X), model.predict_joint_log_proba(X), atol=1e-10)


@pytest.mark.parametrize("target", ["pooled", *slow(None, "generative", "grand")])
@pytest.mark.parametrize("gaps", [*slow(0.0), 0.2], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["QDA", "CategoricalNB", *slow("ProductModel", "LDA", "GaussianNB")])
def test_safe_steps_climb_to_a_stationary_point(name, gaps, target):
    X, y = table(name, gaps=gaps)
    weight = {"target": target, "target_weight": 0.3} if target else {}
    F = Objective.from_estimator(mixture(name), X, y, **weight)
    path = climb(F, Safe(), Converged(1e-7), 300 if target else 20, keep_points=True)
    values = np.array([point.value for point in path.points])
    assert len(values) > 2
    assert np.diff(values).min() >= 0.0
    if target:
        assert path.stop_reason == "converged"
        weights = np.random.default_rng(1).uniform(size=(len(y), 2))
        change = 1e-3 * F.family.expected_statistics(F.X, weights, path.point.parameters)
        places = (F.start, path.point.statistics)
        slopes = [F.evaluate(s + change).value - F.evaluate(s - change).value for s in places]
        assert abs(slopes[1]) < 0.02 * abs(slopes[0])
        found = RiskCalibration(mixture(name), **weight, tol=1e-7).fit(X, y)
        assert_allclose(found.predict_proba(X), np.exp(path.point.log_posterior(X)), atol=1e-6)


def test_calibrated_mixture_keeps_what_a_joint_model_does():
    X, y = table("ProductModel", gaps=0.2)
    model = RiskCalibration(mixture("ProductModel"), gaps_in_view=0.3, random_state=0).fit(X, y)
    assert explain.contributions(model, X[:5]).shape == (5 * 4, 2)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.score_samples(X).shape == (len(X),)
    assert set(model.conditional_mean(X)) == {"codes", "sizes"}
    assert model.sample(5, random_state=0)[0].shape == (5, 4)
    weights = model.predict_proba(X, class_prior=[0.9, 0.1])
    odds = model.predict_proba(X)
    at = np.array([0.9, 0.1]) / np.bincount(y) * len(y) * odds
    assert_allclose(weights, at / at.sum(axis=1, keepdims=True), atol=1e-10)
    assert not model.estimator_.family_.has_prior
    assert model.estimator_.model.get_params()["codes__prior_strength"] == 0.0


def test_number_of_components_is_chosen():
    X, y = table(n=400)
    assert Mixture(GaussianNB(), random_state=0).fit(X, y).n_components_.max() == 2
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 2)) + y[:, None]
    assert Mixture(GaussianNB(), random_state=0).fit(X, y).n_components_.max() == 1


@pytest.mark.parametrize("model", [GaussianNB(), QDA()], ids=repr)
def test_units_make_no_difference(model):
    """Where densities are above one, too, EM goes on until its steps gain nothing."""
    X, y = load_iris(return_X_y=True)
    found = Mixture(model, n_components=2, random_state=0).fit(X, y)
    for unit in (1e-3, 1e-30, 1e30):
        in_unit = Mixture(model, n_components=2, random_state=0).fit(X * unit, y)
        assert in_unit.n_iter_ == found.n_iter_ > 2
        assert_allclose(in_unit.predict_proba(X * unit), found.predict_proba(X), atol=1e-6)


def test_small_classes_have_fewer_components():
    X, y = table(n=60)
    keep = (y == 0) | (np.cumsum(y) <= 3)
    model = mixture("GaussianNB", 3).fit(X[keep], y[keep])
    assert model.n_components_.tolist() == [3, 1]
    assert np.isfinite(model.predict_log_proba(X)).all()
    RiskCalibration(mixture("GaussianNB", 3)).fit(X[keep], y[keep])


def test_a_lost_component_is_told():
    X, y = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 5, axis=0), np.repeat([0, 1, 0, 1], 5)
    model = Mixture(QDA(singular_ridge=0.0, prior_strength=0.0), n_components=2, prior_strength=0.0, random_state=0)
    refused("prior_strength", model.fit, X, y)
    X, y = table(n=40)
    with pytest.warns(ConvergenceWarning, match="there are"):
        Mixture(QDA(), n_components=9, prior_strength=0.0, random_state=0).fit(X, y)


@pytest.mark.parametrize("name", ["GaussianNB", "ProductModel"])
def test_blocks_of_rows(name):
    X, y = table(name)
    model = mixture(name).fit(X, y)
    joint = model.predict_joint_log_proba(X)
    blocks = clone(model).fit(Rows.from_arrays(X, y, block_size=50))
    assert_allclose(blocks.predict_joint_log_proba(X), joint, atol=1e-6)
    assert not hasattr(model, "partial_fit")
    RiskCalibration(mixture(name)).fit(Rows.from_arrays(X, y, block_size=50))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Mixture(None), "model must be"),
        (Mixture(Mixture(QDA())), "no Mixture"),
        (Mixture(QDA(priors=[0.5, 0.5])), "no priors"),
        (Mixture(QDA(), n_components=0), "n_components"),
        (Mixture(QDA(), n_components="two"), "n_components"),
        (Mixture(QDA(), n_starts=0), "n_starts"),
        (Mixture(QDA(), prior_strength=-1.0), "prior_strength"),
    ],
)
def test_refusals_name_the_remedy(model, message):
    refused(message, model.fit, *table())


def test_responsibilities_are_a_hidden_category():
    """The mixture is the marginal of a network in which the component is one more feature, missing in every row."""
    X, y = table("CategoricalNB")
    model = mixture("CategoricalNB").fit(X, y)
    tables = model.family_.component.families_.split(np.exp(model.parameters_.components.log_prob))
    p_pairs = np.exp(model.parameters_.components.log_prior)
    for x, joint in zip(X[:5], model.predict_joint_log_proba(X[:5])):
        p = [p_pairs[c] * np.prod([of[c, int(v)] for of, v in zip(tables, x)]) for c in range(4)]
        assert_allclose(np.exp(joint), [p[0] + p[1], p[2] + p[3]], rtol=1e-10)
