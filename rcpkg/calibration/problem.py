"""What every calibration works on: a model, data and a rule, and the iterates they are evaluated to."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration.rules import Losses, Rule, losses, mean_losses, row_losses
from rcpkg.families import ClosedFormClassifier, Statistics


def sample_size(statistics: Statistics) -> float:
    """Total weight m of statistics: the sum of their class counts."""
    first = next(iter(statistics))
    return sample_size(first) if isinstance(first, Statistics) else float(first.sum())


@dataclass
class Iterate:
    """A model on the way: its statistics and parameters, and what one pass over the data tells of it."""

    statistics: Statistics
    parameters: Any
    gradient: Statistics
    losses: Losses
    objective: float
    natural: Statistics | None = None
    mean: Statistics | None = None
    validation_loss: float | None = None


@dataclass
class Problem:
    """Model, data and rule: all that an iterate is evaluated on."""

    model: ClosedFormClassifier
    X: Any
    Y: Array
    sample_weight: Array | None
    rule: Rule
    objective_loss: str = "log_loss"
    target: Statistics | None = None
    target_weight: float = 0.0
    target_size: float = 0.0
    validation: tuple[Array, NDArray[np.intp], Array | None] | None = None
    settled: Any = None  # parameters of the closed form, where it had to be settled that they exist
    warm_start: Statistics | None = None  # of the optimum with another weight of the same target
    y: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        self.y = self.Y.argmax(axis=1)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return float(len(self.y) if self.sample_weight is None else self.sample_weight.sum())

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return len(self.y) if self.sample_weight is None else int(np.count_nonzero(self.sample_weight))

    def weights(self, log_P: Array, rows: Any) -> Array:
        """diag(w) · rule(P, Y) on some rows, overwriting their log posteriors."""
        W = self.rule(np.exp(log_P, out=log_P), self.Y[rows])
        return W if self.sample_weight is None else W * self.sample_weight[rows, None]

    def evaluate(self, statistics: Statistics, parameters: Any = None) -> Iterate:
        """One pass over the data; raises `InvalidStatistics` if the statistics give no valid model."""
        if parameters is None:
            parameters = self.model.parameters(statistics)
        log_prior = self.model.log_class_probabilities(parameters)
        by_row = np.empty((3, len(self.y)))

        def weigh(joint: Array, rows: slice) -> Array:
            log_P = log_posterior(joint, log_prior)
            by_row[:, rows] = row_losses(log_P, self.y[rows])
            return self.weights(log_P, rows)

        gradient = self.model.weighted_statistics(self.X, parameters, weigh)
        means = mean_losses(by_row, self.sample_weight)
        objective = -self.total_weight * getattr(means, self.objective_loss)
        if self.target_weight:
            gradient = gradient + self.target_weight * self.target
            objective += self.target_weight * self.target.dot(self.model.natural_parameters(parameters))
        iterate = Iterate(statistics, parameters, gradient, means, objective)
        if self.validation is not None:
            X, y, weight = self.validation
            log_P = log_posterior(self.model.log_joint(X, parameters), log_prior)
            iterate.validation_loss = losses(log_P, y, weight).log_loss
        return iterate

    def natural(self, iterate: Iterate) -> Statistics:
        """η of an iterate, computed once."""
        if iterate.natural is None:
            iterate.natural = self.model.natural_parameters(iterate.parameters)
        return iterate.natural

    def mean(self, iterate: Iterate) -> Statistics:
        """μ of an iterate, computed once."""
        if iterate.mean is None:
            iterate.mean = self.model.mean_parameters(iterate.parameters)
        return iterate.mean

    def distance(self, a: Iterate, b: Iterate) -> float:
        """m [KL(a ‖ b) + KL(b ‖ a)] = m ⟨μ_a − μ_b, η_a − η_b⟩ between joint models; zero if the model gives no μ."""
        if not hasattr(self.model, "mean_parameters"):
            return 0.0
        (mu_a, eta_a), (mu_b, eta_b) = ((self.mean(i), self.natural(i)) for i in (a, b))
        divergence = mu_a.dot(eta_a) - mu_a.dot(eta_b) - mu_b.dot(eta_a) + mu_b.dot(eta_b)
        return sample_size(a.statistics) * max(divergence, 0.0)

    def step(self, statistics: Statistics, gradient: Statistics, lr: float, share: float = 1.0) -> Statistics:
        """[s + lr · (s(X, W) + b s̄)] / (1 + lr b m̄/m): implicit in the target, hence stable for every b.

        ``gradient`` is s(X, W) + b s̄, or what a ``share`` of the rows gives of it.
        """
        moved = statistics + lr * gradient
        if not self.target_weight:
            return moved
        return moved / (1 + lr * share * self.target_weight * self.target_size / sample_size(statistics))

    def ascent(self, iterate: Iterate) -> Statistics:
        """The direction s(X, W) + b (s̄ − (m̄/m) s) of a step, which has the length lr / (1 + lr b m̄/m)."""
        return iterate.gradient - self.pull(iterate.statistics) * iterate.statistics

    def pull(self, statistics: Statistics) -> float:
        """b m̄/m."""
        return self.target_weight * self.target_size / sample_size(statistics)

    def promised_gain(self, iterate: Iterate) -> float:
        """⟨g, Δη⟩ / (m + b m̄): what a plain safe step of length one gains to first order, per row and pseudo-row.

        It is the square of the gradient g in the metric of the model, hence of no unit, and zero at a stationary point
        alone. With a target F is strongly concave relative to ψ: near its maximum F* the rest (F* − F) / (m + b m̄) is
        at most (m + b m̄) / (2 b m̄) times it. It is infinite for a model without natural parameters.
        """
        if not hasattr(self.model, "natural_parameters"):
            return np.inf
        ascent, size = self.ascent(iterate), self.total_weight + self.target_weight * self.target_size
        try:
            statistics = self.model.safe_update(iterate.statistics, (sample_size(iterate.statistics) / size) * ascent)
            natural = self.model.natural_parameters(self.model.parameters(statistics))
        except InvalidStatistics:  # rounding can make a covariance singular that is not so in exact arithmetic
            return np.inf
        return abs(ascent.dot(natural) - ascent.dot(self.natural(iterate))) / size

    def label_statistics(self) -> Statistics:
        """s(X, Y), rows counting by their weights."""
        labels = self.Y if self.sample_weight is None else self.Y * self.sample_weight[:, None]
        return self.model.statistics(self.X, labels)
