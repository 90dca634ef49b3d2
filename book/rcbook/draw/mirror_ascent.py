"""Figures and tables of the chapter *Mirror ascent*: planes and paths."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit, logit

from rcbook.figures import ink, label_lines, look
from rcbook.small_families import softmax_rows
from rcpkg import GaussianNB
from rcpkg.base import Array
from rcpkg.families.gaussian_prior import GaussianParameters


def planes(
    bayes: GaussianNB, cloud_X: Array, cloud_Y: Array, cloud_paths: Mapping[str, list[GaussianParameters]]
) -> Figure:
    """RC and gradient ascent over two parameters, in both planes."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.6))
    lines = {"RC": "-", "gradient ascent": "--"}
    P = softmax_rows(bayes.log_joint(cloud_X, bayes.parameters_))
    arrow = bayes.statistics(cloud_X, cloud_Y - P).first[0]
    arrow = arrow / np.linalg.norm(arrow)
    planes = (
        ("mean parameters", bayes.family_.mean_parameters),
        ("natural parameters", bayes.family_.natural_parameters),
    )
    names = (r"average of $x_{}\,\mathbb{{1}}\{{y = 0\}}$", r"coefficient of $x_{}$ in class 0")
    for ax, (title, to_plane), label in zip(axes, planes, names):
        for way, method in (("RC", "published"), ("gradient ascent", "gradient")):
            points = [to_plane(theta).first[0] for theta in cloud_paths[way]]
            points = np.array(points)
            ax.plot(
                *points.T, **look(method), linestyle=lines[way], markevery=[1, 3, 10, 30, 100, 300], label=way
            )
        start = to_plane(bayes.parameters_).first[0]
        size = 0.3 * np.ptp(points, axis=0).max()
        ax.annotate(
            "",
            start + size * arrow,
            start,
            arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.6},
        )
        style = look("closed form") | {"linestyle": "none", "markersize": 8}
        ax.plot(*start, **style, label="closed form")
        ax.set(title=title, xlabel=label.format(1), ylabel=label.format(2))
    places = {
        "RC": (-1.0, 0.17, "left"), "gradient ascent": (-0.42, 0.25, "right"), "closed form": (-0.84, 0.33, "left")
    }
    label_lines(axes[0], places)
    return figure


def steps_of_a_coin(eta: float, step: float) -> Figure:
    """One step in the log odds of a coin, and one in its probability, from the same start."""
    figure, ax = plt.subplots(figsize=(5.2, 3.3))
    log_odds, mu = np.linspace(-3, 3, 121), expit(eta)
    ax.plot(log_odds, expit(log_odds), color="0.6")
    ax.text(1.4, 0.64, "the mirror:\nμ is the slope of ψ", color="0.4")
    for method, aside, end, label, place in (
        ("gradient", (eta + step, mu), (eta + step, expit(eta + step)), "gradient ascent:\nadd to η", (-0.5, 0.2)),
        ("published", (eta, mu + step), (logit(mu + step), mu + step), "mirror ascent:\nadd to μ", (-1.1, 0.7)),
    ):
        colour, marker = look(method).values()
        ax.annotate("", aside, (eta, mu), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.8})
        ax.plot(*zip(aside, end), ":", color=colour)
        ax.plot(*end, color=colour, marker=marker)
        ax.text(*place, label, color=ink(colour))
    ax.plot(eta, mu, "o", color="black")
    ax.annotate("start", (eta, mu), (-1.6, 0.3))
    ax.set(xlabel="natural parameter η: log odds of heads", ylabel="mean μ: probability of heads", ylim=(0, 1))
    return figure


def soft_errors(outcomes: Mapping[str, list[pd.DataFrame]]) -> Figure:
    """Log-loss and soft error by the number of updates, of two learners."""
    courses = {
        title: pd.concat(histories).groupby("iteration")[["log_loss", "soft_error"]].mean()
        for title, histories in outcomes.items()
    }
    soft_figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.0))
    looks = {"RC": look("published"), "soft-error gradient": look("gradient") | {"linestyle": "--"}}
    for ax, measure, name in zip(axes, ("log_loss", "soft_error"), ("log-loss", "soft error")):
        for title, course in courses.items():
            ax.plot(course[measure], **looks[title], markevery=8, label=title)
        ax.set(xlabel="updates", ylabel=name)
    label_lines(axes[0], {"RC": (22, 0.6, "left"), "soft-error gradient": (40, 0.69, "right")})
    return soft_figure
