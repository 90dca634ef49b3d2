"""What both packages declare is what their code imports, and what is pinned is hashed and names no index."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from test_architecture import SOURCES, import_statements

import rcpkg

ROOT = Path(__file__).parents[2]
PAPERS = {
    "rcpkg": tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")),
    "rcbook": tomllib.loads((ROOT / "book" / "pyproject.toml").read_text(encoding="utf-8")),
}
FOLDERS = {"rcpkg": ROOT / "rcpkg", "rcbook": ROOT / "book" / "rcbook"}
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
TEST = (ROOT / "locks" / "test.txt").read_text(encoding="utf-8")
OLDEST = (ROOT / "locks" / "oldest.txt").read_text(encoding="utf-8")
PEERS = (ROOT / "locks" / "peers.txt").read_text(encoding="utf-8")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> set[tuple[str, str]]:
    return {(normalised(name), version) for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)}


def name_of(dependency: str) -> str:
    return normalised(re.match(r"[\w.-]+", dependency)[0])


def direct(package: str, *extras: str) -> set[str]:
    """Names of what a package requires, with some of its extras."""
    project = PAPERS[package]["project"]
    optional = [dependency for extra in extras for dependency in project["optional-dependencies"][extra]]
    return {name_of(dependency) for dependency in [*project["dependencies"], *optional]}


def test_tests_run_with_the_versions_that_the_book_is_built_with():
    assert pins(LOCK) and pins(LOCK) <= pins(TEST)


def imported(package: str) -> set[str]:
    """The packages of others that the modules of one of ours import."""
    names = set()
    for module in SOURCES:
        for node in import_statements(module) if module.partition(".")[0] == package else ():
            whole = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            names |= {name.partition(".")[0] for name in whole}
    distributions = {"sklearn": "scikit-learn", "venn_abers": "venn-abers", "yaml": "pyyaml"}
    names = {distributions.get(name, name) for name in names}
    return names - sys.stdlib_module_names - {"", *PAPERS}


def test_the_library_requires_what_it_imports():
    assert imported("rcpkg") == direct("rcpkg", "plot", "parquet", "dask")
    assert direct("rcpkg", "plot") == direct("rcpkg") | {"matplotlib"}


def test_the_book_requires_what_it_imports():
    of_a_notebook, of_pooch = {"IPython"}, {"requests"}
    # which studies measure beside our own, imported by the cells that need them
    rivals = {"bregman", "dask", "dask_ml", "distributed", "polars", "pyagrum", "pyarrow", "river"}
    rivals |= {"catboost", "interpret", "lightgbm"}
    imports, own = imported("rcbook") - of_a_notebook - of_pooch - rivals, direct("rcbook") - {"rcpkg"}
    assert own <= imports <= own | direct("rcpkg", "plot") | direct("rcbook", "chapters")


@pytest.mark.parametrize("lock", [LOCK, TEST, OLDEST, PEERS], ids=["pinned", "test", "oldest", "peers"])
def test_locks_name_no_index_and_no_path_and_hash_everything(lock):
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ ", lock)
    lines = re.findall(
        r"^\w.*\n?.*", lock, re.MULTILINE
    )  # a package stands twice where its version depends on a Python
    assert all(re.search(r"==\S+.*\\\n    --hash=sha256:", line) for line in lines)


def test_citation_agrees_with_package_changelog_and_bibliography():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"^## (\S+) \((.*)\)$", changelog, re.MULTILINE).groups()
    assert rcpkg.__version__ == citation["version"] == version
    assert str(citation["date-released"]) == date
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    titles = re.findall(r"title\s*=\s*\{(.*)\},\n", bibliography)[:5]
    assert [reference["title"] for reference in citation["references"]] == [re.sub("[{}]", "", t) for t in titles]


def test_no_work_is_in_the_bibliography_twice():
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    printed = re.findall(r"^ *title\s*=\s*\{(.*)\},$", bibliography, re.MULTILINE)
    titles = [re.sub(r"\W", "", title).lower() for title in printed]
    assert len(titles) == bibliography.count("\n@")
    assert {title for title in titles if titles.count(title) > 1} == set()


def test_a_start_imports_what_is_used_alone():
    """A page in the browser compiles whatever is imported: the package nothing, two classifiers none of these."""
    script = """
import sys
import rcpkg
assert "numpy" not in sys.modules and rcpkg.__version__
from rcpkg import QDA, RiskCalibrationCV
names = ("sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "matplotlib",
         "rcpkg.bregman", "rcpkg.gaussians", "rcpkg.local", "rcpkg.table", "rcpkg.rivals")
print(*[name for name in names if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_modules_and_names_are_found_when_they_are_used():
    assert rcpkg.families.QDA is rcpkg.QDA and set(rcpkg.__all__) <= set(dir(rcpkg))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = rcpkg.Nothing
