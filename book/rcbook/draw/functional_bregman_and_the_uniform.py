"""Figures and tables of the chapter *Functional Bregman divergences and the uniform*: densities and their errors."""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from rcbook.experiments.studies import estimates_of_the_uniform
from rcbook.figures import ink, label_lines
from rcpkg import plotting, uniform
from rcpkg.base import Array
from rcpkg.bregman.functional import Measure, pointwise, relative_entropy, total_squared_difference

# (estimate, setting) -> line of the estimates that are drawn
LOOKS = {
    ("maximum_likelihood", ""): "--",
    ("bayes_parameter", "best"): ":",
    ("bayes_restricted", "fisher"): "-",
    ("bayes_unrestricted", "fisher"): "-",
}
VIEWED = (1, 2, 3, 5, 10, 30, 155, 300)  # numbers of draws in the table


def means_of_functions(functions: Array, nodes: Array, measure: Measure) -> Figure:
    """Random functions with mean and median, and expected losses of candidates on the line through both."""
    mean, median = functions.mean(axis=0), np.median(functions, axis=0)
    share = np.linspace(-1, 2, 301)
    candidates = mean + share[:, None] * (median - mean)
    bregman = {
        "squared difference": total_squared_difference,
        "relative entropy": relative_entropy,
        "Itakura–Saito": pointwise("itakura_saito"),
    }
    losses = {name: [[d(f, g, measure) for f in functions] for g in candidates] for name, d in bregman.items()}
    losses["absolute difference"] = [[measure.integrate(np.abs(f - g)) for f in functions] for g in candidates]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6))
    left.plot(nodes, functions.T, color="0.7", lw=1)
    left.plot(nodes, mean, color="black", lw=2.6)
    left.plot(nodes, median, "--", color="black")
    for curve, name, where, up in ((mean, "mean", 17, 6), (median, "median", 17, -14)):
        left.annotate(name, (nodes[where], curve[where]), xytext=(0, up), textcoords="offset points", weight="bold")
    left.set(xlabel="t", ylabel="f(t)")
    for place, (name, loss) in enumerate(reversed(losses.items())):
        risk = np.mean(loss, axis=1)
        height = 1.5 * place + (risk - risk.min()) / np.ptp(risk)
        (curve,) = right.plot(share, height)
        right.plot(share[risk.argmin()], height.min(), "o", color=curve.get_color(), ms=7)
        right.text(0.5, height.min() + 0.55, name, color=ink(curve.get_color()), ha="center", weight="bold")
    for at in (0, 1):
        right.axvline(at, color="0.6", lw=0.8, zorder=0)
    right.set(xlabel="candidate", xticks=[0, 1], xticklabels=["mean", "median"], ylabel="expected loss", yticks=[])
    return figure


def densities(draws: Array, estimates: Mapping[str, Any]) -> Figure:
    """The densities that a few draws from the uniform distribution on [0, 1] give."""
    grid = np.linspace(0, 2, 801)
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    for (name, estimate), style in zip(estimates.items(), ("--", "-.", "-", "-")):
        ax.plot(grid, estimate.pdf(grid), style, label=name, lw=2.6 if name == "unrestricted" else 1.4)
    ax.plot(grid, stats.uniform.pdf(grid), ":", color="black", label="truth")
    ax.plot(draws, np.full(len(draws), 0.03), "|", color="black", ms=12)
    ax.set(xlabel="x", ylabel="density")
    ax.legend()
    return figure


def stored_errors() -> pd.DataFrame:
    """The stored squared errors of the estimates that are drawn."""
    table = estimates_of_the_uniform.uniform_errors()
    table["setting"] = table["setting"].fillna("")
    return table[[key in LOOKS for key in zip(table.estimate, table.setting)]]


def squared_errors(table: pd.DataFrame) -> Figure:
    """Exact squared errors as lines, and simulated ones with two standard errors, against the number of draws."""
    figure, ax = plt.subplots(figsize=(6.4, 4.2))
    for ((name, setting), style), marker in zip(LOOKS.items(), plotting.markers):
        rows = table[(table.estimate == name) & (table.setting == setting)]
        finite = np.isfinite(rows.exact)
        label = name.removeprefix("bayes_").replace("_", " ")
        width = 2.6 if "unrestricted" in name else 1.3
        (curve,) = ax.plot(rows.n[finite], rows.exact[finite], style, label=label, lw=width)
        bars = 2 * rows.simulated_se.fillna(0)
        ax.errorbar(rows.n, rows.simulated, yerr=bars, fmt=marker, color=curve.get_color(), ms=3.5, lw=1)
    ax.set(xscale="log", yscale="log", xlabel="draws", ylabel="squared error")
    label_lines(ax)
    return figure


def simulated_beside_exact(table: pd.DataFrame) -> pd.DataFrame:
    """Simulated and exact errors at a few numbers of draws, and their difference in standard errors."""
    table = table.assign(z=(table.simulated - table.exact) / table.simulated_se)
    view = table[table.n.isin(VIEWED)].set_index(["n", "estimate"])
    return view[["simulated", "simulated_se", "exact", "z"]].round(5)


def risks_times_n(sizes: tuple[int, ...] = (3, 5, 10, 100, 10_000)) -> pd.DataFrame:
    """The number of draws times the squared error: of one unknown end, of two, and of squares."""

    def of_size(n: int) -> dict[tuple[str, str], float]:
        one, two = 1 / (2 * n - 1), 2 * (n - 1) / (n * (2 * n - 3))
        library = uniform.expected_squared_error
        return {
            ("one unknown end", "maximum likelihood"): n * library("maximum_likelihood", n),
            ("one unknown end", "unrestricted, N = n"): n * library("bayes_unrestricted", n),
            ("one unknown end", "best, N = n - 1"): n * library("bayes_unrestricted", n, measure=0.0),
            ("two unknown ends", "maximum likelihood"): n * 2 / (n - 2),
            ("two unknown ends", "best"): n * two,
            ("square", "best, two unknown sides"): n * (1 - (1 - one) ** 2),
            ("square", "best, four unknown sides"): n * (1 - (1 - two) ** 2),
        }

    columns = {n: of_size(n) for n in sizes}
    index = pd.MultiIndex.from_tuples(columns[sizes[0]])
    return pd.DataFrame({n: list(column.values()) for n, column in columns.items()}, index=index).round(4)


def errors_of_estimates(
    exact: Callable[..., float], parameter_errors: Callable[[int], list[float]], first: int
) -> pd.DataFrame:
    """Exact errors of all estimates at sizes about the first at which the restricted one is ahead, and two ratios."""
    parameters = [f"parameter, t2 = {t2:g}" for _, t2 in estimates_of_the_uniform.GAMMA_PRIORS]
    restricted = "bayes_restricted"
    errors = pd.DataFrame(
        {
            n: [
                exact("maximum_likelihood", n),
                *parameter_errors(n),
                exact(restricted, n),
                exact("bayes_unrestricted", n),
            ]
            for n in (1, 2, 5, first - 1, first, 10, 100, 300)
        },
        index=["likelihood", *parameters, "restricted", "unrestricted"],
    ).rename_axis(columns="n")
    errors.loc["restricted / best parameter"] = errors.loc["restricted"] / errors.loc[parameters].min()
    errors.loc["restricted, (T A.32) / (da/a)"] = [
        exact(restricted, n, measure="lebesgue") / exact(restricted, n) if n > 1 else np.nan for n in errors
    ]
    return errors
