"""Why a prediction: contributions and sufficient sets, against their definitions and by enumeration."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from model_cases import ML, fitted, of_each_family, refused, slow
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from rcpkg import (
    LDA,
    QDA,
    BregmanKNN,
    CategoricalNB,
    GaussianNB,
    KDependenceBayes,
    ProductModel,
    RiskCalibrationCV,
    Rows,
    TableClassifier,
    explain,
)
from rcpkg.explain import sufficient_sets
from rcpkg.families import Unsupported

OF_ALL = pytest.mark.parametrize("name", ML)


def contributions(model, X, *options, **named):
    """As an array of shape (n, d, r)."""
    found = explain.contributions(model, X, *options, **named)
    return found.to_numpy().reshape(len(X), -1, found.shape[1])


def log_posterior(model, row, seen):
    return model.predict_log_proba(np.where(np.isin(np.arange(len(row)), seen), row, np.nan)[None])[0]


@OF_ALL
def test_contributions_are_differences_of_log_posteriors(name):
    model, X, *_ = fitted(name)
    found, d = contributions(model, X[:3]), X.shape[1]
    for row, of_row in zip(X, found):
        whole = log_posterior(model, row, range(d))
        assert_allclose(of_row, [whole - log_posterior(model, row, np.delete(np.arange(d), j)) for j in range(d)])
    P = [np.exp(log_posterior(model, X[0], S)) for S in (range(d), range(1, d))]
    assert_allclose(contributions(model, X[:1], value="proba")[0, 0], P[0] - P[1], atol=1e-14)


def test_rows_are_one_block():
    (X, y), model = load_iris(return_X_y=True), QDA()
    model.fit(X, y)
    found = explain.contributions(model, Rows.from_arrays(X[:4]))
    assert_array_equal(found, explain.contributions(model, X[:4]))
    for function in explain.contributions, sufficient_sets:
        with pytest.raises(Unsupported, match="An explanation takes rows that are one block: give it the rows in mem"):
            function(model, Rows.from_arrays(X[:4], block_size=2))


@OF_ALL
def test_shapley_values_are_means_over_orders(name):
    model, X, *_ = fitted(name)
    d, orders = X.shape[1], list(permutations(range(X.shape[1])))
    of_value = {value: contributions(model, X[:2], "shapley", value) for value in ("log_proba", "proba")}
    for i, row in enumerate(X[:2]):
        sets = {S: log_posterior(model, row, S) for k in range(d + 1) for S in combinations(range(d), k)}
        for value, found in of_value.items():
            v = sets if value == "log_proba" else {S: np.exp(log_P) for S, log_P in sets.items()}
            mean = np.zeros_like(found[i])
            for order in orders:
                for k, j in enumerate(order):
                    mean[j] += (v[tuple(sorted(order[: k + 1]))] - v[tuple(sorted(order[:k]))]) / len(orders)
            assert_allclose(found[i], mean, atol=1e-12)
            assert_allclose(found[i].sum(axis=0), v[tuple(range(d))] - v[()])
    assert_allclose(sets[()], model.class_log_prior_)


@pytest.mark.parametrize("name", of_each_family(*ML))
def test_no_smaller_set_is_sufficient_and_none_of_its_size_better(name):
    model, X, *_ = fitted(name)
    X, d, level = X[:8], X.shape[1], 0.7
    found = sufficient_sets(model, X, level)
    for row, features, probability in zip(X, *found):
        c = log_posterior(model, row, range(d)).argmax()
        P = {S: np.exp(log_posterior(model, row, S)[c]) for k in range(d + 1) for S in combinations(range(d), k)}
        chosen = tuple(np.flatnonzero(features))
        assert probability == pytest.approx(P[chosen])
        rivals = {S: p for S, p in P.items() if p >= level and len(S) < d}
        if rivals:
            size = min(map(len, rivals))
            assert len(chosen) == size
            assert probability == pytest.approx(max(p for S, p in rivals.items() if len(S) == size))
        else:
            assert features.all()


def test_a_pipeline_is_explained_by_its_last_step_with_the_names_that_this_step_is_given():
    X, y = load_wine(return_X_y=True, as_frame=True)
    for output in ("default", "pandas"):
        pipeline = make_pipeline(SelectKBest(k=3), StandardScaler(), GaussianNB())
        pipeline.set_output(transform=output).fit(X, y)
        names = pipeline[:-1].get_feature_names_out()
        found = contributions(pipeline, X[:4], "shapley", "log_odds")
        assert_allclose(found, contributions(pipeline[-1], pipeline[:-1].transform(X[:4]), "shapley", "log_odds"))
        frame = explain.contributions(pipeline, X[:4], "shapley", "log_odds")
        assert_array_equal(frame.index.get_level_values("feature"), [*names] * 4)
    assert_allclose(frame.loc[2, names[1]], found[2, 1])
    assert list(frame.columns) == list(pipeline.classes_)
    assert sufficient_sets(pipeline, X[:4]).features.shape == (4, 3)


def doubled(X):
    """What fills no gap, but has none without one in each feature."""
    return 2 * X - X.mean(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "step", [SelectKBest(k=2), *slow(SimpleImputer(), FunctionTransformer(doubled), "passthrough")]
)
def test_a_calibrated_pipeline_is_explained_by_its_last_step(step):
    X, y = load_iris(return_X_y=True)
    whole = RiskCalibrationCV(make_pipeline(step, GaussianNB()), target_weights=[1.0]).fit(X, y)
    last, rows = whole.estimator_, whole.preprocessing_.transform(X[60:62])
    for model in whole, make_pipeline(whole).fit(X, y), make_pipeline("passthrough", whole).fit(X, y):
        for method in "hidden", "shapley":
            assert_array_equal(contributions(model, X[60:62], method), contributions(last, rows, method))
        assert_array_equal(sufficient_sets(model, X[60:62]).features, sufficient_sets(last, rows).features)


def test_what_is_not_fitted_is_not_explained():
    for model in QDA(), TableClassifier(), make_pipeline(StandardScaler(), QDA()):
        with pytest.raises(NotFittedError):
            explain.contributions(model, [[1.0]])


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_rows_of_any_frame_are_explained_by_the_names_of_their_columns(package):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, model = X.assign(wide=np.where(X.iloc[:, 1] > 3, "yes", "no")), CategoricalNB(prior_strength=1.0)
    model = ProductModel([("n", QDA(), list(X.columns[:4])), ("c", model, ["wide"])]).fit(X, y)
    given = getattr(pytest.importorskip(package), {"polars": "from_pandas", "pyarrow": "table"}[package])(X[:3])
    pd.testing.assert_frame_equal(explain.contributions(model, given), explain.contributions(model, X[:3]))
    assert_array_equal(sufficient_sets(model, given).features, sufficient_sets(model, X[:3]).features)
    hidden = X[:3].assign(wide=None)
    by_hand = model.predict_log_proba(X[:3]) - model.predict_log_proba(hidden)
    assert_allclose(contributions(model, given)[:, 4], by_hand)


def test_what_was_taken_of_a_table_is_explained_by_the_columns_that_it_has():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.assign(wide=np.where(X.pop("sepal width (cm)") > 3, "yes", "no"))
    table = TableClassifier(
        candidates=[("any", ProductModel([("n", LDA(), [0, 1]), ("c", CategoricalNB(), [3])]))], cv=2
    )
    columns, model = table.fit(X, y).best_estimator_
    frame = explain.contributions(table, X[:3])
    assert_array_equal(frame, explain.contributions(model, columns.transform(X[:3])))
    assert list(frame.loc[0].index) == list(X.columns)
    assert sufficient_sets(table, X[:3]).features.shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: contributions(m, X, "sampled"), "method must be 'hidden' or 'shapley'"),
        (lambda m, X: contributions(m, X[:, :2]), "3 features"),
        (lambda m, X: contributions(m, X[0]), "Expected 2D array, got 1D array"),
        (lambda m, X: sufficient_sets(m, pd.Series(X[0])), "is a series: one row of a frame is"),
        (lambda m, X: sufficient_sets(m, X, 1.0), "level must be a finite number > 0 and < 1"),
        (lambda m, X: sufficient_sets(m, X, 0.0), "level must be a finite number > 0"),
        (lambda m, X: sufficient_sets(m, X, max_size=-1), "max_size must be an integer >= 0"),
    ],
)
def test_bad_input(call, message):
    model, X, *_ = fitted("QDA")
    refused(message, call, model, X)


def test_what_has_no_marginals_or_no_finite_log_posterior_is_refused():
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1]
    with pytest.raises(Unsupported, match="BregmanKNN"):
        contributions(BregmanKNN(n_neighbors=1).fit(X, y), X)
    refused("posterior zero: give the model a prior_strength", contributions, CategoricalNB().fit(X, y), X)
    assert_array_equal(sufficient_sets(CategoricalNB().fit(X, y), X).features, [[True, False]] * 4)


def centred(values):
    return values - values.mean(axis=2, keepdims=True)


def chain_rows(d, n=600, seed=0):
    """Codes of which each depends on the one before, and on the class."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(2, size=n), rng.integers(3, size=(n, d))
    for j in range(1, d):
        X[:, j] = np.where(rng.uniform(size=n) < 0.6, (X[:, j - 1] + y) % 3, X[:, j])
    return X, y


@OF_ALL
def test_shapley_values_of_log_odds_are_those_of_log_posteriors_but_for_what_classes_share(name):
    model, X, *_ = fitted(name)
    rows = X[:4].copy()
    rows[1, 1] = rows[2, 0] = np.nan
    found = contributions(model, rows, "shapley", "log_odds")
    assert_allclose(found, centred(contributions(model, rows, "shapley")), atol=1e-12)
    assert_allclose(found.sum(axis=2), 0, atol=1e-12)
    assert_allclose([found[1, 1], found[2, 0]], 0, atol=1e-12)  # what is missing contributes nothing


def test_a_chain_has_few_connected_sets_and_a_star_many():
    X, y = chain_rows(40)
    chain = KDependenceBayes(structure=[[], *([j] for j in range(39))]).fit(X, y)
    found = contributions(chain, X[:3], "shapley", "log_odds")
    log_P, prior = chain.predict_log_proba(X[:3]), chain.class_log_prior_
    assert_allclose(np.diff(found.sum(axis=1)), np.diff(log_P - prior), atol=1e-10)
    star = KDependenceBayes(structure=[[], *([0] for _ in range(39))]).fit(X, y)
    for model, value in (star, "log_odds"), (chain, "log_proba"):
        refused("more than 65,536 connected sets", contributions, model, X[:3], "shapley", value)


def test_shapley_values_of_a_product_go_block_by_block():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 30)), rng.integers(2, size=300)
    X[:, :5] += y[:, None]
    blocks = [("few", QDA(), range(5)), ("many", GaussianNB(), range(5, 30))]
    model = ProductModel([(name, family, list(columns)) for name, family, columns in blocks]).fit(X, y)
    found = contributions(model, X[:4], "shapley", "log_odds")
    alone = QDA().fit(X[:, :5], y)
    assert_allclose(found[:, :5], centred(contributions(alone, X[:4, :5], "shapley")), atol=1e-10)
    assert_allclose(found[:, 5:], contributions(model, X[:4], "hidden", "log_odds")[:, 5:], atol=1e-10)
