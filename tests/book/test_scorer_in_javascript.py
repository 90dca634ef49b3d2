"""The scorer of book/_static/scorer.js gives the posteriors of the library in a browser."""

from pathlib import Path

import numpy as np
import pytest
from model_cases import MODELS, fitted, network_rows

from rcpkg import CategoricalNB, KDependenceBayes

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "book" / "_static" / "scorer.js"
SCORE = """([text, rows]) => {
  const scorer = rcpkgScorer(JSON.parse(text));
  return rows.map((row) => scorer.predictProba(row));
}"""


@pytest.fixture(scope="module")
def opened(browser):
    opened = browser.new_page()
    opened.add_script_tag(path=SCRIPT)
    yield opened
    opened.close()


def assert_same_posteriors(opened, model, X):
    """Of rows of which none, a third and two thirds of the values are hidden in turn."""
    rng, rows = np.random.default_rng(0), X[:45].astype(object)
    rows[rng.uniform(size=rows.shape) < np.resize([0.0, 1 / 3, 2 / 3], len(rows))[:, None]] = None
    scorer = model.scorer()
    ours = [scorer.predict_proba(row) for row in rows]
    theirs = opened.evaluate(SCORE, [scorer.to_json(), rows.tolist()])
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("Multinomial")])
def test_posteriors_of_each_model_and_with_gaps(opened, name):
    model, X, *_ = fitted(name)
    assert_same_posteriors(opened, model, X)


def test_networks_that_are_not_decomposable_names_and_impossible_rows(opened):
    X, y = network_rows()
    assert_same_posteriors(opened, KDependenceBayes(k=2, decomposable=False).fit(X, y), X)
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "z"]] * 3, dtype=object)
    assert_same_posteriors(opened, CategoricalNB().fit(X, [0, 1, 1, 0] * 3), X[:, ::-1])
