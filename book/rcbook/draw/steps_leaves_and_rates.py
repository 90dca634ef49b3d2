"""Figures and tables of the chapter *Steps, leaves and rates*: paths, leaves, curvature, steps."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rcbook.figures import label_lines, look
from rcpkg import QDA, CategoricalNB, InvalidStatistics, RiskCalibration, plotting
from rcpkg.base import Array
from rcpkg.calibration import steps as library


def leaf_and_fibre(ways: Mapping[str, Array]) -> Figure:
    """Paths of five learners, in natural and in mean parameters, over leaves and fibres."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 4.0))

    def logits(way):
        return np.log(way / (1 - way.sum(axis=-1, keepdims=True)))

    grid = np.linspace(0.02, 0.98, 60)
    for total in (0.5, 0.6, 0.7, 0.8, 0.9):  # leaves
        leaf_of = np.column_stack([total * grid, total * (1 - grid)])
        for ax, points in ((left, logits(leaf_of)), (right, leaf_of)):
            ax.plot(*points.T, color="0.8", linewidth=1, zorder=0)
    for ratio in (0.5, 1.0, 2.5 ** (1 / 3), 2.5, 5.0):  # fibres
        a = np.linspace(0.01, 0.98, 200) * ratio / (1 + ratio)
        fibre = np.column_stack([a, a / ratio])
        bold = ratio == 2.5 ** (1 / 3)
        for ax, points in ((left, logits(fibre)), (right, fibre)):
            ax.plot(
                *points.T,
                color="0.35" if bold else "0.7",
                linestyle="--",
                linewidth=1.6 if bold else 0.8,
                zorder=0,
            )
    styles = ("-", "-.", ":", ":", ":")
    kinds = ("published", "gradient", "generative target", "target")
    colours = [*(look(kind)["color"] for kind in kinds), "black"]
    for (title, way), style, colour in zip(ways.items(), styles, colours):
        for ax, points in ((left, logits(way)), (right, way)):
            width = 5 if title == "RC" else 2
            ax.plot(
                *points.T,
                style,
                color=colour,
                linewidth=width,
                label=title,
                alpha=0.4 if title == "RC" else 1.0,
            )
            ax.plot(*points[0], "s", color=colour, markersize=5)
            ax.plot(*points[-1], "o", color=colour, markersize=5)
    for at, text in (
        ((0.578, 0.212), "leaf of the\nclosed form"),
        ((0.585, 0.335), "fibre of the\nmaximisers"),
    ):
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        right.annotate(text, at, ha="center", fontsize=9, color="0.2", bbox=ground)
    left.set(
        xlim=(-1.3, 1.0),
        ylim=(-1.7, 0.6),
        xlabel="log of p₀ / p₁",
        ylabel="log of p₂ / p₁",
    )
    right.set(xlim=(0.2, 0.65), ylim=(0.1, 0.45), xlabel="p₀", ylabel="p₂")
    left.set_title("natural parameters η")
    right.set_title("mean parameters μ")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def paths_over_moments(moments: Mapping[float, Array], inwards: Array) -> Figure:
    """Paths of RC in the plane of the first two moments, on overlapping and on separable rows."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for ax, end in ((left, 3.5), (right, 0.2)):
        grid = np.linspace(-end, end, 200)
        ax.fill_between(grid, grid**2, -10, color="0.9", linewidth=0)
        ax.plot(grid, grid**2, color="0.4", linewidth=1)
    offsets = ((-16, 16), (16, -28), (12, -4))  # of the labels, off the paths
    for c, colour in enumerate(plotting.palette[:3]):
        for rate, style, marker in ((2.0, ":", "x"), (0.5, "-", "o")):
            x, xx = moments[rate][:, :, c].T
            left.plot(x, xx, style, color=colour, linewidth=1)
            left.plot(x[-1:], xx[-1:], marker, color=colour, markersize=6)
        left.plot(*moments[0.5][0, :, c], "s", color=colour, markersize=4)
        left.annotate(f"class {c}", moments[0.5][0, :, c], offsets[c], textcoords="offset points")
    right.plot(*inwards[::10].T, color=plotting.palette[1], marker=".", linewidth=1)
    right.plot(*inwards[0], "s", color=plotting.palette[1], markersize=4)
    right.annotate("inner class", inwards[0], (-8, 0), textcoords="offset points", ha="right")
    left.set(xlabel="E(x | y)", ylabel="E(x² | y)", xlim=(-3, 3), ylim=(-5, 12))
    right.set(xlabel="E(x | y)", xlim=(-0.1, 0.16), ylim=(-0.005, 0.14))
    left.set_title("overlapping rows")
    right.set_title("separable rows")
    return figure


def first_step(model: QDA, X: Array, labels: Array, lr: float = 1.0) -> str:
    """Whether the first step of RC climbs, falls or is invalid."""
    try:
        history = (
            RiskCalibration.as_published(
                model,
                on_invalid="raise",
                learning_rate=lr,
                max_iter=1,
                stopping="none",
            )
            .fit(X, labels)
            .history_
        )
    except InvalidStatistics:
        return "invalid"
    return "falls" if history.log_loss.iloc[1] > history.log_loss.iloc[0] else "climbs"


def first_steps() -> pd.DataFrame:
    """How first steps with a rate of one end, for rows of the right and of a wrong model."""
    draws = np.random.default_rng(3)
    table = {}
    for size in (12, 40, 200):
        labels = np.arange(size) % 2
        for title, model, sampler in (
            (
                "QDA, its own model",
                QDA(rows_per_feature=0.0),
                lambda z, c: z * (1 + c[:, None]) + c[:, None],
            ),
            (
                "naive Bayes, 8 copies",
                CategoricalNB(prior_strength=1.0),
                lambda z, c: np.tile(np.digitize(z[:, :1] + c[:, None], [0, 1]), (1, 8)).astype(float),
            ),
        ):
            outcome = [first_step(model, sampler(draws.normal(size=(size, 2)), labels), labels) for _ in range(60)]
            table[title, size] = pd.Series(outcome).value_counts()
    return pd.DataFrame(table).T.reindex(columns=["climbs", "falls", "invalid"]).fillna(0).astype(int)


def endings_of_first_steps(table: pd.DataFrame) -> Figure:
    """How 60 first steps end, for each number of rows."""
    endings, axes = plt.subplots(2, 1, figsize=(5.8, 4.2), sharex=True)
    colours = {"climbs": plotting.palette[0], "falls": plotting.palette[1], "invalid": "0.3"}
    for ax, (title, part) in zip(axes, table.groupby(level=0, sort=False)):
        left, at = np.zeros(len(part)), np.arange(len(part))
        for outcome, colour in colours.items():
            ax.barh(at, part[outcome], left=left, color=colour, label=outcome)
            for place, start, count in zip(at, left, part[outcome]):
                if count:
                    middle = start + count / 2
                    ax.text(middle, place, f"{count}", ha="center", va="center", color="white")
            left = left + part[outcome].to_numpy()
        ax.set(title=title, ylabel="rows", yticks=at)
        ax.set_yticklabels(part.index.get_level_values(1))
        ax.grid(False)
        ax.invert_yaxis()
    axes[-1].set_xlabel("first steps")
    endings.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return endings


def bounds_by_copies(limits: pd.DataFrame, copies: tuple[int, ...]) -> Figure:
    """Bounds on the learning rate against the number of copies of a feature."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    styles = ("--", ":", "-", "-.")
    for (title, line), style, colour in zip(limits.items(), styles, plotting.palette):
        ax.plot(line, style, color=colour, marker="o", markersize=3, label=title)
    ax.axhline(0.1, color="0.5", linewidth=1)
    ax.annotate("lr = 0.1", (2, 0.1), (0, 3), textcoords="offset points")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="copies of one feature",
        ylabel="learning rate",
        ylim=(0.01, 30),
    )
    ax.set_xticks(copies, [f"{d}" for d in copies])
    ax.minorticks_off()
    places = {
        "longest valid first step": (70, 4.2, "right"),
        "1/L at the closed form": (7.4, 14, "left"),
        "2/L at the optimum": (16, 0.3, "left"),
        "2 over the bound of part 2": (14, 0.033, "right"),
    }
    label_lines(ax, places)
    return figure


def gaps_and_bounds(short: Mapping[str, tuple[Array, Array]]) -> Figure:
    """How much CLL lacks of its maximum along RC, beside the bound by the number of updates."""
    gaps, axes = plt.subplots(1, 3, figsize=(7.8, 3.0), sharey=True)
    for ax, (name, (lacks, bound)) in zip(axes, short.items()):
        t = np.arange(1, 101)
        resolved = lacks > 1e-8  # what follows is rounding
        ax.semilogy(t[resolved], lacks[resolved], **look("published"), markevery=10, label="RC")
        ax.semilogy(t, bound, color="0.4", linestyle="--", label="bound with t updates")
        ax.set(title=name, xlabel="updates")
    axes[0].set_ylabel("CLL short of its maximum")
    label_lines(axes[0], {"RC": (18, 5e-3, "left"), "bound with t updates": (102, 8, "right")})
    return gaps


def box(
    ax: Axes,
    xy: tuple[float, float],
    text: str,
    width: float = 0.27,
    height: float = 0.16,
    colour: str = "white",
) -> None:
    """A box with a text, its centre at ``xy``."""
    x, at = xy
    corner = (x - width / 2, at - height / 2)
    ax.add_patch(plt.Rectangle(corner, width, height, facecolor=colour, edgecolor="0.3"))
    ax.text(x, at, text, ha="center", va="center", fontsize=8.5)


def arrow(
    ax: Axes, points: Sequence[tuple[float, float]], text: str = "", at: tuple[float, float] = (0.0, 0.0)
) -> None:
    """An arrow along points, with a text beside it."""
    ax.plot(*np.transpose(points[:-1]), color="0.3", linewidth=1)
    ax.annotate(
        "",
        points[-1],
        points[-2],
        arrowprops={"arrowstyle": "->", "color": "0.3", "shrinkA": 0},
    )
    ax.text(*at, text, fontsize=8.5, color="0.2")


def flow_of_a_safe_step() -> Figure:
    """One update of the safe step as a diagram."""
    figure, ax = plt.subplots(figsize=(7.6, 3.6))
    pale = ("#dbe9f6", "#fde8d3")
    box(ax, (0.14, 0.85), "statistics s, gradient g\nfrom one pass")
    box(ax, (0.50, 0.85), "accelerated step\nδ = Σ γ Δs + lr g̃", colour=pale[0])
    box(ax, (0.50, 0.50), "plain step, conditioned\nδ = lr g", colour=pale[0])
    box(ax, (0.86, 0.50), "gains at least\nα m (KL + KL)?", colour=pale[1])
    box(ax, (0.86, 0.85), "bend: s⁺ = U(s, δ)\none pass: F(η⁺), g⁺", colour=pale[0])
    box(ax, (0.50, 0.12), "remember Δs, Δη, Δg;\ns ← s⁺, g ← g⁺")
    box(
        ax,
        (0.14, 0.12),
        "T updates made,\nor 40 rates failed:\nreturn θ(s)",
        height=0.2,
    )
    arrow(ax, [(0.275, 0.87), (0.365, 0.87)], "two of\nthree", (0.285, 0.89))
    arrow(
        ax,
        [(0.14, 0.77), (0.14, 0.52), (0.365, 0.52)],
        "every third,\nor none kept",
        (0.15, 0.54),
    )
    arrow(ax, [(0.635, 0.85), (0.725, 0.85)])
    arrow(ax, [(0.60, 0.58), (0.60, 0.68), (0.70, 0.68), (0.70, 0.80), (0.725, 0.80)])
    arrow(ax, [(0.86, 0.77), (0.86, 0.58)])
    arrow(ax, [(0.725, 0.48), (0.635, 0.48)], "no: plain,\nor lr/2", (0.637, 0.36))
    arrow(ax, [(0.86, 0.42), (0.86, 0.12), (0.635, 0.12)], "yes", (0.87, 0.25))
    arrow(
        ax,
        [(0.40, 0.20), (0.40, 0.30), (0.035, 0.30), (0.035, 0.77)],
        "next update",
        (0.05, 0.32),
    )
    arrow(ax, [(0.365, 0.10), (0.275, 0.10)])
    ax.set(xlim=(0, 1), ylim=(0, 0.97))
    ax.axis("off")
    return figure


def written(value: float) -> str:
    """A number, large and small powers of two as such."""
    power = np.log2(value)
    return f"2^{power:.0f}" if abs(power) > 30 and power.is_integer() else f"{value:g}"


def constants_of_the_safe_step() -> pd.DataFrame:
    """The constants of the safe step."""
    constants = {
        "SUFFICIENT_GAIN": "α, what a step gains at least",
        "LONGEST_STEP": "greatest rate tried",
        "SHORTEST_STEP": "of the rate first tried, below which it gives up",
        "SECANTS": "changes kept",
        "PLAIN_EVERY": "of the steps one in so many is plain",
        "RESOLVED": "singular values that count, of the largest",
    }
    return pd.DataFrame(
        {
            "value": {name: written(getattr(library, name)) for name in constants},
            "what it is": constants,
        }
    ).rename_axis("in rcpkg.calibration.steps")
