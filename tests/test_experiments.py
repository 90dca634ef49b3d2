"""rcbook.experiments: the register, the resumable runner, tolerances and verdicts, and the committed results."""

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
from rcbook import published
from rcbook.__main__ import main
from rcbook.experiments import power, runner
from rcbook.experiments.cells import NO_PROTOCOL, REGISTER, STUDY, Cell, Grid, Record, Study, cells_of, register
from stored import assert_computed_again, magnifies_rounding

import rcpkg

# the function of the same name hides the module
scorecard = importlib.import_module("rcbook.experiments.scorecard")
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "data" / "results"
STUDIES = sorted(
    file for file in (ROOT / "book" / "rcbook" / "experiments" / "studies").glob("*.py") if file.stem != "__init__"
)
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


@pytest.mark.parametrize(
    "file", sorted((ROOT / "book" / "rcbook" / "experiments").glob("*.py")), ids=lambda file: file.stem
)
def test_the_machine_imports_no_study(file):
    assert not studies_imported(file)


def test_every_module_of_studies_declares_one_or_writes_its_file_or_serves_others():
    declaring = {study.stem for study in STUDIES if re.search(r"(?m)^ *Study\(", study.read_text())}
    protocols = [cell.protocol for known in register().values() for cell in known.cells() if cell.protocol]
    computing = {protocol.split(":")[0].rpartition(".")[2] for protocol in protocols}
    assert computing <= {study.stem for study in STUDIES}
    serving = set().union(*map(studies_imported, STUDIES))
    for study in STUDIES:
        module = importlib.import_module(f"rcbook.experiments.studies.{study.stem}")
        assert study.stem in declaring | serving or hasattr(module, "write"), study.stem
        assert re.search(r"\bchapters? \d", module.__doc__.partition("\n\n")[0].replace("\n", " ")), study.stem


@pytest.fixture
def declared(monkeypatch):
    """A function that declares a study for the time of a test and gives its cells."""

    def declare(*grids, **grid):
        monkeypatch.delitem(REGISTER, (STUDY, "toy"), raising=False)
        Study("toy", *grids, **grid)
        return cells_of(STUDY, "toy")

    yield declare
    monkeypatch.delitem(REGISTER, (STUDY, "toy"), raising=False)


def test_a_grid_is_the_product_of_rows_methods_and_settings(declared):
    cells = declared(
        rows=("a", "b"),
        methods=("RC", "GD"),
        settings=lambda cell: (1, 2) if cell.row == "a" else (3,),
        protocol=noisy,
        arguments=lambda cell: {"log": cell.setting_value},
        stream=lambda cell: cell.row,
        quick=lambda cell: cell.row == "b",
        where=lambda cell: cell.key != "a/GD/2",
    )
    assert [cell.key for cell in cells] == ["a/RC/1", "a/RC/2", "a/GD/1", "b/RC/3", "b/GD/3"]
    assert {(cell.source, cell.table, cell.protocol) for cell in cells} == {(STUDY, "toy", f"{__name__}:noisy")}
    assert [cell.arguments["log"] for cell in cells] == list("12133")
    assert [cell.stream for cell in cells] == list("aaabb")
    assert [cell.quick for cell in cells] == [False, False, False, True, True]
    assert [cell.key for cell in cells_of(STUDY, "toy", quick=True)] == ["b/RC/3", "b/GD/3"]


def test_a_grid_takes_up_cells_of_a_table(declared):
    first = next(cell for cell in cells_of("rc2025", "3") if not cell.reason)
    (plain,) = declared(rows=[first], arguments={"start": "all"}, quick=False)
    assert plain.arguments == {**first.arguments, "start": "all"} and plain.setting_value == "rc2025:3"
    assert (plain.protocol, plain.stream, plain.quick) == (first.protocol, first.stream, False)
    (changed,) = declared(rows=[first], methods=("GD",), settings=("here",), protocol=noisy)
    assert changed.key == f"{first.row}/GD/here" and changed.protocol == f"{__name__}:noisy"


def test_a_study_is_registered_once(declared):
    assert [cell.key for cell in declared(Grid(rows="a"), Grid(rows="bc", quick=True))] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="two studies study:toy"):
        Study("toy", rows="d")
    assert (STUDY, "toy") in register()


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
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "book"), str(ROOT / "tests")]))


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
    "no JSON": b"<<<<<<< HEAD",
    "not text": b"\xff\xfe\x00",
    "empty": b"",
    "a number": b"17",
    "a field missing": b'{"key": "1/A", "records": []}',
    "records of another kind": b'{"key": "1/A", "records": [{"metrum": 1}]}',
}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("line", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_line_is_named_set_aside_and_computed_anew(tmp_path, number, line):
    path = tmp_path / "toy.jsonl"
    cells = some_cells(tmp_path, 3)
    runner.run_cells(cells, path, progress=False)
    before = runner.read(path)
    damage(path, number, line)
    with pytest.warns(runner.DamagedLine, match=rf"toy\.jsonl, line {number} is damaged and set aside"):
        found, damaged = runner.content(path)
    assert [done.key for done in found] == [done.key for done in before if done.key != f"{number - 1}/A"]
    assert damaged == {number: line}
    with pytest.warns(runner.DamagedLine):
        assert runner.run_cells(cells, path, progress=False) == {}
    assert ran(tmp_path)[3:] == [f"{number - 1}/A"]
    assert path.with_suffix(".damaged").read_bytes() == line + b"\n"
    assert [done.records for done in runner.read(path)] == [done.records for done in before]


@pytest.mark.filterwarnings("default::rcbook.experiments.runner.DamagedLine")
def test_status_survives_a_damaged_line_and_names_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    path = runner.table_path("rc2024", "III")
    path.write_bytes((RESULTS / path.name).read_bytes())
    n = len(runner.read(path))
    damage(path, 2, b"{")
    assert main(["status"]) == 0
    out, err = capsys.readouterr()
    (line,) = (line for line in out.splitlines() if "rc2024:III " in line)
    assert line.split()[2] == str(n - 1)
    assert len(err.splitlines()) == 1 and f"warning: {path}, line 2 is damaged" in err


def start_toy_run(tmp_path, sleep):
    """A process that runs the cells of ``TOY``, and its file once the first cells are there."""
    code = (
        "import sys, test_experiments as t\nfrom pathlib import Path\nfrom rcbook.__main__ import main\n"
        f"t.install_toy(Path(sys.argv[1]), {sleep})\nsys.exit(main(['run', 'study:toy']))"
    )
    path = tmp_path / "study_table_toy.jsonl"
    environment = {**os.environ, "RCPKG_RESULTS": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # a shell starts what runs in its background without ears for Ctrl-C, and what that starts inherits it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 300
    while len(runner.read(path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    return process, path


def install_toy(tmp_path, sleep, setattr=setattr):
    """Make ``study:toy`` a table of twelve cells."""
    cells = [replace(cell, source=STUDY, table="toy") for cell in some_cells(tmp_path, 12, sleep=sleep)]
    setattr(runner, "cells_of", lambda source, table, quick=False: cells)


def test_one_run_of_a_table_at_a_time_and_none_after_a_kill(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    process, path = start_toy_run(tmp_path, sleep=0.5)
    install_toy(tmp_path, 0.5, monkeypatch.setattr)
    try:
        assert main(["run", "study:toy"]) == 1
        assert f"another run of study_table_toy is writing {path}" in capsys.readouterr().err
        with pytest.raises(runner.RunInProgress):
            runner.run(STUDY, "toy", progress=False)
    finally:
        process.kill()
        process.communicate()
    with runner.sole_run(path):
        pass


def test_ctrl_c_ends_in_one_line_that_says_what_is_kept(tmp_path):
    process, path = start_toy_run(tmp_path, sleep=0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    n = len(runner.read(path))
    assert process.returncode == 130 and 2 <= n < 12
    bar, said = err.rstrip("\n").rsplit("\n", 1)
    assert said == f"stopped: {n} of 12 cells of study:toy are kept in {path}; run it again to go on"
    assert "Traceback" not in bar


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_named_by_the_file(tmp_path, capsys, monkeypatch):
    path = tmp_path / "toy.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*toy\.jsonl'"):
        runner._append(path, "a line\n")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(os, "fsync", full)
    assert main(["run", "rc2024:III"]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and f"No space left on device: '{tmp_path}" in err and "III.jsonl'" in err


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"rcpkg {rcpkg.__version__}\n"


def test_results_are_looked_for_where_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"no rc2024_table_III\.csv in .* rcbook run rc2024:III`.* RCPKG_RESULTS"
    ):
        scorecard.results("rc2024", "III")
    (tmp_path / "rc2024_table_III.csv").write_bytes((RESULTS / "rc2024_table_III.csv").read_bytes())
    ours = scorecard.results("rc2024", "III")
    monkeypatch.delenv("RCPKG_RESULTS")
    pd.testing.assert_frame_equal(ours, scorecard.results("rc2024", "III"))


def test_killed_run_loses_only_the_cells_in_flight(tmp_path):
    """SIGKILL at a moment that falls between or into cells; what is stored stays and is not computed again."""
    path = tmp_path / "toy.jsonl"
    cells = some_cells(tmp_path, 12, sleep=0.1)
    code = (
        "import sys, test_experiments as t\nfrom pathlib import Path\nfrom rcbook.experiments import runner\n"
        "runner.run_cells(t.some_cells(Path(sys.argv[1]), 12, sleep=0.1), Path(sys.argv[2]), 2, 'threading', False)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(path)])
    deadline = time.monotonic() + 300
    while len(runner.read(path)) < 4 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(300)
    survived = {done.key: done for done in runner.read(path)}
    started = ran(tmp_path)
    assert 4 <= len(survived) < 12
    assert len(started) - len(survived) <= 2  # two workers, two cells in flight
    runner.run_cells(cells, path, progress=False)
    stored = {done.key: done for done in runner.read(path)}
    assert set(stored) == {cell.key for cell in cells}
    assert all(stored[key] == done for key, done in survived.items())
    assert sorted(ran(tmp_path)[len(started) :]) == sorted(set(stored) - set(survived))


def test_provenance_names_versions_but_not_the_machine(tmp_path):
    path = tmp_path / "toy.jsonl"
    runner.run_cells(some_cells(tmp_path, 1), path, progress=False)
    (done,) = runner.read(path)
    assert done.provenance["rcpkg"] == rcpkg.__version__
    assert done.provenance["packages"]["numpy"] == np.__version__
    assert done.seconds >= 0 and done.seed == runner.cell_seed(some_cells(tmp_path, 1)[0])
    text = json.dumps(done.provenance)
    assert platform.node() not in text and str(Path.home()) not in text and str(ROOT) not in text


@pytest.mark.needs_data
def test_quick_run_and_status_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    assert main(["run", "rc2025:2", "--quick"]) == 0
    cells = pd.read_csv(tmp_path / "quick" / "rc2025_table_2.csv")
    assert set(cells.dataset) == {"iris", "climate model", "indian liver"} or len(cells) > 4
    said = capsys.readouterr().out
    n = len(runner.read(tmp_path / "quick" / "rc2025_table_2.jsonl"))
    assert said == f"rc2025:2: {n} of {n} cells are kept; the table is {tmp_path / 'quick' / 'rc2025_table_2.csv'}\n"
    assert main(["run", "thesis2007:5.7", "--quick"]) == 0
    assert capsys.readouterr().out == "thesis2007:5.7 has no cell to run that is small enough for --quick\n"
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "rc2025:2" in out and "wanbia2014:II" in out
    assert main(["run", "rc2025:99"]) == 2
    assert main(["run", "rc2025:1", "--quick", "--backend", "no-such-backend"]) == 2


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["run", "rc2025:1", "--jobs", "0"], 2, "jobs must be the number of workers, or -1 for one a processor; got 0"),
        (["run", "study:honst"], 2, "no protocol yet for study:honst (near to it: study:honest"),
        (["fetch", "ionosphre"], 2, "got 'ionosphre' (near to it: ionosphere)"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, status, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1 and message in err and len(err) < 250


@pytest.mark.parametrize("command", [["status"], ["run", "rc2025:1"]], ids=lambda command: command[0])
def test_a_folder_of_results_that_cannot_be_is_named(command, tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("RCPKG_RESULTS", str(file))
    assert main(command) == 1
    assert capsys.readouterr().err == f"the environment variable RCPKG_RESULTS names {file}, which is no folder\n"
    monkeypatch.setenv("RCPKG_RESULTS", str(file / "within"))
    assert main(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file / "within") in line


def test_a_reader_who_has_seen_enough_ends_status_in_silence(tmp_path, monkeypatch):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    read, write = os.pipe()
    os.close(read)  # before anything is written, as `| head` may after a line
    command = [sys.executable, "-m", "rcbook", "status"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# Committed results ---------------------------------------------------------------------------------

FILES = sorted(RESULTS.glob("*.jsonl"))
STORED = [(file, done) for file in FILES for done in runner.read(file)]


def table_of(file):
    return tuple(file.stem.split("_table_"))


def git(*arguments):
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_results_in_printed_columns_are_those_of_the_cells(file):
    expected = runner.as_printed(*table_of(file), RESULTS)
    ours = scorecard.results(*table_of(file))
    pd.testing.assert_frame_equal(ours, expected, check_dtype=False, rtol=1e-12)


def test_results_come_from_committed_code():
    for _, done in STORED:
        assert done.provenance["modified"] is False and len(done.provenance["commit"]) == 40


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive has no history")
def test_tolerances_precede_the_results_they_judge():
    """The last change of each row of the tolerances is an ancestor of the commit that computed what it judges."""
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the history is cut off, so that it cannot be read: git fetch --unshallow")
    lines = git("blame", "--porcelain", "-w", "data/tolerances.csv").splitlines()
    changed = [line.split()[0] for line in lines if len(line.split()[0]) == 40]
    rules = [tuple(rule) for _, rule in scorecard._rules("tolerances.csv").iterrows()]
    last_change = dict(zip(rules, changed[1:], strict=True))
    pairs = set()
    for file, done in STORED:
        for record in done.records if table_of(file)[0] != STUDY else ():
            rule = tuple(scorecard.tolerance(*table_of(file), record.metric))
            pairs.add((last_change[rule], done.provenance["commit"]))
    for tolerance, result in pairs:
        assert tolerance != result
        git("merge-base", "--is-ancestor", tolerance, result)


def last_changes(path):
    """Each line of a file and the commit of its last change."""
    found, changed = [], ""
    for line in git("blame", "--porcelain", "-w", path).splitlines():
        if line.startswith("\t"):
            found.append((line[1:], changed))
        elif len(line.split()[0]) == 40:
            changed = line.split()[0]
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive has no history")
def test_second_rules_precede_the_code_that_applies_them():
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the history is cut off, so that it cannot be read: git fetch --unshallow")
    first = git("log", "--diff-filter=A", "--format=%H", "--", "rcpkg/experiments/power.py").split()[-1]
    changes = last_changes("data/second_rules.csv")
    assert len(changes) == 1 + len(power._rules())
    for _, commit in changes:
        assert commit != first
        git("merge-base", "--is-ancestor", commit, first)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive has no history")
def test_readings_precede_the_results_that_try_them():
    """The commit that computed a result holds the reading as it stands; results come from commits without changes."""
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the history is cut off, so that it cannot be read: git fetch --unshallow")
    stated = {line.split(",")[0]: commit for line, commit in last_changes("data/readings.csv")}
    first_rise = {"RC": "stop-first-rise", "DFE": "stop-first-rise", "GD": "stop-first-rise-gd"}
    pairs = {
        (stated[done.arguments.get("reading") or first_rise[done.key.split("/")[1]]], done.provenance["commit"])
        for file, done in STORED
        if table_of(file)[1] in ("bda7-readings", "rc-readings", "gmm-readings", "pinv-intercept", "rc2025-first-rise")
    }
    assert pairs
    for reading, result in pairs:
        git("merge-base", "--is-ancestor", reading, result)


EXACT = [(file, done) for file, done in STORED if not magnifies_rounding(table_of(file)[1], done.key)]
SHORT = [(file, done) for file, done in EXACT if done.seconds < 5 and not done.failure]
SAMPLE = [SHORT[i] for i in np.random.default_rng(49).permutation(len(SHORT))[:12]]


@pytest.mark.needs_data
@pytest.mark.parametrize("file, done", SAMPLE, ids=[f"{file.stem}-{done.key}" for file, done in SAMPLE])
def test_short_results_recomputed_from_scratch(file, done):
    cell = next(cell for cell in cells_of(*table_of(file)) if cell.key == done.key)
    assert done.is_of(cell) and done.seed == runner.cell_seed(cell)
    assert_computed_again(cell, runner.execute(cell).records, done.records)


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
