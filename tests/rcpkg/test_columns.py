"""What columns, labels and weights hold is taken or refused alike, whatever container and learner: tables of these."""

import datetime
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from model_cases import EACH_ESTIMATOR, refused
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcpkg import (
    BDA7,
    EDDA,
    LDA,
    QDA,
    RDA,
    TAN,
    WANBIAC,
    BregmanClustering,
    CategoricalNB,
    ConditionalLikelihood,
    DiscriminativeFrequencyEstimate,
    GaussianNB,
    LocalBDA,
    MDLDiscretizer,
    Mixture,
    MultinomialNB,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    TableClassifier,
)
from rcpkg.columns import in_columns
from rcpkg.rows import Rows

pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")

N = 24
Y = np.arange(N) % 2
SIZE = np.random.default_rng(0).normal(size=N) + Y
DAY = datetime.date(2020, 1, 1)


def cycled(*values):
    return [values[(i * i + i // 3) % len(values)] for i in range(N)]


NUMBERS, TEXT = "numbers", "text"
DATES, DURATIONS = "holds dates or times: make numbers of them", "holds durations: make numbers of them"
NESTED, BYTES, COMPLEX = (
    "holds nested values: make a feature of each",
    "holds bytes: decode them",
    "holds complex numbers",
)
MIXED, LARGE = r"holds text and other values \(.*\); make all of it text", r"holds integers beyond 2\*\*53"
#: name -> values of a column, and what becomes of them
COLUMNS = {
    "floats": (cycled(0.5, 1.5, 2.0), NUMBERS),
    "floats, one missing": (cycled(0.5, None, 2.0, 1.5), NUMBERS),
    "floats, one NaN": (cycled(0.5, float("nan"), 2.0, 1.5), NUMBERS),
    "integers": (cycled(0, 1, 2), NUMBERS),
    "integers, one missing": (cycled(0, None, 2, 1, 3), NUMBERS),
    "booleans": (cycled(False, True), NUMBERS),
    "booleans, one missing": (cycled(False, None, True), NUMBERS),
    "decimals": (cycled(Decimal("0.5"), Decimal(2), Decimal(1)), NUMBERS),
    "decimals, one missing": (cycled(Decimal("0.5"), None, Decimal(1)), NUMBERS),
    "fractions": (cycled(Fraction(1, 2), Fraction(2), Fraction(1)), NUMBERS),
    "text": (cycled("a", "b", "c"), TEXT),
    "text, one missing": (cycled("a", None, "c"), TEXT),
    "numbers as text, one missing": (cycled("1", None, "3.5"), NUMBERS),
    "missing values only": ([None] * N, NUMBERS),
    "dates": ([DAY + datetime.timedelta(days=i * i % 7) for i in range(N)], DATES),
    "dates, one missing": ([None, *(DAY + datetime.timedelta(days=i % 5) for i in range(1, N))], DATES),
    "times of the day": (cycled(datetime.time(1), datetime.time(2)), DATES),
    "times": ([datetime.datetime(2020, 1, 1, hour) for hour in range(N)], DATES),
    "times of a zone": ([datetime.datetime(2020, 1, 1, hour, tzinfo=datetime.UTC) for hour in range(N)], DATES),
    "times of numpy": (list(np.datetime64("2020-01-01", "s") + np.arange(N)), DATES),
    "periods": (list(pd.period_range("2020", periods=N, freq="D")), DATES),
    "durations": ([datetime.timedelta(days=i % 3) for i in range(N)], DURATIONS),
    "durations of numpy": (list(np.arange(N).astype("m8[s]")), DURATIONS),
    "bytes": (cycled(b"a", b"b"), BYTES),
    "complex numbers": (cycled(1j, 2.0), COMPLEX),
    "lists": (cycled([1.0], [2.0, 3.0]), NESTED),
    "dicts": (cycled({"a": 1}, {"a": 2}), NESTED),
    "intervals": (cycled(pd.Interval(0, 1), pd.Interval(1, 2)), "holds values of type Interval: make them text"),
    "large integers": ([2**60 + i % 3 for i in range(N)], LARGE),
    "large integers, one missing": ([None, *(2**60 + i % 3 for i in range(1, N))], LARGE),
    "negative large integers": ([-(2**60) - i % 3 for i in range(N)], LARGE),
    "integers beyond 64 bits": ([2**70 + i % 3 for i in range(N)], LARGE),
    "large decimals": ([Decimal(2**60 + i % 3) for i in range(N)], LARGE),
    "text and numbers": (cycled("a", 1.0), MIXED),
    "text and booleans": (cycled("a", True, "b"), MIXED),
    "text, numbers, one missing": (cycled("a", None, 1), MIXED),
}


def diagonals(rows, columns):
    """Pairs of the entries of two tables, of which the quick suite has every fifth: an entry meets a fifth of those of
    the other table, and entries that stand side by side, which are of one kind, meet different fifths."""
    return [
        pytest.param(row, column, marks=[pytest.mark.slow] * bool((i + j) % 5))
        for (i, row), (j, column) in product(enumerate(rows), enumerate(columns))
    ]


def objects(values):
    column = np.empty(N, dtype=object)
    column[:] = values
    return column


def frame(column):
    return pd.DataFrame({"size": SIZE, "it": column})


def arrow(values, change=lambda column: column):
    return pa.table({"size": pa.array(SIZE), "it": change(pa.array(values))})


def nullable(values):
    """Of complex numbers old pandas looks at the real parts, and warns of that."""
    with warnings.catch_warnings(action="ignore"):
        return values.convert_dtypes()


def sparse(values, **fill):
    """Of times pandas warns that it loses their zone."""
    with warnings.catch_warnings(action="ignore"):
        return frame(pd.arrays.SparseArray(values, **fill))


def strings(values):
    if not all(value is None or isinstance(value, str) for value in values):
        raise TypeError("these are no strings")
    return frame(pd.Series(values, dtype="string"))


def in_folders(values):
    table = arrow(values).append_column("label", pa.array(Y))
    first, second = (parquet(table.slice(start, N // 2)) for start in (0, N // 2))
    return Rows.from_parquet([first.parent, second], "label", features=["size", "it"])


#: name -> a function that puts a column of values beside one of floats; what it cannot hold it raises
CONTAINERS = {
    "array of objects": lambda values: np.column_stack([SIZE.astype(object), objects(values)]),
    "list": lambda values: [[size, value] for size, value in zip(SIZE.tolist(), values)],
    "pandas, objects": lambda values: frame(pd.Series(objects(values))),
    "pandas, inferred": lambda values: frame(pd.Series(values)),
    "pandas, nullable": lambda values: nullable(frame(pd.Series(values))),
    "pandas, strings": strings,
    "pandas, of arrow": lambda values: frame(pd.array(values, dtype=pd.ArrowDtype(pa.array(values).type))),
    "pandas, sparse": lambda values: sparse(objects(values)),
    "pandas, sparse by value": lambda values: sparse(objects(values), fill_value=values[1]),
    "pandas, sparse, inferred": lambda values: sparse(pd.Series(values)),
    "pandas, category": lambda values: frame(pd.Categorical(values)),
    "pandas, category of arrow": lambda values: frame(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values).dictionary_encode()]))
    ),
    "polars": lambda values: pl.DataFrame({"size": SIZE, "it": pl.Series(values, strict=True)}),
    "polars, categories": lambda values: pl.DataFrame({"size": SIZE, "it": pl.Series(values, dtype=pl.Categorical)}),
    "polars, objects": lambda values: pl.DataFrame({"size": SIZE, "it": pl.Series(values, dtype=pl.Object)}),
    "arrow table": arrow,
    "arrow table, dictionary": lambda values: arrow(values, lambda column: column.dictionary_encode()),
    "arrow batch": lambda values: arrow(values).to_batches()[0],
    "blocks": lambda values: Rows.from_arrays(frame(pd.Series(objects(values))), Y, block_size=N // 2),
    "blocks of a list": lambda values: Rows.from_arrays([*zip(SIZE.tolist(), values)], Y, block_size=N // 2),
    "blocks of polars": lambda values: Rows.from_arrays(
        pl.DataFrame({"size": SIZE, "it": values}), Y, block_size=N // 2
    ),
    "blocks of arrow": lambda values: Rows.from_arrays(arrow(values), Y, block_size=N // 2),
    "parquet": lambda values: Rows.from_parquet(parquet(arrow(values).append_column("label", pa.array(Y))), "label"),
    "parquet, several": in_folders,
}
CANNOT_HOLD = (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError, AttributeError)


def parquet(table):
    import tempfile
    from pathlib import Path

    import pyarrow.parquet

    file = Path(tempfile.mkdtemp()) / "rows.parquet"
    pyarrow.parquet.write_table(table, file)
    return file


def held(container, values):
    """The values in a container; skips what it cannot hold, or has changed itself."""
    try:
        X = CONTAINERS[container](values)
    except CANNOT_HOLD as error:
        pytest.skip(f"{container}: {error}")
    of_pandas = isinstance(X, pd.DataFrame) and getattr(X["it"].dtype, "subtype", X["it"].dtype)
    if of_pandas == float and max(map(abs, filter(None, values))) > 2**53:  # noqa: E721
        pytest.skip("pandas makes floats of them")
    return X


def as_table(values, outcome):
    """What a model should see of a column that it takes: floats, or objects of text."""
    if outcome == TEXT:
        return pd.DataFrame({"size": SIZE, "it": objects(values)})
    return np.column_stack([SIZE, [np.nan if value is None else float(value) for value in values]])


def fitted_to(model, X):
    return clone(model).fit(X) if isinstance(X, Rows) else clone(model).fit(X, Y)


PRODUCT = ProductModel([("n", GaussianNB(), [0]), ("c", CategoricalNB(prior_strength=1.0), [1])])


@pytest.mark.filterwarnings("ignore:X .*feature names", "ignore:feature .* holds missing values only")
@pytest.mark.parametrize(("container", "column"), diagonals(CONTAINERS, COLUMNS))
def test_containers_make_no_difference(container, column):
    values, outcome = COLUMNS[column]
    X = held(container, values)
    if outcome in (NUMBERS, TEXT):
        plain = as_table(values, outcome)
        model = PRODUCT if outcome == TEXT else GaussianNB()
        expected, found = fitted_to(model, plain), fitted_to(model, X)
        for new in (X, plain):
            assert_allclose(found.predict_proba(new), expected.predict_proba(plain), atol=1e-12)
        return
    with pytest.raises((ValueError, TypeError), match=rf"(feature ('it'|1)|X) {outcome}"):
        fitted_to(GaussianNB(), X)
    with pytest.raises((ValueError, TypeError), match=outcome):
        GaussianNB().fit(frame(SIZE**2), Y).predict(X)


# each refusal is made at one place, before a learner is asked: one column for each sentence that it has
REFUSED = {outcome: name for name, (_, outcome) in COLUMNS.items() if outcome not in (NUMBERS, TEXT)}.values()


@pytest.mark.parametrize("model", [*EACH_ESTIMATOR.values(), PRODUCT, RiskCalibration(PRODUCT)], ids=repr)
def test_every_learner_refuses_alike(model):
    plain = np.column_stack([np.arange(N) % 3, cycled(0, 1)])
    model = clone(model).set_params() if not hasattr(model, "max_iter") else clone(model).set_params(max_iter=1)
    with warnings.catch_warnings(action="ignore"):
        trained = clone(model).fit(plain, Y)
    for name in REFUSED:
        values, outcome = COLUMNS[name]
        for X in (np.column_stack([SIZE.astype(object), objects(values)]), frame(pd.Series(objects(values)))):
            calls = [partial(clone(model).fit, X, Y), partial(use, trained, X)]
            if hasattr(model, "partial_fit"):
                calls += [partial(clone(model).partial_fit, X, Y, classes=[0, 1])]
                calls += [partial(clone(model).partial_fit(plain, Y, classes=[0, 1]).partial_fit, X, Y)]
            for call in calls:
                with pytest.raises((ValueError, TypeError), match=outcome):
                    call()


def use(model, X):
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


@pytest.mark.parametrize("chosen", [["it"], [False, True]])
def test_blocks_choose_columns_by_series_of_polars(chosen):
    X = frame(SIZE**2)
    found = ProductModel([("n", QDA(), pl.Series(chosen))]).fit(X, Y).predict_proba(X)
    assert_array_equal(found, ProductModel([("n", QDA(), [1])]).fit(X, Y).predict_proba(X))


# labels ---------------------------------------------------------------------------------------------------------------

NO_LABELS = "which are no labels: make them text with astype"
LABELS = {
    "integers": ([1, 2], [1, 2]),
    "large integers": ([2**60, 2**60 + 1], [2**60, 2**60 + 1]),
    "booleans": ([False, True], [False, True]),
    "floats": ([0.0, 2.0], [0.0, 2.0]),
    "text": (["no", "yes"], ["no", "yes"]),
    "integers beyond 64 bits": ([2**70, 2**70 + 1], "y holds integers beyond 64 bits, or that floats cannot tell"),
    "dates": ([DAY, DAY.replace(year=2021)], f"y holds dates or times, {NO_LABELS}"),
    "times": ([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)], f"y holds dates or times, {NO_LABELS}"),
    "times of numpy": (list(np.array(["2020", "2021"], "M8[s]")), f"y holds dates or times, {NO_LABELS}"),
    "durations": ([datetime.timedelta(1), datetime.timedelta(2)], f"y holds durations, {NO_LABELS}"),
    "decimals": ([Decimal(1), Decimal(2)], f"y holds decimal numbers, {NO_LABELS}"),
    "bytes": ([b"a", b"b"], f"y holds bytes, {NO_LABELS}"),
    "complex numbers": ([1j, 2j], f"y holds complex numbers, {NO_LABELS}"),
    "dicts": ([{"a": 1}, {"a": 2}], f"y holds nested values, {NO_LABELS}"),
    "intervals": ([pd.Interval(0, 1), pd.Interval(1, 2)], f"y holds values of type Interval, {NO_LABELS}"),
    "text and numbers": (["a", 1], "y holds text and other labels: make all of it text"),
    "booleans and numbers": ([True, 2], "y holds booleans and other labels: make all of it text"),
    "one missing": (["a", None], "missing labels: leave these rows out"),
    "numbers, one missing": ([1, None], "missing labels: leave these rows out"),
    "numbers, one NaN": ([1.0, float("nan")], "missing labels: leave these rows out"),
}


def one_type(values):
    """An array, if that changes no value."""
    if len(set(map(type, values))) > 1:
        raise TypeError("numpy changes values of several types")
    return np.array(values)


LABEL_CONTAINERS = {
    "list": list,
    "array": one_type,
    "array of objects": objects,
    "array of strings": lambda values: np.array(values, np.dtypes.StringDType(na_object=None, coerce=False)),
    "pandas": pd.Series,
    "pandas, objects": lambda values: pd.Series(objects(values)),
    "pandas, nullable": lambda values: nullable(pd.Series(values)),
    "pandas, sparse": lambda values: pd.Series(pd.arrays.SparseArray(objects(values))),
    "pandas, sparse by value": lambda values: pd.Series(pd.arrays.SparseArray(objects(values), fill_value=values[1])),
    "pandas, category": lambda values: pd.Series(pd.Categorical(values)),
    "pandas, of arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.array(values).type)),
    "polars": lambda values: pl.Series(values, strict=True),
    "polars, objects": lambda values: pl.Series(values, dtype=pl.Object),
    "arrow": pa.array,
    "arrow, chunks": lambda values: pa.chunked_array([values]),
    "arrow, dictionary": lambda values: pa.array(values).dictionary_encode(),
    "column of a frame": lambda values: pd.DataFrame({"a": 0, "y": objects(values)}).to_numpy()[:, 1],
    "blocks": lambda values: Rows.from_arrays(SIZE[:, None], objects(values), block_size=7),
    "parquet": lambda values: Rows.from_parquet(parquet(pa.table({"size": SIZE, "y": values})), "y"),
}


@pytest.mark.filterwarnings("ignore:X .*feature names")
@pytest.mark.parametrize(("container", "labels"), diagonals(LABEL_CONTAINERS, LABELS))
def test_labels_are_what_they_hold(container, labels):
    pair, outcome = LABELS[labels]
    given = [pair[k] for k in Y]
    try:
        y = LABEL_CONTAINERS[container](given)
    except CANNOT_HOLD as error:
        pytest.skip(f"{container}: {error}")
    X = SIZE[:, None]
    for model in (GaussianNB(), LocalBDA()) if not isinstance(y, Rows) else (GaussianNB(), QDA()):
        fit = partial(model.fit, y) if isinstance(y, Rows) else partial(model.fit, X, y)
        if isinstance(outcome, str):
            refused(outcome, fit)
        else:
            found = fit()
            assert_array_equal(found.classes_, outcome)
            assert_allclose(found.predict_proba(X), clone(model).fit(X, Y).predict_proba(X), atol=1e-12)
            if not isinstance(y, Rows):
                assert found.score(X, y) == clone(model).fit(X, Y).score(X, Y)
    if container == "array of objects" and not isinstance(outcome, str):
        streamed = GaussianNB().partial_fit(X, y, classes=objects(given))
        assert_array_equal(streamed.classes_, outcome)


@pytest.mark.parametrize("labels", [[2**63, 2**63 + 1, -1], [2**63, 2**62, -1], [2**53, 2**53 + 1, 0.5]])
def test_labels_are_never_rounded(labels):
    """numpy makes floats of integers of both signs beyond 63 bits, and of integers beside floats."""
    y = [labels[i % 3] for i in range(N)]
    for model in GaussianNB(), LocalBDA():
        refused("y holds integers beyond 64 bits, or that floats cannot tell apart", model.fit, SIZE[:, None], y)
    with pytest.raises(ValueError, match="classes holds integers beyond 64 bits, or that floats cannot tell apart"):
        GaussianNB().partial_fit(SIZE[:, None], Y, classes=[0, 1, *labels])


@pytest.mark.parametrize("y", [(k for k in Y), dict(enumerate(Y)), set(Y), csr_array(Y[:, None])], ids=type)
def test_labels_are_a_column(y):
    with pytest.raises(ValueError, match=f"y must be a column of labels, an array or a list; got {type(y).__name__}"):
        GaussianNB().fit(SIZE[:, None], y)


def test_labels_that_are_fractions_are_called_so():
    for y in [Fraction(1 + k) for k in Y], pd.Series([Fraction(1 + k, 2) for k in Y]):
        refused(f"y holds fractions, {NO_LABELS}", GaussianNB().fit, SIZE[:, None], y)


def test_integers_of_several_types_of_numpy_stay_integers():
    assert GaussianNB().fit(SIZE[:, None], cycled(np.int8(1), np.uint64(2))).classes_.dtype.kind == "i"


@pytest.mark.parametrize("model", [GaussianNB(), RiskCalibration(GaussianNB(), target="generative", target_weight=1.0)])
def test_booleans_beside_numbers_are_zero_and_one(model):
    X = SIZE[:, None]
    for first, second in (Y, Y == 1), (Y == 1, Y):
        found, expected = (clone(model).partial_fit(X, first, classes=first) for _ in range(2))
        found, expected = found.partial_fit(X, second), expected.partial_fit(X, first)
        assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


# weights --------------------------------------------------------------------------------------------------------------

WEIGHTED = [
    *(GaussianNB(), QDA(), RiskCalibration(LDA()), RiskCalibrationCV(LDA(), cv=2), ConditionalLikelihood(LDA())),
    *(CategoricalNB(), TAN(), WANBIAC(), BDA7(), BregmanClustering(n_clusters=2)),
]
WEIGHTS = {
    "dates": (np.array(["2020-01-01"] * N, "M8[D]"), "must hold numbers, one a row; it holds dates"),
    "durations": (pd.Series(np.ones(N).astype("m8[s]")), "must hold numbers, one a row; it holds durations"),
    "complex numbers": (np.ones(N) + 1j, "must hold numbers, one a row; it holds complex numbers"),
    "text": (["1"] * N, "must hold numbers, one a row; it holds text"),
    "text of polars": (pl.Series(["1"] * N), "must hold numbers, one a row; it holds text"),
    "one missing": (pl.Series([None, *[1] * (N - 1)]), "must hold finite numbers >= 0; row 0 has nan"),
    "one NA": (pd.Series([pd.NA, *[1] * (N - 1)], dtype="Int64"), "must hold finite numbers >= 0; row 0 has nan"),
    "infinite": (np.r_[np.inf, np.ones(N - 1)], "must hold finite numbers >= 0; row 0 has inf"),
    "negative": (-np.ones(N), "must hold finite numbers >= 0; row 0 has -1"),
    "none": (np.zeros(N), "is zero for all rows"),
    "too large a sum": (np.full(N, 1e308), "sums to inf, and products"),
    "too many": (np.ones(N + 1), rf"must hold {N} numbers, one a row"),
    "a column": (np.ones((N, 1)), rf"must hold {N} numbers, one a row"),
}


@pytest.mark.parametrize(("model", "weights"), diagonals(WEIGHTED, WEIGHTS))
def test_weights_are_numbers(model, weights):
    given, message = WEIGHTS[weights]
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        clone(model).fit(np.column_stack([np.arange(N) % 3, Y]), Y, sample_weight=given)


@pytest.mark.parametrize(
    "weights",
    [
        *(list, objects, pd.Series, pl.Series, pa.array),
        *(partial(pd.Series, dtype="Int64"), lambda w: pd.Series(map(Decimal, w))),
    ],
)
def test_containers_of_weights_make_no_difference(weights):
    w = cycled(1, 2, 3)
    expected = GaussianNB().fit(SIZE[:, None], Y, np.array(w)).predict_proba(SIZE[:, None])
    given = weights(w)
    assert_array_equal(GaussianNB().fit(SIZE[:, None], Y, given).predict_proba(SIZE[:, None]), expected)
    rows = Rows.from_arrays(SIZE[:, None], Y, given, block_size=7)
    assert_allclose(GaussianNB().fit(rows).predict_proba(SIZE[:, None]), expected, atol=1e-12)


TRIPLE = np.column_stack([np.arange(30) % 3, np.arange(30) % 2, np.arange(30) % 5 + np.arange(30) % 3])


NB = CategoricalNB(prior_strength=1.0)
OF_CODES = [
    *(CategoricalNB(), TAN(), WANBIAC(), NB, MultinomialNB(), RiskCalibration(NB), DiscriminativeFrequencyEstimate(NB)),
    *(RiskCalibrationCV(NB, target_weights=[1.0, 3.0, 9.0], cv=3), ConditionalLikelihood(TAN(), target_weight=1.0)),
]


@pytest.mark.parametrize("model", [*WEIGHTED[:5], BDA7(), LDA(prior_strength=1.0), RDA(), EDDA(), *OF_CODES], ids=repr)
@pytest.mark.filterwarnings("ignore:target_weight_", "ignore:feature . is constant")
def test_classes_without_weight_are_left_out(model):
    """Rows of weight zero are as rows that are not there, in every model, with priors and without; nor do the states
    that they alone have count."""
    y = np.arange(30) // 10
    X = TRIPLE + (9 * (y == 0)[:, None] if model in OF_CODES else 0.1 * np.sin(np.arange(90)).reshape(30, 3))
    some = y > 0
    given = clone(model).fit(X, y, sample_weight=1.0 * some)
    assert_array_equal(given.classes_, [1, 2])
    without = clone(model).fit(X[some], y[some])
    assert_array_equal(given.predict_proba(X), without.predict_proba(X))
    if isinstance(model, GaussianNB | QDA | CategoricalNB | MultinomialNB | LDA):
        blocks = clone(model).fit(Rows.from_arrays(X, y, 1.0 * some, block_size=8))
        assert_array_equal(blocks.classes_, [1, 2])
        assert_allclose(blocks.predict_proba(X), without.predict_proba(X), atol=1e-10)
    refused("one class only", clone(model).fit, X, y, sample_weight=1.0 * (y == 0))


@pytest.mark.parametrize("model", WEIGHTED[:-1], ids=repr)
@pytest.mark.parametrize("total", [1e-310, 1e-200, 1e200])
def test_sums_of_weights_stay_in_range(model, total):
    with pytest.raises(ValueError, match=r"sample_weight sums to .*: divide it by its mean"):
        clone(model).fit(TRIPLE, np.arange(30) // 10, sample_weight=np.full(30, total / 30))


@pytest.mark.parametrize("target", ["pooled", "grand"])
def test_weights_beside_which_the_target_counts_for_nothing_say_so(target):
    (X, y), weights = load_iris(return_X_y=True), 10.0 ** np.random.default_rng(0).uniform(-12, 12, 150)
    model = RiskCalibration(GaussianNB(), target=target, max_iter=20)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights)
        assert re.search(r"sums to 3\.4e\+12, .* 18 pseudo-rows .*: divide it by its mean", str(said[0].message))
        assert model.fit(X, y, sample_weight=weights / weights.mean()).converged_
    assert sum("pseudo-rows" in str(each.message) for each in said) == 1


@pytest.mark.parametrize("model", [GaussianNB(), QDA(), RiskCalibration(LDA()), BDA7(), RDA()], ids=repr)
def test_weighted_squares_that_overflow_are_named(model):
    with pytest.raises(ValueError, match=r"so large that .* overflow: rescale them"):
        clone(model).fit(1e140 * TRIPLE, np.arange(30) // 10, sample_weight=np.full(30, 1e100))


@pytest.mark.parametrize("model", [MultinomialNB(), RiskCalibration(MultinomialNB(prior_strength=1.0))], ids=repr)
def test_counts_beyond_what_floats_count_are_refused(model):
    with pytest.raises(ValueError, match=r"feature 1 holds counts beyond 2\*\*53"):
        clone(model).fit([[1.0, 1e308], [2.0, 1e308], [3.0, 1.0], [1.0, 2.0]], [0, 0, 1, 1])


# shapes and counts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_size", [None, 7])
@pytest.mark.parametrize("container", [np.asarray, pd.Series, pl.Series, list])
@pytest.mark.parametrize("n", [N - 1, N + 7])
def test_labels_and_weights_are_as_many_as_rows(n, container, block_size):
    many = container(np.resize(Y, n))
    refused(f"X has {N} rows and y {n}", Rows.from_arrays, SIZE[:, None], many, block_size=block_size)
    with pytest.raises(ValueError, match=f"X has {N} rows and sample_weight {n}"):
        Rows.from_arrays(SIZE[:, None], Y, container(np.ones(n)), block_size=block_size)


@pytest.mark.parametrize("name", ["a", ("a", 1), 3])
def test_columns_of_one_name_are_refused(name):
    X = pd.DataFrame(np.column_stack([SIZE, SIZE]))
    X.columns = pd.Index([name, name], tupleize_cols=False)
    refused(re.escape(f"several columns named {name!r}: rename all but one"), GaussianNB().fit, X, Y)


NAMES = {"integers": [5, 7], "one missing": [float("nan"), 7.0], "two levels": [("a", 1), ("b", 1)]}


NAMED = [
    *(GaussianNB(), CategoricalNB(), RiskCalibration(LDA()), Mixture(GaussianNB(), n_components=2, random_state=0)),
    *(WANBIAC(), BDA7(), LocalBDA(), TableClassifier(candidates=[("nb", GaussianNB())], cv=2, random_state=0)),
    *(ProductModel([("n", QDA(), [0, 1])]), MDLDiscretizer(), BregmanClustering(n_clusters=2)),
    RiskCalibrationCV(make_pipeline(StandardScaler(), LDA()), cv=2),
]


@pytest.mark.parametrize(("model", "names"), [*product(NAMED[:2], NAMES), *diagonals(NAMED[2:], NAMES)])
@pytest.mark.filterwarnings("ignore:rows left out", "ignore:EM ", "ignore:target_weight_")
def test_names_that_are_no_strings_keep_their_order(model, names):
    """scikit-learn takes no notice of them, and columns in another order for those of training."""
    known = NAMES[names]
    X = pd.DataFrame(np.column_stack([np.arange(N) % 3, cycled(0, 1)]))
    X.columns = pd.Index(known, tupleize_cols=names == "two levels")
    found = clone(model).fit(X, Y)
    use(found, X)
    if not isinstance(model, TableClassifier):  # whose columns have names
        use(found, X.to_numpy())
    message = re.escape(f"The feature names should match those that were passed during fit, {known}, in their order")
    for other in (X.iloc[:, ::-1], X.set_axis([8, 9], axis=1), pl.DataFrame(X.to_numpy(), schema=["8", "9"])):
        refused(message, use, found, other)
    if isinstance(model, GaussianNB | CategoricalNB):
        refused(message, clone(model).partial_fit(X, Y, classes=[0, 1]).partial_fit, X.iloc[:, ::-1], Y)
        blocks = found.fit(Rows.from_arrays(X, Y, block_size=7))
        refused(message, blocks.predict, X.iloc[:, ::-1])
        named = blocks.fit(Rows.from_arrays(X.set_axis(["a", "b"], axis=1), Y))
        assert_array_equal(named.feature_names_in_, ["a", "b"])
        forgetful = named.fit(Rows.from_arrays(X.to_numpy(), Y))
        assert not hasattr(forgetful, "feature_names_in_")
        forgetful.predict(X.iloc[:, ::-1])


def test_names_in_the_place_of_mere_numbers_of_columns_get_the_warning_of_scikit_learn():
    """A frame that pandas numbers has no names; other numbers are another order all the same."""
    X = np.column_stack([np.arange(N) % 3, cycled(0, 1)])
    found = GaussianNB().fit(pd.DataFrame(X), Y)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert_array_equal(found.predict_proba(pd.DataFrame(X, columns=["a", "b"])), found.predict_proba(X))
    refused("in their order", found.predict, pd.DataFrame(X)[[1, 0]])


def test_masks_are_gaps_and_those_of_labels_are_refused():
    codes = np.ma.masked_equal(np.column_stack([np.arange(N) % 3, cycled(0, 1)]), 2)
    assert_array_equal(CategoricalNB(prior_strength=1.0).fit(codes, Y).n_states_, [2, 2])
    refused("missing labels", QDA().fit, SIZE[:, None], np.ma.masked_equal(Y, 1))
    assert_array_equal(QDA().fit(SIZE[:, None], np.ma.array(Y)).classes_, [0, 1])
    hidden, gaps = np.ma.masked_less(SIZE[:, None] * [1.0, -1.0], -1), SIZE[:, None] * [1.0, -1.0]
    gaps[gaps < -1] = np.nan
    expected = GaussianNB().fit(gaps, Y).predict_proba(gaps)
    for rows in (hidden, list(hidden), tuple(hidden)):
        assert_array_equal(GaussianNB().fit(rows, Y).predict_proba(rows), expected)
        blocks = GaussianNB().fit(Rows.from_arrays(rows, tuple(Y), block_size=7))
        assert_allclose(blocks.predict_proba(gaps), expected, atol=1e-12)


def test_tuples_hold_rows_or_the_parts_of_encoded_rows():
    rows = tuple(map(tuple, np.eye(3)))
    block = Rows.from_arrays(rows, (0, 1, 1)).only("it")
    assert isinstance(block.X, list) and block.n == 3
    parts = np.eye(3), np.ones((3, 2))
    assert Rows.from_arrays(parts, np.arange(3)).only("it").X is parts


def test_frames_that_are_not_in_memory_are_refused_with_the_remedy():
    lazy, dask = pl.DataFrame({"size": SIZE}).lazy(), pytest.importorskip("dask.dataframe")
    for X, what in ((lazy, "LazyFrame of polars"), (dask.from_pandas(frame(SIZE), npartitions=2), "DataFrame of dask")):
        for call in (*(model.fit for model in (GaussianNB(), CategoricalNB(), LocalBDA())), Rows.from_arrays):
            refused(f"X and y must be in memory; got a {what}: collect or compute it", call, X, Y)


@pytest.mark.parametrize("model", [GaussianNB(), CategoricalNB(), LocalBDA(), RiskCalibrationCV(LDA())], ids=repr)
def test_what_is_no_table_is_refused_with_the_remedy(model):
    for X, message in (
        (frame(SIZE)[[]], r"0 feature\(s\) \(shape=\(24, 0\)\) while a minimum of 1 is required"),
        (frame(cycled(Decimal("Infinity"), Decimal(1))), "contains infinity"),
        (frame(SIZE).to_records(), "X is an array of records: give it as a frame"),
        (frame(SIZE).to_dict("records"), "X must be a table; its rows are of type dict"),
        (pd.Series([[size] for size in SIZE]), "X must be a table; its rows are of type"),
    ):
        refused(message, model.fit, X, Y)


class AsArray:
    """What numpy alone can read."""

    def __init__(self, array):
        self.__array_interface__, self.array = array.__array_interface__, array


@pytest.mark.parametrize(
    "container", [AsArray, lambda X: pl.DataFrame(X).to_struct(), lambda X: [*map(pl.Series, X.tolist())]]
)
def test_tables_that_numpy_alone_can_read(container):
    X = np.column_stack([SIZE, SIZE**2])
    found = GaussianNB().fit(container(X), Y)
    assert_allclose(found.predict_proba(container(X)), GaussianNB().fit(X, Y).predict_proba(X), atol=1e-12)


def test_rows_of_numbers_are_not_copied():
    text = pd.Series(cycled("a", "b"))
    texts = [frame(text)] if text.dtype != object else []  # of old pandas text is objects, which are looked at
    for X in (frame(SIZE), *texts, np.column_stack([SIZE, SIZE])):
        assert in_columns(X) is X
