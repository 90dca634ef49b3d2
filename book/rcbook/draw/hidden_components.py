"""Figures and tables of the chapter *Hidden components*: the clouds, a valley, numbers of components."""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import log_softmax

from rcbook.experiments.studies import numbers_of_components as study
from rcbook.figures import look
from rcpkg import plotting
from rcpkg.base import Array


def clouds(models: Mapping[str, Any], rows: Array, label: Array) -> Figure:
    """Decisions of each model, and the contours of its density of each class."""
    corners = rows.min(axis=0) - 0.4, rows.max(axis=0) + 0.4
    plane = np.stack(np.meshgrid(*np.linspace(*corners, 160).T), axis=-1)
    figure, axes = plt.subplots(1, len(models), figsize=(9.6, 3.2), sharey=True)
    for ax, (name, model) in zip(axes, models.items()):
        plotting.DecisionRegionsDisplay.from_estimator(model, rows, label, ax=ax)
        joint = model.predict_joint_log_proba(plane.reshape(-1, 2)).reshape(160, 160, 2)
        for c in range(2):
            height = joint[:, :, c] - joint[:, :, c].max()
            levels, colour = [-4.5, -2, -0.5], plotting.palette[c]
            ax.contour(plane[..., 0], plane[..., 1], height, levels=levels, colors=colour, linestyles="-")
        ax.set(title=name.replace(", ", ",\n"), xlabel="first feature")
    axes[0].set_ylabel("second feature")
    return figure


def losses(models: Mapping[str, Any], law: Callable[[Array], Array], rows: Array, label: Array) -> pd.DataFrame:
    """Log-losses of each model and of the law of the rows, complete and with one feature hidden, and log p(x)."""
    joints = {name: model.predict_joint_log_proba for name, model in models.items()}
    table = {}
    for name, joint in (joints | {"truth": law}).items():
        views = [np.where(np.arange(2) == hidden, np.nan, rows) for hidden in (None, 0, 1)]
        found = [-log_softmax(joint(view), axis=1)[np.arange(len(label)), label].mean() for view in views]
        table[name] = [*found, np.logaddexp.reduce(joint(rows), axis=1).mean()]
    columns = ["complete", "first feature hidden", "second feature hidden", "mean log p(x)"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns)


def valley(shares: Array, joint: Array, conditional: Array, best: float) -> Figure:
    """Likelihoods on the way from a mixture to itself in another order."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2))
    for ax, title, values in zip(axes, ("log-likelihood", "conditional log-likelihood"), (joint, conditional)):
        ax.plot(shares, values, color=look("target")["color"])
        ax.set(title=title, xlabel="share of the way", ylabel="nats a row")
    axes[1].axhline(best, color=look("closed form")["color"], ls="--")
    axes[1].annotate("one component", (0.5, best), xytext=(0, 4), textcoords="offset points", ha="center")
    return figure


def numbers(table: pd.DataFrame) -> Figure:
    """Median log-loss over the sets by the number of components, for each family, way and share of hidden values."""
    figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.2), sharex=True)
    ways = {study.CLOSED: look("closed form"), study.CALIBRATED: look("target"), study.IN_VIEW: look("chosen weight")}
    for row, family in zip(axes, study.FAMILIES):
        for ax, share in zip(row, study.SHARES):
            for way, style in ways.items():
                medians = [table[family, number, way, share].median() for number in study.NUMBERS]
                ax.plot(study.NUMBERS, medians, label=way, **style)
            ax.set(title=f"{family}, {100 * share:.0f} % hidden", xticks=study.NUMBERS)
        row[0].set_ylabel("median log-loss")
    for ax in axes[1]:
        ax.set_xlabel("components a class")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
