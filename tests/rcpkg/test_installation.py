"""What is built: a wheel of the classifiers alone, and a source archive whose tests run."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # builds a wheel and a source archive from a copy of the tree
ROOT = Path(__file__).resolve().parents[2]
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


def test_wheel_holds_the_classifiers_and_the_mark_of_types_and_nothing_of_the_book(built, site):
    code = {file.relative_to(ROOT) for file in [*(ROOT / "rcpkg").rglob("*.py"), ROOT / "rcpkg" / "py.typed"]}
    code |= {Path("rcpkg", "__init__.pyi")}
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {Path(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert held == code, "see packages in pyproject.toml"


# an installation that has the wheel and what it requires: nothing else can be imported
ALONE = """
import importlib, pkgutil, re, sys
from importlib.metadata import distribution

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rcbook", "matplotlib", "pooch", "sympy", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import rcpkg
assert rcpkg.__file__.startswith(sys.argv[1]), rcpkg.__file__
"""


def test_an_installed_wheel_works_with_what_it_requires(site):
    code = ALONE + (
        "for module in pkgutil.walk_packages(rcpkg.__path__, 'rcpkg.'):\n"
        "    if module.name != 'rcpkg.plotting':\n"
        "        importlib.import_module(module.name)\n"
        "X, y = [[0.0], [1.0], [2.0], [3.0], [5.0], [4.0]], [0, 0, 0, 1, 1, 1]\n"
        "assert rcpkg.RiskCalibration(rcpkg.QDA()).fit(X, y).predict([[0.5]]) == [0]\n"
    )
    done = run(["-c", code, str(site)], site)
    assert done.returncode == 0, done.stderr


def test_pictures_without_matplotlib_name_the_extra(site):
    done = run(["-c", ALONE + "import rcpkg.plotting", str(site)], site)
    assert done.stderr.splitlines()[-1].startswith("ImportError: rcpkg.plotting draws with matplotlib, the extra plot")


def test_the_book_outside_a_checkout_says_what_it_needs(tmp_path):
    shutil.copytree(ROOT / "book" / "rcbook", tmp_path / "book" / "rcbook", ignore=IGNORED)
    paths = os.pathsep.join(map(str, (tmp_path / "book", ROOT)))
    for command in ("status", "fetch", "run"):
        done = run(["-m", "rcbook", command], tmp_path, PYTHONPATH=paths)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        assert str(tmp_path / "data") in done.stderr and "pip install -e . -e book" in done.stderr


def test_code_without_its_history_has_no_commit(tmp_path):
    shutil.copytree(ROOT / "book" / "rcbook", tmp_path / "book" / "rcbook", ignore=IGNORED)
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("*.jsonl"))
    code = (
        "from rcbook.experiments import runner\n"
        "cells = runner.cells_of('rc2024', 'III')\n"
        "path = runner.table_path('rc2024', 'III')\n"
        "runner.run_cells(cells[:0], path, progress=False)\n"
        "print(path, runner.commit())"
    )
    paths = os.pathsep.join(map(str, (tmp_path / "book", ROOT)))
    done = run(["-c", code], tmp_path, PYTHONPATH=paths, RCPKG_RESULTS="", GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    path = tmp_path / "data" / "results" / "rc2024_table_III.jsonl"
    assert done.stdout == f"{path} {{'commit': None, 'modified': None}}\n", done.stderr
    assert path.is_file()


def test_source_archive_holds_what_its_tests_need(built, tmp_path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for folder in ("book", "chapters", "data", "rcpkg", "tests"):
        for file in (ROOT / folder).rglob("*"):
            generated = {"__pycache__", "quick", ".ipynb_checkpoints"} & set(file.parts)
            if file.is_file() and not generated and file.suffix != ".tmp":
                assert (unpacked / file.relative_to(ROOT)).is_file(), f"{file.relative_to(ROOT)} is missing"
    chosen = "test_class_prior or test_package or test_errata"  # all others are collected
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", chosen], unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
