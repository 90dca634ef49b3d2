"""Pictures of classifiers: the regions in which each class wins, and the choice of a weight. Needs matplotlib.

It comes with the extra ``plot``: ``pip install "rcpkg[plot]"``.
"""

from typing import Any

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
except ImportError as error:
    raise ImportError("rcpkg.plotting draws with matplotlib, the extra plot: pip install matplotlib") from error
import numpy as np
from numpy.typing import ArrayLike

__all__ = ["decision_regions", "markers", "palette", "validation_curve"]

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
    X = np.asarray(X, dtype=float)
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
