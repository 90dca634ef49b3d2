"""The pictures that move say in the browser what `rcpkg` says, and answer to the keyboard."""

import numpy as np
import pytest
from rcbook.moving_pictures import (
    LEARNING_RATE,
    WEIGHTS,
    calibrated_clouds,
    gap_classifiers,
    hidden_features,
    leaf_and_fibre,
)

from rcpkg import CategoricalNB, GaussianNB
from rcpkg.base import log_posterior
from rcpkg.calibration import Fixed, Objective, climb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(browser, html):
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    opened.goto((html / "book/three_ideas_to_move.html").as_uri())
    opened.wait_for_selector("figure.moving svg .contour")
    yield opened
    opened.close()


def set_slider(opened, figure, label, value):
    slider = opened.locator(f"#moving-{figure} label", has_text=label).locator("input")
    slider.evaluate("(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", str(value))


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_calibration_in_the_browser_is_that_of_the_library(opened, weight):
    data = calibrated_clouds()
    X, y = np.array(data["rows"]), np.array(data["labels"])
    objective = Objective.from_estimator(GaussianNB(), X, y, target="pooled", target_weight=weight)
    ours = climb(objective, Fixed(LEARNING_RATE), max_iter=60).point
    theirs = opened.evaluate(
        "([rows, labels, weight, rate]) => movingPictures.calibrate(rows, labels, 60, weight, rate).model",
        [data["rows"], data["labels"], weight, LEARNING_RATE],
    )
    theta = ours.parameters
    for c, (prior, mean, variance) in enumerate(
        zip(np.exp(theta.log_prior), theta.mean, theta.covariance, strict=True)
    ):
        assert theirs[c]["prior"] == pytest.approx(prior, rel=1e-9)
        assert theirs[c]["mean"] == pytest.approx(mean.tolist(), rel=1e-9)
        assert theirs[c]["variance"] == pytest.approx(variance.tolist(), rel=1e-9)

    fresh, labels = np.array(data["fresh"]), np.array(data["freshLabels"])
    log_P = ours.model.predict_log_proba(fresh)
    set_slider(opened, "clouds", "weight of the target", WEIGHTS.index(weight))
    set_slider(opened, "clouds", "updates", 60)
    error, log_loss = np.mean(log_P.argmax(axis=1) != labels), -log_P[np.arange(len(labels)), labels].mean()
    said = opened.locator("#moving-clouds .said").text_content()
    assert f"{100 * error:.2f} % wrong, log-loss {log_loss:.3f}." in said


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_front_picture_ends_where_the_library_does_and_rests_where_motion_is_unwelcome(browser, html, motion):
    page = browser.new_page(reduced_motion=motion, viewport={"width": 400, "height": 600})
    page.goto((html / "book/intro.html").as_uri())
    said = page.locator("#moving-front .said")
    page.wait_for_timeout(2000)  # on a phone the picture is below the first screen, and waits there
    assert said.text_content().startswith("After 300" if motion == "reduce" else "Fitted by counting")
    data = calibrated_clouds()
    objective = Objective.from_estimator(
        GaussianNB(), np.array(data["rows"]), np.array(data["labels"]), target="pooled", target_weight=1.0
    )
    log_P = climb(objective, Fixed(LEARNING_RATE), max_iter=300).point.model.predict_log_proba(np.array(data["fresh"]))
    labels = np.array(data["freshLabels"])
    error, log_loss = np.mean(log_P.argmax(axis=1) != labels), -log_P[np.arange(len(labels)), labels].mean()
    page.locator("#moving-front svg").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('#moving-front .said').textContent.startsWith('After 300')")
    assert said.text_content() == f"After 300 updates: {100 * error:.2f} % wrong, log-loss {log_loss:.3f} on new rows."
    page.close()


def test_names_of_the_ends_are_drawn_over_the_start(opened):
    marks = opened.locator("#moving-leaf svg :is(.start, .note)")
    drawn = marks.evaluate_all("marks => marks.map(mark => mark.classList[0])")
    assert drawn == ["start", "note", "note"]


def test_a_row_can_be_added_and_taken_away(opened):
    rows = opened.locator("#moving-clouds .row")
    before = rows.count()
    opened.locator("#moving-clouds button", has_text="Add this row").press("Enter")
    assert rows.count() == before + 1
    opened.locator("#moving-clouds svg").click(position={"x": 300, "y": 200})
    assert rows.count() == before + 2
    opened.locator("#moving-clouds button", has_text="away").press("Enter")
    assert rows.count() == before


def states(copies, counts):
    """Rows of three states in copies; the second class is the mirror image of the first."""
    column = np.repeat(np.tile([0.0, 1.0, 2.0], 2), [*counts, *counts[::-1]])
    return np.tile(column[:, None], (1, copies)), np.repeat([0, 1], sum(counts))


def test_leaf_and_fibre_in_the_browser_are_those_of_the_library(opened):
    data = leaf_and_fibre() | {"updates": 20}
    X, y = states(data["copies"], data["counts"])
    start = CategoricalNB().fit(X, y, sample_weight=np.where(X[:, 0] == 1.0, 1.0, 0.3))
    objective = Objective.from_estimator(start, X, y)
    scale = len(X) / start.statistics_.count.sum()
    point = objective.evaluate(start.statistics_ * scale)
    outer = np.exp(point.parameters.log_prob[0, [0, 2]])
    theirs = opened.evaluate("([start, data]) => movingPictures.ways(start, data)", [outer.tolist(), data])
    eta = objective.family.natural_parameters(point.parameters)
    for _ in range(20):
        point = objective.evaluate(point.statistics + data["rate"] * point.gradient)
        model = objective.family.from_natural(eta)
        eta = eta + data["gradientStep"] * objective.evaluate(point.statistics, model).gradient
    ends = {"calibrated": point.parameters, "gradient": objective.family.from_natural(eta)}
    for way, theta in ends.items():
        assert theirs[way][-1] == pytest.approx(np.exp(theta.log_prob[0, [0, 2]]).tolist(), rel=1e-9)
        losses = opened.evaluate("([p, data]) => movingPictures.lossesOfStates(p, data)", [theirs[way][-1], data])
        joint = objective.family.log_joint(objective.X, theta)
        log_P = log_posterior(joint, theta.log_prior)
        rows = np.arange(len(y))
        assert losses["logLoss"] == pytest.approx(-log_P[rows, y].mean(), rel=1e-9)
        assert losses["joint"] == pytest.approx(joint[rows, y].mean(), rel=1e-9)


def test_the_start_can_be_dragged_and_moved_by_keys(opened):
    said = opened.locator("#moving-leaf .said")
    before = said.text_content()
    opened.locator("#moving-leaf label", has_text="p₀").locator("input").press("ArrowRight")
    moved = said.text_content()
    assert moved != before
    box = opened.locator("#moving-leaf svg").bounding_box()
    opened.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.7 * box["height"])
    opened.mouse.down()
    opened.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    opened.mouse.up()
    assert said.text_content() != moved


def test_hidden_features_are_answered_as_by_the_classifiers(opened):
    classifiers, X, _ = gap_classifiers()
    data = hidden_features()
    opened.locator("#moving-gaps select").select_option("2")
    hidden = [2, 3]
    for j in hidden:
        opened.locator("#moving-gaps label", has_text=f"hide {data['features'][j]}").locator("input").check()
    row = X[2].copy()
    row[hidden] = np.nan
    said = opened.locator("#moving-gaps .bars output").all_text_contents()
    for words, classifier in zip(said, classifiers.values(), strict=True):
        P = classifier.predict_proba(row[None])[0]
        assert words == ", ".join(
            f"{name} {100 * p:.0f} %" for name, p in zip(data["classes"], P.round(4), strict=True)
        )
