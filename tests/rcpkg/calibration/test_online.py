"""Calibration of a stream: what a block does, where many lead, and what is refused."""


import numpy as np
import pandas as pd
import pytest
from model_cases import EACH_ESTIMATOR, gaussian_rows, refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from rcpkg import LDA, QDA, CategoricalNB, GaussianNB, InvalidStatistics, ProductModel, RiskCalibration
from rcpkg.calibration import Objective
from rcpkg.families import class_counts

MIXED = ProductModel([("size", QDA(), ["a", "b"]), ("names", CategoricalNB(prior_strength=1.0), ["place"])])


def calibrated(model, b=1.0):
    return RiskCalibration(model, target="generative", target_weight=b)


def through(model, X, y, size, weight=None, classes=None):
    """The model after all blocks."""
    classes = np.unique(y) if classes is None else classes
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        model.partial_fit(X[rows], y[rows], classes, None if weight is None else weight[rows])
    return model


def bent_rows(n, seed):
    """Gaussian classes, but for a bend."""
    X, y = gaussian_rows(n, seed=seed)
    return np.sign(X) * np.abs(X) ** 1.3, y


@pytest.mark.parametrize(
    "model, b",
    [(GaussianNB(), 0.3), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(LDA(), 1.0), (QDA(), 0.3)])],
    ids=str,
)
def test_a_stream_leads_to_the_optimum_of_fit(model, b):
    """What the objective lacks falls like 1/m: over sixteen times the rows to less than a quarter, chance allowed."""
    X, y = bent_rows(16_000, 0)
    objective = Objective.from_estimator(model, X, y, target="generative", target_weight=b)
    best = calibrated(model, b).fit(X, y).estimator_
    best = objective.evaluate(best.statistics_, best.parameters_).value
    lacks = []
    for n in (1_000, 16_000):
        found = through(calibrated(model, b), X[:n], y[:n], 100).estimator_
        lacks.append((best - objective.evaluate(found.statistics_, found.parameters_).value) / objective.size)
    assert 0 < lacks[1] < lacks[0] / 4
    closed = objective.evaluate(objective.labels, objective.closed_form)
    assert lacks[1] < (best - closed.value) / objective.size / 4


def test_history_has_what_a_block_lost_before_it_was_learnt_from():
    X, y = bent_rows(600, 1)
    model, losses = calibrated(QDA(), 0.5), []
    for start in range(0, 600, 50):
        rows = slice(start, start + 50)
        if start:
            losses.append(-model._online.model.predict_log_proba(X[rows])[np.arange(50), y[rows]].mean())
        model.partial_fit(X[rows], y[rows], [0, 1, 2])
    assert_allclose(model.history_.log_loss, losses, rtol=1e-12)
    assert_array_equal(model.history_.step, [1.0] + [2.0] * 10)
    assert model.n_iter_ == 11


def test_a_stream_forgets_that_counting_was_better():
    """Of 7,000 rows the first 4,000 are drawn from a model that is right: over all of them counting has lost less."""
    X, y = bent_rows(7000, 1)
    X[:4000], y[:4000] = GaussianNB().fit(X, y).sample(4000, random_state=0)
    model = through(calibrated(GaussianNB(), 0.05), X, y, 250)
    assert (model.history_.closed_form_log_loss - model.history_.log_loss).sum() < 0
    assert_array_equal(model.predict_proba(X), model._online.model.predict_proba(X))


@pytest.mark.parametrize("right", [True, False])
def test_counting_predicts_while_it_has_predicted_better(right):
    """Which it does where the model is right; calibration with a small weight then follows the noise."""
    X, y = bent_rows(3000, 1)
    if right:
        X, y = GaussianNB().fit(X, y).sample(3000, random_state=0)
    model = calibrated(GaussianNB(), 0.05 if right else 1.0)
    for start in range(0, 3000, 250):
        rows = slice(start, start + 250)
        model.partial_fit(X[rows], y[rows], [0, 1, 2])
    gain = (model.history_.closed_form_log_loss - model.history_.log_loss).sum()
    closed = GaussianNB().fit(X, y).predict_proba(X)
    assert (gain < 0) == right == np.allclose(model.predict_proba(X), closed, atol=1e-8)


def test_the_size_of_blocks_beyond_the_largest_changes_nothing():
    X, y = bent_rows(2000, 2)
    sizes = [through(calibrated(QDA(), 0.1), X, y, size).predict_proba(X) for size in (250, 500, 1000)]
    assert_allclose(sizes[1], sizes[0], atol=1e-10)
    assert_allclose(sizes[2], sizes[0], atol=1e-10)


def test_class_weights_that_drift_are_no_errors_of_the_model():
    """Told of them, a right model stays nearer to the true posteriors of the last class weights."""
    lost = {}
    for told in (False, True):
        rng, model = np.random.default_rng(0), calibrated(GaussianNB())
        for t in range(40):
            weight = np.array([0.95, 0.05]) if t < 20 else np.array([0.05, 0.95])
            y = rng.choice(2, p=weight, size=200)
            X = rng.normal(size=(200, 2)) + 1.5 * y[:, None]
            calibrated_predicts = t and model._online.gained >= 0
            before = model.predict_log_proba(X, weight)[np.arange(200), y] if t else None
            model.partial_fit(X, y, [0, 1], class_prior=weight if told else None)
            if told and calibrated_predicts:
                assert_allclose(model.history_.log_loss[t - 1], -before.mean(), rtol=1e-10)
        odds = (1.5 * X - 1.125).sum(axis=1) + np.log(weight[1] / weight[0])
        truth = -np.logaddexp(0, np.stack([odds, -odds], axis=1))
        found = model.predict_log_proba(X, weight)
        lost[told] = (np.exp(truth) * (truth - found)).sum(axis=1).mean()
    assert lost[True] < lost[False] / 2


def test_names_may_appear_in_late_blocks_of_frames_of_any_package():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y = bent_rows(900, 4)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    places = np.array(["east", "north", "south", "west"], dtype=object)
    frame["place"] = places[np.minimum((y + rng.integers(0, 2, 900)) % 4, np.arange(900) // 250)]
    model = calibrated(MIXED)
    for start, package in zip(range(0, 900, 100), [pl.from_pandas, pa.table, pd.DataFrame] * 3):
        rows = slice(start, start + 100)
        labels = (np.array, pl.Series, pa.array)[start // 100 % 3](y[rows])
        model.partial_fit(package(frame.iloc[rows]), labels, [0, 1, 2])
    closed = clone(MIXED).fit(frame, y)
    assert_array_equal(model.family_.families[1].categories_[0], closed.family_.families[1].categories_[0])
    assert np.isfinite(model.predict_log_proba(frame)).all()
    assert_allclose(class_counts(model.estimator_.statistics_).sum(), 900)


def test_blocks_that_do_not_suffice_are_kept():
    X, y = bent_rows(400, 5)
    order = np.argsort(y, kind="stable")
    model = calibrated(QDA()).partial_fit(X[order[:100]], y[order[:100]], [0, 1, 2])
    with pytest.raises(InvalidStatistics, match="not enough data so far"):
        model.predict(X)
    model.partial_fit(X[order[100:]], y[order[100:]])
    assert_allclose(model.predict_proba(X), QDA().fit(X, y).predict_proba(X), rtol=0, atol=1e-8)


def test_a_refused_block_leaves_the_model_as_it_was():
    X, y = bent_rows(400, 6)
    model = through(calibrated(MIXED), pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(place="here"), y, 200)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(place="here")
    P, known = model.predict_proba(frame), dict(vars(model))
    refused("do not exist in the initial classes", model.partial_fit, frame.assign(place="there"), y + 7)
    assert vars(model).keys() == known.keys()
    assert_array_equal(model.predict_proba(frame), P)


@pytest.mark.parametrize(
    "model",
    [
        *(RiskCalibration(LDA()), RiskCalibration(LDA(), target_weight=1.0), calibrated(LDA(), 0.0)),
        *(EACH_ESTIMATOR["RiskCalibrationCV"], EACH_ESTIMATOR["TableClassifier"]),
    ],
    ids=repr,
)
def test_why_there_is_no_partial_fit(model):
    assert not hasattr(model, "partial_fit")
    streams = isinstance(model, RiskCalibration)
    why = "needs target='generative' and a target_weight > 0" if streams else "has no partial_fit, since .* all rows"
    with pytest.raises(AttributeError, match=why):
        model.partial_fit([[0.0]], [0])


@pytest.mark.parametrize("few", [3, 9])
def test_a_class_of_few_rows_at_first_stops_no_stream(few):
    """While its rows are few the closed form has a prior; further rows, with which it needs none, judge that one."""
    X, y = gaussian_rows(600, d=8, r=2)
    first = np.r_[np.flatnonzero(y == 0)[:100], np.flatnonzero(y == 1)[:few]]
    rest = np.setdiff1d(np.arange(600), first)
    model = calibrated(QDA()).partial_fit(X[first], y[first], classes=[0, 1])
    before = QDA().fit(X[first], y[first]).predict_log_proba(X[rest[:200]])[np.arange(200), y[rest[:200]]]
    model.partial_fit(X[rest[:200]], y[rest[:200]])
    assert model.history_.closed_form_log_loss.iloc[-1] == pytest.approx(-before.mean(), rel=1e-6)
