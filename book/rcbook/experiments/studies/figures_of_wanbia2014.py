"""The numbers behind the figures of chapter 8, in the place of Figures 1 to 8 of wanbia2014.

``coordinates`` (Figures 1 to 4): the same optimiser on the same rows, at most `ROWS`, from the same start, in five
systems of coordinates, and from naive Bayes in two: iterations and processor time until the gap of −CLL to its least
value found, relative to that of the start where all posteriors are equal, is 10⁻³ and 10⁻⁶. ``traces``
(Figure 2): −CLL after so many iterations, on the sets of that figure that are held whole; ``trace-of-a-part`` on
Localization, of which a tenth is held. ``penalties``
(Figures 6 to 8): two-fold cross-validation for penalties C = 10ˣ. ``streams`` (Figure 5): one row at a time, judged
before it is learnt from; the first `BURN_IN` rows of a stream serve to cut numbers and to choose the learning rate, and
nothing else.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rcbook.experiments.cells import Cell, Record, Study, mean_record
from rcbook.experiments.studies.tables_of_wanbia2014 import (
    OF_DESCENTS,
    PARTS,
    QUICK_ROWS,
    Design,
    Rows,
    bias_and_variance,
    coded,
    design,
    halves,
    posteriors,
    rows_of,
    sizes,
    squared_error,
)
from rcbook.streams import Counts, Steps, columns_of, stochastic_pass
from rcbook.weighted_naive_bayes import maximise_weighted
from rcpkg.base import Array
from rcpkg.families import one_hot

ROWS, MAX_ITER = 5_000, 500
GAPS = (1e-3, 1e-6)
SEPARATED = 1e-3  # a −CLL per row below which, with all rows classified right, the least value is taken to be 0
WIDEST = 600  # columns up to which rows are whitened
SYSTEMS = (
    "natural",
    "closed form",
    "curvature at NB",
    "curvature at start",
    "whitened",
    "natural from NB",
    "closed form from NB",
)
TRACED, TRACED_AFTER = (
    ("census_income_kdd", "covtype", "pendigits", "sign"),
    (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500),
)
EXPONENTS = (-6, -4, -2, 0, 2, 4, 6)
SHOWN = {"satellite": 5, "pendigits": 3, "dermatology": 20, "optdigits": 3}  # rounds of the sets of Figures 7 and 8
PENALTY_ITERATIONS, PENALTY_ROWS = 200, 7_000
STREAMS = ("localization", "census_income_kdd", "covtype", "poker_hand", "connect_4")
BURN_IN, LENGTH, BLOCK, ORDERS = 2_000, 20_000, 1_000, 2
RATES = tuple(10.0**x for x in range(-5, 3))  # wanbia2014 §V
LEARNERS = ("NB", "LR", "WANBIA-C, two passes", "WANBIA-C, other rows first", "WANBIA-C, one pass")


# Coordinates -----------------------------------------------------------------------------------------


def curvature_scale(rows: csr_array, beta: Array) -> Array:
    """1/√h, h the diagonal of the Hessian of −CLL at β: Σ_i x_ik P_iy (1 − P_iy) for indicators x."""
    P = posteriors(rows, beta)
    h = rows.T @ (P * (1 - P))
    return 1 / np.sqrt(np.maximum(h, 1e-9 * h.max()))


def whitened(rows: csr_array) -> tuple[Array, Array]:
    """Rows z = xA whose second moments are I, and A; directions that no row has are left out."""
    moments = (rows.T @ rows).toarray() / rows.shape[0]
    values, vectors = np.linalg.eigh(moments)
    kept = values > 1e-10 * values[-1]
    A = vectors[:, kept] / np.sqrt(values[kept])
    return rows @ A, A


class _Trace:
    """−CLL and processor time of each iterate."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.seconds: list[float] = []
        self.start = time.process_time()

    def __call__(self, intermediate_result: Any) -> None:
        self.values.append(float(intermediate_result.fun))
        self.seconds.append(time.process_time() - self.start)


def traces_of(parts: Design, systems: tuple[str, ...] = SYSTEMS) -> tuple[dict[str, _Trace], bool]:
    """A descent in each of the systems, and whether one ended with all rows right and next to no loss."""
    ones, rows = np.ones_like(parts.scale), parts.train
    zeros = np.zeros_like(ones)
    runs: dict[str, tuple[Any, Array, Array]] = {
        "natural": (rows, ones, zeros),
        "closed form": (rows, parts.scale, zeros),
        "curvature at NB": (rows, curvature_scale(rows, parts.scale), zeros),
        "curvature at start": (rows, curvature_scale(rows, zeros), zeros),
        "natural from NB": (rows, ones, parts.scale),
        "closed form from NB": (rows, parts.scale, ones),
    }
    if "whitened" in systems and rows.shape[1] <= WIDEST:
        z, _ = whitened(rows)
        runs["whitened"] = z, np.ones((z.shape[1], ones.shape[1])), np.zeros((z.shape[1], ones.shape[1]))
    found, separable = {}, False
    for system, (x, scale, start) in ((s, run) for s, run in runs.items() if s in systems):
        found[system] = trace = _Trace()
        fit = maximise_weighted(x, parts.Y, scale, start=start, max_iter=MAX_ITER, tol=0.0, callback=trace)
        scores = x @ (fit.x * scale)
        others = np.where(parts.Y > 0, -np.inf, scores).max(axis=1)
        right = bool(np.all(scores[parts.Y > 0] > others))
        separable |= right and fit.fun / len(scores) < SEPARATED
    return found, separable


def compare_coordinates(cell: Cell, seed: int) -> list[Record]:
    """Iterations and seconds to each gap in each system; None where it is not reached."""
    rows = rows_of(cell.stream, ROWS)
    every = np.arange(len(rows.y))
    parts = design(rows, every, every[:1])
    traces, separable = traces_of(parts)
    first = float(len(rows.y) * np.log(parts.Y.shape[1]))
    least = 0.0 if separable else min(min(trace.values) for trace in traces.values())
    records = [
        Record("", "separable", float(separable)),
        Record("", "rows", len(rows.y)),
        Record("", "columns", parts.scale.shape[0]),
        Record("", "classes", parts.scale.shape[1]),
        Record("", "start", first),
        Record("", "least", least),
    ]
    for system, trace in traces.items():
        records += first_below(system, (np.array(trace.values) - least) / (first - least), trace.seconds)
    return records


def first_below(system: str, gaps: Array, seconds: list[float]) -> list[Record]:
    """Iterations and seconds to each of `GAPS`; None where it is not reached."""
    records = []
    for gap in GAPS:
        at = int(np.argmax(gaps <= gap)) if np.any(gaps <= gap) else None
        name = f"1e{round(np.log10(gap))}"
        records.append(Record(system, f"iterations_{name}", None if at is None else at + 1.0))
        records.append(Record(system, f"seconds_{name}", None if at is None else seconds[at]))
    return records


def trace_descents(cell: Cell, seed: int) -> list[Record]:
    """−CLL per row after each of some numbers of iterations, the last once a descent has ended."""
    rows = rows_of(cell.stream, ROWS)
    every = np.arange(len(rows.y))
    traces, _ = traces_of(design(rows, every, every[:1]), ("natural", "closed form"))
    return [
        Record(system, f"loss_{k}", trace.values[min(k, len(trace.values)) - 1] / len(every))
        for system, trace in traces.items()
        for k in TRACED_AFTER
    ]


# Penalties -------------------------------------------------------------------------------------------


def penalised(parts: Design) -> Iterator[tuple[str, Array]]:
    """Posteriors of the test rows for each penalised model and C, and of the models without."""
    ones = np.ones_like(parts.scale)
    zeros = np.zeros_like(ones)
    yield "NB", posteriors(parts.test, parts.scale)
    for name, scale, start in ("LR", ones, zeros), ("WANBIA-C", parts.scale, ones):
        fit = maximise_weighted(parts.train, parts.Y, scale, start=start, max_iter=PENALTY_ITERATIONS, relative=1e-9)
        yield name, posteriors(parts.test, fit.x * scale)
    for name, scale, center in (
        ("LR+L2", ones, 0.0),
        ("WANBIA-C+L2(0)", parts.scale, 0.0),
        (
            "WANBIA-C+L2(1)",
            parts.scale,
            1.0,
        ),
    ):
        start = np.full_like(ones, center)
        for x in reversed(EXPONENTS):  # from the strongest penalty, each from the optimum of the one before
            fit = maximise_weighted(
                parts.train,
                parts.Y,
                scale,
                penalty=10.0**x,
                center=center,
                start=start,
                max_iter=PENALTY_ITERATIONS,
                relative=1e-9,
            )
            start = fit.x
            yield f"{name} 1e{x}", posteriors(parts.test, fit.x * scale)


def compare_penalties(cell: Cell, seed: int) -> list[Record]:
    """RMSE, 0-1 loss, bias and variance of each model over rounds of two-fold cross-validation."""
    rows, repetitions = rows_of(cell.stream), cell.arguments["repetitions"]
    rng, n = np.random.RandomState(seed % 2**32), len(rows.y)
    predictions: dict[str, NDArray[np.intp]] = {}
    errors: dict[str, Array] = {}
    for round_ in range(repetitions):
        first, second = halves(rows.y, rng)
        for train, test in ((first, second), (second, first)):
            parts, known = design(rows, train, test), np.unique(rows.y[train])
            for name, P in penalised(parts):
                predictions.setdefault(name, np.empty((repetitions, n), np.intp))[round_, test] = known[
                    P.argmax(axis=1)
                ]
                sums = errors.setdefault(name, np.zeros(repetitions))
                sums[round_] += len(test) * squared_error(P, parts.y_test) / n
    records = []
    for name, squares in errors.items():
        wrong = (predictions[name] != rows.y).mean(axis=1)
        for metric, values in ("rmse", np.sqrt(squares)), ("zero_one_loss", wrong):
            single = Record(name, metric, float(values[0]))
            records.append(mean_record(name, metric, values) if repetitions > 1 else single)
        if repetitions > 1:
            bias, variance = bias_and_variance(predictions[name], rows.y)
            records += [Record(name, "bias", bias), Record(name, "variance", variance)]
    return records


# Streams ---------------------------------------------------------------------------------------------


def _learn(learner: str, columns: NDArray, y: NDArray, counts: Counts, scale: Array, rate: float) -> Array:
    """Posteriors of the rows of a stream before each was learnt from; ``scale``: log π, log θ of a first pass."""
    shape = scale.shape
    if learner == "LR":
        return stochastic_pass(columns, y, np.zeros(shape), np.ones(shape), Steps(rate))
    if learner in ("NB", "WANBIA-C, one pass"):
        return stochastic_pass(columns, y, np.ones(shape), counts, Steps(0.0 if learner == "NB" else rate))
    return stochastic_pass(columns, y, np.ones(shape), scale, Steps(rate))


def _first_pass(columns: NDArray, y: NDArray, n_states: NDArray[np.intp], r: int) -> Array:
    """log π and log θ of all rows given."""
    counts = Counts.none(n_states, r, 1.0)
    for at, label in zip(columns, y, strict=True):
        counts.add(at[at >= 0], label)
    return counts.log_probabilities(np.arange(len(counts.feature)))


def learn_stream(cell: Cell, seed: int) -> list[Record]:
    """Squared error ½ Σ_y (Y − P)² and log-loss −log P_y in blocks of rows of each learner, means over two orders."""
    everything = rows_of(cell.stream, BURN_IN + 2 * LENGTH)
    r, found = int(everything.y.max()) + 1, {}
    for order in range(ORDERS):
        drawn = np.random.RandomState((seed + order) % 2**32).permutation(len(everything.y))
        rows = Rows(everything.X[drawn], everything.y[drawn], everything.nominal)
        length = min(LENGTH, (len(drawn) - BURN_IN) // 2)
        burn, stream, other = np.split(np.arange(BURN_IN + 2 * length), [BURN_IN, BURN_IN + length])
        codes, n_states = coded(rows, burn)
        columns, y = columns_of(codes, n_states), rows.y

        def run(learner: str, here: NDArray, before: NDArray, rate: float) -> Array:
            scale = _first_pass(columns[before], y[before], n_states, r)  # noqa: B023
            return _learn(learner, columns[here], y[here], Counts.none(n_states, r, 1.0), scale, rate)  # noqa: B023

        for learner in LEARNERS:
            tried = {rate: squared_error(run(learner, burn, burn, rate), y[burn]) for rate in RATES}
            rate = min(tried, key=tried.__getitem__)
            before = other if learner == "WANBIA-C, other rows first" else stream
            found[learner, order] = rate, run(learner, stream, before, rate), y[stream]
    return _blocks(found, r)


def _blocks(found: dict[tuple[str, int], tuple[float, Array, NDArray]], r: int) -> list[Record]:
    records = []
    for learner in LEARNERS:
        runs = [found[learner, order] for order in range(ORDERS)]
        records += [Record(learner, f"rate_{order}", run[0]) for order, run in enumerate(runs)]
        squares = np.mean([0.5 * ((P - one_hot(y, r)) ** 2).sum(axis=1) for _, P, y in runs], axis=0)
        losses = np.mean([-np.log(np.maximum(P[np.arange(len(y)), y], 1e-300)) for _, P, y in runs], axis=0)
        for start in range(0, len(squares), BLOCK):
            end = min(start + BLOCK, len(squares))
            records.append(Record(learner, f"squared_error_{end}", float(squares[start:end].mean())))
            records.append(Record(learner, f"log_loss_{end}", float(losses[start:end].mean())))
    return records


# Cells -----------------------------------------------------------------------------------------------


def _own_stream(cell: Cell) -> str:
    return cell.row


def _small(cell: Cell) -> bool:
    return sizes()[cell.row] <= QUICK_ROWS


Study("wanbiac-streams", rows=sizes, methods=("all",), protocol=learn_stream, stream=_own_stream,
      where=lambda cell: cell.row in STREAMS, **OF_DESCENTS)  # fmt: skip
Study("wanbiac-coordinates", rows=sizes, methods=("all",), protocol=compare_coordinates, stream=_own_stream,
      quick=_small, where=lambda cell: cell.row not in PARTS, **OF_DESCENTS)  # fmt: skip
Study("wanbiac-traces", rows=sizes, methods=("all",), protocol=trace_descents, stream=_own_stream,
      where=lambda cell: cell.row in TRACED, **OF_DESCENTS)  # fmt: skip
Study("wanbiac-trace-of-a-part", rows=sizes, methods=("all",), protocol=trace_descents, stream=_own_stream,
      where=lambda cell: cell.row == "localization", **OF_DESCENTS)  # fmt: skip
Study(
    "wanbiac-penalties",
    **OF_DESCENTS,
    rows=sizes,
    methods=("all",),
    protocol=compare_penalties,
    arguments=lambda cell: {"repetitions": SHOWN.get(cell.row, 1)},
    stream=_own_stream,
    quick=_small,
    where=lambda cell: cell.row not in PARTS and (sizes()[cell.row] <= PENALTY_ROWS or cell.row in SHOWN),
)
