"""A raw table to a classifier: what columns are, which candidate is taken, and what is told of it."""

import pickle
import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from model_cases import refused, slow
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from rcpkg import CategoricalNB, GaussianNB, ProductModel, RiskCalibration, TableClassifier
from rcpkg.table import CandidateModel, Columns, TableColumns, _fitted, as_frame, candidates_of

FEW = [("closed", GaussianNB(prior_strength=1.0)), ("calibrated", RiskCalibration(GaussianNB(prior_strength=1.0)))]


def table(n=120, gaps=0.1, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n) + y,
            "income": np.exp(rng.standard_normal(n) + y),
            "smokes": rng.random(n) < 0.3 + 0.4 * y,
            "colour": np.where(rng.random(n) < 0.2 + 0.5 * y, "red", rng.choice(["blue", "green"], n)),
            "grade": pd.Categorical.from_codes(rng.integers(3, size=n), ["low", "mid", "high"], ordered=True),
        }
    )
    return X.mask(rng.random(X.shape) < gaps), np.where(y, "ill", "well")


def test_columns_are_seen():
    X, _ = table(gaps=0.05)
    X["grade"] = pd.Categorical(X.grade, ["low", "mid", "high"], ordered=True)
    columns = TableColumns().fit(X)
    assert columns.columns_.numbers == ["size", "income", "grade"]
    assert columns.columns_.skewed == ["income"]
    assert columns.columns_.categories == ["smokes", "colour"]
    shown = columns.transform(X)
    assert_array_equal(shown.isna(), X[shown.columns].isna())
    assert_array_equal(shown.grade.dropna().unique(), X.grade.cat.codes[X.grade.notna()].unique())
    income, before = shown.income.dropna(), X.income.dropna().astype(float)
    assert abs(((income - income.mean()) ** 3).mean()) < 0.5 * income.std() ** 3
    assert_array_equal(np.argsort(income), np.argsort(before))
    assert set(shown.colour.dropna()) == {"red", "blue", "green"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_huge_numbers_may_be_skewed_and_those_that_are_mostly_zero_are_not():
    x = np.random.default_rng(0).exponential(size=200)
    frame = pd.DataFrame({"huge": 1e140 * x, "zeros": np.where(np.arange(200) % 2, 0.0, x)})
    assert TableColumns().fit(frame).columns_.skewed == ["huge"]


def test_skewed_numbers_that_vary_little_about_a_large_mean_are_transformed():
    """Without standardisation the power is about -5000, and all values are the same one."""
    x = 1000 + np.exp(np.random.default_rng(0).standard_normal(200)) / 10
    columns = TableColumns().fit(pd.DataFrame({"x": x, "y": x}))
    shown = columns.transform(pd.DataFrame({"x": x, "y": x}))
    assert columns.columns_.skewed == ["x", "y"] and shown["x"].nunique() == 200
    assert_allclose(shown["x"].std(ddof=0), 1.0)
    assert abs((shown["x"] ** 3).mean()) < 0.5


def test_numbers_far_out_count_as_the_nearest_of_training():
    columns = TableColumns().fit(pd.DataFrame({"x": np.arange(10.0)}))
    shown = columns.transform(pd.DataFrame({"x": [-5.0, np.nan, 3.0, 1e300]}))
    assert_array_equal(shown["x"], [0.0, np.nan, 3.0, 9.0])


def test_no_class_is_impossible():
    y = np.arange(40) % 4 == 0
    X = pd.DataFrame({"a": 100.0 * y + np.arange(40)})
    model = TableClassifier(candidates=[("nb", GaussianNB())], cv=2).fit(X, y)
    taken = model.best_estimator_.predict_proba(X)
    assert taken.min() < 1e-9
    assert_allclose(model.predict_proba(X), taken + ([0.75, 0.25] - taken) / 41)


def test_text_that_is_no_category_is_refused_with_the_remedy():
    X, y = table()
    with pytest.raises(
        ValueError, match=r"'note' holds text with 120 values in 120 rows.*drop it if it names the rows"
    ):
        TableClassifier(candidates=FEW).fit(X.assign(note=[f"patient {i}" for i in range(len(X))]), y)
    TableColumns().fit(X.assign(code=[f"{i % 15}" for i in range(len(X))]))


@pytest.mark.parametrize("mark", ["?", "NA", "NaN", "null", " "])
def test_marks_of_missing_values_among_numbers_are_refused_with_the_remedy(mark):
    X, y = table()
    pressure = np.arange(len(X)).astype(str)
    pressure[::40] = mark
    with pytest.raises(ValueError, match=re.escape(f"'pressure' holds {mark!r} among numbers: read it as a missing")):
        TableClassifier(candidates=FEW).fit(X.assign(pressure=pressure), y)
    for states in ["yes", "no", "?"], ["A", "B", "5", "-"], ["?"]:
        assert "vote" in TableColumns().fit(X.assign(vote=np.resize(states, len(X)))).columns_.categories


def test_columns_of_gaps_are_left_out_and_dates_are_refused():
    X, _ = table()
    with pytest.warns(UserWarning, match="'nothing' holds missing values only, and is left out"):
        columns = TableColumns().fit(X.assign(nothing=np.nan))
    assert "nothing" not in columns.transform(X.assign(nothing=1.0))
    refused("dates", TableColumns().fit, X.assign(day=pd.Timestamp("2020-01-01")))
    for huge in 1e200, -1e300:
        odd = X.assign(size=np.where(np.arange(len(X)) < 9, huge, X["size"]))
        with pytest.raises(ValueError, match=r"X holds 1e\+\d00 in feature 'size', whose square overflows: rescale"):
            TableColumns().fit(odd)
    with pytest.raises(ValueError, match="missing values only"), pytest.warns(UserWarning):
        TableColumns().fit(pd.DataFrame({"a": [np.nan, np.nan]}))


def test_names_of_two_levels_are_names_like_others_of_which_none_stands_twice():
    """As `pivot` and `agg` of pandas make them."""
    X = pd.DataFrame({("size", 1): [0.5, 1.5, 2.5], ("kind", "of"): ["a", "b", "a"]})
    columns = TableColumns().fit(X)
    assert columns.columns_.numbers == ["('size', 1)"] and columns.columns_.categories == ["('kind', 'of')"]
    assert columns.transform(X).columns.tolist() == ["('size', 1)", "('kind', 'of')"]
    for names in (["a", "a"], [1, "1"]):
        twice = pd.DataFrame([[0.5, 1.5], [2.5, 0.5]], columns=names)
        refused(f"X has several columns named '{names[1]}': rename all but one", TableColumns().fit, twice)


def test_text_in_a_column_of_numbers_is_named():
    X, _ = table()
    columns = TableColumns().fit(X)
    with pytest.raises(ValueError, match="feature 'size' holds 'tall', and held numbers in training: give None where"):
        columns.transform(X.assign(size=["1.5", "tall"] * (len(X) // 2) + ["1"] * (len(X) % 2)))
    as_text = columns.transform(X.assign(size=X["size"].map(str, na_action="ignore")))
    pd.testing.assert_frame_equal(as_text, columns.transform(X))


def grades(values, levels, ordered=True):
    return pd.DataFrame({"grade": pd.Categorical(values, levels, ordered=ordered)})


@pytest.mark.parametrize("whole", [False, True])
def test_ordered_categories_have_the_order_of_training(whole):
    """Whatever levels rows to predict declare, and in which order; what is no level is missing."""
    y = np.arange(60) % 3
    levels = ["low", "mid", "high"]
    values = np.array(levels)[np.where(np.arange(60) % 5, y, (y + 1) % 3)]
    rows, few = grades(values, levels), values != "low"
    learner = TableClassifier(candidates=[("nb", GaussianNB())], cv=2, random_state=0) if whole else TableColumns()
    use = (lambda X: model.predict_proba(X)) if whole else (lambda X: model.transform(X).to_numpy())
    model = learner.fit(rows, y)
    expected = use(rows)
    same = [grades(values, ["high", "none", "low", "mid"]), grades(values, levels, ordered=False), rows.astype(str)]
    for other in (*same, rows.astype(object), pytest.importorskip("polars").DataFrame({"grade": values})):
        assert_array_equal(use(other), expected)
    assert_array_equal(use(grades(values[few], ["mid", "high"])), expected[few])
    assert_array_equal(use(grades(["new"], ["new"])), use(grades([None], levels)))
    refused("feature 'grade' holds numbers, and held text in training", use, pd.DataFrame({"grade": y}))
    if whole:  # and the pipeline that was fitted, which explains the model, takes the rows as they are
        columns = model.best_estimator_[0]
        for other in (rows, *same):
            assert_array_equal(columns.transform(other).grade, rows.grade.cat.codes)


@pytest.mark.parametrize("whole", [False, True])
def test_categories_are_numbers_or_text_as_in_training(whole):
    y = np.arange(60) % 2
    codes = pd.DataFrame({"kind": np.where(np.arange(60) % 5, y, 1 - y)})
    learner = TableClassifier(candidates=[("nb", CategoricalNB())], cv=2, random_state=0) if whole else TableColumns()
    model = learner.fit(codes, y)
    use = model.predict_proba if whole else (lambda X: model.transform(X).to_numpy())
    ordered = codes.astype(pd.CategoricalDtype([1, 0], ordered=True))
    for same in (codes.astype(str), codes == 1, codes.astype("category"), ordered):
        assert_array_equal(use(same), use(codes))
    refused("feature 'kind' holds 'True', and held numbers in training", use, (codes == 1).astype(str))
    model.fit(codes.astype(str), y)
    for other in (codes, codes.astype(float), codes.astype("category")):
        refused("feature 'kind' holds numbers, and held text in training: make them the", use, other)


@pytest.mark.parametrize("container", ["polars", "list", *slow("array", "arrow")])
def test_containers(container):
    X, y = table(gaps=0.0)
    X = X[["size", "income", "colour"]]
    whole = TableClassifier(cv=2, budget=0.0, random_state=0).fit(X, y)
    held = {
        "polars": lambda: pytest.importorskip("polars").DataFrame(X.to_dict("list")),
        "array": lambda: X.to_numpy(dtype=object),
        "list": lambda: X.to_numpy(dtype=object).tolist(),
        "arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(X),
    }[container]()
    other = TableClassifier(cv=2, budget=0.0, random_state=0).fit(held, y)
    assert_allclose(other.predict_proba(held), whole.predict_proba(X), atol=1e-12)


@pytest.fixture(scope="module")
def fitted():
    X, y = table(n=80)
    return TableClassifier(cv=2, random_state=0).fit(X, y), X, y


def test_the_report_tells_what_was_tried(fitted):
    model, _, _ = fitted
    report = model.report_
    assert report.candidate.iloc[0] == "class frequencies"
    assert_allclose([report.log_loss.iloc[0], report.error.iloc[0]], [np.log(2), 0.5])
    assert report.taken.sum() == 1
    best = report.log_loss.iloc[1:].min()
    tried = report.iloc[1:]
    within = tried[tried.log_loss - best <= tried.std_error]
    first = within[within.candidate.isin(["naive Bayes", "naive Bayes, calibrated"])]
    expected = within.index[0] if first.empty else first.log_loss.idxmin()
    assert expected == report.index[report.taken][0]
    assert set(model.report_.candidate) > {"naive Bayes", "mixture of 2, calibrated", "tree of intervals, calibrated"}
    assert np.isfinite(report.log_loss).all() and (report.log_loss.iloc[1:] < 1.2).all()
    taken = report[report.taken].iloc[0]
    assert model.advice_.startswith(f"take {taken.candidate}: on rows left out its log-loss is {taken.log_loss:.3f}")


def test_predictions_and_gaps(fitted):
    model, X, y = fitted
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.7
    nothing = X.iloc[:3].assign(**dict.fromkeys(X.columns, np.nan))
    assert_allclose(model.predict_proba(nothing), np.exp(model.class_log_prior_) * np.ones((3, 1)), atol=1e-9)
    assert np.isfinite(model.predict_log_proba(X.assign(colour="violet"))).all()
    odds = P * [0.9, 0.1] / np.exp(model._calibrated_at)
    assert_allclose(model.predict_proba(X, class_prior=[0.9, 0.1]), odds / odds.sum(axis=1, keepdims=True), atol=1e-9)
    refused("feature names", model.predict, X[X.columns[::-1]])
    refused("feature names", model.predict, X[["size"]])
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), P)


@pytest.mark.slow
def test_one_seed_one_choice(fitted):
    model, X, y = fitted
    again = clone(model).fit(X, y)
    columns = ["candidate", "log_loss", "error", "std_error", "taken"]
    pd.testing.assert_frame_equal(again.report_[columns], model.report_[columns])
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_simplest_within_a_standard_error_is_taken():
    rng = np.random.default_rng(0)
    best = rng.uniform(0.3, 0.5, size=200)
    losses, noise = np.zeros((4, 2, 200)), rng.standard_normal(200)
    losses[:, 1] = best + 0.3, best + 0.2, best + 0.004 + 0.1 * (noise - noise.mean()), best
    model = TableClassifier()
    model.classes_ = np.array([0, 1])
    ranked = [CandidateModel(name, None, rank=k) for k, name in enumerate("abc")]
    model._take(ranked, losses, np.zeros(3), [""] * 3, None)
    more = losses[2, 1] - best
    expected = "b" if more.mean() <= more.std() / np.sqrt(200) else "c"
    assert model.report_.candidate[model.report_.taken].tolist() == [expected]
    assert_allclose(model.report_.std_error.iloc[2], more.std() / np.sqrt(200))
    model._take([candidate._replace(rank=0) for candidate in ranked], losses, np.zeros(3), [""] * 3, None)
    assert model.report_.candidate[model.report_.taken].tolist() == ["c"]


def test_a_candidate_that_cannot_be_fitted_is_not_taken():
    X, y = table(gaps=0.0)
    own = [("fails", LogisticRegression(C=-1.0)), *FEW]
    report = TableClassifier(candidates=own, cv=3, random_state=0).fit(X[["size", "income"]], y).report_
    assert np.isinf(report.log_loss[1]) and not report.taken[1] and report.taken.sum() == 1
    with pytest.raises(ValueError, match=r"no candidate could be fitted in each fold: .*\. fails: .*'C' parameter"):
        TableClassifier(candidates=own[:1], cv=3).fit(X[["size", "income"]], y)


NO_LISTS = [[], None, "all", FEW[0][1], [FEW[0][1]], dict(FEW), [("scaler", StandardScaler())]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"candidates": no}, r"candidates must be 'auto' or a list of \(name, classifier\); got") for no in NO_LISTS),
        *(({"budget": -1.0}, "budget"), ({"gaps_in_view": 2.0}, "gaps_in_view")),
        ({"cost": [[1]]}, r"cost must have shape \(2, 2\)"),
    ],
)
def test_settings_are_checked(settings, message):
    refused(message, TableClassifier(**settings).fit, *table())


def test_rows_that_a_splitter_never_holds_out_judge_nothing():
    X, y = table(gaps=0.0)
    cv, frame = ShuffleSplit(2, test_size=0.2, random_state=0), X[["size", "income"]]
    report = TableClassifier(candidates=FEW, cv=cv).fit(frame, y, sample_weight=np.ones(120)).report_
    loss = np.full(120, np.nan)
    for train, test in cv.split(frame):
        loss[test] = [-np.log((y[train] == y[i]).mean()) for i in test]
    assert np.isfinite(report.log_loss).all() and np.isnan(loss).any()
    assert report.log_loss[0] == pytest.approx(np.nanmean(loss))


@pytest.mark.slow  # the rows that choose a weight, below, are tried in the quick suite
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_nothing_of_a_candidate_has_seen_the_label_of_a_row_that_judges_it(gaps):
    """Its probabilities of both classes, from tables in which the row has one or the other, then add up to one."""
    X, y = table(gaps=gaps)
    held, reports = 5, []
    train = np.delete(np.arange(len(y)), held)
    for label in "ill", "well":
        y[held] = label
        reports.append(TableClassifier(cv=[(train, [held])], random_state=0).fit(X, y).report_)
    assert "naive Bayes of intervals, calibrated" in set(reports[0].candidate)
    probability = np.exp([-report.log_loss for report in reports])
    assert_allclose(probability.sum(axis=0), 1.0)
    assert_allclose(probability[0, 0], (y[train] == "ill").mean())


def test_rows_that_choose_a_weight_have_no_say_in_the_cuts():
    """Of many columns of noise some have cuts, with which rows that had a say in them have a log-loss of .33."""
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.standard_normal((30, 100))).rename(columns=str)
    y = rng.permutation(np.arange(30) % 2)
    columns = TableColumns().fit(noise).columns_
    found = {c.name: c for c in candidates_of(columns, np.bincount(y), gaps=False)}
    candidate = found["naive Bayes of intervals, calibrated"]
    with warnings.catch_warnings(action="ignore"):
        chosen = _fitted(candidate, columns, noise, y, None)[-1]
    assert chosen.cv_results_.log_loss.min() > np.log(2) - 0.05


def test_classes_of_few_rows_leave_intervals_one_weight(monkeypatch):
    monkeypatch.setattr(
        "rcpkg.table.candidates_of", lambda *table: [c for c in candidates_of(*table) if "of intervals" in c.name]
    )
    X, y = table(n=60, gaps=0.0)
    y = np.where(np.arange(60) < 2, "rare", y)
    with warnings.catch_warnings(action="ignore"):
        report = TableClassifier(random_state=0).fit(X[["size", "income"]], y).report_.set_index("candidate")
    assert not report.note["naive Bayes of intervals, calibrated"]


def test_a_cost_decides_and_chooses_nothing():
    X, y = table(gaps=0.0)
    cost = pd.DataFrame([[0, 1], [20, 0]], index=["ill", "well"], columns=["ill", "well"])
    plain, costly = (
        TableClassifier(candidates=FEW, cv=2, random_state=0, cost=c).fit(X[["size"]], y) for c in (None, cost)
    )
    P = plain.predict_proba(X[["size"]])
    assert_array_equal(costly.predict_proba(X[["size"]]), P)
    assert_array_equal(costly.predict(X[["size"]]), np.where(P[:, 1] < 20 * P[:, 0], "ill", "well"))


def test_folds_do_not_decide_anew_what_a_column_is():
    """A value that one row has is in no training fold but two: without it the column has two values."""
    X, y = table(gaps=0.0)
    rare = pd.Series(np.arange(len(X)) % 2.0)
    rare[0] = 2.0
    report = TableClassifier(cv=3, random_state=0, budget=0.0).fit(X.assign(rare=rare), y).report_
    assert np.isfinite(report.log_loss[:2]).all()


@pytest.mark.parametrize("value", ["state 0", 2.0, True])
def test_a_column_without_a_value_in_a_fold_takes_any_where_it_is_left_out(value):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "rare": [value, *[None] * 59], "c": rng.choice(["u", "v"], 60)})
    columns = TableColumns(columns=Columns(["x"], [], ["rare", "c"])).fit(frame.iloc[1:])
    assert columns.transform(frame)["rare"].isna().all()
    if value == "state 0":
        parts = ("n", GaussianNB(), ["x"]), ("c", CategoricalNB(prior_strength=1.0), ["rare", "c"])
        model = TableClassifier(candidates=[("naive Bayes", ProductModel([*parts]))], random_state=0)
        model.fit(frame, frame.x + rng.normal(size=60) > 0)
        assert not any(model.report_.note)


def test_a_chosen_model_gives_no_advice_beside_that_of_the_folds_and_names_what_it_leaves_out():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "not worth it" in TableClassifier(cv=2, random_state=0).fit(X, y).advice_
    X = pd.DataFrame(X, columns=["a"]).assign(none=np.nan)
    with pytest.warns(UserWarning, match="feature 'none' holds missing values only, and is left out"):
        TableClassifier(candidates=FEW[:1], cv=2).fit(X, y)


def test_a_budget_ends_the_search_after_the_first_candidate(capsys):
    model = TableClassifier(cv=2, budget=0.0, random_state=0, verbose=1).fit(*table())
    report = model.report_
    assert np.isfinite(report.log_loss).sum() == 2 and report.taken[1]
    assert (report.note[2:] == "the budget of 0 seconds was spent").all() and not report.note[:2].any()
    assert f"{len(report) - 2} of {len(report) - 1} candidates were not judged" in model.advice_
    assert capsys.readouterr().out.startswith("naive Bayes: log-loss ")


class Slow(GaussianNB):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        time.sleep(0.3)
        return super().fit(X, y, sample_weight)


class Never(Slow):
    fits = 0


def test_a_candidate_ends_with_the_fold_in_which_the_budget_is_spent():
    X, y = table(gaps=0.0)
    candidates = [("quick", GaussianNB()), ("slow", Slow()), ("never", Never())]
    report = TableClassifier(candidates=candidates, cv=10, budget=0.2).fit(X[["size", "income"]], y).report_
    assert report.taken[1] and np.isinf(report.log_loss[2:]).all()
    assert Slow.fits <= 1 and Never.fits == 0


def test_noise_is_not_worth_it():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.standard_normal((80, 2)), columns=["a", "b"]), np.arange(80) % 2
    assert "is not worth it" in TableClassifier(cv=3, random_state=0, budget=0.0).fit(X, y).advice_


def test_weights_and_own_candidates():
    X, y = table(gaps=0.0)
    numbers = X[["size"]]  # which no power makes less skewed: that of a skewed one is of rows without weights
    own = [("logistic", LogisticRegression(tol=1e-9)), *FEW[:1]]
    weight, folds = np.arange(120) % 3, np.arange(120) % 2
    weighted = TableClassifier(candidates=own, cv=PredefinedSplit(folds[weight > 0])).fit(numbers, y, weight)
    rows = np.repeat(np.arange(120), weight)
    repeated = TableClassifier(candidates=own, cv=PredefinedSplit(folds[rows])).fit(numbers.iloc[rows], y[rows])
    assert_allclose(weighted.report_.log_loss, repeated.report_.log_loss, rtol=1e-6)
    assert_allclose(weighted.predict_proba(numbers), repeated.predict_proba(numbers), atol=1e-6)


def test_gaps_in_view_are_judged():
    X, y = table(gaps=0.0)
    blind, seen = (
        TableClassifier(cv=2, random_state=0, budget=0.0, gaps_in_view=view).fit(X, y).report_ for view in (None, 0.9)
    )
    assert seen.log_loss.iloc[1] > blind.log_loss.iloc[1] + 0.02


def test_patterns_in_view_hide_the_columns_that_they_name():
    """Candidates are given the numbers first, and no column without values."""
    X, y = table(gaps=0.0)
    X = X[["colour", "size", "smokes"]].assign(void=np.nan)[["void", "colour", "size", "smokes"]]
    model = TableClassifier(gaps_in_view=X.columns.isin(["colour"])[None, :])
    with pytest.warns(UserWarning, match="'void' holds missing values only"):
        model.columns_ = TableColumns().fit(X).columns_
    numbers, _, categories = model.columns_
    for candidate in model._candidates(as_frame(X), np.unique(y, return_inverse=True)[1], 0)[1:]:
        hidden = candidate.model.gaps_in_view[0]
        assert np.array([*numbers, *categories])[hidden].tolist() == ["colour"]


def test_candidates_of_other_tables():
    X, _ = table()
    only = as_frame(X[["colour"]])
    names = [c.name for c in candidates_of(TableColumns().fit(only).columns_, [60, 60], True)]
    assert names == ["naive Bayes", "naive Bayes, calibrated", "mixture of 2, calibrated", "mixture of 3, calibrated"]
    found = candidates_of(TableColumns().fit(X).columns_, [2, 2], False)
    assert not any("QDA" in c.name or "full" in c.name for c in found)
    assert isinstance(found[0].model, ProductModel)
    wide = [c.name for c in candidates_of(Columns([f"x{j}" for j in range(168)], [], []), [5000, 5000], gaps=False)]
    assert "shared variances, calibrated" in wide and not any("DA" in name or "full" in name for name in wide)
