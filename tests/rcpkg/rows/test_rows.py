"""Rows in blocks: the array is one block, several give the same model; no file or cluster changes a bit."""

import logging
import os
import shutil
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_cases import ML, gaussian_rows, network_rows, refused, rows_for, slow
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from rcpkg import (
    BDA7,
    EDDA,
    LDA,
    QDA,
    RDA,
    SVMKNN,
    TAN,
    WANBIAC,
    BayesianQDA,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    KDependenceBayes,
    LocalBDA,
    MDLDiscretizer,
    NearestMeans,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    Rows,
    SharedVarianceGaussianNB,
    TableClassifier,
    calibration_test,
)
from rcpkg.calibration import Batches, Fixed, HeldOut
from rcpkg.calibration.constants import SAFE_TOL
from rcpkg.calibration.left_out import in_fold
from rcpkg.calibration.objective import Pass
from rcpkg.rows import Blocks

SAME = 1e-12  # of several blocks: sums are added up in another order


@pytest.fixture
def parquet(tmp_path):
    pytest.importorskip("pyarrow")

    def written(frame, name="rows.parquet", **given):
        frame.to_parquet(tmp_path / name, **{"index": False} | given)
        return tmp_path / name

    return written


def mixed_rows(n=400, seed=0):
    """Numbers and names, and labels that are text."""
    X, y = gaussian_rows(n, seed=seed)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["place"] = np.array(["north", "east", "south"], dtype=object)[(y + rng.integers(0, 2, n)) % 3]
    frame["kind"] = np.array(["x", "y"], dtype=object)[rng.integers(0, 2, n)]
    return frame, np.array(["low", "middle", "high"], dtype=object)[y]


MIXED = ProductModel([("size", QDA(), ["a", "b", "c"]), ("names", CategoricalNB(), ["place", "kind"])])


def assert_same_bits(a, b, X):
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert_array_equal(a.classes_, b.classes_)


@pytest.mark.parametrize("name", ML)
def test_one_block_is_the_array_to_the_bit(name):
    X, y = rows_for(name)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    w[:30] = 1.0
    model, given = ML[name], (X, y, w)
    assert_same_bits(clone(model).fit(*given), clone(model).fit(Rows.from_arrays(*given)), X)
    fixed = RiskCalibration.as_published(model, max_iter=5, stopping="none")
    assert_same_bits(clone(fixed).fit(*given), clone(fixed).fit(Rows.from_arrays(*given)), X)


@pytest.mark.parametrize("name", ML)
def test_several_blocks_give_the_same_model(name):
    X, y = rows_for(name)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for model in (ML[name], RiskCalibration.as_published(ML[name], max_iter=5, stopping="none")):
        whole, parts = clone(model).fit(X, y, w), clone(model).fit(Rows.from_arrays(X, y, w, block_size=17))
        assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=100 * SAME)
        in_parts = parts.predict_proba(Rows.from_arrays(X, block_size=17))
        assert_allclose(in_parts, parts.predict_proba(X), rtol=0, atol=SAME)


class Counted(Blocks):
    """Blocks that count how often they are gone through, changed as they are, like those of a file."""

    passes, map = 0, Rows.map

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


@pytest.mark.parametrize(
    "model", [QDA(), LDA(), GaussianNB(), SharedVarianceGaussianNB(), QDA(prior_strength=2.0)], ids=repr
)
def test_gaussian_closed_forms_lose_no_digits(model):
    """Far from zero, blocks of one class each, a feature that varies late, and one that never does."""
    X, y = gaussian_rows(400)
    order, w = np.argsort(y, kind="stable"), np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    X = np.column_stack([X, np.arange(len(y)) > 380, np.full(len(y), 0.1)])[order] + 1e6
    y = np.array(["late", "none", "early"])[y[order]]
    rows = Counted(Rows.from_arrays(X, y, w, block_size=30).blocks)
    parts, whole = clone(model).fit(rows), clone(model).fit(X, y, w)
    assert rows.passes == 2
    assert_allclose(parts.covariances_, whole.covariances_, rtol=1e-11, atol=1e-13)
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    if model.prior_strength:  # whose mean, zero, is too far for EM
        return
    X[397, 0] = np.nan
    parts = clone(model).fit(Rows.from_arrays(X, y, w, block_size=30))
    assert_allclose(parts.predict_proba(X), clone(model).fit(X, y, w).predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("model", [TAN(), KDependenceBayes(k=2)], ids=repr)
def test_the_structure_of_a_network_is_that_of_all_blocks(model):
    X, y = network_rows(600)
    order = np.argsort(X[:, 0], kind="stable")  # the first blocks lack states
    X, y = X[order], y[order]
    whole, parts = clone(model).fit(X, y), clone(model).fit(Rows.from_arrays(X, y, block_size=50))
    assert parts.parents_ == whole.parents_
    assert_array_equal(parts.statistics_.ravel(), whole.statistics_.ravel())


def test_names_and_labels_may_appear_in_late_blocks():
    X, y = mixed_rows()
    order = np.lexsort((X["place"], y))
    X, y = X.iloc[order], y[order]
    whole, parts = clone(MIXED).fit(X, y), clone(MIXED).fit(Rows.from_arrays(X, y, block_size=37))
    assert_array_equal(parts.classes_, whole.classes_)
    assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=100 * SAME)
    for a, b in zip(parts.family_.families[1].categories_, whole.family_.families[1].categories_):
        assert_array_equal(a, b)


def test_the_score_test_takes_one_block():
    X, y = gaussian_rows(60)
    weight = 1.0 + np.arange(60) % 2
    given = {"n_bootstrap": 9, "random_state": 0}
    of_rows = calibration_test(LDA(), Rows.from_arrays(X, y, weight), **given)
    assert of_rows == calibration_test(LDA(), X, y, sample_weight=weight, **given)
    with pytest.raises(ValueError, match=r"calibration_test, .*, takes rows that are one block"):
        calibration_test(LDA(), Rows.from_arrays(X, y, block_size=20))


AT_ONCE = [
    *(BDA7(), BayesianQDA(), EDDA(), NearestMeans(), RDA(), WANBIAC(), LocalBDA(), SVMKNN(n_neighbors=5)),
    MDLDiscretizer(),
    TableClassifier(candidates=[("nb", GaussianNB())], cv=2, random_state=0),
]


@pytest.mark.parametrize("model", AT_ONCE, ids=lambda model: type(model).__name__)
def test_what_needs_all_rows_at_once_takes_one_block(model):
    X, y = network_rows(80) if isinstance(model, WANBIAC) else gaussian_rows(80)
    name = type(model).__name__
    expected, found = (clone(model).fit(*given) for given in ((X, y), (Rows.from_arrays(X, y),)))
    for rows in (X, Rows.from_arrays(X, y, block_size=20)):
        assert_array_equal(change(found, rows), change(expected, X))
    refused(f"{name} takes rows that are one block", clone(model).fit, Rows.from_arrays(X, y, block_size=50))
    if isinstance(model, MDLDiscretizer | LocalBDA):
        refused(f"{name} takes rows without weights", clone(model).fit, Rows.from_arrays(X, y, np.ones(len(y))))


def change(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


def test_conditional_likelihood_of_several_blocks():
    X, y = gaussian_rows(300)
    for target_weight in (0.0, 1.0):
        whole, parts = (
            ConditionalLikelihood(LDA(), target_weight=target_weight).fit(Rows.from_arrays(X, y, block_size=size))
            for size in (None, 70)
        )
        assert parts.converged_
        assert_allclose(parts.objective_, whole.objective_, rtol=0, atol=1e-8)
        assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-3)


class TestChoiceOfTheWeight:
    """By folds: those of several blocks are drawn within each, and errors are judged by block."""

    def test_several_blocks_choose_as_one_with_the_same_folds(self):
        X, y = gaussian_rows(200)
        weight = 1.0 + np.arange(200) % 3
        rows = Rows.from_arrays(X, y, weight, block_size=50)
        parts = RiskCalibrationCV(QDA(), cv=3, target_weights=[1, 10]).fit(rows)
        number = np.concatenate([b.X for b in Rows.from_arrays(np.arange(200), block_size=50)])
        folds = [
            np.concatenate([in_fold(k, 3, 0, True, block).X for block in Rows.from_arrays(number, block_size=50)])
            for k in range(3)
        ]
        assert_array_equal(np.sort(np.concatenate(folds)), number)
        cv = [(np.setdiff1d(number, held), held) for held in folds]
        whole = RiskCalibrationCV(QDA(), cv=cv, target_weights=[1, 10]).fit(X, y, weight)
        columns = ["target_weight", "log_loss", "error"]
        # safe steps end within (m + b m̄) / (2 b m̄) ≤ 1 times SAFE_TOL of the optimum, in divergence a row: √(2 KL)
        assert_allclose(parts.cv_results_[columns], whole.cv_results_[columns], rtol=0, atol=np.sqrt(2 * SAFE_TOL))
        assert_array_equal(parts.target_weight_, whole.target_weight_)
        assert parts.validation_ == "3 folds"
        assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-3)

    def test_folds_take_the_place_of_leave_one_out(self):
        with pytest.warns(UserWarning, match='cv="loo" is not to be had: .*one block.*5 folds'):
            blocks = Rows.from_arrays(*gaussian_rows(200), block_size=99)
            model = RiskCalibrationCV(LDA(), target_weights=[1, 10], cv="loo").fit(blocks)
        assert model.validation_ == "5 folds"  # though the last block, of two rows, has none in some of them

    def test_what_folds_of_blocks_do_not_take(self):
        X, y = gaussian_rows(200)
        rows = Rows.from_arrays(X, y, block_size=99)
        refused("cv must be a number of folds, and groups None", RiskCalibrationCV(LDA(), cv=3).fit, rows, groups=y)
        refused("cv must be an integer >= 2; got 1", RiskCalibrationCV(LDA(), cv=1).fit, rows)
        refused("gaps_in_view takes rows that are one", RiskCalibrationCV(LDA(), cv=3, gaps_in_view=0.2).fit, rows)
        y[0], message = 9, "class 9 has no row in the training part of a fold"
        refused(message, RiskCalibrationCV(LDA(), cv=3).fit, Rows.from_arrays(X, y, block_size=99))


@pytest.mark.parametrize("name", ["MultinomialNB", "BernoulliNB"])
def test_sparse_rows(name):
    X, y = rows_for(name)
    X = csr_array(X)
    whole, parts = (clone(ML[name]).fit(Rows.from_arrays(X, y, block_size=size)) for size in (None, 7))
    assert_array_equal(parts.statistics_.ravel(), clone(ML[name]).fit(X, y).statistics_.ravel())
    assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))
    for form in "coo", "csc", "bsr", "dok", "lil":  # of which scipy does not slice all
        same = clone(ML[name]).fit(Rows.from_arrays(X.asformat(form), y, block_size=7))
        assert_array_equal(same.predict_proba(X), parts.predict_proba(X))


@pytest.mark.parametrize("block_size", [53, *slow(1000)])
def test_parquet_is_memory(parquet, block_size):
    X, y = mixed_rows()
    file = parquet(X.assign(label=y, weight=1.0 + (np.arange(len(y)) % 3)), row_group_size=2 * min(block_size, 200))
    rows = Rows.from_parquet(file, "label", weights="weight", block_size=block_size)
    in_memory = Rows.from_arrays(X, y, 1.0 + (np.arange(len(y)) % 3), None if block_size == 1000 else block_size)
    for model in (MIXED, RiskCalibration.as_published(MIXED, max_iter=4), RiskCalibration(MIXED, max_iter=4, tol=0)):
        assert_same_bits(clone(model).fit(rows), clone(model).fit(in_memory), X)
    fitted = clone(MIXED).fit(rows)
    assert_array_equal(fitted.predict(rows), fitted.predict(X))
    assert_allclose(fitted.score_samples(rows), fitted.score_samples(X), rtol=0, atol=SAME * 100)


MIXED_AGE = ProductModel([("age", CategoricalNB(prior_strength=1.0), [0]), ("a", GaussianNB(), [1])])


def indexed(kind):
    """Rows with an index of some kind, which pandas writes as a column, and labels."""
    age = np.random.default_rng(0).permutation(60)
    frame = pd.DataFrame({"a": np.random.default_rng(1).normal(size=60) + (age > 30), "y": age > 30, "age": age})
    if kind == "filtered":
        return frame[frame["age"] >= 0].sample(60, random_state=0).drop(columns="age"), ["__index_level_0__"]
    if kind == "two levels":
        return frame.assign(b=1.0 * age).set_index(["age", "b"]), ["age", "b"]
    types = {"int": int, "float": float, "text": str, "date": "datetime64[s]"}
    return frame.assign(age=frame["age"].astype(types[kind])).set_index("age"), ["age"]


class TestColumnsOfFiles:
    """Columns are those of the schema: what the metadata of pandas say is for frames."""

    @pytest.mark.parametrize("kind", ["int", "float", "text", "date", "two levels", "filtered"])
    def test_an_index_is_no_feature_unless_it_is_named(self, kind, parquet):
        frame, index = indexed(kind)
        file, plain = parquet(frame, index=None), frame.reset_index(names=index)
        for features in (["a"], [*index, "a"], index[:1]):
            model = GaussianNB() if kind != "text" or features == ["a"] else MIXED_AGE
            model = model if features[1:] or model is not MIXED_AGE else ProductModel(MIXED_AGE.blocks[:1])
            rows = Rows.from_parquet(file, "y", **{} if features == ["a"] else {"features": features})
            if kind == "date" and features != ["a"]:
                refused("feature 'age' holds dates or times", clone(model).fit, rows)
                continue
            fitted = clone(model).fit(rows)
            assert_array_equal(fitted.feature_names_in_, features)
            assert_same_bits(fitted, clone(model).fit(plain[features], plain["y"]), plain[features])
        assert (next(iter(Rows.from_parquet(file, index[0]))).y == plain[index[0]]).all()

    @pytest.mark.parametrize("names", [[0, 1], ["a.b", "a"]], ids=str)
    def test_names_are_text_in_files_and_may_have_dots(self, names, parquet):
        X, y = gaussian_rows(60)
        for first in (X[:, 0], np.arange(60)):
            frame = pd.DataFrame({names[0]: first, names[1]: X[:, 1], "y.z": y})
            fitted = GaussianNB().fit(Rows.from_parquet(parquet(frame), "y.z"))
            plain = frame[names].set_axis([*map(str, names)], axis=1)
            assert_array_equal(fitted.feature_names_in_, plain.columns)
            assert_same_bits(fitted, GaussianNB().fit(plain, y), plain)

    def test_several_files_and_folders(self, parquet):
        X, y = gaussian_rows(90)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
        files = [parquet(frame[k : k + 30], f"{k}.parquet") for k in (0, 30, 60)]
        whole = GaussianNB().fit(Rows.from_arrays(frame[["a", "b", "c"]], y, block_size=30))
        for paths in (files, [str(file) for file in files], files[0].parent, [files[0].parent]):
            assert_same_bits(GaussianNB().fit(Rows.from_parquet(paths, "y")), whole, frame[["a", "b", "c"]])
        assert len(list(Rows.from_parquet([files[2], files[0]], "y"))) == 2
        refused("path must name a file; got an empty list", Rows.from_parquet, [])

    @pytest.mark.parametrize("values", [[2020, 2021, 2022], ["north", "south east", "x=y"], ["1", None, "3"]])
    def test_keys_of_folders_are_columns(self, values, tmp_path):
        X, y = gaussian_rows(90)
        key = np.repeat(np.array(values, dtype=object), 30)
        frame = pd.DataFrame({"a": X[:, 0], "key": key, "y": y})
        frame.to_parquet(tmp_path / "rows", partition_cols=["key"], index=False)
        (tmp_path / "rows" / "_temporary").mkdir()
        (tmp_path / "rows" / "_temporary" / "0.parquet").write_bytes(b"")
        rows = Rows.from_parquet(tmp_path / "rows", "y")
        assert rows.features == ["a", "key"]
        keys = [list(pd.unique(block.X["key"])) for block in rows]
        missing_last = sorted((v for v in values if v is not None), key=str)
        found = [None if pd.isna(key) else key for (key,) in keys]
        whole = all(str(v).isdecimal() for v in values if v is not None)
        expected = [int(v) if whole else v for v in missing_last] + [None] * values.count(None)
        assert sorted(found, key=str) == sorted(expected, key=str)
        by_key = Rows.from_parquet(tmp_path / "rows", "key", features=["a"])
        if None not in values:
            assert sorted(GaussianNB().fit(by_key).classes_) == expected

    @pytest.mark.parametrize(
        "given, message",
        [
            ({"features": "age"}, "features must be a list of names; got 'age'"),
            ({"features": ["a", "a"]}, "features names twice 'a'"),
            ({"label": ["y"]}, "label must be the name of a column, a string"),
            ({"weights": 3}, "weights must be the name of a column, a string; got 3"),
            ({"weights": "y"}, "label and weights must be two columns; both are 'y'"),
            ({"label": "lable"}, r"rows\.parquet has no column 'lable'; it has"),
            ({"features": ["a", "y"]}, "features must be without 'y', which is the label or the weights"),
        ],
    )
    def test_bad_names(self, given, message, parquet):
        file = parquet(pd.DataFrame({"a": [0.0, 1.0], "age": [1, 2], "y": [0, 1]}))
        refused(message, Rows.from_parquet, file, **{"label": "y"} | given)

    def test_files_that_make_no_table_are_named(self, parquet, tmp_path):
        import pyarrow as pa
        from pyarrow import parquet as pq

        file = parquet(pd.DataFrame({"a": [0.0, 1.0], "y": [0, 1]}))
        for paths in ([file, file], [file.parent, file]):  # which would count twice
            refused(r"path names twice '.*rows\.parquet'", Rows.from_parquet, paths, "y")
        table = pa.Table.from_arrays([pa.array([0.0, 1.0])] * 2 + [pa.array([0, 1])], names=["a", "a", "y"])
        pq.write_table(table, tmp_path / "twice.parquet")
        refused(r"twice.parquet has several columns named 'a'", Rows.from_parquet, tmp_path / "twice.parquet", "y")
        (tmp_path / "cut.parquet").write_bytes(file.read_bytes()[:300])
        refused(r"cut.parquet is no Parquet file, or damaged", Rows.from_parquet, tmp_path / "cut.parquet", "y")
        for key in ("a=1", "b=2"):
            (tmp_path / "keys" / key).mkdir(parents=True)
            shutil.copy(file, tmp_path / "keys" / key)
        refused(r"must name the same keys; got \['a'\] and others", Rows.from_parquet, tmp_path / "keys", "y")


class TestBadInput:
    """One error that names the block and the column, and nothing half fitted."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda frame: frame.drop(columns="b"), "1.parquet has no column 'b', which 0.parquet has"),
            (lambda frame: frame.assign(place=1.0), "column 'place' is double in 1.parquet and"),
        ],
    )
    def test_other_columns_or_types(self, change, message, parquet):
        X, y = mixed_rows(60)
        file = parquet(X.assign(label=y), "0.parquet")
        parquet(change(X.assign(label=y)), "1.parquet")
        refused(message, clone(MIXED).fit, Rows.from_parquet(file.parent, "label"))

    @pytest.mark.parametrize(
        ("columns", "values", "message"),
        [
            ([*list("abc"), "place", "kind"], {"place": 1}, "block 2: feature 'place' holds numbers, and text in"),
            (["a", "b"], {"b": "many"}, "block 2: .*'b'.* holds text"),
            (["a", "b"], {"label": None}, "block 2: Input y contains NaN"),
            (["a", "b"], {"weight": np.nan}, "block 2: sample_weight must hold finite numbers"),
        ],
    )
    def test_values_in_one_block(self, columns, values, message):
        X, y = mixed_rows(60)
        frame = X.astype(object).assign(label=y, weight=1.0)
        for name, value in values.items():
            frame.loc[40:, name] = value
        rows = Rows.from_arrays(frame[columns], frame["label"], frame["weight"], block_size=20)
        refused(message, clone(MIXED if "place" in columns else GaussianNB()).fit, rows)

    def test_labels_missing_in_a_file(self, parquet):
        X, y = mixed_rows(60)
        y[41] = None
        file = parquet(X[["a", "b"]].assign(label=y))
        labelled, bare = (Rows.from_parquet(file, of, features=["a", "b"], block_size=20) for of in ("label", None))
        refused("block 2 .rows.parquet.: Input y contains NaN", GaussianNB().fit, labelled)
        refused("block 0 .*: it has no labels", GaussianNB().fit, bare)

    def test_a_file_that_changes_between_passes(self, parquet):
        X, y = gaussian_rows(60)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
        rows = Rows.from_parquet(parquet(frame), "label")
        parquet(frame.iloc[:50])
        refused("rows.parquet has changed since", GaussianNB().fit, rows)

    def test_rows_of_no_use(self):
        X, y = gaussian_rows(60)
        refused("there are no rows of positive weight", GaussianNB().fit, Rows.from_arrays(X, y, np.zeros(60), 20))
        refused("one class only", GaussianNB().fit, Rows.from_arrays(X, 0 * y, block_size=20))
        refused("block_size must be an integer >= 1; got 0", Rows.from_arrays, X, y, block_size=0)
        refused("must be None with Rows", LDA().fit, Rows.from_arrays(X, y), y)

    @pytest.mark.parametrize(
        "model",
        [
            ConditionalLikelihood(LDA(), solver="newton"),
            ConditionalLikelihood(LDA(), l2=1.0),
            RiskCalibration(LDA(), step=Fixed(), stopping=HeldOut(0.2), random_state=0),
            RiskCalibration(LDA(), step=Batches(), random_state=0),
        ],
        ids=repr,
    )
    def test_what_takes_one_block_says_so(self, model):
        refused("takes? rows that are one block", clone(model).fit, Rows.from_arrays(*gaussian_rows(60), block_size=20))


class TestDask:
    """Under the scheduler of this process; a cluster is one slow test."""

    @pytest.fixture(autouse=True)
    def scheduler(self):
        dask = pytest.importorskip("dask")
        pytest.importorskip("pyarrow")
        with dask.config.set(scheduler="sync"):
            yield

    @pytest.mark.parametrize("model", [QDA(), RiskCalibration.as_published(LDA(), max_iter=5), RiskCalibration(QDA())])
    def test_arrays_have_the_bits_of_the_blocks(self, model):
        import dask.array as da

        X, y = gaussian_rows(200)
        rows = Rows.from_dask(da.from_array(X, chunks=(60, 2)), da.from_array(y, chunks=60))
        lazy = clone(model).fit(rows)
        assert_same_bits(lazy, clone(model).fit(Rows.from_arrays(X, y, block_size=60)), X)
        assert_array_equal(lazy.predict_proba(rows).compute(), lazy.predict_proba(Rows.from_arrays(X, block_size=60)))

    def test_frames_with_an_empty_partition(self):
        import dask.dataframe as dd

        X, y = mixed_rows(200)
        frame = X.assign(label=y)
        part = dd.from_pandas(frame, npartitions=4)
        rows = Rows.from_dask(part[part["a"] > part["a"].min().compute() - 1], label="label")
        assert_same_bits(clone(MIXED).fit(rows), clone(MIXED).fit(Rows.from_arrays(X, y, block_size=50)), X)
        some = dd.concat([part, part[part["a"] > 100]])
        fitted = clone(MIXED).fit(Rows.from_dask(some, label="label"))
        assert_same_bits(fitted, clone(MIXED).fit(rows), X)
        assert fitted.predict(Rows.from_dask(some, label="label")).compute().shape == (200,)

    @pytest.mark.parametrize(
        "change, message",
        [
            (lambda part: part.drop(columns="b"), "partition 1 has no column 'b', which partition 0 has"),
            (lambda part: part.assign(z=0.0), "partition 0 has no column 'z', which partition 1 has"),
            (lambda part: part[["c", "b", "a", "label"]], "partition 1 has 'c' in another place than partition 0"),
            (lambda part: part.assign(b="x"), "partition 1: feature 'b' holds text"),
            (lambda part: part.assign(label=None), "partition 1: Input y contains NaN"),
            (lambda part: part.assign(label="x"), "partition 1 has labels of another type than partition 0"),
            (lambda part: part.drop(columns="label"), "partition 1 has no column 'label'"),
        ],
    )
    def test_partitions_that_differ(self, change, message):
        import dask.dataframe as dd

        X, y = gaussian_rows(120)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y)
        parts = [frame[:40], change(frame[40:80]), frame[80:]]
        lazy = dd.from_map(lambda k: parts[k], range(3), meta=frame[:0], enforce_metadata=False)
        with pytest.raises(ValueError, match=message):
            GaussianNB().fit(Rows.from_dask(lazy, label="label"))

    def test_bad_partitions_are_named(self):
        import dask.array as da

        X, y = gaussian_rows(200)
        X[150, 1] = np.inf
        with pytest.raises(ValueError, match="partition 2: Input X contains infinity"):
            LDA().fit(Rows.from_dask(da.from_array(X, chunks=(60, 3)), da.from_array(y, chunks=60)))
        with pytest.raises(ValueError, match="has 4 partitions, and its labels or weights 2"):
            Rows.from_dask(da.from_array(X, chunks=(60, 3)), da.from_array(y, chunks=100))
        import dask
        from dask import bag

        for given in X, dask.delayed(X), bag.from_sequence(X.tolist()):  # of which the second has any attribute
            refused("must be a Dask array or frame", Rows.from_dask, given, y)

    def test_labels_are_given_once_and_by_dask(self):
        import dask.array as da
        import dask.dataframe as dd

        X, y = gaussian_rows(60)
        lazy = da.from_array(X, chunks=(20, 3))
        frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=1.0), npartitions=3)
        for given in (y, pd.Series(y), list(y)):
            refused("y must be a Dask array or series with the partitions of X", Rows.from_dask, lazy, given)
            with pytest.raises(ValueError, match="sample_weight must be a Dask array or series"):
                Rows.from_dask(lazy, da.from_array(y, chunks=20), given)
        with pytest.raises(ValueError, match="y and label are two sources of the same: give one of them"):
            Rows.from_dask(frame, frame["y"], label="y")
        with pytest.raises(ValueError, match="sample_weight and weights are two sources"):
            Rows.from_dask(frame, sample_weight=frame["w"], weights="w", label="y")
        refused("label names a column, and X is a Dask array: give y", Rows.from_dask, lazy, label="y")
        refused("label must be the name of a column", Rows.from_dask, frame, label=["y"])
        with pytest.raises(ValueError, match=r"partition \d: X has 20 rows and sample_weight 30"):
            GaussianNB().fit(Rows.from_dask(lazy, da.from_array(y, chunks=20), da.from_array(np.ones(90), chunks=30)))
        dates = frame.assign(c=pd.Timestamp("2020-01-01"))
        refused("feature 'c' holds dates or times", GaussianNB().fit, Rows.from_dask(dates, label="y"))


@pytest.fixture
def cluster():
    """Workers of one thread each, in this process or in their own."""
    distributed = pytest.importorskip("distributed")

    @contextmanager
    def started(n_workers, processes=False):
        given = {"n_workers": n_workers, "threads_per_worker": 1, "processes": processes, "dashboard_address": ":0"}
        workers = distributed.LocalCluster(**given, silence_logs=logging.CRITICAL)
        with workers, distributed.Client(workers) as client:
            yield client

    return started


def partitions(X, y, size):
    import dask.array as da

    return Rows.from_dask(da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size))


@pytest.mark.parametrize("n_workers", [2, *slow(1, 3, 4)])
def test_sums_do_not_depend_on_who_adds_which_block(cluster, n_workers):
    X, y = gaussian_rows(700)
    model = RiskCalibration(QDA(), step="safe", tol=1e-4)
    with cluster(n_workers):
        rows = partitions(X, y, 70)
        fitted = clone(model).fit(rows)
        P = fitted.predict_proba(rows).compute()
    serial = clone(model).fit(Rows.from_arrays(X, y, block_size=70))
    assert fitted.n_iter_ == serial.n_iter_ > 1
    assert_array_equal(P, serial.predict_proba(Rows.from_arrays(X, block_size=70)))


def worker_of(_):
    from distributed import get_worker

    return get_worker().address


def test_workers_get_equally_many_blocks_whoever_has_them(cluster):
    X, y = gaussian_rows(700)
    with cluster(2) as client:
        one = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
        anywhere, rows = partitions(X, y, 70), partitions(X, y, 70)
        client.replicate(client.futures_of(rows.parts), n=1, workers=[one])
        for blocks in (anywhere, rows, rows.map(labels_changed)):
            workers = list(blocks.each(worker_of))
            assert sorted(map(workers.count, set(workers))) == [5, 5]
            assert list(blocks.each(worker_of)) == workers


def labels_changed(block):
    return block._replace(y=block.y + 1)


@pytest.mark.parametrize("name", ["QDA", "CategoricalNB", "TAN"])
def test_a_warm_start_goes_on_with_the_same_rows(name):
    X, y = rows_for(name)
    rows = Rows.from_arrays(X, y, block_size=40)
    published = RiskCalibration.as_published(ML[name], max_iter=4, stopping="none", warm_start=True)
    for _ in range(3):
        published.fit(rows)
    whole = RiskCalibration.as_published(ML[name], max_iter=12, stopping="none").fit(rows)
    assert_same_bits(published, whole, X)
    refused("warm_start goes on with the rows of the last fit, and these are others", published.fit, X[5:], y[5:])
    assert_same_bits(published, whole, X)


@pytest.mark.parametrize("block_size", [None, 60])
def test_a_warm_start_is_near_where_the_last_fit_ended(block_size):
    X, y = gaussian_rows(300)
    rows = Rows.from_arrays(X, y, block_size=block_size)
    model = RiskCalibration(QDA(), warm_start=True).fit(rows)
    first, P = model.n_iter_, model.predict_proba(X)
    model.fit(rows)
    assert model.converged_ and model.n_iter_ < first / 2
    assert_allclose(model.predict_proba(X), P, rtol=0, atol=1e-4)


class WatchedFamily(type(QDA()._new_family())):
    """A family whose passes may be slow in one process, or kill one; what a file named by the environment says."""

    def weighted_statistics(self, X, parameters, weigh):
        folder = Path(os.environ["WATCHED"])
        if (folder / f"slow-{os.getpid()}").exists():
            time.sleep(0.05)
        with suppress(FileNotFoundError):
            (folder / "armed").unlink()  # one process alone finds it
            os.kill(os.getpid(), signal.SIGKILL)
        return super().weighted_statistics(X, parameters, weigh)


class Watched(QDA, family=WatchedFamily):
    """Its classifier."""


@pytest.fixture
def watched(tmp_path, monkeypatch):
    monkeypatch.setenv("WATCHED", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_a_worker_that_is_killed_within_a_pass_changes_no_bit(cluster, monkeypatch, watched):
    """Nor does a second that is killed in a later one."""
    X, y = gaussian_rows(3000)
    model, passes = RiskCalibration(Watched(), step="safe", tol=1e-6), []
    with cluster(2, processes=True):
        rows = partitions(X, y, 500)
        each = type(rows).each

        def arming(self, task):
            if isinstance(task, Pass):
                passes.append((watched / "armed").exists())
                if len(passes) in (2, 7):
                    (watched / "armed").touch()
            return each(self, task)

        monkeypatch.setattr(type(rows), "each", arming)
        fitted = clone(model).fit(rows)
    assert len(passes) > 7 and not any(passes) and not (watched / "armed").exists()
    assert_same_bits(fitted, clone(model).fit(Rows.from_arrays(X, y, block_size=500)), X)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_costs_no_more_than_the_last_fit(cluster, monkeypatch):
    """One clear error; and on another cluster a warm start goes on to the bits of a run without an interruption."""
    X, y = gaussian_rows(3000)
    model = RiskCalibration.as_published(QDA(), max_iter=3, stopping="none", warm_start=True)
    with cluster(2, processes=True) as client:
        rows = partitions(X, y, 500)
        model.fit(rows)
        kept, each, passes = model.predict_proba(X), type(rows).each, []

        def closing(self, task):
            passes.append(isinstance(task, Pass))
            if sum(passes) == 2:
                client.sync(client.cluster.scheduler.close)
            return each(self, task)

        with monkeypatch.context() as within:
            within.setattr(type(rows), "each", closing)
            with pytest.raises(Exception, match="lost the connection to the scheduler"):
                model.fit(rows)
    assert_array_equal(model.predict_proba(X), kept)
    with cluster(1, processes=True):
        model.fit(partitions(X, y, 500))
    whole = RiskCalibration.as_published(QDA(), max_iter=6, stopping="none").fit(Rows.from_arrays(X, y, block_size=500))
    assert_same_bits(model, whole, X)
