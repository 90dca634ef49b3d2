"""scikit-learn's contract: its own checks, counted, and the ways in which people use an estimator."""

import inspect
from dataclasses import field

import numpy as np
import pandas as pd
import pytest
import sklearn
from model_cases import EACH_ESTIMATOR, MODELS, mixed_model, mixed_rows, refused, rows_for, slow
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

from rcpkg import (
    LDA,
    QDA,
    TAN,
    TM,
    WANBIAC,
    BernoulliNB,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    KDependenceBayes,
    Mixture,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    SharedVarianceGaussianNB,
    SoftErrorCalibration,
)
from rcpkg.base import Estimator, constructed
from rcpkg.calibration import Fixed
from rcpkg.capabilities import MARGINALS, can

# A prior, because the checks fit rows that are fewer than the features, and states that a fold has not seen
SMOOTHED = {kind: kind(prior_strength=1.0) for kind in (QDA, LDA, GaussianNB, SharedVarianceGaussianNB)}
CHECKED = [
    *(QDA(), LDA(), GaussianNB(), SharedVarianceGaussianNB(), SMOOTHED[QDA], SMOOTHED[SharedVarianceGaussianNB]),
    *(CategoricalNB(), CategoricalNB(prior_strength=1.0), TAN(), TAN(prior_strength=0.0)),
    *(KDependenceBayes(k=0), KDependenceBayes(k=1, decomposable=False)),
    *(BernoulliNB(prior_strength=1.0), MultinomialNB(prior_strength=1.0)),
    ProductModel([("all", SMOOTHED[QDA], slice(None))]),
    Mixture(GaussianNB(), n_components=2, n_starts=1, max_iter=10, random_state=0),
    EACH_ESTIMATOR["Mixture"],
    RiskCalibration(SMOOTHED[QDA]),
    RiskCalibration(EACH_ESTIMATOR["Mixture"]),
    RiskCalibration.as_published(SMOOTHED[QDA], max_iter=8),
    RiskCalibration(SMOOTHED[LDA], step="safe", max_iter=8, target_weight=0.0, tol=0.0),
    RiskCalibration.as_published(SMOOTHED[GaussianNB], target_weight=1.0, stopping="best_error", max_iter=8),
    RiskCalibration(TAN(), target="nested"),
    RiskCalibration(SMOOTHED[QDA], target="generative", target_weight=1.0),
    RiskCalibration(KDependenceBayes(k=0, decomposable=False), step="safe", max_iter=8),
    TM(SMOOTHED[SharedVarianceGaussianNB], max_iter=8),
    DiscriminativeFrequencyEstimate(SMOOTHED[GaussianNB], max_iter=8),
    SoftErrorCalibration(SMOOTHED[QDA], max_iter=8),
    RiskCalibrationCV(SMOOTHED[GaussianNB], target="pooled", target_weights=[3.0], cv=2),
    RiskCalibrationCV(SMOOTHED[LDA], target_weights=[3.0]),
    RiskCalibrationCV(QDA()),
    ConditionalLikelihood(SMOOTHED[LDA], target_weight=1.0),
    WANBIAC(),
]
# Sample weights against repeated rows
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
# These feed reals and pass over the tag of categorical input
REALS_FOR_CATEGORIES = WEIGHTS, "check_decision_proba_consistency"
# before scikit-learn 1.7.2: it takes the mean from integers in place
IN_INTEGERS = "check_positive_only_tag_during_fit"
SUBTRACTS = parse_version(sklearn.__version__) < parse_version("1.7.2")


# these go through the code of others: the settings of `RiskCalibration`, and the other features that a family may have
OF_OTHERS = TM, DiscriminativeFrequencyEstimate, SoftErrorCalibration, SharedVarianceGaussianNB, KDependenceBayes


def once_quickly(estimators):
    """The first of each class; further ones of it, and those of `OF_OTHERS`, are left to the slow suite."""
    first = {type(estimator): estimator for estimator in reversed(estimators)}
    quick = [first[type(e)] is e and not isinstance(e, OF_OTHERS) for e in estimators]
    return [pytest.param(e, marks=[pytest.mark.slow] * (not of)) for e, of in zip(estimators, quick)]


@pytest.mark.parametrize(
    "estimator",
    [*once_quickly(CHECKED), EACH_ESTIMATOR["MDLDiscretizer"], *slow(EACH_ESTIMATOR["TableClassifier"])],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
# L-BFGS says so where its line search ends at rounding errors before the gradient is below ``tol``
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# some checks fit a table whose columns tell the classes apart without error
@pytest.mark.filterwarnings("ignore:feature .* is constant within each class")
def test_sklearn_checks(estimator):
    tags = estimator.__sklearn_tags__().input_tags
    codes = tags.categorical and not hasattr(estimator, "candidates")  # `TableClassifier` takes reals as well
    expected = dict.fromkeys(REALS_FOR_CATEGORIES, "feeds reals to a model of categories") if codes else {}
    if tags.positive_only and not tags.categorical:
        expected = {REALS_FOR_CATEGORIES[1]: "feeds negative numbers to a model of counts"}
    if tags.categorical and tags.positive_only:
        expected["check_fit_non_negative"] = "-1 is a missing value, which OrdinalEncoder writes so"
    if can(estimator, MARGINALS) and not tags.allow_nan:
        expected |= {"check_estimators_nan_inf": "takes missing values in prediction, not in training"}
    if tags.categorical and not tags.allow_nan and SUBTRACTS:
        expected[IN_INTEGERS] = "subtracts reals from integers"
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None)
    by_status = {
        status: [r["check_name"] for r in results if r["status"] == status]
        for status in ("passed", "failed", "xfail", "skipped")
    }
    assert by_status["failed"] == []
    assert sorted(by_status["xfail"]) == sorted(expected)
    assert by_status["skipped"] in ([], ["check_array_api_input"])  # runs only where SCIPY_ARRAY_API is set
    least = 61 if is_classifier(estimator) else 46
    assert len(by_status["passed"]) >= least - len(expected) - tags.allow_nan  # which leaves out the check for NaN


USED = {
    **MODELS,
    "QDA RC": RiskCalibration.as_published(QDA(), learning_rate=0.05, max_iter=3),
    "CategoricalNB TM": TM(CategoricalNB(), max_iter=2),
    "GaussianNB DFE": DiscriminativeFrequencyEstimate(GaussianNB(), max_iter=3, step=Fixed(0.05)),
    "ProductModel SoftError": SoftErrorCalibration(mixed_model(), max_iter=3, step=Fixed(0.05)),
}


@pytest.mark.parametrize("name", USED)
def test_data_frames(name):
    X, y = rows_for(name)
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])], index=np.arange(len(X))[::-1])
    labels = pd.Series(np.array(["a", "b", "c"])[y], index=frame.index, dtype="category")
    estimator = clone(USED[name]).fit(frame, labels)
    assert_array_equal(estimator.feature_names_in_, frame.columns)
    assert_allclose(estimator.predict_proba(frame), clone(USED[name]).fit(X, y).predict_proba(X), atol=1e-9)
    refused("feature names should match", estimator.predict, frame[frame.columns[::-1]])


def test_grid_search_reaches_the_blocks_of_a_product():
    learner, product = RiskCalibration.as_published(mixed_model(), max_iter=3), mixed_model()
    search = GridSearchCV(learner, {"estimator__sizes__prior_strength": [0.0, 5.0]}).fit(*mixed_rows())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    twin = clone(product).set_params(sizes__prior_strength=7.0)
    assert twin.get_params()["sizes__prior_strength"] == 7.0
    assert product.get_params()["sizes__prior_strength"] == 0.0
    assert twin.set_params(sizes=LDA()).blocks[1][1].get_params() == LDA().get_params()


def test_constructors_take_annotated_attributes_by_keyword():
    """A class's own before those that it inherits; one that is of no use to it is no parameter."""

    @constructed
    class Whole(Estimator):
        size: int = 1
        name: str = "one"

    @constructed
    class Part(Whole):
        share: float = 0.5
        name: str = field(init=False, default="part")

    assert list(inspect.signature(Part).parameters) == ["share", "size"]
    assert Part(size=2).get_params() == {"share": 0.5, "size": 2} and clone(Part(size=2)).size == 2
    assert Part().name == "part" and repr(Part(share=1.0)) == "Part(share=1.0)"
    assert Part() != Part() and Part().__doc__ is None
    for wrong in (lambda: Part(0.5), lambda: Part(name="whole")):
        with pytest.raises(TypeError, match="argument"):
            wrong()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator", {type(each): each for each in CHECKED}.values(), ids=lambda each: type(each).__name__
)
def test_every_classifier_decides_by_a_cost(estimator):
    X, y = make_classification(
        120, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    if estimator.__sklearn_tags__().input_tags.categorical or estimator.__sklearn_tags__().input_tags.positive_only:
        X = (X > 0).astype(float)
    cost = np.array([[0, 9, 1], [1, 0, 1], [1, 5, 0]])
    model = clone(estimator).set_params(cost=cost).fit(X, y)
    assert_array_equal(model.predict(X), np.argmin(model.predict_proba(X) @ cost.T, axis=1))
    if hasattr(estimator, "estimator"):
        inner = clone(estimator.estimator).set_params(cost=cost)
        assert_array_equal(clone(estimator).set_params(estimator=inner).fit(X, y).predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"cost must have shape \(3, 3\)"):
        clone(estimator).set_params(cost=[[0, 1], [1, 0]]).fit(X, y).predict(X)


@pytest.mark.parametrize("kind", dict.fromkeys(map(type, CHECKED)), ids=lambda kind: kind.__name__)
def test_a_parameter_that_a_class_lacks_is_told_with_its_name(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'prior'"):
        kind(prior=1.0)


@pytest.mark.parametrize(
    "learner",
    [
        RiskCalibration(QDA(), step=Fixed(1e9)),
        RiskCalibration(QDA(), max_iter=1),
        RiskCalibrationCV(QDA(), target_weights=[1e-3, 1e-2], closed_form=False),
        ConditionalLikelihood(QDA(), max_iter=1),
        WANBIAC(max_iter=1),
    ],
    ids=repr,
)
def test_warnings_of_a_fit_point_at_the_line_of_the_user(learner):
    X, y = make_classification(90, 4, random_state=0)
    if isinstance(learner, WANBIAC):
        X = (X > 0).astype(float)
    for model in (learner, make_pipeline(learner)):
        with pytest.warns(UserWarning) as said:
            model.fit(X, y)
        assert {each.filename for each in said} == {__file__}
