"""The study of raw tables beside rivals: its sets and its learners."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from rcbook.experiments.studies import tables_with_rivals as study


def table(n=90, gaps=0.15):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n) + y,
            "width": rng.standard_normal(n),
            "kind": np.where(rng.random(n) < 0.2 + 0.6 * y, "a", "b"),
        }
    )
    return X.mask(rng.random(X.shape) < gaps), y


def test_a_model_per_pattern_is_the_regression_of_what_is_there():
    X, y = table(gaps=0.0)
    model = study.ModelPerPattern().fit(X, y)
    hidden = X.assign(kind=None)
    expected = study.logistic().fit(X[["size", "width"]], y).predict_proba(X[["size", "width"]])
    assert_allclose(model.predict_proba(hidden), expected)
    nothing = model.predict_proba(X[:2].mask(np.ones((2, 3), dtype=bool)))
    assert_allclose(nothing, 0.5)


def test_other_boosting_takes_gaps_of_categories_also_where_a_fold_has_no_value_of_them():
    X = table(gaps=0.3)[0][:20].assign(kind=None)
    names = ("kind",)
    assert study.typed(X, names).dtypes["kind"] == "category"
    assert study.stated(X, names).kind.tolist() == ["missing"] * 20
    assert study.stated(X, names)["size"].isna().any()


def test_other_boosting_is_on_all_sets_and_its_verdicts_are_those_of_the_page():
    assert study.stored().duplicated(["data", "learner", "metric"]).sum() == 0
    losses = study.table(0.35, (*study.ALL_ASIDE, *study.ALL_DEVELOPMENT))
    assert len(losses) == 43
    assert losses[[*study.OTHERS, study.BOOSTING, study.COPIED]].notna().all(axis=None)
    verdicts = study.verdicts()
    assert verdicts.verdict.to_dict() == {
        **dict(a="refuted", b="refuted", c="level", d="refuted"),
        **dict(e="holds", f="level", g="refuted"),
    }
    summary = study.summary(0.35)
    assert (summary["mean log-loss"].iloc[:3].index == [study.OURS, study.GENERATIVE, study.OTHERS_COPIED[0]]).all()
    light, cat = summary["p of being level"][[*study.OTHERS_COPIED]]
    assert light < 0.05 < cat
    assert study.summary(0.0)["mean log-loss"].idxmin() == study.OTHERS_COPIED[0]
