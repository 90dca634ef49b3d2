"""Inputs that nobody prepared, in one table: containers, types, degenerate rows, magnitudes, labels and weights.
`test_columns` tries what a column, a label or a weight may be, in each container.

Each pair of a learner and an input gives probabilities or is refused at the door in words that name what is wrong. A
sample of the pairs is tried, a greater one in the slow tests.
"""

import re
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import EACH_ESTIMATOR, categorical_rows, gaussian_rows, refused
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from rcpkg import (
    BDA7,
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    BregmanKNN,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    KDependenceBayes,
    LocalBDA,
    Mixture,
    MultinomialNB,
    NearestMeans,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    SoftErrorCalibration,
)

FINE, REFUSED, DEPTHS, SILENT = "fine", "refused", "traceback from the depths", "silent NaN"

MIXED = [("codes", CategoricalNB(prior_strength=1.0), [0]), ("sizes", QDA(), slice(1, None))]
AS_THEY_ARE = "QDA SharedVarianceGaussianNB CategoricalNB TableClassifier WANBIAC BayesianQDA QuadraticBayes RDA EDDA"
NEIGHBOURS = "NearestMeans LocalNearestMeans LocalLinear SVMKNN"
LEARNERS = [  # one of each way through the library: family, prior, step and choice
    *(EACH_ESTIMATOR[name] for name in f"{AS_THEY_ARE} {NEIGHBOURS}".split()),
    LDA(singular_ridge=0.0),
    GaussianNB(prior_strength=1.0, prior_covariance="diagonal"),
    BernoulliNB(prior_strength=1.0, binarize=None),
    MultinomialNB(prior_strength=1.0),
    ProductModel(MIXED),
    Mixture(QDA(), n_components=2, random_state=0),
    Mixture(ProductModel(MIXED), n_components=2, random_state=0),
    TAN(prior_strength=0.0),
    KDependenceBayes(k=2, decomposable=False),
    *map(RiskCalibration, (QDA(), ProductModel(MIXED), EACH_ESTIMATOR["Mixture"])),
    RiskCalibration.as_published(QDA()),
    DiscriminativeFrequencyEstimate(CategoricalNB()),
    SoftErrorCalibration(QDA()),
    ConditionalLikelihood(CategoricalNB(prior_strength=1.0), target_weight=1.0),
    RiskCalibrationCV(LDA()),
    BDA7(cv=3, scoring="log_loss"),
    LocalBDA(n_neighbors="cv"),
    BregmanKNN(weights="distance", n_neighbors="cv"),
]


class Case(NamedTuple):
    """Training rows and labels, rows to classify, and weights of the training rows, if any."""

    X: Any
    y: Any
    new: Any
    weight: Any = None


def changed(X: np.ndarray, value: Any, where: Any = (slice(None), 1)) -> np.ndarray:
    """A copy with another value in some places."""
    X = X.copy()
    X[where] = value
    return X


def shapes_and_types() -> Iterator[tuple[str, Case]]:
    """Containers and types of X."""
    X, y = gaussian_rows(45, 4)
    C, z = categorical_rows(45, (3,) * 4)
    new = X[:5]
    yield "reals", Case(X, y, new)
    yield "codes", Case(C, z, C[:5])
    yield "zeros and ones", Case(C % 2, z, C[:5] % 2)
    yield "single precision", Case(X.astype(np.float32), y, new.astype(np.float32))
    yield "int8", Case(C.astype(np.int8), z, C[:5].astype(np.int8))
    yield "unsigned", Case(C.astype(np.uint8), z, C[:5].astype(np.uint8))
    yield "boolean", Case(C > 0, z, C[:5] > 0)
    yield "huge integers", Case(C.astype(np.int64) * 2**61, z, C[:5].astype(np.int64))
    yield "lists", Case(C.tolist(), z.tolist(), C[:5].tolist())
    yield "ragged lists", Case([[1.0, 2.0], [1.0]] * 20, [0, 1] * 20, [[1.0, 2.0]])
    yield "Fortran order", Case(np.asfortranarray(X), y, np.asfortranarray(new))
    frozen = X.copy()
    frozen.setflags(write=False)
    yield "read-only", Case(frozen, y, frozen[:5])
    yield "every other row and column", Case(np.repeat(X, 2, axis=1)[:, ::2], y, new[::-1])
    yield "masked", Case(np.ma.masked_less(X, -1), y, new)
    yield "1-d", Case(X[:, 0], y, new)
    yield "3-d", Case(X[:, :, None], y, new)
    yield "1-d to classify", Case(X, y, new[0])
    yield "a scalar", Case(3.0, y, new)
    yield "None", Case(None, y, new)
    yield "sparse", Case(sp.csr_array(C), z, sp.csr_array(C[:5]))
    yield "sparse by columns", Case(sp.csc_matrix(C), z, sp.csc_matrix(C[:5]))
    yield "sparse to classify", Case(C, z, sp.csr_array(C[:5]))
    yield "no rows", Case(X[:0], y[:0], new)
    yield "no columns", Case(X[:, :0], y, new[:, :0])
    yield "no rows to classify", Case(X, y, X[:0])
    yield "one column", Case(X[:, :1], y, new[:, :1])
    yield "a column less to classify", Case(X, y, new[:, 1:])
    yield "rows as columns to classify", Case(X, y, new.T)


def frames_and_text() -> Iterator[tuple[str, Case]]:
    """Frames, text, categories, missing values."""
    X, y = gaussian_rows(45, 4)
    C, z = categorical_rows(45, (3,) * 4)
    text = np.array(["red", "green", "blue"])[C.astype(int)]
    frame = pd.DataFrame(X, columns=list("abcd"))
    yield "text", Case(text, z, text[:5])
    yield "text of numbers", Case(C.astype(int).astype(str), z, C[:5].astype(int).astype(str))
    yield "text of which one is new", Case(text, z, changed(text[:5].astype(object), "mauve"))
    yield "a frame", Case(frame, y, frame[:5])
    yield "a frame, its columns in another order", Case(frame, y, frame[["b", "a", "d", "c"]][:5])
    yield "a frame, an array to classify", Case(frame, y, X[:5])
    mixed = frame.assign(b=text[:, 0], c=C[:, 0])
    yield "a frame of text and numbers", Case(mixed, y, mixed[:5])
    first = pd.DataFrame({"colour": text[:, 0], "x": X[:, 0], "y": X[:, 1]})
    yield "a frame whose first column is text", Case(first, y, first[:5])
    yield "a frame, names of two types", Case(frame.set_axis(["a", 1, "b", 2], axis=1), y, X[:5])
    yield "a frame, a name twice", Case(frame.set_axis(list("aabc"), axis=1), y, X[:5])
    yield "NaN", Case(changed(X, np.nan, (3, 1)), y, X[:5])
    yield "NaN among codes", Case(changed(C, np.nan, (slice(0, 45, 7), 1)), z, C[:5])
    yield "a column of NaN", Case(changed(X, np.nan), y, X[:5])
    yield "NaN in one class", Case(changed(X, np.nan, (y == 1, 1)), y, X[:5])
    yield "NaN to classify", Case(X, y, changed(X[:5], np.nan, (3, 1)))
    yield "NaN to classify, among codes", Case(C, z, changed(C[:5], np.nan, (3, 1)))
    yield "nothing but NaN to classify", Case(C, z, C[:5] * np.nan)
    yield "infinity", Case(changed(X, np.inf, (3, 1)), y, X[:5])
    yield "infinity to classify", Case(X, y, changed(X[:5], -np.inf, (3, 1)))


def degenerate_rows() -> Iterator[tuple[str, Case]]:
    """Rows that determine no covariance, or no distribution."""
    X, y = gaussian_rows(45, 4)
    C, z = categorical_rows(45, (3,) * 4)
    yield "a constant column", Case(changed(X, 3.0), y, X[:5])
    yield "a column of zeros", Case(changed(C, 0.0), z, C[:5])
    yield "all constant", Case(np.ones((45, 4)), y, np.ones((5, 4)))
    yield "all constant, others to classify", Case(np.ones((45, 4)), y, X[:5])
    yield "a duplicate column", Case(np.c_[X, X[:, 0]], y, np.c_[X, X[:, 0]][:5])
    yield "duplicate columns that differ to classify", Case(np.c_[X, X[:, 0]], y, np.c_[X, X[:, 1]][:5])
    yield "collinear columns", Case(np.c_[X, X @ [1, 2, 3, 4]], y, np.c_[X, X @ [1, 2, 3, 4]][:5])
    nearly = np.c_[X, X[:, 0] + 1e-9 * X[:, 1]]
    yield "almost duplicate columns", Case(nearly, y, nearly[:5])
    yield "duplicate rows", Case(np.repeat(X[:9], 5, axis=0), np.repeat(y[:9], 5), X[:5])
    yield "classes of equal rows", Case(np.eye(3, 4)[y], y, X[:5])
    yield "a column constant in one class", Case(changed(X, 3.0, (y == 1, 1)), y, X[:5])
    one = np.where(np.arange(45) == 7, 2, y % 2)
    yield "a class of one row", Case(X, one, X[:5])
    yield "a class of one row of codes", Case(C, one, C[:5])
    yield "as many classes as rows", Case(X[:6], np.arange(6), X[:5])
    yield "two rows", Case(X[:2], [0, 1], X[:5])
    wide = np.random.default_rng(0).standard_normal((12, 30))
    yield "fewer rows than columns", Case(wide, np.arange(12) % 3, wide[:5])
    yield "rows one more than columns", Case(X[:15], np.arange(15) % 3, X[:5])
    tiny = np.random.default_rng(0).standard_normal((100, 4))
    yield "fifty classes of two rows", Case(tiny, np.arange(100) // 2, tiny[:5])
    rare = (np.arange(300) % 100 == 0).astype(int)
    many = np.random.default_rng(0).standard_normal((300, 4)) + rare[:, None]
    yield "three rows among 300", Case(many, rare, many[:5])
    apart = 100.0 * z[:, None] + C
    yield "classes far apart", Case(apart, z, apart[:5])
    yield "a column that is the class", Case(np.c_[C, z], z, np.c_[C, z][:5])
    yield "rows of zeros", Case(changed(C, 0.0, (slice(0, 45, 4), slice(None))), z, np.zeros((5, 4)))
    yield "a class of zeros", Case(changed(C, 0.0, (z == 1, slice(None))), z, C[:5])


def magnitudes() -> Iterator[tuple[str, Case]]:
    """Numbers too large, too small, or far from zero, and codes that are none."""
    X, y = gaussian_rows(45, 4)
    C, z = categorical_rows(45, (3,) * 4)
    for scale in (1e-300, 1e-150, 1e-20, 1e20, 1e145, 1e150, 1e155, 1e300):
        yield f"times {scale:g}", Case(scale * X, y, scale * X[:5])
    yield "one column times 1e300", Case(X * [1, 1e300, 1, 1], y, X[:5])
    yield "columns times 1e-140 and 1e140", Case(X * [1e-140, 1e140, 1, 1], y, X[:5] * [1e-140, 1e140, 1, 1])
    yield "columns times 1e-8 and 1e8", Case(X * [1e-8, 1e8, 1, 1], y, X[:5] * [1e-8, 1e8, 1, 1])
    yield "denormal numbers", Case(X * 5e-324, y, X[:5])
    yield "far off", Case(X + 1e9, y, X[:5] + 1e9)
    yield "so far off that digits are lost", Case(X + 1e16, y, X[:5] + 1e16)
    yield "a sentinel", Case(changed(X, 999999999.0, (3, 1)), y, X[:5])
    yield "a sentinel in every column", Case(changed(X, 999999999.0, 3), y, X[:5])
    yield "a sentinel among codes", Case(changed(C, 999999999.0, (3, 1)), z, C[:5])
    for scale in (1e6, 1e100, 1e200, 1e308):
        yield f"to classify: times {scale:g}", Case(X, y, scale * X[:5])
    yield "negative codes", Case(C - 2, z, C[:5])
    yield "negative codes to classify", Case(C, z, C[:5] - 2)
    yield "codes that are no integers", Case(C + 0.5, z, C[:5])
    yield "codes to classify that are no integers", Case(C, z, C[:5] + 0.5)
    yield "unseen codes to classify", Case(C, z, C[:5] + 3)
    yield "codes with gaps", Case(C * 1000, z, C[:5] * 1000)
    yield "codes up to 1e7", Case(C * 5e6, z, C[:5])
    yield "counts", Case(C * 100, z, C[:5] * 100)
    yield "fractions for counts", Case(C / 7, z, C[:5] / 7)


def labels_and_weights() -> Iterator[tuple[str, Case]]:
    """What y may hold, and weights."""
    X, y = gaussian_rows(45, 4)
    new, ones = X[:5], np.ones(45)
    for name, labels in {
        "one class": np.zeros(45),
        "reals": y + 0.5,
        "infinite": np.where(y == 1, np.inf, y),
        "a column": y[:, None],
        "indicators": np.eye(3)[y],
        "too few": y[:-1],
        "None": None,
    }.items():
        yield f"labels: {name}", Case(X, labels, new)
    for name, weight in {
        "zero for a class": ones * (y != 1),
        "zero for all but a row of each class": 1.0 * np.isin(np.arange(45), np.unique(y, return_index=True)[1]),
        "from 1e-12 to 1e12": np.logspace(-12, 12, 45),
        "a number": 2.0,
    }.items():
        yield f"weights: {name}", Case(X, y, new, weight)


GROUPS = shapes_and_types, frames_and_text, degenerate_rows, magnitudes, labels_and_weights


def cases() -> dict[str, Case]:
    """All inputs, by name."""
    with warnings.catch_warnings(action="ignore"):
        return {name: case for group in GROUPS for name, case in group()}


# where exceptions may be raised: in rcpkg and in scikit-learn's validation of rows and labels
DOORS = re.compile(r"[/\\]rcpkg[/\\]|[/\\]sklearn[/\\]utils[/\\](validation|multiclass|_param_validation)\.py")
# and what they say, in words of numpy and scipy that name nothing
RAW = re.compile(
    r"could not convert|array element with a sequence|could not be broadcast|singular matrix|did not converge|ufunc|"
    r"leading minor|must not contain infs or NaNs|zero-size array|out of bounds|has no attribute|unsupported operand|"
    r"not supported between|float\(\) argument|buffer|positive definite$|cannot convert|invalid literal"
)
NAMED = re.compile(
    r"\b(X|y|data|[Ff]eatures?|class(es)?|labels?|rows?|samples?|columns?|sample_weight|arrays?|dense)\b"
)


def refusal(error: Exception, estimator: BaseEstimator) -> str:
    """Whether an exception is a refusal: of the right type, raised at the door, naming a parameter or what is wrong."""
    if not isinstance(error, (ValueError, TypeError)):
        return DEPTHS
    frame, text = traceback.extract_tb(error.__traceback__)[-1], str(error)
    parameters = any(re.search(rf"\b{name}\b", text) for name in estimator.get_params())
    named = (parameters or NAMED.search(text)) and not RAW.search(text)
    return REFUSED if DOORS.search(frame.filename) and named else DEPTHS


def check_predictions(model: Any, new: Any) -> str:
    """Whether labels are those of the classes, and probabilities, where there are any, finite and of sum one."""
    labels = model.predict(new)
    good = bool(pd.Series(labels).isin(model.classes_).all())
    if hasattr(model, "predict_proba"):
        P = model.predict_proba(new)
        good &= bool(np.isfinite(P).all() and np.all(P >= 0) and np.allclose(P.sum(axis=1), 1, rtol=0, atol=1e-9))
        good &= (
            not np.isnan(model.predict_joint_log_proba(new)).any() and not np.isnan(model.decision_function(new)).any()
        )
    return FINE if good else SILENT


def outcome(estimator: BaseEstimator, case: Case) -> tuple[str, str]:
    """What comes of fitting and predicting, and the message if there is one."""
    model = clone(estimator)
    options = {} if case.weight is None else {"sample_weight": case.weight}
    try:
        with warnings.catch_warnings(action="ignore"):
            return check_predictions(model.fit(case.X, case.y, **options), case.new), ""
    except Exception as error:
        return refusal(error, estimator), f"{type(error).__name__}: {error}"


INPUTS = cases()
PAIRS = [
    (learner, name)
    for name, case in INPUTS.items()
    for learner in LEARNERS
    if case.weight is None or has_fit_parameter(learner, "sample_weight")
]


@pytest.mark.parametrize("size", [60, pytest.param(800, marks=pytest.mark.slow)])
def test_pairs(size):
    """Finite probabilities that sum to one, or a refusal at the door that names what is wrong; nothing else."""
    outcomes = [
        (*outcome(learner, INPUTS[name]), name, repr(learner))
        for learner, name in (PAIRS[i] for i in np.random.default_rng(0).permutation(len(PAIRS))[:size])
    ]
    assert [found for found in outcomes if found[0] not in (FINE, REFUSED)] == []
    results = [result for result, *_ in outcomes]
    assert min(results.count(FINE), results.count(REFUSED)) > 0.2 * size


def test_numbers_of_both_signs_whose_sums_are_infinite_are_validated_without_a_warning():
    X, y = gaussian_rows(45, 4)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        refused("whose square cannot be represented: rescale it", GaussianNB().fit, np.sign(X) * 1.7e308, y)
        refused("square overflows: rescale X", NearestMeans().fit(X, y).predict, np.sign(X) * 1.7e308)


GAUSSIANS = [QDA(), ProductModel([("n", LDA(), [0, 1]), ("m", GaussianNB(), [2, 3])])]
GAUSSIANS += [RiskCalibration(GAUSSIANS[-1]), Mixture(GaussianNB(), n_components=2, random_state=0)]


@pytest.mark.parametrize("learner", GAUSSIANS, ids=repr)
@pytest.mark.parametrize("scale", [1e160, 1e200, 1e305])
def test_rows_too_far_off_to_tell_raise_no_warning(learner, scale):
    X, y = gaussian_rows(45, 4)
    with warnings.catch_warnings(action="ignore"):
        model = clone(learner).fit(X, y)
        warnings.simplefilter("error", RuntimeWarning)
        assert check_predictions(model, np.vstack([scale * X, X])) == FINE


@pytest.mark.parametrize(
    "learner",
    [pytest.param(one, marks=[pytest.mark.slow] * ("estimator=Mixture" in repr(one))) for one in LEARNERS],
    ids=lambda one: type(one).__name__,
)
def test_integers_of_every_size_fit_the_same(learner):
    """Of labels, codes and weights; ``np.bincount`` refuses uint64 here, and int64 where an index has 32 bits."""
    C, z = categorical_rows(45, (2 if isinstance(learner, BernoulliNB) else 3,) * 4)
    weighted, many = has_fit_parameter(learner, "sample_weight"), np.random.default_rng(2).integers(50, 100, 45)

    def fitted(kind: type) -> np.ndarray:
        options = {"sample_weight": many.astype(kind)} if weighted else {}
        with warnings.catch_warnings(action="ignore"):
            model = clone(learner).fit(C.astype(kind), z.astype(kind), **options)
        return getattr(model, "predict_proba", model.predict)(C.astype(kind))

    expected = fitted(float)
    for kind in (np.int8, np.uint64):
        np.testing.assert_allclose(fitted(kind), expected, rtol=1e-9, atol=1e-12, err_msg=kind.__name__)
