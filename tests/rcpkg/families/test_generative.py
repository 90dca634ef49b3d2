"""The closed-form models: identities that hold for all of them, closed forms, and what they refuse."""

import numpy as np
import pytest
import sklearn.naive_bayes as sk_nb
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    ALL,
    COUNTS,
    COUNTS_MAP,
    GAUSSIAN_MAP,
    ML,
    MODELS,
    OF_ANY_PRIOR,
    categorical_rows,
    document_rows,
    fitted,
    gaussian_rows,
    mixed_rows,
    random_direction,
    refused,
    row_statistics,
)
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.strict_naive_bayes import StrictCategoricalNB
from scipy.stats import multivariate_normal
from sklearn.base import clone

from rcpkg import (
    LDA,
    QDA,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    InvalidStatistics,
    KDependenceBayes,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    SharedVarianceGaussianNB,
    Statistics,
)
from rcpkg.base import log_posterior
from rcpkg.families import gaussian, one_hot
from rcpkg.families.constants import BLOCK, TILE


def assert_same(a, b, **tolerance):
    """Two parameter tuples or statistics agree, part by part; infinities included."""
    if isinstance(a, (tuple, Statistics)):
        parts = list(a), list(b)
        assert len(parts[0]) == len(parts[1])
        for left, right in zip(*parts):
            assert_same(left, right, **tolerance)
    else:
        assert_allclose(a, b, **{"rtol": 1e-9, "atol": 1e-12} | tolerance)


# Statistics ----------------------------------------------------------------------------------------------------------


def test_inner_product_takes_zero_times_minus_infinity_as_zero():
    assert Statistics(a=[0.0, 2.0]).dot(Statistics(a=[-np.inf, 3.0])) == 6.0
    assert Statistics(a=[1.0, 2.0]).dot(Statistics(a=[-np.inf, 3.0])) == -np.inf


@OF_ANY_PRIOR
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(-3, 3))
def test_statistics_are_additive_over_rows_and_linear_in_weights(name, seed, scale):
    """s(X, W) = Σ_i Σ_y W_iy s(x_i, y) (rc2025 §3, additive decomposability), for signed W."""
    model, X, _, Y = fitted(name)
    rng = np.random.default_rng(seed)
    V, W = rng.standard_normal((2, *Y.shape))
    cut = rng.integers(1, len(X))
    whole = model.statistics(X, V)
    assert_same(model.statistics(X[:cut], V[:cut]) + model.statistics(X[cut:], V[cut:]), whole, rtol=1e-9, atol=1e-9)
    assert_same(model.statistics(X, V + scale * W), whole + scale * model.statistics(X, W), rtol=1e-9, atol=1e-8)


# Predictions ---------------------------------------------------------------------------------------------------------


@OF_ANY_PRIOR
def test_posteriors_are_the_normalised_joint(name):
    model, X, _, _ = fitted(name)
    joint, log_p, p = model.predict_joint_log_proba(X), model.predict_log_proba(X), model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(log_p, joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), atol=1e-10)
    assert_allclose(p, np.exp(log_p), rtol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[np.argmax(p, axis=1)])
    assert model.score(X, model.predict(X)) == 1


@ALL
def test_order_of_rows_features_and_classes_does_not_matter(name):
    model, X, y, _ = fitted(name)
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(X))
    assert_same(clone(model).fit(X[rows], y[rows]).parameters_, model.parameters_, rtol=1e-8)

    relabelled = np.array([2, 0, 1])  # class c is called relabelled[c]
    P = clone(model).fit(X, relabelled[y]).predict_proba(X)
    assert_allclose(P[:, relabelled], model.predict_proba(X), atol=1e-9)

    if not name.startswith("Product"):  # its blocks name their columns
        columns = rng.permutation(X.shape[1])
        other = clone(model).fit(X[:, columns], y)
        assert_allclose(other.predict_proba(X[:, columns]), model.predict_proba(X), atol=1e-9)


# Exponential families ------------------------------------------------------------------------------------------------


@OF_ANY_PRIOR
def test_joint_density_has_exponential_form(name):
    """log p(x, y) = ⟨η, s(x, y)⟩ + log h(x), with log h = 0 in the parametrisations used here."""
    model, X, _, Y = fitted(name)
    S = row_statistics(model, X[:20], Y.shape[1])
    eta = model.family_.natural_parameters(model.parameters_).ravel()
    assert_allclose(S @ eta, model.predict_joint_log_proba(X[:20]), rtol=1e-9, atol=1e-10)


@OF_ANY_PRIOR
def test_natural_parameters_are_normalised(name):
    """ψ(η(θ)) = 0."""
    model = fitted(name).model
    assert abs(model.family_.log_partition(model.family_.natural_parameters(model.parameters_))) < 1e-10


@OF_ANY_PRIOR
def test_gradient_of_the_log_partition_is_the_mean_parameter(name):
    """∇ψ(η) = μ, in directions that also leave the set of normalised η."""
    model = fitted(name).model
    eta, mu = model.family_.natural_parameters(model.parameters_), model.family_.mean_parameters(model.parameters_)
    rng = np.random.default_rng(0)
    for _ in range(8):
        v = random_direction(eta, rng)
        eps = 1e-5
        slope = (model.family_.log_partition(eta + eps * v) - model.family_.log_partition(eta - eps * v)) / (2 * eps)
        assert_allclose(slope, mu.dot(v), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ML)
def test_maximum_likelihood_matches_moments(name):
    """n μ(θ(s)) = s under maximum likelihood."""
    model, X, _, _ = fitted(name)
    assert_same(len(X) * model.family_.mean_parameters(model.parameters_), model.statistics_, rtol=1e-8, atol=1e-9)


# Closed forms --------------------------------------------------------------------------------------------------------


def test_qda_moments():
    """μ_y = s_y/s_0y and Σ_y = S_y/s_0y − μ_y μ_yᵀ (rc2025 §3.1)."""
    X, y = gaussian_rows()
    log_prior, mean, covariance, _ = QDA().fit(X, y).parameters_
    for c in range(3):
        assert_allclose(mean[c], X[y == c].mean(axis=0))
        assert_allclose(covariance[c], np.cov(X[y == c].T, bias=True))
        assert_allclose(np.exp(log_prior[c]), np.mean(y == c))


def test_shared_variances_pool_within_the_classes():
    """σ² = s²/Σ s_0 − Σ p(y) μ_y² (rc2024 §VI-A); Σ of LDA is the pooled within-class covariance."""
    X, y = gaussian_rows()
    centred = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
    assert_allclose(SharedVarianceGaussianNB().fit(X, y).parameters_.covariance, centred.var(axis=0))
    assert_allclose(LDA().fit(X, y).parameters_.covariance, np.cov(centred.T, bias=True))


@pytest.mark.parametrize("name", GAUSSIAN_MAP)
def test_gaussian_map(name):
    """rc2025 app. C: μ' = (m μ₀ + n_y μ̂)/(m + n_y), Σ' = (m Σ₀ + n_y Σ̂)/(m + n_y); p(y) with m₀ = m."""
    m, mu0, sigma0 = 3.0, 0.5, 2.0
    model, X, y, _ = fitted(name)
    ml = clone(MODELS[name.removesuffix(" MAP")]).fit(X, y).parameters_
    n = np.bincount(y).astype(float)
    assert_allclose(np.exp(model.parameters_.log_prior), (n + m / 3) / (n.sum() + m))
    assert_allclose(model.parameters_.mean, (m * mu0 + n[:, None] * ml.mean) / (m + n)[:, None])
    weight = n.sum() if ml.covariance.shape[0] != 3 or name.startswith(("LDA", "Shared")) else n
    weight = np.reshape(weight, np.shape(weight) + (1,) * (ml.covariance.ndim - np.ndim(weight)))
    prior = sigma0 * (np.eye(3) if name.startswith(("QDA", "LDA")) else np.ones(3))
    assert_allclose(model.parameters_.covariance, (m * prior + weight * ml.covariance) / (m + weight))


@pytest.mark.parametrize("name", COUNTS_MAP)
def test_counts_map_is_maximum_likelihood_with_pseudo_counts(name):
    """(s + m₀/r_j)/(Σ s + m₀) (rc2025 app. C)."""
    model, X, y, _ = fitted(name)
    ml = clone(MODELS[name.removesuffix(" MAP")]).fit(X, y)
    states = np.full(4, 4) if name.startswith("Multinomial") else np.repeat(ml.n_states_, ml.n_states_)
    s = ml.statistics_
    smoothed = Statistics(count=s.count + 2.0 / 3, cells=s.cells + 2.0 / states)
    assert_same(model.parameters_, ml.parameters(smoothed))


# Products ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "blocks, message",
    [
        ([], "non-empty"),
        ([QDA()], "non-empty list"),
        ([("dot", QDA(), [0])], "cannot be named 'dot'"),
        ([("a", QDA(), [0]), ("a", QDA(), [1])], "not unique"),
        ([("a__b", QDA(), [0]), ("c", QDA(), [1])], "must not contain __"),
        ([("blocks", QDA(), [0]), ("c", QDA(), [1])], "conflict with constructor"),
        ([("a", QDA(), [0, 1]), ("b", QDA(), [1])], "must not share columns"),
        ([("a", QDA(), [0, 9])], r"must be in \[0, 4\]"),
        ([("a", QDA(), ["u"])], "only supported for dataframes"),
        ([("a", sk_nb.GaussianNB(), [0])], "block 'a' must be one of the models"),
    ],
)
def test_product_refuses_bad_blocks(blocks, message):
    refused(message, ProductModel(blocks).fit, *mixed_rows())


# Fitting in pieces, weights, samples ---------------------------------------------------------------------------------


@ALL
def test_partial_fit_in_pieces_is_fit(name):
    model, X, y, _ = fitted(name)
    pieces = clone(MODELS[name])
    if name.startswith("Categorical"):
        pieces.set_params(n_states=[2, 3, 5])
    if name.startswith("Product"):
        pieces.blocks[0][1].set_params(n_states=[2, 3])
    if hasattr(model, "parents_"):
        pieces = KDependenceBayes(structure=model.parents_, prior_strength=model.prior_strength)
    for rows in np.array_split(np.arange(len(X)), 4):
        pieces.partial_fit(X[rows], y[rows], classes=np.arange(3))
    assert_same(pieces.parameters_, model.parameters_, rtol=1e-8, atol=1e-9)
    more = clone(MODELS[name]).fit(X, y).partial_fit(X, y)
    if name in ML:
        assert_same(more.parameters_, model.parameters_, rtol=1e-8, atol=1e-9)


def test_partial_fit_says_what_is_missing_so_far():
    X, y = gaussian_rows()
    model = QDA().partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    with pytest.raises(InvalidStatistics, match="not enough data so far: class 1 has weight 0"):
        model.predict(X)
    with pytest.raises(InvalidStatistics, match="not enough data so far"):
        model.sample(2)
    model.partial_fit(X[y != 0], y[y != 0])
    assert_allclose(model.predict_proba(X), QDA().fit(X, y).predict_proba(X), atol=1e-10)


def test_partial_fit_checks_classes():
    X, y = gaussian_rows()
    refused("classes must be passed", QDA().partial_fit, X, y)
    refused(r"target label\(s\) \[2\] in y do not exist", QDA().partial_fit, X, y, classes=[0, 1])
    refused("classes", QDA().partial_fit(X, y, classes=[0, 1, 2]).partial_fit, X, y, classes=[0, 1, 2, 3])


@ALL
def test_integer_weights_are_repeated_rows(name):
    model, X, y, _ = fitted(name)
    w = np.random.default_rng(5).integers(0, 4, size=len(X))
    weighted = clone(model).fit(X, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), rtol=1e-9, atol=1e-9)


@OF_ANY_PRIOR
def test_samples_have_the_moments_of_the_model(name):
    """The mean of s(x, y) over samples is μ, within five standard errors taken from 40 batches."""
    model, X, _, _ = fitted(name)
    S, labels = model.sample(20000, random_state=0)
    assert S.shape == (20000, X.shape[1])
    batches = zip(np.split(S, 40), np.split(one_hot(labels, 3), 40))
    means = np.array([model.statistics(rows, Y).ravel() / 500 for rows, Y in batches])
    error = means.std(axis=0) / np.sqrt(40) + 1e-12
    mu = model.family_.mean_parameters(model.parameters_).ravel()
    assert np.max(np.abs(means.mean(axis=0) - mu) / error) < 5


def test_samples_are_reproducible_and_labelled():
    X, y = gaussian_rows()
    model = QDA().fit(X, np.array(["a", "b", "c"])[y])
    for n_samples in -1, 2.5:
        refused("n_samples must be an integer >= 0", model.sample, n_samples)
    first, second = model.sample(50, random_state=1), model.sample(50, random_state=1)
    assert_array_equal(first[0], second[0])
    assert set(first[1]) <= {"a", "b", "c"}
    refused("belong to no block", ProductModel([("a", QDA(), [0, 1])]).fit(X, y).sample, 3)


# The passes over the data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, d, r", [(1300, 4, 3), (700, 9, 6), (37, 2, 5), (512, 3, 3)])
def test_fused_and_class_by_class_passes_of_qda_agree(monkeypatch, n, d, r):
    X, y = gaussian_rows(n=n, d=d, r=r)
    X = X + 100.0
    model = QDA(prior_strength=0.1).fit(X, y)
    Y = one_hot(y, r)

    def passes(most_rounding):
        monkeypatch.setattr(gaussian, "LOG_ROUNDING", most_rounding)
        seen = np.zeros_like(Y)

        def weigh(joint, rows):
            seen[rows] = joint
            return Y[rows] - np.exp(log_posterior(joint, np.zeros(r)))

        s = model.family_.weighted_statistics(X, model.parameters_, weigh)
        return seen, s

    (fused, s_fused), (plain, s_plain) = passes(np.inf), passes(-np.inf)
    assert_allclose(plain, model.predict_joint_log_proba(X), rtol=1e-12)
    assert_allclose(fused, plain, rtol=1e-10, atol=1e-10)
    assert_same(s_fused, s_plain, rtol=1e-10, atol=1e-10 * n)


@pytest.mark.parametrize("d", [1, TILE, TILE + 1, 3 * TILE - 5])
@pytest.mark.parametrize("model", [QDA(), LDA()])
def test_products_by_tiles_are_those_of_whole_matrices(model, d):
    X, y = gaussian_rows(n=3 * BLOCK + 5, d=d, r=3)
    model.fit(X, y)
    W, x, theta = np.random.default_rng(0).normal(size=(len(X), 3)), X - model.family_.origin_, model.parameters_
    second = np.einsum("iy,ia,ib->yab", W, x, x)
    second = second.sum(axis=0) if isinstance(model, LDA) else second
    assert_allclose(model.statistics(X, W).second, second, rtol=1e-10, atol=1e-10 * np.abs(second).max())
    covariances = np.broadcast_to(theta.covariance, (3, d, d))
    joint = [multivariate_normal.logpdf(X, m, S) + p for p, m, S in zip(theta.log_prior, theta.mean, covariances)]
    assert_allclose(model.log_joint(X, theta), np.transpose(joint), rtol=1e-10)
    calibrated = model.family_.from_natural(model.family_.natural_parameters(theta))  # roots of precisions are upper
    assert_allclose(model.log_joint(X, calibrated), np.transpose(joint), rtol=1e-9)


@pytest.mark.parametrize("name", [*COUNTS, "CategoricalNB MAP", "BernoulliNB MAP"])
def test_cells_keep_to_those_of_some_rows_on_safe_updates(name):
    """However long the way s = m μ(θ), and the cells of a feature, or of documents of one length, add up to s_y."""
    model, X, _, Y = fitted(name)
    rng, s, plain = np.random.default_rng(0), model.statistics_, model.family_.without_prior()
    total = s.cells.sum(axis=1) / s.count
    for _ in range(50):
        W = rng.normal(size=Y.shape)
        s = model.family_.safe_update(s, model.statistics(X, W - W.mean(axis=1, keepdims=True)))
        model.parameters(s)
    assert np.abs(s.count / Y.sum(axis=0) - 1).max() > 0.5 and s.count.sum() == pytest.approx(len(X))
    assert_allclose(s.cells.sum(axis=1), total * s.count, rtol=1e-9)
    if name in COUNTS:
        assert_same(s, len(X) * plain.mean_parameters(plain.parameters(s)), rtol=1e-9)


@pytest.mark.parametrize("model", [QDA(), LDA()])
def test_a_pass_in_blocks_gives_the_statistics_of_all_rows(monkeypatch, model):
    X, y = gaussian_rows(n=2 * 500 + 7, d=8, r=2)
    model.fit(X, y)
    monkeypatch.setattr(gaussian, "AT_A_TIME", 500 * 8)
    sizes = []

    def weigh(joint, rows):
        sizes.append(len(joint))
        return np.exp(joint[:, ::-1])

    s = model.family_.weighted_statistics(X, model.parameters_, weigh)
    assert sizes == [500, 500, 7]
    whole = np.exp(model.predict_joint_log_proba(X)[:, ::-1])
    assert_same(s, model.statistics(X, whole), rtol=1e-10, atol=1e-12)


def test_near_singular_classes_are_passed_class_by_class():
    """The polynomial of a class with almost collinear features would cancel; the fused pass steps back."""
    X, y = gaussian_rows(n=400, d=3, r=4)
    X[:, 2] = X[:, 0] + X[:, 1] + 1e-6 * X[:, 2]
    model = QDA().fit(X, y)
    seen = np.empty((400, 4))

    def weigh(joint, rows):
        seen[rows] = joint
        return np.ones_like(joint)

    model.family_.weighted_statistics(X, model.parameters_, weigh)
    assert_array_equal(seen, model.predict_joint_log_proba(X))


# Zeros and unseen states ---------------------------------------------------------------------------------------------


def test_a_row_impossible_under_every_class_gets_the_class_prior():
    X, y = categorical_rows(n_states=(3, 4), r=2)
    y[:30] = 0
    model = StrictCategoricalNB().fit(X, y)
    unseen = np.array([[2.0, 4.0], [7.0, 0.0]])
    assert np.isneginf(model.predict_joint_log_proba(unseen)).all()
    assert_allclose(model.predict_proba(unseen), np.tile(np.bincount(y) / len(y), (2, 1)))
    assert_array_equal(model.predict(unseen), [0, 0])
    assert_allclose(model.predict_proba(unseen, class_prior=[0.3, 0.7]), [[0.3, 0.7]] * 2)
    blocks = [(name, StrictCategoricalNB(), [j]) for j, name in enumerate("ab")]
    product = ProductModel(blocks).fit(X, y)
    assert_allclose(product.predict_proba(unseen), model.predict_proba(unseen))


# Refusals ------------------------------------------------------------------------------------------------------------


def bad(X, i, j, value):
    X = X.copy()
    X[i, j] = value
    return X


GX, GY = gaussian_rows()
CX, CY = categorical_rows()
DX, DY = document_rows()


@pytest.mark.parametrize(
    "model, X, y, message",
    [
        (CategoricalNB(), bad(CX, 4, 1, 0.5), CY, "not integers: feature 1"),
        (StrictCategoricalNB(), bad(CX, 4, 2, -1), CY, "Negative values in data .*: feature 2"),
        (StrictCategoricalNB(), bad(CX, 4, 2, np.nan), CY, "NaN"),
        (CategoricalNB(), bad(CX, 4, 2, -2), CY, "Negative values in data .*: feature 2"),
        (CategoricalNB(), bad(CX, 4, 2, 1e300), CY, "feature 2"),
        (CategoricalNB(n_states=[2, 3, 4]), CX, CY, "feature 2 holds the state 4, but n_states declares 4"),
        (CategoricalNB(n_states=[2, 3]), CX, CY, "n_states"),
        (CategoricalNB(n_states=[2, 3, 5.5]), CX, CY, "n_states"),
        (BernoulliNB(binarize=None), CX, CY, "feature 1 holds values other than 0 and 1"),
        (MultinomialNB(), bad(DX, 3, 2, -2), DY, "Negative values in data .*: feature 2"),
        (MultinomialNB(), [[1.0, 2.0], [0.0, 0.0]], [0, 1], "nothing is left to count in class 1"),
        (QDA(prior_strength=-1.0), GX, GY, "prior_strength must be"),
        (QDA(class_prior_strength=-1.0), GX, GY, "class_prior_strength must be"),
        (QDA(priors=[0.5, 0.5]), GX, GY, "priors must hold 3 numbers"),
        (QDA(priors=[5, 5, 5]), GX, GY, "sum of the priors should be 1"),
        (QDA(prior_strength=1.0, prior_mean=[0.0, 1.0]), GX, GY, "prior_mean"),
        (QDA(prior_strength=1.0, prior_covariance=np.eye(2)), GX, GY, "prior_covariance"),
        (GaussianNB(prior_strength=1.0, prior_covariance=np.eye(3)), GX, GY, "prior_covariance"),
        (QDA(prior_strength=1.0, prior_covariance=-1.0), GX, GY, "prior_covariance"),
        (RiskCalibration(LDA(prior_strength=1.0, prior_covariance=1e300)), GX, GY, "prior_covariance must be in the"),
        (GaussianNB(prior_strength=1.0, prior_mean=1e140), GX, GY, "prior_mean must be in the units of X"),
        (QDA(prior_mean="mean"), GX, GY, "prior_mean must be numbers or 'grand'; got 'mean'"),
        (QDA(prior_covariance="pool"), GX, GY, "prior_covariance must be numbers, 'pooled' or 'diagonal'; got 'pool'"),
        (QDA(singular_ridge=-1.0), GX, GY, "singular_ridge must be a finite number >= 0"),
        (QDA(rows_per_feature=-1.0), GX, GY, "rows_per_feature must be a finite number >= 0"),
    ],
)
def test_bad_input_is_named(model, X, y, message):
    refused(message, model.fit, X, y)


@pytest.mark.parametrize("d", [2, 8, 30])
@pytest.mark.parametrize("distance", [0.0, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_d_rows_are_too_few_and_d_plus_one_suffice(d, distance, seed):
    """Rounding errors grow with the distance of a class from the origin; they must not pass for a covariance."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.standard_normal((3 * d, d)), distance + rng.standard_normal((d + 1, d))])
    y = np.repeat([0, 1], [3 * d, d + 1])
    plain = QDA(singular_ridge=0.0)
    assert np.isfinite(plain.fit(X, y).predict_log_proba(X)).all()
    assert_array_equal(QDA(rows_per_feature=0.0).fit(X, y).parameters_.covariance, plain.parameters_.covariance)
    with pytest.raises(InvalidStatistics, match="within class 1"):
        plain.fit(X[:-1], y[:-1])


@pytest.mark.parametrize("name", COUNTS)
def test_negative_counts_in_statistics_are_named(name):
    model = fitted(name).model
    cells = model.statistics_.cells.copy()
    cells[1, 2] = -1.0
    with pytest.raises(InvalidStatistics, match=r"negative count -1 of .* in class 1"):
        model.parameters(Statistics(count=model.statistics_.count, cells=cells))


def test_more_features_than_entries_at_a_time_leave_one_row_at_a_time(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    whole = GaussianNB().fit(X, y)
    monkeypatch.setattr("rcpkg.families.gaussian.AT_A_TIME", X.shape[1] - 1)
    by_rows = GaussianNB().fit(X, y)
    assert_allclose(by_rows.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9, atol=1e-12)
