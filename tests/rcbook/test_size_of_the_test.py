"""The study of the test's size: its cases, and that what is stored is whole and can be computed again."""

import numpy as np
from rcbook.experiments.studies import size_of_the_test as study

from rcpkg import calibration_test


def test_a_sample_is_rejected_as_the_public_test_rejects_it():
    """Twelve samples of thirty bits of which few matter: p ≤ 0.05 with 19 draws of the same stream."""
    case, rng, expected = study.SIZED["BernoulliNB, 3 of 30 bits"], np.random.RandomState(5), []
    while len(expected) < 12:
        X, y = case.draw(100, rng)
        state = rng.get_state()
        expected.append(calibration_test(case.model, X, y, n_bootstrap=19, random_state=rng).p_value <= 0.05)
        rng.set_state(state)
        study_draws = study.null_of(case.model, X, y)
        all(study_draws.drawn(rng) < study_draws.least for _ in range(study.DRAWS))
    found = study.rejections(case.model, case.draw, 100, 12, 5)[0]
    assert found.value == np.mean(expected) and 0 < found.value < 1


def test_size_where_the_model_is_right():
    """The criterion of the study, on all cells whose structure is given; learnt ones reject no more than it allows."""
    stored = study.tidy(study.SIZE)
    found = stored[stored.metric == "rejected"].set_index("case")
    right = found.loc[list(study.RIGHT)]
    assert set(right.n_runs) == {study.REPLICATES} and right.value.between(*study.STATED).all()
    assert (found.loc[list(study.LEARNT)].value < study.STATED[1]).all()
