"""The book as an EPUB, where ``make epub`` has made it: valid, whole, and with every formula as MathML."""

import shutil
import subprocess
import zipfile

import epub
import pytest
from bs4 import BeautifulSoup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not epub.EPUB.is_file(), reason="make epub has not been run"),
]


@pytest.fixture(scope="module")
def pages():
    with zipfile.ZipFile(epub.EPUB) as book:
        names = [name for name in book.namelist() if name.startswith("EPUB/text/ch")]
        return [BeautifulSoup(book.read(name), "html.parser") for name in sorted(names)]


def test_it_has_the_pages_of_the_book_in_their_order(pages):
    assert [page.section["id"] for page in pages] == [epub.slug(page) for page in epub.order()]


def test_no_formula_is_left_as_tex(pages):
    assert sum(len(page.select("math")) for page in pages) > 1000
    assert [span.get_text() for page in pages for span in page.select("span.math:not(:has(math))")] == []


def test_checks_are_lines_and_code_that_draws_is_left_out(pages):
    code = [block.get_text() for page in pages for block in page.select("pre")]
    assert code and not any("use_style()" in block or "checked(" in block for block in code)
    assert sum(len(page.select("div.verdict")) for page in pages) > 100


def test_epubcheck_finds_no_error():
    if not (checker := shutil.which("epubcheck")) or not shutil.which("java"):
        pytest.skip("epubcheck is not installed")
    found = subprocess.run(["java", "-jar", checker, epub.EPUB], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    assert "0 fatals / 0 errors" in found.stdout + found.stderr
