"""Figures and tables of the chapter *Bayesian QDA and BDA7*: eigenvalues, densities, errors, regions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from sklearn.datasets import load_breast_cancer

from rcbook import ties
from rcbook.experiments.studies import bda7_among_todays_classifiers as rivals
from rcbook.experiments.studies import probabilities_of_bda7 as judged
from rcbook.figures import label_lines, look
from rcbook.simulation import CHAPTER4_CASES
from rcpkg import LDA, QDA, BayesianQDA, NearestMeans, plotting
from rcpkg.base import Array
from rcpkg.gaussians import (
    class_statistics,
    log_predictive,
    posterior_dof,
)


def estimated_eigenvalues(rng: np.random.Generator) -> Figure:
    """Mean eigenvalues of fitted covariances against the number of rows."""
    d = 20
    truth = np.sort((9 * np.arange(d) / (d - 1) + 1) ** 2)[::-1]
    fig, ax = plt.subplots()
    ax.semilogy(np.arange(1, d + 1), truth, "k--", label="true")
    for n, marker in zip((200, 60, 25), plotting.markers):
        X = rng.normal(size=(300, n, d)) * np.sqrt(truth)
        X -= X.mean(axis=1, keepdims=True)
        mean = np.linalg.eigvalsh(X.swapaxes(1, 2) @ X / n)[:, ::-1].mean(axis=0)
        ax.semilogy(np.arange(1, d + 1), mean, marker=marker, label=f"n = {n}")
    ax.set(
        xlabel="rank of the eigenvalue",
        ylabel="mean eigenvalue",
        xticks=(1, 5, 10, 15, 20),
    )
    label_lines(ax)
    return fig


def chances_by_the_prior() -> list[dict[str, int | str]]:
    """How probable a box of covariances is under the prior, by class size and seed."""
    d, rows_of_box = 10, []
    for n_h, q, measure in (
        (4, d, "fisher"),
        (4, d, "lebesgue"),
        (4, d + 3, "lebesgue"),
        (4, 6 * d, "fisher"),
        (4, 6 * d, "lebesgue"),
        (40, d, "fisher"),
    ):
        a = posterior_dof(n_h, d, q, measure)
        nu_0 = posterior_dof(0, d, q, measure) + 1
        exists = a > d - 1
        rows_of_box.append(
            {
                "n_h": n_h,
                "q": q,
                "measure": measure,
                "a": a,
                "ν": a - d + 1 if exists else "none",
                "ν₀": nu_0,
                "prior proper in Σ": "yes" if nu_0 > d - 1 else "no",
                "with a mean": "yes" if nu_0 > d + 1 else "no",
                "predictive exists": "yes" if exists else "no",
            }
        )
    return rows_of_box


def heights_of_densities() -> tuple[Callable[..., Any], dict[tuple, Array]]:
    """Mean log densities of new rows: true, fitted and predictive."""

    def fitted(n, d, points, seed):
        """Log densities at the points: truth, maximum likelihood, predictive."""
        rows = np.random.default_rng(seed).normal(size=(n, d))
        one = class_statistics(rows, np.zeros(n, dtype=int), 1)
        mean, S = one.means[0], one.scatters[0]
        B = np.trace(S) / (n * d) * np.eye(d)
        truth = stats.multivariate_normal(np.zeros(d), np.eye(d))
        gauss = stats.multivariate_normal(mean, S / n)
        t = log_predictive(points, n, mean, S, seed=B, dof=d + 3)
        return truth.logpdf(points), gauss.logpdf(points), t

    heights = {}
    for d, n in ((1, 4), (1, 40), (20, 24), (20, 200)):
        new_rows = np.random.default_rng(10).normal(size=(500, d))
        heights[d, n] = np.mean([np.mean(fitted(n, d, new_rows, s), axis=1) for s in range(40)], axis=0)
    return fitted, heights


def predictive_and_fitted(fitted: Callable[..., Any]) -> Figure:
    """Log densities along a line through a class: true, fitted and predictive."""
    fig, axes = plt.subplots(2, 1, figsize=(5.4, 6.4))
    for ax, d, sizes, reach in zip(axes, (1, 20), ((4, 40), (24, 200)), (5, 8)):
        along = np.linspace(-reach, reach, 161)
        direction = np.random.default_rng(8).normal(size=d)
        points = along[:, None] * direction / np.linalg.norm(direction)
        for n, color, marker in zip(sizes, plotting.palette, plotting.markers):
            truth, gauss, t = fitted(n, d, points, 9)
            look = {"color": color, "marker": marker, "markevery": 20}
            ax.plot(along, gauss, "--", **look, label=f"ML, n = {n}")
            ax.plot(along, t, **look, label=f"t, n = {n}")
        ax.plot(along, truth, color="0.5", label="true")
        ax.set(ylabel="log density", title=f"d = {d}")
        ax.set_ylim(truth.min() - (9 if d == 1 else 90), truth.max() + 8)
        ax.legend(fontsize=8.5, loc="lower center", handlelength=3.2)
    for sign in (-1, 1):
        typical = sign * np.sqrt(stats.chi2(20).median())
        axes[1].axvline(typical, color="0.4", ls=":", lw=1)
    axes[1].set_xlabel("distance along the line")
    return fig


SHOWN_AS = ("Bayesian QDA", "noninformative prior", "closed form", "nearest means")  # of rcbook.figures.METHODS


def errors_by_features(
    study: pd.DataFrame, paired: pd.Series, summary: pd.DataFrame
) -> tuple[dict[str, str], Figure]:
    """Mean test errors against the number of features, ellipsoidal problems."""
    ellipsoidal = [c for c in CHAPTER4_CASES if "ellipsoidal" in c]
    shown = {
        "distribution, inverse Wishart": "with the seed, Fisher",
        "distribution, noninformative": "noninformative, Fisher",
        "QDA": "QDA",
        "nearest means": "nearest means",
    }
    differences = {
        "inverse Wishart": "with the seed",
        "noninformative": "noninformative",
    }
    beside = study[paired].set_index(["case", "method", "d"])
    fig, axes = plt.subplots(4, 2, figsize=(6.4, 8.4), sharex="col", sharey="col")
    for row, case in zip(axes, ellipsoidal):
        for (name, label), method in zip(shown.items(), SHOWN_AS):
            curve = summary.loc[case, name].astype(float)
            row[0].plot(curve.index, curve.to_numpy(), **look(method), label=label)
        for (prior, label), method, shift in zip(differences.items(), SHOWN_AS, (-0.25, 0.25)):
            pair = f"distribution, {prior} - parameter, {prior}"
            part = beside.loc[case].loc[pair][["value", "value_se"]].dropna()
            row[1].errorbar(
                part.index + shift,
                -part["value"],
                2 * part["value_se"],
                **look(method),
                linestyle="none",
                markersize=4,
                label=label,
            )
        row[1].axhline(0, color="0.6", lw=1, zorder=0)
        row[0].set_title(case, fontsize=9)
        row[0].set_ylabel("test error (%)")
        row[1].set(xlim=(2, 14), xticks=(4, 8, 12))
        row[1].set_ylabel("Lebesgue − Fisher", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("features d")
    axes[0, 0].legend(fontsize=8.5, loc="lower right")
    axes[0, 1].legend(fontsize=8.5, loc="upper right")
    return shown, fig


def errors_by_features_spherical(
    spherical: Sequence[str], shown: Mapping[str, str], summary: pd.DataFrame
) -> Figure:
    """Mean test errors against the number of features, spherical problems."""
    fig, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True)
    for ax, case in zip(axes, spherical):
        for (name, label), method in zip(shown.items(), SHOWN_AS):
            curve = summary.loc[case, name].astype(float)
            ax.plot(curve.index, curve.to_numpy(), **look(method), label=label)
        ax.set_title(case, fontsize=9)
        ax.set_xlabel("features d")
    axes[0].set_ylabel("test error (%)")
    axes[0].legend(fontsize=8)
    return fig


def measures_compared(study: pd.DataFrame, paired: pd.Series) -> tuple[pd.DataFrame, pd.MultiIndex]:
    """On how many settings either measure errs less, with the seed and without."""
    z = study[paired].assign(z=lambda t: t["value"] / t["value_se"].clip(lower=1e-9))
    seeded, flat = "inverse Wishart", "noninformative"
    pairs = {
        f"{seeded}: parameter-based": (seeded, f"parameter, {seeded}"),
        f"{flat}: parameter-based": (flat, f"parameter, {flat}"),
        f"{seeded}: {flat}": (seeded, f"distribution, {flat}"),
        f"{seeded}: QDA": (seeded, "QDA"),
        f"{seeded}: nearest means": (seeded, "nearest means"),
    }

    def comparison(prior, other):
        found = z[z["method"] == f"distribution, {prior} - {other}"].dropna(subset="value")
        return {
            ("by 2 SE", "less"): (found["z"] < -2).sum(),
            ("by 2 SE", "unclear"): (found["z"].abs() <= 2).sum(),
            ("by 2 SE", "more"): (found["z"] > 2).sum(),
            ("by sign", "less"): (found["value"] < 0).sum(),
            ("by sign", "more"): (found["value"] > 0).sum(),
            ("points", "max"): found["value"].abs().max(),
            ("d", "max"): found["d"].max(),
        }

    settings = pd.DataFrame({name: comparison(*pair) for name, pair in pairs.items()}).T
    counts = settings.columns.drop(("points", "max"))
    return settings, counts


def decision_regions() -> tuple[Array, dict[str, Any], Figure]:
    """Decision regions of nine classifiers on two classes of twelve rows."""
    cancer = load_breast_cancer()
    plane = cancer.data[:, [1, 4]]
    plane = (plane - plane.mean(axis=0)) / plane.std(axis=0)
    chosen = np.concatenate(
        [
            np.random.RandomState(3).choice(np.flatnonzero(cancer.target == h), 12, replace=False)
            for h in (0, 1)
        ]
    )
    methods = {
        "BDA7": ties.BDA7(random_state=0),
        "Bayesian QDA, trace": BayesianQDA(),
        "Bayesian, noninformative": BayesianQDA(prior="noninformative"),
        "QB": ties.QuadraticBayes(random_state=0),
        "RDA": ties.RDA(random_state=0),
        "EDDA": ties.EDDA(random_state=0),
        "nearest means": NearestMeans(),
        "LDA": LDA(),
        "QDA": QDA(),
    }
    fig, axes = plt.subplots(3, 3, figsize=(6.4, 6.6), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes.flat, methods.items()):
        model.fit(plane[chosen], cancer.target[chosen])
        rows, labels = plane[chosen], cancer.target[chosen]
        plotting.DecisionRegionsDisplay.from_estimator(model, rows, labels, resolution=70, ax=ax)
        regions = ax.images[0]
        ax.contour(
            regions.get_array(),
            levels=[0.5],
            extent=regions.get_extent(),
            colors="0.3",
            linewidths=0.8,
        )
        ax.set_title(name, fontsize=9)
    fig.supxlabel("mean texture, standardised", fontsize=10)
    fig.supylabel("mean smoothness, standardised", fontsize=10)
    fig.legend(
        axes[0, 0].get_legend_handles_labels()[0],
        cancer.target_names,
        loc="outside upper left",
        ncols=2,
    )
    return plane, methods, fig


def errors_of_rivals() -> tuple[
    pd.DataFrame, pd.DataFrame, pd.DataFrame, list[str], dict[str, str], Callable[..., Any]
]:
    """Mean test errors of BDA7 and its rivals, few rows and half of them."""
    today = rivals.tidy()
    errors = today[today["metric"] == "test_error_percent"]
    excesses = today[today["metric"] == "excess_over_BDA7"]
    order = list(errors["method"].unique())
    HEADINGS = {
        "shrinkage LDA": "LDA",
        "shrinkage QDA": "QDA",
        "logistic regression": "logistic",
        "random forest": "forest",
    }

    def mean_errors(amount):
        part = errors[errors["amount"] == amount]
        wide = part.pivot(index="data", columns="method", values="value")[order]
        ranks = wide.rank(axis=1).mean().to_frame("mean rank").T
        table = pd.concat([wide, ranks]).rename_axis(columns=None).round(1)
        return table.rename(columns=lambda name: HEADINGS.get(name, name))

    return today, errors, excesses, order, HEADINGS, mean_errors


def rivals_minus_bda7(mean_errors: Callable[..., Any]) -> tuple[dict[str, str], Figure]:
    """Mean test error of each rival minus BDA7, data set by data set."""
    titles = {"few": "five rows a class", "half": "half of the rows"}
    figure, axes = plt.subplots(2, 1, figsize=(5.4, 6.0), sharex=True, sharey=True)
    for ax, amount in zip(axes, ("few", "half")):
        of_sets = mean_errors(amount).drop("mean rank").astype(float)
        excess = of_sets.drop(columns="BDA7").sub(of_sets["BDA7"], axis=0)
        ax.axhline(0, color="0.5", linewidth=1)
        for at, rival in enumerate(excess):
            shift = np.linspace(-0.15, 0.15, len(excess))
            ax.plot(at + shift, np.sort(excess[rival]), "o", color="#7F7F7F")
            ax.plot([at - 0.25, at + 0.25], [excess[rival].mean()] * 2, color="black")
        ax.set_xticks(range(excess.shape[1]), list(excess), rotation=30)
        ax.set(title=titles[amount], ylabel="error minus that of BDA7")
    return titles, figure


def sets_against_bda7(
    excesses: pd.DataFrame, factor: pd.Series, titles: Mapping[str, str]
) -> tuple[pd.DataFrame, Callable[..., Any], pd.DataFrame]:
    """On how many sets a rival is clearly better than BDA7, clearly worse, or neither."""
    compared = excesses[excesses["method"] != "BDA7"].merge(
        factor.rename("factor").reset_index(), on=["data", "amount"]
    )
    compared["these rows"] = compared["value"] / compared["value_se"]
    compared["new rows"] = compared["these rows"] / compared["factor"]

    def against_bda7(kind):
        grouped = compared.groupby(["method", "amount"], sort=False)[kind]
        counts = {
            "better": grouped.apply(lambda v: int((v < -2).sum())),
            "unclear": grouped.apply(lambda v: int((v.abs() <= 2).sum())),
            "worse": grouped.apply(lambda v: int((v > 2).sum())),
        }
        table = pd.DataFrame(counts).unstack("amount").swaplevel(axis=1)
        return table[["few", "half"]].rename_axis(index=None)

    view = (
        pd.concat(
            {kind: against_bda7(kind) for kind in ("new rows", "these rows")},
            names=[None, None],
        )
        .rename(columns=titles)
        .rename_axis(columns=[None, None])
    )
    return compared, against_bda7, view


def probabilities_of_bda7(titles: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Mean log-loss and calibration of BDA7 and other rules."""
    probabilities = judged.tidy()
    on_sets = probabilities[probabilities["data"].isin(rivals.DATASETS)]
    by_method = on_sets.pivot_table(index=["amount", "method"], columns="metric", values="value", sort=False)
    over = on_sets[on_sets["metric"] == "log_loss_over_BDA7"]
    lower = (over["value"] < 0).groupby([over["amount"], over["method"]]).sum()
    table = by_method[list(judged.METRICS)].dropna().astype(float)
    table.columns = ["error (%)", "log-loss", "overconfidence (points)"]
    table["lower on"] = lower
    table["p"] = lower.map(lambda k: stats.binomtest(int(k), 10).pvalue)
    decimals = dict(zip(table, (1, 2, 1, 0, 3)))
    shown = table.rename(index=titles).rename_axis([None, None]).astype(object)
    for column, places in decimals.items():
        shown[column] = shown[column].map(f"{{:.{places}f}}".format)
    return probabilities, table, shown


def wide_problems_against_bda7(
    of_many: Callable[..., Any], many: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """On how many wide problems a rival errs less than BDA7, about as much, or more."""
    more = of_many("test_error_percent_over_BDA7")
    spread = of_many("test_error_percent_over_BDA7", "value_se")
    sizes = many[many["metric"].isin(["train_rows", "test_rows"])].pivot(
        index="data", columns="metric", values="value"
    )
    # the divisions of a data set share rows; the simulated runs do not
    shared = np.sqrt(1 + rivals.RUNS * sizes["test_rows"] / sizes["train_rows"])
    factors = shared.reindex(more.index).fillna(1.0).astype(float)
    ratio = more / spread.mul(factors, axis=0).clip(lower=1e-9)
    against = pd.DataFrame(
        {
            "better": (ratio < -2).sum(),
            "unclear": (ratio.abs() <= 2).sum(),
            "worse": (ratio > 2).sum(),
        }
    ).loc[list(judged.METHODS[1:])]
    return ratio, against
