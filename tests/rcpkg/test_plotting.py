"""`rcpkg.plotting`: pictures show what was predicted, chosen and learnt; importing rcpkg needs no matplotlib."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from rcpkg import QDA, TAN, KDependenceBayes, RiskCalibration, RiskCalibrationCV, plotting


def test_decision_regions_show_the_predictions(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + np.repeat([[0, 0], [3, 1]], 20, axis=0)
    y = np.repeat(["a", "b"], 20)
    classifier = GaussianNB().fit(X, y)
    plotting.DecisionRegionsDisplay.from_estimator(classifier, X, y, resolution=50, ax=ax)
    for display in plotting.DecisionRegionsDisplay, plotting.ReliabilityDisplay:
        with pytest.raises(ValueError, match="y holds False, which is none of the classes a, b"):
            display.from_estimator(classifier, X, y == "b", ax=ax)
    with pytest.raises(ValueError, match="y must have a label for each of the 40 rows of X; got 10"):
        plotting.DecisionRegionsDisplay.from_estimator(classifier, X, y[:10], ax=ax)
    refused("estimator must be fitted", plotting.DecisionRegionsDisplay.from_estimator, GaussianNB(), X, ax=ax)
    left, right, bottom, top = ax.images[0].get_extent()
    corner = classifier.predict([[left, bottom], [right, top]])
    values = ax.images[0].get_array()
    assert [classifier.classes_[values[0, 0]], classifier.classes_[values[-1, -1]]] == list(corner)
    assert [scatter.get_label() for scatter in ax.collections] == ["a", "b"]


def test_decision_regions_of_rows_with_gaps_and_of_a_constant_column(ax):
    X = np.array([[0.0, 2.0], [1.0, 2.0], [np.nan, 2.0], [3.0, np.nan]])
    model = GaussianNB().fit(np.eye(2), [0, 1])
    extent = plotting.DecisionRegionsDisplay.from_estimator(model, X, [0, 1, 0, 1], resolution=9, ax=ax).extent
    assert extent == pytest.approx((-0.15, 3.15, 1.95, 2.05))


@pytest.mark.parametrize("shape", [(5, 3), (5,), (0, 2)])
def test_decision_regions_need_two_features(ax, shape):
    with pytest.raises(ValueError, match="two columns"):
        plotting.DecisionRegionsDisplay.from_estimator(GaussianNB().fit(np.eye(2), [0, 1]), np.zeros(shape), ax=ax)


CURVE = pd.DataFrame({"target_weight": [0.1, 1.0, 10.0], "log_loss": [0.5, 0.3, 0.3], "std_error": [0.1, 0.02, 0.03]})
CHOSEN = SimpleNamespace(cv_results_=CURVE)


def test_choice_of_the_weight_shows_losses_errors_and_the_greatest_of_the_best(ax):
    plotting.TargetWeightDisplay.from_estimator(CHOSEN, name="QDA", ax=ax)
    curve, best = ax.lines
    assert curve.get_label() == "QDA" and ax.get_xscale() == "log"
    np.testing.assert_array_equal(curve.get_xydata(), CURVE[["target_weight", "log_loss"]])
    np.testing.assert_array_equal(best.get_xydata(), [[10.0, 0.3]])
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], [0.27, 0.6])


def test_choice_of_the_weight_is_of_a_fit(ax):
    with pytest.warns(UserWarning, match="greatest of target_weights"):
        fit = RiskCalibrationCV(QDA(), target_weights=[0.1, 1.0], closed_form=False).fit(*load_iris(return_X_y=True))
    plotting.TargetWeightDisplay.from_estimator(fit, ax=ax)
    assert ax.lines[1].get_xdata() == [fit.target_weight_]


def test_choice_of_the_weight_refuses_what_chose_none(ax):
    refused("have cv_results_; GaussianNB has none", plotting.TargetWeightDisplay.from_estimator, GaussianNB(), ax=ax)


STRUCTURE = [[], [0], [0, 1], [0], []]
CODES = np.random.default_rng(0).integers(2, size=(60, 6))


def arrows(ax):
    """(from, to) of each arrow, as the names written there."""
    named = {text.get_position(): text.get_text() for text in ax.texts if text.get_text()}
    drawn = [text for text in ax.texts if not text.get_text()]
    return {(named[tuple(arrow.get_position())], named[tuple(arrow.xy)]) for arrow in drawn}


def test_network_draws_what_was_learnt_from_parents_down_to_children(ax):
    frame = pd.DataFrame(CODES[:, :5], columns=["a b", "ä", "c", "d", "e"])
    model = KDependenceBayes(structure=STRUCTURE).fit(frame, CODES[:, 5])
    plotting.NetworkDisplay.from_estimator(model, class_name="ill", ax=ax)
    names = [*frame.columns, "ill"]
    places = {text.get_text(): text.get_position() for text in ax.texts if text.get_text()}
    assert sorted(places) == sorted(names) and len(set(places.values())) == len(names)
    assert arrows(ax) == {(names[f], names[j]) for j, of in enumerate(STRUCTURE) for f in of}
    assert all(places[b][1] < places[a][1] < places["ill"][1] for a, b in arrows(ax))
    assert len(ax.lines) == len(STRUCTURE)  # of the class


def test_network_refuses_what_is_none(ax):
    refused("have parents_; QDA has none", plotting.NetworkDisplay.from_estimator, QDA(), ax=ax)
    refused("have parents_; TAN has none", plotting.NetworkDisplay.from_estimator, TAN(), ax=ax)


def test_reliability_shows_the_share_of_right_predictions_in_each_bin(ax):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, size=400)
    y = np.where(rng.uniform(size=400) < p, "yes", "no")
    P = np.column_stack([1 - p, p])
    shown = plotting.ReliabilityDisplay.from_predictions(y, P, classes=["no", "yes"], n_bins=5, ax=ax)
    last, bins = p >= 0.8, shown.bins
    assert bins.n_rows.tolist() == [(p < 0.6).sum(), ((p >= 0.6) & ~last).sum(), last.sum()]
    assert bins.accuracy.iloc[-1] == pytest.approx((y[last] == "yes").mean())
    assert bins.confidence.iloc[-1] == pytest.approx(p[last].mean())
    assert ((bins.low < bins.accuracy) & (bins.accuracy < bins.high)).all()
    assert "3 bins" in shown.alt_ and "0 of these leave the diagonal" in shown.alt_
    too_sure = np.where(P > 0.5, 0.999, 0.001)
    assert "1 of these" in plotting.ReliabilityDisplay.from_predictions(y, too_sure, classes=["no", "yes"], ax=ax).alt_
    of_no = plotting.ReliabilityDisplay.from_predictions(y, P, classes=["no", "yes"], pos_label="no", name="P", ax=ax)
    assert of_no.bins.n_rows.sum() == 400 and of_no.bins.confidence.max() <= 0.5
    np.testing.assert_allclose(of_no.bins.n_rows @ of_no.bins.accuracy, (y == "no").sum())
    assert ax.get_ylabel() == "share that is no" and ax.containers[-1].get_label().startswith("P: gap 0.0")
    with pytest.raises(ValueError, match="pos_label must be one of"):
        plotting.ReliabilityDisplay.from_predictions(y, P, classes=["no", "yes"], pos_label="maybe", ax=ax)
    with pytest.raises(ValueError, match="y_proba must have the shape"):
        plotting.ReliabilityDisplay.from_predictions(y, P[:5], classes=["no", "yes"], ax=ax)


def test_reliability_of_an_estimator_is_that_of_its_predictions(ax):
    X, y = load_iris(return_X_y=True)
    model = QDA().fit(X[::2], y[::2])
    shown = plotting.ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax)
    other = plotting.ReliabilityDisplay.from_predictions(
        y[1::2], model.predict_proba(X[1::2]), classes=[0, 1, 2], ax=ax
    )
    pd.testing.assert_frame_equal(shown.bins, other.bins)


def test_a_waterfall_leads_from_the_class_weights_to_the_posterior(ax):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model, row = QDA().fit(X, y), X.iloc[[70]]
    shown = plotting.WaterfallDisplay.from_estimator(model, row, n_features=2, ax=ax)
    log_P = model.predict_log_proba(row)[0]
    first, second = log_P.argsort()[:-3:-1]
    assert shown.classes == (first, second)
    assert shown.start == pytest.approx(0, abs=1e-10)  # equal class weights
    assert shown.start + shown.nats.sum() == pytest.approx(log_P[first] - log_P[second])
    assert len(shown.names) == 3 and shown.names[-1] == "2 others" and shown.names[0] in X.columns
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(shown.nats)
    assert shown.names[0] in shown.alt_
    refused("one row; got 2", plotting.WaterfallDisplay.from_estimator, model, X.iloc[:2])


def test_path_of_a_calibration_is_its_history(ax):
    model = RiskCalibration(QDA()).fit(*load_iris(return_X_y=True))
    shown = plotting.CalibrationPathDisplay.from_estimator(model, ax=ax)
    assert_array_equal(ax.lines[0].get_ydata(), model.history_["log_loss"])
    assert f"{model.history_['log_loss'].iloc[-1]:.3f}" in shown.alt_
    refused("have history_; GaussianNB has none", plotting.CalibrationPathDisplay.from_estimator, GaussianNB(), ax=ax)


@pytest.mark.parametrize("draw", ["regions", "weight", "network"])
def test_displays_tell_in_words_what_they_show_and_draw_without_axes(draw):
    X, y = load_iris(return_X_y=True)
    if draw == "regions":
        shown = plotting.DecisionRegionsDisplay.from_estimator(GaussianNB().fit(X[:, :2], y), X[:, :2], resolution=20)
        assert shown.alt_.count("%") == 3
    elif draw == "weight":
        shown = plotting.TargetWeightDisplay.from_estimator(CHOSEN)
        assert f"{CURVE['log_loss'].min():.3f}" in shown.alt_
    else:
        shown = plotting.NetworkDisplay.from_estimator(TAN(prior_strength=1.0).fit(X.round().astype(int), y))
        assert shown.alt_.count(" to ") == 3
    assert shown.figure_ is shown.ax_.figure
