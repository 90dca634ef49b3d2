"""`book/_tools/notebooks.py`: two executions give the same bytes, and what must not be stored is refused."""

import nbformat
import notebooks
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CODE = [
    "import pathlib",
    "print('one'); print('two', flush=True); print('three')\n1 + 1",
    "",
    "pathlib.Path.cwd().name",
]


@pytest.fixture
def stored(tmp_path):
    """A notebook as an editor leaves it: never run in order, with noise in its metadata."""
    cells = [new_markdown_cell("# Title"), *(new_code_cell(code, execution_count=9) for code in CODE)]
    cells[1].metadata.update({"tags": ["hide-input"], "execution": {"iopub.execute_input": "now"}, "collapsed": True})
    path = tmp_path / "chapters" / "example.ipynb"
    path.parent.mkdir()
    nbformat.write(
        new_notebook(cells=cells, metadata={"widgets": {}, "language_info": {"name": "python", "version": "3.11.7"}}),
        path,
    )
    return path


@pytest.mark.slow  # starts two kernels
def test_two_executions_give_the_same_bytes(stored):
    assert not notebooks.is_normalised(stored)
    assert notebooks.main([str(stored)]) == 0
    first = stored.read_bytes()
    assert notebooks.main([str(stored)]) == 0
    assert stored.read_bytes() == first
    assert notebooks.is_normalised(stored)

    notebook = nbformat.read(stored, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 1, 1]  # the empty cell is gone
    assert [out.get("text") for out in code[1].outputs] == ["one\ntwo\nthree\n", None]
    assert code[2].outputs[0].data["text/plain"] == "'chapters'"  # runs in its own folder
    assert code[0].metadata == {"tags": ["hide-input"]}


def test_an_inserted_cell_changes_no_other(stored):
    before = notebooks.normalised(nbformat.read(stored, as_version=4))
    notebook = nbformat.from_dict(before)
    twin = new_code_cell(before.cells[1].source, id=before.cells[1].id, execution_count=7)
    notebook.cells.insert(1, twin)
    after = notebooks.normalised(notebook)
    assert [cell.id for cell in after.cells[2:]] != [cell.id for cell in before.cells[1:]]  # the later twin is renamed
    assert [cell.id for cell in after.cells[3:]] == [cell.id for cell in before.cells[2:]]
    assert len({cell.id for cell in after.cells}) == len(after.cells)


@pytest.mark.slow  # each starts a kernel
@pytest.mark.parametrize(
    "code", ["import sys; print('careful', file=sys.stderr)", "1 / 0", "import time; time.sleep(60)"]
)
def test_failing_cells_are_refused_and_nothing_is_written(stored, code):
    nbformat.write(new_notebook(cells=[new_code_cell(code)]), stored)
    before = stored.read_bytes()
    assert notebooks.main([str(stored), "--timeout", "3"]) == 1
    assert stored.read_bytes() == before
