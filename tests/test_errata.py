"""Evidence for entries of book/errata.md on rc2024 and rc2025 that a few lines of arithmetic settle."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris

from rcpkg import QDA, InvalidStatistics, SharedVarianceGaussianNB, datasets, published
from rcpkg.experiments.studies import tables_of_rc2025

X, y = load_iris(return_X_y=True)
CLASSES = [X[y == h] for h in range(3)]


def test_rule_of_qda_lacks_minus_one_half():
    """rc2024 §II-C, rc2025 §3.1: exp{q} with q the squared distance is printed, exp{-q/2} is meant (error 0.020)."""
    means = [rows.mean(axis=0) for rows in CLASSES]
    covariances = [np.cov(rows.T, bias=True) for rows in CLASSES]
    distance = np.array(
        [np.sum((X - m) * np.linalg.solve(c, (X - m).T).T, axis=1) for m, c in zip(means, covariances)]
    ).T
    log_det = np.array([np.linalg.slogdet(c)[1] for c in covariances])
    meant = (-0.5 * log_det - 0.5 * distance).argmax(axis=1)
    printed = (-0.5 * log_det + distance).argmax(axis=1)
    assert np.array_equal(meant, QDA().fit(X, y).predict(X)) and np.mean(meant != y) == pytest.approx(0.02)
    assert np.mean(printed != y) > 0.5


def test_weights_of_the_closed_form_logistic_regression():
    """rc2024 eq. (7): theta = mu/sigma² without a logarithm, and c = Σ mu²/(2 sigma²), whose half is missing."""
    model = SharedVarianceGaussianNB().fit(X, y)
    means = np.array([rows.mean(axis=0) for rows in CLASSES])
    variance = (X**2).mean(axis=0) - (means**2).mean(axis=0)
    linear = X @ (means / variance).T
    posterior = model.predict_proba(X)
    np.testing.assert_allclose(softmax(linear - (means**2 / variance).sum(axis=1) / 2, axis=1), posterior, atol=1e-9)
    as_printed = softmax(X @ (np.log(means) / variance).T - (means**2 / variance).sum(axis=1), axis=1)
    assert np.abs(as_printed - posterior).max() > 0.5
    without_half = softmax(linear - (means**2 / variance).sum(axis=1), axis=1)
    assert np.abs(without_half - posterior).max() > 0.5


def test_toy_density_lacks_one_half():
    """rc2025 §4.1: the printed posterior (0.65, 0.35) at x = 1 follows with the half in the exponent only."""
    squared = np.array([1.0 - 0.0, 1.0 - 2.5]) ** 2
    np.testing.assert_allclose(softmax(-squared / 2), [0.65, 0.35], atol=0.005)
    assert softmax(-squared)[0] == pytest.approx(0.78, abs=0.005)


def test_toy_update_has_the_learning_rate_in_it():
    """rc2025 §4.1: s + s(X, Y) - s(X, h) is printed; the printed statistics follow with the learning rate 1/2."""
    points, labels = np.array([0.0, 1.0, 4.0]), np.array([[1, 0], [0, 1], [0, 1]])
    P = softmax(-((points[:, None] - [0.0, 2.5]) ** 2) / 2, axis=1)

    def statistics(W):
        return np.concatenate([[W[:, h].sum(), W[:, h] @ points] for h in range(2)])

    start, change = statistics(labels), statistics(labels - P)
    np.testing.assert_allclose(start + 0.5 * change, [0.69, -0.33, 2.31, 5.33], atol=0.0051)
    assert np.abs(start + change - [0.69, -0.33, 2.31, 5.33]).max() > 0.25


def test_first_number_of_the_toy_table():
    """rc2025 Table 1: 0.95 is printed for the initial model at (0, 1); it is 0.96."""
    first = next(cell for cell in tables_of_rc2025.cells("1") if cell.key == "0,1/RC/0")
    assert round(tables_of_rc2025.rc2025_toy(first, 0)[0].value, 2) == 0.96
    printed = published.table("rc2025", "1")
    assert printed.value_printed[(printed.row == "0,1") & (printed.setting_value == "0")].item() == "0.95"


@pytest.mark.needs_data
@pytest.mark.parametrize(
    "name, variant", [("blood_transfusion", "rc2024"), ("redwine", "rc2024"), ("optdigits", "rc2025")]
)
def test_qda_by_maximum_likelihood_does_not_exist(name, variant):
    """rc2024 Table IV, rc2025 Table 5 print errors of QDA where some class has a singular covariance matrix."""
    bunch = datasets.load(name, variant)
    scaled = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    ranks = [np.linalg.matrix_rank(np.cov(scaled[bunch.target == h].T)) for h in bunch.target_names]
    assert min(ranks) < bunch.data.shape[1]
    with pytest.raises(InvalidStatistics):
        QDA(singular_ridge=0.0).fit(scaled, bunch.target)


@pytest.mark.needs_data
def test_one_column_of_blood_transfusion_is_a_multiple_of_another():
    data = datasets.load("blood_transfusion", "rc2024").data
    np.testing.assert_array_equal(data[:, 2], 250 * data[:, 1])
