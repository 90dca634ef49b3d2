"""What the checks of the chapter *The scorecard* try: errors, verdicts and false alarms."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.stats import t

from rcbook.experiments.scorecard import verdict
from rcpkg.base import Array


def verdicts_at_borders() -> tuple[dict[str, int | str], list[tuple], tuple[str, ...]]:
    """Verdicts on numbers at a border, and the expected ones."""
    rounded = {"read_as": "rounded", "rule": "deterministic"}
    cut = dict(read_as="truncated", rule="statistical", z=3, slack=0, published_runs=5)
    nan = np.nan
    cases = [  # printed, half a unit, ours, standard deviation, runs, rule, verdict
        (0.25, 0.0005, 0.2504, nan, 1, rounded, "reproduced"),
        (0.25, 0.0005, 0.2506, nan, 1, rounded, "differs"),
        (24, 0.5, 24.99, 0.0, 20, cut, "reproduced"),
        (24, 0.5, 25.00, 0.0, 20, cut, "differs"),
        (24, 0.5, 23.99, 0.0, 20, cut, "differs"),
        (24, 0.5, 26.49, 1.0, 20, cut, "statistically consistent"),  # 1.49 < 1.5
        (24, 0.5, 26.51, 1.0, 20, cut, "differs"),
        (nan, nan, nan, nan, 1, rounded, "reproduced"),
        (nan, nan, 3.0, nan, 1, rounded, "differs"),
    ]
    names = ("printed", "half_unit", "value", "std", "n_runs")
    return cut, cases, names


def false_alarms(
    cut: Mapping[str, int | str], names: tuple[str, ...]
) -> tuple[Callable[..., Any], list[tuple], Array, Array, Array, Array]:
    """Simulated shares of false alarms beside their bound."""

    def alarms(draw, unit, n, p, repetitions=4000, seed=0):
        """Share of correct printed numbers that the rule condemns; draw(rng, size) gives runs."""
        rng = np.random.default_rng(seed)
        rule = {**cut, "published_runs": p}
        ours = draw(rng, (repetitions, n))
        printed = np.floor(draw(rng, (repetitions, p)).mean(axis=1) / unit) * unit
        cells = zip(printed, ours.mean(axis=1), ours.std(axis=1, ddof=1))
        found = [verdict(dict(zip(names, (v, unit / 2, mean, std, n))), rule) for v, mean, std in cells]
        return np.mean(np.array(found) == "differs")

    def normal(rng, size):
        return rng.normal(20, 3, size)

    pairs = [(20, 5), (100, 100), (20, 100), (20, 1)]  # n, p
    coarse, fine = np.array(
        [[alarms(normal, unit, n, p, seed=n + p) for n, p in pairs] for unit in (1, 0.001)]
    )
    bound = np.array([2 * t.sf(3, n - 1) for n, _ in pairs])
    standard_error = np.sqrt(bound / 4000)
    return alarms, pairs, coarse, fine, bound, standard_error
