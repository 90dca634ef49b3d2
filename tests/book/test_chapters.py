"""Every chapter keeps the rules of `book/_tools/checks.py` and is stored as `book/_tools/notebooks.py` writes it."""

import checks
import nbformat
import notebooks
import pytest
from conftest import CHAPTERS, ROOT, pages


@pytest.mark.parametrize("rule", checks.RULES)
def test_chapter_keeps_the_rule(rule, notebook):
    assert checks.RULES[rule](notebook) == []


HOW_TO = ROOT / "book" / "how_to_classify.ipynb"  # a page of instructions: executed like a chapter, without exercises


@pytest.mark.parametrize("rule", sorted(set(checks.RULES) - {"shape"}))
def test_the_how_to_keeps_the_rule(rule):
    assert checks.RULES[rule](nbformat.read(HOW_TO, as_version=4)) == []


def test_the_how_to_is_normalised_and_behind_its_door():
    assert notebooks.is_normalised(HOW_TO) and HOW_TO.stat().st_size < checks.MAX_BYTES
    assert "book/how_to_classify" in pages()
    assert ":link: how-to" in (ROOT / "book" / "intro.md").read_text(encoding="utf-8")


def test_chapter_is_small(chapter):
    assert chapter.stat().st_size < checks.MAX_BYTES


def test_chapter_is_normalised(chapter):
    assert notebooks.is_normalised(chapter)


def test_table_of_contents_lists_every_chapter_in_order():
    assert [name for name in pages() if name.startswith("chapters/")] == [f"chapters/{path.stem}" for path in CHAPTERS]


def test_pages_name_existing_symbols(page):
    source = ROOT / f"{page}.md"
    if source.exists():
        assert checks.symbols(source.read_text(encoding="utf-8")) == []


def test_readme_names_existing_symbols():
    assert checks.symbols((ROOT / "README.md").read_text(encoding="utf-8")) == []
