"""Figures and tables of the chapter *Bayesian networks*: trees, moves, ranks, rivals, curves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rcbook.experiments.comparisons import contest
from rcbook.experiments.studies import calibrated_networks as before
from rcbook.experiments.studies import calibrated_networks_mended as study
from rcbook.figures import look
from rcbook.words import in_words
from rcpkg import TAN, plotting
from rcpkg.base import Array
from rcpkg.families.structure import mutual_information
from rcpkg.rows import Rows

STYLES = {
    "KDB": look("closed form") | {"label": "closed network", "linestyle": "--"},
    "KDB, RC safe, nested target": look("nested target") | {"label": "network, nested target"},
    "KDB, RC safe, pooled target": look("target") | {"label": "network, pooled target"},
    "NB, RC safe, pooled target": look("target")
    | {"label": "naive Bayes, calibrated", "linestyle": ":", "markerfacecolor": "white"},
    "logistic regression": look("logistic regression") | {"label": "logistic regression", "linestyle": ":"},
    "random forest": look("random forest") | {"label": "random forest", "linestyle": "-."},
    "gradient boosting": look("boosting") | {"label": "gradient boosting", "linestyle": "-."},
}


RIVALS = (
    "logistic regression",
    "random forest",
    "gradient boosting",
    "NB, RC safe, pooled target",
    "KDB",
    "KDB, RC as published",
    "TAN, HDP",
    "KDB, HDP",
    "selective KDB",
)


def contests(scores: pd.DataFrame, rope: float) -> pd.DataFrame:
    """On how many sets of few rows, and of more, the calibrated network is better/level/worse than each rival."""
    few = np.array([before.sets()[name][0] <= before.FEW_ROWS for name in scores.index])
    columns = {}
    for target in ("pooled", "nested"):
        pairs = [(f"KDB, RC safe, {target} target", rival) for rival in RIVALS]
        for label, part in (("≤ 2,000", few), ("more", ~few)):
            found = contest(scores[part], pairs, rope).itertuples()
            columns[f"{target} target", label] = [f"{row.better}/{row.level}/{row.worse}" for row in found]
    return pd.DataFrame(columns, index=RIVALS)
"""The rivals of the calibrated network that contests name."""


MOST = 0.3  # farther differences are drawn at the border


MARKS = {"as stated": " ✓", "the reverse": " ✗", "": ""}


STATED = {
    1: "less than its closed form",
    2: "less than calibrated naive Bayes",
    3: f"less than the forest, up to {before.FEW_ROWS:,} rows",
    4: "more than boosting, beyond that",
    5: "less than KDB, HDP",
    6: "less than selective KDB",
}


def learnt_tree(codes: Array, cancer: Mapping[str, Any], tree: TAN, names: Sequence[str]) -> Figure:
    """The tree of TAN on ten measurements, features joined by lines."""
    _, pairs = mutual_information(Rows.from_arrays(codes.astype(int), cancer.target), tree.n_states_, 2)
    children = {j: [] for j in range(-1, 10)}
    for j, parents in enumerate(tree.parents_):
        children[parents[0] if parents else -1].append(j)
    place = {}

    def put(j, depth, left):
        """Places of a feature and what hangs below it; the width that takes."""
        width = 0
        for child in children[j]:
            width += put(child, depth + 1, left + width)
        place[j] = (left + max(width, 1) / 2 - 0.5, -depth)
        return max(width, 1)

    put(-1, -1, 0.0)
    figure, ax = plt.subplots(figsize=(6.4, 4.6))
    for j, parents in enumerate(tree.parents_):
        for p in parents:
            (x0, y0), (x1, y1) = place[p], place[j]
            ax.annotate(
                "",
                (x1, y1 + 0.16),
                (x0, y0 - 0.16),
                arrowprops={
                    "arrowstyle": "-|>",
                    "linewidth": 0.8 + 4 * pairs[p, j],
                    "color": plotting.palette[0],
                },
            )
            ax.text(
                (x0 + x1) / 2,
                (y0 + y1) / 2,
                f"{pairs[p, j]:.2f}",
                size=8,
                ha="center",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
    for j, name in enumerate(names):
        ax.text(
            *place[j],
            name.replace(" ", "\n"),
            ha="center",
            va="center",
            size=9,
            bbox={"boxstyle": "round", "facecolor": "white"},
        )
    xs, ys = zip(*(place[j] for j in range(10)))
    ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.4, 0.4))
    ax.set_axis_off()
    return figure


def moved(of_naive: Array, of_tree: Array, names: Sequence[str]) -> Figure:
    """Relative entropy of calibrated to closed forms, set by set."""
    figure, ax = plt.subplots(figsize=(6.8, 3.4))
    at_feature = np.arange(10)
    for values, shift, label, colour, hatch in (
        (of_naive, -0.2, "naive Bayes", plotting.palette[0], "//"),
        (of_tree, 0.2, "tree", plotting.palette[1], ""),
    ):
        ax.barh(at_feature + shift, values, 0.4, label=label, color=colour, hatch=hatch, edgecolor="white")
    ax.set_yticks(at_feature, names)
    ax.invert_yaxis()
    ax.set(xlabel="relative entropy to the closed form (nats)")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    return figure


def ranks_of_learners(tables: Mapping[str, pd.DataFrame], METRICS: Mapping[str, str]) -> pd.DataFrame:
    """Mean ranks of all learners by each score, and median seconds."""
    columns = {("mean rank", title): tables[metric].rank(axis=1).mean() for metric, title in METRICS.items()}
    table = pd.DataFrame(columns).reindex(tables["log_loss"].columns).round(1)
    table["seconds", "median"] = tables["seconds"].median().round(2)
    return table.rename_axis(f"over {len(tables['log_loss'])} sets")


def ranks_by_size(
    everywhere: Sequence[str], groups: Mapping[str, list[str]], tables: Mapping[str, pd.DataFrame]
) -> Callable[..., Any]:
    """Mean ranks by log-loss in groups of data sets."""

    def by_group(metric="log_loss"):
        """Mean ranks by one score in each group, and by rows over all sets."""
        rows = pd.Series({name: before.sets()[name][0] for name in everywhere})
        parts = {
            "≤ 2,000 rows": list(rows.index[rows <= before.FEW_ROWS]),
            "more rows": list(rows.index[rows > before.FEW_ROWS]),
        } | groups
        return pd.DataFrame(
            {
                (label, f"{len(of)} sets"): tables[metric].loc[of].rank(axis=1).mean().round(1)
                for label, of in parts.items()
            }
        )

    return by_group


def hypotheses() -> Callable[..., Any]:
    """On how many sets the network has a lower, level and higher log-loss, group by group."""

    def verdicts(losses, groups):
        """Sets with less, level, more log-loss, and p by Holm; ✓ as stated, ✗ the reverse."""
        table = study.hypotheses(losses, groups)
        rows = list(table.itertuples())
        table["sets"] = [f"{row.better}/{row.level}/{row.worse}" for row in rows]
        table["p"] = [f"{row.p_holm:.2g}{MARKS[row.outcome]}" for row in rows]
        table["stated"] = table.hypothesis.map(STATED)
        index = ["hypothesis", "stated", "target"]
        wide = table.pivot(index=index, columns="group", values=["sets", "p"])
        wide = wide[[(of, group) for group in groups for of in ("sets", "p")]]
        return wide.swaplevel(axis=1).droplevel("hypothesis").rename_axis(columns=[None, None])

    return verdicts


def ends_of_the_order(tables: Mapping[str, pd.DataFrame]) -> Callable[..., Any]:
    """Log-loss of the five sets at each end of the order."""

    def extremes():
        """Sets where the network wins or loses most against both linear learners."""
        ours = "KDB, RC safe, pooled target"
        losses = tables["log_loss"]
        linear = losses[["logistic regression", "NB, RC safe, pooled target"]]
        order = (losses[ours] - linear.min(axis=1)).sort_values().index
        shown = losses[[ours, "KDB, RC safe, nested target", *linear, *study.RIVALS, *RIVALS[1:3]]]
        shown = shown.loc[:, ~shown.columns.duplicated()].drop(columns="TAN, HDP").round(3)
        shown.columns = pd.MultiIndex.from_tuples(
            [("KDB", "pooled"), ("KDB", "nested"), ("linear", "logistic"), ("linear", "NB")]
            + [("others", of) for of in ("HDP", "selective KDB", "forest", "boosting")]
        )
        shown["", "rows"] = [before.sets()[name][0] for name in losses.index]
        names = {"kr_vs_kp": "chess", "breast_cancer_wisconsin": "breast cancer"}
        return shown.loc[[*order[:5], *order[-5:]]].rename(names)

    return extremes


def losses_by_size(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Log-loss of the calibrated network minus a rival, against the number of rows."""
    losses = tables["log_loss"]
    rows = np.array([before.sets()[name][0] for name in losses.index])
    figure, axes = plt.subplots(3, 1, figsize=(6.4, 6.6), layout="constrained", sharex=True, sharey=True)
    for ax, rival in zip(axes, ("KDB, HDP", "random forest", "gradient boosting")):
        for target, method in (("nested", "nested target"), ("pooled", "target")):
            difference = losses[f"KDB, RC safe, {target} target"] - losses[rival]
            style = look(method) | {"linestyle": "none", "markersize": 4, "label": f"{target} target"}
            ax.semilogx(rows, difference.clip(-MOST, MOST), **style)
        ax.axhline(0, color="0.5", linewidth=1)
        ax.axvline(before.FEW_ROWS, color="0.8", linewidth=1)
        ax.set_title(f"against {in_words(rival)}", loc="left")
    axes[1].set(ylabel="log-loss of the network less that of the rival")
    axes[2].set(xlabel="rows of the set")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def learning_curves() -> tuple[pd.DataFrame, Figure]:
    """Log-loss over the number of rows of connect-4."""
    curves = study.curves("log_loss").loc["connect_4"]
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for learner, style in STYLES.items():
        curve = curves[learner].dropna()
        ax.semilogx(curve.index, curve, **style, markersize=4)
    ax.set(xlabel="training rows", ylabel="log-loss on test rows")
    figure.legend(loc="outside upper left", ncols=2)
    return curves, figure
