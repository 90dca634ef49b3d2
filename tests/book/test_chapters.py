"""Every chapter keeps the rules of `book/_tools/checks.py` and is stored as `book/_tools/notebooks.py` writes it."""

import ast

import checks
import nbformat
import notebooks
import pytest
from conftest import CHAPTERS, ROOT, pages

MAX_BYTES = 1_000_000


@pytest.mark.parametrize("rule", checks.RULES)
def test_chapter_keeps_the_rule(rule, notebook):
    assert list(checks.RULES[rule](notebook)) == []


LONG_CELLS = [line.split(",") for line in (ROOT / "tests/book/long_cells.csv").read_text("utf-8").splitlines()]

# pages of instructions and projects: executed like chapters, without their exercises
INSTRUCTIONS = [
    *(
        ROOT / "book" / f"{name}.ipynb"
        for name in ("how_to_classify", "a_table_that_does_not_fit", "ten_minutes", "exact_answers", "why_not")
    ),
    *sorted(ROOT.glob("book/project_*.ipynb")),
]
parametrized = pytest.mark.parametrize("instructions", INSTRUCTIONS, ids=lambda path: path.stem)


@parametrized
@pytest.mark.parametrize("rule", checks.RULES)
def test_instructions_keep_the_rule(rule, instructions):
    assert list(checks.RULES[rule](nbformat.read(instructions, as_version=4))) == []


@parametrized
def test_instructions_are_normalised_and_in_the_table_of_contents(instructions):
    assert notebooks.is_normalised(instructions) and instructions.stat().st_size < MAX_BYTES
    assert f"book/{instructions.stem}" in pages()


@pytest.mark.parametrize("label", ["ten-minutes", "how-to", "ch-scorecard"])
def test_front_page_has_its_doors(label):
    assert f":link: {label}\n" in (ROOT / "book" / "intro.md").read_text(encoding="utf-8")


def test_chapter_is_small(chapter):
    assert chapter.stat().st_size < MAX_BYTES


def test_chapter_is_normalised(chapter):
    assert notebooks.is_normalised(chapter)


def lines(cell):
    """How many lines of a cell are neither empty nor imports."""
    source = checks.plain_python(cell.source)
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {line for node in imports for line in range(node.lineno, node.end_lineno + 1)}
    return sum(1 for number, line in enumerate(source.splitlines(), 1) if line.strip() and number not in imported)


def test_folded_cells_are_short(chapter, notebook):
    """A folded cell has at most 15 lines; the list of those that are longer has no others."""
    folded = [cell for cell in checks.code_cells(notebook) if checks.FOLDED & set(checks.tags(cell))]
    long = {cell.id for cell in folded if lines(cell) > 15}
    listed = {cell for page, cell in LONG_CELLS if page == chapter.stem}
    assert not long - listed, "move what these cells do to a function of rcbook.draw or rcbook.trials"
    assert not listed - long, "no longer long: take these cells off tests/book/long_cells.csv"


def test_table_of_contents_lists_every_chapter_in_order():
    assert [name for name in pages() if name.startswith("chapters/")] == [f"chapters/{path.stem}" for path in CHAPTERS]


def test_pages_name_existing_symbols(page):
    source = ROOT / f"{page}.md"
    if source.exists():
        assert list(checks.symbols(source.read_text(encoding="utf-8"))) == []


def test_readme_names_existing_symbols():
    assert list(checks.symbols((ROOT / "README.md").read_text(encoding="utf-8"))) == []
