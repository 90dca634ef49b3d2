"""The tables of *A model of your own*: what a family gives for what, from the signatures of its methods."""

from collections.abc import Iterator
from inspect import signature

from rcpkg.capabilities import FOLLOWS, NEEDS
from rcpkg.families import Family, Hooks


def shown(method: str) -> str:
    """The call of a method of a family, without its types; of a property its name."""
    given = getattr(Hooks, method, None) or getattr(Family, method)
    if isinstance(given, property):
        return method
    return f"{method}({', '.join(list(signature(given).parameters)[1:])})"


def given_for(capability: str) -> list[str]:
    """The methods that a family gives for a ``capability`` of `NEEDS`: without those that follow from others, or that
    every family has."""
    asked = [method for needed in NEEDS[capability] for method in FOLLOWS.get(needed, (needed,))]
    return [method for method in dict.fromkeys(asked) if not hasattr(Family, method)]


def capabilities() -> Iterator[tuple[str, list[str]]]:
    """What is asked of a family, and the calls that it gives for it."""
    for capability in NEEDS:
        yield capability, [shown(method) for method in given_for(capability)]


#: Methods that a family inherits, and gives anew for
REPLACED = {
    "a prior, and its check": ("prepare", "has_prior", "without_prior"),
    "rows in another form": ("encode",),
    "rows or columns that it does not take": ("prepare", "check_complete", "check_full"),
    "a structure learnt with the labels": ("learn_structure",),
    "statistics whose form grows in partial_fit": ("extend_statistics",),
    "gaps in training": ("expected_statistics", "closed_form_statistics"),
    "features of its own form": ("feature_map", "scores"),
    "what log_joint leaves out of log p(x, y)": ("log_base",),
    "Shapley values of log odds over fewer sets": ("dependence",),
}
