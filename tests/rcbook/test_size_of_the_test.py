"""The study of the test's size: its cases, and that what is stored is whole and can be computed again."""

from rcbook.experiments.studies import size_of_the_test as study


def test_size_where_the_model_is_right():
    """The criterion of the study, on all cells whose structure is given; learnt ones reject no more than it allows."""
    stored = study.tidy(study.SIZE)
    found = stored[stored.metric == "rejected"].set_index("case")
    right = found.loc[list(study.RIGHT)]
    assert set(right.n_runs) == {study.REPLICATES} and right.value.between(*study.STATED).all()
    assert (found.loc[list(study.LEARNT)].value < study.STATED[1]).all()
