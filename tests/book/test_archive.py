"""The archive of a release: the same bytes twice, checksums that hold, and the kit for teachers in it."""

import re
import subprocess
import tarfile
from datetime import UTC, datetime

import archive
import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FILES = ["README.md", "data/results/thesis2007_table_2.2.csv", "data/results/rc2025_table_1.jsonl", ".ci/run"]
DATE = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    built = tmp_path_factory.mktemp("built")
    (built / "html").mkdir()
    (built / "html" / "index.html").write_text("<title>The book</title>", encoding="utf-8")
    return archive.contents(FILES, built)


def test_two_archives_have_the_same_bytes(members, tmp_path):
    targets = [tmp_path / "one.tar.gz", tmp_path / "another.tar.gz"]
    for target in targets:
        archive.write(members, target, "release", DATE)
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_checksums_hold_in_an_empty_folder(members, tmp_path):
    target, folder = tmp_path / "release.tar.gz", tmp_path / "elsewhere"
    archive.write(members, target, "release", DATE)
    with tarfile.open(target) as packed:
        assert {(entry.uid, entry.uname, entry.mtime) for entry in packed} == {(0, "", DATE.timestamp())}
        packed.extractall(folder, filter="data")
    assert (folder / "release" / "html" / "index.html").is_file()
    assert (folder / "release" / ".ci" / "run").stat().st_mode & 0o100
    check = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder / "release").returncode == 0
    (folder / "release" / "README.md").write_text("something else", encoding="utf-8")
    assert subprocess.run(check, cwd=folder / "release", capture_output=True).returncode != 0


def test_pages_that_are_not_built_are_asked_for(tmp_path):
    with pytest.raises(SystemExit, match="make book"):
        archive.contents(FILES, tmp_path)


@pytest.fixture
def kit(tmp_path):
    """Of one chapter with a figure, a proof exercise and a lab whose solution is a cell."""
    page = tmp_path / "html" / "chapters" / "05_ascent.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        '<figure class="align-default" id="fig-a">\n<img alt="A &amp; B" src="a.svg" /><figcaption><p>'
        '<span class="caption-number">Fig. 5.1 </span><span class="caption-text">Up <em>it</em> goes.</span>'
        '<a class="headerlink" href="#fig-a">#</a></p></figcaption></figure>'
        '<a class="reference internal" href="#equation-eq-a">(5.2)</a>'
        '<div class="exercise admonition" id="ex-a">\n<p class="admonition-title"><span class="caption-number">'
        'Exercise 5.1 </span></p></div><div class="exercise admonition" id="ex-b">\n<p class="admonition-title">'
        '<span class="caption-number">Exercise 5.2 </span></p></div>',
        encoding="utf-8",
    )
    (page.parent / "a.svg").write_text("<svg/>", encoding="utf-8")
    proof = (
        ":::{exercise} Show\n:label: ex-a\n\nSee {eq}`eq-a`.\n:::\n\n:::{solution} ex-a\n:class: dropdown\n\nYes.\n:::"
    )
    lab = "Text.\n```{exercise-start} Lab\n:label: ex-b\n```\nCount:\n```python\n1\n```\n```{exercise-end}\n```\n"
    opened, closed = "```{solution-start} ex-b\n:class: dropdown\n```\nSo:", "```{solution-end}\n```\n\nAfter."
    cells = [*map(new_markdown_cell, (proof, lab + opened)), new_code_cell("1 + 1"), new_markdown_cell(closed)]
    notebook = tmp_path / "chapters" / "05_ascent.ipynb"
    notebook.parent.mkdir()
    nbformat.write(new_notebook(cells=cells), notebook)
    return archive.kit(tmp_path / "html", [notebook])


def test_kit_has_figures_and_exercises_under_the_numbers_of_the_book(kit):
    assert kit["teaching/figures/05.1.svg"] == b"<svg/>"
    assert "**05.1** Up it goes. *Alternative text:* A & B" in kit["teaching/figures/captions.md"].decode()
    without, whole = (
        [cell.source for cell in nbformat.reads(kit[f"teaching/{folder}/05_ascent.ipynb"], as_version=4).cells]
        for folder in ("exercises", "exercises_with_solutions")
    )
    first, lab = "## Exercise 5.1: Show\n\nSee (5.2).", "## Exercise 5.2: Lab\n\nCount:\n```python\n1\n```"
    assert without[1:] == ["%run ../../chapters/05_ascent.ipynb", first, lab]
    assert whole[2:] == [
        first,
        "## Solution of Exercise 5.1\n\nYes.",
        lab,
        "## Solution of Exercise 5.2\n\nSo:",
        "1 + 1",
    ]


def test_kit_has_each_exercise_with_its_solution():
    """Of all chapters and projects; none is lost to a fence that is read wrongly."""
    for path in [*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")]:
        notebook = nbformat.read(path, as_version=4)
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        heads = [
            cell.source.splitlines()[0] for _, cell in archive.exercises(notebook, {}) if cell.source[:3] == "## "
        ]
        labels = re.findall(r"^(?::::|```)\{exercise(?:-start)?\}.*\n:label: (\S+)", text, re.MULTILINE)
        assert [head[3:].split(":")[0] for head in heads if "Solution of" not in head] == labels
        assert sum("Solution of" in head for head in heads) == len(labels)
