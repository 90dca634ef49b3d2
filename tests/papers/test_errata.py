"""Evidence for entries of book/errata.md that a few lines of arithmetic settle; and that no entry is without any."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rcbook import datasets, published
from scipy.integrate import quad
from scipy.linalg import toeplitz
from scipy.special import log_softmax, softmax
from scipy.stats import beta, norm
from sklearn.datasets import load_iris

from rcpkg import QDA, InvalidStatistics, SharedVarianceGaussianNB
from rcpkg.gaussians import Sample
from rcpkg.gaussians.bayesian import PredictiveGrid
from rcpkg.gaussians.discriminant import FRIEDMAN_GAMMA, FRIEDMAN_LAMBDA, ShrunkenGrid
from rcpkg.gaussians.grid import BDA7_SEEDS

ROOT = Path(__file__).resolve().parents[2]

X, y = load_iris(return_X_y=True)
CLASSES = [X[y == h] for h in range(3)]


def test_weights_of_the_closed_form_logistic_regression():
    """rc2024 eq. (7): theta = mu/sigma² without a logarithm, and c = Σ mu²/(2 sigma²), whose half is missing."""
    model = SharedVarianceGaussianNB().fit(X, y)
    means = np.array([rows.mean(axis=0) for rows in CLASSES])
    variance = (X**2).mean(axis=0) - (means**2).mean(axis=0)
    linear = X @ (means / variance).T
    posterior = model.predict_proba(X)
    np.testing.assert_allclose(softmax(linear - (means**2 / variance).sum(axis=1) / 2, axis=1), posterior, atol=1e-9)
    as_printed = softmax(X @ (np.log(means) / variance).T - (means**2 / variance).sum(axis=1), axis=1)
    assert np.abs(as_printed - posterior).max() > 0.5
    without_half = softmax(linear - (means**2 / variance).sum(axis=1), axis=1)
    assert np.abs(without_half - posterior).max() > 0.5


@pytest.mark.needs_data
@pytest.mark.parametrize(
    "name, variant", [("blood_transfusion", "rc2024"), ("redwine", "rc2024"), ("optdigits", "rc2025")]
)
def test_qda_by_maximum_likelihood_does_not_exist(name, variant):
    """rc2024 Table IV, rc2025 Table 5 print errors of QDA where some class has a singular covariance matrix."""
    bunch = datasets.load(name, variant)
    scaled = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    ranks = [np.linalg.matrix_rank(np.cov(scaled[bunch.target == h].T)) for h in bunch.target_names]
    assert min(ranks) < bunch.data.shape[1]
    with pytest.raises(InvalidStatistics):
        QDA(singular_ridge=0.0).fit(scaled, bunch.target)


@pytest.mark.needs_data
def test_one_column_of_blood_transfusion_is_a_multiple_of_another():
    data = datasets.load("blood_transfusion", "rc2024").data
    np.testing.assert_array_equal(data[:, 2], 250 * data[:, 1])


# Slips found later ----------------------------------------------------------------------------------


def test_entropy_rate_is_half_of_the_printed_functional():
    """thesis2007 §2.3, Example 3: of an autoregressive process, whose entropy rate is that of its innovations."""
    coefficient, variance = 0.6, 2.0
    angle = np.linspace(-np.pi, np.pi, 4096, endpoint=False)
    spectrum = variance / np.abs(1 - coefficient * np.exp(1j * angle)) ** 2
    phi = -np.mean(np.log(spectrum))
    autocovariance = variance / (1 - coefficient**2) * coefficient ** np.arange(8)
    log_det = [np.linalg.slogdet(toeplitz(autocovariance[:n]))[1] for n in (7, 8)]
    entropy_rate = 0.5 * np.log(2 * np.pi * np.e) + 0.5 * (log_det[1] - log_det[0])
    assert phi == pytest.approx(-2 * (entropy_rate - 0.5 * np.log(2 * np.pi * np.e)), abs=1e-9)
    assert abs(phi + (entropy_rate - 0.5 * np.log(2 * np.pi * np.e))) > 0.3


def test_a_large_eigenvalue_that_is_not_the_largest_can_be_underestimated():
    """thesis2007 after (4.9): of (4, 3.5, 0.1) only the first is overestimated, though the second is large, too."""
    true, n, rng = np.array([4.0, 3.5, 0.1]), 51, np.random.default_rng(0)
    rows = rng.standard_normal((4000, n, 3)) * np.sqrt(true)
    centred = rows - rows.mean(axis=1, keepdims=True)
    eigenvalues = np.linalg.eigvalsh(np.einsum("kni,knj->kij", centred, centred) / (n - 1))[:, ::-1]
    excess = (eigenvalues.mean(axis=0) - true) / (eigenvalues.std(axis=0) / np.sqrt(len(rows)))
    assert excess[0] > 10 and excess[1] < -10 and true[1] > true.mean()


def test_a_density_may_exceed_one_and_the_measure_is_infinite():
    """thesis2007 §4.4.1, (4.16), (5.10) in one dimension: the measure is dμ dσ²/σ³."""
    assert norm.pdf(0.0, scale=0.1) > 1
    masses = [quad(lambda v: v**-1.5, low, 1.0)[0] for low in (1e-2, 1e-4, 1e-6)]
    assert np.all(np.diff(masses) > 0) and masses[-1] == pytest.approx(2 * (1e3 - 1), rel=1e-6)


@pytest.mark.needs_data
def test_sonar_has_208_rows_in_all():
    """thesis2007 §5.5.3: "208 training samples and 132 test samples"."""
    assert len(datasets.load("sonar", "thesis2007").target) == 208


def test_ml_is_no_relative_frequency_in_a_smaller_family():
    """thesis2007 §2.1: of an exponential distribution the estimated probability of x > 1 is no share of the sample."""
    sample = np.array([0.2, 0.5, 1.5])
    of_event = np.exp(-1 / sample.mean())
    values = [np.sum(np.log(scale) + sample / scale) for scale in sample.mean() * np.array([0.99, 1.0, 1.01])]
    assert np.argmin(values) == 1 and abs(of_event - np.mean(sample > 1)) > 0.05
    p = np.linspace(0.01, 0.99, 99_999)
    assert p[np.argmax(np.log(p) + 2 * np.log(1 - p))] == pytest.approx(np.mean(sample > 1), abs=1e-4)


def test_bayes_risk_is_the_mean_of_the_posterior_risk():
    """thesis2007 (2.7): for 5 Bernoulli draws the posterior risk depends on the data; its mean is the Bayes risk."""
    k = np.arange(6)
    posterior_risk = beta(k + 1, 6 - k).var()
    assert np.ptp(posterior_risk) > 0.005
    estimate = (k + 1) / 7
    binomial = [1, 5, 10, 10, 5, 1]

    def risk(theta):
        return np.sum(binomial * theta**k * (1 - theta) ** (5 - k) * (theta - estimate) ** 2)

    assert quad(risk, 0, 1)[0] == pytest.approx(posterior_risk.mean())  # each k has the probability 1/6


def test_a_mean_alone_bounds_no_entropy_on_the_line():
    """thesis2007 §6.1.1: of the densities with mean 1 the exponential has entropy 1, normal ones any entropy."""
    assert quad(lambda x: x * np.exp(-x), 0, np.inf)[0] == pytest.approx(1.0)  # -∫ f log f of exp(-x)
    assert norm(1, 10).entropy() > 3 > 1


def test_one_update_can_raise_the_posterior_of_a_wrong_class():
    """rc2025 after (3): naive Bayes with five features, of ten rows a class; the third class is the true one."""
    count, cells = np.full(3, 10.0), np.array([5.0, 2.0, 2.0])  # of the state that the row has, in each feature

    def posterior(count, cells):
        return softmax(np.log(count) + 5 * np.log(cells / count))

    before = posterior(count, cells)
    change = np.eye(3)[2] - before
    after = posterior(count + change, cells + change)
    assert after[2] > before[2] and after[0] < before[0] and after[1] > 1.5 * before[1]
    assert (change[:2] < 0).all()


def test_flooring_singular_values_leaves_negative_eigenvalues():
    """rc2025 appendix B: of an indefinite matrix the printed procedure keeps the negative eigenvalue."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    indefinite = axes @ np.diag([2.0, 1.0, 0.001, -0.5]) @ axes.T
    U, values, V = np.linalg.svd(indefinite)
    as_printed = U @ np.diag(np.maximum(values, 0.01)) @ V
    np.testing.assert_allclose(np.linalg.eigvalsh(as_printed), [-0.5, 0.01, 1.0, 2.0], atol=1e-12)
    eigenvalues, vectors = np.linalg.eigh(indefinite)
    repaired = vectors @ np.diag(np.maximum(eigenvalues, 0.01)) @ vectors.T
    assert np.linalg.eigvalsh(repaired).min() == pytest.approx(0.01)


def printed_columns(table, method):
    """The printed errors of a method, by setting."""
    rows = published.table("thesis2007", table).query("method == @method")
    return rows.set_index(rows.setting_value.astype(int)).value_printed.astype(float)


def test_the_first_term_of_4_3_is_a_squared_distance():
    """thesis2007 (4.3): twice as far is four times as much, against the triangle inequality; its root is a distance."""
    inverse = np.linalg.inv(np.cov(CLASSES[0].T))

    def term(x):
        return x @ inverse @ x

    x = np.array([1.0, -2.0, 0.5, 0.3])
    assert term(2 * x) == pytest.approx(4 * term(x)) and term(2 * x) > term(x) + term(x)
    assert np.sqrt(term(2 * x)) == pytest.approx(2 * np.sqrt(term(x)))


def test_light_tails_do_not_hinder_convergence():
    """thesis2007 §5.1.4, d = 1: a prior exp(-20 v) of a variance, with lighter tails than (4.20), and the truth 1."""
    v = np.linspace(1e-3, 5, 200_001)

    def posterior_mean(n):
        log_density = -n / 2 * (np.log(v) + 1 / v) - 20 * v
        weight = np.exp(log_density - log_density.max())
        return np.sum(v * weight) / np.sum(weight)

    errors = [abs(posterior_mean(n) - 1) for n in (10, 100, 1000, 10_000)]
    assert errors[0] > 0.3 and errors[-1] < 0.01 and np.all(np.diff(errors) < 0)


def test_rda_turns_with_the_axes_and_bda7_does_not():
    """thesis2007 §5.1.2, §5.6: densities of all 25 models of RDA are the same after a rotation, of BDA7's only those of
    the seed that is a multiple of I."""
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    before, after = Sample(X, y, 3), Sample(X @ axes, y, 3)
    grid = ShrunkenGrid(FRIEDMAN_LAMBDA, FRIEDMAN_GAMMA)
    np.testing.assert_allclose(grid.log_density(after, X @ axes), grid.log_density(before, X), rtol=1e-8)
    bda7 = PredictiveGrid(np.array([4.0, 24.0]), BDA7_SEEDS)
    change = np.abs(bda7.log_density(after, X @ axes) - bda7.log_density(before, X)).max(axis=(0, 2, 3))
    assert change[6] < 1e-8 and change[:6].min() > 0.1


def test_volume_and_shape_need_a_normalisation():
    """thesis2007 §5.1.2: lambda and D are not told apart by the covariance; with |D| = 1 they are."""
    covariance = np.cov(CLASSES[0].T)
    values, axes = np.linalg.eigh(covariance)
    for volume in (1.0, 7.0):
        np.testing.assert_allclose(volume * axes @ np.diag(values / volume) @ axes.T, covariance, atol=1e-12)
    volume = np.linalg.det(covariance) ** 0.25
    assert np.prod(values / volume) == pytest.approx(1)


def test_functions_of_norm_one_have_no_mean_among_them():
    """thesis2007 §5.3: for p = 2 the mean of two positive functions of norm one has a smaller norm; for p = 1 not."""
    f, g = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    for p, shorter in ((1, False), (2, True)):
        mean = (f / np.linalg.norm(f, p) + g / np.linalg.norm(g, p)) / 2
        assert (np.linalg.norm(mean, p) < 1 - 1e-3) == shorter


def test_sonar_and_segmentation_have_zero_determinants():
    """thesis2007 §5.5.5: sonar has 97 and 111 rows of 60 features; LDA and QDA print 6/7 on all columns of 5.4."""
    largest = printed_columns("5.7", "QDA").index.max()
    assert max(np.ceil(n * largest / 100) for n in (97, 111)) <= 60
    for method in ("LDA", "QDA"):
        np.testing.assert_allclose(printed_columns("5.4", method), 600 / 7, atol=0.01)
    assert (printed_columns("5.4", "BDA7") < printed_columns("5.4", "QB")).all()


@pytest.mark.needs_data
def test_features_of_ionosphere_that_do_not_vary():
    """thesis2007 §5.5.4: the second feature is zero throughout, the first is one for all good returns."""
    data = datasets.load("ionosphere", "thesis2007")
    good = data.target == "g"
    assert np.flatnonzero(np.ptp(data.data, axis=0) == 0).tolist() == [1] and not data.data[:, 1].any()
    assert (data.data[good, 0] == 1).all() and np.ptp(data.data[~good, 0]) > 0


def test_lda_on_cover_type_names_the_first_class():
    """thesis2007 §5.5.4: rows of each class of the public set, less 1,620 for training and 540 for validation."""
    test = np.array([211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510]) - 1_620 - 540
    assert test.sum() == 565_892
    errors = 100 * (1 - test / test.sum())
    for method in ("LDA", "QDA"):
        np.testing.assert_allclose(printed_columns("5.11", method), errors[0], atol=0.01)
    assert errors.max() == pytest.approx(99.9, abs=0.05)


def test_nearest_means_is_no_bound_in_table_5_13():
    less = printed_columns("5.13", "EDDA") < printed_columns("5.13", "NM")
    assert sorted(less.index[less]) == [50, 100]


def test_a_common_covariance_costs_errors_in_case_2():
    """thesis2007 §5.6.1: by the true parameters; with 2 I, the mean of the three, in place of I, 2 I and 3 I."""
    rng, d = np.random.default_rng(0), 20
    means = np.zeros((3, d))
    means[1, 0], means[2, -1] = 3, 4
    labels = rng.integers(3, size=20_000)
    rows = means[labels] + np.sqrt(labels + 1)[:, None] * rng.normal(size=(len(labels), d))
    distance = ((rows[:, None] - means) ** 2).sum(axis=-1)
    own = (-distance / (2 * np.arange(1, 4)) - d / 2 * np.log(np.arange(1, 4))).argmax(axis=1)
    common = distance.argmin(axis=1)
    assert np.mean(common != labels) > np.mean(own != labels) + 0.02


def test_likelihood_of_uniform_draws_is_no_probability():
    """thesis2007 §7.5.1: a^-n over a >= X_max with da/a has the integral X_max^-n / n."""
    for n, largest in ((1, 0.5), (4, 0.8)):
        integral = quad(lambda a, n=n: a ** (-n - 1), largest, np.inf)[0]
        assert integral == pytest.approx(largest**-n / n) and abs(integral - 1) > 0.2


# Evidence of the entries ----------------------------------------------------------------------------


def entries():
    text = (ROOT / "book" / "errata.md").read_text(encoding="utf-8").split("(errata-book)=")[0]
    return re.findall(r"(?ms)^\d+\. .*?(?=^\d+\. |^#|^\(|\Z)", text)


def test_absolute_risk_of_vectors_is_not_minimised_by_coordinates():
    """thesis2007 (2.8) for R²: the mean distance is not least at the medians of the coordinates, squared distance is at
    the means."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 201)] * 2), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(grid[:, None] - points, axis=2)
    best = grid[distance.mean(axis=1).argmin()]
    assert np.abs(best - np.median(points, axis=0)).min() > 0.1
    np.testing.assert_allclose(grid[(distance**2).mean(axis=1).argmin()], points.mean(axis=0), atol=0.005)


def test_the_most_probable_neighbourhood_is_not_that_of_the_ml_estimate():
    """thesis2007 §2.5: three of five parts broken, flat prior; ML is .60."""
    centre = np.linspace(0.3, 0.8, 5001)

    def most_probable(delta):
        probability = beta(4, 3).cdf(centre + delta) - beta(4, 3).cdf(centre - delta)
        return centre[probability.argmax()]

    assert most_probable(1e-3) == pytest.approx(0.6, abs=2e-4)
    assert most_probable(0.3) < 0.58


def test_a_covariance_of_as_many_rows_as_features_is_singular():
    """thesis2007 §4.2: n_h < d is printed; the estimate (4.6) is singular for n_h = d, too."""
    rows = np.random.default_rng(0).normal(size=(4, 4))
    assert np.linalg.matrix_rank(np.cov(rows.T, bias=True)) == 3
    assert np.linalg.matrix_rank(np.cov(np.vstack([rows, rows[0] ** 2]).T, bias=True)) == 4


def test_the_gaussian_manifold_is_a_product_and_its_measure_has_a_constant():
    """thesis2007 §4.4.1: (d² + 3d)/2 parameters; for d = 1 the root of the determinant of I_F is v^(-3/2)/√2."""
    for d in (2, 3, 5):
        symmetric = d * (d + 1) // 2
        assert d + symmetric == (d**2 + 3 * d) // 2 != d * symmetric
    v = 1.7
    z, weights = np.polynomial.hermite_e.hermegauss(20)
    score = np.array([z / np.sqrt(v), (z**2 - 1) / (2 * v)])  # by mu and by v, at x = mu + z √v
    information = (weights / weights.sum() * score) @ score.T
    assert np.sqrt(np.linalg.det(information)) == pytest.approx(v**-1.5 / np.sqrt(2), rel=1e-4)


@pytest.mark.parametrize("b", [1e-3, 1.0, 50.0])
def test_the_prior_has_its_maximum_inside_for_every_seed(b):
    """thesis2007 §5.4, d = 1: exp(-b/(2v)) v^(-q/2) is zero at zero and largest at b/q."""
    q = 4.0
    v = np.geomspace(b / q / 50, 50 * b / q, 20001)
    log_prior = -b / (2 * v) - q / 2 * np.log(v)
    assert v[log_prior.argmax()] == pytest.approx(b / q, rel=1e-3)
    assert log_prior[0] < log_prior.max() - 40


def test_entropy_of_an_indicator_exists_on_a_set_of_infinite_measure():
    """thesis2007 after (7.2): ∫ g ln g exists for g = 1 on [0, ∞), which is not integrable."""
    lengths = 10.0 ** np.arange(1, 6)
    entropy = [quad(lambda x: 1.0 * np.log(1.0), 0, length)[0] for length in lengths]
    assert not any(entropy) and quad(lambda x: 1.0, 0, lengths[-1])[0] == pytest.approx(lengths[-1])


def test_difference_of_first_derivatives_is_the_second_for_quadratic_functionals_only():
    """thesis2007 §7.2.1: δφ[g + b; a] - δφ[g; a] = δ²φ[g; b, a] for ∫ g², and for ∫ g³ up to a term of second order."""
    g, b, a = np.random.default_rng(1).uniform(size=(3, 50))
    assert np.mean(2 * (g + b) * a) - np.mean(2 * g * a) == pytest.approx(np.mean(2 * b * a))
    errors = [np.mean(3 * (g + t * b) ** 2 * a) - np.mean(3 * g**2 * a) - np.mean(6 * g * t * b * a) for t in (1, 0.1)]
    assert errors[0] > 0.1 and errors[1] / errors[0] == pytest.approx(0.01)


def test_difference_quotients_are_not_bounded_by_the_largest_derivative():
    """thesis2007 A.5: for s(t) = exp(-t) the largest derivative is negative and bounds no difference quotient."""
    t = np.linspace(0, 3, 301)
    derivative, quotient = -np.exp(-t), np.diff(np.exp(-t)) / np.diff(t)
    assert np.abs(quotient).max() > max(derivative.max(), 0.0)
    assert np.abs(quotient).max() <= np.abs(derivative).max()


def test_a_minimum_at_the_border_has_a_derivative_that_is_not_zero():
    """thesis2007 appendix B: J[f] = (∫ f + 1)² is least over f ≥ 0 at f = 0, where δJ[0; a] = 2 ∫ a > 0."""
    a = np.random.default_rng(2).uniform(size=100)
    J = [(t * a.mean() + 1) ** 2 for t in (0.0, 1e-6, 0.5, 2.0)]
    assert np.argmin(J) == 0 and (J[1] - J[0]) / 1e-6 == pytest.approx(2 * a.mean(), rel=1e-4)


def test_parameter_map_of_qda_is_not_linear_in_its_statistics():
    """rc2025 §4.2: a class has n(n+3)/2 + 1 statistics; its Cholesky factor takes about n³/3 multiplications."""

    def multiplications(n):
        """Of the factor: entry (i, j) is a sum of j products and one division."""
        return sum(j + 1 for i in range(n) for j in range(i + 1))

    sizes = np.array([50, 100, 200])
    statistics = sizes * (sizes + 3) // 2 + 1
    per_statistic = np.array([multiplications(n) for n in sizes]) / statistics
    np.testing.assert_allclose(per_statistic[1:] / per_statistic[:-1], 2, rtol=0.05)


def test_derivative_of_the_t_step_holds_the_posterior():
    """rc2025 §5.2, means of two unit Gaussians: Fisher's identity needs the posterior held; as printed it fails."""
    x, means, h = np.array([0.0, 1.0, 4.0, 2.0]), np.array([0.5, 2.5]), 1e-5

    def joint(m):
        return norm.logpdf(x[:, None], m) + np.log(0.5)

    def gradient(f):
        return np.array([(f(means + h * e) - f(means - h * e)) / (2 * h) for e in np.eye(2)])

    marginal = gradient(lambda m: np.logaddexp.reduce(joint(m), axis=1).sum())
    held = softmax(joint(means), axis=1)
    np.testing.assert_allclose(gradient(lambda m: np.sum(held * joint(m))), marginal, rtol=1e-6)
    printed = gradient(lambda m: np.sum(softmax(joint(m), axis=1) * joint(m)))
    assert np.abs(printed - marginal).max() > 0.1


def test_gradient_of_wanbiac_has_the_class_of_the_weight():
    """wanbia2014 (5): finite differences agree with log θ of the class of the weight, not of the class of the row."""
    rng = np.random.default_rng(3)
    codes, labels, w = rng.integers(3, size=40), rng.integers(2, size=40), rng.normal(size=(2, 3))
    log_theta = np.log(rng.dirichlet(np.ones(3), size=2))

    def likelihood(weights):
        return np.sum(log_softmax((weights * log_theta)[:, codes].T, axis=1)[np.arange(40), labels])

    P = softmax((w * log_theta)[:, codes].T, axis=1)
    for k, j in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[k, j] = 1e-6
        numerical = (likelihood(w + step) - likelihood(w - step)) / 2e-6
        residual = ((labels == k) - P[:, k]) * (codes == j)
        assert np.sum(residual * log_theta[k, j]) == pytest.approx(numerical, rel=1e-5)
        assert abs(np.sum(residual * log_theta[labels, codes]) - numerical) > 0.01


def test_printed_pseudo_counts_of_wanbiac_sum_to_more_than_one():
    """wanbia2014, footnote 1: with m|X| in the numerator; with m/|X| they sum to one."""
    counts, m = np.array([4.0, 0.0, 6.0]), 1.0
    assert np.sum((counts + m / 3) / (counts.sum() + m)) == pytest.approx(1)
    assert np.sum((counts + m * 3) / (counts.sum() + m)) > 1.5


def test_each_entry_has_a_link_or_a_test_that_is_there():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py")))
    assert len(entries()) > 100
    for entry in entries():
        named = re.findall(r"test_\w+(?=`)", entry)
        missing = [name for name in named if f"def {name}(" not in tests]
        assert not missing, entry
        assert named or re.search(r"\{(?:prf:ref|ref|numref|eq)\}", entry), entry


def pages_and_texts():
    """Each page of the book with its own text: of a notebook the markdown cells."""
    for path in sorted([*ROOT.glob("book/*.md"), *ROOT.glob("*.md")]):
        yield path.name, path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")]):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield path.name, "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
EATEN = re.compile(r"(?<![\w\\])(?:op|ext|imes|heta|rac|eta|abla)\b|\^\s")  # \top, \text, ...


def tex_of(text):
    """The formulas of a page, between single or double dollars."""
    text = re.sub(r"(?s)^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE)
    return re.findall(r"(?s)\$\$(.+?)\$\$|(?<![\\$])\$(?!\$)(.+?)(?<!\\)\$", text)


def broken(text):
    """Control characters, and commands of a formula that lost their backslash to one."""
    formulas = [a or b for a, b in tex_of(text)]
    return CONTROL.findall(text) + [m for formula in formulas for m in EATEN.findall(formula)]


@pytest.mark.parametrize(("page", "text"), [pytest.param(*p, id=p[0]) for p in pages_and_texts()])
def test_no_page_has_a_control_character_or_half_a_command(page, text):
    assert broken(text) == []
