"""rcpkg.discretization: cuts of least entropy, and their price by Fayyad and Irani (1993)."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_selection import SelectFromModel, SelectKBest, SequentialFeatureSelector, VarianceThreshold
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from rcpkg import LDA, CategoricalNB, MDLDiscretizer, RiskCalibration, RiskCalibrationCV, Rows
from rcpkg.discretization import mdl_cuts
from rcpkg.table import TableColumns


def entropy(labels):
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return -np.sum(shares * np.log2(shares))


def cuts_by_definition(x, y):
    """The recursion as printed, each part on its own rows."""
    values = np.unique(x)
    best = None
    for low, high in pairwise(values):
        left = x <= low
        expected = np.mean(left) * entropy(y[left]) + np.mean(~left) * entropy(y[~left])
        if best is None or expected < best[0] - 1e-12:
            best = expected, left, low + (high - low) / 2
    if best is None:
        return []
    expected, left, cut = best
    k, k1, k2 = (len(np.unique(part)) for part in (y, y[left], y[~left]))
    delta = np.log2(3.0**k - 2) - (k * entropy(y) - k1 * entropy(y[left]) - k2 * entropy(y[~left]))
    if entropy(y) - expected <= (np.log2(len(y) - 1) + delta) / len(y):
        return []
    return sorted([*cuts_by_definition(x[left], y[left]), cut, *cuts_by_definition(x[~left], y[~left])])


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_cuts_are_those_of_the_definition(load):
    X, y = load(return_X_y=True)
    for column in X.T:
        assert_allclose(mdl_cuts(column, y), cuts_by_definition(column, y))


def test_a_feature_that_says_nothing_is_not_cut():
    rng = np.random.default_rng(1)
    assert all(len(mdl_cuts(rng.normal(size=300), rng.integers(2, size=300))) == 0 for _ in range(20))
    assert len(mdl_cuts(np.ones(30), np.arange(30) % 2)) == 0


@pytest.mark.parametrize("low", [1.0, np.nextafter(1.0, 2.0), 0.0, -1.7e308])
def test_neighbouring_and_distant_numbers_are_told_apart(low):
    """Where no number lies halfway the cut is the lower one, which belongs to the interval below."""
    high = 1.7e308 if low < 0 else np.nextafter(low, 2.0)
    X, y = np.repeat([[low], [high]], 20, axis=0), np.repeat([0, 1], 20)
    discretizer = MDLDiscretizer().fit(X, y)
    assert np.isfinite(discretizer.cuts_[0]).all()
    assert_array_equal(discretizer.transform(X)[:, 0], y)


def test_cuts_do_not_depend_on_order_units_or_names():
    X, y = load_iris(return_X_y=True)
    x, order = X[:, 2], np.random.default_rng(2).permutation(len(y))
    cuts = mdl_cuts(x, y)
    assert_allclose(mdl_cuts(x[order], y[order]), cuts)
    assert_allclose(mdl_cuts(100 * x + 7, np.array(["c", "a", "b"])[y]), 100 * cuts + 7)


def test_missing_values_are_left_out_and_stay_missing():
    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[::7, 2] = np.nan
    known = ~np.isnan(X[:, 2])
    discretizer = MDLDiscretizer().fit(X, y)
    assert_allclose(discretizer.cuts_[2], mdl_cuts(X[known, 2], y[known]))
    assert_array_equal(np.isnan(discretizer.transform(X)), np.isnan(X))


def test_categorical_features_are_left_as_they_are():
    X, y = load_iris(return_X_y=True)
    for given in ([1, 3], np.array([False, True, False, True])):
        discretizer = MDLDiscretizer(categorical_features=given).fit(X, y)
        assert [cuts is None for cuts in discretizer.cuts_] == [False, True, False, True]
        codes = discretizer.transform(X)
        assert_array_equal(codes[:, [1, 3]], X[:, [1, 3]])
        assert_array_equal(np.unique(codes[:, 2]), [0, 1, 2])


@pytest.mark.parametrize("given", [[4], [-1], [0.5], [[0]], [True, False]])
def test_wrong_categorical_features_are_named(given):
    X, y = load_iris(return_X_y=True)
    refused("categorical_features must be a mask of 4", MDLDiscretizer(categorical_features=given).fit, X, y)


def test_cuts_behind_a_choice_of_the_weight_are_made_anew_in_each_fold():
    X, y = load_iris(return_X_y=True)
    X, y, weights = X[::3], np.array(["a", "b", "c"])[y[::3]], np.r_[0.0, np.ones(49)]
    cv, settings = StratifiedKFold(3), {"target": "pooled", "target_weights": [1.0], "closed_form": False}
    pipeline = make_pipeline(MDLDiscretizer(), CategoricalNB(prior_strength=1.0))
    by_hand = make_pipeline(MDLDiscretizer(), RiskCalibration(pipeline[-1], target_weight=1.0))
    model = RiskCalibrationCV(pipeline, cv=cv, **settings).fit(X, y, sample_weight=weights)
    X, y, losses = X[1:], y[1:], []
    for train, held in cv.split(X, y):
        fit = clone(by_hand).fit(X[train], y[train])
        losses.append(log_loss(y[held], fit.predict_proba(X[held]), normalize=False))
    assert model.cv_results_.log_loss[0] == pytest.approx(sum(losses) / 49, abs=1e-4)  # √ of the gain that ends folds
    whole = clone(by_hand).fit(X, y)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-4)
    assert model.n_features_in_ == 4 and clone(model).fit(X, y).validation_ == "3 folds"
    with pytest.warns(UserWarning, match="the steps before the model have seen the rows that it would leave out; 5"):
        RiskCalibrationCV(pipeline, cv="loo").fit(X, y)
    refused("RiskCalibration calibrates a model and no pipeline", RiskCalibration(pipeline).fit, X, y)


class SignOfSeenRows(TransformerMixin, BaseEstimator):
    """A step that makes other features of rows that it has seen, as scikit-learn's TargetEncoder does."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X

    def fit_transform(self, X, y):
        return -self.fit(X, y).transform(X)


@pytest.mark.parametrize("weights", [np.ones(150), np.arange(150) % 3])
def test_a_model_behind_steps_learns_from_what_they_make_of_rows_that_they_have_seen(weights):
    X, y = load_iris(return_X_y=True)
    settings = {"target": "pooled", "target_weights": [1.0], "closed_form": False, "cv": 3}
    behind = RiskCalibrationCV(make_pipeline(SignOfSeenRows(), LDA()), **settings).fit(X, y, sample_weight=weights)
    alone = RiskCalibrationCV(LDA(), **settings).fit(-X, y, sample_weight=weights)
    assert_allclose(behind.predict_proba(X), alone.predict_proba(X), atol=1e-9)


class KeepsAnEstimator(FunctionTransformer):
    """A step whose own fit sees no labels, as IterativeImputer's does."""

    def __init__(self, estimator):
        super().__init__()
        self.estimator = estimator


class NeedsLabels(StandardScaler):
    """A step whose tags do not say so."""

    def fit(self, X, y):
        return super().fit(X)


class WithoutTags:
    """A step that has no more than a pipeline asks for."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_steps_that_have_read_the_labels_of_rows_left_out_are_named():
    X, y = load_iris(return_X_y=True)
    says = "MDLDiscretizer has read the labels of the rows"
    model = RiskCalibrationCV(CategoricalNB(prior_strength=1.0), target_weights=[1.0], cv=2)
    cuts = make_column_transformer((MDLDiscretizer(), [0, 1, 2]), ("drop", [3]))
    for steps in ([MDLDiscretizer()], [cuts, "passthrough"], [make_pipeline(MDLDiscretizer())]):
        with pytest.warns(UserWarning, match=says) as caught:
            make_pipeline(*steps, model).set_output(transform="pandas").fit(X, y)
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=says):
        make_pipeline(MDLDiscretizer(), make_pipeline("passthrough", model)).fit(X, y)
    with pytest.warns(UserWarning, match="TableColumns has read the labels of the rows"):
        make_pipeline(TableColumns(intervals=True), model).fit(X, y)
    tree, plain = DecisionTreeClassifier(random_state=0), RiskCalibrationCV(LDA(), target_weights=[1.0], cv=2)
    several = SequentialFeatureSelector(tree, n_features_to_select=2, cv=2)
    for step in SelectKBest(k=2), SelectFromModel(tree), several, NeedsLabels():
        with pytest.warns(UserWarning, match=f"{type(step).__name__} has read the labels of the rows"):
            make_pipeline(step, plain).fit(X, y)
    with warnings.catch_warnings(action="error"):
        make_pipeline(SelectFromModel(tree.fit(X, y), prefit=True), VarianceThreshold(), plain).fit(X, y)
        make_pipeline(Binarizer(threshold=3.0), model).fit(X, y)
        make_pipeline(KeepsAnEstimator(DecisionTreeClassifier()), Binarizer(threshold=3.0), model).fit(X, y)
        make_pipeline(WithoutTags(), Binarizer(threshold=3.0), model).fit(X, y)
        make_pipeline(MDLDiscretizer(), model.estimator).fit(X, y)


def test_names_of_columns_go_through_a_choice_of_the_weight():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(MDLDiscretizer(), CategoricalNB(prior_strength=1.0))
    model = RiskCalibrationCV(pipeline, target_weights=[1.0, 10.0]).fit(X, y)
    assert model.validation_ == "5 folds" and list(model.feature_names_in_) == list(X.columns)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert_array_equal(clone(model).fit(Rows.from_arrays(X, y)).predict_proba(X), model.predict_proba(X))
    refused("feature names should match", model.predict, X.iloc[:, ::-1])
