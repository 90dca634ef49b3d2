"""Displays of classifiers: regions, paths, weights, networks, reliability, reasons; ``pip install "rcpkg[plot]"``.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from rcpkg import LDA, QDA, TAN, RiskCalibration, RiskCalibrationCV, plotting
>>> X, y = load_iris(return_X_y=True)
>>> model = RiskCalibration(QDA()).fit(X, y)
>>> plotting.WaterfallDisplay.from_estimator(model, X[70:71]).alt_
'Bars that lead the log odds of 2 against 1 from -0.01 to 0.07 nats: ...'
>>> shown = plotting.ReliabilityDisplay.from_estimator(model, X, y).plot()
>>> shown = plotting.ReliabilityDisplay.from_predictions(y, model.predict_proba(X), classes=model.classes_)
>>> shown = plotting.CalibrationPathDisplay.from_estimator(model)
>>> shown = plotting.TargetWeightDisplay.from_estimator(RiskCalibrationCV(LDA()).fit(X, y))
>>> shown = plotting.NetworkDisplay.from_estimator(TAN().fit(X.astype(int), y))
>>> shown = plotting.DecisionRegionsDisplay.from_estimator(QDA().fit(X[:, :2], y), X[:, :2], y)
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

try:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
except ImportError as error:
    raise ImportError("rcpkg.plotting draws with matplotlib, the extra plot: pip install matplotlib") from error
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from rcpkg.checks import check_number
from rcpkg.columns import as_labels, in_columns
from rcpkg.explain import contributions

palette: tuple[str, ...] = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's eight colours, told apart by colour-blind readers; yellow, faint on white, comes last."""

markers: tuple[str, ...] = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One marker for each colour, so that no figure relies on colour alone."""


class Display:
    """A picture in scikit-learn's manner: made by ``from_estimator``, drawn again by ``plot``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    alt_ : str
        What the picture shows, in words.
    """

    _draw: Callable[[Axes, str | None], str]  # draws it, and says what it shows

    @classmethod
    def from_estimator(
        cls, estimator: Any, *data: ArrayLike, name: str | None = None, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Make it, of the estimator, rows and labels and by the options that the class takes, and draw it by `plot`.

        Raises
        ------
        ValueError
            If the estimator is not fitted, or has not what is drawn.
        """
        return cls(estimator, *data, **options).plot(ax=ax, name=name)  # type: ignore[call-arg]

    def plot(self, *, ax: Axes | None = None, name: str | None = None) -> Self:
        """Draw it, into ``ax`` if given, where others of its kind may be drawn; ``name`` is for a legend."""
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_, self.alt_ = self.ax_.figure, self._draw(self.ax_, name)
        return self


def _kept(estimator: Any, attribute: str) -> Any:
    """What a fit has kept."""
    if not hasattr(estimator, attribute):
        raise ValueError(f"estimator must be fitted and have {attribute}; {type(estimator).__name__} has none")
    return getattr(estimator, attribute)


def _labels(y: ArrayLike, classes: list[Any]) -> NDArray:
    """The labels of rows, each of which is one of the classes."""
    y = np.ravel(as_labels(y))
    if unknown := sorted(set(y.tolist()) - set(classes), key=str):
        raise ValueError(f"y holds {unknown[0]!r}, which is none of the classes {', '.join(map(str, classes))}")
    return y


class DecisionRegionsDisplay(Display):
    r"""The plane coloured by :math:`\hat y(x)`, over the range of X and a margin of 5 %, with the rows over it.

    Parameters
    ----------
    estimator : fitted classifier of two features
    X : array-like of shape (n, 2)
    y : array-like of shape (n,), optional
        Labels, without which no rows are drawn.
    resolution : int, default=200
        Points of the grid on each side.

    Raises
    ------
    ValueError
        If X has not two columns, y not a label for each row or one that is no class, or there are more classes than
        colours.
    """

    def __init__(self, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, resolution: int = 200) -> None:
        X = in_columns(X)
        columns, X = getattr(X, "columns", None), np.asarray(X, dtype=float)
        self.X, self.classes = X, list(_kept(estimator, "classes_"))
        self.y = y if y is None else _labels(y, self.classes)
        if X.ndim != 2 or X.shape[1] != 2 or not np.isfinite(X).any(axis=0).all():
            raise ValueError(f"X must have two columns, with values, to be drawn in the plane; got shape {X.shape}")
        if self.y is not None and len(self.y) != len(X):
            raise ValueError(f"y must have a label for each of the {len(X)} rows of X; got {len(self.y)}")
        if len(self.classes) > len(palette):
            raise ValueError(f"at most {len(palette)} classes can be told apart; got {len(self.classes)}")
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        margin = 0.05 * np.where(high > low, high - low, 1.0)
        sides = np.linspace(low - margin, high + margin, resolution).T
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        decided = estimator.predict(grid if columns is None else pd.DataFrame(grid, columns=columns))
        self.region = np.searchsorted(self.classes, decided).reshape(resolution, resolution)
        self.extent = tuple(sides[:, [0, -1]].ravel())

    def _draw(self, ax: Axes, name: str | None) -> str:
        r = len(self.classes)
        look: dict[str, Any] = {"cmap": ListedColormap(palette[:r]), "vmin": -0.5, "vmax": r - 0.5, "alpha": 0.22}
        look |= {"origin": "lower", "aspect": "auto", "interpolation": "nearest", "label": "regions"}
        ax.imshow(self.region, extent=self.extent, **look)
        ax.grid(False)
        if self.y is not None:
            for label, colour, marker in zip(self.classes, palette, markers):
                rows = {"color": colour, "marker": marker, "s": 16, "edgecolor": "white", "linewidth": 0.4}
                ax.scatter(*self.X[self.y == label].T, label=str(label), **rows)
        shares = np.bincount(self.region.ravel(), minlength=r) / self.region.size
        parts = ", ".join(f"{label} {share:.0%}" for label, share in zip(self.classes, shares))
        return f"The plane of two features, coloured by the class decided for: {parts} of it."


class TargetWeightDisplay(Display):
    """What each weight of the target achieved on rows left out, with a band of one standard error.

    Of several targets the best one is drawn. Losses that differ by more than a factor of ten, as with few rows and
    hardly any target, are on a logarithmic axis.

    Parameters
    ----------
    estimator : fitted RiskCalibrationCV
    """

    def __init__(self, estimator: Any) -> None:
        table = _kept(estimator, "cv_results_")
        table = table[table.target_weight > 0]  # the last row may be the closed form
        if "target" in table:
            table = table[table.target == table.target.iloc[table.log_loss.argmin()]]
        self.weight, self.log_loss, self.std_error = table[["target_weight", "log_loss", "std_error"]].to_numpy(float).T

    def _draw(self, ax: Axes, name: str | None) -> str:
        weight, loss, error = self.weight, self.log_loss, self.std_error
        (line,) = ax.plot(weight, loss, marker=".", label=name or "log-loss of left-out rows")
        ax.fill_between(weight, loss - error, loss + error, color=line.get_color(), alpha=0.2, linewidth=0)
        best = np.flatnonzero(loss == loss.min())[-1]  # of equally good weights the greatest, as the fit chooses
        ax.plot(weight[best], loss[best], "o", markersize=9, markerfacecolor="none", color=line.get_color())
        ax.set(xscale="log", xlabel="weight of the target", ylabel="log-loss")
        if loss.max() > 10 * loss.min() > 0:
            ax.set_yscale("log")
        return (
            f"Log-loss of left-out rows against the weight of the target, from {weight.min():g} to {weight.max():g}: "
            f"least, {loss[best]:.3f}, at the weight {weight[best]:g}; at the ends {loss[0]:.3f} and {loss[-1]:.3f}."
        )


class CalibrationPathDisplay(Display):
    """Losses of the training rows along a calibration, from the closed form to the model returned.

    Parameters
    ----------
    estimator : fitted RiskCalibration, or another learner of its kind
    """

    def __init__(self, estimator: Any) -> None:
        self.history = _kept(estimator, "history_")

    def _draw(self, ax: Axes, name: str | None) -> str:
        changes = []
        losses = {"log_loss": "log-loss", "soft_error": "soft error", "error": "error"}
        for (loss, words), colour in zip(losses.items(), palette):
            if loss in self.history:
                values = self.history[loss].to_numpy()
                ax.plot(np.arange(len(values)), values, marker=".", color=colour)
                ax.annotate(words, (len(values) - 1, values[-1]), (4, 0), textcoords="offset points", color=colour)
                changes.append(f"{words} from {values[0]:.3f} to {values[-1]:.3f}")
        ax.set(xlabel="iteration", ylabel="loss of the training rows")
        return f"Losses of the training rows over {len(self.history) - 1} iterations: {', '.join(changes)}."


class NetworkDisplay(Display):
    """A Bayesian network classifier: the class above, each feature in a layer below those of its parents.

    The class, a parent of every feature, has thin dashed lines; dark arrows join the features.

    Parameters
    ----------
    estimator : fitted TAN or KDependenceBayes
        Of a calibrated network its ``estimator_``.
    class_name : str, default="class"
        What to write into the node of the class.
    """

    def __init__(self, estimator: Any, *, class_name: str = "class") -> None:
        self.parents, self.class_name = _kept(estimator, "parents_"), class_name
        d, depth = len(self.parents), np.zeros(len(self.parents), dtype=int)
        self.names = [*map(str, getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(d)]))]
        for _ in range(d):  # a path has fewer arrows than there are features
            depth = np.array([1 + max((depth[f] for f in above), default=-1) for above in self.parents])
        self.places = np.column_stack([np.zeros(d), -1.0 - depth])
        for layer in range(depth.max() + 1):  # its features from left to right by the mean place of their parents
            members = np.flatnonzero(depth == layer)
            near = [self.places[self.parents[j], 0].mean() if self.parents[j] else 0.0 for j in members]
            self.places[members[np.argsort(near, kind="stable")], 0] = (np.arange(len(members)) + 0.5) / len(members)

    def _draw(self, ax: Axes, name: str | None) -> str:
        places, top = self.places, (0.5, 0.0)
        for place in places:
            ax.plot(*zip(top, place), color="0.75", linewidth=0.6, linestyle="--", zorder=1)
        labels = [*zip(places.tolist(), self.names, palette[:1] * len(places)), (top, self.class_name, palette[1])]
        box = {"boxstyle": "round", "facecolor": "white"}  # drawn before the arrows, which end where it does
        centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 2}
        nodes = [ax.text(*place, label, bbox=box | {"edgecolor": colour}, **centred) for place, label, colour in labels]
        arcs = [(f, j) for j, above in enumerate(self.parents) for f in above]
        for f, j in arcs:
            look = {"arrowstyle": "-|>", "color": palette[0], "shrinkA": 0, "shrinkB": 0}
            look |= {"patchA": nodes[f].get_bbox_patch(), "patchB": nodes[j].get_bbox_patch()}
            bent = {"connectionstyle": f"arc3,rad={0.25 if places[f, 1] - places[j, 1] > 1 else 0}"}  # around a layer
            ax.annotate("", places[j], places[f], arrowprops=look | bent, zorder=3)
        ax.set(xlim=(0, 1), ylim=(places[:, 1].min() - 0.5, 0.5))
        ax.set_axis_off()
        listed = ", ".join(f"{self.names[f]} to {self.names[j]}" for f, j in arcs) or "none"
        return f"A network of {self.class_name} and {len(places)} features; arrows between features: {listed}."


class ReliabilityDisplay(Display):
    """How often a class is right, by the probability that it was given, with 95 % intervals by Wilson for each bin.

    Parameters
    ----------
    estimator : fitted classifier
    X, y : rows and their labels
    pos_label : label, optional
        The class; by default that predicted of each row.
    n_bins : int, default=10
        Of equal width.

    Raises
    ------
    ValueError
        If the posteriors have not a row for each label and a column for each class, or ``pos_label`` or a label in y is
        no class.
    """

    def __init__(self, estimator: Any, X: ArrayLike, y: ArrayLike, *, pos_label: Any = None, n_bins: int = 10) -> None:
        check_number("n_bins", n_bins, 1, integer=True)
        P, labels = map(np.asarray, (estimator.predict_proba(X), estimator.classes_))
        y = _labels(y, labels.tolist())
        if P.shape != (len(y), len(labels)):
            raise ValueError(f"y_proba must have the shape {len(y), len(labels)}; got {P.shape}")
        if pos_label is not None and pos_label not in labels:
            raise ValueError(f"pos_label must be one of {labels.tolist()}; got {pos_label!r}")
        of_row = P.argmax(axis=1) if pos_label is None else np.full(len(y), labels.tolist().index(pos_label))
        p, right = P[np.arange(len(y)), of_row], labels[of_row] == y
        number = np.minimum((n_bins * p).astype(int), n_bins - 1)
        _, number, n_rows = np.unique(number, return_inverse=True, return_counts=True)
        hits = np.bincount(number, right).astype(int)
        bins = pd.DataFrame([binomtest(*pair).proportion_ci(method="wilson") for pair in zip(hits, n_rows)])
        self.bins = bins.assign(confidence=np.bincount(number, p) / n_rows, accuracy=hits / n_rows, n_rows=n_rows)
        self.pos_label = pos_label

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, y_proba: ArrayLike, *, classes: ArrayLike, **options: Any) -> Self:
        """Of posteriors (n, r) in the order of the ``classes``; ``options`` are those of `from_estimator`."""
        given = SimpleNamespace(predict_proba=np.asarray, classes_=classes)
        return cls.from_estimator(given, y_proba, y_true, **options)

    def _draw(self, ax: Axes, name: str | None) -> str:
        k, bins = len(ax.containers) % len(palette), self.bins
        event, right = ("the predicted class", "right") if self.pos_label is None else [self.pos_label] * 2
        if not k:
            ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=0)
        gap = np.average(np.abs(bins.confidence - bins.accuracy), weights=bins.n_rows)
        look: dict[str, Any] = {"color": palette[k], "marker": markers[k], "capsize": 2, "linewidth": 1}
        spread = np.abs(bins[["low", "high"]].to_numpy().T - bins.accuracy.to_numpy())
        ax.errorbar(bins.confidence, bins.accuracy, spread, label=name and f"{name}: gap {gap:.3f}", **look)
        ax.set(xlabel=f"probability of {event}", ylabel=f"share that is {right}", xlim=(0, 1.02))
        outside = int((~bins.confidence.between(bins.low, bins.high)).sum())
        return (
            f"{len(bins)} bins of the probability of {event}, the share that is {right} in each with a 95 % interval; "
            f"{outside} of these leave the diagonal. Both differ by {gap:.3f} in the mean over the rows."
        )


class WaterfallDisplay(Display):
    """Log odds of the two most probable classes for one row: Shapley values, from the class weights to the posterior.

    Parameters
    ----------
    estimator : fitted GenerativeClassifier with marginals, or a pipeline that ends in one
    X : array-like or frame of shape (1, d)
    n_features : int, default=10
        The features that matter most; the others are summed.

    Raises
    ------
    ValueError
        If X is not one row.
    """

    def __init__(self, estimator: Any, X: ArrayLike, *, n_features: int = 10) -> None:
        log_P = estimator.predict_log_proba(X)
        if len(log_P) != 1:
            raise ValueError(f"X must be one row; got {len(log_P)}")
        first, second = log_P[0].argsort()[:-3:-1]
        found = contributions(estimator, X, "shapley", "log_odds").droplevel("row")
        nats = (found.iloc[:, first] - found.iloc[:, second]).sort_values(key=lambda gains: -gains.abs(), kind="stable")
        self.classes = estimator.classes_[first], estimator.classes_[second]
        self.start = log_P[0, first] - log_P[0, second] - nats.sum()
        if others := nats.size - min(n_features, nats.size):
            nats = pd.concat([nats.iloc[:n_features], pd.Series({f"{others} others": nats.iloc[n_features:].sum()})])
        self.nats, self.names = nats.to_numpy(), [j if isinstance(j, str) else f"x{j}" for j in nats.index]

    def _draw(self, ax: Axes, name: str | None) -> str:
        ends, (first, second) = self.start + np.cumsum(self.nats), self.classes
        colours = [palette[0] if gain >= 0 else palette[1] for gain in self.nats]
        places = np.arange(len(ends))
        ax.barh(places, self.nats, left=ends - self.nats, color=colours, height=0.6)
        ax.vlines(ends[:-1], places[:-1], places[1:], color="0.4", linewidth=0.6)
        ax.axvline(0, color="0.7", linewidth=0.8, zorder=0)
        log_odds = f"log odds of {first} against {second}"
        ax.set(xlabel=f"{log_odds}, nats", yticks=places, yticklabels=self.names)
        ax.invert_yaxis()
        steps = ", ".join(f"{feature} {gain:+.2f}" for feature, gain in zip(self.names, self.nats))
        return f"Bars that lead the {log_odds} from {self.start:z.2f} to {ends[-1]:z.2f} nats: {steps}."
