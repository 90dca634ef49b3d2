"""What the package tells a type checker: a strictly typed script passes, and every public name is annotated."""

import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from test_docstrings import ESTIMATORS, entries

import rcpkg

ROOT = Path(__file__).resolve().parents[2]
SOURCES = f"{ROOT}{os.pathsep}{ROOT / 'book'}"
SCRIPT = Path(__file__).with_name("typed_script.py")
PUBLIC = {name: getattr(rcpkg, name) for name in rcpkg.__all__ if inspect.isclass(getattr(rcpkg, name))}


@pytest.mark.slow
def test_a_strictly_typed_script_passes(tmp_path):
    pytest.importorskip("mypy")
    # what is checked is the script; scikit-learn, on which the classes rest, has no types of its own
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}", SCRIPT]
    environment = {**os.environ, "MYPYPATH": SOURCES}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_uses_every_public_class_that_a_reader_constructs():
    text = SCRIPT.read_text(encoding="utf-8")
    bases = {"GenerativeClassifier", "ClosedFormClassifier", "Family", "Statistics", "BregmanDivergence"}
    bases |= {"CalibrationTest", "Comparison"}
    constructed = {name for name, kind in PUBLIC.items() if name not in bases and not issubclass(kind, Exception)}
    counts = {"CategoricalNB", "BernoulliNB", "MultinomialNB", "TAN", "KDependenceBayes"}  # which need other rows
    unused = {name for name in constructed if f"rcpkg.{name}(" not in text and f"rcpkg.{name}.from_arrays(" not in text}
    assert unused == counts


def test_the_script_runs(capsys):
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert not capsys.readouterr().err


@pytest.mark.parametrize("kind", [*ESTIMATORS.values(), rcpkg.Scorer], ids=lambda kind: kind.__name__)
def test_fitted_attributes_have_types(kind):
    typed = {each for base in kind.__mro__ for each in inspect.get_annotations(base)}
    for attribute in set(entries(kind, "Attributes")) - typed:
        found = inspect.getattr_static(kind, attribute)
        assert "return" in inspect.get_annotations(getattr(found, "fget", None) or found.func), attribute


@pytest.mark.parametrize("name", PUBLIC)
def test_public_constructors_and_fits_are_annotated(name):
    for method in ("__init__", "fit", "predict", "predict_proba", "predict_log_proba", "sample", "transform"):
        function = inspect.getattr_static(PUBLIC[name], method, None)
        if inspect.isfunction(function) and function.__module__.startswith("rcpkg"):
            unnamed = [p for p in inspect.signature(function).parameters.values() if p.annotation is p.empty]
            assert [p.name for p in unnamed] == ["self"], f"{name}.{method}: {unnamed}"
