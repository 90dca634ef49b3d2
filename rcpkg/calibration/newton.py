"""The optimum of conditional likelihood, by quasi-Newton steps in coordinates in which its curvature is the identity.

The curvature is that of some of the rows, as many as cost about what a few passes over all rows do, and is taken anew
after as many passes as it cost; L-BFGS, or conjugate gradients, make up for what these rows lack. On many rows the
search begins on a sample.
"""

from collections import deque
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rcpkg.base import Array
from rcpkg.calibration.features import PASS
from rcpkg.calibration.logistic import Curvature, Evaluation, LogisticObjective, posteriors
from rcpkg.calibration.rules import history_row
from rcpkg.families import Statistics
from rcpkg.linalg import EPS, JITTER, backtracked, jittered_cholesky

MEMORY = 20  # pairs of steps and gradients that L-BFGS keeps


class Costs(NamedTuple):
    """What is faster, counted in multiplications; the counts are of BLAS and numpy, on no data set."""

    call: float = 5e5  # of a pass over the rows, whatever their number
    entry: float = 100.0  # of a posterior
    passes: float = 3.0  # over the rows that a curvature may cost
    longest_stint: int = 20  # iterations with one curvature
    full: int = 1500  # coefficients of a curvature of all classes, at most
    of_class: int = 2500  # and of that of one class


class Samples(NamedTuple):
    """How many rows stand for all, in a curvature and at the start."""

    per_coefficient: int = 20  # rows of a curvature, or of a sample, for each coefficient at least
    of_class: int = 20  # and of each class for each feature
    pseudo: float = 3.0  # rows of each feature that are added to the curvature, since the sample may lack it
    part: int = 10  # of the rows, one in so many, for a search that goes before
    steps: int = 30  # of that search
    guess: int = 1000  # rows for the comparison of first guesses
    tempers: tuple[float, ...] = (0.5, 0.2, 0.08)  # powers of the closed form among these


class Limits(NamedTuple):
    """When a step is good enough, and when the search is over."""

    least_blur: float = 1e-14  # share of equal posteriors in a curvature, where whole steps succeed
    most_blur: float = 1e-2  # and where they do not
    negligible: float = 0.1  # weight of a row for a pair of classes, relative to the mean, that may be left out
    stalled: int = 10  # iterations without a gain, after which rounding is taken to have the say
    patience: int = 50  # iterations of L-BFGS with a curvature for each class, before conjugate gradients take over
    products: int = 200  # of conjugate gradients
    left: float = 0.1  # part of the gradient that these may leave
    little: float = 0.5  # of the mean gain of a product, at which they end far from the optimum: Nash and Sofer's value
    small: float = 1e-9  # gain in nats a row that slopes tell, since values may lack the digits


COSTS, SAMPLES, LIMITS = Costs(), Samples(), Limits()

Record = Callable[[Evaluation, float], bool]


class Iterates:
    """The way of a search: ``history`` has a row for each iterate, the value with it where there is a penalty."""

    def __init__(self, tol: float, penalised: bool) -> None:
        self.tol, self.penalised = tol, penalised
        self.history: list[dict[str, float]] = []
        self.separable, self.value = False, np.nan  # of the last iterate

    def enter(self, at: Evaluation, step: float) -> bool:
        """Add an iterate and its slope, or the length of a Newton step from there; whether separated rows have next to
        no log-loss by now."""
        row = history_row(len(self.history), at.losses, step)
        self.history.append(row | {"objective": at.value} if self.penalised else row)
        self.value, self.separable = at.value, at.separated
        return at.separated and at.losses.log_loss < self.tol

    def record(self, at: Evaluation, length: float) -> bool:
        """Add an iterate and the length of a Newton step from there; whether it is the last."""
        return self.enter(at, length) or length <= self.tol

    def reason(self, max_iter: int) -> str:
        """Why the search ended, as its last iterate shows."""
        if self.separable:
            return "separable"
        if self.history[-1]["step"] <= self.tol:
            return "converged"
        return "max_iter" if len(self.history) > max_iter else "no_step"


class Found(NamedTuple):
    """η where a search ended, the way to it, and why it ended."""

    natural: Statistics
    iterates: Iterates
    stop_reason: str


def stratified(objective: LogisticObjective, size: float, least: int = 30) -> tuple[NDArray[np.intp], Array]:
    """About ``size`` rows, evenly spread over each class, ``least`` of each if it has them; the weight each stands for.

    A class of few rows needs them all: its coefficients are as many as those of others.
    """
    y, index, there = objective.y, [], np.bincount(objective.y, minlength=objective.r)
    for c, n in enumerate(there):
        take = min(n, max(round(n * size / len(y)), least))
        index.append(np.flatnonzero(y == c)[np.linspace(0, n - 1, take).astype(np.intp)])
    rows = np.sort(np.concatenate(index))
    count = (there / np.maximum(np.bincount(y[rows], minlength=len(there)), 1))[y[rows]]
    return rows, count if objective.weight is None else count * objective.weight[rows]


def free_rows(r: int, p: int) -> int | None:
    """How many rows V has: r − 1 where a full curvature of so many coefficients can be had, r where that of each class
    can; None where even that would be too large."""
    if (r - 1) * p <= COSTS.full:
        return r - 1
    return r if p <= COSTS.of_class else None


class Plan(NamedTuple):
    """How a search has its curvature: at a V, with a share of equal posteriors mixed in, for ``stint`` iterations.

    It is ``exact``, or that of some rows or of each class alone; in the latter case ``conjugate`` gradients find
    Newton's steps where it changes slowly: the classes of many do not act apart.
    """

    curvature: Callable[[Array, float], Curvature]
    stint: int
    exact: bool
    conjugate: bool


def plan_of(objective: LogisticObjective) -> Plan:
    """The curvature of as many rows as are worth their cost, by a count of multiplications; it serves for as many
    iterations as it costs passes over the rows."""
    n, p, full = objective.features.n, objective.features.width, objective.full
    k = objective.r - 1 if full else objective.free
    one_pass = 4.0 * n * objective.features.work * k + COSTS.entry * n * k + COSTS.call
    per_row = objective.features.gram_work * k * ((k + 1) / 2 if full else 1)
    solving = PASS.product * (objective.size**3 if full else k * p**3) / 3
    least = SAMPLES.per_coefficient * (k * p if full else p)
    rows = max(COSTS.passes * one_pass / per_row, least)
    part, pseudo = objective, None
    if rows < n and objective.divisible:
        index, weight = stratified(objective, rows, SAMPLES.of_class * p)
        if len(index) < n:
            part = objective.on(index, weight)
            pseudo = SAMPLES.pseudo / len(index) * part.features.usual_squares()

    def curvature(V: Array, blur: float) -> Curvature:
        return part.curvature(V, blur, pseudo, LIMITS.negligible)

    stint = np.clip((part.features.n * per_row + solving) / one_pass, 1, COSTS.longest_stint)
    return Plan(curvature, int(stint), full and pseudo is None, not full and n >= SAMPLES.per_coefficient * p)


def by_newton(objective: LogisticObjective, start: Statistics, tol: float, max_iter: int) -> Found:
    """From the better of the closed form and what a sample of the rows, or a regression, offers."""
    iterates, V = Iterates(tol, objective.penalised), objective.of(objective.features.coefficients(start))
    at = objective(V)
    if not iterates.enter(at, float(np.abs(at.gradient).max())) and max_iter:
        V, at = first_guess(objective, V, at)
        V, _ = minimise(objective, plan_of(objective), V, at, iterates.record, max_iter)
    natural = objective.features.natural(objective.coefficients(V), start)
    return Found(natural, iterates, iterates.reason(max_iter))


def minimise(
    objective: LogisticObjective, plan: Plan, V: Array, at: Evaluation, record: Record, max_iter: int
) -> tuple[Array, Evaluation]:
    """Minimises by L-BFGS in the coordinates of a curvature that follows the iterates, or by Newton's steps.

    A curvature serves for as many passes as it costs, or until a step gains less for each of its passes than a new one
    promises for its own, gᵀH⁻¹g/2. Returns the last V and its evaluation; ``record`` is given each iterate with the
    length √(gᵀH⁻¹g) of a Newton step from there, and says whether to stop.
    """
    pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
    blur, without_gain, age, passes = LIMITS.most_blur, 0, plan.stint, 0

    def valued(end: Array) -> tuple[float, Evaluation]:
        nonlocal passes
        passes += 1
        after = objective(end)
        if promised > LIMITS.small or not np.isfinite(after.value):
            return after.value, after
        return at.value + 0.5 * float(np.vdot(at.gradient + after.gradient, end - V)), after

    for t in range(max_iter):
        g = at.gradient.ravel()
        if age >= plan.stint:
            age, curvature = 0, plan.curvature(V, blur)
            if plan.exact:  # old pairs are not
                pairs.clear()
        if not at.separated and (plan.conjugate or (not objective.full and t >= LIMITS.patience)):
            step, products = conjugate(g, objective.hessian(V), curvature, V.shape)
        else:  # without an optimum no system is worth solving
            step, products = quasi_newton(g, curvature, pairs), 0
        passes, promised = products, 0.5 * float(g @ step)
        end = backtracked(valued, V, at.value, -step.reshape(V.shape), -2 * promised)
        if end is None:
            break
        length, moved, value, after = end
        poor = (at.value - value) * (plan.stint + 1) < promised * passes
        age = plan.stint if poor or curvature.serves_once else age + passes
        blur = min(10 * blur, LIMITS.most_blur) if length < 1 else max(0.1 * blur, LIMITS.least_blur)
        pairs.append(((moved - V).ravel(), after.gradient.ravel() - g))
        without_gain = without_gain + 1 if value >= at.value - 4 * EPS * abs(at.value) else 0
        V, at = moved, after
        if record(at, curvature.length(at.gradient.ravel())) or without_gain == LIMITS.stalled:
            break
    return V, at


def quasi_newton(g: Array, curvature: Curvature, pairs: Collection[tuple[Array, Array]]) -> Array:
    """H⁻¹g with the inverse Hessian of L-BFGS, from a curvature and pairs of steps and changes of the gradient."""
    pairs = [(s, y, s @ y) for s, y in pairs]
    pairs = [(s, y, sy) for s, y, sy in pairs if sy > EPS * np.sqrt((s @ s) * (y @ y))]
    g, shares = g.copy(), []
    for s, y, sy in reversed(pairs):
        shares.append((s @ g) / sy)
        g -= shares[-1] * y
    g = curvature.solve(g)
    for (s, y, sy), share in zip(pairs, reversed(shares)):
        g += (share - (y @ g) / sy) * s
    return g


def conjugate(
    g: Array, product: Callable[[Array], Array], curvature: Curvature, shape: tuple[int, ...]
) -> tuple[Array, int]:
    """About H⁻¹g by conjugate gradients, preconditioned by a curvature, and the number of products with H.

    They end when what is left of g is, in its metric, so small a part that Newton's method converges superlinearly;
    far from the optimum also when a product gains little of the fall of the quadratic model, in the mean of all so far
    (Nash and Sofer, 1990): there the model promises too much to be worth solving.
    """
    x, rest, gained = np.zeros_like(g), g.copy(), 0.0
    z = curvature.solve(rest)
    squared = rest @ z
    far = squared > LIMITS.left**2
    enough, search, products = squared * min(LIMITS.left, np.sqrt(squared)), z, 0
    while squared > enough and products < LIMITS.products:
        bent = product(search.reshape(shape)).ravel()
        along = search @ bent
        if along <= EPS * squared:
            break
        products += 1
        x += (squared / along) * search
        rest -= (squared / along) * bent
        gain = squared**2 / along
        gained += gain
        if far and products * gain < LIMITS.little * gained:
            break
        z = curvature.solve(rest)
        squared, before = rest @ z, squared
        search = z + (squared / before) * search
    return (x, products) if products else (z, 0)


def first_guess(objective: LogisticObjective, V: Array, at: Evaluation) -> tuple[Array, Evaluation]:
    """Where the search on all rows begins, for a start V: the optimum on a sample, to the accuracy of that, if this is
    a small part of the rows; otherwise a guess. None but V if that is better still."""
    n, coefficients = objective.features.n, objective.size
    size = max(n / SAMPLES.part, SAMPLES.per_coefficient * coefficients)
    if size > n / 4:
        W = guess(objective, V)
    else:
        part = objective.on(*stratified(objective, size, SAMPLES.of_class * objective.features.width))
        enough = np.sqrt(0.1 * coefficients / size)
        start = first_guess(part, V, part(V))
        W, _ = minimise(part, plan_of(part), *start, lambda at, length: length < enough, SAMPLES.steps)
    found = objective(W)
    return (W, found) if found.value < at.value else (V, at)


def guess(objective: LogisticObjective, V: Array) -> Array:
    """What has the least log-loss on some rows: a regression, or a power of the model of V, since naive Bayes may be
    far too sure of itself."""
    index = np.arange(0, objective.features.n, -(-objective.features.n // SAMPLES.guess))
    y, some, W = objective.y[index], objective.features.dense(index), regression(objective)
    S = V @ some
    candidates = [(W, W @ some), *((t * V, t * S) for t in SAMPLES.tempers)]
    values = [posteriors(T, y, objective.r)[1].loss.mean() + objective.penalty(U)[0] for U, T in candidates]
    return candidates[int(np.argmin(values))][0]


def regression(objective: LogisticObjective) -> Array:
    """The first Newton step from equal posteriors, B_y = −r G⁻¹ g_y with G = Σ φφᵀ/m: a least-squares regression."""
    r, (G, sums) = objective.r, objective.second_moments()
    g = sums.sum(axis=0) / r - sums
    return objective.of(-r * jittered_cholesky(G + r * objective.penalty_matrix(), JITTER[1:]).solve(g.T).T)
