"""`to_bif`: what is written can be read again, and says what the model says; names become words."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from model_cases import network_rows
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from rcpkg import TAN, CategoricalNB, KDependenceBayes
from rcpkg.families.bif import to_bif

WORD = r"[A-Za-z][A-Za-z0-9_]*"


def read(text):
    """States of each variable, and of each its parents and p(own | parents) by the states of both."""
    text = re.sub(r"//.*", "", text)
    blocks = re.findall(rf"variable ({WORD}) \{{\s*type discrete \[ (\d+) \] \{{ ([^}}]*) \}};\s*\}}", text)
    states = {name: of.split(", ") for name, _, of in blocks}
    assert all(len(states[name]) == int(number) for name, number, _ in blocks)
    tables = {}
    for own, of, body in re.findall(rf"probability \( ({WORD})(?: \| ([^)]*))? \) \{{([^}}]*)\}}", text):
        table = {}
        for given, numbers in re.findall(r"(?:table|\(([^)]*)\)) ([^;]*);", body):
            for state, p in zip(states[own], numbers.split(", "), strict=True):
                table[(*filter(None, given.split(", ")), state)] = float(p)
        tables[own] = (of.split(", ") if of else [], table)
    assert sorted(tables) == sorted(states)
    assert all(re.fullmatch(WORD, word) for of in states.values() for word in of)
    return states, tables


def log_joint(text, places):
    """log p(y, x) of a row of places of states, for each class, from what was written alone."""
    states, tables = read(text)
    names, joint = list(states), []
    for y in range(len(states[names[0]])):
        row = {name: states[name][place] for name, place in zip(names, (y, *places))}
        joint.append(sum(np.log(t[(*(row[f] for f in of), row[own])]) for own, (of, t) in tables.items()))
    return joint


@pytest.mark.parametrize("structure", [None, [[], [0], [0, 1], [2]], [[], [], [0, 1], [2, 0]]], ids=str)
def test_what_is_written_is_the_model(structure):
    model = (TAN() if structure is None else KDependenceBayes(structure=structure)).fit(*network_rows())
    text = to_bif(model)
    every = np.array(list(itertools.product(*map(range, model.n_states_))))
    assert_allclose([log_joint(text, x) for x in every], model.predict_joint_log_proba(every), rtol=1e-12)


ODD = ["a b", "a_b", "a-b", "2", "class", "größe; {", "Type"]


def test_names_become_words_no_two_alike():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["x y", "x_y", "-1", "1", "  "], size=80) for name in ODD})
    model = TAN().fit(X, rng.choice(["no // }", "no"], size=80))
    text = to_bif(model)
    states, _ = read(text)
    assert list(states) == ["class", "a_b", "a_b_2", "a_b_3", "v2", "class_2", "gr__e___", "vType"]
    assert states["a_b"] == ["v__", "v_1", "v1", "x_y", "x_y_2"]
    assert "// 'größe; {'" in text and "//   x_y_2 = 'x_y'" in text
    places = [np.searchsorted(c, v) for c, v in zip(model.categories_, X.iloc[0])]
    assert_allclose(log_joint(text, places), model.predict_joint_log_proba(X.iloc[:1])[0], rtol=1e-12)


def test_only_fitted_networks_are_written():
    with pytest.raises(TypeError, match="model must be a TAN or a KDependenceBayes; got CategoricalNB"):
        to_bif(CategoricalNB())
    with pytest.raises(NotFittedError):
        to_bif(TAN())
