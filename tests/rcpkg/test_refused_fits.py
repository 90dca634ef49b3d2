"""A refused fit leaves each estimator as it was, and one row that outweighs all others fits or is refused by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
from model_cases import EACH_ESTIMATOR, ML, OF_EACH_FAMILY, refused, rows_for
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.validation import has_fit_parameter

from rcpkg import BDA7, LDA, ConditionalLikelihood, GaussianNB, RiskCalibration, RiskCalibrationCV, TableClassifier
from rcpkg.calibration import learner
from rcpkg.table import TableColumns

X, Y = load_iris(return_X_y=True)
X, Y = np.rint(10 * X[::5]), Y[::5] + 1  # whole numbers, which are codes as well
FRAME = pd.DataFrame(X, columns=[*"abcd"])


def infinite(rows):
    rows = rows.copy()
    rows[2, 1] = np.inf
    return rows


BAD = {
    "no rows": (X[:0, :2], Y[:0], None),
    "one row": (FRAME[["a", "b"]][:1], Y[:1], None),
    "one axis": (X[:, 0], Y, None),
    "lengths": (X[:, :2], Y[1:], None),
    "no labels": (X[:, :2], None, None),
    "one class": (X[:, :2], np.ones(len(Y)), None),
    "labels that are numbers": (FRAME[["a", "b"]], Y + np.linspace(0, 0.5, len(Y)), None),
    "infinite": (infinite(X), Y, None),
    "overflow": (X[:, :2] * 1e200, Y, None),
    "complex": (X[:, :2] * 1j, Y, None),
    "weights": (X[:, :2], Y, -np.ones(len(Y))),
    "no weight": (X[:, :2], Y, np.zeros(len(Y))),
}


def told(model):
    """What a fitted estimator tells of rows."""
    return np.asarray(model.predict(FRAME) if hasattr(model, "predict") else model.transform(FRAME))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("model", [*EACH_ESTIMATOR.values(), TableColumns()], ids=repr)
def test_a_refused_refit_leaves_the_estimator_as_it_was(model):
    model = clone(model).fit(FRAME, Y)
    before, predicted, refusals = dict(vars(model)), told(model), 0
    for name, (rows, labels, weight) in BAD.items():
        given = {} if weight is None else {"sample_weight": weight}
        if given and not has_fit_parameter(model, "sample_weight"):
            continue
        first = clone(model)
        try:
            first.fit(rows, labels, **given)
        except (ValueError, TypeError):
            refusals += 1
            assert vars(first).keys() == vars(clone(model)).keys(), name
        else:
            continue  # what this estimator takes, such as text for categories
        with pytest.raises((ValueError, TypeError)):
            model.fit(rows, labels, **given)
        assert vars(model).keys() == before.keys(), name
        assert [key for key in before if vars(model)[key] is not before[key]] == [], name
        assert_array_equal(told(model), predicted)
    assert refusals >= 2


# One row that outweighs all others ------------------------------------------------------------------------------------

CALIBRATED = {
    "RiskCalibration": RiskCalibration,
    "RiskCalibration, few steps": lambda model: RiskCalibration(model, max_iter=30),
    "ConditionalLikelihood, few steps": lambda model: ConditionalLikelihood(model, max_iter=20),
    "RiskCalibrationCV": lambda model: RiskCalibrationCV(model, target="pooled", target_weights=[30.0]),
    "ConditionalLikelihood": lambda model: ConditionalLikelihood(model, max_iter=100),  # 1,000 take half a minute
}
QUICK_FITS = [("RiskCalibration, few steps", 7e6), ("ConditionalLikelihood, few steps", 7e6)]
FITS = [(name, times) for name in ("RiskCalibration", "ConditionalLikelihood") for times in (1e3, 1e5, 7e6, 9e7)]
FITS.append(("RiskCalibrationCV", 7e6))  # the weight at which numpy's LinAlgError came out; each takes seconds


def fitted_or_refused(model, X, y, times, row=0):
    """The warnings of a fit in which a row weighs that many times as much as all others, which may be refused by a
    sentence that names sample_weight and what to do."""
    weight = np.ones(len(y))
    weight[row] = times * (len(y) - 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight=weight)
        except ValueError as error:
            assert "sample_weight" in str(error) and "clip the weights" in str(error)
        else:
            assert np.isfinite(model.predict_proba(X)).all()
    return [str(each.message) for each in found]


@pytest.mark.parametrize(
    ("name", "calibrated", "times"),
    [(name, *fit) for name in ML if name in OF_EACH_FAMILY for fit in QUICK_FITS]
    + [pytest.param(name, *fit, marks=pytest.mark.slow) for name in ML for fit in FITS],
)
def test_a_row_that_outweighs_all_others_fits_or_is_refused(name, calibrated, times):
    X, y = rows_for(name)
    fitted_or_refused(CALIBRATED[calibrated](clone(ML[name])), X[:30], y[:30], times)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_singular_matrix_by_a_heavy_row_is_an_error_of_its_weight(monkeypatch):
    """numpy's LinAlgError came out, of some fits, which depends on the processor; without such a row it stays."""

    def singular(*given):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(learner, "optimum", singular)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(np.linalg.LinAlgError):
        RiskCalibration(LDA()).fit(X, y)
    weight = np.where(np.arange(150) == 0, 6e6 * 149, 1.0)
    with pytest.raises(ValueError, match=r"singular: row 0 has 6e\+06 times the sample_weight .* clip") as found:
        RiskCalibration(LDA()).fit(X, y, sample_weight=weight)
    assert not isinstance(found.value, np.linalg.LinAlgError)


@pytest.mark.parametrize(
    "model",
    [
        *(GaussianNB(), BDA7(), RiskCalibration(GaussianNB())),
        RiskCalibrationCV(GaussianNB(), target="pooled", target_weights=[3.0, 30.0]),
        TableClassifier(candidates=[("nb", GaussianNB())], cv=2, random_state=0),
    ],
    ids=repr,
)
def test_a_heavy_row_is_told_once_a_fit(model):
    X, y = load_iris(return_X_y=True)
    for _ in range(2):
        said = fitted_or_refused(clone(model), X[::5], y[::5], 5e3)
        assert sum("times the sample_weight of all other rows together" in message for message in said) == 1


def test_few_rows_that_outweigh_all_others_are_told():
    """Three of iris, one a class, left no spread to go by, and calibration went on for minutes without a word."""
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.isin(np.arange(150), [5, 60, 110]), 1e9, 1.0)
    with pytest.warns(UserWarning, match=r"rows 5, 60, 110 have each 6\.8e\+06 times the sample_weight .* clip"):
        GaussianNB().fit(X, y, sample_weight=weight)
    one = np.where(np.arange(150) == 3, 1e20, 1.0)  # beside which the sum of all others is rounding
    for named, heavy in ("rows 5, 60, 110 have each", weight**2), ("row 3 has", one):
        refused(f"{named} .* fewer than half of their digits", GaussianNB().fit, X, y, sample_weight=heavy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianNB().fit(X, y, sample_weight=np.where(np.arange(150) % 10 == 0, 1e9, 1.0))
        GaussianNB().fit(X[48:54], y[48:54], sample_weight=[1, 1, 1, 1, 1, 1e-6])
