"""The comparison of BDA7 with today's classifiers in chapter 14: its divisions, and the stored results."""

import numpy as np
from rcbook.experiments.studies import bda7_among_todays_classifiers as comparison
from rcbook.experiments.studies.bda7_among_todays_classifiers import classifiers


def test_divisions_hold_what_they_say():
    y = np.repeat([0, 1, 2], [40, 700, 360])
    train, test = comparison.divide(y, "few", 0)
    assert np.bincount(y[train]).tolist() == [5, 5, 5] and len(train) + len(test) == comparison.MOST_ROWS
    train, test = comparison.divide(y, "half", 0)
    assert len(train) == len(test) == comparison.MOST_ROWS / 2
    assert np.abs(np.bincount(y[train]) - np.bincount(y[test])).max() <= 1
    assert not set(train) & set(test)
    small = np.repeat([0, 1], [9, 30])
    train, test = comparison.divide(small, "few", 1)
    assert sorted([*train, *test]) == list(range(39))


def test_where_a_classifier_cannot_be_fitted_it_predicts_the_largest_class():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.repeat(["a", "b"], [16, 14])
    X[y == "a"] = 1.0
    train = np.arange(4, 24)
    test = np.setdiff1d(np.arange(30), train)
    # 6 of the 10 others are not of the larger class of the 20
    assert comparison._outcome(classifiers(0)["shrinkage QDA"], X, y, train, test) == (60, False)
    assert comparison._outcome(classifiers(0)["shrinkage LDA"], X, y, train, test).fitted


def _wide(metrics):
    study = comparison.tidy()
    study = study[study["metric"].isin(metrics)]
    assert set(study["n_runs"]) == {comparison.RUNS}
    return study.pivot(index=["data", "amount", "method"], columns="metric", values="value")[metrics]


def test_the_stored_study_is_complete_and_paired():
    wide = _wide(["test_error_percent", "excess_over_BDA7"])
    assert len(wide) == len(comparison.DATASETS) * len(comparison.AMOUNTS) * len(classifiers(0))
    errors = wide["test_error_percent"].unstack("method")
    excess = wide["excess_over_BDA7"].unstack("method")
    assert (excess["BDA7"] == 0).all()
    np.testing.assert_allclose(excess, errors.sub(errors["BDA7"], axis=0), atol=1e-9)


def test_raw_and_standardised_features_meet_the_same_divisions():
    """The standardised errors behind the stored differences are those of the comparison itself."""
    raw = _wide(["raw_test_error_percent", "raw_excess_over_scaled", "raw_excess_over_raw_BDA7"])
    assert len(raw) == len(comparison.DATASETS) * len(comparison.AMOUNTS) * len(comparison.SCALED_AND_RAW)
    scaled = _wide(["test_error_percent"])["test_error_percent"].loc[raw.index]
    difference = raw["raw_test_error_percent"] - raw["raw_excess_over_scaled"]
    np.testing.assert_allclose(difference, scaled, atol=1e-9)
    errors = raw["raw_test_error_percent"].unstack("method")
    excess = raw["raw_excess_over_raw_BDA7"].unstack("method")
    np.testing.assert_allclose(excess, errors.sub(errors["BDA7"], axis=0), atol=1e-9)


def test_sizes_and_fallbacks_are_stored():
    study = comparison.tidy().set_index(["metric", "data", "amount"])["value"]
    assert (study["train_rows"].xs("few", level="amount") % comparison.FEW_ROWS == 0).all()
    total = study["train_rows"] + study["test_rows"]
    assert total["diabetes"].to_list() == total["waveform"].to_list() == 2 * [comparison.MOST_ROWS]
    assert total["iris"].to_list() == [150, 150] and study["train_rows"]["iris", "half"] == 75
    assert len(study["unfitted_percent"]) == len(total) and study["unfitted_percent"].between(0, 100).all()
