"""The package's papers agree with each other: lock, citation, public names."""

import re
import tomllib
from pathlib import Path

import yaml

import rcpkg

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_lock_pins_every_direct_dependency_with_hashes():
    direct = [*PROJECT["dependencies"], *(d for extra in PROJECT["optional-dependencies"].values() for d in extra)]
    pins = re.findall(r"^([\w.-]+)==\S+.*\\\n    --hash=sha256:", LOCK, re.MULTILINE)
    assert {normalised(re.match(r"[\w.-]+", d)[0]) for d in direct} <= {normalised(pin) for pin in pins}
    assert len(pins) == len(re.findall(r"^\w", LOCK, re.MULTILINE))


def test_lock_names_no_index_and_no_path():
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ ", LOCK)


def test_citation_agrees_with_package_and_bibliography():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == rcpkg.__version__
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    titles = re.findall(r"title\s*=\s*\{(.*)\},\n", bibliography)[:5]
    assert [reference["title"] for reference in citation["references"]] == [re.sub("[{}]", "", t) for t in titles]


def test_public_names_are_sorted_and_exist():
    assert all(hasattr(rcpkg, name) for name in rcpkg.__all__)
    assert len(set(rcpkg.__all__)) == len(rcpkg.__all__)
