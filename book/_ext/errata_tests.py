"""On the page of errata the name of a test links to the file that it stands in, as evidence that anybody can run."""

import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PAGE = "book/errata"
TEST = re.compile(r"`(?:tests/\w+\.py::)?(test_\w+)`")


@cache
def files(folder: Path) -> dict[str, str]:
    """Name of a test -> the file that it stands in."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        found |= dict.fromkeys(
            re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE), path.name
        )
    return found


def link_tests(app: Sphinx, document: str, source: list[str]) -> None:
    if document == PAGE:
        source[0] = TEST.sub(lambda name: _link(app, name[1]), source[0])


def _link(app: Sphinx, test: str) -> str:
    known = files(Path(app.srcdir, "tests"))
    if test not in known:
        raise ExtensionError(f"{PAGE} names {test}, which is no test")
    return f"{{download}}`{test} </tests/{known[test]}>`"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", link_tests)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
