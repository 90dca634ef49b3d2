"""rcbook.experiments: the register, the resumable runner, tolerances and verdicts, and the committed results."""

import datetime
import gc
import importlib
import io
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_cases import refused
from rcbook import published
from rcbook.__main__ import main
from rcbook.experiments import code, runner, signing, store
from rcbook.experiments.cells import NO_PROTOCOL, REGISTER, STUDY, Cell, Grid, Record, Study, cells_of, register
from rcbook.experiments.studies import rows_left_out
from sklearn.datasets import load_iris

import rcpkg

# the function of the same name hides the module
scorecard = importlib.import_module("rcbook.experiments.scorecard")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results"


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
        assert rule["read_as"] in ("rounded", "truncated") and rule["rule"] in ("deterministic", "statistical")
        assert (rule["rule"] == "statistical") == bool(rule["z"] and rule["slack"] and rule["published_runs"])
    assert scorecard.tolerance("thesis2007", "5.11", "test_error_percent")["published_runs"] == "10"
    assert scorecard.tolerance("thesis2007", "5.1", "test_error_percent")["published_runs"] == "100"
    with pytest.raises(LookupError, match="no tolerance"):
        scorecard.tolerance("rc1999", "1", "iterations")


# Tables and studies ------------------------------------------------------------------------------


def test_seeds_are_shared_within_a_stream_and_fixed():
    cells = {cell.key: cell for cell in cells_of("rc2025", "3")}
    assert runner.cell_seed(cells["1/ML"]) == runner.cell_seed(cells["1/RC"]) == 2661363696
    assert runner.cell_seed(cells["1/ML"]) != runner.cell_seed(cells["2/ML"])


@pytest.fixture
def declared(monkeypatch):
    """A function that declares a study for the time of a test and gives its cells."""

    def declare(*grids, **grid):
        monkeypatch.delitem(REGISTER, (STUDY, "toy"), raising=False)
        Study("toy", *grids, **grid)
        return cells_of(STUDY, "toy")

    yield declare
    monkeypatch.delitem(REGISTER, (STUDY, "toy"), raising=False)


def test_a_study_is_registered_once(declared):
    assert [cell.key for cell in declared(Grid(rows="a"), Grid(rows="bc", quick=True))] == ["a", "b", "c"]
    refused("two studies study:toy", Study, "toy", rows="d")
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
    return [Cell(STUDY, "toy", str(i), "A", "test_experiments:noisy", arguments) for i in range(n)]


def ran(tmp_path):
    log = tmp_path / "log"
    return log.read_text().split() if log.exists() else []


@pytest.fixture
def path(tmp_path):
    return store.table_path(STUDY, "toy", tmp_path)


@pytest.fixture(autouse=True)
def protocols_are_importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "book"), str(ROOT / "tests" / "rcbook")]))


PROCESSES = pytest.param(2, "loky", marks=pytest.mark.slow)  # each of which imports all that is here


@pytest.mark.parametrize("jobs, backend", [(1, None), (2, "threading"), PROCESSES])
def test_same_results_with_every_backend_and_nothing_twice(tmp_path, path, jobs, backend):
    cells = some_cells(tmp_path)
    assert runner.run_cells(cells[:2], path, progress=False) == {}
    first = store.read(path)
    assert runner.run_cells(cells, path, jobs, backend, progress=False) == {}
    stored = store.read(path)
    assert [done.key for done in stored] == [cell.key for cell in cells]
    assert sorted(ran(tmp_path)) == sorted(cell.key for cell in cells)
    assert stored[:2] == first
    for cell, done in zip(cells, stored):
        assert done.records == noisy(cell, runner.cell_seed(cell)) and done.cell == cell


def test_changed_arguments_are_computed_anew_and_dropped_cells_vanish(tmp_path, path):
    runner.run_cells(some_cells(tmp_path, 3), path, progress=False)
    runner.run_cells(some_cells(tmp_path, 2, sleep=0.001), path, progress=False)
    assert ran(tmp_path) == ["0/A", "1/A", "2/A", "0/A", "1/A"]
    assert [done.key for done in store.read(path)] == ["0/A", "1/A"]


def test_cells_with_a_reason_are_not_run(tmp_path, path):
    cells = [replace(cell, reason="no data") for cell in some_cells(tmp_path, 1)]
    assert runner.run_cells(cells, path, progress=False) == {}
    assert store.read(path) == []


def test_invalid_statistics_are_a_result_and_bugs_are_reported(tmp_path, path):
    invalid, bug = some_cells(tmp_path, 2)
    invalid = replace(invalid, arguments=invalid.arguments | {"fault": "invalid"})
    bug = replace(bug, arguments=bug.arguments | {"fault": "bug"})
    assert runner.run_cells([invalid, bug], path, progress=False) == {"1/A": "RuntimeError: boom"}
    (done,) = store.read(path)
    assert done.failure == "InvalidStatistics: singular" and done.records == []


def test_a_line_cut_short_is_dropped_and_a_damaged_one_is_named(tmp_path, path):
    cells = some_cells(tmp_path, 3)
    runner.run_cells(cells, path, progress=False)
    complete = path.read_text()
    for cut in (1, 20, len(complete.splitlines(keepends=True)[-1]) - 1):
        path.write_text(complete[:-cut])
        assert len(store.read(path)) == 2
    runner.run_cells(cells, path, progress=False)
    assert path.read_text().count("\n") == complete.count("\n") == 5
    for line in (
        "<<<<<<< HEAD",
        "17",
        "",
        '{"records": []}',
        '{"records": [[1]], "row": "0", "seed": 1, "seconds": 1}',
    ):
        path.write_text(complete.replace(complete.splitlines()[3], line))
        refused(r"study_table_toy\.jsonl, line 4 is damaged", store.read, path)


def test_provenance_names_versions_but_not_the_machine(tmp_path, path):
    runner.run_cells(some_cells(tmp_path, 1), path, progress=False)
    (done,) = store.read(path)
    assert done.provenance["rcpkg"] == rcpkg.__version__
    assert done.provenance["packages"]["numpy"] == np.__version__
    assert done.seconds >= 0 and done.seed == runner.cell_seed(some_cells(tmp_path, 1)[0])
    text = json.dumps(done.provenance)
    assert platform.node() not in text and str(Path.home()) not in text and str(ROOT) not in text


# The code of a stored cell -----------------------------------------------------------------------------

FIRST = '''"""A study."""

import math

from rcbook import words
from rcbook.experiments.cells import Record

QUERIES = 400  # drawn of each class
WAYS = {"plain": math.sqrt}
WAYS["double"] = lambda x: 2 * x


def spread(x):
    """Of a number."""
    return WAYS["double"](x) + len(words.__doc__)


def grow(cell, seed):
    """A protocol."""
    return [Record("", "n", spread(QUERIES))]


def unused():
    return 1
'''


def written(tmp_path, monkeypatch, name, text):
    """A module of this text, and what its protocol uses."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{name}.py").write_text(text)
    return code.definitions(f"{name}:grow")


@pytest.mark.parametrize(
    "old, new, changed",
    [
        ("400", "390", ["QUERIES"]),
        ("2 * x", "3 * x", ["WAYS"]),
        ("math.sqrt", "math.exp", ["WAYS"]),
        ("(x) + len", "(x) - len", ["spread"]),
        ('"n"', '"m"', ["grow"]),
        ("return 1", "return 2", []),
        ("  # drawn of each class", "", []),
        ('    """Of a number."""\n', "", []),
        ("def spread(x):", "def spread(x: int) -> float:", []),
        ("QUERIES = 400", "QUERIES = (\n    400\n)", []),
        ("from rcbook import words\n", "import rcbook.words as words\n", []),
    ],
)
def test_what_changed_in_the_code_of_a_cell_is_named(tmp_path, monkeypatch, old, new, changed):
    names = [f"{old}-{new}".encode().hex() for _ in range(1)]
    before = written(tmp_path, monkeypatch, f"first_{names[0]}", FIRST)
    after = written(tmp_path, monkeypatch, f"second_{names[0]}", FIRST.replace(old, new))
    assert {name.rpartition(".")[2] for name in code.changes(before, after)} == set(changed)


def test_what_a_protocol_uses_of_the_package_is_followed_and_of_the_library_is_not():
    found = code.definitions("rcbook.experiments.studies.seeds_of_local_bda:grow")
    assert {"experiments.cells.Record", "experiments.studies.seeds_of_local_bda.QUERIES"} <= found.keys()
    assert not any(name.startswith("rcpkg") or ".files." in name for name in found)
    assert "datasets.formats._parse_arff" in code.definitions("rcbook.experiments.studies.honest_comparison:honest")


def test_a_stale_cell_is_signed_only_if_it_comes_out(declared, tmp_path, path, capsys):
    arguments = {"log": str(tmp_path / "log")}
    cells = declared(rows="ab", protocol=noisy, arguments=arguments)
    study = REGISTER[STUDY, "toy"]
    runner.run_cells(cells, path, progress=False)
    fresh = store.read(path)
    assert signing.stale(study, tmp_path) == {}
    old = [replace(done, definitions=done.definitions | {"test_experiments.noisy": "0"}) for done in fresh]
    store.write(path, old)
    assert signing.stale(study, tmp_path) == {key: ["test_experiments.noisy"] for key in "ab"}
    assert signing.sign(study, tmp_path) == [] and store.read(path) == fresh
    (record,) = old[1].records
    store.write(path, [old[0], replace(old[1], records=[record._replace(value=record.value * (1 + 1e-9))])])
    (said,) = signing.sign(study, tmp_path)
    assert said.startswith("b, , number: ") and len(signing.stale(study, tmp_path)) == 2
    assert runner.run_cells(cells, path, progress=False) == {} and signing.stale(study, tmp_path) == {}


def told(cell, seed):
    """A protocol that gives rows of a table."""
    return [{"learner": name, "seconds": 1.0, "updates": n} for name, n in (("ours", 3), ("theirs", None))]


def test_rows_of_a_table_are_stored_and_compared_but_for_what_a_meter_gave(declared, tmp_path, path):
    cells = declared(rows="a", protocol=told)
    runner.run_cells(cells, path, progress=False)
    (done,) = store.read(path)
    table = runner.as_printed(STUDY, "toy", path)
    assert table.updates.tolist() == [3, pytest.approx(np.nan, nan_ok=True)] and table.learner[1] == "theirs"
    assert table.commit.str.len().isin([0, 40, 41]).all() and table.versions.str.startswith("numpy").all()
    slower, other = (
        replace(done, rows=[done.rows[0] | new, done.rows[1]]) for new in ({"seconds": 2.0}, {"updates": 4})
    )
    study = REGISTER[STUDY, "toy"]
    assert signing.differences(study, cells[0], slower, done) == []
    assert signing.differences(study, cells[0], other, done) == ["a, ours, updates: 4 in place of 3"]


# Commands ------------------------------------------------------------------------------------------


@pytest.mark.needs_data
def test_quick_run_and_status_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    assert main(["run", "rc2025:2", "--quick"]) == 0
    said = capsys.readouterr().out
    file = tmp_path / "quick" / "rc2025_table_2.jsonl"
    n = len(store.read(file))
    assert n == 3 and said == f"rc2025:2: {n} of {n} cells are kept in {file}\n"
    assert main(["run", "thesis2007:5.7", "--quick"]) == 0
    assert capsys.readouterr().out == "thesis2007:5.7 has no cell to run that is small enough for --quick\n"
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "rc2025:2" in out and "wanbia2014:II" in out
    assert main(["run", "rc2025:99"]) == 2
    assert main(["run", "rc2025:1", "--quick", "--backend", "no-such-backend"]) == 2


def test_a_table_is_printed_as_csv(capsys):
    assert main(["table", "rc2024:III"]) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(printed) == len(scorecard.results("rc2024", "III"))


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["run", "rc2025:1", "--jobs", "0"], 2, "jobs must be the number of workers, or -1 for one a processor; got 0"),
        (["run", "study:honst"], 2, "no protocol yet for study:honst (near to it: study:honest"),
        (["sign", "study:honst"], 2, "there is no table or study study:honst (near to it: study:honest"),
        (["fetch", "ionosphre"], 2, "got 'ionosphre' (near to it: ionosphere)"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, status, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1 and message in err and len(err) < 250


def test_a_folder_of_results_that_cannot_be_is_named(tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("RCPKG_RESULTS", str(file))
    for command in ["status"], ["run", "rc2025:1"]:
        assert main(command) == 1
        message = f"the environment variable RCPKG_RESULTS names {file}, which is no folder\n"
        assert capsys.readouterr().err == message


def test_results_are_looked_for_where_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv("RCPKG_RESULTS", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"no rc2024_table_III\.jsonl in .* rcbook run rc2024:III`.* RCPKG_RESULTS"
    ):
        scorecard.results("rc2024", "III")
    (tmp_path / "rc2024_table_III.jsonl").write_bytes((RESULTS / "rc2024_table_III.jsonl").read_bytes())
    ours = scorecard.results("rc2024", "III")
    monkeypatch.delenv("RCPKG_RESULTS")
    pd.testing.assert_frame_equal(ours, scorecard.results("rc2024", "III"))


# Committed results ---------------------------------------------------------------------------------

FILES = sorted(RESULTS.glob("*.jsonl"))


def table_of(file):
    return tuple(file.stem.split("_table_"))


def git(*arguments):
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@cache
def study_of(file):
    return register()[table_of(file)]


@cache
def cells_in(file):
    """What the study of a file would run, by key."""
    return {cell.key: cell for cell in study_of(file).cells()}


@pytest.fixture(scope="module")
def stored():
    """The cells of each file, which the garbage collector need not go through."""
    found = {file: store.read(file) for file in FILES}
    gc.freeze()
    return found


# runs that ended by the clock, as their protocols say: of the others every cell is stored
ENDED = {"bda7-readings", "networks-mended", "networks-mended-curves", "rc-readings"}
ENDED |= {"tables-with-rivals", "rivals-that-sum-out", "target-weights", "numbers-of-components"}
ENDED |= {"nb-descent", "reported-iterate", "rda-swapped"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_stored_cells_are_those_of_the_protocol_and_none_is_stale(file, stored, monkeypatch):
    """They are of the code as it stands: `python -m rcbook sign` computes a few again and says so of all."""
    monkeypatch.setattr(signing, "read", lambda path: stored[path])
    assert signing.stale(study_of(file)) == {}
    cells, done = {key for key, cell in cells_in(file).items() if not cell.reason}, {one.key for one in stored[file]}
    assert done == cells or (done < cells and table_of(file)[1] in ENDED)


def test_results_come_from_committed_code(stored):
    for done in itertools.chain(*stored.values()):
        carried_over = "carried_over" in done.provenance
        assert carried_over or (done.provenance["modified"] is False and len(done.provenance["commit"]) == 40)


@pytest.fixture
def history():
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("there is no history, or it is cut off: git fetch --unshallow")


def test_tolerances_precede_the_results_they_judge(history, stored):
    """The last change of each row of the tolerances is an ancestor of the commit that computed what it judges."""
    lines = git("blame", "--porcelain", "-w", "data/tolerances.csv").splitlines()
    changed = [line.split()[0] for line in lines if len(line.split()[0]) == 40]
    rules = [tuple(rule) for _, rule in scorecard._rules("tolerances.csv").iterrows()]
    last_change = dict(zip(rules, changed[1:], strict=True))
    pairs = set()
    for table, cells in ((table_of(file), cells) for file, cells in stored.items() if table_of(file)[0] != STUDY):
        for metric, commit in {(record.metric, done.provenance["commit"]) for done in cells for record in done.records}:
            pairs.add((last_change[tuple(scorecard.tolerance(*table, metric).values())], commit))
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


def test_readings_precede_the_results_that_try_them(history, stored):
    """The commit that computed a result holds the reading as it stands; results come from commits without changes."""
    stated = {line.split(",")[0]: commit for line, commit in last_changes("data/readings.csv")}
    first_rise = {"RC": "stop-first-rise", "DFE": "stop-first-rise", "GD": "stop-first-rise-gd"}
    other_name = {"uncentred": "qda-map-uncentred", "uncentred-divisions": "qda-map-uncentred-divisions"}
    several = ("bda7-readings", "rc-readings", "gmm-readings", "pinv-intercept", "rc2025-first-rise")
    pairs = set()
    for study, done in ((table_of(file)[1], done) for file, cells in stored.items() for done in cells):
        if study in (*several, *other_name, *stated):
            of_cell = done.arguments.get("reading") or first_rise.get(done.key.split("/")[1])
            pairs.add(
                (stated[other_name.get(study) or (study if study in stated else of_cell)], done.provenance["commit"])
            )
    assert pairs
    for reading, result in pairs:
        git("merge-base", "--is-ancestor", reading, result)


SHORT, SLOW = 0.4, 1.0  # seconds that the shortest cell may have taken to be computed again in quick and slow tests,
WEEKLY = 2.0  # that one which is drawn may have taken, and
LONG, WEEKS = 10.0, 6  # in one of so many weeks, a sixth of the files each week
# their shortest cells are short among others: alone they take a second, to make what all cells of the study share
ALONE = {"study_table_honest", "study_table_local-curves"}
# Table 6.2 is told the sizes that Table 6.1 has chosen, in the same process: alone its cells take far longer
SHORT_FILES = [file for file in FILES if file.stem != "thesis2007_table_6.2"]


# kernels of OpenBLAS that sum in other orders; a process ends where its processor cannot run them
KERNELS = ("SkylakeX", "Haswell", "Nehalem")
EXECUTE = """
import sys
from pathlib import Path
from rcbook.experiments import runner, signing, store
name, key, path = sys.argv[1:]
(study,) = signing.named([name])
store.write(Path(path), [runner.execute(cell) for cell in study.cells() if cell.key == key])
"""


def by_kernel(study, key, folder):
    """A cell as it comes out where sums are rounded otherwise: one for each kernel that runs here."""
    for kernel in KERNELS:
        path = folder / f"{kernel}.jsonl"
        command = [sys.executable, "-W", "ignore", "-c", EXECUTE, f"{study.source}:{study.name}", key, str(path)]
        subprocess.run(command, env=os.environ | {"OPENBLAS_CORETYPE": kernel}, capture_output=True)
        yield from store.read(path)


def assert_comes_out(file, done, folder):
    """Its numbers come out: here, with another kernel, or as far as they are the same with all kernels."""
    study, cell = study_of(file), cells_in(file)[done.key]
    here = runner.execute(cell)
    found = signing.differences(study, cell, here, done)
    if found and "ModuleNotFoundError" in found[0]:  # of a package of locks/peers.txt
        pytest.skip(found[0])
    if found:
        others = list(by_kernel(study, done.key, folder))
        if all(signing.differences(study, cell, other, done) for other in others):
            apart = [line for other in others for line in signing.differences(study, cell, other, here)]
            rounded = {line.split(": ")[0] for line in apart}
            assert [line for line in found if line.split(": ")[0] not in rounded] == []
            pytest.skip(f"kernels of this processor differ, none gives the stored numbers: {found}")


def test_rows_left_out_by_one_step_are_near_refits():
    X, y = load_iris(return_X_y=True)
    found = rows_left_out.losses(rcpkg.GaussianNB(), X[::6], y[::6])
    for b in rows_left_out.WEIGHTS:
        assert abs(found[b, "difference"]) < 0.5 * (found[b, "exact"] - found[b, "training"])


@pytest.fixture(scope="module")
def shortest(stored):
    """Of each protocol the file with the shortest cell, and this cell."""
    found = {}
    for file in SHORT_FILES:
        for seconds, done in signing.comparable(study_of(file), stored[file])[:1]:
            if done.cell.protocol not in found or seconds < found[done.cell.protocol][1][0]:
                found[done.cell.protocol] = file, (seconds, done)
    return dict(found.values())


@pytest.mark.filterwarnings("ignore:feature . is constant within each class")  # EDDA says so of some samples
@pytest.mark.filterwarnings("default::RuntimeWarning")  # a run goes on, and its number is what is compared
@pytest.mark.needs_data
@pytest.mark.parametrize(("least", "most"), [(0.0, SHORT), pytest.param(SHORT, SLOW, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[pytest.mark.slow] * (file.stem in ALONE), id=file.stem) for file in SHORT_FILES],
)
def test_the_shortest_cell_of_a_protocol_comes_out_again(file, least, most, shortest, tmp_path):
    if file not in shortest:
        pytest.skip("another file has a shorter cell of its protocol, meters gave all its numbers, or no time is known")
    seconds, done = shortest[file]
    if not least <= seconds <= most:
        pytest.skip(f"its shortest cell, {done.key}, took {seconds} s")
    assert_comes_out(file, done, tmp_path)


@pytest.mark.filterwarnings("ignore:feature . is constant")  # what choose from a grid say so of some samples
@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("file", SHORT_FILES, ids=lambda file: file.stem)
def test_a_cell_drawn_this_week_comes_out_again(file, stored, tmp_path):
    year, week, _ = datetime.date.today().isocalendar()
    longest = LONG if (week + SHORT_FILES.index(file)) % WEEKS == 0 else WEEKLY
    short = [one for seconds, one in signing.comparable(study_of(file), stored[file]) if seconds <= longest]
    if not short:
        pytest.skip(f"no cell of it is known to take less than {longest} s")
    drawn = short[np.random.default_rng([year, week]).integers(len(short))]
    print(f"of week {week} of {year}: {file.stem}, {drawn.key}, which took {drawn.seconds} s")
    assert_comes_out(file, drawn, tmp_path)


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
    assert (card.section[card.verdict == "differs: explained"] != "").all()
    reasons = card[card.verdict == "not attempted"]
    assert (reasons.why != "").all() and NO_PROTOCOL not in set(reasons.why[reasons.source.str.startswith("rc")])
