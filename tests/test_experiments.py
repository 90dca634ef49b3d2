"""rcpkg.experiments: the register, the resumable runner, tolerances and verdicts, and the committed results."""

import ast
import importlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend

import rcpkg
from rcpkg import published
from rcpkg.__main__ import main
from rcpkg.experiments import power, runner
from rcpkg.experiments.cells import NO_PROTOCOL, STUDY, TABLES, Cell, Record, cells_of

# the function of the same name hides the module
scorecard = importlib.import_module("rcpkg.experiments.scorecard")
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "data" / "results"
STUDIES = sorted(file for file in (ROOT / "rcpkg" / "experiments" / "studies").glob("*.py") if file.stem != "__init__")
RC_TABLES = [tuple(key) for key in published.index()[["source", "table"]].to_numpy() if key[0].startswith("rc")]


# Verdicts ------------------------------------------------------------------------------------------

ROUNDED = {"read_as": "rounded", "rule": "deterministic"}
TRUNCATED = {"read_as": "truncated", "rule": "statistical", "z": "3", "slack": "0", "published_runs": "5"}


def row(printed, half_unit, value, std=np.nan, n_runs=1):
    return {"printed": printed, "half_unit": half_unit, "value": value, "std": std, "n_runs": n_runs}


@pytest.mark.parametrize(
    "ours, rule, expected",
    [
        (row(0.25, 0.0005, 0.2504), ROUNDED, "reproduced"),
        (row(0.25, 0.0005, 0.2495), ROUNDED, "reproduced"),  # a tie may be rounded either way
        (row(0.25, 0.0005, 0.2506), ROUNDED, "differs"),
        (row(28.0, 0.5, 28), ROUNDED, "reproduced"),
        (row(28.0, 0.5, 29), ROUNDED, "differs"),
        (row(24.0, 0.5, 24.99, 0.0, 20), TRUNCATED, "reproduced"),
        (row(24.0, 0.5, 25.0, 0.0, 20), TRUNCATED, "differs"),
        (row(24.0, 0.5, 23.99, 0.0, 20), TRUNCATED, "differs"),
        # distance 1 to [24, 25), against 3 · 1 · sqrt(1/20 + 1/5) = 1.5
        (row(24.0, 0.5, 26.0, 1.0, 20), TRUNCATED, "statistically consistent"),
        (row(24.0, 0.5, 26.6, 1.0, 20), TRUNCATED, "differs"),
        (row(24.0, 0.5, 22.4, 1.0, 20), TRUNCATED, "differs"),
        (row(np.nan, np.nan, np.nan), ROUNDED, "reproduced"),
        (row(np.nan, np.nan, 3.0), ROUNDED, "differs"),
        (row(3.0, 0.5, np.nan), ROUNDED, "differs"),
    ],
)
def test_verdict(ours, rule, expected):
    assert scorecard.verdict(ours, rule) == expected


def test_half_unit_of_every_way_of_printing():
    printed = pd.Series(["0.250", "04 ± 01", "41.0", "28", ".60", "-", "uc", "66.6200"])
    expected = [0.0005, 0.5, 0.05, 0.5, 0.005, np.nan, np.nan, 0.00005]
    np.testing.assert_allclose(published.half_unit(printed), expected)


def test_every_printed_number_has_a_tolerance():
    kinds = published.tables()[["source", "table", "metric"]].drop_duplicates()
    for kind in kinds.itertuples(index=False):
        rule = scorecard.tolerance(*kind)
        assert rule.read_as in ("rounded", "truncated") and rule["rule"] in ("deterministic", "statistical")
        assert (rule["rule"] == "statistical") == bool(rule.z and rule.slack and rule.published_runs)
    assert scorecard.tolerance("thesis2007", "5.11", "test_error_percent").published_runs == "10"
    assert scorecard.tolerance("thesis2007", "5.1", "test_error_percent").published_runs == "100"
    with pytest.raises(LookupError, match="no tolerance"):
        scorecard.tolerance("rc1999", "1", "iterations")


# Tables and studies ------------------------------------------------------------------------------


@pytest.mark.parametrize("source, table", RC_TABLES)
def test_cells_cover_every_data_row(source, table):
    cells = cells_of(source, table)
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == len(keys)
    printed = published.table(source, table)
    rows = printed[~printed.dataset.str.startswith("(all")]
    assert {(cell.row, cell.method) for cell in cells} == set(zip(rows.row, rows.method))
    for cell in cells:
        assert bool(cell.protocol) != bool(cell.reason)
    assert {cell.key for cell in cells_of(source, table, quick=True)} <= set(keys)


def test_seeds_are_shared_within_a_stream_and_fixed():
    cells = {cell.key: cell for cell in cells_of("rc2025", "3")}
    assert runner.cell_seed(cells["1/ML"]) == runner.cell_seed(cells["1/RC"]) == 2661363696
    assert runner.cell_seed(cells["1/ML"]) != runner.cell_seed(cells["2/ML"])


def test_unknown_tables_are_refused():
    with pytest.raises(ValueError, match="must be one of I, II"):
        cells_of("rc2024", "X")
    with pytest.raises(ValueError, match=r"no protocol yet for thesis2007:2\.2"):
        cells_of("thesis2007", "2.2")


def studies_imported(file):
    """Names of the studies that a module imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            whole = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            found |= {part for name in whole for part in name.split(".")}
    return found & {"studies", *(study.stem for study in STUDIES)}


@pytest.mark.parametrize("file", sorted((ROOT / "rcpkg" / "experiments").glob("*.py")), ids=lambda file: file.stem)
def test_the_machine_imports_no_study(file):
    assert not studies_imported(file)


def test_every_study_is_registered_or_writes_its_file_or_serves_others():
    registered = set(TABLES.values())
    assert registered <= {study.stem for study in STUDIES}
    serving = set().union(*map(studies_imported, STUDIES))
    for study in STUDIES:
        module = importlib.import_module(f"rcpkg.experiments.studies.{study.stem}")
        assert (study.stem in registered) == hasattr(module, "cells")
        assert study.stem in registered or study.stem in serving or hasattr(module, "write"), study.stem
        assert re.search(r"\bchapters? \d", module.__doc__.partition("\n\n")[0].replace("\n", " ")), study.stem


# Runner --------------------------------------------------------------------------------------------


def noisy(cell, seed):
    """A protocol that tells when it ran, and draws a random number."""
    with open(cell.arguments["log"], "a") as log:
        log.write(cell.key + "\n")
    time.sleep(cell.arguments.get("sleep", 0.0))
    if cell.arguments.get("fault") == "invalid":
        raise rcpkg.InvalidStatistics("singular")
    if cell.arguments.get("fault") == "bug":
        raise RuntimeError("boom")
    return [Record(cell.method, "number", float(np.random.default_rng(seed).random()))]


def some_cells(tmp_path, n=4, **arguments):
    arguments = {"log": str(tmp_path / "log"), **arguments}
    return [Cell("toy", "1", str(i), "A", "test_experiments:noisy", arguments) for i in range(n)]


def ran(tmp_path):
    log = tmp_path / "log"
    return log.read_text().split() if log.exists() else []


class OneByOne(ThreadingBackend):
    """A joblib backend that cannot hand over results while others run, as that of Dask cannot."""

    supports_return_generator = False


joblib.register_parallel_backend("one-by-one", OneByOne)


@pytest.fixture(autouse=True)
def protocols_are_importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))


@pytest.mark.parametrize("jobs, backend", [(1, None), (2, "threading"), (2, "one-by-one"), (2, "loky")])
def test_same_results_with_every_backend_and_nothing_twice(tmp_path, jobs, backend):
    path = tmp_path / "toy.jsonl"
    cells = some_cells(tmp_path)
    assert runner.run_cells(cells[:2], path, progress=False) == {}
    first = {done.key: done.records for done in runner.read(path)}
    assert runner.run_cells(cells, path, jobs, backend, progress=False) == {}
    stored = runner.read(path)
    assert [done.key for done in stored] == [cell.key for cell in cells]
    assert sorted(ran(tmp_path)) == sorted(cell.key for cell in cells)
    assert {done.key: done.records for done in stored[:2]} == first
    for cell, done in zip(cells, stored):
        assert done.records == noisy(cell, runner.cell_seed(cell))


def test_changed_arguments_are_computed_anew_and_dropped_cells_vanish(tmp_path):
    path = tmp_path / "toy.jsonl"
    runner.run_cells(some_cells(tmp_path, 3), path, progress=False)
    runner.run_cells(some_cells(tmp_path, 2, sleep=0.001), path, progress=False)
    assert ran(tmp_path) == ["0/A", "1/A", "2/A", "0/A", "1/A"]
    assert [done.key for done in runner.read(path)] == ["0/A", "1/A"]


def test_cells_with_a_reason_are_not_run(tmp_path):
    cells = [replace(cell, reason="no data") for cell in some_cells(tmp_path, 1)]
    assert runner.run_cells(cells, tmp_path / "toy.jsonl", progress=False) == {}
    assert runner.read(tmp_path / "toy.jsonl") == []


def test_invalid_statistics_are_a_result_and_bugs_are_reported(tmp_path):
    path = tmp_path / "toy.jsonl"
    invalid, bug = some_cells(tmp_path, 2)
    invalid = replace(invalid, arguments=invalid.arguments | {"fault": "invalid"})
    bug = replace(bug, arguments=bug.arguments | {"fault": "bug"})
    assert runner.run_cells([invalid, bug], path, progress=False) == {"1/A": "RuntimeError: boom"}
    (done,) = runner.read(path)
    assert done.failure == "InvalidStatistics: singular" and done.records == []


def test_a_line_cut_short_is_dropped(tmp_path):
    path = tmp_path / "toy.jsonl"
    cells = some_cells(tmp_path, 3)
    runner.run_cells(cells, path, progress=False)
    complete = path.read_text()
    for cut in (1, 20, len(complete.splitlines(keepends=True)[-1]) - 1):
        path.write_text(complete[:-cut])
        assert len(runner.read(path)) == 2
    runner.run_cells(cells, path, progress=False)
    assert path.read_text().count("\n") == 3


def damage(path, number, line):
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))
    return line


DAMAGES = {
    "control character": b'{"key": "1/A", "proto\x00col": 1}',
    "no JSON": b"            continue  # which no second run takes again
        if old.value is None or new.metric in ("iterations", "reach"):
            assert new.value == old.value
        else:
            assert new.value == pytest.approx(old.value, rel=1e-10, abs=1e-10)


# Scorecard -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def card():
    return scorecard.scorecard()


def test_scorecard_has_one_row_for_each_printed_number(card):
    assert len(card) == 4549 == len(published.tables())
    assert set(card.verdict) <= set(scorecard.VERDICTS)
    assert not card.duplicated(published.KEY).any()


def test_scorecard_says_why(card):
    silent = card[card.verdict.isin(["reproduced", "statistically consistent", "differs: unexplained"])]
    assert (silent.why == "").all()
    assert (card.why[card.verdict == "not attempted"] != "").all()
    assert (card.section[card.verdict == "differs: explained"] != "").all()


def test_rc_numbers_that_are_not_attempted_have_their_reason(card):
    reasons = card.why[card.source.str.startswith("rc") & (card.verdict == "not attempted")]
    assert NO_PROTOCOL not in set(reasons)


def test_sections_that_explain_exist():
    labels = scorecard._rules("explanations.csv").section
    pages = [*(ROOT / "book").glob("*.md"), *(ROOT / "chapters").glob("*.ipynb")]
    text = "".join(page.read_text() for page in pages)
    assert all(f"({label})=" in text for label in labels)
