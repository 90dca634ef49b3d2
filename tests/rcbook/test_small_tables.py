"""The study of 44 small tables: its rows, its register, and what is stored of it."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rcbook.experiments.studies import small_tables as study


def test_the_register_has_the_published_scores():
    known = study.registered()
    assert len(known) == 44 and known.index.is_unique
    assert known[list(study.RIVALS)].stack().between(0, 1).all()
    assert known[["sha256", "sha256_X", "sha256_y"]].map(len).eq(64).all(axis=None)
    assert_allclose(known.TabPFN.mean(), 0.850, atol=5e-4)


@pytest.mark.skipif(
    not (Path(os.environ.get("RCPKG_DATA", ".")) / "../tabmini").is_dir(), reason="the tables are not beside RCPKG_DATA"
)
@pytest.mark.parametrize("name", ["labor", "parity5", "sonar"])
def test_rows_have_the_registered_size(name):
    X, y = study.rows_of(name)
    row = study.registered().loc[name]
    assert X.shape == (row.n_rows, row.n_features)
    assert set(np.unique(y)) == {0, 1}
