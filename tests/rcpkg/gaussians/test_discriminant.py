"""RDA, the fourteen EDDA models, nearest means, and the printed tables' rule for singular LDA and QDA."""

import numpy as np
import pytest
from model_cases import breaking_problem, refused, slow
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from sklearn.datasets import load_iris

from rcpkg import EDDA, RDA, NearestMeans
from rcpkg.gaussians import (
    EDDA_MODELS,
    FRIEDMAN_GAMMA,
    FRIEDMAN_LAMBDA,
    Sample,
    class_statistics,
    edda_covariances,
    shrunken_covariances,
)
from rcpkg.gaussians.discriminant import ShrunkenGrid

IRIS = load_iris(return_X_y=True)


def test_statistics_4_5_4_6():
    X, y = IRIS
    counts, means, scatters = class_statistics(X, y, 4)
    assert list(counts) == [50, 50, 50, 0] and (scatters[3] == 0).all()
    assert_allclose(means[1], X[y == 1].mean(axis=0))
    assert_allclose(scatters[1] / 50, np.cov(X[y == 1].T, bias=True))
    X = X.copy()
    X[y == 0, 2] = 0.1
    assert class_statistics(X, y, 3).scatters[0][2, 2] == 0


# ---------------------------------------------------------------- RDA


def test_5_1_5_2():
    X, y = IRIS
    statistics = class_statistics(X[:120], y[:120], 3)
    S, n, d = statistics.scatters, statistics.counts, 4
    for lam in FRIEDMAN_LAMBDA:
        for gamma in FRIEDMAN_GAMMA:
            for h, ours in enumerate(shrunken_covariances(statistics, lam, gamma)):
                sigma = ((1 - lam) * S[h] + lam * S.sum(axis=0)) / ((1 - lam) * n[h] + lam * n.sum())
                assert_allclose(ours, (1 - gamma) * sigma + gamma / d * np.trace(sigma) * np.eye(d))
    corners = [shrunken_covariances(statistics, lam, 0.0) for lam in (0, 1)]
    assert_allclose(corners[0], S / n[:, None, None])
    assert_allclose(corners[1][2], S.sum(axis=0) / 120)
    density = ShrunkenGrid([0.354], [0.25]).class_densities(statistics, None, X[:5])[0, 0]
    for h, sigma in enumerate(shrunken_covariances(statistics, 0.354, 0.25)):
        assert_allclose(density[:, h], stats.multivariate_normal(statistics.means[h], sigma).logpdf(X[:5]))


GRID = ShrunkenGrid(FRIEDMAN_LAMBDA, FRIEDMAN_GAMMA)


def rda_refits(X, y, n_classes):
    fits = (class_statistics(np.delete(X, i, axis=0), np.delete(y, i), n_classes) for i in range(len(X)))
    return np.stack([GRID.class_densities(fit, None, X[i : i + 1])[:, :, 0] for i, fit in enumerate(fits)], axis=2)


def rda_left_out(sample):
    return GRID.left_out(sample, np.arange(len(sample.X)))


@pytest.mark.parametrize("block", [0, *slow(1, 2, 3)])
def test_rda_loo_equals_refits_on_forty_problems(block):
    for trial in range(10 * block, 10 * block + 10):
        X, y, r, _ = breaking_problem(trial)
        fast, slow = rda_left_out(Sample(X, y, r)), rda_refits(X, y, r)
        finite = np.isfinite(slow)
        assert (np.isfinite(fast) == finite).all()
        assert_allclose(fast[finite], slow[finite], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- EDDA


def scatters(counts=(15, 22, 31), d=4, random_state=0):
    rng = np.random.default_rng(random_state)
    rows = [rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) + 2 * np.eye(d)) for n in counts]
    return np.array(counts, dtype=float), np.stack([A.T @ A for A in rows])


def criterion(covariances, counts, W):
    """-2 log-likelihood per row, up to a constant."""
    terms = [np.trace(np.linalg.solve(S, w)) + n * np.linalg.slogdet(S)[1] for S, n, w in zip(covariances, counts, W)]
    return sum(terms) / counts.sum()


def decompose(covariances):
    values, axes = np.linalg.eigh(covariances)
    volume = np.exp(np.log(values).mean(axis=1))
    return volume, values / volume[:, None], axes


@pytest.mark.parametrize("model", EDDA_MODELS)
def test_edda_models_satisfy_their_constraints(model):
    counts, W = scatters()
    covariances, feasible = edda_covariances(counts, W, model)
    volume, shape, _ = decompose(covariances)
    assert feasible
    if model[0] == "E":
        assert_allclose(volume, volume[0], rtol=1e-8)
    if model[1] == "E" or model[1] == "I":
        assert_allclose(shape, np.broadcast_to(shape[0] if model[1] == "E" else 1.0, shape.shape), rtol=1e-7)
    if model[2] == "I":
        assert_allclose(covariances, covariances * np.eye(4))
    if model[2] == "E":
        assert_allclose(covariances[0] @ covariances[1], covariances[1] @ covariances[0], rtol=1e-5, atol=1e-7)
    # at a scale-free maximum the traces add up to n d, whatever the model
    trace = sum(np.trace(np.linalg.solve(S, w)) for S, w in zip(covariances, W))
    assert_allclose(trace, counts.sum() * 4, rtol=1e-6)


@pytest.mark.parametrize("model", ["VEI", "VEE", "VEV", "EVE", "VVE"])
def test_iterative_edda_models_against_numerical_optimisation(model):
    """Free parameters: log volumes, log shapes, rotations as exponentials of skew matrices; d = 2, three classes."""
    counts, W = scatters((8, 9, 12), 2, 3)

    def unpack(v):
        log_volume, log_shape, angles = v[:3], v[3:6], v[6:9]
        out = []
        for h in range(3):
            s = log_shape[h] if model[1] == "V" else log_shape[0]
            t = {"I": 0.0, "E": angles[0], "V": angles[h]}[model[2]]
            D = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
            size = log_volume[h] if model[0] == "V" else log_volume[0]
            out.append(np.exp(size) * (D * np.exp([s, -s])) @ D.T)
        return np.stack(out)

    rng = np.random.default_rng(0)
    best = min(
        minimize(lambda v: criterion(unpack(v), counts, W), rng.normal(size=9), method="BFGS").fun for _ in range(3)
    )
    assert_allclose(criterion(edda_covariances(counts, W, model)[0], counts, W), best, atol=1e-6)


def test_edda_of_absent_classes():
    counts, W = scatters()
    absent, W_absent = counts * [0, 1, 1], W * np.reshape([0, 1, 1], (3, 1, 1))
    for model in EDDA_MODELS:
        batch, feasible = edda_covariances(np.stack([counts, absent]), np.stack([W, W_absent]), model, 1e-13)
        assert feasible.all()
        alone = edda_covariances(counts[1:], W[1:], model, 1e-13)[0]
        assert_allclose(criterion(batch[1][1:], counts[1:], W[1:]), criterion(alone, counts[1:], W[1:]), rtol=1e-8)


def test_edda_of_features_of_any_scale():
    X, y = IRIS
    assert EDDA().fit(X * [1e-120, 1e120, 1.0, 1.0], y).score(X * [1e-120, 1e120, 1.0, 1.0], y) > 0.9


def test_edda_infeasible_models():
    counts, W = scatters((3, 30, 40), 4)  # the first class has fewer rows than features
    feasible = {model: bool(edda_covariances(counts, W, model)[1]) for model in EDDA_MODELS}
    assert {model for model in EDDA_MODELS if not feasible[model]} == {"EVE", "VVE", "EVV", "VVV"}
    W[:, 0] = W[:, :, 0] = 0  # a constant feature
    feasible = {model for model in EDDA_MODELS if edda_covariances(counts, W, model)[1]}
    assert feasible == {"EII", "VII"}
    refused("model must be", edda_covariances, counts, W, "XXX")
    refused("models must be", EDDA(models=("EEE", "XXX")).fit, *IRIS)


def test_edda_likelihood_without_bound():
    """Classes of 2 rows and one of 5 in five dimensions: where C shrinks by epsilon in the three directions that the
    small classes do not see, -2 log-likelihood of VEE falls by (27 - 25) log epsilon, so there is no maximum."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [5, 2, 2])
    n, _, W = class_statistics(rng.standard_normal((9, 5)), y, 3)
    unseen = np.linalg.svd(W[1] + W[2])[0][:, 2:]
    criterion = []
    for epsilon in (1e-6, 1e-8):
        C = np.eye(5) - (1 - epsilon) * unseen @ unseen.T
        volumes = np.trace(np.linalg.solve(C, W), axis1=1, axis2=2) / (5 * n)
        criterion.append((5 * n * np.log(volumes)).sum() + n.sum() * np.linalg.slogdet(C)[1])
    assert_allclose(np.diff(criterion) / np.log(1e-2), 27 - 25, rtol=1e-4)
    for model in ("VEE", "VEV"):
        batch = np.stack([W, 2 * W]), np.stack([n, n])
        _, feasible = edda_covariances(batch[1], batch[0], model, max_iter=5_000)
        assert not feasible.any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", [1e-12, 1e-60, 1e60])
def test_full_covariances_keep_their_digits_in_any_units(unit):
    n, W = scatters()
    scale = np.array([1.0, unit, 1.0, 1.0])
    for model in EDDA_MODELS:
        found, feasible = edda_covariances(n, W * np.outer(scale, scale), model)
        assert not feasible or np.isfinite(found).all()
        if model in ("EEE", "VVV"):
            expected = edda_covariances(n, W, model)[0]
            assert feasible
            assert_allclose(found / np.outer(scale, scale), expected, rtol=1e-12)


def test_no_covariance_that_rounding_leaves_hardly_definite_ends_the_choice():
    """In such units the axes of a model lose the smallest variance: its correlations are one but for rounding."""
    for seed in (36, 40, 44, 48, 59):
        X = np.random.default_rng(seed).normal(size=(30, 3)) * [1e-12, 1.0, 1e12]
        assert np.isfinite(EDDA().fit(X, np.arange(30) % 2).predict_proba(X)).all()


def test_a_problem_is_solved_alike_in_every_batch():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [12, 9, 15])
    parts = [class_statistics(rng.standard_normal((36, 3)) * [1, 2, 5], y, 3) for _ in range(4)]
    counts, scatters = np.stack([part.counts for part in parts]), np.stack([part.scatters for part in parts])
    for model in EDDA_MODELS:
        together = edda_covariances(counts, scatters, model)[0]
        alone = [edda_covariances(part.counts, part.scatters, model)[0] for part in parts]
        assert_allclose(together, alone, rtol=1e-10)


# ---------------------------------------------------------------- densities of the chosen models


def test_densities_are_those_of_the_chosen_covariances():
    X, y = IRIS
    rda, edda = RDA(lambdas=(0.5,), gammas=(0.1, 0.3)).fit(X, y), EDDA().fit(X, y)
    counts, means, scatters = rda.statistics_
    covariances = shrunken_covariances(rda.statistics_, 0.5, rda.gamma_)
    for model, scales in (rda, covariances), (edda, edda_covariances(counts, scatters, edda.model_)[0]):
        expected = [stats.multivariate_normal(m, S).logpdf(X) for m, S in zip(means, scales)]
        assert_allclose(model.predict_joint_log_proba(X) - model.class_log_prior_, np.transpose(expected), rtol=1e-9)


# ---------------------------------------------------------------- nearest means and the degenerate rule


def test_nearest_means():
    X, y = IRIS
    model = NearestMeans().fit(X, y)
    means = np.stack([X[y == h].mean(axis=0) for h in range(3)])
    assert (model.predict(X) == np.argmin(((X[:, None] - means) ** 2).sum(axis=2), axis=1)).all()
    density = stats.multivariate_normal(means[0], model.variance_ * np.eye(4)).logpdf(X)
    assert_allclose(model.predict_joint_log_proba(X)[:, 0], density - np.log(3))
    assert NearestMeans().fit([[0.0], [0.0], [2.0]], [0, 0, 1]).variance_ == 1.0
