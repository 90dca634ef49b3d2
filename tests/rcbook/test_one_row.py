"""The study of one row: its calls are those that it names, and the bars that the page states hold in it."""

import pytest
from rcbook.experiments import results
from rcbook.experiments.studies import one_row as study


@pytest.mark.parametrize(("model", "bar"), [("GaussianNB", 0.1), ("QDA", 0.2), ("calibrated QDA", 0.2)])
def test_the_stored_run_meets_the_bars(model, bar):
    stored = results("study", study.STUDY_NAME).set_index(["row", "metric"]).value[model]
    scored = stored[stored.index.str.contains("scorer")]
    new = scored.index.str.contains("new pattern")  # of missing values, which full covariances have to factor first
    assert len(scored) == 3 and (scored[~new] <= bar).all()
    assert (scored[new] <= bar).all() or "QDA" in model
