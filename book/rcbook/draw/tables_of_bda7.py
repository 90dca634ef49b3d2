"""Figures and tables of the chapter *The tables of BDA7*: agreement, readings, designs."""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from rcbook.experiments.power import power_by_table, table_tests
from rcbook.experiments.studies import decision_regions_of_sonar as regions
from rcbook.experiments.studies.readings_of_bda7 import columns_explained, judged_readings
from rcbook.experiments.studies.tables_of_bda7 import DATA
from rcpkg import plotting


def overview(worth: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str], dict[str, str], pd.DataFrame]:
    """Agreement of printed errors with ours, table by table, from the scorecard and what its verdicts are worth."""
    card = worth[(worth["source"] == "thesis2007") & worth["table"].str.startswith("5.")].copy()
    card["as_printed"] = card["value_printed"]
    for column in ("value_printed", "value", "value_se", "n_runs"):
        card[column] = pd.to_numeric(card[column], errors="coerce")
    names = DATA | {f"5.{12 + k}": f"case {k}" for k in range(1, 11)}
    short = {
        "reproduced": "same",
        "statistically consistent": "consistent",
        "differs: explained": "explained",
        "differs: unexplained": "unexplained",
        "not attempted": "not run",
    }
    verdicts = card["verdict"].map(short)
    counts = pd.crosstab(card["table"], verdicts).reindex(names)
    counts = counts[[name for name in short.values() if name in counts]]
    counts.loc["all"] = counts.sum()
    counts["printed"] = counts.sum(axis=1)
    decided = power_by_table(worth).loc["thesis2007"].decidable
    counts["can be decided"] = decided.reindex(counts.index).astype("Int64")
    counts.loc["all", "can be decided"] = decided.reindex(names).sum()
    joint = table_tests(worth).fits.loc["thesis2007"].droplevel("metric")
    counts["fits jointly"] = joint.map({True: "yes", False: "no"}).reindex(counts.index)
    view = (
        counts.fillna({"fits jointly": ""})
        .rename(
            index={
                number: f"{number} {name}".replace("_", " ").replace("covtype", "cover type")
                for number, name in names.items()
            }
        )
        .rename_axis(index=None, columns=None)
    )
    return card, names, short, view


def printed_and_ours(card: pd.DataFrame, names: Mapping[str, str]) -> None:
    """Errors as printed and ours, side by side."""

    def side_by_side(table):
        part = card[card["table"] == table]
        number = part["value_printed"].map("{:.2f}".format)
        ours = part["value"].map("{:.2f}".format)
        error = part["value_se"].map("({:.2f})".format)
        part = part.assign(printed=number.where(part["value_printed"].notna(), "uc"), ours=ours, se=error)
        lines = ["printed", "ours", "se"]
        tall = part[["method", "setting_value", *lines]].melt(
            ["method", "setting_value"], lines, "line", "text"
        )
        wide = tall.pivot(index=["method", "line"], columns="setting_value", values="text")
        runs = part.groupby("method", sort=False)["n_runs"].max().dropna()
        order = [(m, line) for m in part["method"].unique() for line in (lines if m in runs else lines[:1])]
        wide = wide.reindex(order)[list(part["setting_value"].unique())]
        wide = wide.rename_axis(index=[None, None], columns=None)
        return wide, ", ".join(f"{m} {n:.0f}" for m, n in runs.items())

    for table, name in names.items():
        wide, runs = side_by_side(table)
        display(Markdown(f"Table {table}: {name}. Runs: {runs}"), wide)


def errors_against_printed(card: pd.DataFrame) -> tuple[Figure, pd.Series, pd.Series]:
    """Our mean test errors against the printed ones, in two panels."""
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.6), sharex=True, sharey=True)
    kept = card["verdict"].isin(["reproduced", "statistically consistent"])
    simulated = card["table"].map(lambda table: int(table.split(".")[1]) > 12)
    for ax, part, title in zip(axes, (~simulated, simulated), ("data sets", "simulations")):
        ax.plot([0, 100], [0, 100], color="0.6", lw=1)
        for chosen, color, marker in ((kept, 0, "o"), (~kept & card["value"].notna(), 1, "x")):
            rows = card[part & chosen]
            ax.scatter(
                rows["value_printed"],
                rows["value"],
                s=9,
                marker=marker,
                color=plotting.palette[color],
                linewidths=0.7,
                rasterized=True,
            )
        ax.set(xlabel="printed (%)", title=title)
    axes[0].set_ylabel("ours (%)")
    return fig, kept, simulated


def readings() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, dict[str, str]]:
    """For each reading how many numbers agree."""
    judged_cells = judged_readings()
    explained_columns = columns_explained(judged_cells)
    tried = explained_columns.groupby(level="reading", sort=False)
    heads = ("all", "agree as stated", "agree under reading")
    numbers = tried[["cells", "stated", "under"]].sum().set_axis(heads, axis=1)
    columns = pd.DataFrame(
        {
            "all": tried.size(),
            "agree as stated": tried.apply(lambda part: int((part.stated == part.cells).sum())),
            "agree under reading": tried.apply(lambda part: int((part.under == part.cells).sum())),
        }
    )
    in_words = {
        "with-replacement": "with replacement",
        "with-replacement-tuned": "with replacement, tuned methods",
        "with-replacement-edda": "with replacement, EDDA",
        "with-replacement-large": "with replacement, large sets",
        "with-replacement-again": "with replacement, once more",
        "with-replacement-wine": "with replacement, QB on wine",
        "with-replacement-iris": "with replacement, 1,000 runs",
        "drawn-over-all": "share drawn over all classes",
        "rounded-down": "number of rows rounded down",
        "singular-pinv": "if singular: pseudo-inverse",
        "singular-ridge": "if singular: ridge",
        "singular-drop": "if singular: features dropped",
    }
    return judged_cells, explained_columns, numbers, columns, in_words


def replacement(
    judged_cells: pd.DataFrame,
) -> tuple[dict[tuple, list], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Numbers that agree as stated and with replacement, on new cells."""
    found_on = {
        ("5.6", "QDA"): ["9", "10"],
        ("5.2", "QDA"): ["20"],
        ("5.7", "LDA"): ["30", "35", "40", "45", "50"],
        ("5.5", "LDA"): ["9"],
    }
    plain = judged_cells[judged_cells.reading == "with-replacement"]
    seen = [row.setting_value in found_on.get((row.table, row.method), ()) for row in plain.itertuples()]
    fresh = plain[~np.array(seen)]
    view = pd.DataFrame(
        {
            "numbers": fresh.groupby("method").size(),
            "agree as stated": fresh.groupby("method").agreed.sum(),
            "agree with replacement": fresh.groupby("method").agrees.sum(),
        }
    ).rename_axis(None)
    return found_on, plain, fresh, view


def designs_of_nearest_means(
    card: pd.DataFrame, simulated: pd.Series, names: Mapping[str, str]
) -> tuple[Callable[..., Any], pd.DataFrame, pd.DataFrame]:
    """Standard deviations by which our error of nearest means exceeds the printed one."""

    def excess(method):
        rows = card[simulated & (card["method"] == method)]
        spread = rows["value_se"] * np.sqrt(2)  # 100 runs on both sides
        score = (rows["value"] - rows["value_printed"]) / spread
        table = rows.assign(z=score).pivot(index="table", columns="setting_value", values="z")
        return table.reindex([f"5.{k}" for k in range(13, 23)])[sorted(table, key=int)]

    def shown(scores):
        return (
            scores.rename(index=names)
            .rename_axis(index=None, columns="d =")
            .round(1)
            .add(0.0)  # no minus before zero
        )

    NM, linear = excess("NM"), excess("LDA")[["6", "10", "20", "30"]]
    return shown, NM, linear


def sonar() -> tuple[pd.DataFrame, Figure]:
    """Decision regions of seven classifiers on two features of sonar."""
    plane = regions.stored()
    x, y = (np.unique(plane[name]) for name in ("x11", "x21"))
    fig, axes = plt.subplots(3, 3, figsize=(6.4, 6.4), sharex=True, sharey=True)
    for ax, method in zip(axes.flat, regions.METHODS):
        side = plane[method].to_numpy().reshape(len(x), len(y)).T
        ax.contourf(x, y, side, levels=[-0.5, 0.5, 1.5], colors=plotting.palette[:2], alpha=0.25)
        ax.contour(x, y, side, levels=[0.5], colors="0.3", linewidths=0.8)
        for h, (name, marker) in enumerate((("n_rocks", "o"), ("n_mines", "x"))):
            rows = plane[plane[name] > 0]
            ax.scatter(
                rows["x11"],
                rows["x21"],
                s=9,
                marker=marker,
                color=plotting.palette[h],
                linewidths=0.7,
                label=("rock", "mine")[h],
            )
        ax.set(xlim=(0, 0.75), ylim=(0, 1.02), xticks=(0, 0.3, 0.6))
        ax.set_title(method, fontsize=9)
        ax.grid(False)
    for ax in (axes[2, 0], *axes[1, 1:]):
        ax.set_xlabel("feature 11")
        ax.tick_params(labelbottom=True)
    for ax in axes[:, 0]:
        ax.set_ylabel("feature 21")
    for ax in axes[2, 1:]:
        ax.axis("off")
    axes[2, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    return plane, fig
