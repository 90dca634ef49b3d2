"""Bregman divergences: thesis2007 chapter 2 (equations named in the tests) and the identities all obey."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import refused
from scipy import integrate, stats
from scipy.special import expit, rel_entr
from sklearn.utils.estimator_checks import check_estimator

from rcpkg.bregman import (
    BregmanClustering,
    BregmanDivergence,
    DomainError,
    Generator,
    Interval,
    ProjectionError,
    divergences,
    gaussian_kl,
    mahalanobis,
)

MATRIX = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])
ALL = [*divergences.values(), mahalanobis(MATRIX)]
IDS = [*divergences, "mahalanobis(A)"]
each_divergence = pytest.mark.parametrize("d", ALL, ids=IDS)
DIM = 3


def draw(d, size, seed):
    """Interior points of the domain of a divergence."""
    rng = np.random.default_rng(seed)
    if d.domain.event_ndim == 2:
        root = rng.normal(size=(size, DIM, DIM + 3))
        return root @ root.mT / DIM
    z = rng.normal(size=(size, DIM))
    if d.name == "kl":
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    if d.name == "logistic":
        return expit(z)
    return np.exp(z) if d.domain == divergences[d.name].domain and d.domain.lower == 0 else z


def inner(u, v, d):
    return np.sum(u * v, axis=tuple(range(-d.domain.event_ndim, 0)))


@each_divergence
def test_closed_form_is_the_definition_2_10(d):
    x, y = draw(d, 50, 1), draw(d, 50, 2)
    definition = d.phi(x) - d.phi(y) - inner(d.grad(y), x - y, d)
    np.testing.assert_allclose(d(x, y), definition, rtol=1e-9, atol=1e-9)


@each_divergence
@pytest.mark.parametrize("side", ["generator", "conjugate"])
def test_hessian_is_the_derivative_of_the_gradient(d, side):
    x, v = draw(d, 1, 6)[0], (draw(d, 1, 7) - draw(d, 1, 8))[0]
    generator = getattr(d, side)
    x = x if side == "generator" else d.grad(x)
    eps = 1e-6
    slope = (generator.grad(x + eps * v) - generator.grad(x - eps * v)) / (2 * eps)
    np.testing.assert_allclose(generator.hessian(x, v), slope, rtol=1e-6, atol=1e-6)


@each_divergence
def test_legendre_pair_and_dual_divergence(d):
    """phi(x) + phi*(grad phi(x)) = <x, grad phi(x)>, grad phi* inverts it, d(x, y) = d*(grad y, grad x)."""
    x, y = draw(d, 30, 17), draw(d, 30, 18)
    u, v = d.grad(x), d.grad(y)
    dual = d.dual()
    np.testing.assert_allclose(dual.grad(u), x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(d.phi(x) + dual.phi(u), inner(x, u, d), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dual(v, u), d(x, y), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(dual.dual()(x, y), d(x, y), rtol=1e-8, atol=1e-8)


@each_divergence
def test_mean_minimises_the_expected_divergence_theorem_2_3_1(d):
    """The Pythagorean form E d(X, s) = E d(X, EX) + d(EX, s) of Theorem 2.3.1, (2.11)."""
    x, s = draw(d, 12, 19), draw(d, 40, 20)
    w = np.random.default_rng(21).dirichlet(np.ones(12))
    mean = d.centroid(x, w)
    np.testing.assert_allclose(mean, np.tensordot(w, x, axes=1))
    expected = w @ d(x[:, None], s[None])
    np.testing.assert_allclose(expected, d.information(x, w) + d(mean, s), rtol=1e-9)
    assert np.all(expected > d.information(x, w))
    np.testing.assert_allclose(d.information(x, w), w @ d.phi(x) - d.phi(mean), rtol=1e-8)


@each_divergence
def test_right_centroid_minimises_and_is_the_dual_mean(d):
    x, w = draw(d, 12, 22), np.arange(1.0, 13.0)
    c = d.centroid(x, w, side="right")
    shift = d.grad(c) - d.dual().centroid(d.grad(x), w)
    # gradients on the simplex are defined up to a constant
    np.testing.assert_allclose(shift - (shift.mean() if d.name == "kl" else 0), 0, atol=1e-12)
    others = c + 0.02 * (draw(d, 40, 23) - c)
    assert np.all(np.tensordot(w, d(others[None], x[:, None]), axes=1) > w @ d(c, x))


@each_divergence
def test_projection_onto_affine_sets_is_pythagorean(d):
    x, y = draw(d, 5, 26), draw(d, 1, 27)[0]
    rng = np.random.default_rng(28)
    A = rng.normal(size=(2, *y.shape))
    if y.ndim == 2:
        A = A + A.mT
    if d.name == "kl":
        A = A[:1]
    b = np.array([np.sum(a * x[0]) for a in A])
    p = d.project(y, A, b)
    np.testing.assert_allclose([np.sum(a * p) for a in A], b, atol=1e-8)
    np.testing.assert_allclose(d(x[0], y), d(x[0], p) + d(p, y), rtol=1e-7)
    assert d(p, y) <= d(x[0], y)


def test_impossible_projection_is_an_error():
    with pytest.raises(ProjectionError, match="no projection found"):
        divergences["itakura_saito"].project([1.0, 1.0], [1.0, 1.0], -1.0)
    refused("one constraint a row", divergences["squared"].project, [1.0, 1.0], [[1.0, 1.0]], [1.0, 2.0])


# ---- values and boundaries ---------------------------------------------------------------------------------


def test_boundary_conventions():
    kl, logistic, generalized_i = (divergences[k] for k in ("kl", "logistic", "generalized_i"))
    assert kl([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]) == pytest.approx(rel_entr([0.5, 0.5], [0.25, 0.75]).sum())
    assert kl([0.0, 1.0], [0.5, 0.5]) == pytest.approx(np.log(2))
    assert kl([0.5, 0.5], [0.0, 1.0]) == np.inf
    assert logistic(1.0, 0.5) == pytest.approx(np.log(2)) and logistic(0.0, 0.0) == 0
    assert generalized_i([0.0, 2.0], [3.0, 2.0]) == 3.0
    assert divergences["squared"]([1.0, 3.0], [2.0, 1.0]) == 5
    assert mahalanobis(MATRIX)(np.eye(3)[0], 0 * MATRIX[0]) == pytest.approx(2.0)
    singular = np.diag([1.0, 0.0])
    assert divergences["von_neumann"](singular, np.eye(2)) == pytest.approx(1.0)
    assert divergences["von_neumann"].phi(singular) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("name", "x", "y", "message"),
    [
        ("kl", [[0.5, 0.5], [0.5, -0.5]], [0.5, 0.5], r"kl: x\[1, 1\] = -0.5"),
        ("kl", [0.5, 0.4], [0.5, 0.5], r"sums to 0.9, not 1"),
        ("logistic", 0.5, 1.5, r"logistic: y\[0\] = 1.5"),
        ("itakura_saito", [1.0, 0.0], [1.0, 1.0], r"itakura_saito: x\[1\] = 0"),
        ("squared", [1.0, np.nan], [1.0, 1.0], r"squared: x\[1\] = nan"),
        ("log_det", np.diag([1.0, 0.0]), np.eye(2), r"the matrix log_det: x\[\] is not positive definite"),
        ("von_neumann", np.eye(2), np.diag([1.0, 0.0]), r"y\[\] is not positive definite"),
        ("von_neumann", np.diag([1.0, -1.0]), np.eye(2), r"x\[\] is not positive semi-definite"),
        ("log_det", [[1.0, 0.5], [0.0, 1.0]], np.eye(2), "not symmetric"),
        ("log_det", np.ones((2, 3)), np.eye(2), "square"),
        ("squared", [1.0, 2.0], [1.0, 2.0, 3.0], "differ in dimension"),
        ("log_det", [1.0, 2.0], np.eye(2), "at least 2 axes"),
    ],
)
def test_domain_violations_name_the_entry(name, x, y, message):
    refused(message, divergences[name], x, y)


def test_bad_arguments():
    d = divergences["squared"]
    refused("side must be", d.centroid, [[1.0]], side="middle")
    refused("weights must be 2", d.centroid, [[1.0], [2.0]], [1.0, -1.0])
    with pytest.raises(DomainError, match="not positive definite"):
        mahalanobis(np.diag([1.0, 0.0]))
    refused("no divergence is called 'cosine'", BregmanClustering(divergence="cosine").fit, np.ones((9, 2)))
    bare = BregmanDivergence("quartic", Generator(lambda x: np.sum(x**4, -1), lambda x: 4 * x**3, None, Interval()))
    assert bare(1.0, 2.0) == pytest.approx(1 - 16 + 32)
    refused("needs the conjugate", bare.dual)


@given(st.floats(1e-6, 1e6), st.floats(-0.099, 0.099))
@settings(deadline=None, max_examples=200)
def test_relative_precision_near_the_diagonal(y, u):
    """Against mpmath: (2.10) loses all digits near x = y, the closed forms do not."""
    x = y * (1 + u)
    with mp.workdps(60):
        X, Y = mp.mpf(x), mp.mpf(y)
        exact_i = X * mp.log(X / Y) - X + Y
        exact_is = X / Y - mp.log(X / Y) - 1
    assert divergences["generalized_i"](x, y) == pytest.approx(float(exact_i), rel=1e-13)
    assert divergences["itakura_saito"](x, y) == pytest.approx(float(exact_is), rel=1e-13)


@given(st.floats(-800, 800), st.floats(-800, 800))
@settings(deadline=None, max_examples=50)
def test_exponential_divergence_never_is_nan(x, y):
    with mp.workdps(800):
        X, Y = mp.mpf(x), mp.mpf(y)
        exact = float(mp.e**X - mp.e**Y - (X - Y) * mp.e**Y)
    assert divergences["exponential"](x, y) == pytest.approx(exact, rel=1e-12, abs=1e-320)


# ---- matrices and Gaussians --------------------------------------------------------------------------------


def test_matrix_divergences_of_diagonals_are_the_scalar_ones():
    rng = np.random.default_rng(1)
    a, b = np.exp(rng.normal(size=(2, 5)))
    assert divergences["log_det"](np.diag(a), np.diag(b)) == pytest.approx(divergences["itakura_saito"](a, b))
    assert divergences["von_neumann"](np.diag(a), np.diag(b)) == pytest.approx(divergences["generalized_i"](a, b))


def test_gaussian_kl_against_quadrature():
    mean_0, mean_1 = np.array([0.3, -0.2]), np.array([-0.4, 0.5])
    cov_0, cov_1 = np.array([[1.0, 0.3], [0.3, 0.6]]), np.array([[0.8, -0.1], [-0.1, 1.5]])
    p, q = stats.multivariate_normal(mean_0, cov_0), stats.multivariate_normal(mean_1, cov_1)
    grid = np.linspace(-9, 9, 361)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    integrand = p.pdf(points) * (p.logpdf(points) - q.logpdf(points))
    quadrature = integrate.trapezoid(integrate.trapezoid(integrand, grid), grid)
    assert gaussian_kl(mean_0, cov_0, mean_1, cov_1) == pytest.approx(quadrature, rel=1e-9)
    wide, standard = stats.norm(1, 2), stats.norm(0, 1)
    one = integrate.quad(lambda t: wide.pdf(t) * (wide.logpdf(t) - standard.logpdf(t)), -40, 40)
    assert gaussian_kl([1.0], [[4.0]], [0.0], [[1.0]]) == pytest.approx(one[0], rel=1e-8)
    assert gaussian_kl(np.zeros((4, 2)), cov_0, mean_1, cov_1).shape == (4,)


# ---- scikit-learn ------------------------------------------------------------------------------------------


def test_clustering_is_check_estimator_clean():
    results = check_estimator(BregmanClustering(n_init=2), on_skip=None)
    passed = [r["check_name"] for r in results if r["status"] == "passed"]
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert len(passed) >= 45 and skipped <= {"check_array_api_input"}


@pytest.mark.parametrize("name", ["kl", "itakura_saito", "generalized_i", "logistic"])
def test_clustering_finds_separated_groups_and_centres_are_means(name):
    rng = np.random.default_rng(5)
    X = np.concatenate(
        [rng.dirichlet(100 * np.asarray(a), size=30) for a in ([0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8])]
    )
    model = BregmanClustering(n_clusters=3, divergence=name, random_state=0).fit(X)
    assert sorted(np.bincount(model.labels_)) == [30, 30, 30]
    for k in range(3):
        np.testing.assert_allclose(model.cluster_centers_[k], X[model.labels_ == k].mean(axis=0))


def test_clustering_sparse_counts_and_weights():
    rng = np.random.default_rng(6)
    X = rng.dirichlet(np.full(5, 0.05), size=60)
    X[X < 1e-3] = 0
    X /= X.sum(axis=1, keepdims=True)
    model = BregmanClustering(n_clusters=4, divergence="kl", random_state=1).fit(X)
    assert np.isfinite(model.inertia_) and np.all(np.bincount(model.labels_, minlength=4) > 0)
    w = rng.integers(0, 3, size=60)
    weighted = BregmanClustering(n_clusters=2, divergence="kl", random_state=1, n_init=20).fit(X, sample_weight=w)
    repeated = BregmanClustering(n_clusters=2, divergence="kl", random_state=1, n_init=20).fit(np.repeat(X, w, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


def test_clustering_refuses_bad_input():
    with pytest.raises(DomainError, match=r"itakura_saito: X\[1, 0\]"):
        BregmanClustering(n_clusters=1, divergence="itakura_saito").fit([[1.0], [-1.0]])
    refused("n_clusters=9", BregmanClustering(n_clusters=9).fit, np.ones((3, 2)))
    for name, value in {"n_clusters": 2.5, "n_init": 0, "max_iter": -1, "tol": -1.0}.items():
        refused(f"{name} must be", BregmanClustering(**{"n_clusters": 1, name: value}).fit, np.ones((3, 2)))
    refused("X holds 1e.200 in feature 0, whose square overflows", BregmanClustering(n_clusters=1).fit, [[1e200]])
    clusters = BregmanClustering(n_clusters=1).fit([[0.0], [1.0]])
    for method in (clusters.predict, clusters.transform, clusters.score):
        refused("X holds 1e.200 in feature 0, whose square overflows", method, [[1e200]])
    refused("no divergence is called None", BregmanClustering(n_clusters=1, divergence=None).fit, np.ones((3, 2)))
