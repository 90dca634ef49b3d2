"""What a family may give besides, with signatures: the table of *A model of your own* is made of them."""

from collections.abc import Iterator
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.capabilities import FOLLOWS, NEEDS
from rcpkg.families.family import Family
from rcpkg.families.statistics import Statistics


class Hooks(Protocol):
    """Methods of which a `Family` inherits none: what it gives of them buys what the table names.

    X are encoded rows, unless stated otherwise, W weights (n, r), s ``statistics``, θ ``parameters``, η ``natural``.
    """

    def draw(self, parameters: Any, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Rows x_i ~ p(x | y_i; θ) of class numbers y."""
        ...

    def expected_rows(self, X: Array, weights: Array, parameters: Any) -> Any:
        """Σ_y W_iy E[x_i | what there is of x_i, y; θ] of validated rows X, for weights that sum to one in each row;
        ``log_joint`` is then that of the marginals."""
        ...

    def frozen(self, parameters: Any) -> list[dict[str, Any]]:
        """The parts of a `Scorer`: what kind they are, their columns, and the arrays of θ."""
        ...

    def natural_parameters(self, parameters: Any) -> Statistics:
        """η(θ), normalised: log p(x, y) = ⟨η, s(x, y)⟩ + log h(x)."""
        ...

    def mean_parameters(self, parameters: Any) -> Statistics:
        """μ(θ) = E[s(x, y); θ]."""
        ...

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + A_y(η), shape (r,), of any η: log ∫ exp⟨η, s(x, y)⟩ h(x) dx."""
        ...

    def from_natural(self, natural: Statistics) -> Any:
        """θ of any η, which is normalised first."""
        ...

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """``old + change`` to first order, and valid for any change that leaves a positive weight."""
        ...

    def pooled_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ with the class weights observed and as little else that depends on the class; its pseudo-rows m̄."""
        ...

    def grand_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ in which nothing depends on the class, and its pseudo-rows m̄."""
        ...

    def nested_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ of a simpler model that the family contains, and its pseudo-rows m̄."""
        ...

    def features(self, X: Any) -> Array:
        """f(x_i), (n, k): the statistics of a row beside its count, the columns of all parts side by side."""
        ...

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """Means (r, k) of the features within the classes, and covariances (r, k, k) or, if diagonal, variances."""
        ...

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Validated rows drawn from the model given their labels and their statistics, which no parameter enters."""
        ...


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
    "rows in a faster form": ("encode",),
    "rows or columns that it does not take": ("prepare", "check_complete", "check_full"),
    "a structure learnt with the labels": ("learn_structure",),
    "statistics whose form grows in partial_fit": ("extend_statistics",),
    "gaps in training": ("expected_statistics", "closed_form_statistics", "check_complete"),
    "features of its own form": ("feature_map", "scores"),
    "what log_joint leaves out of log p(x, y)": ("log_base",),
    "Shapley values of log odds over fewer sets": ("graph", "missing"),
}
