"""The simulated problems of thesis2007 sections 4.5 and 5.6: each printed formula."""

import numpy as np
import pytest
from model_cases import refused
from numpy.testing import assert_allclose
from rcbook.simulation import chapter5_problem


def eigenvalues(d):
    return np.array([(9 * (i - 1) / (d - 1) + 1) ** 2 for i in range(1, d + 1)])


@pytest.mark.parametrize("d", [6, 10])
def test_section_5_6_and_5_14(d):
    e, i = eigenvalues(d), np.arange(1, d + 1)  # (5.14)
    flip = np.where(i % 2 == 1, -1, 1)
    for case, last, scales in ((1, 3, (1, 1, 1)), (2, 4, (1, 2, 3))):
        problem = chapter5_problem(case, d)
        assert_allclose(problem.means, [np.zeros(d), np.r_[3, np.zeros(d - 1)], np.r_[np.zeros(d - 1), last]])
        assert_allclose(problem.covariances, [np.eye(d) * s for s in scales])
    for case, factor in ((3, d - i), (4, i - 1)):
        problem = chapter5_problem(case, d)
        mean = 2.5 * np.sqrt(e / d) * factor / (d / 2 - 1)
        assert_allclose(problem.means, [np.zeros(d), mean, flip * mean])
        assert_allclose(problem.covariances, [np.diag(e)] * 3)
    for case, mean in ((5, 0.0), (6, 14 / np.sqrt(d))):
        problem = chapter5_problem(case, d)
        assert_allclose(problem.means, [np.zeros(d), np.full(d, mean), flip * mean])
        third = (9 * (i - (d - 1) / 2) / (d - 1)) ** 2
        assert_allclose(problem.covariances, [np.diag(e), np.diag(e[::-1]), np.diag(third)])
    for case in (7, 8, 9, 10):
        problem = chapter5_problem(case, d, random_state=3)
        assert_allclose(problem.covariances, problem.covariances.swapaxes(1, 2))
        assert (problem.means == 0).all() == (case in (7, 9))
    assert_allclose(
        chapter5_problem(9, d, random_state=3).covariances,
        np.stack([C @ C for C in chapter5_problem(7, d, random_state=3).covariances]),
    )


def test_the_printed_covariance_of_cases_9_and_10_is_not_symmetric():
    R = np.random.default_rng(0).uniform(size=(4, 4))
    printed = R @ R.T @ R.T @ R
    assert np.abs(printed - printed.T).max() > 0.1
    assert_allclose(R.T @ R @ R.T @ R, (R.T @ R @ R.T @ R).T)


def test_the_third_class_of_cases_5_and_6_is_degenerate_in_odd_dimension():
    assert np.linalg.eigvalsh(chapter5_problem(5, 7).covariances[2])[0] == 0
    X, y = chapter5_problem(6, 7).sample(200, 0)
    assert np.ptp(X[y == 2][:, 2]) == 0
    refused("singular", chapter5_problem(5, 7).log_density, X)
    assert np.linalg.eigvalsh(chapter5_problem(5, 6).covariances[2])[0] > 0
