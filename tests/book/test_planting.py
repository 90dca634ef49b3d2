"""Errors that a machine plants: what sees them and what does not, on checks of three lines."""

import io
from contextlib import redirect_stdout

import numpy as np
import planting
import pytest
from rcbook.checking import checked, exceeds, gap, holds, measured
from test_planted_errors import restored


def outcomes(source):
    namespace = {"np": np, "checked": checked, "gap": gap, "holds": holds, "exceeds": exceeds, "measured": measured}
    with redirect_stdout(io.StringIO()):
        return list(planting.planted(source, namespace, restored))


def unseen(source):
    return {(found.kind, found.site.text) for found in outcomes(source) if found.result == "unseen"}


def test_a_close_comparison_sees_factor_sign_transposition_and_missing_term():
    source = """a, b = np.arange(4.0).reshape(2, 2), np.ones((2, 2))
stated = a @ a + b
off = [stated - (np.dot(a, a) + 1)]
checked("one", gap("products", off, 1e-12))"""
    found = outcomes(source)
    assert {of.kind for of in found if of.result == "seen"} == {"factor", "sign", "transposed", "missing"}
    assert not unseen(source)


def test_a_wide_tolerance_is_blind():
    source = """x = np.linspace(0, 1, 50)
checked("one", gap("means", x.mean() - x.sum() / 50, 0.1))"""
    assert ("factor", "x.sum() / 50 in x.mean() - x.sum() / 50") in unseen(source)


def test_an_error_in_the_data_is_an_identity():
    source = """rng = np.random.default_rng(1)
x = rng.normal(size=9) + 3
checked("one", gap("sums", np.sum(x) - x.sum(), 1e-9))"""
    assert {of.result for of in outcomes(source) if "normal" in of.site.text} == {"identity"}


@pytest.mark.parametrize(("bound", "blind"), [("x.max()", False), ("2 * x.max()", True)])
def test_a_bound_that_is_not_attained_is_blind(bound, blind):
    source = f"""x = np.linspace(0, 1, 50)
bound = {bound}
checked("one", holds("bounded", x <= bound))"""
    assert (("tighter", "x <= bound") in unseen(source)) is blind


@pytest.mark.parametrize(("tolerance", "blind"), [(4, False), (40_000, True)])
def test_draws_of_another_law_are_seen(tolerance, blind):
    source = f"""rng = np.random.default_rng(2)
x = rng.normal(size=10_000)
error = np.std(x**2) / 100
checked("one", measured("variance", (np.mean(x**2) - 1) / error, {tolerance}))"""
    assert (("law", "rng.normal") in unseen(source)) is blind
