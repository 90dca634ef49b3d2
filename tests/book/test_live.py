"""Live cells: what a cell shows outside of a notebook, and every opted-in cell in a browser beside what is stored.

Three pages are opened, or all with RCPKG_PAGES=all (MAINTAINING.md has the command).
"""

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import live as tool
import nbformat
import pytest
from conftest import ALL, KINDS_OF_LIVE_PAGES
from rcbook import live

DIGITS = 6  # significant ones, to which another platform is held
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def test_a_cell_prints_shows_and_shares_names():
    names = {}
    assert live.run("a = 2\nprint(a)", names) == ([{"kind": "stdout", "text": "2\n"}], [])
    assert live.run("print(1)\nprint(2)\na + 1", names)[0] == [
        {"kind": "stdout", "text": "1\n2\n"},
        {"kind": "text/plain", "text": "3"},
    ]
    assert live.run("a;", names)[0] == live.run("None", names)[0] == []
    output, _ = live.run("import pandas as pd\npd.DataFrame({'x': [1]})", names)
    assert [entry["kind"] for entry in output] == ["text/html"]


def test_an_error_is_told_by_the_lines_of_the_cell_alone():
    output, error = live.run("print(1)\ndef f():\n    return 1 / 0\nf()", {}, "cell 3")
    assert output[0]["text"] == "1\n" and error[-1] == "ZeroDivisionError: division by zero"
    assert "rcbook" not in "".join(error) and '  File "<cell 3>", line 4, in <module>' in error
    assert live.run("1 +", {})[1][-1].startswith("SyntaxError")


def test_an_exercise_runs_the_cells_that_make_what_it_needs():
    sources = ["import numpy as np", "x = np.ones(3)", "z = 1", "def f(v):\n    return v + x", "%magic"]
    assert live.needed(sources, "f(2)") == [0, 1, 3]
    assert live.needed(sources, "print(3)") == []


def test_files_that_differ_from_the_lock_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RCPKG_PYODIDE", str(tmp_path))
    with pytest.raises(SystemExit, match="missing"):
        tool.runtime(tmp_path / "there")
    for name in tool.LOCK["files"]:
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(SystemExit, match="sha256 differs"):
        tool.runtime(tmp_path / "there")


@pytest.mark.slow
def test_the_archive_has_the_same_bytes_each_time(tmp_path):
    tool.archive(tmp_path / "a.zip")
    tool.archive(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.fixture(scope="session")
def address(html, tmp_path_factory) -> Iterator[str]:
    """The pages with live cells at a local address."""
    if "RCPKG_PYODIDE" not in os.environ and not ALL:
        pytest.skip("no live cells: RCPKG_PYODIDE names no folder with Pyodide, and RCPKG_PAGES is not all")
    target = tmp_path_factory.mktemp("live") / "html"
    shutil.copytree(html, target)
    tool.main(target)
    handler = functools.partial(Quiet, directory=str(target))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def rounded(text: str) -> str:
    """Text with its numbers to `DIGITS` significant digits, and runs of spaces as one."""
    text = NUMBER.sub(lambda number: f"{float(number[0]):.{DIGITS}g}", text)
    return re.sub(r"\s+", " ", text).strip()


def stored(page: str) -> dict[str, list[str]]:
    """What the cells of a notebook have stored that another platform should print too: all but pictures and stderr.

    A page in Markdown has stored nothing: its cells only run.
    """
    if not (path := tool.ROOT / f"{page}.ipynb").is_file():
        return {}
    kept = {}
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        texts = [
            output.text
            if output.output_type == "stream"
            else output.data.get("text/html", output.data.get("text/plain"))
            for output in cell.outputs
            if output.output_type == "stream" or "image/svg+xml" not in output.data
        ]
        kept[f"cell {number}"] = [rounded(text) for text in texts]
    return kept


#: cells whose printed numbers differ in a browser, with the reason
DIFFERENT = {
    ("book/how_to_classify", "cell 11"): "boosting of scikit-learn 1.6.1, which the runtime has, for that of 1.9",
    ("book/how_to_classify", "cell 14"): "the same boosting",
    ("chapters/04s_risk_based_calibration", "cell 15"): "one decision among 1,200 test rows, by rounding",
    ("chapters/04s_risk_based_calibration", "cell 16"): "the same decision",
    ("chapters/13_gaps", "cell 6"): "the same boosting, in the digest of a figure",
    ("chapters/13_gaps", "cell 7"): "the same boosting, in its two rows; all others are equal",
    ("chapters/13_gaps", "cell 35"): "the same boosting, in its row; all others are equal",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", tool.LOCK["pages"] if ALL else KINDS_OF_LIVE_PAGES, ids=lambda name: Path(name).name)
def test_every_cell_runs_in_a_browser_and_prints_what_is_stored(name, address, browser):
    window = browser.new_page()
    try:
        window.route(
            "**/*",
            lambda route: route.continue_() if route.request.url.startswith(address) else route.abort(),
        )
        window.goto(f"{address}/{name}.html")
        window.evaluate(
            "window.ran = []; document.addEventListener('live:ran', (event) => window.ran.push(event.detail))"
        )
        run = window.get_by_role("button", name="Run this cell, after the cells above it").last
        run.press("Enter")
        window.keyboard.press("Escape")  # the run after a stop begins anew
        assert window.inner_text(".live-state span").startswith("Stopped")
        run.press("Enter")
        window.wait_for_function("document.querySelector('.live-state')?.hidden", timeout=1_200_000, polling=500)
        ran = {one["id"]: one for one in window.evaluate("window.ran")}
    finally:
        window.close()
    errors = {cell: one["error"][-1] for cell, one in ran.items() if one["error"]}
    assert not errors
    printed = {
        name: [rounded(o["text"]) for o in one["output"] if o["kind"] in ("stdout", "text/html", "text/plain")]
        for name, one in ran.items()
    }
    differ = {}
    for cell, expected in stored(name).items():
        if cell in printed and printed[cell] != expected and (name, cell) not in DIFFERENT:
            pairs = zip(" ".join(printed[cell]).split(), " ".join(expected).split())
            differ[cell] = [pair for pair in pairs if pair[0] != pair[1]][:12]
    assert not differ
