"""What goes wrong without a word elsewhere: refits that fail, costs with labels, groups of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from model_cases import EACH_ESTIMATOR, refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold

from rcpkg import (
    BDA7,
    EDDA,
    LDA,
    QDA,
    RDA,
    TAN,
    WANBIAC,
    BayesianQDA,
    BregmanKNN,
    CategoricalNB,
    ClosedFormClassifier,
    GaussianNB,
    LocalBDA,
    MDLDiscretizer,
    Mixture,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    TableClassifier,
    class_prior_of,
)
from rcpkg.base import Classifier

X, Y = load_iris(return_X_y=True)
X, Y = np.rint(10 * X[::5]), Y[::5] + 1  # whole numbers, which are codes as well
GAUSSIANS = "BDA7", "BayesianQDA", "EDDA", "NearestMeans", "QDA", "QuadraticBayes", "RDA"
MODELS = [EACH_ESTIMATOR[name] for name in (*GAUSSIANS, "BregmanKNN", "LocalBDA", "RiskCalibration", "WANBIAC")]
MODELS.append(RiskCalibrationCV(LDA(), target_weights=[1.0, 30.0], cv=3))


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return clone(request.param)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_refit_that_fails_or_is_interrupted_leaves_the_model_as_it_was(model, error, monkeypatch):
    model.fit(X, Y)
    before, attributes = model.predict_proba(X), sorted(vars(model))
    late = isinstance(model, QDA | WANBIAC | RiskCalibration | RiskCalibrationCV)
    owner, name = (ClosedFormClassifier, "_set_statistics") if late else (Classifier, "_set_labels")
    method = getattr(owner, name)

    def broken(self, *arguments):
        method(self, *arguments)
        raise error

    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(error):
        model.fit(X[:, :2], np.array(["a", "b", "c"])[Y - 1])
    assert_array_equal(model.classes_, [1, 2, 3])
    assert model.n_features_in_ == 4 and sorted(vars(model)) == attributes
    assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(error):
        clone(model).fit(X, Y)


LABELLED = [BayesianQDA, BDA7, RDA, LocalBDA, BregmanKNN]


@pytest.mark.parametrize("kind", LABELLED)
def test_rows_and_columns_of_a_frame_of_costs_go_by_their_labels(kind):
    labels = np.array(["low", "middle", "high"])[Y - 1]  # sorted: high, low, middle
    cost = pd.DataFrame([[0, 1, 5], [2, 0, 1], [9, 3, 0]], index=["low", "middle", "high"])
    cost.columns = ["low", "middle", "high"]
    by_hand = cost.loc[["high", "low", "middle"], ["high", "low", "middle"]].to_numpy()
    expected = kind(cost=by_hand).fit(X, labels).predict(X)
    assert_array_equal(kind(cost=cost).fit(X, labels).predict(X), expected)
    assert_array_equal(kind(cost=cost.loc[::-1, ["high", "low", "middle"]]).fit(X, labels).predict(X), expected)
    for without in (pd.DataFrame(1 - np.eye(3)), cost.set_axis([1, 2, 3], axis=1)):
        refused("cost must have the labels .* on its rows and its columns", kind(cost=without).fit, X, labels)
    of_two = pd.DataFrame([[0, 1], [5, 0]], index=[True, False], columns=[True, False])  # no mask of rows
    assert_array_equal(
        kind(cost=of_two).fit(X, Y == 1).predict(X), kind(cost=[[0, 5], [1, 0]]).fit(X, Y == 1).predict(X)
    )


LABELLED = pd.Series([1.0, 2.0, 3.0, 4.0], index=list("dcba"))


@pytest.mark.parametrize(
    "learner",
    [
        *(GaussianNB(priors=pd.Series([0.2, 0.3, 0.5], index=[3, 2, 1])), CategoricalNB(n_states=100 * LABELLED)),
        *(CategoricalNB(prior_strength=LABELLED), GaussianNB(prior_strength=1.0, prior_mean=LABELLED)),
        QDA(prior_strength=1.0, prior_covariance=pd.DataFrame(np.eye(4), index=list("dcba"), columns=list("dcba"))),
        *(BayesianQDA(seed=pd.DataFrame(np.eye(4), columns=list("dcba"))), BayesianQDA(class_prior=LABELLED[1:] / 9)),
        *(LocalBDA(seed=pd.DataFrame(np.eye(4), index=list("dcba"))), Mixture(GaussianNB(), priors=LABELLED[1:] / 9)),
        RiskCalibration(QDA(), gaps_in_view=pd.DataFrame(np.eye(4) > 0, columns=list("dcba"))),
        TableClassifier(gaps_in_view=pd.DataFrame(np.eye(4) > 0, columns=list("dcba"))),
        *(ProductModel([("a", QDA(), LABELLED > 2)]), MDLDiscretizer(categorical_features=LABELLED > 2)),
    ],
    ids=repr,
)
def test_labels_of_values_that_go_by_place_are_refused(learner):
    table = pd.DataFrame(X, columns=list("abcd"))
    fault = r"goes by place, and its labels (are in another order than that of|\('c', …\) are not those of) the"
    refused(fault, learner.fit, table, Y)


@pytest.mark.parametrize("model", [CategoricalNB, TAN])
def test_labels_that_are_no_names_of_features_say_so(model):
    X, values = np.arange(60).reshape(20, 3) % 2, pd.Series([2, 2, 2], index=list("abc"))
    fault = r"n_states goes by place, and its labels \('a', …\) are not those of the features"
    refused(fault + ", which have no names, or of classes_", model(n_states=values).fit, X, X[:, 0])
    refused(fault + " or of classes_", model(n_states=values).fit, pd.DataFrame(X, columns=list("xyz")), X[:, 0])
    model(n_states=values, prior_strength=1.0).fit(pd.DataFrame(X, columns=list("abc")), X[:, 0])


def test_a_row_that_is_a_series_of_text_is_no_table():
    frame = pd.DataFrame({"a": list("xyxy") * 5, "b": list("uuvv") * 5})
    table = TableClassifier(candidates=[("naive Bayes", CategoricalNB(prior_strength=1.0))], cv=2)
    for model in CategoricalNB(prior_strength=1.0), RiskCalibration(TAN(prior_strength=1.0)), table:
        model.fit(frame, np.arange(20) % 3 == 0)
        with pytest.warns(UserWarning, match="valid feature names"):
            refused(r"X must be a table, and is a series: one row of a frame is frame\.iloc", model.predict, frame.a)


def test_an_estimate_of_class_weights_is_a_class_prior():
    model = QDA().fit(X, Y)
    found = class_prior_of(model, X)
    expected = model.predict_proba(X, class_prior=found.class_prior)
    assert_array_equal(model.predict_proba(X, class_prior=found), expected)


def test_masks_of_parameters_hide_numbers():
    priors, cost = np.ma.array([0.2, 0.3, 0.5], mask=[0, 0, 1]), np.ma.masked_equal(1 - np.eye(3), 0)
    for learner in GaussianNB(priors=priors), QDA(cost=cost):
        refused(r"(priors|cost) must hold finite numbers", learner.fit, X, Y)


@pytest.mark.parametrize("names", [list("abcd"), [3, 1, 2, 9]], ids=str)
def test_labels_in_the_order_of_what_is_fitted_are_taken(names):
    table, class_prior = pd.DataFrame(X, columns=names), pd.Series([0.2, 0.3, 0.5], index=[1, 2, 3])
    for labelled in (
        *(BayesianQDA(class_prior=class_prior), BDA7(class_prior=class_prior), BDA7(cv=3, class_prior=class_prior)),
        GaussianNB(priors=class_prior),
        GaussianNB(prior_strength=1.0, prior_mean=table.mean()),
        QDA(prior_strength=1.0, prior_covariance=table.cov()),
        CategoricalNB(prior_strength=table.mean(), n_states=table.max().astype(int) + 1),
        ProductModel([("size", LDA(prior_strength=1.0, prior_mean=table.mean().iloc[[2, 0]]), [2, 0])]),
        LocalBDA(seed=table.cov()),
        RiskCalibration(QDA(), gaps_in_view=table > 60, max_iter=3, random_state=0),
        MDLDiscretizer(categorical_features=table.mean() > 30),
    ):
        plain = clone(labelled)
        for model in (plain, *(block for _, block, _ in getattr(plain, "blocks", ()))):
            given = model.get_params(deep=False).items()
            model.set_params(**{name: v.to_numpy() for name, v in given if isinstance(v, pd.Series | pd.DataFrame)})
        method = "transform" if isinstance(plain, MDLDiscretizer) else "predict_proba"
        with warnings.catch_warnings(action="ignore"):
            found, expected = (getattr(model.fit(table, Y), method)(table) for model in (labelled, plain))
        assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [BayesianQDA, BDA7, RDA, EDDA])
def test_costs_are_of_the_classes_that_count(kind):
    """A fit asked for costs of three classes where the rows of one had no weight, and the model for those of two."""
    weights, cost = (Y < 3).astype(float), np.array([[0.0, 1.0], [4.0, 0.0]])
    model = kind(cost=cost).fit(X, Y, sample_weight=weights)
    assert_array_equal(model.predict(X), kind(cost=cost).fit(X[Y < 3], Y[Y < 3]).predict(X))
    refused("cost must have shape", kind(cost=1 - np.eye(3)).fit, X, Y, sample_weight=weights)


@pytest.mark.parametrize("model", [BDA7(), RDA(lambdas=(0.0, 0.5))], ids=repr)
def test_groups_of_rows_stay_together(model):
    groups = np.arange(len(X)) % 7
    given = clone(model).set_params(cv=GroupKFold(7)).fit(X, Y, groups=groups)
    folds = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(7)]
    listed = clone(model).set_params(cv=folds).fit(X, Y)
    assert_allclose(given.cv_log_loss_, listed.cv_log_loss_)
    weights = np.arange(len(X)) % 5  # rows of weight zero take no part, nor do their groups
    weighted = clone(model).set_params(cv=GroupKFold(7)).fit(X, Y, sample_weight=weights, groups=groups)
    kept = weights > 0
    of_kept = clone(model).set_params(cv=GroupKFold(7))
    of_kept.fit(X[kept], Y[kept], sample_weight=weights[kept], groups=groups[kept])
    assert_allclose(weighted.cv_log_loss_, of_kept.cv_log_loss_)
    with pytest.raises(ValueError, match="groups must hold 30 labels, one a row"):
        clone(model).set_params(cv=GroupKFold(7)).fit(X, Y, groups=groups[:-1])
    refused("groups", clone(model).set_params(cv=GroupKFold(7)).fit, X, Y)


@pytest.mark.parametrize("model", [BDA7(), RiskCalibrationCV(LDA(), target_weights=[1.0, 3.0, 10.0])], ids=repr)
def test_all_repetitions_of_folds_count(model):
    def losses(cv):
        fitted = clone(model).set_params(cv=cv).fit(X, Y)
        return fitted.cv_log_loss_ if isinstance(model, BDA7) else fitted.cv_results_.log_loss

    repeated = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    folds = list(repeated.split(X, Y))
    first, second = losses(folds[:3]), losses(folds[3:])
    assert np.abs(first - second).max() > 1e-3
    assert_allclose(losses(repeated), (first + second) / 2, rtol=1e-6)
