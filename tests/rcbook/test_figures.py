"""`rcbook.figures`: the digest notices changes of the data and nothing else; a figure is the same vectors each time."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.text import Text
from model_cases import refused, slow
from rcbook import figures


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


def luminance(colour):
    light = np.array([v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour])
    return light @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("colour", sorted({colour for colour, _ in figures.METHODS.values()} | {"#FFFFFF"}))
def test_ink_can_be_read_on_white_and_keeps_hue(colour):
    ink = figures.ink(colour)
    assert 1.05 / (luminance(ink) + 0.05) > 4.45
    given, shown = (rgb_to_hsv(to_rgb(c)) for c in (colour, ink))
    assert shown[2] <= given[2] + 1e-9
    assert np.isclose(given[0], shown[0], atol=0.03)


def test_labels_stand_beside_the_ends_in_the_colours_of_the_lines(ax):
    for level, name in ((1, "low"), (3, "high")):
        ax.plot([0, 1], [0, level], label=name)
    ax.plot([0, 1], [2, 2])
    ax.set(ylim=(0, 4))
    figures.label_lines(ax)
    assert {text.get_text(): text.xy[1] for text in ax.texts} == {"low": 1, "high": 3}
    assert all(text.arrow_patch is None for text in ax.texts)
    for line, name in zip(ax.lines, ("low", "high")):
        (text,) = (text for text in ax.texts if text.get_text() == name)
        assert text.get_color() == figures.ink(line.get_color())


@pytest.mark.parametrize("ends", [[1.0, 1.0, 1.0, 1.0], [0.98, 1.0, 1.01, 3.0], [0.5, 0.5, 2.0, 2.02]])
def test_labels_of_ends_that_meet_do_not_overlap_and_keep_their_order(ends):
    with plt.rc_context(figures.STYLE):
        figure, ax = plt.subplots()
        for name, end in zip(("a", "two\nlines", "c", "d"), ends):
            ax.plot([0, 1], [0, end], label=name)
        figures.label_lines(ax)
        figure.draw_without_rendering()
        boxes = [Text.get_window_extent(text) for text in sorted(ax.texts, key=lambda text: text.xy[1])]
        page = figure.bbox
        plt.close(figure)
    for below, above in itertools.pairwise(boxes):
        assert below.y1 <= above.y0 + 1e-6
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: ax.scatter([0, 1], [0, 1], color="tab:red", label="cloud"),
        lambda ax: ax.errorbar([0, 1], [0, 1], 0.1, color="tab:red", label="cloud"),
        lambda ax: ax.fill_between([0, 1], [0, 1], color="tab:red", label="cloud"),
    ],
)
def test_a_label_stands_where_it_is_placed(ax, draw):
    draw(ax)
    figures.label_lines(ax, {"cloud": (0.2, 0.8, "right")})
    (text,) = ax.texts
    assert (text.get_position(), text.get_ha()) == ((0.2, 0.8), "right")
    assert text.get_color() == figures.ink("tab:red")


def test_a_line_that_leaves_the_picture_is_labelled_where_it_was_last_seen(ax):
    ax.plot([0, 1, 2, 3], [0, 1, 5, 9], label="steep")
    ax.set(ylim=(0, 4))
    figures.label_lines(ax)
    assert tuple(ax.texts[0].xy) == (1, 1)


def test_a_place_for_no_label_is_refused(ax):
    ax.plot([0, 1], label="a line")
    refused("places must name labels of ax, a line; got another", figures.label_lines, ax, {"another": (0, 0, "left")})
