"""The package's papers agree with each other: lock, citation, public names."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import rcpkg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
OLDEST = (ROOT / "requirements-oldest.txt").read_text(encoding="utf-8")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> dict[str, str]:
    """Versions that a lock pins with hashes."""
    return {normalised(n): v for n, v in re.findall(r"^([\w.-]+)==(\S+).*\\\n    --hash=sha256:", lock, re.MULTILINE)}


def test_lock_pins_every_direct_dependency_with_hashes():
    direct = [*PROJECT["dependencies"], *(d for extra in PROJECT["optional-dependencies"].values() for d in extra)]
    assert {normalised(re.match(r"[\w.-]+", d)[0]) for d in direct} <= pins(LOCK).keys()


def test_oldest_lock_pins_the_lower_bounds_of_the_dependencies():
    found = pins(OLDEST)
    for dependency in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]:
        name, bound = re.fullmatch(r"([\w.-]+)>=([\d.]+)", dependency).groups()
        assert f"{found[normalised(name)]}.".startswith(f"{bound}."), dependency


@pytest.mark.parametrize("lock", [LOCK, OLDEST], ids=["pinned", "oldest"])
def test_locks_name_no_index_and_no_path_and_hash_everything(lock):
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ ", lock)
    lines = re.findall(
        r"^\w.*\n?.*", lock, re.MULTILINE
    )  # a package stands twice where its version depends on a Python
    assert all(re.search(r"==\S+.*\\\n    --hash=sha256:", line) for line in lines)


def test_pythons_are_the_same_in_all_papers():
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert versions == ["11", "12", "13", "14"] and PROJECT["requires-python"] == f">=3.{versions[0]}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"(3, {versions[0]}) <= sys.version_info[:2] <= (3, {versions[-1]})" in makefile
    assert f"3.{versions[0]} to 3.{versions[-1]}" in makefile


def test_citation_agrees_with_package_and_bibliography():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == rcpkg.__version__
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    titles = re.findall(r"title\s*=\s*\{(.*)\},\n", bibliography)[:5]
    assert [reference["title"] for reference in citation["references"]] == [re.sub("[{}]", "", t) for t in titles]


def test_public_names_are_sorted_and_exist():
    assert all(hasattr(rcpkg, name) for name in rcpkg.__all__)
    assert len(set(rcpkg.__all__)) == len(rcpkg.__all__)
