"""Figures and tables of the chapter *The law of the iterates*: laws, gains, sizes and powers."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rcbook.experiments.studies import laws_of_calibration as laws
from rcbook.experiments.studies import rows_left_out
from rcbook.experiments.studies import size_of_the_test as size_study
from rcbook.figures import ink, label_lines, look
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.plotting import markers, palette


def clouds_of_estimates(fits: pd.DataFrame) -> Figure:
    """Boundary and slope of the log odds of LDA in one dimension, before and after calibration, sample by sample."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), layout="constrained", sharey=True)
    for ax, (title, of_case) in zip(axes, fits.groupby("case", sort=False)):
        for name, found in of_case.groupby("learner", sort=False):
            style = look("closed form" if name == "closed form" else "safe")
            few, many = (found.loc[found.many == many, ["boundary", "slope"]].to_numpy() for many in (False, True))
            ax.plot(*few.T, linestyle="", markersize=3, alpha=0.45, **style)
            ax.plot(*many.T, linestyle="", markersize=12, mec="black", **style)
            place = (0.97, 0.08, "right") if name == "closed form" else (0.03, 0.9, "left")
            colour = ink(style["color"])
            ax.text(*place[:2], name, color=colour, weight="bold", ha=place[2], transform=ax.transAxes)
        ax.set(title=title, xlabel="where the log odds are zero", yscale="log", ylim=(0.8, 10))
        ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        ax.minorticks_off()
    axes[0].set(ylabel="slope of the log odds")
    return figure


def spectra(spectrum: Callable[..., Any]) -> dict[str, dict[str, float]]:
    """Relative information of the directions that rows see, family by family."""
    spectra = {}
    for name in laws.CASES:
        model = laws.truth(name)
        X, _ = model.sample(2000, np.random.RandomState(0))
        encoded, P = model.family_.encode(X), model.predict_proba(X)
        form = MinimalForm(model.family_, encoded, model.statistics(encoded, P))
        found = spectrum(model, form, X, np.full(len(X), 1 / len(X)))
        spectra[name] = {
            "seen directions": len(found),
            "least λ": found.min(),
            "median": np.median(found),
            "greatest": found.max(),
            "cost of all updates": np.sum(1 - found) / 2,
        }
    return spectra


def simulated_over_asymptotic(sampled: pd.DataFrame, misfit: pd.DataFrame) -> Figure:
    """Simulated over asymptotic values by the number of rows."""
    law_figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    change = sampled[sampled.metric == "relative_change"]
    late = pd.concat([change, misfit])
    late = late[late.method == "16 updates"]
    for j, (case, part) in enumerate(late.groupby("case", sort=False)):
        what = "spread" if case in laws.WRONG else "change"
        ax.errorbar(
            part.n * 1.13 ** (j - 3),
            part.value,
            2 * part.value_se,
            fmt=markers[j % 4],
            color=palette[j],
            mfc="white" if case in laws.WRONG else None,
            label=f"{what}: {case}",
        )
    ax.axhline(1, color="0.5", linewidth=1)
    ax.set(xlabel="rows", xscale="log", ylabel="simulated over asymptotic")
    ax.minorticks_off()
    ax.legend(fontsize=8)
    return law_figure


def gain(STRENGTHS: tuple[float, float, float], excess: pd.DataFrame) -> Figure:
    """Mean excess log-loss over the number of updates, by share of outliers."""
    gain_figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), layout="constrained", sharey=True)
    for ax, n in zip(axes, (300, 1_000_000)):
        for strength, colour, marker in zip(STRENGTHS, palette, markers):
            part = excess.loc[n, strength]
            place = np.arange(len(part))
            ax.plot(place, part.theorem, color=colour, linewidth=1)
            ax.errorbar(
                place,
                part.simulated,
                2 * part.error,
                fmt=marker,
                color=colour,
                label=f"{strength:g}/√n",
            )
        ax.set_xticks(place, part.index)
        ax.set(title=f"n = {n:,}", xlabel="updates")
    axes[0].set(ylabel="n × excess log-loss", ylim=(0, None))
    places = {"0/√n": (0.2, 0.78, "left"), "0.25/√n": (0.2, 1.62, "left"), "0.5/√n": (1.3, 2.5, "left")}
    label_lines(axes[1], places)
    axes[1].text(1.3, 2.68, "share of outliers")
    return gain_figure


def size() -> tuple[str, pd.DataFrame, Figure]:
    """Share of samples of right models that are rejected, by the number of rows."""
    PER = "rows per coefficient"
    sizes = size_study.tidy(size_study.SIZE)
    sizes = sizes.pivot(index=["case", "n"], columns="metric", values="value")
    sizes = sizes.rename(columns={"n_per_degree": PER})
    size_figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    ax.axhspan(*size_study.STATED, color="0.92")
    for group, label, colour, marker in zip(
        (size_study.RIGHT, size_study.LEARNT),
        ("structure given, or none", "structure learnt"),
        palette,
        markers,
    ):
        part = sizes.loc[list(group)]
        ax.errorbar(
            part[PER],
            part.rejected,
            2 * np.sqrt(0.05 * 0.95 / size_study.REPLICATES),
            fmt=marker,
            color=colour,
            label=label,
            markersize=4,
        )
    ax.axhline(size_study.LEVEL, color="0.5", linewidth=1)
    ax.set(
        xscale="log",
        xlabel=PER,
        ylabel="rejected",
        ylim=(0, 0.1),
    )
    ax.legend()
    return PER, sizes, size_figure


def leave_one_out_losses() -> tuple[pd.DataFrame, Figure]:
    """Log-loss of rows left out against the weight, exact and approximate."""
    left_out = rows_left_out.tidy()
    loo_figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.8), layout="constrained", sharex=True)
    n = min(rows_left_out.SIZES)
    for ax, family in zip(axes, ("LDA", "GaussianNB")):
        part = left_out[(left_out.family == family) & (left_out.n == n)]
        for name, style, colour in zip(("exact", "approximate", "training"), ("o-", "s--", "^:"), palette):
            values = part[part.metric == name].sort_values("weight")
            ax.semilogx(
                values.weight,
                values.value,
                style,
                color=colour,
                markersize=4,
                label=name,
            )
        ax.set_title(f"{family}, n = {n}")
        ax.set(xlabel="weight b", xticks=[0.01, 1, 100], ylim=(0, None))
        ax.minorticks_off()
    axes[0].set(ylabel="log-loss")
    label_lines(
        axes[0], {"exact": (100, 0.95, "right"), "approximate": (0.02, 2.2, "left"), "training": (100, 0.26, "right")}
    )
    return left_out, loo_figure


def tests_on_the_clouds(outcomes: pd.DataFrame) -> pd.DataFrame:
    """On how many draws of the clouds the stored tests reject, by the number of rows."""
    by_rows = outcomes.groupby("rows")
    return pd.DataFrame(
        {
            "rejected": by_rows.p_value.agg(lambda p: np.sum(p <= 0.05)),
            "T > 2 E₀": by_rows.ratio.agg(lambda ratio: np.sum(ratio > 2)),
            "median p-value": by_rows.p_value.median(),
            "median of T / E₀": by_rows.ratio.median(),
        }
    )
