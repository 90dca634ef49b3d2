"""The study behind figures 4.1 and 4.2: what it records, and that the stored results obey the ranges of validity."""

from rcbook.experiments.cells import STUDY, cells_of
from rcbook.experiments.studies import distribution_or_parameter_based as measures


def test_the_stored_study_obeys_the_ranges_of_validity():
    """Where rows of a class can be as few as d, the noninformative priors drop out; the seed never does."""
    study = measures.tidy()
    assert set(study["n_runs"]) == {measures.RUNS}
    wide = study.pivot(index=["case", "d"], columns="method", values="value")
    assert len(wide) == len(cells_of(STUDY, measures.STUDY_NAME))
    assert wide[["distribution, inverse Wishart", "QDA", "nearest means"]].notna().all(axis=None)
    fitted = wide.groupby("d").count()
    for name in ("distribution, noninformative", "parameter, noninformative", "parameter, inverse Wishart"):
        assert (fitted.loc[20:, name] == 0).all() and (fitted.loc[:8, name] == 6).all()
    assert wide.loc[(slice(None), 60), "QDA"].between(48, 52).all()  # singular: the larger class, of two alike
