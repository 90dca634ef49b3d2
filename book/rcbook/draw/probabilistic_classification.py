"""Figures and tables of the chapter *Probabilistic classification*: regions, posteriors, iterates, errors."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from scipy.special import expit, log_expit, logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from rcbook.experiments.studies import generative_or_discriminative as rows_needed
from rcbook.figures import ink, label_lines, look
from rcbook.simulation import clouds
from rcbook.trials.probabilistic_classification import iterates
from rcpkg import plotting
from rcpkg.base import Array


def two_ways() -> Figure:
    """The clouds, with the lines that discriminant analysis and logistic regression draw between the classes."""
    X, y = clouds(300, np.random.default_rng(40))
    figure, ax = plt.subplots(figsize=(6.0, 3.4))
    for c, name in enumerate(("first class", "second class")):
        rows = X[y == c]
        ax.scatter(*rows.T, s=9, marker=plotting.markers[c], color=plotting.palette[c], linewidths=0, alpha=0.7)
        ax.text(*((-4.2, 1.2), (1.6, -2.3))[c], name, color=ink(plotting.palette[c]))
    height = np.array([-2.6, 4.8])
    for model, method, name, shift in (
        (LinearDiscriminantAnalysis(solver="lsqr"), "closed form", "generative:\nGaussian classes", 24),
        (LogisticRegression(tol=1e-10), "logistic regression", "discriminative:\nlogistic regression", 5),
    ):
        fitted = model.fit(X, y)
        line = -(fitted.intercept_ + fitted.coef_[0, 1] * height) / fitted.coef_[0, 0]
        ax.plot(line, height, color=look(method)["color"], linewidth=2.2)
        colour = ink(look(method)["color"])
        ax.annotate(name, (line[1], 4.6), (shift, 0), textcoords="offset points", color=colour, va="top")
    ax.set(xlabel="first feature", ylabel="second feature", ylim=(-2.6, 4.8))
    return figure


def sigmoid() -> Figure:
    """The sigmoid with its tangent, and softmax."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
    a = np.linspace(-6, 6, 241)
    left.plot(a, expit(a), label="σ(a)")
    left.plot(a, expit(a) * expit(-a), "--", label="σ(a) (1 - σ(a))")
    left.plot(a[80:161:80], 0.5 + a[80:161:80] / 4, ":", color="0.3", label="tangent at 0")
    left.set(xlabel="a", ylabel="probability", title="sigmoid")
    label_lines(
        left, {"σ(a)": (3, 0.87, "left"), "σ(a) (1 - σ(a))": (1.6, 0.27, "left"), "tangent at 0": (1.4, 1.0, "right")}
    )
    scores = np.column_stack([a, np.zeros_like(a), np.full_like(a, -1)])
    for y, (curve, line) in enumerate(zip(softmax(scores, axis=1).T, ("-", "--", ":")), 1):
        right.plot(a, curve, line, label=f"class {y}")
    right.set(xlabel="a", title="softmax of (a, 0, -1)")
    label_lines(right, {"class 1": (2, 0.93, "right"), "class 2": (-6, 0.8, "left"), "class 3": (-6, 0.33, "left")})
    return figure


def two_gaussians() -> Figure:
    """Contours of two Gaussians that share a covariance, their boundary and posterior."""
    means = np.array([[-0.8, 0.4], [1.0, -0.3]])
    S = np.array([[1.0, 0.4], [0.4, 0.7]])
    x1, x2 = np.meshgrid(np.linspace(-4, 4, 45), np.linspace(-3, 3, 36))
    plane = np.stack([x1, x2], axis=-1)
    density = [multivariate_normal.pdf(plane, m, S) for m in means]
    odds = np.log(density[0] / density[1])
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
    for p, colour, line in zip(density, plotting.palette, ("solid", "dashed")):
        left.contour(x1, x2, p, levels=3, colors=colour, linestyles=line, linewidths=1.2)
    left.contour(x1, x2, odds, levels=[0], colors="0.2", linestyles="dotted")
    left.set(title="densities of the classes", xlabel="x₁", ylabel="x₂")
    shades = right.contourf(x1, x2, expit(odds), levels=np.linspace(0, 1, 11))
    right.contour(x1, x2, odds, levels=[0], colors="white", linestyles="dotted")
    right.contour(x1, x2, odds + np.log(9), levels=[0], colors="white", linestyles="dashdot")
    right.set(title="posterior of class 1", xlabel="x₁")
    figure.colorbar(shades, ax=right)
    return figure


def three_gaussians() -> tuple[Array, Array, Array, Array, Array, Figure, Array]:
    """Regions of three Gaussian classes, with one covariance and with three."""
    means = np.array([[-1.5, -0.5], [1.6, -0.8], [0.2, 1.6]])
    tilted = np.array([[1.0, 0.5], [0.5, 0.8]])
    own = np.array([[[1.6, 0.9], [0.9, 0.8]], [[0.5, -0.3], [-0.3, 1.4]], [[0.25, 0.0], [0.0, 0.2]]])
    x1, x2 = np.meshgrid(np.linspace(-5, 5, 481), np.linspace(-4, 4.5, 401))
    plane = np.stack([x1, x2], axis=-1)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for ax, covariances, title in zip(axes, ([tilted] * 3, own), ("one covariance", "own covariances")):
        logs = np.stack([multivariate_normal.logpdf(plane, m, C) for m, C in zip(means, covariances)])
        ax.imshow(
            logs.argmax(axis=0),
            extent=(-5, 5, -4, 4.5),
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            cmap=ListedColormap(plotting.palette[:3]),
            alpha=0.22,
        )
        for p, peak, colour, line in zip(logs, logs.max(axis=(1, 2)), plotting.palette, ("-", "--", ":")):
            ax.contour(
                x1[::8, ::8],
                x2[::8, ::8],
                p[::8, ::8],
                levels=[peak - 2, peak - 0.5],
                colors=colour,
                linestyles=line,
                linewidths=1.4,
            )
        ax.grid(False)
        ax.set(title=title, xlabel="x₁")
        for (x, y), c, colour in zip(((-4.8, -2.9), (3.2, -3), (-1.2, 3.6)), "123", plotting.palette):
            ax.text(x, y, f"class {c}", color=ink(colour))
    axes[0].set_ylabel("x₂")
    return means, own, x1, x2, plane, figure, logs


def three_posteriors(logs: Array, x1: Array, x2: Array) -> tuple[Array, Figure]:
    """Posteriors of three classes as mixed colours, and along a line."""
    log_joint, posterior = logs, softmax(logs, axis=0)  # of own covariances
    light = np.array([to_rgb(c) for c in plotting.palette[:3]]) * 0.75 + 0.25
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    left.imshow(
        np.einsum("yij,yc->ijc", posterior[:, ::4, ::4], light),
        extent=(-5, 5, -4, 4.5),
        origin="lower",
        aspect="auto",
        interpolation="none",  # stored as it is, not resampled
    )
    for a, b, other in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        seen = log_joint[other] < np.maximum(log_joint[a], log_joint[b])
        left.contour(
            x1[::4, ::4],
            x2[::4, ::4],
            np.where(seen, log_joint[a] - log_joint[b], np.nan)[::4, ::4],
            levels=[0],
            colors="0.15",
            linewidths=1,
        )
    height = np.argmin(np.abs(x2[:, 0] - 1.0))
    left.axhline(x2[height, 0], color="white", linestyle="--", linewidth=1)
    left.grid(False)
    left.set(xlabel="x₁", ylabel="x₂")
    for p, colour, line, c in zip(posterior[:, height, ::6], plotting.palette, ("-", "--", ":"), "123"):
        right.plot(x1[0, ::6], p, line, color=colour, label=f"class {c}")
    right.set(xlabel="x₁", ylabel="posterior on the line", ylim=(0, 1.02))
    label_lines(right, {"class 1": (-4.9, 0.93, "left"), "class 2": (3, 0.9, "left"), "class 3": (0, 0.84, "center")})
    return log_joint, figure


def one_coordinate_at_a_time() -> Figure:
    """Iterates of gradient ascent and of steps in turn, in two units."""
    X = np.column_stack([np.ones(60), np.random.default_rng(42).normal(1, 1, 60)])
    y = np.random.default_rng(43).uniform(size=60) < expit(X @ [-1.0, 1.0])

    def ascent(unit, in_turn, steps=40):
        """Iterates with the feature in another unit, as coefficients of the old."""
        Z, path = X * [1, unit], [np.zeros(2)]
        lengths = 4 / (np.sum(Z**2, axis=0) if in_turn else np.linalg.eigvalsh(Z.T @ Z)[-1:])
        for t in range(steps):
            move = lengths * (Z.T @ (y - expit(Z @ path[-1])))
            path.append(path[-1] + move * ([t % 2 == 0, t % 2 == 1] if in_turn else 1))
        return np.array(path) * [1, unit]

    def likelihood(beta):
        return log_expit((2 * y - 1) * (beta @ X.T)).sum(axis=-1)

    top = ascent(1, True, 4000)[-1]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))
    b0, b1 = np.meshgrid(np.linspace(-1.9, 0.4, 30), np.linspace(-0.2, 1.6, 30))
    left.contour(
        b0,
        b1,
        likelihood(top) - likelihood(np.stack([b0, b1], -1)),
        levels=[0.1, 0.5, 1, 2, 4, 8],
        colors="0.7",
        linewidths=0.8,
    )
    for in_turn, colour, name in (
        (False, look("gradient")["color"], "gradient"),
        (True, plotting.palette[0], "one coefficient"),
    ):
        for unit, line in ((1, "-"), (4, "--")):
            path = ascent(unit, in_turn)
            if unit == 1:
                left.plot(*path.T, ".-", color=colour, markersize=3, linewidth=1)
            right.semilogy(
                likelihood(top) - likelihood(path),
                line,
                color=colour,
                label=name + (", unit / 4" if unit > 1 else ""),
                linewidth=1.6 if unit == 1 or not in_turn else 3,
                alpha=1 if unit == 1 or not in_turn else 0.5,
            )
    left.plot(*top, "k+")
    left.set(xlabel="β₀", ylabel="β₁")
    right.set(xlabel="step", ylabel="ℓ below its maximum")
    places = {
        "gradient": (24, 0.14, "left"),
        "gradient, unit / 4": (40, 2.2, "right"),
        "one coefficient": (27, 1.8e-3, "right"),
        "one coefficient, unit / 4": (34, 3.6e-4, "right"),
    }
    label_lines(right, places)
    return figure


def tangents(ax: Axes, f: Callable[..., Any], path: Array, colour: str, line: str) -> None:
    """The tangent at each iterate, down to the axis."""
    for z, following in pairwise(path):
        ax.plot([z, z, following], [0, f(z), 0], line, color=colour, linewidth=1, marker=".")


def newton_tangents() -> Figure:
    """Tangents of Newton's method near a zero and far from it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))
    curves = (lambda z: np.exp(z) - 3, lambda z: expit(z) - 0.5)
    z = np.linspace(-0.2, 2.1, 130)
    left.plot(z, curves[0](z), color="0.2", label="exp(z) - 3")
    tangents(left, curves[0], iterates(curves[0], np.exp, 2.0, 4), plotting.palette[1], "-")
    z = np.linspace(-5, 5, 200)
    right.plot(z, curves[1](z), color="0.2", label="σ(z) - 1/2")
    for start, steps, colour, line in (
        (1.9, 4, plotting.palette[1], "-"),
        (2.2, 3, plotting.palette[0], "--"),
    ):
        path = iterates(curves[1], lambda z: expit(z) * expit(-z), start, steps)
        tangents(right, curves[1], path, colour, line)
    right.set_xlim(-5, 5)
    for ax, place in ((left, (0.9, 1.2, "right")), (right, (-2.6, -0.25, "right"))):
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.set(xlabel="z")
        label_lines(ax, {ax.lines[0].get_label(): place})
    return figure


def efficiency(efron: Callable[..., Any], ratio: pd.DataFrame) -> Figure:
    """Excess error of discriminant analysis as a share of that of logistic regression."""
    figure, ax = plt.subplots(figsize=(6.0, 3.2))
    D = np.linspace(0.2, 4.2, 129)
    ax.plot(D, [efron(distance, rows_needed.FEATURES) for distance in D], color="0.2", label="n → ∞")
    for (n, part), colour, marker in zip(ratio.groupby("n"), plotting.palette, plotting.markers):
        shift = 0.03 * (marker == "s") - 0.03 * (marker == "o")
        ax.errorbar(
            part.problem + shift, part.value, 2 * part.value_se, fmt=marker, color=colour, label=f"n = {n}"
        )
    ax.set(xlabel="distance of the means Δ", ylabel="relative efficiency", ylim=(0, 1.05))
    label_lines(ax, {"n → ∞": (2.6, 0.86, "left")})
    return figure


def crossing() -> tuple[pd.DataFrame, Figure]:
    """Test error of naive Bayes and logistic regression over the number of rows."""
    curves = rows_needed.tidy(rows_needed.CROSSING)
    figure, axes = plt.subplots(3, 2, figsize=(6.2, 6.6))
    styles = (
        look("closed form") | {"linestyle": "-"},
        look("logistic regression") | {"linestyle": "--"},
        look("logistic regression") | {"linestyle": ":", "marker": "D"},
    )
    for ax, problem in zip(axes.flat, rows_needed.PROBLEMS):
        for name, style in zip(rows_needed.CLASSIFIERS, styles):
            part = curves[(curves.problem == problem) & (curves.method == name)]
            ax.errorbar(part.n, part.value, 2 * part.value_se, **style, label=name)
        ax.set(title=problem, xscale="log", xticks=rows_needed.SIZES, xticklabels=rows_needed.SIZES)
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
    figure.supxlabel("training rows", fontsize="medium")
    for ax in axes[:, 0]:
        ax.set_ylabel("test error, per cent")
    axes[2, 1].set_axis_off()
    axes[2, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    return curves, figure


APPROXIMATIONS = {
    "MAP, plugged in": plotting.palette[0],
    "Laplace": plotting.palette[1],
    "Laplace, shortcut": plotting.palette[2],
    "variational": plotting.palette[3],
    "Metropolis": plotting.palette[4],
}
"""Colours of the ways to predict without the exact posterior, the same in both figures."""


def posterior(
    laplace: Callable[..., Any],
    X: Array,
    y_train: Array,
    metropolis: Callable[..., Any],
    exact: Array,
    b0: Array,
    b1: Array,
    m: Array,
    S: Array,
    plane: Array,
) -> tuple[Array, Array, Figure]:
    """The posterior of intercept and slope, exact and by three approximations."""
    beta_map, S_map, _log_laplace = laplace(X, y_train)
    chain = metropolis(X, y_train, beta_map, S_map, 20_000, np.random.default_rng(53))[1_000:]
    figure, axes = plt.subplots(1, 3, figsize=(7.8, 3.2), sharex=True, sharey=True)
    levels = exact.max() * np.array([0.02, 0.15, 0.4, 0.8])
    for ax, title in zip(axes, ("Laplace", "variational", "Metropolis")):
        ax.contour(b0[::6], b1[::6], exact[::6, ::6], levels=levels, colors="0.55", linewidths=1)
        ax.plot(*beta_map, "o", color="black")
        ax.annotate("MAP", beta_map, (4.6, 8.2), ha="right", arrowprops={"arrowstyle": "-", "linewidth": 0.8})
        ax.set(title=title, xlabel="β₀", xlim=(-5, 5), ylim=(-1, 9))
    for ax, mean, covariance, colour in (
        (axes[0], beta_map, S_map, APPROXIMATIONS["Laplace"]),
        (axes[1], m, S, APPROXIMATIONS["variational"]),
    ):
        q = multivariate_normal(mean, covariance).pdf(plane)
        ax.contour(
            b0[::6], b1[::6], q[::6, ::6], levels=levels, colors=colour, linewidths=1.2, linestyles="dashed"
        )
    axes[2].scatter(*chain[::100].T, s=5, color=APPROXIMATIONS["Metropolis"], alpha=0.6, linewidths=0)
    axes[0].set_ylabel("β₁")
    return beta_map, chain, figure


def predictive(
    averaged: Callable[..., Any],
    log_joint: Callable[..., Any],
    plane: Array,
    X: Array,
    cell: float,
    laplace: Callable[..., Any],
    variational: Callable[..., Any],
    chain: Array,
    metropolis: Callable[..., Any],
    y_train: Array,
    x_train: Array,
) -> tuple[dict[str, tuple], Figure]:
    """Predictive probabilities on eight and on eighty rows, and their errors."""
    x_new = np.linspace(-5, 5, 131)
    new = np.column_stack([np.ones_like(x_new), x_new])

    def by_gaussian(mean, covariance, shortcut=False):
        a, s = new @ mean, np.sqrt(np.sum(new @ covariance * new, axis=1))
        return expit(a / np.sqrt(1 + np.pi * s**2 / 8)) if shortcut else averaged(expit, a, s)

    def compared(X, y, chain):
        # exact predictions, those of each method, and a table of errors
        log_g = log_joint(plane, X, y)
        log_Z = logsumexp(log_g) + np.log(cell)
        exact = np.exp(log_g - log_Z)
        truth = np.array([np.sum(exact * expit(plane @ row)) * cell for row in new])
        mode, curvature, log_laplace = laplace(X, y)
        mean, covariance, bounds = variational(X, y)
        predictions = {
            "MAP, plugged in": expit(new @ mode),
            "Laplace": by_gaussian(mode, curvature),
            "Laplace, shortcut": by_gaussian(mode, curvature, shortcut=True),
            "variational": by_gaussian(mean, covariance),
            "Metropolis": expit(new @ chain.T).mean(axis=1),
        }
        errors = pd.DataFrame(
            {"largest error": {name: np.abs(p - truth).max() for name, p in predictions.items()}}
        )
        for name, q, log_evidence in (
            ("Laplace", (mode, curvature), log_laplace),
            ("variational", (mean, covariance), bounds[-1]),
        ):
            density = multivariate_normal(*q).pdf(plane)
            errors.loc[name, "total variation"] = 0.5 * np.sum(np.abs(density - exact)) * cell
            errors.loc[name, "error of log Z"] = log_evidence - log_Z
        return truth, predictions, errors

    rng = np.random.default_rng(55)
    x_80 = rng.normal(scale=1.5, size=80)
    X_80 = np.column_stack([np.ones(80), x_80])
    y_80 = (rng.uniform(size=80) < expit(2 * x_80)).astype(int)
    chain_80 = metropolis(X_80, y_80, *laplace(X_80, y_80)[:2], 20_000, np.random.default_rng(56))[1_000:]
    results = {"8 rows": compared(X, y_train, chain), "80 rows": compared(X_80, y_80, chain_80)}
    figure, (left, *others) = plt.subplots(1, 3, figsize=(8.2, 3.2))
    truth, predictions, _ = results["8 rows"]
    left.plot(x_new, truth, color="0.2", linewidth=3, label="exact")
    left.plot(x_new, predictions["MAP, plugged in"], "--", color=APPROXIMATIONS["MAP, plugged in"], label="plug-in")
    left.plot(x_train, y_train, "o", color="black")
    left.set(xlabel="x", title="probability of class 1")
    label_lines(left, {"exact": (0.6, 0.5, "left"), "plug-in": (0.6, 0.38, "left")})
    for ax, (rows, (truth, predictions, _)) in zip(others, results.items()):
        for (name, p), line in zip(predictions.items(), ("--", "-", ":", "-.", (0, (1, 1)))):
            ax.plot(x_new, p - truth, linestyle=line, color=APPROXIMATIONS[name], label=name)
        ax.set(xlabel="x", title=f"error, {rows}")
    figure.legend(*others[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return results, figure
