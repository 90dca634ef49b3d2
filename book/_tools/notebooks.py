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
CELL_METADATA = ("mystnb", "tags")
RUN = 1  # execution count of each cell that was run: one number, so that an inserted cell changes no other


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
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)})
        for counted in (cell, *cell.get("outputs", ())):
            if counted.get("execution_count") is not None:
                counted.execution_count = RUN
    return notebook


def text(notebook: NotebookNode) -> str:
    """The notebook as it is written to disk."""
    return nbformat.writes(notebook) + "\n"


def is_normalised(path: Path) -> bool:
    written = path.read_text(encoding="utf-8")
    return written == text(normalised(nbformat.reads(written, as_version=4)))


def executed(notebook: NotebookNode, folder: Path, timeout: int) -> NotebookNode:
    """A copy run in a fresh kernel, normalised; raises when a cell fails or writes to stderr."""
    notebook = normalised(notebook)
    quiet = ["--log-level=ERROR"]  # the kernel warns about TCP on a local machine
    settings = {"timeout": timeout, "kernel_name": "python3", "record_timing": False, "extra_arguments": quiet}
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, coalesce_streams=True, resources=resources, **settings).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                raise RuntimeError(f"{cell.id} writes to stderr:\n{output.text}")
    return normalised(notebook)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for a cell (default: %(default)s)")
    options = parser.parse_args(arguments)
    failures = 0
    for path in options.files:
        try:
            notebook = executed(nbformat.read(path, as_version=4), path.parent, options.timeout)
        except (CellExecutionError, RuntimeError, TimeoutError) as error:
            failures += 1
            print(f"{path}: {error}", file=sys.stderr)
        else:
            path.write_text(text(notebook), encoding="utf-8", newline="\n")
            print(path)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
