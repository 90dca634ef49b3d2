"""The study of one row: its calls are those that it names, and the bars that the page states hold in it."""

import pytest
from rcbook.experiments import results
from rcbook.experiments.cells import Cell
from rcbook.experiments.studies import one_row as study


def test_a_cell_times_each_call(monkeypatch):
    monkeypatch.setattr(study, "ROUNDS", 1)
    monkeypatch.setattr(study, "CALLS", 1)
    monkeypatch.setattr(study, "BATCH", 10)
    calls = [record.metric.partition(",")[0] for record in study.timed(Cell("study", study.STUDY_NAME, "QDA", ""), 0)]
    assert calls == ["one row", "one row", "one row with gaps", "one row with gaps", "batch"]


@pytest.mark.parametrize(("model", "bar"), [("GaussianNB", 0.1), ("QDA", 0.2), ("calibrated QDA", 0.2)])
def test_the_stored_run_meets_the_bars(model, bar):
    stored = results("study", study.STUDY_NAME).set_index(["row", "metric"]).value[model]
    scored = stored[stored.index.str.contains("scorer")]
    assert len(scored) == 2 and (scored <= bar).all()
