"""rcpkg.local against thesis2007 chapters 3 and 6 and against direct evaluation."""


import mpmath
import numpy as np
import pytest
from model_cases import peak_memory, refused, slow
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln
from scipy.stats import multivariate_t
from sklearn.svm import SVC

from rcpkg import SVMKNN, BregmanKNN, InvalidStatistics, LocalBDA, LocalLinear, LocalNearestMeans
from rcpkg.choice import mean_log_loss
from rcpkg.local import density, linear_weights, local_bda_log_density, neighbor_weights

PER_CLASS = [LocalBDA, LocalNearestMeans]
POOLED = [LocalLinear, BregmanKNN, SVMKNN]
ALL = PER_CLASS + POOLED


def direct_6_1(x, neighbors, seed=None):
    """The first line of (6.1), with a d x d Cholesky factor; log density."""
    k, d = neighbors.shape
    mean = neighbors.mean(axis=0)
    scatter = (neighbors - mean).T @ (neighbors - mean) + (np.eye(d) if seed is None else seed)
    L = np.linalg.cholesky(scatter)
    v = np.linalg.solve(L, x - mean)
    log_det = 2 * np.log(np.diag(L)).sum()
    power = (k + d + 4) / 2
    return (
        gammaln(power)
        - gammaln((k + 4) / 2)
        - d / 2 * np.log(np.pi)
        - 0.5 * (d * np.log((k + 1) / k) + log_det)
        - power * np.log1p(k / (k + 1) * v @ v)
    )


def predictive_a8(x, sample, B, q):
    """(A.8) as a multivariate t: n + q - d + 1 degrees of freedom, scale (n+1)/(n df) (S + B)."""
    n, d = sample.shape
    S = (sample - sample.mean(axis=0)).T @ (sample - sample.mean(axis=0))
    df = n + q - d + 1
    return multivariate_t(sample.mean(axis=0), (n + 1) / (n * df) * (S + B), df).logpdf(x)


def nearest(X, x, k):
    return X[np.argsort(((X - x) ** 2).sum(axis=1), kind="stable")[:k]]


# ------------------------------------------------------------------------------------------- the all-k identity


@pytest.mark.parametrize("d", [1, 2, 16, 100, 500])
def test_every_k_equals_direct_6_1(d):
    rng = np.random.default_rng(d)
    X, x = rng.standard_normal((100, d)), rng.standard_normal(d)
    X = nearest(X, x, 100)
    ours = local_bda_log_density(X - x)
    sizes = range(1, 101) if d < 500 else [1, 2, 7, 50, 100]
    assert_allclose(ours[np.array(sizes) - 1], [direct_6_1(x, X[:k]) for k in sizes], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k, d", [(1, 1), (3, 5), (12, 2)])
def test_6_1_is_the_predictive_4_22_with_q_d_plus_3(k, d):
    rng = np.random.default_rng(3)
    X, x = rng.standard_normal((k, d)), rng.standard_normal(d)
    assert_allclose(local_bda_log_density(X - x)[-1], predictive_a8(x, X, np.eye(d), d + 3), rtol=1e-12)


def test_linear_weights_are_least_norm_least_squares():
    rng = np.random.default_rng(0)
    for k, d in [(1, 3), (3, 5), (8, 2)]:
        X, x = rng.standard_normal((k, d)), rng.standard_normal(d)
        assert_allclose(linear_weights(X, x), np.linalg.lstsq(X.T, x, rcond=None)[0], atol=1e-12)
    X = rng.standard_normal((2, 3))
    X = np.vstack([X, X])  # rank 2: the printed (X^T X)^{-1} does not exist
    assert_allclose(linear_weights(X, x[[0, 1, 1]]), np.linalg.lstsq(X.T, x[[0, 1, 1]], rcond=None)[0], atol=1e-12)


# ------------------------------------------------------------------------------------ two routes and their digits


def exact_6_1(Z, k):
    """(6.1) for the first k neighbours and B = I, in sixty digits."""
    with mpmath.workdps(60):
        d = Z.shape[1]
        rows = [[mpmath.mpf(float(v)) for v in row] for row in Z[:k]]
        mean = [sum(column) / k for column in zip(*rows)]
        D = mpmath.eye(d)
        for row in rows:
            for i in range(d):
                for j in range(d):
                    D[i, j] += (row[i] - mean[i]) * (row[j] - mean[j])
        v = mpmath.matrix(mean)
        power = mpmath.mpf(k + d + 4) / 2
        quadratic = (v.T * mpmath.lu_solve(D, v))[0]
        value = mpmath.loggamma(power) - mpmath.loggamma(mpmath.mpf(k + 4) / 2)
        value -= (d * mpmath.log(mpmath.pi * mpmath.mpf(k + 1) / k) + mpmath.log(mpmath.det(D))) / 2
        return float(value - power * mpmath.log(1 + mpmath.mpf(k) / (k + 1) * quadratic))


@pytest.mark.parametrize("K, d", [(100, 1), (100, 4), (60, 3), (20, 2), (7, 9), (4, 30)])
def test_both_routes_give_the_same(K, d, monkeypatch):
    Z = 0.7 * np.random.default_rng(K).standard_normal((5, K, d))
    Z[1, 3] = Z[1, 2]
    Z[2, 0] = 0
    both = []
    for neighbours in (0.0, np.inf):
        monkeypatch.setattr(density, "UPDATED_NEIGHBOURS", neighbours)
        assert density.by_updates(K, d) == (neighbours == 0)
        both.append(local_bda_log_density(Z))
    assert_allclose(*both, rtol=1e-12, atol=1e-12)
    assert_allclose(both[0][3, -1], direct_6_1(np.zeros(d), Z[3]), rtol=1e-11)


@pytest.mark.parametrize("price", [0.0, np.inf])
@pytest.mark.parametrize("scale, tolerance", [(1.0, 1e-13), (1e3, 1e-12), (1e6, 1e-9), (1e8, 1e-7)])
@pytest.mark.parametrize("K, d, of_rank", [(12, 2, 2), (12, 2, 1), (6, 4, 2), (4, 7, 3)])
def test_no_digits_are_lost_where_features_are_large(K, d, of_rank, scale, tolerance, price, monkeypatch):
    """At 1e6 the error of the K x K factor alone is 1e-3; neighbours on a line or in a plane are the hard case.

    Where the bound on the factor's error is accepted the error keeps it; elsewhere the updates are right to rounding.
    """
    monkeypatch.setattr(density, "UPDATED_NEIGHBOURS", price)
    rng = np.random.default_rng(of_rank)
    Z = scale * rng.standard_normal((K, of_rank)) @ rng.standard_normal((of_rank, d))
    ours = local_bda_log_density(Z)
    bound = 0.0 if density.by_updates(K, d) else density.factor_rounding(np.sum(Z**2), K, d)
    allowed = max(tolerance, bound if bound <= density.FACTOR_ROUNDING else 0.0)
    assert_allclose(ours, [exact_6_1(Z, k) for k in range(1, K + 1)], rtol=tolerance, atol=allowed)


@pytest.mark.parametrize("K, d", [(40, 2), (3, 2)])
def test_a_seed_lost_beside_the_rows_is_an_error_by_either_route(K, d):
    Z = np.random.default_rng(0).standard_normal((2, K, d))
    assert np.isfinite(local_bda_log_density(1e9 * Z)).all()
    with pytest.raises(density.LostSeed, match="standardise X"):
        local_bda_log_density(1e13 * Z)


# ---------------------------------------------------------------------------------------- seeds that move


def test_neighbours_that_coincide_with_the_query_win_and_share():
    X = np.vstack([np.zeros((6, 2)), np.random.default_rng(0).standard_normal((12, 2)) + 2])
    y = np.repeat([0, 1, 2, 2], [3, 3, 6, 6])
    model = LocalBDA(n_neighbors=3, seed="neighborhood").fit(X, y)
    assert_allclose(model.predict_proba(np.zeros((1, 2))), [[0.5, 0.5, 0]], atol=1e-6)


def seeds_without(X, y, i, rule, k):
    """The classes and joint log densities of row i after a fit without it."""
    rest = np.arange(len(X)) != i
    model = LocalBDA(n_neighbors=k, seed=rule).fit(X[rest], y[rest])
    return model.classes_, model.predict_joint_log_proba(X[[i]])[0]


@pytest.mark.parametrize("rule", ["trace", "diag", "neighborhood"])
def test_left_out_rows_leave_the_seed_too(rule):
    """Every leave-one-out log density equals that of a refit, in the unit in which one row is most of a variance."""
    X, y = blobs(n=19)
    X[4, 1] = 300.0  # nearly all of the variance of its feature
    X[10] = X[13]
    y[7] = 3  # a class of one row
    model = LocalBDA(n_neighbors=2, seed=rule).fit(X, y)
    ours = model._evidence(X, [1, 2, 4], np.arange(19))
    for i in range(19):
        for j, k in enumerate((1, 2, 4)):
            classes, expected = seeds_without(X, y, i, rule, k)
            found = ours[i, classes, j] + np.log(4) - np.log(len(classes))
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.isneginf(ours[7, 3]).all()


@pytest.mark.parametrize("rule", ["trace", "diag", "neighborhood"])
def test_a_seed_that_is_nothing_without_a_row(rule):
    X = np.zeros((8, 2))
    X[0, 1], y = 1.0, np.arange(8) % 2
    X[:, 0] = np.arange(8) if rule == "diag" else 0.0
    LocalBDA(n_neighbors=2, seed=rule).fit(X, y)
    refused("without one of the rows", LocalBDA(n_neighbors=[1, 2], seed=rule).fit, X, y)
    refused("constant within every class", LocalBDA(n_neighbors=2, seed=rule).fit, np.zeros((8, 2)), y)


# --------------------------------------------------------------------------------------------- the classifiers


def blobs(n=60, d=3, r=3, random_state=0):
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n) % r)
    return rng.standard_normal((n, d)) + 1.2 * y[:, None], y


MATRIX = np.array([[2.0, 0.3, 0], [0.3, 1, 0], [0, 0, 0.5]])


@pytest.mark.parametrize("k", [1, 4, 20])
@pytest.mark.parametrize("seed", [1.0, 0.3, "trace", "diag", "neighborhood", MATRIX], ids=str)
def test_local_bda_is_6_1_on_the_nearest_of_each_class(seed, k):
    """A class with fewer rows than k gives all it has, and has the constants of their number."""
    X, y = blobs()
    keep = (y != 2) | (np.cumsum(y == 2) <= 4)
    X, y, Q = X[keep], y[keep], blobs(random_state=1)[0]
    variances = ((X - np.stack([X[y == h].mean(axis=0) for h in range(3)])[y]) ** 2).mean(axis=0)
    model, expected = LocalBDA(n_neighbors=k, seed=seed).fit(X, y), np.empty((len(Q), 3))
    for i, h in np.ndindex(expected.shape):
        rows = nearest(X[y == h], Q[i], k)
        of_rule = {"trace": variances.mean(), "diag": variances, "neighborhood": ((rows - Q[i]) ** 2).sum() / rows.size}
        B = np.diag(of_rule[seed] * np.ones(3)) if isinstance(seed, str) else seed * np.eye(3) ** np.isscalar(seed)
        expected[i, h] = direct_6_1(Q[i], rows, B)
    assert_allclose(model.predict_joint_log_proba(Q), expected - np.log(3), rtol=1e-10)
    assert_array_equal(model.predict(Q), np.argmax(expected, axis=1))


def test_local_nearest_means():
    X, y = blobs()
    Q = blobs(random_state=1)[0]
    distance = [[np.sum((x - nearest(X[y == h], x, 5).mean(axis=0)) ** 2) for h in range(3)] for x in Q]
    model = LocalNearestMeans().fit(X, y)
    assert_array_equal(model.predict(Q), np.argmin(distance, axis=1))
    posterior = np.exp(-0.5 * np.array(distance))
    assert_allclose(model.predict_proba(Q), posterior / posterior.sum(axis=1, keepdims=True), rtol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
def test_local_linear_is_a_local_least_squares_fit(intercept):
    X, y = blobs()
    Q = blobs(random_state=1)[0]
    model = LocalLinear(n_neighbors=12, fit_intercept=intercept).fit(X, y)

    def design(rows):
        return np.column_stack([rows, np.ones(len(rows))]) if intercept else rows

    for x, label in zip(Q, model.predict(Q)):
        near = np.argsort(((X - x) ** 2).sum(axis=1), kind="stable")[:12]
        coefficients = np.linalg.lstsq(design(X[near]), np.eye(3)[y[near]], rcond=None)[0]
        assert label == np.argmax(design(x[None]) @ coefficients)


def test_svm_knn_decides_by_the_dag():
    """The DAG over one fit of all pairs (scikit-learn's one-against-one decision values)."""
    X, y = blobs(n=90, r=4, d=2, random_state=5)
    Q = blobs(n=40, d=2, random_state=6)[0]
    predicted = SVMKNN(n_neighbors=30).fit(X, y).predict(Q)
    for x, label in zip(Q, predicted):
        near = np.argsort(((X - x) ** 2).sum(axis=1), kind="stable")[:30]
        present = list(np.unique(y[near]))
        machine = SVC(kernel="linear", decision_function_shape="ovo").fit(X[near], y[near])
        pairs = [(a, b) for i, a in enumerate(present) for b in present[i + 1 :]]
        margin = dict(zip(pairs, np.ravel(machine.decision_function(x[None]))))
        if len(present) == 2:  # scikit-learn turns the sign of a single pair
            margin = {pair: -value for pair, value in margin.items()}
        while len(present) > 1:
            present.remove(present[-1] if margin[present[0], present[-1]] > 0 else present[0])
        assert label == present[0]


@pytest.mark.parametrize("k", [6, 60])
@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel", "tricube"])
def test_bregman_knn_is_3_5_and_3_6(weights, k):
    """Of all sixty rows none lies beyond: the bandwidth is the distance of the last."""
    X, y = blobs()
    model = BregmanKNN(n_neighbors=k, weights=weights).fit(X, y)
    for x in blobs(random_state=1)[0][:10]:
        distance = np.sqrt(((X - x) ** 2).sum(axis=1))
        near = np.argsort(distance)
        d, beyond = distance[near][:k], distance[near][min(k, 59)]
        w = {
            "uniform": np.ones(k),
            "distance": 1 / d,
            "kernel": np.exp(-0.5 * (d / d[-1]) ** 2),
            "tricube": (1 - (d / beyond) ** 3) ** 3,
        }[weights]
        alpha = k * np.array([w[y[near[:k]] == h].sum() for h in range(3)]) / w.sum()
        assert_allclose(model.predict_proba(x[None])[0], (alpha + 1) / (k + 3), rtol=1e-10)


def test_neighbor_weights_at_the_edges():
    coincide = np.array([[0.0, 0.0, 1.0, 2.0]])
    assert_allclose(neighbor_weights(coincide, "distance"), [[0.5, 0.5, 0]])
    same = np.full((1, 4), 2.0)
    for scheme in ("uniform", "distance", "kernel", "tricube"):
        assert_allclose(neighbor_weights(same, scheme), np.full((1, 3), 1 / 3))
        assert_allclose(neighbor_weights(np.zeros((1, 4)), scheme), np.full((1, 3), 1 / 3))


# ---------------------------------------------------------------------------------------------------- costs


@pytest.mark.parametrize("estimator", ALL)
def test_zero_one_cost_changes_nothing_and_a_heavy_cost_does(estimator):
    X, y = blobs(r=2)
    Q = blobs(random_state=1, r=2)[0] - 0.3
    plain = estimator(n_neighbors=9).fit(X, y).predict(Q)
    assert_array_equal(estimator(n_neighbors=9, cost=[[0, 1], [1, 0]]).fit(X, y).predict(Q), plain)
    heavy = estimator(n_neighbors=9, cost=[[0, 50], [1, 0]]).fit(X, y).predict(Q)
    assert (heavy == 1).sum() > (plain == 1).sum()
    assert np.all(heavy[plain == 1] == 1) or estimator is SVMKNN  # a margin refitted with weights need not nest


# ------------------------------------------------------------------------------------------- choosing k


@pytest.mark.parametrize("estimator", ALL)
def test_predict_path_is_predict_at_every_size(estimator):
    X, y = blobs()
    Q = blobs(random_state=1)[0]
    path = estimator(n_neighbors=1).fit(X, y).predict_path(Q, [7, 1, 20])
    assert_array_equal(path, np.column_stack([estimator(n_neighbors=k).fit(X, y).predict(Q) for k in (7, 1, 20)]))


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("cost", [pytest.param(None, marks=pytest.mark.slow), [[0, 5, 1], [1, 0, 1], [1, 2, 0]]])
def test_leave_one_out_equals_refitting(estimator, cost):
    n = 12
    X, y = blobs(n=n)
    grid = [1, 2, 3]
    model = estimator(n_neighbors=grid, cost=cost).fit(X, y)
    matrix = 1 - np.eye(3) if cost is None else np.array(cost, dtype=float)
    expected = np.zeros(3)
    for j, k in enumerate(grid):
        for i in range(n):
            rest = np.arange(n) != i
            predicted = estimator(n_neighbors=k, cost=cost).fit(X[rest], y[rest]).predict(X[[i]])[0]
            expected[j] += matrix[predicted, y[i]] / n
    assert_allclose(model.cv_errors_, expected, atol=1e-12)
    tied = np.flatnonzero(expected <= expected.min() + 1e-12)
    if estimator is SVMKNN:
        assert model.n_neighbors_ == grid[tied[0]]
        return
    losses = np.zeros((3, n))
    for j, k in enumerate(grid):
        for i in range(n):
            rest = np.arange(n) != i
            losses[j, i] = -estimator(n_neighbors=k).fit(X[rest], y[rest]).predict_log_proba(X[[i]])[0, y[i]]
    assert_allclose(model.cv_log_loss_, mean_log_loss(losses), rtol=1e-9)
    assert model.n_neighbors_ == grid[tied[np.argmin(np.round(model.cv_log_loss_[tied], 8))]]


def test_a_log_loss_that_is_infinite_everywhere_is_an_error():
    with pytest.raises(InvalidStatistics, match="smooth the probabilities"):
        LocalLinear(n_neighbors=[5, 12], scoring="log_loss").fit(*blobs(n=60, random_state=1))
    refused("scoring must be", LocalBDA(n_neighbors="cv", scoring="first").fit, *blobs())


@pytest.mark.parametrize("shift, cost", [(1e6, None), (3e3, [[0, 5, 1], [1, 0, 1], [1, 2, 0]])])
def test_svmknn_does_not_see_the_origin(shift, cost):
    X, y = blobs(n=60)
    Q = blobs(n=60, random_state=1)[0]
    model = SVMKNN(n_neighbors=15, cost=cost)
    here, there = model.fit(X, y).predict(Q), model.fit(X + shift, y).predict(Q + shift)
    assert (here == there).mean() >= 59 / 60  # a row on a boundary may change with the digits


def test_svmknn_draws_no_numbers_of_the_user():
    X, y = blobs(n=60)
    before = np.random.get_state()[2]  # noqa: NPY002, how many of its numbers are taken
    SVMKNN(n_neighbors=15).fit(X, y).predict(X)
    assert np.random.get_state()[2] == before  # noqa: NPY002


@pytest.mark.parametrize("estimator", ALL)
def test_the_caller_s_arrays_stay_the_caller_s(estimator):
    X, y = blobs(n=60)
    cost = np.array([[0.0, 2, 1], [1, 0, 1], [1, 2, 0]])
    parameters = {"seed": np.eye(X.shape[1])} if estimator is LocalBDA else {}
    model = estimator(n_neighbors=5).set_params(**parameters).fit(X, y)
    held = [
        value for value in vars(model).values() if isinstance(value, np.ndarray) and value is not parameters.get("seed")
    ]
    assert not any(np.shares_memory(value, array) for value in held for array in (X, y, *parameters.values()))
    Q = X.copy()
    before = model.predict(Q)
    X += 100.0
    assert_array_equal(model.predict(Q), before)
    assert not np.shares_memory(estimator(n_neighbors=5, cost=cost).fit(Q, y)._cost, cost)


def test_the_default_grid_is_the_source_s_up_to_the_smallest_class():
    X, y = blobs(n=100, r=2)
    assert LocalBDA(n_neighbors="cv").fit(X, y).grid_.tolist() == [*range(1, 21), 30, 40, 50]
    assert BregmanKNN(n_neighbors="cv").fit(X, y).grid_[-1] == 90


# ----------------------------------------------------------------------------------------- ties and search


@pytest.mark.parametrize("estimator", PER_CLASS)
def test_more_rows_than_k_at_one_distance_come_by_index(estimator):
    """Twelve rows of each class on one circle about the query, and four copies of each: the first k are taken."""
    angles = np.random.default_rng(2).permutation(np.repeat(np.arange(12), 4)) * np.pi / 6
    X = np.column_stack([np.cos(angles), np.sin(angles)]).round(3)
    distance = np.sqrt((X**2).sum(axis=1))
    assert len(np.unique(distance)) <= 4  # rounding leaves a few
    y = np.arange(len(X)) % 2
    query = np.zeros((1, 2))
    model = estimator(n_neighbors=3).fit(X, y)
    first = [X[y == h][np.argsort(distance[y == h], kind="stable")[:3]] for h in (0, 1)]
    apart = estimator(n_neighbors=3).fit(np.vstack(first), np.repeat([0, 1], 3))
    assert_allclose(model.predict_joint_log_proba(query), apart.predict_joint_log_proba(query), rtol=1e-12)


def peak_of_predict(model, n, d):
    """Bytes at the peak, without copies of the queries, probabilities and labels."""
    Q = np.random.default_rng(1).standard_normal((n, d))
    return peak_memory(lambda: model.predict(Q)) - 6 * Q.nbytes


@pytest.mark.parametrize("d", [30, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("estimator", [LocalBDA, BregmanKNN, *slow(LocalNearestMeans, LocalLinear, SVMKNN)])
def test_memory_does_not_grow_with_the_queries(estimator, d, monkeypatch):
    if estimator is SVMKNN:  # one machine at a time: what could grow is the search
        monkeypatch.setattr(SVMKNN, "_tournament", lambda self, x, rows: 0)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, d)), np.arange(600) % 3
    model = estimator(n_neighbors=60).fit(X, y)
    assert peak_of_predict(model, 500, d) < 250 * 2**20
    if estimator is not LocalLinear:  # whose singular values take a second
        # all neighbours of all queries would take 0.3 and 1.3 GB
        assert peak_of_predict(model, 2_500, d) < 250 * 2**20


# --------------------------------------------------------------------------------------- the scikit-learn side


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    "params, message",
    [
        ({"n_neighbors": 0}, "n_neighbors must lie between 1"),
        ({"n_neighbors": 10_000}, "n_neighbors must lie between 1"),
        ({"n_neighbors": 2.5}, "positive integer"),
        ({"n_neighbors": [0, 1]}, "n_neighbors must lie between 1"),
        ({"n_neighbors": []}, "n_neighbors must be a sequence"),
        ({"cost": [[0, 1], [1, 0]]}, "cost must have shape"),
        ({"cost": -np.ones((3, 3))}, "non-negative"),
    ],
)
def test_bad_parameters(estimator, params, message):
    refused(message, estimator(**params).fit, *blobs())


@pytest.mark.parametrize("sizes", [[], 5, [0], [1.5]])
def test_bad_sizes_of_a_path(sizes):
    model = LocalBDA().fit(*blobs())
    refused("sizes must", model.predict_path, np.zeros((1, model.n_features_in_)), sizes)


@pytest.mark.parametrize(
    "model, message",
    [
        (LocalBDA(seed="ones"), "seed must be a number"),
        (LocalBDA(seed=0.0), "positive definite"),
        (LocalBDA(seed=np.nan), "seed must hold finite numbers"),
        (SVMKNN(C=0), "C must be a finite number > 0"),
        (LocalBDA(seed=np.ones((2, 2))), "seed must be a number or a symmetric"),
        (BregmanKNN(weights="gauss"), "weights must be"),
        (BregmanKNN(smoothing=-1.0), "smoothing must hold"),
        (BregmanKNN(smoothing=[1.0, 2.0]), "smoothing must be one number or 3"),
    ],
)
def test_bad_parameters_of_one_estimator(model, message):
    refused(message, model.fit, *blobs())


def test_local_nearest_means_warn_where_units_leave_distances_no_digits():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    X = rng.normal(size=(100, 2)) + 6 * y[:, None]
    assert LocalNearestMeans().fit(1e-5 * X, y).score(1e-5 * X, y) > 0.95
    with pytest.warns(UserWarning, match="rescale X, for example by StandardScaler"):
        LocalNearestMeans().fit(1e-8 * X, y)
