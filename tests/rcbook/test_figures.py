"""`rcbook.figures`: the digest notices changes of the data and nothing else; a figure is the same vectors each time."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from model_cases import slow
from rcbook import figures


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_digest_of_a_line(ax):
    ax.plot([0, 1, 2], [1, -2, 4], label="error")
    ax.set(title="A title", xlabel="iteration")
    assert figures.digest(ax.figure) == (
        "axes 1: A title | iteration\n"
        "  line 'error': x n=3 in [0, 2] mean 1 rms 1.291 tilt 0.667; "
        "y n=3 in [-2, 4] mean 1 rms 2.646 tilt 1"
    )


DRAWINGS = {
    "line": lambda ax, y: ax.plot(y),
    "points": lambda ax, y: ax.scatter(np.arange(5), y),
    "coloured points": lambda ax, y: ax.scatter(np.arange(5), np.arange(5), c=y),
    "bars": lambda ax, y: ax.bar(np.arange(5), y),
    "stacked bars": lambda ax, y: ax.barh(np.arange(5), y, left=2),
    "histogram": lambda ax, y: ax.hist(y, bins=np.linspace(-4, 4, 30)),
    "error bars": lambda ax, y: ax.errorbar(np.arange(5), np.zeros(5), yerr=np.abs(y)),
    "area": lambda ax, y: ax.fill_between(np.arange(5), y),
    "image": lambda ax, y: ax.imshow(np.outer(y, y)),
    "mesh": lambda ax, y: ax.pcolormesh(np.outer(y, y)),
    "contour": lambda ax, y: ax.contour(np.outer(y, np.arange(1, 6)), levels=[0.5, 1.0]),
    "segments": lambda ax, y: ax.vlines(np.arange(5), 0, y),
    "outlined histogram": lambda ax, y: ax.hist(y, bins=np.linspace(-4, 4, 30), histtype="step"),
}


@pytest.mark.parametrize("kind", DRAWINGS)
def test_digest_notices_a_change_and_ignores_rounding_noise(kind):
    y = np.array([0.3, -1.2, 2.7, 0.0, 1.1])
    changed = y.copy()
    changed[2] += 0.3
    digests = []
    for values in (y, y * (1 + 1e-13), changed):
        figure, ax = plt.subplots()
        DRAWINGS[kind](ax, values)
        digests.append(figures.digest(figure))
        plt.close(figure)
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_digest_has_no_negative_zero_and_counts_what_is_not_finite(ax):
    ax.plot([-1e-20, -0.0, 1.0], [np.nan, np.inf, np.nan])
    text = figures.digest(ax.figure)
    assert "-0" not in text
    assert "y n=3 (3 not finite)" in text


def shown(monkeypatch, draw):
    """What `show` displays of a figure, by mime type."""
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: bundles.append(bundle))
    figure, ax = plt.subplots()
    draw(ax)
    figures.show(figure)
    assert not plt.fignum_exists(figure.number)
    return bundles[0]


@pytest.mark.parametrize("kind", ["points", "image", "contour", *slow(*list(DRAWINGS)[5:8])])
def test_shown_figure_is_the_same_vectors_each_time(monkeypatch, kind):
    y = np.array([0.3, -1.2, 2.7, 0.0, 1.1])
    first, second = (shown(monkeypatch, lambda ax: DRAWINGS[kind](ax, y)) for _ in range(2))
    assert first == second and set(first) == {"image/svg+xml", "text/plain"}
    assert ("<image" in first["image/svg+xml"]) == (kind in ("image",))
    assert "<text" not in first["image/svg+xml"]


@pytest.mark.parametrize("kind", ["line", "points"])
def test_dense_parts_become_bitmaps(monkeypatch, kind):
    draw = {"line": lambda ax, x: ax.plot(x, x % 7), "points": lambda ax, x: ax.scatter(x, x % 7)}[kind]
    sparse = shown(monkeypatch, lambda ax: draw(ax, np.arange(figures.DENSE)))["image/svg+xml"]
    dense = shown(monkeypatch, lambda ax: draw(ax, np.arange(figures.DENSE + 1)))["image/svg+xml"]
    assert "<image" not in sparse and dense.count("<image") == 1
