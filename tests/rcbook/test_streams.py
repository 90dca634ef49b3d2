"""Weighted naive Bayes of a stream: single steps, counts, pieces, and what is refused."""

import numpy as np
from model_cases import categorical_rows
from numpy.testing import assert_allclose
from rcbook.streams import Steps, StreamedWANBIAC, stochastic_pass

from rcpkg import CategoricalNB

X, y = categorical_rows()


def test_a_step_is_the_gradient_of_a_row():
    nb = CategoricalNB(prior_strength=1.0).fit(X, y)
    scale = np.vstack([nb.parameters_.log_prior, nb.parameters_.log_prob.T])
    columns = np.array([[0, 1, 3, 6]])
    W = np.ones(scale.shape)
    P = stochastic_pass(columns, y[:1], W, scale, Steps(0.3, decay=0.5), done=4)
    scores = scale[columns[0]].sum(axis=0)
    assert_allclose(P[0], np.exp(scores) / np.exp(scores).sum())
    expected = np.ones(scale.shape)
    expected[columns[0]] += 0.3 / (1 + 0.5 * 4) * (np.eye(3)[y[0]] - P[0]) * scale[columns[0]]
    assert_allclose(W, expected)


def test_a_stream_may_come_in_pieces_of_any_size():
    """With the states known from the start and no penalty, the pieces do not matter."""
    first = np.array([[a, b % 3, b] for a in range(2) for b in range(5)], float)
    whole = StreamedWANBIAC(penalty=0.0).partial_fit(first, np.arange(10) % 3, classes=[0, 1, 2])
    pieces = StreamedWANBIAC(penalty=0.0).partial_fit(first, np.arange(10) % 3, classes=[0, 1, 2])
    whole.partial_fit(X, y)
    for i in range(0, len(X), 7):
        pieces.partial_fit(X[i : i + 7], y[i : i + 7])
    assert_allclose(pieces.weights_.ravel(), whole.weights_.ravel())
