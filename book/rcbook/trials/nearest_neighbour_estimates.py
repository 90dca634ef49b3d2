"""What the checks of the chapter *Nearest-neighbour estimates* try: votes, costs and decisions."""

from math import log

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import beta
from scipy.stats import dirichlet

from rcpkg.base import Array
from rcpkg.local import least_cost, smoothed_probabilities


def smoothed_votes() -> tuple[pd.Series, Array]:
    """Risks of estimates of votes under Bregman losses and the absolute loss."""
    losses = {
        "squared": lambda t, s: (t - s) ** 2,
        "logistic": lambda t, s: t * log(t / s) + (1 - t) * log((1 - t) / (1 - s)),
        "absolute (not Bregman)": lambda t, s: abs(t - s),
    }
    # votes of k neighbours for two classes, also of unequal weight, and prior pseudo-counts below and above one
    votes = {(1.0, 1.0): (3.0, 1.0), (0.5, 0.5): (0.0, 4.0), (2.5, 2.5): (1.3, 2.7), (0.5, 2.0): (3.0, 1.0)}
    rows = []
    for pseudo, alpha in votes.items():
        counts = np.add(pseudo, alpha)
        star, (b, a) = counts[1] / counts.sum(), counts - 1.0
        whole = beta(a + 1, b + 1)
        for name, loss in losses.items():

            def risk(s, loss=loss, a=a, b=b, whole=whole):
                return quad(lambda t: loss(t, s) * t**a * (1 - t) ** b / whole, 0, 1, points=[s])[0]

            options = {"bounds": (0.01, 0.99), "method": "bounded", "options": {"xatol": 1e-9}}
            rows.append((name, minimize_scalar(risk, **options).x - star))
    off = pd.DataFrame(rows, columns=["loss", "off"]).set_index("loss")["off"].abs()
    bregman = ~off.index.str.contains("not Bregman")
    return off, bregman


def smoothing_of_costs() -> tuple[Array, Array, list[bool]]:
    """Expected costs under smoothed votes of four classes less those of the theorem; smoothed votes of the library less
    Laplace's; and, where all classes have one expected cost under the prior mean, whether decisions stay."""
    rng, off, stay = np.random.default_rng(304), [], []
    for _ in range(500):
        pseudo, alpha, C = rng.uniform(0.2, 3, 4), rng.multinomial(7, [0.25] * 4) * 1.0, rng.uniform(size=(4, 4))
        k, size = alpha.sum(), pseudo.sum()
        smoothed, prior = (alpha + pseudo) / (k + size), C @ pseudo / size
        off.append(C @ smoothed - (k * C @ alpha / k + size * prior) / (k + size))
        level = C - prior[:, None]
        stay.append((level @ smoothed).argmin() == (level @ alpha).argmin())
    counts = rng.multinomial(9, [0.2, 0.3, 0.5], 50)
    return np.array(off), smoothed_probabilities(counts) - (counts + 1) / 12, stay


def decisions_with_costs() -> tuple[np.random.Generator, list[bool]]:
    """Decisions by drawn probabilities and by the smoothed vote, for random costs."""
    rng = np.random.default_rng(303)
    alike = []
    for _ in range(200):
        C, alpha = (rng.uniform(0, 10, (4, 4)) * (1 - np.eye(4)), rng.multinomial(6, [0.25] * 4))
        drawn = (
            dirichlet(alpha + 1).rvs(20_000, random_state=rng) @ C.T
        )  # cost of each decision, for each drawn theta
        exact = C @ smoothed_probabilities(alpha)
        margin = np.diff(np.sort(exact))[0]
        if margin > 5 * drawn.std(axis=0).max() / np.sqrt(len(drawn)):  # decided beyond the noise of drawing
            alike.append(drawn.mean(axis=0).argmin() == exact.argmin())
    return rng, alike


def changed_decisions(
    rng: np.random.Generator,
) -> tuple[list[tuple], list[bool], list[bool], list[bool], Array, Array]:
    """Votes at which smoothing changes the decision, for all counts."""
    rows_of_change, thresholds, constant, counts_anew = [], [], [], []
    for k in (1, 3, 5, 9, 15, 25, 51):
        n1 = np.arange(k + 1.0)
        votes = np.column_stack([k - n1, n1])
        for ratio in (2.1, 5.1, 10.1, 20.1, 50.1):
            C, t = np.array([[0, ratio], [1, 0]]), 1 / (1 + ratio)
            plain, smooth = (least_cost(smoothed_probabilities(votes, s), C) for s in (0.0, 1.0))
            changed = n1[plain != smooth]
            thresholds += [*(plain == (n1 > k * t)), *(smooth == (n1 > k * t - (1 - 2 * t)))]
            constant.append((ratio > k + 1) == bool(smooth.all()))
            predicted = [np.floor(k * t)] if np.floor(k * t) > k * t - (1 - 2 * t) else []
            counts_anew.append(list(changed) == predicted)
            anew = f"{int(changed[0])}" if changed.size else "–"
            rows_of_change.append((k, ratio, "all" if smooth.all() else anew))
    zero_one = 1 - np.eye(3)
    counts = rng.multinomial(8, [0.3, 0.3, 0.4], 2000)
    unique_best = np.sort(counts, axis=1)[:, -1] > np.sort(counts, axis=1)[:, -2]
    before, after = (least_cost(smoothed_probabilities(counts[unique_best], s), zero_one) for s in (0.0, 1.0))
    return rows_of_change, thresholds, constant, counts_anew, before, after
