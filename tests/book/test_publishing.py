"""What publishes the book: workflows, buttons and the environments of other hosts name one version of everything."""

import re

import book_build
import pytest
import yaml
from conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_buttons_appear_with_the_address_of_the_repository():
    entry = {"version": "1.2.3"}
    assert book_build.repository_options(entry) == {}
    found = book_build.repository_options(entry | {"repository-code": "https://github.com/someone/book/"})
    assert found["repository_url"] == "https://github.com/someone/book"
    assert found["repository_branch"] == "v1.2.3" and found["launch_buttons"]["binderhub_url"] == book_build.BINDER


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_make_what_the_makefile_has(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+", use) for use in re.findall(r"uses: (.*)", text))
    targets = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert all(re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) for target in targets)


def test_the_library_is_tested_on_the_pythons_of_its_metadata():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    classifiers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    matrix = workflow["jobs"]["library"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r'Python :: (3\.\d+)"', classifiers)
    assert len(matrix["system"]) == 3
