"""Calibration of a stream: a stochastic step of mirror ascent a block, drawn to the closed form of all rows so far."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.constants import FADING, LARGEST_BLOCK
from rcpkg.calibration.objective import Pass, sample_size
from rcpkg.calibration.rules import Losses, calibration_weights
from rcpkg.checks import check_class_prior, check_weights
from rcpkg.columns import as_labels, in_columns
from rcpkg.families import ClosedFormClassifier, Family, Statistics, class_counts
from rcpkg.families.portions import numbered
from rcpkg.linalg import HALVINGS
from rcpkg.rows import Block


class Online(NamedTuple):
    """What is known after some blocks of a stream.

    Attributes
    ----------
    closed_form : ClosedFormClassifier
        Of all rows so far.
    drawn_to : Statistics, optional
        m μ of its parameters, m being the weight of these rows; None while they do not suffice for it.
    model : ClosedFormClassifier
        The calibrated model; the closed form while these rows do not suffice.
    history : list of dict
        For each block its losses before anything was learnt from it, and the length of the step.
    gained : float
        What the log-loss of the closed form was above that of the calibrated model, summed over the rows so far, before
        they were learnt from, of which `LARGEST_BLOCK` count `FADING` times as much as the next.
    """

    closed_form: ClosedFormClassifier
    drawn_to: Statistics | None
    model: ClosedFormClassifier
    history: list[dict[str, float]]
    gained: float = 0.0

    @property
    def predictor(self) -> ClosedFormClassifier:
        """The calibrated model or, while it has predicted worse, the closed form."""
        return self.closed_form if self.gained < 0 else self.model

    @property
    def frequencies(self) -> Array:
        """Shares of the classes in all rows so far."""
        count = class_counts(self.closed_form.statistics_)
        return count / count.sum()


def after(
    before: Online | None, closed_form: ClosedFormClassifier, block: Block, b: float, class_prior: Any = None
) -> Online:
    """What is known after a further ``block`` of rows, which ``closed_form`` has taken in already.

    With m μ̄ for the statistics that the closed form draws to, and Δ for the change of these by the block, of n rows,
    the statistics s of the model go to s + Δ + lr · s(X, Y − P), lr = min(1/b, m/n); P are the posteriors before, for
    the class weights ``class_prior`` if these are given. The last term is bent as a safe step is, to be valid; where
    s + Δ is not, what s is beyond m μ̄ is halved until it is.
    """
    if closed_form.parameters_ is None:
        return Online(closed_form, None, closed_form, [])
    family = closed_form.family_.without_prior()
    drawn_to = sample_size(closed_form.statistics_) * family.mean_parameters(closed_form.parameters_)
    if before is None or before.drawn_to is None:
        return Online(closed_form, drawn_to, closed_form._with_family(family, drawn_to), [])
    given, block = block, numbered(closed_form, block)
    if not block.n:
        return before
    counted = before.closed_form.statistics_, before.model.statistics_, before.drawn_to
    by_counts, *extended = (_extended(before.closed_form, given, statistics) for statistics in counted)
    old, drawn_before = (model.statistics_ for model in extended)
    block = block._replace(X=family.encode(block.X))
    offset = None
    if class_prior is not None:
        offset = np.log(check_class_prior(class_prior, closed_form.classes_)) - np.log(before.frequencies)
    gradient, sums = Pass(family, family.parameters(old), calibration_weights, offset)(block)
    lr = min(1 / b, sample_size(drawn_before) / block.total_weight)
    statistics = family.safe_update(_valid(family, drawn_to, old - drawn_before), lr * gradient)
    losses = Losses(*(sums / block.total_weight).tolist())
    counting = by_counts.family_  # with the prior, if any, that its rows asked for
    by_counting = Pass(counting, counting.parameters(by_counts.statistics_), calibration_weights, offset)(block)
    loss_of_counting = Losses(*(by_counting.losses / block.total_weight).tolist()).log_loss
    history = {"iteration": len(before.history), **losses._asdict(), "step": lr}
    history["closed_form_log_loss"] = loss_of_counting
    kept = FADING ** (block.total_weight / LARGEST_BLOCK) * before.gained
    gained = kept + block.total_weight * (loss_of_counting - losses.log_loss)
    model = closed_form._with_family(family, statistics)
    return Online(closed_form, drawn_to, model, [*before.history, history], gained)


def portions(X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[Any, Any, Array | None]]:
    """Rows, labels and weights of a block in equal parts that count no more than `LARGEST_BLOCK` rows, or one row."""
    check_consistent_length(X, y, sample_weight)
    X, y = in_columns(X), as_labels(y)
    n, weight = _num_samples(X), None if sample_weight is None else check_weights(sample_weight, _num_samples(X))
    most = max(n, 0 if weight is None else weight.sum()) / LARGEST_BLOCK
    for rows in np.array_split(np.arange(n), min(max(int(np.ceil(most)), 1), max(n, 1))):
        of_part = None if weight is None else weight[rows]
        if of_part is None or of_part.any():
            yield _safe_indexing(X, rows), _safe_indexing(y, rows), of_part


def _valid(family: Family, drawn_to: Statistics, beyond: Statistics) -> Statistics:
    """The sum, or the first of ``drawn_to`` + ``beyond`` / 2, / 4, … that is valid."""
    for halvings in range(HALVINGS):
        statistics = drawn_to + 0.5**halvings * beyond
        try:
            family.parameters(statistics)
        except InvalidStatistics:
            continue
        return statistics
    return drawn_to


def _extended(model: ClosedFormClassifier, block: Block, statistics: Statistics) -> ClosedFormClassifier:
    """The ``model`` of the statistics, with the states that a further block adds to those which it knows."""
    model = copy(model)
    X, y = model._check_rows(block.X, block.y, reset=False)
    model.statistics_ = statistics
    model._extend(Block(X, y, block.weight).counting().X)
    return model
