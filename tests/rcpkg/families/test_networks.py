"""Bayesian network classifiers: structure, exact sums over features, curved networks, nested targets, bad input."""

import itertools

import numpy as np
import pytest
from model_cases import categorical_rows, network_rows, random_direction, refused
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics import mutual_info_score

from rcpkg import (
    QDA,
    TAN,
    CategoricalNB,
    ConditionalLikelihood,
    KDependenceBayes,
    ProductModel,
    RiskCalibration,
)
from rcpkg.base import log_posterior
from rcpkg.calibration import Fixed
from rcpkg.families import cliques, missing_states, networks, structure
from rcpkg.rows import Rows

STATES = (2, 3, 2, 3)
EVERY = np.array(list(itertools.product(*map(range, STATES))), dtype=float)
CHAIN, CLIQUES, FORK = [[], [0], [1], [2]], [[1, 3], [3], [3, 1], []], [[], [0], [0], [0]]
FULL, CURVED = [[], [0], [0, 1], [0, 1, 2]], [[], [], [0, 1], [2, 0]]  # the parents 0 and 1 of 2 are not joined
decomposable = pytest.mark.parametrize("parents", [CHAIN, CLIQUES, FORK, [[]] * 4], ids=str)
any_network = pytest.mark.parametrize("parents", [[[]] * 4, CHAIN, CLIQUES, CURVED, FULL], ids=str)


def network(parents, strength=1.0):
    X, y = network_rows()
    return KDependenceBayes(structure=parents, prior_strength=strength).fit(X, y), X, y


# Sums over the features ----------------------------------------------------------------------------------------------


@any_network
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_the_joint_is_the_product_of_relative_frequencies(parents, strength):
    """p(x, y) = p(y) ∏_j (s + m₀/r_j) / (Σ_v s + m₀), by counting rows one by one."""
    model, X, y = network(parents, strength)
    p = np.tile((np.bincount(y) + strength / 3) / (len(y) + strength), (len(EVERY), 1))
    for row, x in enumerate(EVERY):
        for c, (j, of) in itertools.product(range(3), enumerate(parents)):
            context = (y == c) & (X[:, of] == x[of]).all(axis=1)
            count = np.sum(context & (X[:, j] == x[j]))
            p[row, c] *= (count + strength / STATES[j]) / (context.sum() + strength)
    assert_allclose(np.exp(model.predict_joint_log_proba(EVERY)), p, rtol=1e-10)
    assert p.sum() == pytest.approx(1)


@decomposable
@pytest.mark.parametrize("seed", range(3))
def test_log_partition_mean_and_probabilities_of_any_natural_parameter(parents, seed):
    """ψ(η), μ and from_natural by passes between the families, against sums over all x."""
    model, _, _ = network(parents)
    eta = random_direction(model.statistics_, np.random.default_rng(seed))
    scores = model.family_.scores(EVERY, eta)
    assert model.family_.log_partition(eta) == pytest.approx(logsumexp(scores), rel=1e-12)
    assert_allclose(model.family_.class_log_partition(eta), logsumexp(scores, axis=0), rtol=1e-12)
    p = np.exp(scores - logsumexp(scores))
    parameters = model.family_.from_natural(eta)
    assert_allclose(np.exp(model.log_joint(EVERY, parameters)), p, rtol=1e-9)
    assert_allclose(model.family_.mean_parameters(parameters).ravel(), model.statistics(EVERY, p).ravel(), rtol=1e-9)


def test_a_context_of_probability_zero_takes_the_uniform_distribution():
    model, _, _ = network(CHAIN)
    eta = model.family_.natural_parameters(model.parameters_)
    eta = eta.unravel(eta.ravel().copy())
    first, last = model.family_.families_.starts[1], model.family_.families_.starts[1] + 3
    eta.cells[0, first:last] = -np.inf  # x_1 given x_0 = 0 in class 0
    found = model.family_.from_natural(eta)
    assert_allclose(found.log_prob[0, first:last], -np.log(3))
    joint = np.exp(model.log_joint(EVERY, found))
    assert joint.sum() == pytest.approx(1) and not joint[EVERY[:, 0] == 0, 0].any()


@any_network
@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_missing_and_unknown_features_are_summed_over(parents, strength):
    """In rows with all patterns of gaps, one pattern after another and in any order."""
    model, _, _ = network(parents, strength)
    joint = np.exp(model.predict_joint_log_proba(EVERY))
    rows = np.vstack([np.where(gaps, np.nan, EVERY) for gaps in itertools.product([False, True], repeat=4)])
    expected = [joint[((x == EVERY) | np.isnan(x)).all(axis=1)].sum(axis=0) for x in rows]
    assert_allclose(np.exp(model.predict_joint_log_proba(rows)), expected, rtol=1e-10)
    order = np.random.default_rng(0).permutation(len(rows))
    unknown = np.nan_to_num(rows[order], nan=7.0)
    assert_allclose(np.exp(model.predict_joint_log_proba(unknown)), np.array(expected)[order], rtol=1e-10)


def test_gaps_beside_a_missing_feature_of_one_state():
    """Of 2 two members are missing that do not matter, by whose places there is no cell."""
    X, y = np.random.default_rng(0).integers([2, 1, 3, 2], size=(60, 4)), np.arange(60) % 2
    model = KDependenceBayes(structure=[[], [], [0, 1], [0]]).fit(X, y)
    filled = [[a, 0, b, 1] for a in range(2) for b in range(3)]
    expected = np.exp(model.predict_joint_log_proba(filled)).sum(axis=0)
    given = model.predict_joint_log_proba([[np.nan, np.nan, np.nan, 1]])[0]
    assert_allclose(np.exp(given), expected, rtol=1e-12)


def test_sums_beyond_the_stated_memory_are_refused(monkeypatch):
    model, _, _ = network([[], [], [], [0, 1, 2]])
    monkeypatch.setattr(missing_states, "LARGEST_TABLES", 3 * 11)
    with pytest.raises(
        ValueError, match=r"3 values of a row are missing together.*a table of 12 cells a class: impute"
    ):
        model.predict([[np.nan, np.nan, np.nan, 1.0]])
    assert np.isfinite(model.predict_log_proba([[np.nan, np.nan, 1.0, 1.0]])).all()


def test_sums_in_blocks_of_rows(monkeypatch):
    model, X, _ = network(CLIQUES)
    X[:, 3] = np.nan
    whole, states = model.predict_log_proba(X), np.hstack(model.conditional_mean(X))
    monkeypatch.setattr(missing_states, "TABLE_ENTRIES", 40)
    assert_allclose(model.predict_log_proba(X), whole, rtol=1e-12)
    assert_allclose(np.hstack(model.conditional_mean(X)), states, rtol=1e-12)


def test_sums_do_not_underflow():
    """Hundreds of features that are known, below one that is missing and which they contradict each other about."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    root = rng.integers(2, size=400)
    X = np.column_stack([root, *((root + (rng.random(400) < 0.01)) % 2 for _ in range(800))]).astype(float)
    model = KDependenceBayes(structure=[[]] + [[0]] * 800).fit(X, y)
    row = np.r_[np.nan, np.zeros(400), np.ones(400)][None]
    both = [model.predict_joint_log_proba(np.r_[v, row[0, 1:]][None]) for v in (0.0, 1.0)]
    assert_allclose(model.predict_joint_log_proba(row), np.logaddexp(*both), rtol=1e-12)


# Structure -----------------------------------------------------------------------------------------------------------


def information_by_hand(X, y, weights=None):
    d = X.shape[1]
    of_class = [mutual_info_score(X[:, j], y) for j in range(d)]
    share = np.bincount(y) / len(y)
    pairs = np.zeros((d, d))
    for i, j in itertools.permutations(range(d), 2):
        pairs[i, j] = sum(p * mutual_info_score(X[y == c, i], X[y == c, j]) for c, p in enumerate(share))
    return of_class, pairs


@pytest.mark.parametrize("cells", [structure.LARGEST_TABLES, 10 * 5 * 3, 10 * 3 * 3])
def test_mutual_information(monkeypatch, cells):
    """By scikit-learn, class by class; and whatever number of features is counted at a time."""
    monkeypatch.setattr(structure, "LARGEST_TABLES", cells)
    X, y = network_rows()
    of_class, pairs = structure.mutual_information(Rows.from_arrays(X.astype(int), y), np.array(STATES), 3)
    for found, expected in zip((of_class, pairs), information_by_hand(X, y)):
        assert_allclose(found, expected, atol=2e-12)


def test_mutual_information_of_weights_and_of_gaps():
    X, y = network_rows()
    w = np.random.default_rng(0).integers(0, 4, size=len(y))
    places, given = X.astype(int), (np.array(STATES), 3)
    weighted = structure.mutual_information(Rows.from_arrays(places, y, w), *given)
    repeated = structure.mutual_information(Rows.from_arrays(np.repeat(places, w, axis=0), np.repeat(y, w)), *given)
    for a, b in zip(weighted, repeated):
        assert_allclose(a, b, atol=2e-12)
    gaps = places.copy()
    gaps[::5, 0], gaps[1::7, 1] = -1, -1
    of_class, pairs = structure.mutual_information(Rows.from_arrays(gaps, y), *given)
    both = (gaps[:, :2] >= 0).all(axis=1)
    known = structure.mutual_information(Rows.from_arrays(places[both], y[both]), *given)[1]
    assert pairs[0, 1] == pytest.approx(known[0, 1], abs=1e-11)
    there = gaps[:, 0] >= 0
    assert of_class[0] == pytest.approx(mutual_info_score(X[there, 0], y[there]), abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_has_the_greatest_likelihood(seed):
    """Of all 16 trees over four features, by maximum likelihood of the joint (Chow and Liu; Friedman and others)."""
    X, y = network_rows(seed=seed)
    found = TAN(prior_strength=0.0).fit(X, y)

    def log_likelihood(model):
        return model.predict_joint_log_proba(X)[np.arange(len(y)), y].sum()

    best = log_likelihood(found)
    others = []
    for of in itertools.product(range(4), repeat=3):
        parents = [[], *([p] for p in of)]
        if all(j + 1 not in p for j, p in enumerate(parents[1:])):
            try:
                others.append(log_likelihood(KDependenceBayes(structure=parents, prior_strength=0.0).fit(X, y)))
            except ValueError as error:
                assert "circle" in str(error)
    assert len(others) == 16 and best == pytest.approx(max(others), abs=1e-8)


def test_sahamis_order():
    """By hand: features in the order of I(x_j; y), each with the k before it of greatest conditional information."""
    of_class = np.array([0.1, 0.4, 0.3, 0.2])
    pairs = np.array([[0, 5, 6, 7], [5, 0, 1, 2], [6, 1, 0, 3], [7, 2, 3, 0]], dtype=float)
    states = np.array([2, 2, 2, 2])
    assert structure.k_dependence(of_class, pairs, 2, states, 99, False) == [(3, 2), (), (1,), (2, 1)]
    assert structure.k_dependence(of_class, pairs, 1, states, 99, False) == [(3,), (), (1,), (2,)]
    assert structure.k_dependence(of_class, pairs, 9, states, 8, False) == [(3, 2), (), (1,), (2, 1)]
    assert structure.k_dependence(of_class, pairs, 9, np.array([2, 3, 2, 2]), 8, False)[0] == (3, 2)
    assert structure.k_dependence(of_class, pairs, 9, np.array([2, 9, 2, 2]), 8, False) == [(3, 2), (), (), (2,)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_trees(seed, k):
    """Decomposable, at most k parents, as many as there are; for k = 1 Sahami's choice; each family in an older one."""
    rng = np.random.default_rng(seed)
    d = 9
    pairs = rng.uniform(0.1, 1, size=(d, d))
    pairs = pairs + pairs.T
    arguments = rng.uniform(size=d), pairs, k, np.full(d, 2), 2**20
    tree, free = (structure.k_dependence(*arguments, kind) for kind in (True, False))
    assert cliques.is_decomposable(tree)
    assert sorted(len(of) for of in tree) == sorted(min(k, place) for place in range(d))
    assert (tree == free) == (k == 1) or k > 1
    rank = np.argsort(np.argsort(-arguments[0], kind="stable"))
    assert all(rank[p] < rank[j] for j, of in enumerate(tree) for p in of)
    for j, of in enumerate(tree):
        assert list(of) == sorted(of, key=lambda p: -pairs[j, p])


def test_ties_go_to_the_first_feature():
    """Copies of one feature, and features that tell nothing; whatever the rounding of sums, the same network."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    a = np.where(rng.uniform(size=200) < 0.8, y, 1 - y)
    b = rng.integers(3, size=200)
    X = np.column_stack([a, b, a, b, a, np.zeros(200)])
    found = TAN().fit(X, y).parents_
    assert found == [[], found[1], [0], [1], [0], []]
    for order in (rng.permutation(200) for _ in range(5)):
        assert TAN().fit(X[order], y[order]).parents_ == found
        assert KDependenceBayes(k=2).fit(X[order], y[order]).parents_ == KDependenceBayes(k=2).fit(X, y).parents_
    assert KDependenceBayes(k=2).fit(X, y).parents_[5] == []  # one state tells nothing


@pytest.mark.parametrize("strength", [0.0, 1e-9])
@pytest.mark.parametrize(
    "model", [CategoricalNB(n_states=3), TAN(n_states=3), KDependenceBayes(k=0, n_states=3)], ids=repr
)
def test_a_feature_without_a_value_in_a_class_is_uniform_there(model, strength):
    """The limit of MAP for a prior that vanishes."""
    X, y = categorical_rows(n_states=(3, 3))
    X[y == 1, 0] = np.nan
    fitted = clone(model).set_params(prior_strength=strength).fit(X, y)
    family = fitted.family_
    table = family.families_.split(np.exp(fitted.parameters_.log_prob))[0]
    assert_allclose(table[1], np.full(table[1].shape, 1 / 3), atol=1e-6)
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


# Training rows -------------------------------------------------------------------------------------------------------


def test_the_first_rows_of_partial_fit_decide_on_the_structure():
    X, y = network_rows()
    model = TAN(n_states=STATES).partial_fit(X[:80], y[:80], classes=[0, 1, 2])
    parents = model.parents_
    assert parents == TAN().fit(X[:80], y[:80]).parents_
    model.partial_fit(X[80:], y[80:])
    same = KDependenceBayes(structure=parents).fit(X, y)
    assert model.parents_ == parents
    assert_allclose(model.predict_log_proba(X), same.predict_log_proba(X), atol=1e-12)


def test_a_network_is_a_block_of_a_product():
    X, y = network_rows()
    Z = np.column_stack([X, np.random.default_rng(0).standard_normal(len(y)) + y])
    model = ProductModel([("codes", TAN(), slice(0, 4)), ("size", QDA(), [4])], class_prior_strength=1.0)
    parts = TAN().fit(X, y), QDA(class_prior_strength=1.0).fit(Z[:, 4:], y)
    joint = parts[0].predict_joint_log_proba(X) + parts[1].predict_joint_log_proba(Z[:, 4:])
    expected = joint - parts[0].class_log_prior_
    assert_allclose(model.fit(Z, y).predict_joint_log_proba(Z), expected, atol=1e-10)
    assert RiskCalibration(model).fit(Z, y).converged_
    with pytest.raises(ValueError, match="of networks a decomposable one; got KDep"):
        ProductModel([("codes", KDependenceBayes(structure=CURVED), slice(0, 4))]).fit(Z, y)


# Curved networks -----------------------------------------------------------------------------------------------------


def test_only_decomposable_networks_are_full():
    for parents, full in ((CHAIN, True), (CLIQUES, True), (CURVED, False)):
        unfitted, fitted = KDependenceBayes(structure=parents)._new_family(), network(parents)[0].family_
        for name in ("log_partition", "mean_parameters", "from_natural", "pooled_parameters", "nested_parameters"):
            assert hasattr(unfitted, name) == hasattr(fitted, name) == full
    assert hasattr(TAN()._new_family(), "log_partition") and hasattr(
        KDependenceBayes(k=3)._new_family(), "log_partition"
    )
    assert not hasattr(KDependenceBayes(k=2, decomposable=False)._new_family(), "log_partition")
    assert hasattr(KDependenceBayes(k=1, decomposable=False)._new_family(), "log_partition")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_safe_steps_on_a_curved_network():
    X, y = network_rows()
    learner = RiskCalibration(KDependenceBayes(structure=CURVED), max_iter=300, tol=1e-6).fit(X, y)
    losses = learner.history_.log_loss.to_numpy()
    assert np.all(np.diff(losses) <= 1e-12) and losses[-1] < losses[0] - 0.01
    totals = learner.family_.families_.totals(learner.estimator_.statistics_.cells)
    assert totals.min() > 1e-3
    fixed = RiskCalibration(KDependenceBayes(structure=CURVED), step=Fixed(0.05), max_iter=5)
    assert fixed.fit(X, y).history_.log_loss.iloc[-1] < losses[0]


# Nested targets ------------------------------------------------------------------------------------------------------


@decomposable
def test_the_nested_network_has_lost_its_last_parents(parents):
    model, X, y = network(parents, 1.5)
    fewer = KDependenceBayes(structure=[of[:-1] for of in parents], prior_strength=1.5).fit(X, y)
    nested, size = model.family_.nested_parameters(model.statistics_)
    assert_allclose(model.log_joint(EVERY, nested), fewer.predict_joint_log_proba(EVERY), atol=1e-10)
    assert size == 3 * max(np.prod([STATES[p] for p in of]) for of in parents)


def test_limits_of_the_weight_of_a_nested_target():
    """b → ∞: the nested network; b → 0: the maximum of conditional likelihood (proposition on nested targets)."""
    model, X, y = network(CHAIN)
    fits = {
        b: RiskCalibration(model, target="nested", target_weight=b, tol=1e-12, max_iter=5000).fit(X, y)
        for b in (1e-4, 1.0, 1e6)
    }
    nested, _ = model.family_.nested_parameters(model.statistics_)
    P = np.exp(log_posterior(model.log_joint(EVERY, nested), nested.log_prior))
    assert_allclose(fits[1e6].predict_proba(EVERY), P, atol=1e-4)
    free = ConditionalLikelihood(model, tol=1e-9).fit(X, y)
    assert fits[1e-4].history_.log_loss.iloc[-1] == pytest.approx(free.objective_, abs=1e-5)
    between = fits[1.0].history_.log_loss.iloc[-1]
    assert free.objective_ < between < fits[1e6].history_.log_loss.iloc[-1]


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, message",
    [
        (KDependenceBayes(k=4), r"k must be less than the number of features; got k=4 with n_features = 4"),
        (KDependenceBayes(k=-1), "k must be an integer >= 0; got -1"),
        (KDependenceBayes(structure=[[1], [0], [], []]), r"no directed circle; features \[.*\] form one"),
        (KDependenceBayes(structure=[[0], [], [], []]), "structure must list the parents"),
        (KDependenceBayes(structure=[[-1], [], [], []]), "structure must list the parents"),
        (KDependenceBayes(structure=[[1, 1], [], [], []]), "structure must list the parents"),
        (KDependenceBayes(structure="tree"), "structure must list the parents"),
        (KDependenceBayes(structure=[[], [0]]), "parents of each of 4 features; got 2 lists"),
        (TAN(prior_strength=-1.0), "prior_strength must be"),
        (TAN(prior_strength=[1.0, 2.0]), "prior_strength must hold 4 numbers"),
        (TAN(n_states=[2, 3, 2, 2]), "feature 3 holds the state 2, but n_states declares 2"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(model, message):
    refused(message, model.fit, *network_rows())


def test_tables_are_kept_within_the_stated_memory(monkeypatch):
    """Parents are passed over whose tables would be too large; a structure that asks for such is refused."""
    X, y = network_rows()
    monkeypatch.setattr(networks, "LARGEST_TABLES", 3 * 4 * 6)
    few = KDependenceBayes(k=3).fit(X, y)
    assert max(few.family_.families_.sizes) <= 6 and any(few.parents_)
    assert TAN().fit(X, y).family_.families_.width * 3 <= 3 * 4 * 6
    with pytest.raises(ValueError, match="have 96 cells, more than 72; that of feature 2 alone has 36: give it fewer"):
        KDependenceBayes(structure=[[], [0], [0, 1], [0, 2]]).fit(X, y)


def test_identifiers_are_no_reason_to_run_out_of_memory(monkeypatch):
    """Features of thousands of states: none becomes a parent, and no table of pairs is kept whole."""
    rng = np.random.default_rng(0)
    n = 3000
    X = np.column_stack([rng.permutation(n), rng.permutation(n), rng.integers(3, size=n)])
    y = rng.integers(2, size=n)
    with monkeypatch.context() as patch:
        patch.setattr(structure, "LARGEST_TABLES", 2 * 3000 * 3003)
        of_class, pairs = structure.mutual_information(Rows.from_arrays(X, y), X.max(axis=0) + 1, 2)
    assert not pairs.any() and of_class.min() >= 0
    model = KDependenceBayes(k=2).fit(X, y)
    assert not model.parents_[0] and not model.parents_[1]
    assert model.family_.families_.width * 2 <= networks.LARGEST_TABLES
    assert np.isfinite(model.predict_log_proba(X[:5])).all()
