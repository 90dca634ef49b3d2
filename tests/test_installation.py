"""A wheel carries the project's tables, so that an installed rcpkg knows the data sets, the prints and the results."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_tables_are_found_in_an_installed_wheel(tmp_path):
    source, dist, site = tmp_path / "source", tmp_path / "dist", tmp_path / "site"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        source.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    for name in ("rcpkg", "data"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    dist.mkdir()
    build = f"from setuptools import build_meta; print(build_meta.build_wheel({str(dist)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    for file in (ROOT / "rcpkg").rglob("*.py"):
        assert (site / file.relative_to(ROOT)).is_file(), f"{file.name} is not in the wheel: see packages in pyproject"
    code = (
        "from rcpkg import datasets, published, experiments, _files\n"
        "assert _files.data_folder().parent.name == 'rcpkg', _files.data_folder()\n"
        "assert len(datasets.names()) == 49 and len(published.tables()) == 4549\n"
        "assert experiments.tolerance('rc2024', 'II', 'iterations').read_as == 'rounded'\n"
        "assert len(experiments.results('rc2025', '1')) == 32\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
