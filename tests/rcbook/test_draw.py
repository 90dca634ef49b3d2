"""rcbook.draw: what figures and tables of chapters show is what they are given."""

import importlib
import inspect
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rcbook.draw import functional_bregman_and_the_uniform as uniform
from rcbook.draw import when_to_calibrate as views
from rcbook.experiments.studies import honest_comparison as honest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def scores():
    """Every score of every learner on thirty sets; the first learner named is the best everywhere."""
    names = dict.fromkeys(name for family in honest.FAMILIES for name in honest.learners(family))
    table = pd.DataFrame({name: 1 + place + np.arange(30) / 10 for place, name in enumerate(names)})
    return {metric: table for metric in honest.METRICS}


def test_contests_count_who_is_better(scores):
    found = views.contests(scores, "NB", range(30))
    closed, published = honest.learners("NB")[:2]
    assert found["log-loss"][views.short(published), views.short(closed)] == "0/0/30*"
    main = views.main_contests(scores, range(30), "NB", "log_loss")
    assert main.worse["published RC against closed form"] == 30 and main.starred.all()
    groups = {"few": range(3), "many": range(30)}
    both = views.contests_elsewhere(scores, groups, "NB", "log_loss")
    assert both.sum(axis=1).tolist() == [3, 30] * (len(both) // 2)


def test_overview_is_the_mean_over_the_sets(scores):
    found = views.overview(scores, range(4), "log_loss")
    name = honest.learners("NB")[0]
    assert found.loc[views.short(name), "NB"] == f"{scores['log_loss'][name][:4].mean():.3f}"


def test_ranks_are_over_the_sets_that_have_all_learners():
    table = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [2.0, 3, 4, np.nan], "c": [3.0, 1, 5, 6]})
    figure = views.rank_diagrams({"first": table, "second": table.fillna(9.0)})
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["first, 3 data sets", "second, 4 data sets"]


def test_risks_of_the_uniform_tend_to_their_limits():
    """n times the squared error: 2 and 1 for two unknown ends, and of squares twice the errors of a side."""
    found = uniform.risks_times_n((10_000,))[10_000]
    assert found["two unknown ends", "best"] == pytest.approx(1, abs=1e-3)
    assert found["two unknown ends", "maximum likelihood"] == pytest.approx(2, abs=1e-3)
    assert found["square", "best, four unknown sides"] == pytest.approx(2, abs=1e-3)


FOLDED_MODULES = sorted(
    f"rcbook.{room}.{path.stem}"
    for room in ("draw", "trials")
    for path in (ROOT / "book" / "rcbook" / room).glob("*.py")
    if path.stem != "__init__"
)


def functions(module):
    return {name: f for name, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__}


@pytest.mark.parametrize("name", FOLDED_MODULES)
def test_functions_of_chapters_are_annotated_explained_and_used(name):
    module = importlib.import_module(name)
    page = name.split(".")[-1]  # of a chapter, with its supplement, or another
    notebooks = [*ROOT.glob(f"chapters/*_{page}.ipynb"), *ROOT.glob(f"book/{page}.ipynb")]
    text = "".join(notebook.read_text(encoding="utf-8") for notebook in notebooks)
    own = inspect.getsource(module)
    for function, value in functions(module).items():
        unnamed = [p.name for p in inspect.signature(value).parameters.values() if p.annotation is p.empty]
        assert not unnamed and inspect.signature(value).return_annotation is not inspect.Signature.empty, function
        assert value.__doc__, f"{function} says nothing of what it gives"
        used = re.search(rf"\b{function}\b", text) or len(re.findall(rf"\b{function}\b", own)) > 1
        assert used, f"no cell and no other function calls {function}"
