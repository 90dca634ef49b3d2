"""The book on paper, where ``make pdf`` has made it: nothing too wide, nothing missing, nothing raw."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

import rcpkg

LATEX = ROOT / "_build" / "latex"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (LATEX / "book.pdf").is_file(), reason="make pdf has not been run"),
]


@pytest.fixture(scope="module")
def log():
    # TeX breaks the lines of its log after 79 letters
    return (LATEX / "book.log").read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module")
def text():
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (Debian: poppler-utils) is not installed")
    done = subprocess.run(["pdftotext", "-layout", LATEX / "book.pdf", "-"], capture_output=True, check=True)
    return done.stdout.decode()


def test_no_line_is_more_than_five_points_too_wide(log):
    assert [float(w) for w in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log) if float(w) > 5] == []


def test_no_page_is_more_than_five_points_too_high(log):
    assert [float(h) for h in re.findall(r"Overfull \\vbox \(([\d.]+)pt too high\)", log) if float(h) > 5] == []


def test_latex_ran_without_errors_and_found_all_signs_and_references(log):
    joined = log.replace("\n", "")
    assert re.findall(r"^! .*", log, re.MULTILINE) == []
    assert re.findall(r"Missing character: .{60}", joined) == []
    assert "There were undefined references" not in joined and "multiply-defined labels" not in joined


@pytest.mark.parametrize(
    "raw", [r"\{(?:numref|ref|doc|eq|cite:[tp]|prf:ref)\}", r"^\s*:::", r"\\(?:begin|end)\{", r"\?\?"]
)
def test_the_text_has_no_raw_directive(text, raw):
    assert re.findall(f".*{raw}.*", text, re.MULTILINE) == []


def test_title_contents_and_bibliography_stand_once(text):
    title, contents, *_ = text.split("\f")
    assert rcpkg.__version__ in title and contents.split()[0] == "Contents"
    assert len(re.findall(r"^\f?Bibliography$", text, re.MULTILINE)) == 1


def test_results_have_their_numbers(text):
    """As on the pages: Theorem 5.2 is of chapter 5, and each kind of result counts by itself or with the others."""
    kinds = "Theorem|Proposition|Definition|Lemma|Corollary|Algorithm|Example"
    numbered = re.findall(rf"^\s*(?:{kinds}) (\d+)\.(\d+) \(", text, re.MULTILINE)
    unnumbered = re.findall(rf"^\s*(?:{kinds})\s+\(.*", text, re.MULTILINE)
    assert {int(chapter) for chapter, _ in numbered} >= set(range(1, 18)) and unnumbered == []
    figures = re.findall(r"^\s*Fig\. (\d+(?:\.\d+)?):", text, re.MULTILINE)
    assert len(figures) == len(set(figures)) > 100
