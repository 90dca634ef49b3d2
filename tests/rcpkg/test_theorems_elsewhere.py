"""Theorems that the chapters check, on the models, losses and points that they leave out."""

import numpy as np
import pytest
from model_cases import COUNTS, GAUSSIAN, ML, fitted, gaussian_rows, random_direction, row_statistics, rows_for
from scipy import optimize
from scipy.special import softmax
from sklearn.base import clone

from rcpkg import ConditionalLikelihood, RiskCalibration
from rcpkg.base import log_posterior
from rcpkg.bregman import divergences
from rcpkg.bregman.functional import Measure, pointwise, relative_entropy, squared_bias, total_squared_difference

pytestmark = pytest.mark.slow
SAFE = {"step": "safe", "target_weight": 0.0, "tol": 0.0}
INTERVAL = Measure.lebesgue(0, 1, n_nodes=40)
ITAKURA_SAITO = pointwise("itakura_saito")
ALL = [total_squared_difference, squared_bias, relative_entropy, ITAKURA_SAITO, pointwise("exponential")]
each_divergence = pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)


def functions(size, seed):
    """Smooth positive functions on the unit interval, at the nodes."""
    c = np.random.default_rng(seed).normal(size=(size, 3)) / 2
    x = INTERVAL.nodes
    return np.exp(c[:, :1] + c[:, 1:2] * x + c[:, 2:] * np.cos(4 * x))


@pytest.mark.parametrize(
    ("loss", "is_bregman"),
    [
        (lambda x, s: float(divergences["itakura_saito"](x, s)), True),
        (lambda x, s: float(divergences["logistic"](x, s)), True),
        (lambda x, s: (x - s) ** 4, False),
        (lambda x, s: float(divergences["itakura_saito"](s, x)), False),
    ],
    ids=["itakura_saito", "logistic", "fourth power", "reversed"],
)
def test_converse_quotient_of_a_loss_on_the_line(loss, is_bregman):
    """R_2(x, m)/(m - x) is one number for a Bregman divergence; two points, or two bumps, betray other losses."""
    m, h = 0.45, 1e-6
    quotients = [(loss(x, m + h) - loss(x, m - h)) / (2 * h * (m - x)) for x in (0.1, 0.3, 0.6, 0.9)]
    assert (np.ptp(quotients) < 1e-5 * np.abs(quotients).max()) == is_bregman
    u, w = np.polynomial.legendre.leggauss(20)
    for width in (0.0, 0.05):
        values = np.concatenate([0.2 + width * u, 0.8 + width * u])
        weights = np.concatenate([0.35 * w, 0.15 * w])

        def risk(s, values=values, weights=weights):
            return weights @ [loss(x, s) for x in values]

        best = optimize.minimize_scalar(risk, bounds=(0.15, 0.85), method="bounded", options={"xatol": 1e-9}).x
        assert (abs(best - weights @ values) < 1e-4) == is_bregman


@each_divergence
def test_property_5_equidistant_functions_form_a_hyperplane(d):
    """d[f, g1] - d[f, g2] = Lf - c is affine in f."""
    g1, g2, f1, f2 = functions(4, 18)
    constant = (
        d.phi(g1, INTERVAL) - d.phi(g2, INTERVAL) - d.derivative(g1, g1, INTERVAL) + d.derivative(g2, g2, INTERVAL)
    )
    for f in (f1, f2, 0.4 * f1 + 0.6 * f2):
        difference = d(f, g1, INTERVAL) - d(f, g2, INTERVAL)
        L = d.derivative(g2, f, INTERVAL) - d.derivative(g1, f, INTERVAL)
        assert difference == pytest.approx(L - constant, abs=1e-10)


@pytest.mark.parametrize(
    ("loss", "is_bregman"),
    [
        (lambda f, g: relative_entropy(f, g, INTERVAL), True),
        (lambda f, g: ITAKURA_SAITO(f, g, INTERVAL), True),
        (lambda f, g: relative_entropy(g, f, INTERVAL), False),
        (lambda f, g: INTERVAL.integrate((np.sqrt(f) - np.sqrt(g)) ** 2), False),
    ],
    ids=["relative entropy", "Itakura-Saito", "reversed", "Hellinger"],
)
def test_converse_a_loss_is_the_divergence_of_its_first_argument(loss, is_bregman):
    """T(u) + T(v) + T(-u - v) = 0, and R is the divergence of R[., g0]: for Bregman divergences only."""
    x = INTERVAL.nodes
    m, g0, a = 2 + np.cos(3 * x), 1 + x, 0.5 * np.sin(5 * x + 5)
    u, v = 0.5 * np.sin(x + 1), 0.5 * np.sin(3 * x + 3)

    def T(w, h=1e-5):
        return (loss(m + w, m + h * a) - loss(m + w, m - h * a)) / (2 * h)

    scale = max(abs(T(w)) for w in (u, v, u + v))
    assert (abs(T(u) + T(v) + T(-u - v)) < 1e-5 * scale) == is_bregman
    h, off = 1e-4, []
    for w in (u, v, -u, -v):
        slope = (loss(m + h * w, g0) - loss(m - h * w, g0)) / (2 * h)
        off.append(abs((loss(m + w, g0) - loss(m, g0) - slope) / loss(m + w, m) - 1))
    assert (max(off) < 1e-5) == is_bregman


def test_best_estimate_on_a_box_is_the_product():
    """1 - (1 - 1/(2n - 1))^2 on a rectangle with two ends known: int g^2 - 2 int_box g + 1 with M drawn."""
    draws, runs = 6, 100_000
    M = np.random.default_rng(51).uniform(size=(runs, 2)) ** (1 / draws)
    for N, is_best in ((draws - 1, True), (draws, False), (draws - 2, False)):
        square = np.prod(2 * N**2 / ((N + 1) * (2 * N + 1) * M), axis=1)
        inside = np.prod(1 - M**N / (N + 1), axis=1)
        errors = square - 2 * inside + 1
        gap = errors.mean() - (1 - (1 - 1 / (2 * draws - 1)) ** 2)
        noise = errors.std() / np.sqrt(runs)
        assert abs(gap) < 4 * noise if is_best else gap > 4 * noise


def posterior_curvature(S, P):
    """−∇²CLL = Σ_i Cov s(x_i, y) under the posteriors."""
    mean = np.einsum("iy,iyk->ik", P, S)
    return np.einsum("iy,iyk,iyl->kl", P, S, S) - mean.T @ mean


def posteriors(model, X, theta):
    joint = model.log_joint(X, theta)
    return np.exp(log_posterior(joint, model.family_.log_class_probabilities(theta)))


@pytest.mark.parametrize("name", ["CategoricalNB", "MultinomialNB"])
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_curvature_is_at_most_d_plus_one_times_what_posteriors_count(name, scale):
    """−∇²CLL ⪯ (d + 1) diag s(X, P), at any model (proposition on the measure of cells, part 1)."""
    model, X, _, _ = fitted(name)
    S = row_statistics(model, X, 3)
    d = X.shape[1] if name == "CategoricalNB" else X[0].sum()
    for seed in range(5):
        eta = model.family_.natural_parameters(model.parameters_)
        eta = eta + scale * random_direction(eta, np.random.default_rng(seed))
        P = posteriors(model, X, model.family_.from_natural(eta))
        root = 1 / np.sqrt(model.statistics(X, P).ravel())
        largest = np.linalg.eigvalsh(posterior_curvature(S, P) * root[:, None] * root)[-1]
        assert largest <= d + 1
        assert largest > 0.3 * (d + 1)  # the bound is of the right size


@pytest.mark.parametrize("name", ["CategoricalNB", "LDA"])
def test_weights_lead_to_the_limit_of_calibration(name):
    """With the generative target η_b tends to the limit of RC as b → 0 (the same corollary, part 2)."""
    X, y = rows_for(name)
    rc = RiskCalibration.as_published(clone(ML[name]), learning_rate=0.3, max_iter=1500, stopping="none").fit(X, y)
    limit = rc.estimator_.family_.mean_parameters(rc.estimator_.parameters_)
    off = []
    for b in (0.1, 0.01, 0.001):
        best = ConditionalLikelihood(clone(ML[name]), target="generative", target_weight=b, tol=1e-8).fit(X, y)
        mu = best.estimator_.family_.mean_parameters(best.estimator_.parameters_)
        off.append(np.abs((mu - limit).ravel()).max())
    assert off[2] < 0.2 * off[1] < 0.1 * off[0]


@pytest.mark.parametrize("name", ["CategoricalNB", "QDA"])
def test_safe_steps_reduce_what_is_missing_by_a_factor(name):
    """max F − F(η_t) ≤ q^⌊t/3⌋ [max F − F(η_0)], and η_t converges (theorem on the safe step, part 4)."""
    X, y = rows_for(name) if name == "CategoricalNB" else gaussian_rows(n=300, d=2, seed=2)
    paths = [RiskCalibration(clone(ML[name]), max_iter=T, **SAFE).fit(X, y) for T in (6, 12, 24, 80)]
    loss = paths[-1].history_.log_loss.to_numpy()
    missing = (loss - loss[-1])[:40:3]
    seen = missing[missing > 1e-9]
    assert len(seen) > 2
    assert np.all(seen[1:] < 0.9 * seen[:-1])
    etas = [f.estimator_.family_.natural_parameters(f.estimator_.parameters_).ravel() for f in paths]
    apart = [np.linalg.norm(eta - etas[-1]) for eta in etas[:-1]]
    assert apart[2] < 0.1 * apart[0]


@pytest.mark.parametrize("name", [*GAUSSIAN, *COUNTS])
def test_a_plain_step_of_any_rate_changes_the_model(name):
    """Unless the gradient is zero (theorem on the safe step, part 3)."""
    model, X, _, Y = fitted(name)
    rng, s = np.random.default_rng(3), model.statistics_
    m = Y.sum()
    for lr in (1e-3, 0.3, 3.0):
        W = Y - softmax(rng.standard_normal(Y.shape), axis=1)
        change = model.family_.precondition(s, model.statistics(X, Y - W), lr * model.statistics(X, W))
        after = model.parameters(model.family_.safe_update(s, change))
        d_mu = model.family_.mean_parameters(after) - s / m
        d_eta = model.family_.natural_parameters(after) - model.family_.natural_parameters(model.parameters_)
        assert d_mu.dot(d_eta) > 1e-3 * min(lr, 1.0) ** 2 * np.sum((model.statistics(X, W) / m).ravel() ** 2)
