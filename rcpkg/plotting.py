"""Pictures of classifiers: regions, the choice of a weight, networks, reliability, reasons. Needs matplotlib.

It comes with the extra ``plot``: ``pip install "rcpkg[plot]"``.
"""

from collections.abc import Sequence
from typing import Any, Self

try:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.text import Text
except ImportError as error:
    raise ImportError("rcpkg.plotting draws with matplotlib, the extra plot: pip install matplotlib") from error
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from rcpkg.checks import check_number
from rcpkg.explain import contributions
from rcpkg.linalg import Array

__all__ = [
    "ReliabilityDisplay",
    "WaterfallDisplay",
    "decision_regions",
    "markers",
    "network",
    "palette",
    "validation_curve",
]

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

    The ``classifier`` is one of two features; the plot covers the range of the columns of X, (n, 2), and a margin of
    5 %, with ``resolution`` grid points on each side. Labels y (n,) are among its ``classes_``; ``ax`` are axes.
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

    The ``cv_results`` are the ``cv_results_`` of a fitted `RiskCalibrationCV`, with the columns target_weight, log_loss
    and std_error; ``ax`` are axes, and ``label`` names the curve in a legend.
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

    The ``model`` is a fitted `TAN` or `KDependenceBayes`, of a calibrated network its ``estimator_``; ``ax`` are axes,
    and ``class_name`` is written into the node of the class.
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


class ReliabilityDisplay:
    """How often the predicted class is right, by the probability that it was given, with intervals for each bin.

    Made by `from_estimator` or `from_predictions`, as scikit-learn's displays are. Each bin that has rows has its mean
    greatest posterior, ``confidence`` (b,), the share of right predictions, ``accuracy`` (b,), the 95 % ``interval`` of
    Wilson for it, (b, 2), and ``n_rows`` (b,). An interval that the diagonal leaves speaks against the posteriors.
    After ``plot`` it has ``ax_``, ``figure_``, and in ``alt_`` what the picture shows, in words.
    """

    def __init__(self, *, confidence: Array, accuracy: Array, interval: Array, n_rows: Array) -> None:
        self.confidence, self.accuracy, self.interval, self.n_rows = confidence, accuracy, interval, n_rows

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, n_bins: int = 10, ax: Axes | None = None
    ) -> Self:
        """Of a fitted classifier on rows with labels."""
        return cls.from_predictions(y, estimator.predict_proba(X), classes=estimator.classes_, n_bins=n_bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_proba: ArrayLike, *, classes: ArrayLike, n_bins: int = 10, ax: Axes | None = None
    ) -> Self:
        """Of posteriors (n, r) in the order of the ``classes``; bins have equal width."""
        check_number("n_bins", n_bins, 1, integer=True)
        y, P, labels = np.asarray(y_true), np.asarray(y_proba, dtype=float), np.asarray(classes)
        if P.shape != (len(y), len(labels)):
            raise ValueError(f"y_proba must have the shape {len(y), len(labels)}; got {P.shape}")
        greatest, right = P.max(axis=1), labels[P.argmax(axis=1)] == y
        number = np.minimum((n_bins * greatest).astype(int), n_bins - 1)
        bins = [number == b for b in np.unique(number)]
        hits = [(int(right[b].sum()), int(b.sum())) for b in bins]
        intervals = [binomtest(k, n).proportion_ci(method="wilson") for k, n in hits]
        return cls(
            confidence=np.array([greatest[b].mean() for b in bins]),
            accuracy=np.array([k / n for k, n in hits]),
            interval=np.array([(one.low, one.high) for one in intervals]),
            n_rows=np.array([n for _, n in hits]),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, name: str | None = None) -> Self:
        """Draw it, into ``ax`` if given; ``name`` is for a legend."""
        self.ax_ = ax or plt.subplots()[1]
        self.figure_ = self.ax_.figure
        self.ax_.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=0)
        spread = np.abs(self.interval.T - self.accuracy)
        self.ax_.errorbar(self.confidence, self.accuracy, yerr=spread, fmt="o", color=palette[0], capsize=2, label=name)
        self.ax_.set(xlabel="probability of the predicted class", ylabel="share that is right", xlim=(0, 1.02))
        low, high = self.interval.T
        outside = int(((self.confidence < low) | (self.confidence > high)).sum())
        self.alt_ = (
            f"{len(low)} bins of the probability of the predicted class, the share of right predictions in each with "
            f"a 95 % interval; {outside} of these leave the diagonal."
        )
        return self


class WaterfallDisplay:
    """The log odds of two classes for one row, from the class weights feature by feature to the posterior.

    Contributions in ``nats`` (k,), the greatest first, have ``names``; they lead from the log odds before any feature
    is known, ``start``, to those of the first of two ``classes`` against the second. After ``plot`` it has ``ax_``,
    ``figure_``, and in ``alt_`` what the picture shows, in words.
    """

    def __init__(self, *, nats: Array, names: list[str], start: float, classes: tuple[Any, Any]) -> None:
        self.nats, self.names, self.start, self.classes = nats, names, start, classes

    @classmethod
    def from_estimator(
        cls, model: Any, row: ArrayLike, *, classes: tuple | None = None, n_features: int = 10, ax: Axes | None = None
    ) -> Self:
        """Of a fitted model with marginals, or a pipeline that ends in one: Shapley values of the log odds of one row.

        The ``classes`` are two labels, by default the most probable ones. The ``n_features`` that matter most have a
        bar each; the others are summed.
        """
        P = model.predict_proba(row)
        if len(P) != 1:
            raise ValueError(f"row must be one row; got {len(P)}")
        labels = model.classes_.tolist()
        first, second = map(labels.index, classes) if classes is not None else P[0].argsort()[:-3:-1]
        values = contributions(model, row, "shapley", "log_odds")
        nats = np.asarray(values[0, :, first] - values[0, :, second])
        names = [name if isinstance(name, str) else f"x{name}" for name in values.features]
        order = np.argsort(-np.abs(nats), kind="stable")
        shown, rest = order[:n_features], order[n_features:]
        log_odds = model.predict_log_proba(row)[0]
        return cls(
            nats=np.append(nats[shown], [nats[rest].sum()] if len(rest) else []),
            names=[str(names[j]) for j in shown] + ([f"{len(rest)} others"] if len(rest) else []),
            start=float(log_odds[first] - log_odds[second] - nats.sum()),
            classes=(labels[first], labels[second]),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw it, into ``ax`` if given."""
        self.ax_ = ax or plt.subplots()[1]
        self.figure_ = self.ax_.figure
        ends = self.start + np.cumsum(self.nats)
        colours = [palette[0] if gain >= 0 else palette[1] for gain in self.nats]
        places = np.arange(len(ends))
        self.ax_.barh(places, self.nats, left=ends - self.nats, color=colours, height=0.6)
        self.ax_.vlines(ends[:-1], places[:-1], places[1:], color="0.4", linewidth=0.6)
        self.ax_.axvline(0, color="0.7", linewidth=0.8, zorder=0)
        self.ax_.set_yticks(places, self.names)
        self.ax_.invert_yaxis()
        first, second = self.classes
        self.ax_.set_xlabel(f"log odds of {first} against {second}, nats")
        steps = ", ".join(f"{name} {gain:+.2f}" for name, gain in zip(self.names, self.nats))
        self.alt_ = (
            f"Bars that lead the log odds of {first} against {second} from {self.start:.2f} to {ends[-1]:.2f} nats: "
            f"{steps}."
        )
        return self
