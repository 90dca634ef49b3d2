"""Every fitted estimator goes through pickle, joblib and skops unchanged, and says which version saved it."""

import pickle
from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from model_cases import EACH_ESTIMATOR, MAP, MODELS, rows_for
from sklearn.base import clone

import rcpkg
from rcpkg import LDA, QDA, BregmanClustering, LocalBDA, RiskCalibration, bregman
from rcpkg.base import InconsistentVersion
from rcpkg.calibration import HeldOut

CALIBRATED = {
    "RiskCalibration with a target": RiskCalibration(QDA(), max_iter=63, target_weight=3.0, tol=0.0, step="safe"),
    "RiskCalibration validated": RiskCalibration.as_published(LDA(), stopping=HeldOut(0.3), max_iter=3, random_state=0),
    **{name: each for name, each in EACH_ESTIMATOR.items() if hasattr(each, "estimator")},
}
MATRIX = bregman.mahalanobis(np.diag([1.0, 2.0, 3.0]))
OTHERS = {
    "LocalBDA, chosen": LocalBDA(n_neighbors="cv", seed="diag"),
    "BregmanClustering, a divergence": BregmanClustering(n_clusters=3, divergence=bregman.divergences["squared"]),
    "BregmanClustering, a matrix": BregmanClustering(n_clusters=3, divergence=MATRIX),
}
ESTIMATORS = {**EACH_ESTIMATOR, **CALIBRATED, **OTHERS, **MODELS}
# a prior is kept as any other parameter
each_estimator = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in MAP)) for name in ESTIMATORS]
)


@cache
def fitted(name):
    X, y = rows_for("CategoricalNB" if name == "WANBIAC" else name)
    return clone(ESTIMATORS[name]).fit(X, y), X


def skops_dumps(model):
    return pytest.importorskip("skops.io").dumps(model)


def skops_loads(saved):
    skops = pytest.importorskip("skops.io")
    types = skops.get_untrusted_types(data=saved)
    # nothing to trust but our own classes, and the search tree of scikit-learn
    assert {name.split(".")[0] for name in types} <= {"rcpkg", "sklearn"}, types
    return skops.loads(saved, trusted=types)


FORMATS = {  # what joblib writes is a pickle but for its arrays
    "pickle": (pickle.dumps, pickle.loads),
    "skops": (skops_dumps, skops_loads),
}
each_format = pytest.mark.parametrize("dumps, loads", FORMATS.values(), ids=FORMATS)


@each_estimator
@each_format
def test_fitted_estimators_return_as_they_were(name, dumps, loads):
    model, X = fitted(name)
    restored = loads(dumps(loads(dumps(model))))  # what came back can be saved again
    assert type(restored) is type(model) and vars(restored).keys() == vars(model).keys()
    for method in ("predict", "predict_proba", "predict_joint_log_proba", "transform"):
        if hasattr(model, method):
            ours, theirs = getattr(restored, method)(X), getattr(model, method)(X)
            if ours.dtype.kind == "f":  # arrays may come back in another order in memory, and sums are then rounded so
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
            else:
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", CALIBRATED)
@each_format
def test_histories_are_frames_kept_as_arrays(name, dumps, loads):
    model, _ = fitted(name)
    saved = dumps(model)
    assert b"pandas" not in saved
    pd.testing.assert_frame_equal(loads(saved).history_, model.history_)
    assert list(model.history_.iteration) == list(range(model.n_iter_ + 1))


def test_a_history_before_the_fit_is_an_error_that_says_so():
    assert not hasattr(RiskCalibration(QDA()), "history_")
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = RiskCalibration(QDA()).history_


@pytest.mark.parametrize("name", bregman.divergences)
@each_format
def test_named_divergences_are_saved_by_name(name, dumps, loads):
    divergence = bregman.divergences[name]
    for restored in (loads(dumps(divergence)), loads(dumps(loads(dumps(divergence))))):
        assert restored.generator is divergence.generator and restored.closed_form is divergence.closed_form
    assert pickle.loads(pickle.dumps(restored)) is divergence


@pytest.mark.parametrize("name", ["QDA", "RiskCalibration", "SVMKNN", "BregmanClustering"])
@each_format
def test_another_version_is_told(name, dumps, loads, monkeypatch):
    model, _ = fitted(name)
    saved = dumps(model)
    with monkeypatch.context() as other:
        other.setattr("rcpkg.base.__version__", "99.0")
        saved_by_another = dumps(model)
    loads(saved)  # a warning would be an error
    told = f"was saved by rcpkg 99.0 and is read by {rcpkg.__version__}, .* fit it anew"
    with pytest.warns(InconsistentVersion, match=told) as warned:  # each estimator within another tells, too
        loads(saved_by_another)
    assert str(warned[-1].message).startswith(f"{type(model).__name__} was saved")


def test_a_pickle_without_a_version_is_told_and_copies_carry_no_trace_of_the_saving():
    model, X = fitted("QDA")
    assert vars(copy(model)).keys() == vars(model).keys()
    restored = QDA()
    with pytest.warns(InconsistentVersion, match=r"saved by rcpkg \(version unknown\)"):
        restored.__setstate__(vars(model))
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
