"""Figures and tables of the chapter *Preconditioned logistic regression*: conditions, iterations, errors, streams."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import minimize

from rcbook.experiments import results
from rcbook.experiments.studies.figures_of_wanbia2014 import (
    MAX_ITER,
    SHOWN,
    STREAMS,
    SYSTEMS,
    TRACED,
    TRACED_AFTER,
)
from rcbook.experiments.studies.tables_of_wanbia2014 import (
    FEW,
    LARGEST,
    MEASURES,
    PARTS,
    REPETITIONS,
    ROWS,
    SMALL,
    missing_values,
    set_means,
    sign_test,
    sizes,
    wins_draws_losses,
)
from rcbook.figures import label_lines, look
from rcbook.published import table
from rcbook.words import in_words
from rcpkg.plotting import palette

COORDINATES = {
    "natural": look("logistic regression")["color"],
    "closed form": look("WANBIA-C")["color"],
    "curvature at the start": palette[4],
    "whitened": palette[3],
}
"""Colours of systems of coordinates: natural ones are those of logistic regression, log θ those of WANBIA-C."""


def curvature_of_states() -> Figure:
    """Curvature of the negative conditional log-likelihood in three coordinates, against the probability of a state."""
    theta = np.geomspace(1e-3, 0.9999, 250)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1))
    curves = {
        "natural: θ": theta,
        "WANBIA-C: θ log²θ": theta * np.log(theta) ** 2,
        "exact diagonal": np.ones_like(theta),
    }
    styles, colours = ("-", "--", ":"), (COORDINATES["natural"], COORDINATES["closed form"], "0.4")
    for ax, x, label in (
        (axes[0], theta, "probability θ of a state in its class"),
        (axes[1], 1 - theta, "1 − θ"),
    ):
        for (name, values), colour, style in zip(curves.items(), colours, styles):
            ax.loglog(x, values, style, color=colour, label=name)
        ax.set(xlabel=label, ylim=(1e-5, 3))
        ax.minorticks_off()
    axes[0].set(ylabel="curvature, up to nᵧ(1 − p)")
    axes[1].set_xlim(1e-3, 1)
    places = {
        "natural: θ": (0.012, 3e-3, "left"),
        "WANBIA-C: θ log²θ": (0.8, 1e-4, "right"),
        "exact diagonal": (1e-3, 1.8, "left"),
    }
    label_lines(axes[0], places)
    return figure


def descents_in_the_plane() -> tuple[Figure, dict[str, int]]:
    """Iterates of L-BFGS with two features, in four systems of coordinates, over contours of the loss."""
    rng = np.random.default_rng(8)
    label = rng.uniform(size=3000) < 0.5
    A = rng.uniform(size=3000) < np.where(label, 0.6, 0.35)
    B = rng.uniform(size=3000) < np.where(label, 0.03, 0.005) + 0.02 * A
    plane = np.column_stack([A, B]).astype(float)
    prob = (plane[label].sum(axis=0) + 0.5) / (label.sum() + 1)
    half = plane / 2
    gram = half.T @ half
    values, vectors = np.linalg.eigh(gram)
    systems = {
        "natural: β": np.eye(2),
        "closed form: β / log θ": np.diag(np.log(prob)),
        "curvature at the start": np.diag(1 / np.sqrt(np.diag(gram))),
        "whitened": vectors / np.sqrt(values),
    }

    def loss(beta):
        scores = beta @ plane.T
        return np.logaddexp(0, scores).mean(axis=-1) - scores @ label / len(label)

    def slope(beta):
        return plane.T @ (1 / (1 + np.exp(-(plane @ beta))) - label) / len(label)

    def descent(T):
        """Iterates of L-BFGS in the coordinates z, β = T z."""
        path = [np.zeros(2)]
        minimize(
            lambda z: loss(T @ z),
            np.zeros(2),
            jac=lambda z: T.T @ slope(T @ z),
            method="L-BFGS-B",
            callback=lambda z: path.append(z.copy()),
            options={"ftol": 0, "gtol": 1e-6},
        )
        return np.array(path)

    best = minimize(loss, np.zeros(2), jac=slope, tol=1e-12).x
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 6.0))
    plane_steps = {}
    for ax, (name, T), colour in zip(axes.flat, systems.items(), COORDINATES.values()):
        path, end = descent(T), np.linalg.solve(T, best)
        gaps = loss(path @ T.T) - loss(best)
        plane_steps[name] = int(np.argmax(gaps <= 1e-6 * gaps[0]))
        reach = 1.35 * max(np.abs(path - end).max(), np.abs(end).max() / 2)
        g1, g2 = np.meshgrid(*(np.linspace(c - reach, c + reach, 41) for c in end))
        height = loss(np.column_stack([g1.ravel(), g2.ravel()]) @ T.T) - loss(best)
        levels = gaps[0] * np.array([1e-3, 1e-2, 0.05, 0.2, 0.5, 1, 2])
        ax.contour(g1, g2, height.reshape(g1.shape), levels, colors="0.7", linewidths=0.8)
        ax.plot(*path.T, "o-", color=colour, markersize=3.5, linewidth=1.1)
        ax.plot(*end, "k*", markersize=8)
        ax.set(title=f"{name}: {plane_steps[name]} steps", aspect="equal")
    return figure, plane_steps


def coordinates_in_words(counts: pd.DataFrame, compared: pd.DataFrame) -> list[str]:
    """What iterations to a small gap say of pairs and triples of coordinates, a sentence each."""
    gain = compared.loc[("1e-3", "natural / closed form")]
    both = counts[["whitened", "closed form"]].dropna()
    three = counts[["whitened", "closed form", "curvature at start"]].dropna()
    first = three.whitened < three.drop(columns="whitened").min(axis=1)
    near = against(counts, "closed form", "curvature at start")
    return [
        f"closed form against natural: fewer iterations on {gain.fewer:.0f} of {gain.sets:.0f} sets, "
        f"median factor {gain['median']:.2f}, largest {gain.largest:.1f}",
        f"whitened against closed form: fewer on {(both['whitened'] < both['closed form']).sum()} of {len(both)}",
        f"whitened against both others: fewer on {first.sum()} of {len(first)}",
        f"closed form against frequencies: fewer on {near['fewer']} of {near['sets']} sets, more on {near['more']}, "
        f"median factor {near['median']:.2f}",
    ]


def against(counts: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    """Median and range of the ratio of two systems, wins and losses.

    A system that does not arrive where the other does counts at the limit.
    """
    both = counts[[one, other]].dropna(how="all")
    if "whitened" in (one, other):  # not tried on sets of many columns
        both = both.dropna()
    ratio = (both[other].fillna(MAX_ITER) / both[one].fillna(MAX_ITER)).dropna()
    return {
        "sets": len(ratio),
        "one did not arrive": int(both.isna().any(axis=1).sum()),
        "median": ratio.median(),
        "least": ratio.min(),
        "largest": ratio.max(),
        "fewer": int((ratio > 1).sum()),
        "more": int((ratio < 1).sum()),
    }


def compared_iterations() -> tuple[pd.Series, dict[str, pd.DataFrame], pd.DataFrame, pd.DataFrame]:
    """Iterations and seconds of each system, which sets are separable, and pairs of systems compared."""
    trial = results("study", "wanbiac-coordinates")
    facts = trial[trial.method.fillna("") == ""]
    facts = facts.pivot(index="row", columns="metric", values="value")
    separable = facts.separable > 0

    def by_system(metric):
        part = trial[trial.metric == metric]
        part = part.pivot(index="row", columns="method", values="value")
        return part[list(SYSTEMS)]

    its = {gap_: by_system(f"iterations_{gap_}") for gap_ in ("1e-3", "1e-6")}
    secs = by_system("seconds_1e-3")
    held = [name for name in sizes() if name not in PARTS]
    print(f"{len(facts)} of {len(held)} sets have been run, {int(separable.sum())} of them separable")
    if missing := [name for name in held if name not in facts.index]:
        print("not run yet:", ", ".join(missing))
    pairs = {
        "closed form": "natural",
        "curvature at NB": "natural",
        "curvature at start": "natural",
        "whitened": "natural",
        "natural from NB": "natural",
        "closed form from NB": "natural from NB",
    }
    compared = pd.DataFrame(
        {(gap_, f"{other} / {one}"): against(its[gap_], one, other) for gap_ in its for one, other in pairs.items()}
    ).T.astype({k: int for k in ("sets", "one did not arrive", "fewer", "more")})
    return separable, its, secs, compared


def scatter(ax: Axes, x: pd.Series, y: pd.Series, mark: pd.Series) -> None:
    """Two systems against each other, separable sets hollow, on log axes."""
    both = x.notna() & y.notna()
    for flag, colour, marker, label in (
        (False, palette[0], "o", "not separable"),
        (True, palette[1], "s", "separable"),
    ):
        at = both & (mark.reindex(x.index) == flag)
        fill = "none" if flag else colour
        ax.loglog(
            x[at],
            y[at],
            marker,
            color=colour,
            markersize=4,
            label=label,
            markerfacecolor=fill,
        )
    ends = np.concatenate([x[both], y[both]])
    line = [ends.min(), ends.max()]
    ax.plot(line, line, color="0.5", linewidth=0.8)
    ax.minorticks_off()


def iterations_to_the_optimum(its: Mapping[str, pd.DataFrame], separable: pd.Series, secs: pd.DataFrame) -> Figure:
    """Iterations and seconds of WANBIA-C against logistic regression, set by set."""
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.9))
    scatter(axes[0], its["1e-3"]["natural"], its["1e-3"]["closed form"], separable)
    scatter(axes[1], its["1e-6"]["natural"], its["1e-6"]["closed form"], separable)
    scatter(axes[2], secs["natural"], secs["closed form"], separable)
    for ax, title in zip(axes, ("iterations to 10⁻³", "iterations to 10⁻⁶", "seconds to 10⁻³")):
        ax.set(title=title, xlabel="natural")
    axes[0].set_ylabel("closed form")
    axes[0].legend(fontsize=7, loc="upper left")
    return figure


def traced_descents() -> tuple[pd.DataFrame, Figure]:
    """Conditional log-likelihood against iterations, on four sets, and what was traced."""
    traced = results("study", "wanbiac-traces")
    figure, axes = plt.subplots(1, 4, figsize=(7.6, 2.5), sharex=True)
    for ax, name in zip(axes, TRACED):
        for system, kind, style in (
            ("natural", "logistic regression", "-"),
            ("closed form", "WANBIA-C", "--"),
        ):
            part = traced[(traced.row == name) & (traced.method == system)]
            part = part.set_index("metric").value
            ax.semilogx(
                TRACED_AFTER,
                [-part[f"loss_{k}"] for k in TRACED_AFTER],
                style,
                color=look(kind)["color"],
                label=system,
            )
        ax.set_title(in_words(name), fontsize=8)
        ax.set_xlabel("iterations")
        ax.minorticks_off()
    axes[0].set_ylabel("CLL per row")
    axes[0].legend(fontsize=7, loc="lower right")
    return traced, figure


def printed_axes(registered: pd.DataFrame, traced: pd.DataFrame) -> pd.DataFrame:
    """Where the curves of Figure 2 begin and end, beside the ends of its printed axes, in thousands."""
    # ends of the printed axes, in thousands
    FIGURE_2 = {
        "census_income_kdd": (-220, -120),
        "covtype": (-1200, -700),
        "pendigits": (-26, -12),
        "sign": (-14, -11),
    }
    scale_of_axis = {}
    for name, (low, high) in FIGURE_2.items():
        n, r = registered.loc[name, ["n_rows", "n_classes"]].astype(int)
        part = traced[(traced.row == name) & (traced.method == "closed form")]
        loss = part.set_index("metric").value["loss_500"]
        scale_of_axis[name] = {
            "axis from": low,
            "start": -n * np.log(r) / 1000,
            "axis to": high,
            "end": -n / 2 * (np.log(r) + loss) / 1000,
            "end of the likelihood itself": -n * loss / 1000,
        }
    return pd.DataFrame(scale_of_axis).T


def iterations_by_missing_values(its: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, type]]:
    """Iterations of the natural system over WANBIA-C, on sets with and without missing values."""
    ratio = (its["1e-3"]["natural"] / its["1e-3"]["closed form"]).dropna()
    missing = [name for name, count in missing_values().items() if count]
    has = ratio.index.isin(missing)
    split = pd.DataFrame(
        {
            name: [part.size, part.median(), (part > 1).sum(), (part < 1).sum()]
            for name, part in (
                ("values missing", ratio[has]),
                ("complete", ratio[~has]),
            )
        },
        index=["sets", "median ratio", "closed form needs fewer", "more"],
    ).T
    more = ratio[ratio < 1].sort_values().index
    dearer = ", ".join(map(in_words, more)).replace("_", " ")
    print(fill(f"more iterations than natural: {dearer}", 80))
    without = [name for name in more if name not in missing]
    print("of these without missing values:", ", ".join(map(in_words, without)) or "none")
    counts = dict.fromkeys(("sets", "closed form needs fewer", "more"), int)
    return split, counts


def iterations_in_other_coordinates(its: Mapping[str, pd.DataFrame], separable: pd.Series) -> Figure:
    """Iterations of the closed form against three other systems."""
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.9))
    panels = (
        ("natural from NB", "closed form from NB", "both from naive Bayes"),
        ("curvature at start", "closed form", "diagonal of the Hessian"),
        ("whitened", "closed form", "whitened"),
    )
    for ax, (x, y, title) in zip(axes, panels):
        scatter(ax, its["1e-3"][x], its["1e-3"][y], separable)
        ax.set(title=title, xlabel=x)
    axes[0].set_ylabel("closed form")
    axes[0].legend(fontsize=7, loc="upper left")
    return figure


def errors_by_penalty() -> tuple[pd.DataFrame, list[str], tuple[int, ...], dict[tuple[str, str], str], Figure]:
    """RMSE of three learners against the penalty, on four sets."""
    penalties = results("study", "wanbiac-penalties")
    shown = [name for name in SHOWN if name in set(penalties.row)]
    exponents = (-6, -4, -2, 0, 2, 4, 6)
    drawn_to = {
        ("LR+L2", "-"): "logistic regression",
        ("WANBIA-C+L2(0)", "--"): "safe",
        ("WANBIA-C+L2(1)", "-."): "WANBIA-C",
    }
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 5.2))
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, shown):
        here = penalties[(penalties.row == name) & (penalties.metric == "rmse")].set_index("method").value
        for (model, style), kind in drawn_to.items():
            ax.plot(
                exponents,
                [here[f"{model} 1e{x}"] for x in exponents],
                linestyle=style,
                **look(kind),
                markersize=4,
                label=model,
            )
        for base, colour, style in (
            ("NB", look("closed form")["color"], ":"),
            ("LR", look("logistic regression")["color"], (0, (6, 6))),
            ("WANBIA-C", look("WANBIA-C")["color"], (6, (6, 6))),
        ):
            ax.axhline(
                here[base],
                color=colour,
                linestyle=style,
                linewidth=1,
                label=f"{base}, no penalty" if base != "NB" else "NB",
            )
        ax.set(title=name, xticks=exponents)
    for ax in axes[-1]:
        ax.set_xlabel("log₁₀ C")
    for ax in axes[:, 0]:
        ax.set_ylabel("RMSE")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return penalties, shown, exponents, drawn_to, figure


def tally(sets: pd.DataFrame, one: str, other: str, margin: float = 0.005) -> dict[str, float]:
    """How often the first learner has the lower RMSE by more than a margin, and the mean difference."""
    d = sets[one] - sets[other]
    return {
        "lower": int((d < -margin).sum()),
        "within 0.005": int((d.abs() <= margin).sum()),
        "higher": int((d > margin).sum()),
        "mean difference": d.mean(),
    }


def best_penalties(
    penalties: pd.DataFrame, exponents: tuple[int, ...]
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, dict[str, float]]]:
    """RMSE at the best penalty of each learner, and pairs of learners compared."""
    rmse = penalties[penalties.metric == "rmse"].pivot(index="row", columns="method", values="value")
    best = pd.DataFrame(
        {
            model: rmse[[f"{model} 1e{x}" for x in exponents]].min(axis=1)
            for model in ("LR+L2", "WANBIA-C+L2(0)", "WANBIA-C+L2(1)")
        }
    ).join(rmse[["NB", "LR", "WANBIA-C"]])
    print(f"{len(best)} sets, RMSE at the best C of each")
    counts = {
        f"{one} against {other}": tally(best, one, other)
        for one, other in (
            ("WANBIA-C+L2(0)", "LR+L2"),
            ("WANBIA-C+L2(1)", "LR+L2"),
            ("WANBIA-C+L2(1)", "NB"),
            ("WANBIA-C+L2(1)", "WANBIA-C"),
            ("LR+L2", "LR"),
        )
    }
    good = best["NB"] <= best["LR+L2"] + 0.005
    for when, part in (("NB good", best[good]), ("NB not", best[~good])):
        pair = "WANBIA-C+L2(1)", "LR+L2"
        counts[" against ".join(pair) + f", {when}"] = tally(part, *pair)
    return rmse, best, counts


def errors_at_the_best_penalty(best: pd.DataFrame) -> Figure:
    """RMSE of two WANBIA-C against ridge logistic regression, at the best penalty of each."""
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.1), sharey=True)
    for ax, model, kind in zip(axes, ("WANBIA-C+L2(0)", "WANBIA-C+L2(1)"), ("safe", "WANBIA-C")):
        colour = look(kind)["color"]
        ax.plot(best["LR+L2"], best[model], "o", color=colour, markersize=4, alpha=0.8)
        ax.plot([0, 0.7], [0, 0.7], color="0.5", linewidth=0.8)
        ax.set(xlabel="LR+L2", ylabel=model)
    return figure


def bias_and_variance_by_penalty(
    penalties: pd.DataFrame, drawn_to: Mapping[tuple[str, str], str], exponents: tuple[int, ...]
) -> Figure:
    """Bias and variance of three learners on satellite, against the penalty."""
    split_up, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    satellite = penalties[penalties.row == "satellite"].set_index(["metric", "method"]).value
    for ax, measure in zip(axes, ("bias", "variance")):
        here = satellite[measure]
        for (model, style), kind in drawn_to.items():
            ax.plot(
                exponents,
                [here[f"{model} 1e{x}"] for x in exponents],
                linestyle=style,
                **look(kind),
                markersize=4,
                label=model,
            )
        naive = look("closed form")["color"]
        ax.axhline(here["NB"], color=naive, linestyle=":", linewidth=1, label="NB")
        ax.set(title=f"{measure} on satellite", xlabel="log₁₀ C")
    places = {
        "LR+L2": (3.4, 0.26, "right"),
        "WANBIA-C+L2(0)": (6.6, 0.082, "right"),
        "WANBIA-C+L2(1)": (1.5, 0.145, "right"),
        "NB": (-6, 0.178, "left"),
    }
    label_lines(axes[0], places)
    return split_up


def losses_of_streams() -> tuple[list[str], Callable[..., Any], dict[str, tuple[str, str]], pd.DataFrame]:
    """Mean log-loss and regret of each learner along each stream."""
    stored = results("study", "wanbiac-streams")
    ran = [name for name in STREAMS if name in set(stored.row)]
    print("run:", ", ".join(map(in_words, ran)))
    if missing := [name for name in STREAMS if name not in ran]:
        print("not run yet:", ", ".join(missing))

    def curve(name, learner, measure):
        """Ends of the blocks, and the mean over each."""
        part = stored[(stored.row == name) & (stored.method == learner)]
        part = part[part.metric.str.startswith(measure)]
        ends = part.metric.str.rpartition("_")[2].astype(int).to_numpy()
        return ends, part.value.to_numpy()

    learners = {
        "NB": ("NB", ":"),
        "LR": ("LR", "-"),
        "WANBIA-C, two passes": ("two passes, as printed", "--"),
        "WANBIA-C, other rows first": ("two passes, other rows", "-."),
        "WANBIA-C, one pass": ("one pass", "-"),
    }
    totals = {}
    for name in ran:
        row = {}
        for learner, (short, _) in learners.items():
            ends, losses = curve(name, learner, "log_loss")
            widths = np.diff(np.r_[0, ends])
            row[short] = (widths * losses).sum() / ends[-1]
            row[f"regret {short}"] = (widths * losses).sum()
        totals[name] = row
    totals = pd.DataFrame(totals).T
    regret = totals["regret one pass"] - totals["regret two passes, other rows"]
    leak = totals["regret one pass"] - totals["regret two passes, as printed"]
    summary = totals[[short for short, _ in learners.values()]].round(4)
    summary["regret, other rows"] = regret.round().astype(int)
    summary["regret, as printed"] = leak.round().astype(int)
    shorts = [short for short, _ in learners.values()]
    honest = [short for short in shorts if short != "two passes, as printed"]
    summary["least without looking ahead"] = totals[honest].idxmin(axis=1)
    return ran, curve, learners, summary


def errors_along_streams(
    ran: Sequence[str], learners: Mapping[str, tuple[str, str]], curve: Callable[..., Any]
) -> Figure:
    """RMSE of each block of the streams."""
    kinds = ("closed form", "logistic regression", "published", "safe", "WANBIA-C")
    figure, axes = plt.subplots(2, 3, figsize=(7.6, 4.8))
    for ax in axes.flat[len(ran) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, ran):
        for (learner, (short, style)), kind in zip(learners.items(), kinds):
            ends, squares = curve(name, learner, "squared_error")
            ax.plot(
                ends / 1000,
                np.sqrt(squares),
                style,
                color=look(kind)["color"],
                linewidth=1.2,
                label=short,
            )
        ax.set(title=in_words(name), xlabel="thousand rows")
    axes.flat[0].set_ylabel("RMSE of the block")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower right", fontsize=8)
    return figure


def units_of_the_error(rmse: pd.DataFrame) -> pd.DataFrame:
    """RMSE of naive Bayes in two units, beside the ends of the printed axes."""
    axis = {
        "satellite": (6, 0.16, 0.26),
        "pendigits": (10, 0.07, 0.15),
        "optdigits": (10, 0.08, 0.12),
        "dermatology": (6, 0.065, 0.1),
    }
    units = {}
    for name, (r, low, high) in axis.items():
        if name in rmse.index:
            half = rmse.loc[name, "NB"]
            units[name] = [half, half * np.sqrt(2 / r), low, high]
    return pd.DataFrame(units, index=["NB, ½", "NB, 1/r", "axis from", "to"]).T


def printed_counts() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str], dict[str, str]]:
    """Wins, draws and losses, printed and ours, with the p-values of sign tests."""
    means = set_means()
    done = means.index.unique("dataset")
    absent = [name for name in sizes() if name not in PARTS and name not in done]
    print(f"{len(done)} sets of Table I have been run")
    if absent:
        print("not run yet:", ", ".join(absent))
    printed = table("wanbia2014", "II")
    larger = [name for name in done if sizes()[name] > SMALL]
    print(
        f"rounds: {REPETITIONS}, and {FEW} on the {len(larger)} sets of more than "
        f"{SMALL:,} rows; of each at most {ROWS:,} rows, half of them to train"
    )

    def counted(measure, other, names, decimals=4):
        part = means.xs(measure, level="measure").loc[names]
        return wins_draws_losses(part, other, decimals)

    def printed_counts(measure, other, sets_):
        cells = printed[
            (printed.row == measure) & (printed.method == f"WANBIA-C vs {other}") & (printed.dataset == sets_)
        ]
        values = cells.set_index("metric").value_printed
        return [values[f"count_{k}"] for k in ("win", "draw", "loss")], values["p_value_sign_test"]

    lines = []
    for sets_, names, label in (
        ("all_73", list(done), "all"),
        ("top_size_12", [n for n in LARGEST if n in done], "largest"),
    ):
        for measure in MEASURES if label == "all" else MEASURES[2:]:
            for other in ("LR", "NB"):
                if not names:
                    continue
                wdl, theirs = (
                    counted(measure, other, names),
                    printed_counts(measure, other, sets_),
                )
                lines.append(
                    {
                        "sets": label,
                        "measure": measure,
                        "against": other,
                        "printed W/D/L": "/".join(theirs[0]),
                        "p": theirs[1],
                        "ours": "/".join(map(str, wdl)),
                        "our p": f"{sign_test(wdl[0], wdl[2]):.3f}",
                        "3 decimals": "/".join(map(str, counted(measure, other, names, 3))),
                    }
                )
    lines, upper = pd.DataFrame(lines), {"rmse": "RMSE"}
    heads = {
        "p": "printed p",
        "ours": "our W/D/L",
        "3 decimals": "ours, 3 decimals",
    }
    return means, lines, upper, heads


def printed_directions(lines: pd.DataFrame, means: pd.DataFrame, separable: pd.Series) -> pd.DataFrame:
    """Which side wins and whether significantly, printed and ours."""
    verdicts = []
    for line in lines.to_dict("records"):
        w, _, l = (int(v) for v in line["printed W/D/L"].split("/"))
        w2, _, l2 = (int(v) for v in line["ours"].split("/"))
        significant = line["p"].startswith("<") or float(line["p"]) <= 0.05
        verdicts.append(
            {
                "sets": line["sets"],
                "measure": line["measure"],
                "against": line["against"],
                "printed": f"{np.sign(w - l):+.0f}" + (" significant" if significant else ""),
                "ours": f"{np.sign(w2 - l2):+.0f}" + (" significant" if float(line["our p"]) <= 0.05 else ""),
            }
        )
    verdicts = pd.DataFrame(verdicts)
    agree = (verdicts.printed.str.contains("significant") == verdicts.ours.str.contains("significant")).sum()
    print(f"significance as printed in {agree} of {len(verdicts)} rows; +1: more wins than losses")
    of_rmse = means.xs("rmse", level="measure")
    far = (of_rmse["LR"] - of_rmse["WANBIA-C"]).abs() > 0.005
    flag = separable.reindex(far.index)
    print(
        "RMSE of LR and WANBIA-C more than 0.005 apart: "
        f"{far[flag].sum()} of {flag.sum()} separable sets, "
        f"{far[~flag].sum()} of {(~flag).sum()} others"
    )
    return verdicts


def errors_of_wanbiac(means: pd.DataFrame) -> Figure:
    """RMSE of WANBIA-C against logistic regression and naive Bayes."""
    rmse_figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.1), sharey=True)
    of_rmse = means.xs("rmse", level="measure")
    for ax, other in zip(axes, ("LR", "NB")):
        ax.plot([0, 0.7], [0, 0.7], color="0.5", linewidth=0.8)
        ax.plot(
            of_rmse[other],
            of_rmse["WANBIA-C"],
            "o",
            color=palette[0],
            markersize=4,
            alpha=0.8,
        )
        ax.set(xlabel=f"RMSE of {other}")
    axes[0].set_ylabel("RMSE of WANBIA-C")
    return rmse_figure


def errors_of_each_set(means: pd.DataFrame, its: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Error, RMSE and iterations, set by set."""
    wide = means.unstack("measure")
    per_set = pd.DataFrame(
        {
            f"{short} {method}": wide[method][measure]
            for measure, short in (("zero_one_loss", "error"), ("rmse", "RMSE"))
            for method in ("NB", "LR", "WANBIA-C")
        }
    )
    return per_set.join(its["1e-3"][["natural", "closed form", "whitened"]], how="outer")
