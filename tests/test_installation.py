"""What is built: a wheel that knows the data sets and the prints, and a source archive whose tests run."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", "_build", ".venv*", ".git", ".*_cache", ".hypothesis")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a wheel and a source archive, built from a copy of the repository."""
    folder = tmp_path_factory.mktemp("built")
    source, dist = folder / "source", folder / "dist"
    shutil.copytree(ROOT, source, ignore=IGNORED)
    dist.mkdir()
    for kind in ("wheel", "sdist"):
        build = f"from setuptools import build_meta; build_meta.build_{kind}({str(dist)!r})"
        done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return dist


@pytest.fixture(scope="module")
def site(built, tmp_path_factory):
    """A folder like ``site-packages`` that holds the wheel alone."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder


def run(command, folder, **environment):
    environment = {**os.environ, "PYTHONPATH": str(folder), **environment}
    return subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)


def test_wheel_holds_the_code_the_tables_and_the_mark_of_types_but_no_results(built, site):
    for file in [*(ROOT / "rcpkg").rglob("*.py"), ROOT / "rcpkg" / "py.typed"]:
        assert (site / file.relative_to(ROOT)).is_file(), f"{file.name} is not in the wheel: see packages in pyproject"
    tables = {
        file.relative_to(ROOT) for folder in (".", "published") for file in (ROOT / "data" / folder).glob("*.csv")
    }
    assert {
        file.relative_to(site / "rcpkg") for file in (site / "rcpkg" / "data").rglob("*") if file.is_file()
    } == tables
    assert next(built.glob("*.whl")).stat().st_size < 5e5


def test_tables_are_found_in_an_installed_wheel(site, tmp_path):
    code = (
        "from rcpkg import datasets, published, experiments, _files\n"
        "assert _files.data_folder().parent.name == 'rcpkg', _files.data_folder()\n"
        "assert len(datasets.names()) == 84 and len(published.tables()) == 4549\n"
        "assert experiments.tolerance('rc2024', 'II', 'iterations').read_as == 'rounded'\n"
    )
    done = run(["-c", code], site)
    assert done.returncode == 0, done.stderr


def test_an_installed_wheel_says_where_results_may_lie_and_reads_them_there(site, tmp_path):
    ask = ["-c", "from rcpkg import experiments; print(len(experiments.results('rc2025', '1')))"]
    without = run(ask, site, HOME=str(tmp_path), USERPROFILE=str(tmp_path), RCPKG_RESULTS="")
    assert without.returncode == 1
    message = without.stderr.splitlines()[-1]
    assert str(tmp_path / ".rcpkg" / "results") in message and "environment variable RCPKG_RESULTS" in message
    assert run(ask, site, RCPKG_RESULTS=str(ROOT / "data" / "results")).stdout == "32\n"


def test_an_installed_wheel_writes_to_the_folder_of_the_user(site, tmp_path):
    before = {file for file in site.rglob("*") if file.suffix != ".pyc" and file.name != "__pycache__"}
    code = (
        "from rcbook.experiments import runner\n"
        "cells = runner.cells_of('rc2024', 'III')\n"
        "path = runner.table_path('rc2024', 'III')\n"
        "with runner.sole_run(path):\n"
        "    runner.run_cells(cells[:0], path, progress=False)\n"
        "print(path, runner.commit())"
    )
    done = run(["-c", code], site, HOME=str(tmp_path), USERPROFILE=str(tmp_path), RCPKG_RESULTS="")
    path = tmp_path / ".rcpkg" / "results" / "rc2024_table_III.jsonl"
    assert done.stdout == f"{path} {{'commit': None, 'modified': None}}\n", done.stderr
    assert path.is_file()
    assert {file for file in site.rglob("*") if file.suffix != ".pyc" and file.name != "__pycache__"} == before


@pytest.mark.slow
def test_source_archive_holds_what_its_tests_need(built, tmp_path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for folder in ("book", "chapters", "data", "rcpkg", "tests"):
        for file in (ROOT / folder).rglob("*"):
            generated = {"__pycache__", "quick", ".ipynb_checkpoints"} & set(file.parts)
            if file.is_file() and not generated and file.suffix not in (".lock", ".tmp", ".damaged"):
                assert (unpacked / file.relative_to(ROOT)).is_file(), f"{file.relative_to(ROOT)} is missing"
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests"], unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    chosen = ["tests/test_persistence.py", "tests/test_package.py", "tests/test_errata.py"]
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen], unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
