"""Figures and tables of the chapter *TM, DFE and gradient descent*: paths, races, divisions, costs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import minimize

from rcbook import experiments
from rcbook.figures import label_lines, look
from rcpkg.base import Array


def toy_ways(
    log_likelihood: Callable[..., Any],
    toy: Any,
    toy_X: Array,
    toy_Y: Array,
    highest: Array,
    T_rows: int,
    ends: Mapping[str, tuple[Array, Array]],
    arrived: Mapping[str, Array],
) -> Figure:
    """How many sets have arrived, and one path of each way."""
    m1, m2 = np.meshgrid(np.linspace(-1.2, 2.2, 60), np.linspace(2.2, 5.0, 60))
    surface = np.array(
        [log_likelihood(toy, toy_X, np.array(m), toy_Y) for m in zip(m1.ravel(), m2.ravel())]
    ).reshape(m1.shape)
    figure, (ax, counted) = plt.subplots(1, 2, figsize=(7.6, 3.7))
    ax.contour(
        m1,
        m2,
        surface,
        levels=highest[0] * T_rows - np.array([3, 2, 1.4, 1, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.005]),
        colors="0.75",
        linewidths=0.8,
        linestyles="solid",
    )
    kinds = ("published", "extended Baum-Welch", "TM", "gradient")
    dashes = {"TM": "-.", "gradient": "--"}
    for (way, (path, _)), kind in zip(ends.items(), kinds):
        style = look(kind) | {"linestyle": dashes.get(kind, "-")}
        ax.plot(
            *path[:, 0].T,
            **style,
            markersize=3.5,
            markevery=3,
            linewidth=1,
        )
        counted.plot(arrived[way], **style, markevery=6, markersize=4, label=way)
    at_best = minimize(lambda m: -log_likelihood(toy, toy_X, m, toy_Y), ends["TM"][0][-1, 0]).x
    ax.plot(*at_best, "x", color="black", markersize=9)
    ax.set(xlabel="mean of class 1", ylabel="mean of class 2")
    counted.set(xlabel="updates", ylabel="sets within 0.001", ylim=(0, 200))
    label_lines(counted)
    return figure


def race(
    race: Mapping[str, Callable[..., Any]], gaps: Mapping[str, Array], small_gaps: Mapping[str, Array]
) -> Figure:
    """Log-loss above its minimum against iterations, in two panels."""
    kinds = ("published", "TM", "safe", "gradient", "L-BFGS")
    styles = {title: look(kind) for title, kind in zip(race, kinds)}
    hollow = {"linestyle": "--", "markerfacecolor": "white"}
    styles["safe RC, not accelerated"] = look("safe") | hollow
    styles["gradient, lr = 0.1"] = look("gradient") | {"linestyle": "-."}
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.0), sharey=True)
    for ax, panel in zip(axes, (gaps, small_gaps)):
        for title, above in panel.items():
            resolved = above > 1e-8  # what follows the last of these is rounding
            shown = np.where(resolved, above, np.nan)[: resolved.nonzero()[0][-1] + 1]
            ax.semilogy(shown, **styles[title], markevery=8, label=title)
        ax.set(xlabel="iterations")
    axes[0].set(ylabel="log-loss above the optimum")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def within(gaps: Mapping[str, Array], least: float) -> dict[str, int | None]:
    """Iterations to the gap, None where it is not reached."""
    return {title: int(np.argmax(g < least)) if (g < least).any() else None for title, g in gaps.items()}


def iterations_of_the_race(gaps: Mapping[str, Array], small_gaps: Mapping[str, Array]) -> pd.DataFrame:
    """Iterations until the log-loss is near its minimum, in the two panels."""
    return pd.DataFrame(
        {
            "to 1e-3, left": within(gaps, 1e-3),
            "to 1e-4, right": within(small_gaps, 1e-4),
        }
    )


def shown(table: pd.DataFrame, digits: int) -> pd.DataFrame:
    """Numbers with so many digits, dashes for missing ones."""
    return table.map(
        lambda v: (
            "–"
            if pd.isna(v)
            else str(v)
            if isinstance(v, bool)
            else f"{v:.{0 if float(v).is_integer() else digits}f}"
        )
    ).rename_axis(index=None, columns=None)


def iterations_of_all() -> tuple[
    pd.DataFrame, pd.DataFrame, list[str], list[str], pd.DataFrame, dict[str, str]
]:
    """Iterations until the training log-loss is near its infimum."""
    stored = experiments.results("study", "iterations-needed")
    stored["case"] = stored.model + ", " + stored.dataset
    bench = stored[stored.target == "none"]
    order = list(dict.fromkeys(bench.learner))
    cases = list(dict.fromkeys(bench.sort_values("model", kind="stable").case))
    counts = bench.pivot(index="case", columns="learner", values="iterations")
    short = {
        "RC, lr = 0.1": "RC",
        "gradient descent, lr = 0.1": "GD",
        "scikit-learn lbfgs": "lbfgs",
        "scikit-learn newton-cholesky": "newton",
    }
    return stored, bench, order, cases, counts, short


def costs(
    bench: pd.DataFrame, cases: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.Series]:
    """Ratios of safe RC to RC with the fixed rate and to scikit-learn, and the runs that they are of."""
    ours = bench[bench.learner == "safe RC"].set_index("case")
    fixed = bench[bench.learner == "RC, lr = 0.1"].set_index("case")
    rest = bench[bench.learner.str.startswith("scikit-learn")]
    seconds = rest.groupby("case").seconds.min().reindex(ours.index)
    lbfgs = rest[rest.learner == "scikit-learn lbfgs"].set_index("case")
    summary = pd.DataFrame(
        {
            "iterations, of lr = 0.1": ours.iterations / fixed.iterations.fillna(fixed.most),
            "time, of the faster scikit-learn": ours.seconds / seconds,
            "memory, of scikit-learn lbfgs": ours.megabytes / lbfgs.megabytes,
            "separable": ours.separable,
            "rows": ours.n,
            "features": ours.d,
            "classes": ours.r,
        }
    ).loc[cases]
    return summary, ours, fixed, rest, lbfgs, seconds


def hopes(
    bench: pd.DataFrame, fixed: pd.DataFrame, summary: pd.DataFrame, ours: pd.DataFrame, seconds: pd.Series
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three hopes, on how many sets they come true, and on which not."""
    tm = bench[bench.learner == "TM"].set_index("case")
    stuck = fixed.iterations.isna() & (fixed.gap == tm.gap)  # both at the start
    quarter = summary["iterations, of lr = 0.1"] <= 0.25
    quarter |= stuck & ours.iterations.notna()
    quadratic = summary[summary.index.str.startswith("QDA")]
    # to arrive alone counts as faster; where neither arrives nothing is said
    arrives = ours.seconds.notna() | seconds.notna()
    faster = ours.seconds < seconds.fillna(np.inf)
    faster = faster[quadratic.index[arrives[quadratic.index]]]
    tenth = quadratic["memory, of scikit-learn lbfgs"] <= 0.1
    print("RC with lr = 0.1 gets no nearer than its start:", "; ".join(stuck.index[stuck]))
    view = pd.DataFrame(
        {
            title: {
                "true of": f"{met.sum()} of {len(met)}",
                "not of": "; ".join(met.index[~met]),
            }
            for title, met in (
                ("at most a quarter of the iterations of lr = 0.1", quarter),
                ("QDA in less time than scikit-learn", faster),
                ("QDA in a tenth of scikit-learn's memory", tenth),
            )
        }
    ).T
    return quadratic, view


def times_of_passes(
    rest: pd.DataFrame, ours: pd.DataFrame, lbfgs: pd.DataFrame, quadratic: pd.DataFrame
) -> pd.DataFrame:
    """Passes, iterations and times on small sets."""
    arrived = rest.dropna(subset="seconds")
    fastest = arrived.loc[arrived.groupby("case").seconds.idxmin()]
    fastest = fastest.set_index("case")
    solving = fastest.seconds - fastest.features_seconds
    return pd.DataFrame(
        {
            "features": ours.d * (ours.d + 3) // 2,
            "passes": ours.passes,
            "ms a pass": 1e3 * ours.seconds / ours.passes,
            "iterations": fastest.iterations,
            "ms an iteration": 1e3 * solving / fastest.iterations,
            "ms to make the features": 1e3 * fastest.features_seconds,
            "numbers a row, safe RC": ours.megabytes * 1e6 / 8 / ours.n,
            "numbers a row, lbfgs": lbfgs.megabytes * 1e6 / 8 / lbfgs.n,
        }
    ).loc[quadratic.index]


def iterations_with_a_target(stored: pd.DataFrame, cases: Sequence[str]) -> pd.DataFrame:
    """Iterations to the regularised optimum."""
    penalised = stored[stored.target == "pooled"]
    needed = penalised.pivot(index="case", columns="learner", values="iterations")
    of_safe = penalised[penalised.learner == "safe RC"].set_index("case")
    of_lbfgs = penalised[penalised.learner == "L-BFGS"].set_index("case")
    of_fixed = penalised[penalised.learner == "RC, lr = 0.1"].set_index("case")
    ways = needed.loc[cases, ["RC, lr = 0.1", "safe RC", "L-BFGS"]]
    ways["share of lr = 0.1"] = of_safe.iterations / of_fixed.iterations.fillna(of_fixed.most)
    ways["time over L-BFGS"] = of_safe.seconds / of_lbfgs.seconds
    quarter = ways["share of lr = 0.1"] <= 0.25
    print(
        f"at most a quarter of the iterations of lr = 0.1: {quarter.sum()} of",
        len(quarter),
    )
    return ways
