"""Figures and tables of the chapter *The tables of risk-based calibration*: verdicts, gradients, readings, parts."""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rcbook import experiments, published
from rcbook.experiments.cells import register
from rcbook.experiments.scorecard import judged
from rcbook.experiments.studies.readings_of_rc2024 import columns_explained, judged_readings
from rcbook.experiments.studies.readings_of_rc2025 import READINGS, stopping_rules
from rcbook.experiments.studies.tables_of_rc2025 import RC2025_MODELS
from rcbook.figures import label_lines, look
from rcbook.words import in_words
from rcpkg.base import Array
from rcpkg.plotting import markers, palette

NAMED = {
    "nb-halt": "end at a negative count",
    "nb-halt-bare": "end, prior in parameters",
    "nb-freeze-bare": "freeze, prior in parameters",
    "nb-halt-text": "end, prior of the text",
    "nb-per-update": "prior at each update",
    "nb-expected": "prior in what is expected",
    "nb-smooth-last": "smoothing last",
    "nb-smooth-first": "smoothing first",
    "nb-smooth-first-halt": "smoothing first, end",
    "qda-map-grid": "256 covariances",
    "qda-map-wide": "1,536 covariances",
    "nb-uniform-bins": "bins of equal width",
    "nb-quantile-bins": "bins of equal counts",
    "nb-random-bins": "bins from random rows",
    "nb-first-class": "first class if impossible",
    "last-best": "last of the best",
    "ml-pinv": "pseudo-inverse",
    "ml-rounding": "inverse as rounded",
    "ml-ridge": "ridge",
    "ml-drop": "features dropped",
    "nb-hold-distribution": "distribution held",
    "nb-hold-feature": "feature held",
    "nb-hold-class": "class held",
    "nb-hold-grid": "20 ways to hold",
    "nb-hold-grid-ml": "10 ways to hold, ML",
    "nb-hold-exact": "exact",
    "nb-hold-exact-ml": "exact, ML",
    "nb-hold-exact-reach": "exact, printed GD",
}


VERDICTS = [
    "reproduced",
    "statistically consistent",
    "differs: explained",
    "differs: unexplained",
    "not attempted",
]


SHORT = {
    "empirical_error_fraction": "error",
    "train_error_percent": "train %",
    "test_error_percent": "test %",
    "iterations": "iter.",
    "reach": "reach",
}


def agreement_of_2024(card: pd.DataFrame) -> tuple[list[str], pd.DataFrame, list[tuple], Callable[..., Any]]:
    """How many numbers of each table of the earlier version agree."""
    single = card[card.metric.isin(SHORT)]
    overview = pd.crosstab(
        [
            single.source,
            single.table.rename("table"),
            single.method,
            single.metric.map(SHORT).rename("column"),
        ],
        single.verdict,
    )
    overview = overview.reindex(columns=VERDICTS, fill_value=0)
    order = sorted(register(), key=lambda table: table[0])
    overview = overview.loc[sorted(overview.index, key=lambda k: (order.index(k[:2]), k[2:]))]
    overview.columns = ["exact", "consistent", "explained", "unexplained", "no run"]
    run = overview.drop(columns="no run").sum(axis=1)
    close = overview.exact.astype(str)
    close += (" + " + overview.consistent.astype(str)).where(overview.consistent > 0, "")
    close = (close + " of " + run.astype(str)).where(run > 0, "-")
    rows = overview.index.droplevel("column").unique()
    close = close.unstack("column").reindex(rows)[list(SHORT.values())].fillna("")
    close.columns.name = None

    def agreement(source):
        """The rows of one paper, with the columns that it has."""
        table = close.loc[source]
        table.index = [" ".join(key) for key in table.index]
        return table.loc[:, (table != "").any()].rename_axis(source)

    return VERDICTS, overview, order, agreement


def verdicts(overview: pd.DataFrame) -> Figure:
    """Verdicts on the printed errors, table by table."""
    run = overview.drop(columns="no run").groupby(level=[0, 1], sort=False).sum()
    run = run[run.sum(axis=1) > 0]
    share = run.div(run.sum(axis=1), axis=0)
    fig, ax = plt.subplots(figsize=(6.4, 3.8))
    left = np.zeros(len(share))
    hatches = ("", "", "..", "//")
    for column, colour, hatch in zip(share, (0, 5, 2, 1), hatches):
        ax.barh(
            np.arange(len(share)),
            share[column],
            left=left,
            color=palette[colour],
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=column,
        )
        left += share[column].to_numpy()
    ax.set_yticks(np.arange(len(share)), [f"{in_words(source)}, {table}" for source, table in share.index])
    ax.invert_yaxis()
    ax.set_xlabel("share of the numbers recomputed")
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1.0))
    return fig


def printed_beside_ours(card: pd.DataFrame) -> Callable[..., Any]:
    """Printed and recomputed numbers side by side."""

    def beside(source, table):
        """A printed table with a verdict in each cell."""
        cells = card[(card.source == source) & (card.table == table)].copy()
        digits = cells.value_printed.str.extract(r"\.(\d+)")[0].str.len()
        digits = digits.fillna(0 if source == "rc2024" else 1).astype(int)
        ours = ["-" if np.isnan(v) else f"{v:.{k}f}" for v, k in zip(cells.value, digits)]
        marks = {"reproduced": " ✓", "statistically consistent": " ≈"}
        cells["shown"] = [
            printed + marks.get(v, f" → {o}" if v.startswith("differs") else "")
            for printed, v, o in zip(cells.value_printed, cells.verdict, ours)
        ]
        kind = cells.metric.str.removeprefix("mean_")
        kind = kind.str.replace("_avg_rank", "_error_percent")
        cells["column"] = kind.map(lambda metric: SHORT.get(metric, metric))
        if (source, table) == ("rc2025", "1"):
            cells["column"] = cells.setting_value
        named = cells.dataset.where(~cells.dataset.str.startswith("(all"), "")
        if named.nunique() > 1:
            cells["row"] = (cells.row + " " + named).str.strip()
        wide = cells.pivot(index="row", columns=["method", "column"], values="shown")
        wide = wide.reindex(cells.row.unique())
        wide = wide[list(dict.fromkeys(zip(cells.method, cells.column)))]
        wide.index.name = f"{source} {table}"
        return wide.fillna("")

    return beside


def gradients_by_table(MODELS: Mapping[str, tuple[str, str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """On how many sets errors of gradient descent agree with either gradient."""
    corrected = experiments.results("study", "gd-corrected")
    counts = []
    for table in ("II", "III", "IV", "V"):
        study = corrected[corrected.setting_value == f"rc2024:{table}"]
        variants = {
            "printed": experiments.results("rc2024", table),
            "corrected": study.replace({"method": {"GD corrected": "GD"}}),
        }
        for gradient, ours in variants.items():
            cells = judged("rc2024", table, ours)
            cells = cells[cells.method == "GD"]
            moved = cells[(cells.metric == "iterations") & (cells.printed > 1)].row
            wide = cells.pivot(index="row", columns="metric", values="agrees")
            counts.append(
                {
                    "table": f"{table}: {' '.join(MODELS[table])}, {len(wide)} sets, {len(moved)} moved",
                    "gradient": gradient,
                    "error": wide.empirical_error_fraction.sum(),
                    "and iteration": wide.all(axis=1).sum(),
                    "error of these": wide.empirical_error_fraction[moved].sum(),
                    "and their iteration": wide.loc[moved].all(axis=1).sum(),
                }
            )
    counts = pd.DataFrame(counts).set_index(["table", "gradient"])
    counts.columns = pd.MultiIndex.from_product([["all sets", "sets that moved"], ["error", "and iteration"]])
    return corrected, counts


def against_descent(corrected: pd.DataFrame) -> tuple[Callable[..., Any], Figure]:
    """Training errors of RC against gradient descent, for both gradients."""

    def least(table, method):
        """Least training errors of a method, by row of a table of rc2024."""
        if method == "GD corrected":
            cells = corrected[corrected.setting_value == f"rc2024:{table}"]
        else:
            cells = experiments.results("rc2024", table)
        cells = cells[cells.metric == "empirical_error_fraction"]
        return cells[cells.method == method].set_index("row")["value"]

    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.2))
    for ax, (table, title) in zip(axes, {"II": "naive Bayes", "IV": "QDA"}.items()):
        rc = least(table, "RC")
        for k, (method, label) in enumerate({"GD corrected": "corrected", "GD": "printed"}.items()):
            other = least(table, method).reindex(rc.index)
            ax.plot(other, rc, markers[k], color=palette[k], label=label, alpha=0.8)
        top = 1.05 * max(rc.max(), other.max())
        ax.plot([0, top], [0, top], color="#888888", lw=0.8, label="equal")
        ax.set(title=title, xlabel="error of GD", ylabel="error of RC")
    axes[0].legend()
    return least, fig


def compared(a: pd.Series, b: pd.Series) -> dict[str, float | str]:
    """Counts of a < b, a = b, a > b, and the mean of a - b."""
    difference = (a - b).dropna()
    signs = [difference < 0, difference == 0, difference > 0]
    return {
        "RC better / equal / worse": " / ".join(f"{s.sum()}" for s in signs),
        "RC − GD": round(float(difference.mean()), 2),
    }


def contests_with_descent(MODELS: Mapping[str, tuple[str, str]], least: Callable[..., Any]) -> pd.DataFrame:
    """Sets on which RC is better than gradient descent, equal and worse."""
    wins = {}
    for table, (classifier, start) in MODELS.items():
        for method in ("GD", "GD corrected"):
            if table in ("VIII", "IX") or (classifier, method) == ("LR", "GD corrected"):
                continue
            other = least(table, method)
            if classifier == "LR":
                name = "corrected"
            else:  # both gradients on the sets that both have
                name = "corrected" if "corrected" in method else "printed"
                other = other.reindex(least(table, "GD corrected").index)
            key = f"{table}: {classifier} {start}", name
            wins[key] = compared(100 * least(table, "RC"), 100 * other)
    wins = pd.DataFrame.from_dict(wins, orient="index")
    return wins.rename_axis(["table", "gradient"])


def readings(readings: pd.DataFrame) -> Figure:
    """Printed test errors and our parts and wholes, set by set."""
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.6), sharex=True)
    panels = {"5": ("ML", "QDA, closed form"), "3": ("RC", "naive Bayes, RC")}
    for ax, (table, (method, title)) in zip(axes, panels.items()):
        part = readings.xs((table, method), level=("table", "method"))
        part = part.xs("test_error_percent", level="metric").reset_index()
        part = part.sort_values("row", key=lambda r: r.astype(int))
        low = part.value_printed.str[:2].astype(float)
        where = np.arange(len(part))
        ax.barh(where, 1.0, left=low, color="#bbbbbb", label="printed")
        for k, reading in enumerate(READINGS):
            ax.plot(
                part["value", reading].astype(float),
                where,
                markers[k],
                color=palette[k],
                label=reading,
                ls="none",
            )
        ax.set_yticks(where, part.dataset)
        ax.set(title=title, xlabel="test error, per cent")
        ax.invert_yaxis()
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig


def signature(table: str, method: str, earlier: str) -> pd.DataFrame:
    """Intervals of 0.75 train + 0.25 test, and the error on all rows."""
    cells = published.table("rc2025", table)
    cells = cells[(cells.method == method) & cells.metric.str.contains("error")]
    wide = cells.pivot(index="dataset", columns="metric", values="value")
    low = 0.75 * wide.train_error_percent + 0.25 * wide.test_error_percent
    whole = published.table("rc2024", earlier)
    whole = whole[whole.metric == "empirical_error_fraction"]
    whole = 100 * whole[whole.method == method].set_index("dataset")["value"]
    whole = whole.rename({"svmguide3": "svmguid3"})
    found = pd.DataFrame({"low": low, "all rows": whole}).dropna()
    outside = np.maximum(found.low - (found["all rows"] + 0.05), (found["all rows"] - 0.05) - (found.low + 1))
    return found.assign(outside=outside.clip(lower=0).round(3))


def parts_and_wholes() -> dict[str, dict[str, int | str]]:
    """On how many sets the printed errors of the parts add up to the whole."""
    summary = {}
    for table, earlier, method in (
        ("5", "IV", "ML"),
        ("9", "V", "MAP"),
        ("3", "II", "ML"),
        ("7", "III", "MAP"),
    ):
        found = signature(table, method, earlier)
        summary[f"{table}: {' '.join(RC2025_MODELS[table])}"] = {
            "sets": len(found),
            "inside": int((found.outside == 0).sum()),
            "largest distance": f"{found.outside.max():.2f}",
            "and where": found.outside.idxmax(),
        }
    return summary


def random_starts() -> pd.DataFrame:
    """Mean training errors from random models."""
    random_start = experiments.results("rc2024", "VIII")
    means = random_start.pivot(index="row", columns=["method", "metric"], values="value")
    ml_start = experiments.results("rc2024", "VI")
    ml_start = ml_start[ml_start.metric == "empirical_error_fraction"].pivot(
        index="row", columns="method", values="value"
    )
    both = means.xs("empirical_error_fraction", level="metric", axis=1).dropna()
    starts = pd.DataFrame(
        {
            "a random model": both.mean().rename({"Random": "start"}),
            "maximum likelihood": ml_start.loc[both.index].mean().rename({"ML": "start"}),
        }
    )
    starts.columns.name = f"mean error over {len(both)} sets, from"
    return starts


def rises(
    MODELS: Mapping[str, tuple[str, str]],
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str], pd.DataFrame]:
    """In how many runs soft error and log-loss rise."""
    histories = experiments.results("study", "training-histories")
    histories = histories.pivot(
        index=["setting_value", "dataset", "method"], columns="metric", values="value"
    )
    rc = histories.xs("RC", level="method")
    rc = rc[rc.updates > 0]
    label_of = {f"rc2024:{t}": f"{t}: {' '.join(m)}" for t, m in MODELS.items()}
    facts = pd.DataFrame(
        {
            "runs": 1,
            "soft error rises": rc.soft_error_rises > 0,
            "and ends higher": rc.soft_error_last > rc.soft_error_first,
            "error rises": rc.error_rises > 0,
            "log-loss rises": rc.log_loss_rises > 0,
        }
    )
    facts = facts.groupby(level="setting_value").sum().rename(index=label_of)
    facts.index.name = None
    facts.loc["all"] = facts.sum()
    return histories, rc, label_of, facts


def log_losses(histories: pd.DataFrame, label_of: Mapping[str, str]) -> pd.DataFrame:
    """Median training log-losses at the start and after each learner."""
    final = histories.log_loss_last.unstack("method")
    start = histories.log_loss_first.unstack("method").RC
    reached = {}
    for setting, label in label_of.items():
        if setting not in final.index.get_level_values(0):
            continue
        part = final.loc[setting]
        for method in ("RC", "GD", "GD corrected"):
            if part[method].notna().any():
                reached[f"{label}, {len(part)} sets", method] = {
                    "start": start.loc[setting].median(),
                    "end": part[method].median(),
                    "infinite": int(np.isinf(part[method]).sum()),
                }
    return pd.DataFrame.from_dict(reached, orient="index").round(2)


def digit_curves() -> Figure:
    """Training error on optdigits along RC and gradient descent."""
    curves = experiments.results("study", "digits-curves")
    curves["iteration"] = curves.metric.str.split("|").str[1].astype(int)
    fig, axes = plt.subplots(1, 3, figsize=(6.8, 3.1))
    for ax, pair, title in zip(
        axes, (("II", "III"), ("IV", "V"), ("VI", "VII")), ("naive Bayes", "QDA", "logistic regression")
    ):
        for table, line in zip(pair, ("-", "--")):
            part = curves[curves.setting_value == f"rc2024:{table}"]
            for method, name, label in (("RC", "published", "RC"), ("GD", "gradient", "gradient descent")):
                run = part[part.method == method].sort_values("iteration")
                label = label if line == "-" else None  # one name is enough for both starts
                ax.plot(run.iteration, run["value"], line, color=look(name)["color"], label=label)
        ax.set(title=title, xlabel="iteration")
        if title == "QDA":  # RC ends near zero, gradient descent near one
            ax.set_yscale("symlog", linthresh=1e-3)
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("training error")
    label_lines(axes[0], {"RC": (50, 0.03, "left"), "gradient descent": (130, 0.061, "right")})
    return fig


def stopping_rules_apart() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows in which two stopping rules differ, and which agrees."""
    rules = stopping_rules()
    iterations = rules[rules.metric == "iterations"]
    apart = (iterations.value_least - iterations.value_first).abs() > 0.5
    iterations = iterations[apart]
    stopped = iterations.groupby(["method", "table", "start"]).agg(
        iterations_apart=("printed", "size"),
        least=("agrees_least", "sum"),
        first_rise=("agrees_first", "sum"),
    )
    both = (iterations.agrees_least & iterations.agrees_first).groupby(
        [iterations.method, iterations.table, iterations.start]
    )
    stopped = stopped.assign(both=both.sum())
    return iterations, stopped


def readings_tried() -> tuple[pd.DataFrame, pd.DataFrame, Array, pd.DataFrame]:
    """Numbers that agree as stated and under each reading."""
    tried = judged_readings()
    columns = columns_explained(tried)
    is_held = columns.index.get_level_values("reading").str.startswith("nb-hold-e")
    readings = columns[~is_held][["numbers", "stated", "under"]]
    readings = readings.rename(index=SHORT, level=2).rename(index=NAMED, level=0)
    return tried, columns, is_held, readings


def held_distributions(columns: pd.DataFrame, is_held: Array) -> pd.DataFrame:
    """Numbers that agree when whole distributions are held."""
    held = columns[is_held].reset_index()
    (number,) = held.numbers.unique()
    form = held.reading.map(NAMED).replace("exact, ML", "exact")
    return pd.DataFrame(
        {
            "table and rule": held.table + ": " + form,
            "column": held.metric.map(SHORT),
            f"as stated, of {number}": held.stated,
            f"under the rule, of {number}": held.under,
            "where the closed form does": held.sound_under.astype(str) + " of " + held["sound"].astype(str),
            "accepted": held.accepted.map({True: "yes", False: "no"}),
        }
    ).set_index(["table and rule", "column"])


def open_numbers(card: pd.DataFrame) -> pd.DataFrame:
    """Numbers without an explanation, by how far they are off."""
    rest = card[card.verdict == "differs: unexplained"].copy()
    sizes = published.tables()
    sizes = sizes.drop_duplicates(["source", "dataset"])
    sizes = sizes.set_index(["source", "dataset"]).n_instances
    n = sizes.reindex(pd.MultiIndex.from_frame(rest[["source", "dataset"]]))
    printed = rest.value_printed.str.extract(r"([\d.]+)")[0].astype(float)
    gap = (rest["value"] - printed).abs()
    is_error = rest.metric == "empirical_error_fraction"
    rows_apart = (gap * n.to_numpy()).where(is_error)
    near = np.where(is_error, rows_apart <= 3.5, gap <= 3)
    is_count = rest.metric.isin(["iterations", "reach"])
    rest["kind"] = np.select(
        [is_error & near, is_count & near, is_error | is_count],
        ["at most 3 rows", "at most 3 iterations", "more"],
        default="error in per cent",
    )
    kinds = pd.crosstab([rest.source, rest.table.rename("table")], rest.kind)
    return kinds[[kinds.columns[1], kinds.columns[0], *kinds.columns[:1:-1]]]
