"""The test whether to calibrate: the covariance in its statistic, and what it finds on the clouds (chapter 12; ours).

``choices-of-the-covariance``: the power of LDA's test on 60 samples of 50 rows, with 19 draws each, if J is the
covariance of the statistics that classes do not share, and of all, on the same samples and draws.
``tests-on-the-clouds``: `calibration_test` with 99 draws on twenty draws of the clouds of each size. The chapter
computed both whenever it ran before they were stored, so no hypothesis stands before the run.
"""

import numpy as np

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcbook.experiments.studies.size_of_the_test import normals
from rcbook.simulation import clouds
from rcbook.small_families import softmax_rows
from rcpkg import LDA, GaussianNB, calibration_test
from rcpkg.base import Array
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.score_test import Null, null_of, score_statistic

CHOICES_STUDY, CLOUDS_STUDY = "choices-of-the-covariance", "tests-on-the-clouds"
SAMPLES, DRAWS, ROWS = 60, 19, 50
CASES = {
    "right": normals(1.0),
    "right, classes far apart": normals(3.0),
    "width, c = 2": normals(1.0, wide=2.0),
    "width, c = 2, far apart": normals(3.0, wide=2.0),
}


def vectors(form: MinimalForm) -> Array:
    """s(x_i, y) as vectors, shape (n, r, p)."""
    one = np.eye(form.r)[None, :, :, None] * form.features[:, None, None]
    own = one.reshape(len(form.features), form.r, -1)
    shared = form.shared_features[:, None].repeat(form.r, axis=1)
    return np.concatenate([own, shared], axis=2)


def of_both_covariances(null: Null, X: Array) -> tuple[float, float]:
    """T with the covariance of the statistics that classes do not share, and with the covariance of all."""
    model, Y = null.model, np.eye(2)[null.y]
    encoded = model.encode(X)
    s = model.statistics(encoded, Y)
    P, form = softmax_rows(model.log_joint(encoded, model.parameters(s))), MinimalForm(model, encoded, s)
    S = vectors(form)
    seen = S[np.arange(len(X)), null.y]
    g = np.sum(seen - np.einsum("iy,iyk->ik", P, S), axis=0)
    H = form.conditional_curvature(P, np.ones(len(X))) + np.cov(seen.T, bias=True)
    return score_statistic(form, P, Y), g @ np.linalg.lstsq(H, g, rcond=1e-12)[0]


def choices(cell: Cell, seed: int) -> list[Row]:
    """Of each sample of a case the p-values by both statistics."""
    rng, found = np.random.RandomState(915), []
    for sample in range(SAMPLES):
        null = null_of(LDA(), *CASES[cell.row](ROWS, rng))
        given = of_both_covariances(null, null.X)
        drawn = [of_both_covariances(null, null.model.redraw(null.X, null.y, rng)) for _ in range(DRAWS)]
        p = (1 + np.sum(np.array(drawn) >= given, axis=0)) / (DRAWS + 1)
        found.append({"case": cell.row, "sample": sample, "not shared": p[0], "all": p[1]})
    return found


def on_the_clouds(cell: Cell, seed: int) -> list[Row]:
    """The test of naive Bayes on twenty draws of so many rows."""
    n, found = int(cell.row), []
    for draw in range(20):
        rows, label = clouds(n, np.random.default_rng([112, draw, n]))
        outcome = calibration_test(GaussianNB(), rows, label, n_bootstrap=99, random_state=draw)
        ratio = outcome.statistic / outcome.dof
        found.append({"rows": n, "draw": draw, "p_value": outcome.p_value, "ratio": ratio})
    return found


Study(CHOICES_STUDY, rows=CASES, protocol=choices)
Study(CLOUDS_STUDY, rows=(20, 60, 120, 300), protocol=on_the_clouds, tolerance=SEARCHED)
