"""Figures and tables of the chapter *Hidden components*: the clouds with one and two components."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import log_softmax

from rcbook.trials import hidden_components as trials
from rcpkg import plotting
from rcpkg.base import Array


def clouds(models: Mapping[str, Any], rows: Array, label: Array) -> Figure:
    """Decisions of each model, and the contours of its density of each class."""
    corners = rows.min(axis=0) - 0.4, rows.max(axis=0) + 0.4
    plane = np.stack(np.meshgrid(*np.linspace(*corners, 160).T), axis=-1)
    figure, axes = plt.subplots(1, len(models), figsize=(9.6, 3.2), sharey=True)
    for ax, (name, model) in zip(axes, models.items()):
        plotting.decision_regions(ax, model, rows, label)
        joint = model.predict_joint_log_proba(plane.reshape(-1, 2)).reshape(160, 160, 2)
        for c in range(2):
            height = joint[:, :, c] - joint[:, :, c].max()
            levels, colour = [-4.5, -2, -0.5], plotting.palette[c]
            ax.contour(plane[..., 0], plane[..., 1], height, levels=levels, colors=colour, linestyles="-")
        ax.set(title=name.replace(", ", ",\n"), xlabel="first feature")
    axes[0].set_ylabel("second feature")
    return figure


def losses(models: Mapping[str, Any], rows: Array, label: Array) -> pd.DataFrame:
    """Log-losses of each model and of the law of the clouds, complete and with one feature hidden, and log p(x)."""
    joints = {name: model.predict_joint_log_proba for name, model in models.items()}
    table = {}
    for name, joint in (joints | {"truth": trials.law_of_clouds}).items():
        views = [np.where(np.arange(2) == hidden, np.nan, rows) for hidden in (None, 0, 1)]
        found = [-log_softmax(joint(view), axis=1)[np.arange(len(label)), label].mean() for view in views]
        table[name] = [*found, np.logaddexp.reduce(joint(rows), axis=1).mean()]
    columns = ["complete", "first feature hidden", "second feature hidden", "mean log p(x)"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns)
