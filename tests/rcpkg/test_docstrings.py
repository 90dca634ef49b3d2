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
from model_cases import EACH_ESTIMATOR, slow
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import rcpkg
from rcpkg import Family, SharedVarianceGaussianNB
from rcpkg.families import FeatureMap, Hooks
from rcpkg.gaussians.classifier import Grid, GridClassifier

ROOT = Path(__file__).resolve().parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(rcpkg.__path__, "rcpkg.") if not m.name.endswith("__main__")]
COSTLY = "rcpkg.table", "rcpkg.rivals"  # tried by `test_table` and `test_rivals`
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


@pytest.mark.parametrize("module", [*(name for name in MODULES if name not in COSTLY), *slow(*COSTLY)])
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


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
def test_documented_attributes_exist(kind):
    X, y = load_iris(return_X_y=True)
    model = clone(EACH_ESTIMATOR[kind.__name__])
    if kind is rcpkg.RiskCalibrationCV:
        model.set_params(estimator=make_pipeline(SharedVarianceGaussianNB()))  # of which alone it keeps the steps
    elif "n_neighbors" in parameters(kind):
        model.set_params(n_neighbors=[1, 3])
    model.fit(np.rint(10 * X[50:]), y[50:])
    fitted = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")} - EVERYWHERE
    assert set(entries(kind, "Attributes")) <= fitted


def documented() -> dict[str, tuple[object, str | None]]:
    """Full name -> the object that a page of the reference shows, and which members of it: "" for all, or none."""
    found = {}
    for page in sorted((ROOT / "book" / "api").glob("*.md")):
        module = ""
        text = page.read_text("utf-8")
        directives = re.findall(r"^\.\. (\w+):: ([\w.]+)\n((?:   :[\w-]+:.*\n)*)", text, re.MULTILINE)
        for directive, name, options in directives:
            members = re.search(r":members:(.*)", options)
            if directive.endswith("module"):
                module = importlib.import_module(name)
                own = (n for n, value in inspect.getmembers(module) if not n.startswith("_")) if members else ()
                names = [n for n in own if getattr(getattr(module, n), "__module__", "").startswith(name)]
            else:
                names = [name] if "." not in name else []
            for n in names:
                found[f"{module.__name__}.{n}"] = getattr(module, n), members[1].strip() if members else None
    return found


def reference() -> list[tuple[str, object]]:
    """Functions on the pages of the reference, by their full names."""
    return [(name, value) for name, (value, _) in documented().items() if inspect.isfunction(inspect.unwrap(value))]


def test_functions_of_the_reference_name_their_parameters():
    functions = dict(reference())
    missing = {
        name: [p for p in inspect.signature(f).parameters if not re.search(rf"\b{p}\b", inspect.getdoc(f) or "")]
        for name, f in functions.items()
    }
    assert len(functions) > 60
    assert {name: names for name, names in missing.items() if names} == {}
    assert [name for name, function in functions.items() if not inspect.getdoc(function)] == []


# whose methods a class of one's own gives, as on the page A model of your own, and the library calls
EXTENDED = (Family, FeatureMap, Hooks, Grid, GridClassifier)


def public() -> dict[str, tuple[object, str | None]]:
    """Classes and functions of the library that a user meets: in the reference, or in ``__all__`` of it or a room."""
    found = {name: each for name, each in documented().items() if name.startswith("rcpkg")}
    shown = {id(value) for value, _ in found.values()}
    for room in map(importlib.import_module, ["rcpkg", *(name for name in MODULES if "._" not in name)]):
        exported = {name: getattr(room, name) for name in getattr(room, "__all__", ())}
        found |= {f"{room.__name__}.{n}": (value, None) for n, value in exported.items() if id(value) not in shown}
        shown |= {id(value) for value in exported.values()}
    return {name: each for name, each in found.items() if inspect.isclass(each[0]) or inspect.isroutine(each[0])}


def examples(*docstrings: str | None) -> str:
    """The code of the examples, and the errors that they raise."""
    found = (e for text in docstrings for e in doctest.DocTestParser().get_examples(text or ""))
    return "\n".join(e.source + (e.exc_msg or "") for e in found)


def has_example(thing: object, kin: list[type]) -> bool:
    """Whether there is one for a class or function: its own, or of its module or its ``kin``, the classes that it
    inherits from or that inherit from it, one that names it; of a record one of the function that returns it."""
    module, name = sys.modules[thing.__module__], thing.__name__
    fellows = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
    names = "|".join([name, *(kind.__name__ for kind in kin if thing in kind.__mro__)])
    naming = examples(module.__doc__, *(each.__doc__ for each in (*fellows, *kin)))
    makers = [each for each in fellows if getattr(each, "__annotations__", {}).get("return") in (thing, name)]
    return bool(
        examples(thing.__doc__)
        or re.search(rf"\b({names})\b", naming)
        or any(examples(each.__doc__) for each in makers if each is not thing)
    )


def methods(kind: type, members: str | None) -> list[str]:
    """The methods of a class itself that the reference shows, but those of scikit-learn."""
    own = [n for n, value in vars(kind).items() if callable(getattr(value, "__func__", value)) and value.__doc__]
    chosen = members.split(", ") if members else own if members == "" else []
    return [n for n in own if n in chosen and not re.match(r"_|set_\w+_request", n) and not hasattr(BaseEstimator, n)]


def test_every_public_name_has_an_example():
    """A class or function; and each method by one that calls it."""
    found, missing = public(), []
    kinds = [value for value, _ in found.values() if inspect.isclass(value)]
    for name, (value, members) in found.items():
        kin = [kind for kind in kinds if inspect.isclass(value) and (value in kind.__mro__ or kind in value.__mro__)]
        missing += [] if has_example(value, kin) else [name]
        if not inspect.isclass(value) or value in EXTENDED:
            continue
        called = examples(sys.modules[value.__module__].__doc__, *(kind.__doc__ for kind in kin))
        for method in methods(value, members):
            if not re.search(rf"\.{method}\(", called) and not examples(getattr(value, method).__doc__):
                missing.append(f"{name}.{method}")
    assert len(found) > 140 and missing == []


def test_every_block_is_filled_in():
    values = (value for module in MODULES for value in vars(importlib.import_module(module)).values())
    shown = [v.__doc__ for v in values if str(getattr(v, "__module__", None)).startswith("rcpkg") and v.__doc__]
    assert shown and not [text for text in shown if re.search(r"^ *%\(", text, re.MULTILINE)]
