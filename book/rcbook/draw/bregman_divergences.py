"""Figures and tables of the chapter *Bregman divergences*: losses, tangents, balls, means."""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rcbook.experiments.studies import estimates_of_bernoulli
from rcbook.figures import ink, label_lines
from rcbook.words import in_words
from rcpkg import plotting
from rcpkg.base import Array
from rcpkg.bregman import divergences


def one_mean() -> Figure:
    """Expected losses of a variable with three values: Bregman divergences, least at its mean, and other losses."""
    values, s = np.array([1.0, 2.0, 8.0]), np.linspace(0.8, 8.4, 761)
    named = (("squared", "squared"), ("generalized_i", "I-divergence"), ("itakura_saito", "Itakura–Saito"))
    bregman = {title: divergences[name](values[:, None, None], s[:, None]) for name, title in named}
    away = values[:, None] - s
    others = {
        "absolute": np.abs(away),
        "4th power": away**4,
        "reversed": divergences["itakura_saito"](s[:, None], values[:, None, None]),
    }
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.2), sharey=True)
    for ax, kind, title in zip(axes, (bregman, others), ("Bregman divergences", "other losses")):
        ax.axvline(values.mean(), color="0.2", linewidth=1)
        heights = (2.6, 2.2, 2.6)  # of the labels
        for (name, loss), colour, marker, height in zip(kind.items(), plotting.palette, plotting.markers, heights):
            risk = loss.mean(axis=0) / loss.mean(axis=0).min()
            best = risk.argmin()
            ax.plot(s, risk, color=colour)
            ax.plot(s[best], 1, marker, color=colour, markersize=7, zorder=3)
            end = np.flatnonzero(risk < height)[-1]
            beside = {"textcoords": "offset points", "color": ink(colour), "va": "center"}
            ax.annotate(name, (s[end], risk[end]), (4, 0), **beside)
        ax.plot(values, 0.8 + 0 * values, "|", color="0.2", markersize=12, clip_on=False)
        ax.set(title=title, xlabel="estimate s", ylim=(0.8, 2.7), xlim=(0.8, 8.4), xticks=[1, 2, values.mean(), 8])
        ax.set_xticklabels(["1", "2", f"mean {values.mean():.2f}", "8"])
    axes[0].set_ylabel("expected loss over its least value")
    return figure


def losses(
    theta: Array,
    density: Array,
    posterior: Any,
    s: Array,
    delta: float,
    risk: Callable[..., Any],
    minimisers: Mapping[str, tuple[float, float]],
) -> Figure:
    """A posterior with its three estimates, and the three risks."""
    losses_figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
    left.plot(theta[::40], density[::40], color="0.2")
    window = 1 - posterior.cdf(s + delta) + posterior.cdf(s - delta)
    risks = {
        "squared": risk(lambda t, s: (t - s) ** 2),
        "absolute": risk(lambda t, s: np.abs(t - s)),
        "window": window,
    }
    for (name, values), colour, marker, line in zip(
        risks.items(), plotting.palette, plotting.markers, ("-", "--", "-.")
    ):
        best, _ = minimisers[name]
        scaled = (values - values.min()) / np.ptp(values)
        right.plot(s[::20], scaled[::20], line, color=colour, label=name)
        right.plot(best, 0, marker, color=colour, markersize=7, clip_on=False)
        left.axvline(best, color=colour, linestyle=line)
    left.set(xlabel="share of broken parts", ylabel="posterior density", ylim=(0, None))
    right.set(xlabel="estimate", ylabel="posterior risk, scaled", ylim=(0, 1))
    label_lines(right)
    return losses_figure


def tangents() -> Figure:
    """The gap between a convex function and its tangent, for two generators."""
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.9))
    x = np.linspace(0.05, 3, 200)
    tangent_at = "tangent at y = 1"
    places = {
        "generalized_i": {
            "generator": (1.9, 1.6, "right"), tangent_at: (1.3, -0.3, "left"), "d(2.4, 1)": (2.5, 1.1, "left")
        },
        "itakura_saito": {
            "generator": (1.9, -0.2, "left"), tangent_at: (1.7, -1.7, "right"), "d(0.25, 1)": (0.5, 1.6, "left")
        },
    }
    for ax, name, at in ((axes[0], "generalized_i", 2.4), (axes[1], "itakura_saito", 0.25)):
        d = divergences[name]
        curve = d.phi(x[:, None])
        tangent = d.phi(1.0) + d.grad(1.0)[0] * (x - 1)
        foot = float(d.phi(1.0) + d.grad(1.0)[0] * (at - 1))
        ax.plot(x, curve, label="generator")
        ax.plot(x, tangent, "--", label="tangent at y = 1")
        ax.plot([at, at], [foot, float(d.phi(at))], color=plotting.palette[2], lw=3, label=f"d({at:g}, 1)")
        ax.set(title=in_words(name), xlabel="x", ylabel="φ(x)")
        label_lines(ax, places[name])
    return fig


def balls() -> tuple[Array, Array, Figure]:
    """Balls of three divergences around one centre, in either argument."""
    grid = np.linspace(0.05, 3, 160)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1)
    centre = np.array([1.0, 0.7])
    fig, axes = plt.subplots(3, 2, figsize=(5.8, 6.6), sharex=True, sharey=True)
    for row, name in enumerate(("squared", "generalized_i", "itakura_saito")):
        d = divergences[name]
        for column, (values, title) in enumerate(
            ((d(plane, centre), "d(x, c)"), (d(centre, plane), "d(c, x)"))
        ):
            ax = axes[row, column]
            ax.contour(
                grid, grid, values, levels=[0.05, 0.2, 0.5, 1.0], colors=plotting.palette[0], linewidths=1.1
            )
            ax.plot(*centre, "o", color=plotting.palette[1])
            ax.set_title(f"{in_words(name)}, {title}", fontsize=10)
    return plane, centre, fig


def quotients(
    m: float, slope: Callable[..., Any], losses: Mapping[str, Callable[..., Any]], scalar: tuple[str, ...]
) -> Figure:
    """The quotient of the slope and the distance, for ten losses."""
    places = np.linspace(0.1, 0.9, 65)
    places = places[np.abs(places - m) > 0.02]
    quotient = {
        name: np.array([slope(loss, x, m) / (m - x) for x in places]) for name, loss in losses.items()
    }
    converse, axes = plt.subplots(1, 2, figsize=(7.8, 4.2), sharey=True)
    for ax, title, bregman_ones in zip(axes, ("Bregman divergences", "other losses"), (True, False)):
        shown = [name for name in losses if (name in scalar) == bregman_ones]
        for name, colour, line in zip(
            shown, plotting.palette, ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
        ):
            relative = quotient[name] / np.abs(quotient[name]).mean()
            ax.plot(places, relative, linestyle=line, color=colour, label=in_words(name))
        ax.set(title=title, xlabel="x")
        ax.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    axes[0].set(ylabel="quotient over its mean size", ylim=(-0.1, 3.2))
    return converse


def binomial() -> tuple[pd.DataFrame, Figure]:
    """Likelihood, posterior and two posterior risks of a proportion."""
    curve = estimates_of_bernoulli.bernoulli_likelihood(201)
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 2.9))
    axes[0].plot(curve.theta, curve.likelihood)
    axes[0].axvline(0.6, color="black", ls=":", lw=1)
    axes[0].set(xlabel="θ", ylabel="likelihood", title="likelihood")
    for name, marker in (("squared", "-"), ("logistic", "--")):
        values = curve[f"expected_{name}"]
        axes[1].plot(curve.theta, values / values[np.isfinite(values)].min(), marker, label=name)
    axes[1].axvline(4 / 7, color="black", ls=":", lw=1)
    axes[1].set(xlabel="estimate", ylabel="risk / least risk", ylim=(0.9, 6), title="posterior risk")
    label_lines(axes[1], {"squared": (0.2, 3.5, "right"), "logistic": (0.82, 5, "right")})
    return curve, fig


def matrix_means() -> Figure:
    """Three means of two covariance matrices as ellipses."""
    pair = np.array([[[4.0, 0.0], [0.0, 0.25]], [[0.25, 0.0], [0.0, 4.0]]])
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    oblique = np.stack([pair[0], turn @ pair[0] @ turn.T])
    angle = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharex=True, sharey=True)
    for ax, matrices, title in zip(axes, (pair, oblique), ("at right angles", "at half a right angle")):
        drawn = {
            "data first: all divergences": divergences["log_det"].centroid(matrices),
            "data second: von Neumann": divergences["von_neumann"].centroid(matrices, side="right"),
            "data second: log-determinant": divergences["log_det"].centroid(matrices, side="right"),
        }
        for matrix in matrices:
            ax.plot(*(np.linalg.cholesky(matrix) @ circle), color="0.6", lw=1)
        for (name, matrix), style, colour in zip(drawn.items(), ("-", "--", "-."), plotting.palette):
            outline = np.linalg.cholesky(matrix) @ circle
            ax.plot(*outline, style, color=colour, lw=2, label=name)
        ax.set(title=title, aspect="equal")
    corners = ((-2.1, 1.8), (0.65, 1.8), (0.45, -1.8))  # of the left panel, which no ellipse reaches
    for line, nearest, corner in zip(axes[0].lines[2:], (65, 22, 157), corners):
        name, colour = line.get_label().replace(": ", ":\n"), ink(line.get_color())
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8}
        text = axes[0].annotate(name, line.get_xydata()[nearest], corner, color=colour, va="center", arrowprops=leader)
        text.set_in_layout(False)  # the layout takes it for wider than it is, and cuts the titles
    return fig


def plane_of(p: Array) -> Array:
    """The simplex of three probabilities as an equilateral triangle."""
    p = np.asarray(p)
    return np.stack([p[..., 1] + p[..., 2] / 2, p[..., 2] * np.sqrt(3) / 2])


def projections() -> Figure:
    """A projection with its right angle, and centroids in either argument."""
    kl, values_of = divergences["kl"], np.array([1.0, 2.0, 3.0])
    start, level = np.array([0.62, 0.28, 0.10]), 2.1
    nearest = kl.project(start, values_of, level)
    tilted = start * np.exp(np.linspace(0, 4, 200)[:, None] * values_of)
    tilted /= tilted.sum(axis=1, keepdims=True)
    tilted = tilted[tilted @ values_of <= level]
    middle = np.linspace(0, 0.9, 50)  # p3 - p1 = 0.1 puts the mean at 2.1
    family = np.stack([(0.9 - middle) / 2, middle, (1.1 - middle) / 2], axis=1)
    member = family[40]
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.5))
    corners_of = plane_of(np.eye(3)[[0, 1, 2, 0]])
    axes[0].plot(*corners_of, color="0.6", lw=1)
    axes[0].plot(*plane_of(family), color=plotting.palette[0], label="mean = 2.1")
    axes[0].plot(*plane_of(tilted), "--", color=plotting.palette[1], label="tilts of y")
    for point, name, shift in ((start, "y", (-14, -4)), (nearest, "p", (6, 4)), (member, "x", (6, 4))):
        axes[0].plot(*plane_of(point), "o", color="black", ms=5)
        axes[0].annotate(name, plane_of(point), shift, textcoords="offset points")
    axes[0].plot(*plane_of([member, start]), ":", color="black", lw=1)
    axes[0].set(title="projection on a mean", aspect="equal")
    axes[0].axis("off")
    label_lines(axes[0], {"mean = 2.1": (0.36, 0.56, "left"), "tilts of y": (0.43, 0.25, "right")})
    data = np.array([[1.0, 6.0], [2.0, 1.0], [8.0, 2.0]])
    axes[1].plot(*data.T, "o", color="black", label="data")
    axes[1].plot(*data.mean(axis=0), "s", ms=8, label="data first: all divergences")
    for name, marker in (("generalized_i", "^"), ("itakura_saito", "D")):
        c = divergences[name].centroid(data, side="right")
        axes[1].plot(*c, marker, ms=8, label=f"data second: {in_words(name)}")
    axes[1].set(title="centroids", xlabel="first", ylabel="second", ylim=(0, 8))
    label_lines(axes[1])
    return fig
