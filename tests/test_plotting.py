"""`rcpkg.plotting`: the digest notices changes of the data and nothing else; importing rcpkg needs no matplotlib."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from rcpkg import QDA, RiskCalibrationCV, plotting


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_importing_rcpkg_does_not_import_matplotlib():
    code = "import sys, rcpkg; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_digest_of_a_line(ax):
    ax.plot([0, 1, 2], [1, -2, 4], label="error")
    ax.set(title="A title", xlabel="iteration")
    assert plotting.digest(ax.figure) == (
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
        digests.append(plotting.digest(figure))
        plt.close(figure)
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_digest_has_no_negative_zero_and_counts_what_is_not_finite(ax):
    ax.plot([-1e-20, -0.0, 1.0], [np.nan, np.inf, np.nan])
    text = plotting.digest(ax.figure)
    assert "-0" not in text
    assert "y n=3 (3 not finite)" in text


def test_digest_of_nothing(ax):
    ax.plot([], [])
    assert "n=0" in plotting.digest(ax.figure)


def test_decision_regions_show_the_predictions(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + np.repeat([[0, 0], [3, 1]], 20, axis=0)
    y = np.repeat(["a", "b"], 20)
    classifier = GaussianNB().fit(X, y)
    plotting.decision_regions(ax, classifier, X, y, resolution=50)
    left, right, bottom, top = ax.images[0].get_extent()
    corner = classifier.predict([[left, bottom], [right, top]])
    values = ax.images[0].get_array()
    assert [classifier.classes_[values[0, 0]], classifier.classes_[values[-1, -1]]] == list(corner)
    assert [scatter.get_label() for scatter in ax.collections] == ["a", "b"]


def shown(monkeypatch, draw):
    """What `show` displays of a figure, by mime type."""
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: bundles.append(bundle))
    figure, ax = plt.subplots()
    draw(ax)
    plotting.show(figure)
    assert not plt.fignum_exists(figure.number)
    return bundles[0]


@pytest.mark.parametrize("kind", DRAWINGS)
def test_shown_figure_is_the_same_vectors_each_time(monkeypatch, kind):
    y = np.array([0.3, -1.2, 2.7, 0.0, 1.1])
    first, second = (shown(monkeypatch, lambda ax: DRAWINGS[kind](ax, y)) for _ in range(2))
    assert first == second and set(first) == {"image/svg+xml", "text/plain"}
    assert ("<image" in first["image/svg+xml"]) == (kind in ("image",))
    assert "<text" not in first["image/svg+xml"]


@pytest.mark.parametrize("kind", ["line", "points"])
def test_dense_parts_become_bitmaps(monkeypatch, kind):
    draw = {"line": lambda ax, x: ax.plot(x, x % 7), "points": lambda ax, x: ax.scatter(x, x % 7)}[kind]
    sparse = shown(monkeypatch, lambda ax: draw(ax, np.arange(plotting.DENSE)))["image/svg+xml"]
    dense = shown(monkeypatch, lambda ax: draw(ax, np.arange(plotting.DENSE + 1)))["image/svg+xml"]
    assert "<image" not in sparse and dense.count("<image") == 1


@pytest.mark.parametrize("shape", [(5, 3), (5,)])
def test_decision_regions_need_two_features(ax, shape):
    with pytest.raises(ValueError, match="two columns"):
        plotting.decision_regions(ax, GaussianNB().fit(np.eye(2), [0, 1]), np.zeros(shape))


def test_style_is_applied_and_the_colours_are_distinct():
    with plt.rc_context():
        plotting.use_style()
        assert plt.rcParams["figure.dpi"] == plotting.STYLE["figure.dpi"]
    assert len(set(plotting.palette)) == len(set(plotting.markers)) == 8


CURVE = pd.DataFrame({"target_weight": [0.1, 1.0, 10.0], "log_loss": [0.5, 0.3, 0.3], "std_error": [0.1, 0.02, 0.03]})


def test_validation_curve_shows_losses_errors_and_the_greatest_of_the_best(ax):
    plotting.validation_curve(ax, CURVE, label="QDA")
    curve, best = ax.lines
    assert curve.get_label() == "QDA" and ax.get_xscale() == "log"
    np.testing.assert_array_equal(curve.get_xydata(), CURVE[["target_weight", "log_loss"]])
    np.testing.assert_array_equal(best.get_xydata(), [[10.0, 0.3]])
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], [0.27, 0.6])


def test_losses_of_several_magnitudes_are_on_a_logarithmic_axis(ax):
    plotting.validation_curve(ax, CURVE)
    assert ax.get_yscale() == "linear"
    plotting.validation_curve(ax, CURVE.assign(log_loss=[7000.0, 0.3, 0.3]))
    assert ax.get_yscale() == "log"


def test_validation_curve_is_of_a_fit(ax):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="greatest of target_weights"):
        fit = RiskCalibrationCV(QDA(), target_weights=[0.1, 1.0]).fit(X, y)
    plotting.validation_curve(ax, fit.cv_results_)
    assert ax.lines[1].get_xdata() == [fit.target_weight_]


def test_validation_curve_names_what_it_lacks(ax):
    with pytest.raises(ValueError, match="it has no log_loss, std_error"):
        plotting.validation_curve(ax, CURVE[["target_weight"]])
