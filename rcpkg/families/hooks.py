"""What a family may give besides, with signatures: the table of *A model of your own* is made of them."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.families.statistics import Statistics


class Hooks(Protocol):
    """Methods of which a `Family` inherits none: what it gives of them buys what the table names.

    X are encoded rows, unless stated otherwise, W weights (n, r), s ``statistics``, θ ``parameters``, η ``natural``.

    >>> from rcpkg import QDA
    >>> family = QDA().fit([[0.0], [1.0], [3.0], [5.0]], [0, 0, 1, 1]).family_
    >>> hasattr(family, "pooled_parameters"), hasattr(family, "nested_parameters")
    (True, False)
    """

    def draw(self, parameters: Any, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Rows x_i ~ p(x | y_i; θ) of class numbers y."""

    def expected_rows(self, X: Array, weights: Array, parameters: Any) -> Any:
        """Σ_y W_iy E[x_i | what there is of x_i, y; θ] of validated rows X, for weights that sum to one in each row;
        ``log_joint`` is then that of the marginals."""

    def frozen(self, parameters: Any) -> list[dict[str, Any]]:
        """The parts of a `Scorer`: what kind they are, their columns, and the arrays of θ."""

    def natural_parameters(self, parameters: Any) -> Statistics:
        """η(θ), normalised: log p(x, y) = ⟨η, s(x, y)⟩ + log h(x)."""

    def mean_parameters(self, parameters: Any) -> Statistics:
        """μ(θ) = E[s(x, y); θ]."""

    def class_log_partition(self, natural: Statistics) -> Array:
        """η_0y + A_y(η), shape (r,), of any η: log ∫ exp⟨η, s(x, y)⟩ h(x) dx."""

    def from_natural(self, natural: Statistics) -> Any:
        """θ of any η, which is normalised first."""

    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        """``old + change`` to first order, and valid where the classes together keep a positive weight."""

    def pooled_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ with the class weights observed and as little else that depends on the class; its pseudo-rows m̄."""

    def grand_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ in which nothing depends on the class, and its pseudo-rows m̄."""

    def nested_parameters(self, statistics: Statistics) -> tuple[Any, float]:
        """θ of a simpler model that the family contains, and its pseudo-rows m̄."""

    def features(self, X: Any) -> Array:
        """f(x_i), (n, k): the statistics of a row beside its count, the columns of all parts side by side."""

    def moments(self, parameters: Any) -> tuple[Array, Array]:
        """Means (r, k) of the features within the classes, and covariances (r, k, k) or, if diagonal, variances."""

    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        """Validated rows drawn from the model given their labels and their statistics, which no parameter enters."""
