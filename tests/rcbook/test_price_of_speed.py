"""The bars of speed: how the stored run is summarised, and which libraries it compares. No test times anything."""

import json

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from rcbook._files import checkout
from rcbook.experiments.cells import STUDY
from rcbook.experiments.scorecard import results
from rcbook.experiments.store import table_path
from rcbook.experiments.studies import price_of_speed as study
from sklearn.datasets import load_iris

from rcpkg import GaussianNB, RiskCalibrationCV

NAME = "price-of-speed"


def test_the_summary_is_of_our_time_over_the_other():
    times = [("iris", "a call", 3.0, 1.0), ("wine", "a call", 1.0, 3.0), ("6, 3, 2", "an iteration", 0.3, 0.5)]
    rows = [
        {"case": case, "model": "QDA", "call": call, "bar": 2.0, "library": library, "seconds": seconds}
        for case, call, ours, other in times
        for library, seconds in (("ours", ours), ("former" if call == "a call" else "scikit-learn", other))
    ]
    found = study.summary(pd.DataFrame(rows))
    assert found.loc["a call"].tolist() == [2, pytest.approx(1.0), 3.0, ["iris QDA"]]
    assert found.loc["an iteration"].tolist() == [1, pytest.approx(0.6), 0.6, []]


def test_the_stored_run_has_each_call_of_both_libraries():
    if not table_path(STUDY, NAME).is_file():
        pytest.skip(f"there is no stored run: `python -m rcbook run study:{NAME}`, see MAINTAINING.md")
    stored = results(STUDY, NAME)
    cases = stored[stored.call.isin(study.CALLS)].groupby(["case", "model"])
    assert (cases.size() == 2 * len(study.CALLS)).all() and (cases.call.nunique() == len(study.CALLS)).all()
    assert (cases.library.nunique() == 2).all()
    found = study.summary(stored)
    assert set(found.index) == {"iteration", *study.CALLS, "example"} and found.cases.sum() == len(stored) / 2
    assert (found["mean"] > 0).all() and (found["mean"] <= found.greatest).all() and np.isfinite(found.greatest).all()


@pytest.mark.parametrize("folder", [None, "/", str(checkout() / "data")])
def test_a_folder_without_the_former_library_is_refused(folder, monkeypatch):
    monkeypatch.delenv("RCPKG_FORMER", raising=False)
    if folder is not None:
        monkeypatch.setenv("RCPKG_FORMER", folder)
    refused("RCPKG_FORMER must name a folder with the library at commit 5bb10a8.*git worktree add", study.libraries)


@pytest.mark.slow
def test_a_process_of_a_library_chooses_as_it_does_here():
    X, y = load_iris(return_X_y=True)
    process = study.answering.__wrapped__(checkout())
    question = json.dumps(["GaussianNB", {}, study.CALLS["five folds"], X.tolist(), y.tolist()])
    answer = json.loads(process.communicate(question)[0])
    here = RiskCalibrationCV(GaussianNB(), **study.CALLS["five folds"]).fit(X, y)
    assert answer.pop("seconds") > 0 and process.returncode == 0
    chosen = {"weight": here.target_weight_, "validation": here.validation_, "candidates": len(here.cv_results_)}
    assert answer == {"target": "pooled"} | chosen
