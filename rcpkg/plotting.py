"""Pictures of classifiers: the regions in which each class wins, the choice of a weight, networks. Needs matplotlib.

It comes with the extra ``plot``: ``pip install "rcpkg[plot]"``.
"""

from collections.abc import Sequence
from typing import Any

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.text import Text
except ImportError as error:
    raise ImportError("rcpkg.plotting draws with matplotlib, the extra plot: pip install matplotlib") from error
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

__all__ = ["decision_regions", "markers", "network", "palette", "validation_curve"]

palette: tuple[str, ...] = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
"""Okabe and Ito's eight colours, told apart by colour-blind readers; yellow, faint on white, comes last."""

markers: tuple[str, ...] = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One marker for each colour, so that no figure relies on colour alone."""


def decision_regions(
    ax: Axes, classifier: Any, X: ArrayLike, y: ArrayLike | None = None, *, resolution: int = 200
) -> None:
    r"""Colour the plane by :math:`\hat y(x)` and, given labels, scatter the rows of X over it.

    Parameters
    ----------
    ax : matplotlib Axes
    classifier : fitted classifier of two features
        Has ``predict`` and ``classes_``.
    X : array of shape (n, 2)
        The plot covers the range of its columns and a margin of 5 %.
    y : array of shape (n,), optional
        Labels among ``classifier.classes_``.
    resolution : int
        Grid points on each side.
    """
    columns, X = getattr(X, "columns", None), np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn in the plane; got shape {X.shape}")
    classes = list(classifier.classes_)
    if len(classes) > len(palette):
        raise ValueError(f"at most {len(palette)} classes can be told apart; got {len(classes)}")
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * (high - low)
    low, high = low - margin, high + margin
    horizontal, vertical = (np.linspace(low[j], high[j], resolution) for j in range(2))
    grid = np.stack(np.meshgrid(horizontal, vertical), axis=-1).reshape(-1, 2)
    grid = grid if columns is None else pd.DataFrame(grid, columns=columns)
    region = np.searchsorted(classes, classifier.predict(grid)).reshape(resolution, resolution)
    ax.imshow(
        region,
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=ListedColormap(palette[: len(classes)]),
        vmin=-0.5,
        vmax=len(classes) - 0.5,
        alpha=0.22,
        label="regions",
    )
    ax.grid(False)
    if y is not None:
        y = np.asarray(y)
        look = {"s": 16, "edgecolor": "white", "linewidth": 0.4}
        for label, colour, marker in zip(classes, palette, markers):
            ax.scatter(*X[y == label].T, color=colour, marker=marker, label=str(label), **look)


def validation_curve(ax: Axes, cv_results: Any, *, label: str = "log-loss of left-out rows") -> None:
    """Draw what each weight of the target achieved, in a band of one standard error, and mark the best.

    Losses that differ by more than a factor of ten, as with few rows and hardly any target, are on a logarithmic axis.

    Parameters
    ----------
    ax : matplotlib Axes
    cv_results : DataFrame
        ``cv_results_`` of a fitted `RiskCalibrationCV`: columns target_weight, log_loss and std_error.
    label : str
        Of the curve, for a legend.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    needed = ["target_weight", "log_loss", "std_error"]
    missing = [name for name in needed if name not in cv_results]
    if missing:
        raise ValueError(f"cv_results must be the cv_results_ of a RiskCalibrationCV; it has no {', '.join(missing)}")
    of_weights = np.asarray(cv_results["target_weight"], dtype=float) > 0  # the last row may be the closed form
    weight, loss, error = (np.asarray(cv_results[name], dtype=float)[of_weights] for name in needed)
    (line,) = ax.plot(weight, loss, marker=".", label=label)
    ax.fill_between(weight, loss - error, loss + error, color=line.get_color(), alpha=0.2, linewidth=0)
    best = np.flatnonzero(loss == loss.min())[-1]  # of equally good weights the greatest, as the fit chooses
    ax.plot(weight[best], loss[best], "o", markersize=9, markerfacecolor="none", color=line.get_color())
    ax.set(xscale="log", xlabel="weight of the target", ylabel="log-loss")
    if loss.max() > 10 * loss.min() > 0:
        ax.set_yscale("log")


def _places_in_layers(parents: list[list[int]]) -> NDArray[np.float64]:
    """Places (d, 2) of features, each in a layer below those of its parents, near the mean of their places."""
    depth = np.zeros(len(parents), dtype=int)
    for _ in parents:  # a path has fewer arrows than there are features
        depth = np.array([1 + max((depth[f] for f in of), default=-1) for of in parents])
    places = np.column_stack([np.zeros(len(parents)), -1.0 - depth])
    for layer in range(depth.max() + 1):
        members = np.flatnonzero(depth == layer)
        near = [np.mean([places[f, 0] for f in parents[j]]) if parents[j] else 0.0 for j in members]
        order = members[np.argsort(near, kind="stable")]
        places[order, 0] = (np.arange(len(order)) + 0.5) / len(order)
    return places


def _node(ax: Axes, place: Sequence[float], name: str, colour: str) -> Text:
    """A name in a box, drawn before the arrows, which end where it does."""
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": colour}
    return ax.text(*place, name, ha="center", va="center", zorder=2, bbox=box)


def network(ax: Axes, model: Any, *, class_name: str = "class") -> None:
    r"""Draw a Bayesian network classifier: the class above, each feature in a layer below those of its parents.

    The class, a parent of every feature, has thin dashed lines; dark arrows join the features.

    Parameters
    ----------
    ax : matplotlib Axes
    model : fitted TAN or KDependenceBayes
        Has ``parents_``, and ``feature_names_in_`` where rows had names; of a calibrated network its ``estimator_``.
    class_name : str
        What to write into the node of the class.

    Raises
    ------
    ValueError
        If the model has no ``parents_``.
    """
    if not hasattr(model, "parents_"):
        raise ValueError(f"model must be a fitted TAN or KDependenceBayes; {type(model).__name__} has no parents_")
    parents = model.parents_
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(parents))])
    places, top = _places_in_layers(parents), (0.5, 0.0)
    for place in places:
        ax.plot(*zip(top, place), color="0.75", linewidth=0.6, linestyle="--", zorder=1)
    nodes = [_node(ax, place, str(name), palette[0]) for place, name in zip(places.tolist(), names)]
    _node(ax, top, class_name, palette[1])
    look = {"arrowstyle": "-|>", "color": palette[0], "shrinkA": 0, "shrinkB": 0}
    for j, of in enumerate(parents):
        for f in of:
            ends = {"patchA": nodes[f].get_bbox_patch(), "patchB": nodes[j].get_bbox_patch()}
            bent = {"connectionstyle": f"arc3,rad={0.25 if places[f, 1] - places[j, 1] > 1 else 0}"}  # around a layer
            ax.annotate("", places[j], places[f], arrowprops=look | ends | bent, zorder=3)
    ax.set(xlim=(0, 1), ylim=(places[:, 1].min() - 0.5, 0.5))
    ax.set_axis_off()
