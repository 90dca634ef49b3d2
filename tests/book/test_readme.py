"""The README's example runs as printed, on a table such as a reader has."""

import math
import re

from conftest import ROOT
from sklearn.datasets import load_wine


def test_example_runs_on_a_table(tmp_path, monkeypatch, capsys):
    wine = load_wine(as_frame=True)
    wine.data.assign(label=wine.target_names[wine.target]).to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    closed_form, published, calibrated = map(float, capsys.readouterr().out.split())
    without_features = -math.log(len(wine.target_names))
    assert all(without_features < score < 0 for score in (closed_form, published))
    assert max(closed_form, published) < calibrated < 0
