"""The README's example runs as printed."""

import re

import pytest
from conftest import ROOT


@pytest.mark.slow  # in the quick suite `test_rivals` compares two tables
def test_example_runs_as_printed(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    heads, *rows, complete, hidden = capsys.readouterr().out.splitlines()
    losses = {tuple(row.split()[:2]): [float(number) for number in row.split()[-4:]] for row in rows}
    assert heads.split() == ["condition", "learner", "log_loss", "error", "difference", "std_error"]
    assert len(rows) == 8 and {condition for condition, _ in losses} == {"complete", "hidden"}
    assert 0 < losses["complete", "rcpkg"][0] < losses["hidden", "rcpkg"][0] < 1
    verdict = "use it|tie|undecided|take [a-z ]+"
    assert re.fullmatch(f"complete: ({verdict})", complete) and re.fullmatch(f"hidden: ({verdict})", hidden)
