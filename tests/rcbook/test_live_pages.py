"""Pages whose cells run in the browser, run with the oldest packages that the metadata allow: `make test-oldest`."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from rcbook import live

ROOT = Path(__file__).resolve().parents[2]
PAGES = json.loads((ROOT / "book" / "live.lock.json").read_text(encoding="utf-8"))["pages"]
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OLDEST = dict(re.findall(r'"(scikit-learn)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")))


def cells(page: str) -> list[str]:
    """The code of a page, less that of cells which need a package that the browser has not."""
    if (path := ROOT / f"{page}.ipynb").is_file():
        code = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        return ["".join(c["source"]) for c in code if "not-live" not in c["metadata"].get("tags", ())]
    return FENCED.findall((ROOT / f"{page}.md").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.skipif(
    {"scikit-learn": version("scikit-learn")} != OLDEST, reason="the packages are not the oldest: make test-oldest"
)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).name)
def test_every_cell_of_a_live_page_runs_with_the_oldest_packages(page, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(ROOT / "chapters")
    names = {"__name__": "__main__"}
    for number, source in enumerate(cells(page), start=1):
        _, error = live.run(source, names, f"cell {number}")
        assert not error, "\n".join(error)
