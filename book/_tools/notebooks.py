"""Execute the chapters and store their outputs so that two runs give the same bytes.

Each notebook runs top to bottom in a fresh kernel, in its own folder. What varies without meaning is fixed: metadata,
execution counts, the split of printed text into messages. Cells keep their ids, so that an inserted cell changes no
other. A cell that fails or writes to stderr is an error, and the file stays as it was.
"""

import argparse
import hashlib
import sys
from itertools import count
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def normalised(notebook: NotebookNode) -> NotebookNode:
    """A copy with everything removed that carries no meaning; empty cells go too, and the second of two equal ids."""
    notebook = nbformat.from_dict({**notebook, "nbformat": 4, "nbformat_minor": 5, "metadata": METADATA})
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    ids: set[str] = set()
    for cell in notebook.cells:
        if cell.get("id", "") in ("", *ids):  # two copies of a cell, or a cell written by hand
            name = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
            cell.id = next(new for k in count() if (new := f"{name}{k or ''}") not in ids)
        ids.add(cell.id)
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in ("mystnb", "tags") if cell.metadata.get(key)})
        for counted in (cell, *cell.get("outputs", ())):
            if counted.get("execution_count") is not None:
                counted.execution_count = 1  # of each, so that an inserted cell changes no other
    return notebook


def text(notebook: NotebookNode) -> str:
    """The notebook as it is written to disk."""
    return nbformat.writes(normalised(notebook)) + "\n"


def is_normalised(path: Path) -> bool:
    return path.read_text(encoding="utf-8") == text(nbformat.read(path, as_version=4))


def executed(path: Path, timeout: int) -> NotebookNode:
    """The notebook run in a fresh kernel; raises when a cell fails or writes to stderr."""
    notebook = normalised(nbformat.read(path, as_version=4))
    quiet = ["--log-level=ERROR"]  # the kernel warns about TCP on a local machine
    settings = {"timeout": timeout, "coalesce_streams": True, "record_timing": False, "extra_arguments": quiet}
    NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}, **settings).execute()
    for cell in notebook.cells:
        if told := [output.text for output in cell.get("outputs", ()) if output.get("name") == "stderr"]:
            raise RuntimeError(f"{cell.id} writes to stderr:\n{told[0]}")
    return notebook


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a cell (default: %(default)s)")
    options, failed = parser.parse_args(arguments), False
    for path in options.files:
        try:
            path.write_text(text(executed(path, options.timeout)), encoding="utf-8", newline="\n")
            print(path)
        except (CellExecutionError, RuntimeError, TimeoutError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
