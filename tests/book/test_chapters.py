"""Every chapter keeps the rules of `checks.py` and is stored as `book/_tools/notebooks.py` writes it."""

import ast
import builtins
import dis
import inspect
import re

import checks
import notebooks
import pytest
from conftest import CHAPTERS, ROOT, pages, read

MAX_BYTES = 1_000_000


# pages of instructions and projects: executed like chapters, without their exercises
INSTRUCTIONS = [
    *(
        ROOT / "book" / f"{name}.ipynb"
        for name in ("how_to_classify", "a_table_that_does_not_fit", "ten_minutes", "exact_answers", "why_not")
    ),
    *sorted(ROOT.glob("book/project_*.ipynb")),
]
each_notebook = pytest.mark.parametrize("path", [*CHAPTERS, *INSTRUCTIONS], ids=lambda path: path.stem)


@each_notebook
def test_notebook_keeps_the_rules(path):
    found = {name: list(rule(read(path))) for name, rule in checks.RULES.items()}
    assert {name: broken for name, broken in found.items() if broken} == {}


@each_notebook
def test_notebook_is_small_normalised_and_in_the_table_of_contents(path):
    assert notebooks.is_normalised(path), f"python book/_tools/notebooks.py {path.relative_to(ROOT)} stores it anew"
    assert path.stat().st_size < MAX_BYTES and f"{path.parent.name}/{path.stem}" in pages()


def lines(cell):
    """How many lines of a cell are neither empty nor imports."""
    source = checks.plain_python(cell.source)
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {line for node in imports for line in range(node.lineno, node.end_lineno + 1)}
    return sum(1 for number, line in enumerate(source.splitlines(), 1) if line.strip() and number not in imported)


@each_notebook
def test_folded_cells_are_short(path):
    """More lines belong to a function of rcbook.draw or rcbook.trials."""
    cells = checks.code_cells(read(path))
    assert [cell.id for cell in cells if checks.FOLDED & set(checks.tags(cell)) and lines(cell) > 15] == []


def names(code, operations):
    """Names of a code object, and of those in it, on which one of the operations works."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in operations}
    return found.union(*(names(part, operations) for part in code.co_consts if inspect.iscode(part)))


def test_visible_cells_use_names_that_a_reader_sees(chapter):
    """A name is made in a visible cell, imported, or explained by a comment of the cell that uses it; labs may use
    what their chapter has."""
    lacking, known, place, lab = {}, set(dir(builtins)), 0, False
    for cell in read(chapter).cells:
        if cell.cell_type != "code":
            lab = ([lab] + [kind == "start" for kind in re.findall(r"\{solution-(start|end)\}", cell.source)])[-1]
            continue
        source = checks.plain_python(cell.source)
        code, nodes = compile(source, cell.id, "exec"), list(ast.walk(ast.parse(source)))
        imported = [name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
        known |= {(name.asname or name.name).split(".")[0] for name in imported}
        place += 1
        if place > 1 and not lab and not checks.FOLDED & set(checks.tags(cell)):  # the page folds the first
            known |= names(code, {"STORE_NAME", "STORE_GLOBAL"})
            used = names(code, {"LOAD_NAME", "LOAD_GLOBAL"}) - known
            lacking[cell.id] = {name for name in used if not re.search(rf"#.*\b{name}\b", source)}
    assert {cell: missing for cell, missing in lacking.items() if missing} == {}


def test_table_of_contents_lists_every_chapter_in_order():
    assert [name for name in pages() if name.startswith("chapters/")] == [f"chapters/{path.stem}" for path in CHAPTERS]


@pytest.mark.parametrize("path", [ROOT / "README.md", *(ROOT / f"{page}.md" for page in pages())], ids=lambda p: p.stem)
def test_pages_name_existing_symbols(path):
    if path.exists():
        assert list(checks.symbols(path.read_text(encoding="utf-8"))) == []
