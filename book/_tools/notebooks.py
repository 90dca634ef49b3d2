"""Execute the chapters and store their outputs so that two runs give the same bytes.

Each notebook runs top to bottom in a fresh kernel, in its own folder. What varies without meaning is fixed:
metadata, execution counts, the split of printed text into messages. Cells keep their ids, so that an
inserted cell changes no other. A cell that fails or writes to stderr is an error, and the file stays as it was.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable
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


def merged(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """The outputs, consecutive messages to one stream joined: where the kernel cuts them depends on timing."""
    result: list[NotebookNode] = []
    for output in outputs:
        last = result[-1] if result else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            result.append(output)
    return result


def digest_of(source: str) -> str:
    """Eight characters that tell one source from another."""
    return hashlib.sha256(source.encode()).hexdigest()[:8]


def normalised(notebook: NotebookNode) -> NotebookNode:
    """A copy with everything removed that carries no meaning; empty cells go too, and the second of two equal ids."""
    notebook = nbformat.from_dict(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    ids: set[str] = set()
    for cell in notebook.cells:
        if cell.get("id", "") in ("", *ids):  # two copies of a cell, or a cell written by hand
            cell.id = next(name for k in count() if (name := f"{digest_of(cell.source)}{k or ''}") not in ids)
        ids.add(cell.id)
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)})
        if cell.cell_type == "code":
            if cell.execution_count is not None:
                cell.execution_count = RUN
            cell.outputs = merged(cell.outputs)
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = RUN
    return notebook


def text(notebook: NotebookNode) -> str:
    """The notebook as it is written to disk."""
    return nbformat.writes(notebook) + "\n"


def is_normalised(path: Path) -> bool:
    written = path.read_text(encoding="utf-8")
    return written == text(normalised(nbformat.reads(written, as_version=4)))


def executed(notebook: NotebookNode, folder: Path, timeout: int = 120) -> NotebookNode:
    """A copy run in a fresh kernel, normalised; raises when a cell fails or writes to stderr."""
    notebook = normalised(notebook)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # the kernel warns about TCP on a local machine
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream" and output.name == "stderr":
                raise RuntimeError(f"{cell.id} writes to stderr:\n{output.text}")
    return notebook


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
            path.write_text(text(normalised(notebook)), encoding="utf-8", newline="\n")
            print(path)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
