"""Figures and tables of the chapter *Local BDA*: cells, lines, seeds, parts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from scipy.stats import t as student_t

from rcbook.experiments.studies import seeds_of_local_bda as growth
from rcbook.experiments.studies.local_rules_on_the_waves import flipped
from rcbook.figures import label_lines, look
from rcpkg import LocalBDA
from rcpkg.base import Array
from rcpkg.local import local_bda_log_density
from rcpkg.local.density import LostSeed, factor_rounding
from rcpkg.plotting import palette

LOOKS = {
    "k-NN": look("vote"),
    "pinv": look("pinv"),
    "local nearest means": look("nearest means"),
    "local BDA": look("local BDA"),
    "B = I": look("local BDA"),  # as the source has it
    "trace": look("trace seed"),
    "neighborhood": look("neighbourhood seed"),
}
"""Colour and marker of each rule, the same in all figures of the chapter."""


def cells(
    toy: LocalBDA, neighbourhood: Callable[..., Any], X: Array, y: Array
) -> tuple[Array, Array, Figure]:
    """Decision regions of local BDA with cells and faces."""
    side = 220
    axis = np.linspace(-2.6, 2.6, side)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    label = toy.predict(grid).reshape(side, side)
    codes = neighbourhood(grid)
    _, codes = np.unique(codes, axis=0, return_inverse=True)
    codes = codes.reshape(side, side)

    def edges(values):
        changed = np.zeros((side, side), dtype=bool)
        changed[:-1] |= values[:-1] != values[1:]
        changed[:, :-1] |= values[:, :-1] != values[:, 1:]
        return changed

    border, faces = edges(label), edges(codes)
    fig, ax = plt.subplots(figsize=(5, 4.6))
    ax.contourf(axis, axis, label, levels=[-0.5, 0.5, 1.5], colors=palette[:2], alpha=0.15)
    for mask, colour, size, name in [
        (faces, "0.8", 0.4, "faces of cells"),
        (border & ~faces, "black", 2.5, "quadric pieces"),
        (border & faces, palette[4], 2.5, "jumps on faces"),
    ]:
        ax.scatter(*grid[mask.ravel()].T, s=size, color=colour, label=name)
    for h, marker in zip((0, 1), "ox"):
        ax.scatter(*X[y == h].T, color=palette[h], marker=marker, label=f"class {h}")
    ax.set(xlabel="$x_1$", ylabel="$x_2$")
    ax.grid(False)
    legend = ax.legend(loc="lower right", fontsize=7, frameon=True)
    for handle in legend.legend_handles[:3]:
        handle.set_sizes([16])
    return border, faces, fig


def sixty_digits(Z: Array, k: int) -> float:
    """(T 6.1) for the first k rows and B = I, with sixty digits."""
    with mpmath.workdps(60):
        rows = mpmath.matrix(Z[:k].tolist())
        d, ones = Z.shape[1], mpmath.ones(1, k)
        mean = (ones * rows / k).T
        D = mpmath.eye(d) + rows.T * rows - k * mean * mean.T
        power = mpmath.mpf(k + d + 4) / 2
        value = mpmath.loggamma(power) - mpmath.loggamma(power - d / 2)
        value -= d * mpmath.log(mpmath.pi * (k + 1) / mpmath.mpf(k)) / 2
        value -= mpmath.log(mpmath.det(D)) / 2
        form = (mean.T * mpmath.lu_solve(D, mean))[0]
        return float(value - power * mpmath.log(1 + form * k / (k + 1)))


def digits_of_densities(
    by_k_by_k: Callable[..., Any],
) -> tuple[tuple[float, ...], list[float], list[float], list[float], pd.DataFrame]:
    """Digits of densities in double precision beside sixty digits."""
    shape = np.random.default_rng(67).standard_normal((20, 2))
    scales = (1.0, 1e3, 1e5, 1e6, 1e7)
    bounds, alone, library = [], [], []
    for scale in scales:
        Z = scale * shape
        exact = np.array([sixty_digits(Z, k) for k in range(1, 21)])
        try:
            alone.append(np.abs(by_k_by_k(Z) - exact).max())
        except LostSeed:
            alone.append(np.inf)
        library.append(np.abs(local_bda_log_density(Z) - exact).max())
        bounds.append(factor_rounding((Z**2).sum(), *Z.shape))
    view = pd.DataFrame(
        {
            "bound on the K × K way": [f"{bound:.0e}" for bound in bounds],
            "taken": np.where(np.array(bounds) <= 1e-5, "K × K", "growing"),
        },
        pd.Index([f"{scale:.0e}" for scale in scales], name="scale"),
    ).rename_axis(None)
    return scales, bounds, alone, library, view


def line_of_circles(regions: Mapping[str, Array], X61: Array, y61: Array) -> Figure:
    """Decisions of local rules on the line of circles."""
    fig, axes = plt.subplots(3, 4, figsize=(6.4, 5.0), sharex=True, sharey=True)
    for ax, (name, region) in zip(axes.flat, regions.items()):
        ax.imshow(
            region == 0,
            extent=(-1.1, 1.1, -1.1, 1.1),
            origin="lower",
            cmap="Greys",
            alpha=0.35,
            vmin=0,
            vmax=1,
        )
        ax.scatter(
            *X61[y61 == 0].T, s=14, facecolor="white", edgecolor=palette[0], marker="o", label="circle"
        )
        ax.scatter(*X61[y61 == 1].T, s=14, color=palette[1], marker="x", label="cross")
        ax.set_title(name, fontsize=8.5)
        ax.grid(False)
    for ax in axes[1, 2:]:
        ax.tick_params(labelbottom=True)
    for ax in axes[2, 2:]:
        ax.axis("off")
    axes[2, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    return fig


def flipped_labels_at(
    k: int, models: Mapping[str, Any], queries: Array, bayes: Array
) -> pd.DataFrame:
    """Mean error with k neighbours, a row for each classifier and a column for each share of flipped labels."""
    errors = pd.DataFrame(
        [
            (name, share, (model.set_params(n_neighbors=k).fit(X, labels).predict(queries) != bayes).mean())
            for share, _, X, labels in flipped()
            for name, model in models.items()
        ],
        columns=["classifier", "flipped", "error"],
    )
    return errors.groupby(["classifier", "flipped"], sort=False).error.mean().unstack()


def seeds_compared(
    errors_of: Callable[..., Any], units: Sequence[str], seeds: Sequence[str]
) -> tuple[Callable[..., Any], pd.DataFrame, pd.DataFrame]:
    """Seeds compared with the identity on standardised features."""

    def against_local_bda(methods):
        """Paired differences from local BDA with B = I, and the clear ones.

        Clear: beyond two standard errors with the factor for shared rows.
        """
        difference = errors_of(methods, "minus_local_bda")
        error = errors_of(methods, "minus_local_bda", "value_se")
        J, test_by_train = errors_of(methods, "minus_local_bda", "n_runs"), 1
        corrected = error * np.sqrt(1 + J * test_by_train)
        clear = difference.abs() > 2 * corrected
        naive = difference.abs() > 2 * error
        quantile = J.map(lambda runs: student_t.ppf(0.975, runs - 1))
        counts = pd.DataFrame(
            {
                "difference": difference.mean(),
                "clearly better": (clear & (difference < 0)).sum(),
                "clearly worse": (clear & (difference > 0)).sum(),
                "better, no f.": (naive & (difference < 0)).sum(),
                "worse, no f.": (naive & (difference > 0)).sum(),
            }
        )
        beyond = pd.DataFrame(
            {
                "difference": difference[clear].stack(),
                "in corrected s.e.": (difference / corrected)[clear].stack(),
                "Student's t, 5 %": quantile[clear].stack(),
            }
        ).dropna()
        return counts, beyond

    counts, beyond = against_local_bda([units[0], units[2], *seeds])
    return against_local_bda, counts, beyond


def probabilities_by_rows(
    seed_sizes: Mapping[str, float], limit: Callable[..., Any]
) -> tuple[pd.DataFrame, Figure, list[str]]:
    """Probabilities against the number of rows, for seeds and for growing k."""
    curves = growth.tidy()
    fig, axes = plt.subplots(2, 2, figsize=(6.4, 5.6), sharex=True, sharey="row")
    names = [*growth.SEEDS, "k-NN"]
    panels = (("square", "mean_p1"), ("normal", "excess_log_loss"))
    for row, (problem, metric) in zip(axes, panels):
        for ax, k in zip(row, ("k = 30", "k grows")):
            part = curves[curves["problem"] == problem]
            part = part[(part["metric"] == metric) & (part["k"] == k)]
            for name in names:
                line = part[part["seed"] == name].sort_values("n")
                ax.errorbar(
                    line["n"],
                    line["value"],
                    2 * line["value_se"],
                    **LOOKS[name],
                    markersize=5,
                    label=name.replace("bor", "bour"),
                )
                if metric == "mean_p1" and name in seed_sizes:
                    neighbours = [30 if k == "k = 30" else growth.growing(n) for n in line["n"]]
                    expected = [limit(seed_sizes[name], n, j) for n, j in zip(line["n"], neighbours)]
                    ax.plot(line["n"], expected, "--", color=LOOKS[name]["color"], lw=1)
            ax.set(xscale="log", title=f"{problem}, {k}")
    for ax in axes[0]:
        ax.axhline(0.8, color="0.6", lw=1, zorder=0)
    axes[0, 0].set_ylabel("mean posterior of class 1")
    axes[1, 0].set(ylabel="excess log-loss", yscale="log")
    for ax in axes[1]:
        ax.set_xlabel("rows n")
    places = {
        "neighbourhood": (2.4e4, 0.85, "right"),
        "k-NN": (2.4e4, 0.765, "right"),
        "trace": (5e3, 0.67, "left"),
        "B = I": (750, 0.63, "left"),
    }
    label_lines(axes[0, 0], places)
    return curves, fig, names
