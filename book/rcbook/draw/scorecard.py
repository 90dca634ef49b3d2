"""Figures and tables of the chapter *The scorecard*: verdicts, power, figures of the sources."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from scipy.stats import norm

from rcbook import published
from rcbook.experiments import results, tolerance
from rcbook.experiments.scorecard import VERDICTS
from rcbook.experiments.studies.tables_of_rc2025 import ToyGaussians
from rcbook.figures import ink, label_lines, look
from rcbook.words import in_words
from rcpkg import RiskCalibration
from rcpkg.plotting import palette


def cut_and_rounded() -> dict[str, int]:
    """Printed digits that are cut, rounded, or neither."""
    same_models = [("II", "3"), ("III", "7"), ("IV", "5"), ("V", "9")]
    older = published.table("rc2024", "I").drop_duplicates("row")
    data_sets = older.set_index("row").dataset
    votes = {"rounded": 0, "cut": 0, "neither": 0}
    for earlier, later in same_models:
        all_rows = published.wide("rc2024", earlier, "empirical_error_fraction")
        all_rows = 100 * all_rows.iloc[:, 0].rename(data_sets)
        sets = published.table("rc2025", later).drop_duplicates("row")
        sets = sets[sets.n_instances > 10_000]
        whole = published.wide("rc2025", later, "train_error_percent").iloc[:, 0]
        for row, name in zip(sets.row, sets.dataset):
            if name in all_rows and all_rows[name] % 1 >= 0.5:
                above = whole[row] - np.floor(all_rows[name])
                kind = {0: "cut", 1: "rounded"}.get(above, "neither")
                votes[kind] += 1
    return votes


def verdicts_by_table(card: pd.DataFrame) -> Figure:
    """Verdicts on the printed numbers as shares, table by table."""
    colours = (palette[0], palette[5], palette[2], palette[1], "black", "#e3e3e3")
    hatches = ("", "", "..", "//", "", "")
    tables = published.index()
    sources = list(tables.source.unique())
    heights = [(tables.source == source).sum() + 1.5 for source in sources]
    fig, axes = plt.subplots(len(sources), sharex=True, figsize=(6.6, 10.5), height_ratios=heights)
    for ax, source in zip(axes, sources):
        of_source = card[card.source == source]
        order = list(of_source.table.unique())
        counts = pd.crosstab(of_source.table, of_source.verdict)
        counts = counts.reindex(index=order, columns=VERDICTS, fill_value=0)
        share = counts.div(counts.sum(axis=1), axis=0)
        left = np.zeros(len(order))
        for name, colour, hatch in zip(VERDICTS, colours, hatches):
            ax.barh(
                order,
                share[name],
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0,
                label=name,
            )
            left += share[name].to_numpy()
        for height, total in enumerate(counts.sum(axis=1)):
            ax.text(1.01, height, total, va="center", fontsize=9)
        ax.invert_yaxis()
        ax.set(title=in_words(source), xlim=(0, 1))
        ax.tick_params(axis="y", labelsize=9)
        ax.grid(False)
    axes[-1].set_xlabel("share of the numbers of a table")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9)
    return fig


def power_of_verdicts(card: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """How many numbers can be decided, and how often another method would pass."""
    by_source = compared.groupby("source", sort=False)
    ratio = (2 * compared.half_width / compared["range"]).where(
        (compared.others > 0) & (compared["range"] > 0)
    )
    worth = pd.DataFrame(
        {
            "compared": by_source.size(),
            "can be decided, %": 100 * by_source.decidable.mean(),
            "median of L / R": ratio.groupby(compared.source, sort=False).median(),
            "others would pass, %": 100 * by_source.others_pass.mean(),
        }
    )
    whole = ["can be decided, %", "others would pass, %"]
    worth[whole] = worth[whole].round().astype(int)
    return worth


METRICS = {
    "train_error_percent": "training errors",
    "test_error_percent": "test errors",
    "iterations": "iterations",
    "reach": "reach",
    "count_win": "wins",
    "count_draw": "draws",
    "count_loss": "losses",
}


def power_in_words(compared: pd.DataFrame) -> list[str]:
    """Items of a list: what the numbers of calibration decide, and tables of which all or few can be decided."""
    lines = []
    for metric in list(METRICS)[:3]:
        part = compared[(compared.source == "rc2025") & (compared.metric == metric)]
        agree = part.verdict.isin(["reproduced", "statistically consistent"])
        lines.append(
            f"* rc2025, {METRICS[metric]}: {agree.sum()} of {len(part)} numbers agree, "
            f"and of those that agree {(agree & part.decidable).sum()} can be decided; on average "
            f"{100 * part.others_pass.mean():.0f} per cent of the other methods would pass"
        )
    tables = {"VIII": "rc2024"} | dict.fromkeys(("6.1", "6.2", "6.3"), "thesis2007")
    for table, source in tables.items():
        part = compared[(compared.source == source) & (compared.table == table)]
        lines.append(f"* {source}, Table {table}: {part.decidable.sum()} of {len(part)} can be decided")
    return lines


def widths_of_acceptance(compared: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Median half-width of acceptance, as it is and with infinitely many runs."""
    rows = {}
    for source, tables_ in {
        "rc2024": ["VIII"],
        "rc2025": ["3", "5", "7", "9", "11"],
        "thesis2007": ["5.1 to 5.10, 5.12", "5.13 to 5.22", "6.1"],
    }.items():
        for name in tables_:
            part = compared[(compared.source == source) & (compared.n_runs > 1)]
            number = part.table.str.extract(r"^5\.(\d+)$")[0].astype(float)
            chosen = {
                "5.1 to 5.10, 5.12": number.between(1, 12) & (number != 11),
                "5.13 to 5.22": number > 12,
            }.get(name, part.table == name)
            part = part[chosen]
            part = part[part.metric.str.contains("error")]
            limits = [
                3
                * cell.value_se
                * np.sqrt(cell.n_runs / float(tolerance(source, cell.table, cell.metric)["published_runs"]))
                for cell in part.itertuples()
            ]
            unit = published.half_unit(part.value_printed)
            points = 100 if source == "rc2024" else 1  # it prints shares
            rows[f"{source}: {name}"] = {
                "printed runs": int(
                    tolerance(source, part.table.iloc[0], part.metric.iloc[0])["published_runs"]
                ),
                "half-width": points * part.half_width.median(),
                "with infinitely many runs of ours": points * (limits + unit).median(),
            }
    return rows


def toy() -> Figure:
    """Joint densities and boundaries of the toy example, before and after an update."""
    X, y = np.array([[0.0], [1.0], [4.0]]), np.array([1, 2, 2])
    grid = np.linspace(-3.5, 6, 400)
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True)
    for ax, updates in zip(axes, (0, 1)):
        learner = RiskCalibration.as_published(
            ToyGaussians(), learning_rate=0.5, max_iter=updates, stopping="none"
        ).fit(X, y)
        means = learner.estimator_.parameters_
        border = means.mean()
        for label, mean, colour in zip((1, 2), means, palette):
            density = 0.5 * norm.pdf(grid, mean)
            ax.plot(grid, density, color=colour)
            inside = grid < border if label == 1 else grid > border
            ax.fill_between(grid, density, where=inside, color=colour, alpha=0.2)
            ax.text(mean, 0.21, f"class {label}", color=ink(colour), ha="center")
            rows = X[y == label, 0]
            ax.plot(rows, np.zeros(len(rows)), "os"[label - 1], color=colour)
        ax.axvline(border, color="0.5", lw=1)
        ax.set(xlabel="x", ylim=(-0.01, 0.24))
        ax.set_title(f"$\\mu_1$ = {means[0]:.2f}, $\\mu_2$ = {means[1]:.2f}", fontsize=9)
    axes[0].set_ylabel("p(x, y)")
    return fig


def random_models() -> tuple[pd.DataFrame, Figure, dict[tuple, int]]:
    """Training errors from random models, by RC and by gradient descent."""
    curves = results("study", "digits-random-start")
    curves["iteration"] = curves.metric.str.partition("|")[2].astype(int)
    fig, ax = plt.subplots(figsize=(5.2, 3.0))
    lengths = {}
    colours = {"RC": look("published")["color"], "GD": look("gradient")["color"]}
    for method, colour in colours.items():
        for start, run in curves[curves.method == method].groupby("setting_value"):
            run = run.sort_values("iteration")
            lengths[method, start] = len(run)
            ax.plot(run.iteration, run["value"], color=colour, lw=1)
            last = run.iloc[-1]
            ax.plot(last.iteration, last["value"], "os"[method == "GD"], ms=4, color=colour)
    ax.text(40, 0.14, "RC", color=ink(colours["RC"]))
    ax.text(90, 0.52, "gradient descent", color=ink(colours["GD"]))
    ax.set(xlabel="iteration", ylabel="training error", ylim=(0, 1))
    return curves, fig, lengths


def panels_of_wanbiac() -> Figure:
    """Conditional log-likelihoods and iterations of WANBIA-C and its rivals."""
    fig, axes = plt.subplots(1, 3, figsize=(7.2, 2.7))
    trace = results("study", "wanbiac-trace-of-a-part")
    logistic = look("logistic regression")["color"]
    for system, label, colour in (
        ("natural", "LR", logistic),
        ("closed form", "WANBIA-C", look("WANBIA-C")["color"]),
    ):
        part = trace[trace.method == system].copy()
        part["k"] = part.metric.str.removeprefix("loss_").astype(int)
        part = part.sort_values("k")
        axes[0].semilogx(part.k, -part["value"], color=colour, label=label)
    axes[0].set(xlabel="iterations", ylabel="CLL per row", title="Localization")
    wide = results("study", "wanbiac-adaptive").pivot(
        index="row", columns=["metric", "method"], values="value"
    )
    for ax, metric, title in zip(axes[1:], ("iterations_1e-3", "seconds_1e-3"), ("iterations", "seconds")):
        ours = wide[metric]["closed form"]
        for other, colour, mark in zip(("natural", "adaptive diagonal"), (logistic, "black"), "o^"):
            ax.loglog(
                ours,
                wide[metric][other],
                mark,
                ms=3,
                color=colour,
                label={"natural": "LR"}.get(other, "LR, adaptive"),
            )
        ends = [ours.min(), ours.max()]
        ax.loglog(ends, ends, color="0.6", lw=1)
        ax.set(xlabel="WANBIA-C", title=title)
    label_lines(axes[0], {"LR": (6, -1.2, "left"), "WANBIA-C": (500, -0.35, "right")})
    axes[1].legend(loc="lower right", borderpad=0, handletextpad=0)
    return fig
