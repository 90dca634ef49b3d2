"""Figures and tables of the chapter *Nearest-neighbour estimates*: votes, thresholds, costs and savings."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rcbook.figures import label_lines, look
from rcpkg.plotting import palette


def with_staircase(ax: Axes, table: pd.DataFrame, text: type, shade: None = None) -> None:
    """Cells of a table, its rows k and its columns cost ratios; the thick line is where the ratio passes k + 1."""
    sizes, ratios = table.index.to_numpy(), table.columns.to_numpy()
    if shade is not None:
        limit = np.abs(shade).max()
        ax.imshow(shade, cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto", alpha=0.6)
    for i, k in enumerate(sizes):
        for j, ratio in enumerate(ratios):
            ax.text(j, i, text(table.loc[k, ratio]), ha="center", va="center")
    first = np.array([(ratios <= k + 1).sum() for k in sizes]) - 0.5
    edges = np.repeat(np.arange(len(sizes) + 1) - 0.5, 2)[1:-1]
    ax.plot(np.repeat(first, 2), edges, color="black", linewidth=2.5)
    ax.set_xticks(range(len(ratios)), [f"{ratio:g}" for ratio in ratios])
    ax.set_yticks(range(len(sizes)), [str(k) for k in sizes])
    ax.set(xlim=(-0.5, len(ratios) - 0.5), ylim=(len(sizes) - 0.5, -0.5), xlabel="cost ratio", ylabel="k")
    ax.grid(False)


def diagonal(rows_of_change: Sequence[tuple[int, float, str]]) -> tuple[pd.DataFrame, Figure]:
    """Which outcomes of the vote smoothing decides anew, by cost ratio."""
    table = pd.DataFrame(rows_of_change, columns=["k", "cost ratio", "anew"])
    table = table.pivot(index="k", columns="cost ratio", values="anew")
    fig, ax = plt.subplots(figsize=(5.4, 3.2))
    with_staircase(ax, table, str)
    return table, fig


def savings_by_ratio(study: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Savings of the smoothed vote by cost ratio, with standard errors."""
    saving = study[study["method"] == "saving"].merge(
        study.loc[study["method"] == "plain", ["dataset", "weights", "k", "cost_ratio", "mean_cost"]],
        on=["dataset", "weights", "k", "cost_ratio"],
        suffixes=("", "_plain"),
    )
    naive = saving["value_se"]  # over halvings, as if they were independent
    for name, error in (
        ("corrected", naive * np.sqrt(1 + saving["n_runs"])),  # as many test rows as training rows
        ("uncorrected", naive),
    ):
        z = saving["mean_cost"] / error.where(error > 0)
        saving[name] = np.select([z > 2, z < -2], ["saves", "costs"], "even")
    saving["relative"] = 100 * saving["mean_cost"] / saving["mean_cost_plain"]
    dependent = saving[(saving["cost_ratio"] <= saving["k"] + 1) & (saving["cost_ratio"] > 1)]
    by = ["weights", "cost_ratio"]
    counts = {
        name: dependent.groupby([*by, name]).size().unstack(fill_value=0)
        for name in ("corrected", "uncorrected")
    }
    counts = {
        name: table.reindex(columns=["saves", "costs", "even"], fill_value=0)
        for name, table in counts.items()
    }
    of_sets = dependent.groupby([*by, "dataset"])["relative"].mean().groupby(by)
    counts["saving, %"] = of_sets.agg(["mean", "sem"]).round(1)
    summary = pd.concat(counts, axis=1).rename_axis(columns=[None, None])
    return dependent, summary


def savings(summary: pd.DataFrame) -> Figure:
    """Savings of the smoothed vote against the cost ratio."""
    savings, ax = plt.subplots(figsize=(6.6, 3.0))
    names = {"tricube": "tricube weights", "uniform": "equal weights"}
    for shift, (weights, title), marker in zip((-0.08, 0.08), names.items(), "Do"):
        part = summary["saving, %"].loc[weights]
        ax.errorbar(
            np.arange(len(part)) + shift,
            part["mean"],
            2 * part["sem"],
            linestyle="none",
            marker=marker,
            color=palette[0] if weights == "uniform" else palette[3],  # as in the picture of all weightings
            capsize=3,
            label=title,
        )
    ax.axhline(0, color="0.4", linewidth=1)
    ax.set(
        xlabel="cost ratio",
        ylabel="saving, % of the\ncost of the vote",
        xticks=range(len(part)),
        xticklabels=[f"{ratio:g}" for ratio in part.index],
    )
    label_lines(ax, {"tricube weights": (3.85, 13, "right"), "equal weights": (4.0, -2, "right")})
    return savings


def costs(uniform: pd.DataFrame) -> Figure:
    """Mean test cost against the cost ratio, for three rules."""
    relative = uniform.assign(best=uniform[["rare", "common"]].min(axis=1))
    fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
    for ax, ratio in zip(axes, (5.1, 20.1, 50.1)):
        part = relative[relative["cost_ratio"] == ratio]
        for method, kind, style in (("plain", "vote", "--"), ("smoothed", "smoothed vote", "-")):
            ratio_to_best = (part[method] / part["best"]).groupby(part["k"]).agg(["mean", "sem"])
            bars = 2 * ratio_to_best["sem"]
            ax.errorbar(
                bars.index, ratio_to_best["mean"], bars, **look(kind), linestyle=style, capsize=2, label=kind
            )
        ax.axhline(1, color="0.5", linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="k", title=f"cost ratio {ratio}")
    axes[0].set_ylabel("cost / best constant decision")
    label_lines(axes[2], {"vote": (4, 6, "left"), "smoothed vote": (1, 0.78, "left")})
    return fig


def hindsight(gain: pd.DataFrame) -> Figure:
    """Savings with the best k, against the cost ratio."""
    of_gain = gain.groupby("cost_ratio").agg(["mean", "sem"])
    hindsight, ax = plt.subplots(figsize=(6.6, 3.0))
    for shift, (method, kind) in zip((-0.08, 0.08), (("plain", "vote"), ("smoothed", "smoothed vote"))):
        ax.errorbar(
            np.arange(len(of_gain)) + shift,
            of_gain[method]["mean"],
            2 * of_gain[method]["sem"],
            linestyle="none",
            **look(kind),
            capsize=3,
            label=kind,
        )
    ax.axhline(0, color="0.4", linewidth=1)
    ax.set(
        xlabel="cost ratio",
        ylabel="saving over the best\nconstant decision, %",
        xticks=range(len(of_gain)),
        xticklabels=[f"{ratio:g}" for ratio in of_gain.index],
    )
    label_lines(ax, {"vote": (0.87, 27, "right"), "smoothed vote": (1.13, 27, "left")})
    return hindsight
