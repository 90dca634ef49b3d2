"""Cholesky factors through correlation matrices: features of any scale, and matrices on the edge of singular."""

import numpy as np
import pytest

from rcpkg.linalg import cholesky, correlations, is_definite, jittered_cholesky


def covariance(d: int = 5, seed: int = 0, scales: object = 1.0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(3 * d, d)) * scales
    return A.T @ A


def test_a_factor_solves_and_whitens():
    A, B = covariance(), np.random.default_rng(1).normal(size=(5, 3))
    factor = cholesky(A)
    np.testing.assert_allclose(factor.lower @ factor.lower.T, A, rtol=1e-13)
    np.testing.assert_allclose(A @ factor.solve(B), B, atol=1e-12)
    np.testing.assert_allclose(factor.lower @ factor.whiten(B), B, atol=1e-12)
    np.testing.assert_allclose(factor.log_det, np.linalg.slogdet(A)[1], rtol=1e-13)
    np.testing.assert_allclose(jittered_cholesky(A).lower, factor.lower, rtol=1e-14)


def test_scales_cost_no_digits():
    """Pivots are those of the correlation matrix; the solution for rescaled features is the rescaled solution."""
    scales = 10.0 ** np.array([-9, 0, 3, 8, -2])
    plain, scaled = cholesky(covariance()), cholesky(covariance(scales=scales))
    np.testing.assert_allclose(scaled.pivot, plain.pivot, rtol=1e-12)
    solution = scaled.solve(scales[:, None]) * scales[:, None]
    np.testing.assert_allclose(solution, plain.solve(np.ones((5, 1))), rtol=1e-10)
    assert is_definite(covariance(scales=scales)) and scaled.weakest == plain.weakest


@pytest.mark.parametrize(("j", "column"), [(3, [1.0, 2.0, 0.0]), (0, [0.0, 0.0, 0.0])], ids=["dependent", "constant"])
def test_a_singular_matrix_is_seen_and_names_its_feature(j, column):
    rows = np.random.default_rng(0).normal(size=(20, 4))
    rows[:, j] = rows[:, [k for k in range(4) if k != j]] @ column
    A = rows.T @ rows
    factor = cholesky(A)
    assert factor.pivot < 1e-14 and factor.weakest == j and not is_definite(A)
    jittered = jittered_cholesky(A)
    share = np.abs(jittered.lower @ jittered.lower.T - A)[np.ix_(*[[k for k in range(4) if k != j]] * 2)]
    assert jittered.pivot > 0 and share.max() < 1e-10 * A.max()


def test_stacks_are_scaled_one_by_one():
    stack = np.stack([covariance(seed=0), np.diag([1.0, 0.0, 4.0, 1.0, 1.0]), -np.eye(5)])
    R, scale = correlations(stack)
    assert is_definite(stack).tolist() == [True, False, False]
    np.testing.assert_allclose(scale[1], [1, 1, 2, 1, 1])
    np.testing.assert_allclose(R[1], np.diag([1.0, 0.0, 1.0, 1.0, 1.0]))


def test_what_no_share_of_the_diagonal_mends_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), jitter=(0.0, 1e-9))
