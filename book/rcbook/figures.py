"""One look for all figures of the book, and the numbers behind them as text."""

import warnings
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer, Container
from matplotlib.figure import Figure
from pandas import DataFrame
from scipy.stats import rankdata, studentized_range
from sklearn.isotonic import isotonic_regression

from rcpkg.plotting import palette

__all__ = [
    "METHODS",
    "OUTCOMES",
    "STYLE",
    "digest",
    "ink",
    "label_lines",
    "look",
    "rank_diagram",
    "show",
    "tally",
    "use_style",
]

PRINT_DPI = 300  # of the parts of a figure that are not drawn as vectors
DENSE = 1_000  # points or vertices; a part with more becomes a bitmap, which is smaller and faster to show
CONTRAST = 4.5  # of text on white, what the guidelines for accessible pages (WCAG 2, 1.4.3) ask at least

STYLE: dict[str, Any] = {
    "axes.prop_cycle": plt.cycler(color=palette),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "figure.figsize": (6.4, 3.6),
    "font.size": 10,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "image.cmap": "cividis",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "rcpkg",
}
"""The rcParams of every figure of the book; ``with plt.rc_context(STYLE)`` applies them for a while."""


METHODS: dict[str, tuple[str, str]] = {
    "closed form": ("#7F7F7F", "o"),
    "published": ("#D55E00", "s"),
    "safe": ("#56B4E9", "^"),
    "target": ("#0072B2", "D"),
    "nested target": ("#D55E00", "s"),
    "generative target": ("#CC79A7", "o"),
    "chosen weight": ("#CC79A7", "P"),
    "rescaled": ("#E69F00", "v"),
    "gradient": ("#E69F00", "<"),
    "logistic regression": ("#009E73", "X"),
    "boosting": ("#000000", "*"),
    "random forest": ("#CC79A7", "h"),
    "nearest neighbours": ("#56B4E9", "P"),
    "support vectors": ("#000000", "8"),
    "TM": ("#CC79A7", "v"),
    "extended Baum-Welch": ("#0072B2", "o"),
    "L-BFGS": ("#000000", "d"),
    "WANBIA-C": ("#0072B2", "s"),
    "vote": ("#D55E00", "o"),
    "smoothed vote": ("#0072B2", "P"),
    "Bayesian QDA": ("#0072B2", "o"),
    "noninformative prior": ("#D55E00", "s"),
    "nearest means": ("#009E73", "^"),
    "pinv": ("#0072B2", "s"),
    "local BDA": ("#CC79A7", "D"),
    "trace seed": ("#E69F00", "v"),
    "neighbourhood seed": ("#56B4E9", "P"),
}
"""Colour and marker of each method, the same in all chapters: calibration with safe steps is "safe" without a target
and "target" with a pooled one; naive Bayes and QDA as they are fitted are "closed form"; the vote is that of k-NN,
and local nearest means look as nearest means do. Methods that share a colour are never in one picture."""


OUTCOMES = {"better": ("#0072B2", "white"), "level": ("#DDDDDD", "black"), "worse": ("#D55E00", "white")}
"""Colours of a bar and of the number in it, by how a comparison ends."""


def look(method: str) -> dict[str, str]:
    """Colour and marker of a method of `METHODS`, as keywords of ``plot`` and ``errorbar``."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    colour, marker = METHODS[method]
    return {"color": colour, "marker": marker}


def ink(colour: Any) -> tuple[float, ...]:
    """A colour for text on white: the given one, darkened without change of hue where it is too light to be read."""
    light = ((np.array(to_rgb(colour)) + 0.055) / 1.055) ** 2.4
    luminance = light @ [0.2126, 0.7152, 0.0722]
    light *= min(1.0, (1.05 / CONTRAST - 0.05) / luminance)
    return tuple((1.055 * light ** (1 / 2.4) - 0.055).clip(0, 1).tolist())


def label_lines(ax: Axes, places: Mapping[str, tuple[float, float, str]] | None = None) -> None:
    """Write the label of each line or cloud of an axes beside it, in its colour, in place of a legend.

    Parameters
    ----------
    ax : Axes
        Finished except for the labels: its limits and its height decide which of them would overlap.
    places : mapping of str to (float, float, str), optional
        Of a label, the point in data coordinates where its text stands, centred in height, and which side of the text
        is there: "left", "center" or "right". A label without a place stands to the right of the last point in view.
        Texts that would overlap there are moved apart, as little as possible, and lines lead from them to the points.
    """
    places = {} if places is None else places
    labelled = {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if unknown := places.keys() - labelled.keys():
        raise ValueError(f"places must name labels of ax, {', '.join(labelled)}; got {', '.join(sorted(unknown))}")
    for name, (x, y, side) in places.items():
        ax.text(x, y, name, color=ink(_colour(labelled[name])), ha=side, va="center")
    ends = {name: _last_in_view(ax, handle) for name, handle in labelled.items() if name not in places}
    if not ends:
        return
    ax.figure.draw_without_rendering()  # the layout decides how many points the axes is high
    points_per_pixel = 72 / ax.figure.dpi
    names = sorted(ends, key=lambda name: ax.transData.transform(ends[name])[1])
    height = np.array([ax.transData.transform(ends[name])[1] for name in names]) * points_per_pixel
    room = np.array([1.2 * plt.rcParams["font.size"] * (name.count("\n") + 1) for name in names])
    least = np.concatenate([[0.0], np.cumsum((room[1:] + room[:-1]) / 2)])
    shift = isotonic_regression(height - least) + least - height
    moved = np.abs(shift) > 1
    for name, up in zip(names, shift):
        colour = ink(_colour(labelled[name]))
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
        ax.annotate(
            name,
            ends[name],
            (18 if moved.any() else 6, up),
            textcoords="offset points",
            color=colour,
            va="center",
            arrowprops=leader if moved.any() else None,
        )


def _colour(handle: Any) -> Any:
    """The colour of a line, of an error bar or of a cloud of points."""
    drawn = handle[0] if isinstance(handle, Container) else handle
    return drawn.get_facecolor()[0] if isinstance(drawn, Collection) else drawn.get_color()


def _last_in_view(ax: Axes, handle: Any) -> np.ndarray:
    """The last point of a line, an error bar or a cloud that lies within the limits of its axes."""
    drawn = handle[0] if isinstance(handle, Container) else handle
    points = np.asarray(drawn.get_offsets() if isinstance(drawn, Collection) else drawn.get_xydata(), float)
    (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    x, y = points.T
    inside = (left <= x) & (x <= right) & (bottom <= y) & (y <= top)
    return points[inside][-1]


def tally(ax: Axes, counts: DataFrame) -> None:
    """Bars on ``ax``: the shares of better, level and worse, one bar a row of ``counts``, which are written in them.

    ``counts`` has the columns better, level and worse, and may have a column starred, of which the true entries become
    a star at the end of a bar. Rows go downwards.
    """
    shares = counts[list(OUTCOMES)].div(counts[list(OUTCOMES)].sum(axis=1), axis=0)
    rows, left = np.arange(len(counts))[::-1], np.zeros(len(counts))
    for outcome, (fill, ink) in OUTCOMES.items():
        ax.barh(rows, shares[outcome], left=left, color=fill, height=0.75, label=outcome)
        for row, start, share, count in zip(rows, left, shares[outcome], counts[outcome], strict=True):
            if count:
                ax.text(start + share / 2, row, f"{count}", ha="center", va="center", color=ink, fontsize=9)
        left = left + shares[outcome]
    if "starred" in counts:
        for row, starred in zip(rows, counts["starred"], strict=True):
            ax.text(1.01, row, "*" if starred else "", va="center")
    ax.set(yticks=rows, yticklabels=counts.index, xticks=[], xlim=(0, 1.04))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def use_style() -> None:
    """Apply `STYLE` to all figures that follow; a chapter calls it once.

    A page prints where calibration does worse than the closed form; the sentence of the library on it stays out. Also
    kept out is the warning of matplotlib 3.8, which live cells have, about contours that it draws as vectors.
    """
    plt.rcParams.update(STYLE)
    warnings.filterwarnings("ignore", "rows left out")
    warnings.filterwarnings("ignore", "Rasterization of .*QuadContourSet")


def show(figure: Figure) -> None:
    """Show a figure in a notebook as vector graphics and close it; the same figure gives the same bytes.

    Images, and artists of more than `DENSE` points or vertices, are drawn at `PRINT_DPI`, all else as vectors, text as
    outlines, so that a reader needs no font.
    """
    from IPython.display import display  # a notebook has it; whoever only draws with this module need not

    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections):
            if _size(artist) > DENSE:
                artist.set_rasterized(True)
    drawing = StringIO()
    figure.set_dpi(PRINT_DPI)
    with plt.rc_context(STYLE):  # not by savefig, which draws once more for the layout alone
        FigureCanvasSVG(figure).print_svg(drawing, metadata={"Date": None})
    plt.close(figure)
    vectors = " ".join(map(str.strip, drawing.getvalue().splitlines()))  # in one line, a third smaller in a notebook
    display({"image/svg+xml": vectors, "text/plain": str(figure)}, raw=True)


def _size(artist: Artist) -> int:
    """How many points or vertices a line or a collection has."""
    if isinstance(artist, Collection):
        return max(len(artist.get_offsets()), sum(len(path.vertices) for path in artist.get_paths()))
    return len(artist.get_xdata())


def digest(figure: Figure, digits: int = 4) -> str:
    r"""The data that a figure shows, as text: for each artist its label and, for each coordinate, a few numbers.

    They are size, range, mean, root mean square and tilt, the mean of :math:`t_i v_i` with :math:`t` rising evenly
    from -1 to 1, which notices a change of order. Printed below a figure, the digest lets a comparison of text
    outputs notice a changed picture. All numbers of one coordinate are rounded to the same decimal, `digits`
    significant digits of the largest, so that noise in the last bits and the sign of zero never show.
    """
    lines = []
    for number, ax in enumerate(figure.axes, start=1):
        titles = [part for part in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) if part]
        lines.append(f"axes {number}: " + " | ".join(titles) if titles else f"axes {number}")
        lines.extend(
            f"  {kind} {label!r}: " + "; ".join(_summary(name, v, digits) for name, v in data.items())
            for kind, label, data in _artists(ax)
        )
    return "\n".join(lines)


def _artists(ax: Axes) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """Kind, label and coordinates of whatever shows data in an axes."""
    in_bars: set[Artist] = set()
    for container in ax.containers:
        if isinstance(container, BarContainer):
            in_bars.update(container.patches)
            boxes = np.array([patch.get_bbox().extents for patch in container.patches]).reshape(-1, 4)
            yield "bars", _label(container), dict(zip(("left", "bottom", "right", "top"), boxes.T))
    for line in ax.lines:
        x, y = line.get_data(orig=False)
        yield "line", _label(line), {"x": np.asarray(x, float), "y": np.asarray(y, float)}
    for collection in ax.collections:
        yield _kind(collection), _label(collection), _coordinates(collection)
    for image in ax.images:
        yield "image", _label(image), {"value": np.ma.getdata(image.get_array()).astype(float)}
    patches = [patch for patch in ax.patches if patch not in in_bars]
    if patches:
        outlines = [patch.get_patch_transform().transform(patch.get_path().vertices) for patch in patches]
        vertices = np.concatenate(outlines)
        yield "patches", "", {"x": vertices[:, 0], "y": vertices[:, 1]}


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _kind(collection: Collection) -> str:
    for kind, name in ((PathCollection, "points"), (LineCollection, "segments"), (PolyCollection, "area")):
        if isinstance(collection, kind):
            return name
    return type(collection).__name__


def _coordinates(collection: Collection) -> dict[str, np.ndarray]:
    if isinstance(collection, PathCollection):
        points = np.ma.getdata(collection.get_offsets())
    else:
        vertices = [path.vertices for path in collection.get_paths()]
        points = np.concatenate(vertices) if vertices else np.empty((0, 2))
    data = {"x": points[:, 0], "y": points[:, 1]}
    values = collection.get_array()
    if values is not None:
        data["value"] = np.ma.getdata(values).astype(float)
    return data


def _summary(name: str, values: np.ndarray, digits: int) -> str:
    values = np.ravel(values)
    finite = values[np.isfinite(values)]
    missing = values.size - finite.size
    count = f"{name} n={values.size}" + (f" ({missing} not finite)" if missing else "")
    if not finite.size:
        return count
    scale = np.abs(finite).max()
    decimals = digits - 1 - int(np.floor(np.log10(scale))) if scale > 0 else 0
    tilt = np.mean(np.linspace(-1, 1, finite.size) * finite)
    numbers = (finite.min(), finite.max(), finite.mean(), np.sqrt(np.mean(finite**2)), tilt)
    low, high, mean, rms, tilt = (f"{np.round(number, decimals) + 0.0:.{digits + 2}g}" for number in numbers)
    return f"{count} in [{low}, {high}] mean {mean} rms {rms} tilt {tilt}"


def rank_diagram(ax: Axes, scores: DataFrame, color: str, level: float = 0.05) -> None:
    """Mean ranks over data sets, the best on the left; a bar joins learners that Nemenyi's test does not tell apart.

    With k learners on n sets two mean ranks differ if their distance exceeds q sqrt(k(k + 1)/(12n)), where q is the
    quantile of the studentized range of k (Demšar 2006, section 3.2.2).

    Parameters
    ----------
    ax : Axes
        Where to draw.
    scores : DataFrame
        A row for each data set, a column for each learner; lower is better.
    color : str
        Of the bars.
    level : float
        Of the test.
    """
    n, k = scores.shape
    means = DataFrame(rankdata(scores, axis=1), columns=scores.columns).mean().sort_values()
    ranks = means.to_numpy()
    apart = studentized_range.isf(level, k, np.inf) * np.sqrt(k * (k + 1) / (12 * n))
    ends = np.searchsorted(ranks, ranks + apart, side="right")
    bars = [(i, end) for i, end in enumerate(ends) if end > i + 1 and (i == 0 or end > ends[i - 1])]
    below: list[float] = []  # of each line of bars, where its last one ends
    for start, end in bars:
        line = next((line for line, last in enumerate(below) if last < ranks[start]), len(below))
        below[line : line + 1] = [ranks[end - 1]]
        ax.plot(ranks[start:end], [-line - 1] * (end - start), color=color, linewidth=3, zorder=3)

    half = (k + 1) // 2
    left = [(rank, ranks[0] - 0.2, f"{name}  {rank:.1f} ", "right") for name, rank in means[:half].items()]
    right = [(rank, ranks[-1] + 0.2, f" {rank:.1f}  {name}", "left") for name, rank in means[half:][::-1].items()]
    for side in (left, right):
        for row, (rank, edge, text, align) in enumerate(side):
            y = -len(below) - 1 - row
            ax.plot([edge, rank, rank], [y, y, 0], color="0.2")
            ax.scatter(rank, 0, color="0.2", zorder=3)
            ax.text(edge, y, text, color="0.2", va="center", ha=align)
    for drawn in sorted(ax.lines, key=lambda drawn: drawn.get_xydata().ravel().tolist()):  # best first, bars among them
        drawn.remove()
        ax.add_line(drawn)
    ax.yaxis.set_visible(False)
    ax.spines[["right", "left", "bottom"]].set_visible(False)
    ax.spines["top"].set_visible(True)
    ax.xaxis.set_ticks_position("top")
    ax.spines["top"].set_position("zero")
