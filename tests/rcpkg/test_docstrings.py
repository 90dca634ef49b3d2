"""Every estimator documents itself: its own parameters and attributes, and examples that are run here."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import rcpkg
from rcpkg import SharedVarianceGaussianNB

ROOT = Path(__file__).resolve().parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(rcpkg.__path__, "rcpkg.") if not m.name.endswith("__main__")]
ABSTRACT = ("ClosedFormClassifier", "GenerativeClassifier")
PUBLIC = {name: getattr(rcpkg, name) for name in rcpkg.__all__ if name not in ABSTRACT}
ESTIMATORS = {n: kind for n, kind in PUBLIC.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)}
DOCUMENTED = {**ESTIMATORS, "BregmanDivergence": rcpkg.BregmanDivergence}
EVERYWHERE = {"n_features_in_", "feature_names_in_"}  # attributes that scikit-learn explains
each_documented = pytest.mark.parametrize("kind", DOCUMENTED.values(), ids=DOCUMENTED)


@cache
def sections(kind: type) -> dict[str, str]:
    """The sections of a numpydoc docstring by their titles; what stands above the first has the title ''."""
    parts = re.split(r"^(\w+)\n-{3,}$", inspect.getdoc(kind), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def entries(kind: type, title: str) -> dict[str, str]:
    """Name -> type of the entries of a section, whose descriptions are indented.

    Names without a type, side by side, are explained where another class documents them: "As in `QDA`".
    """
    found = {}
    for entry in re.split(r"^(?=\S)", sections(kind).get(title, ""), flags=re.MULTILINE)[1:]:
        head, _, text = entry.partition("\n")
        names, described, given = head.partition(" : ")
        assert re.match(r"    \S", text), f"{names} is not described"
        if described:
            found[names] = given
        else:
            home = entries(getattr(rcpkg, re.match(r"    As in `(\w+)`", text)[1]), title)
            found |= {name: home[name] for name in names.split(", ")}
    return found


def parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Constructor parameters; scikit-learn's own constructor has none."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p for name, p in inspect.signature(kind).parameters.items() if p.kind in named}


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    """All examples in the source of a module are found and give what they print."""
    module = importlib.import_module(module)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module):
        runner.run(test)
    written = re.findall(r"^\s*>>> ", inspect.getsource(module), re.MULTILINE)
    assert runner.summarize(verbose=False) == (0, len(written))


@each_documented
def test_docstring_has_a_summary_and_an_example(kind):
    summary = inspect.getdoc(kind).partition("\n\n")[0]
    assert summary.endswith(".") and not summary.startswith(kind.__name__ + "(")
    assert re.search(rf"^>>> .*\b{kind.__name__}\(", sections(kind)["Examples"], re.MULTILINE)


@each_documented
def test_parameters_are_documented_with_their_defaults(kind):
    """Exactly those of the constructor, each with its default."""
    documented, actual = entries(kind, "Parameters"), parameters(kind)
    assert set(documented) == set(actual)
    for name, described in documented.items():
        default = actual[name].default
        stated = re.search(r", default=(.+)$", described)
        if default is None:
            assert described.endswith(", optional"), name
        elif default is inspect.Parameter.empty:
            assert not stated and "optional" not in described, name
        else:
            assert stated, name
            assert _value(stated[1], kind) == default, name


def _value(text, kind):
    """The value of a default: a literal, or the name of a constant in backticks."""
    if text.startswith("`"):
        return getattr(sys.modules[kind.__module__], text.strip("`"))
    return ast.literal_eval(text)


def _instance(kind):
    if kind is rcpkg.ProductModel:
        return kind([("all", SharedVarianceGaussianNB(), slice(None))])
    if kind is rcpkg.TableClassifier:
        return kind(cv=2, budget=0.0)
    if kind is rcpkg.Mixture:
        return kind(SharedVarianceGaussianNB(), n_components=2)
    if kind is rcpkg.RiskCalibrationCV:
        return kind(make_pipeline(SharedVarianceGaussianNB()))  # of which alone it keeps the steps
    if "estimator" in parameters(kind):
        return kind(SharedVarianceGaussianNB())
    return kind(n_neighbors=[1, 3]) if "n_neighbors" in parameters(kind) else kind()


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
def test_documented_attributes_exist(kind):
    X, y = load_iris(return_X_y=True)
    model = _instance(kind).fit(np.rint(10 * X[50:]), y[50:])
    fitted = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")} - EVERYWHERE
    assert set(entries(kind, "Attributes")) <= fitted


def reference() -> list[tuple[str, object]]:
    """Functions on the pages of the reference, by their full names."""
    found = []
    for page in sorted((ROOT / "book" / "api").glob("*.md")):
        module = ""
        directives = re.findall(r"^\.\. (\w+):: ([\w.]+)\n((?:   :\w+:\n)*)", page.read_text("utf-8"), re.MULTILINE)
        for directive, name, options in directives:
            if directive.endswith("module"):
                module = importlib.import_module(name)
            names = [name] if directive == "autofunction" else []
            if directive == "automodule" and ":members:" in options:
                own = (n for n, value in inspect.getmembers(module) if not n.startswith("_"))
                names = [n for n in own if getattr(getattr(module, n), "__module__", "").startswith(name)]
            found += [(f"{module.__name__}.{n}", getattr(module, n)) for n in names]
    return [(name, value) for name, value in found if inspect.isfunction(inspect.unwrap(value))]


def test_functions_of_the_reference_name_their_parameters():
    functions = dict(reference())
    missing = {
        name: [p for p in inspect.signature(f).parameters if not re.search(rf"\b{p}\b", inspect.getdoc(f) or "")]
        for name, f in functions.items()
    }
    assert len(functions) > 60
    assert {name: names for name, names in missing.items() if names} == {}
    assert [name for name, function in functions.items() if not inspect.getdoc(function)] == []


def test_every_block_is_filled_in():
    shown = [text for module in MODULES for _, text in _docstrings(importlib.import_module(module))]
    assert shown and not [text for text in shown if re.search(r"^ *%\(", text, re.MULTILINE)]


def _docstrings(module):
    own = (value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__)
    return [(value, value.__doc__) for value in own if getattr(value, "__doc__", None)]
