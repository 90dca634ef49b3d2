"""The study behind figures 4.1 and 4.2: what it records, and that the stored results obey the ranges of validity."""

from dataclasses import replace

import pytest
from rcbook.experiments.cells import STUDY, cells_of
from rcbook.experiments.studies import distribution_or_parameter_based as measures


def test_a_cell_records_errors_and_paired_differences():
    cells = {(cell.row, cell.setting_value): cell for cell in cells_of(STUDY, measures.STUDY_NAME)}
    assert len(cells) == 6 * len(measures.DIMENSIONS)
    cell = cells["equal spherical", "4"]
    found = {r.method: r for r in measures.simulate(replace(cell, arguments={"repetitions": 3}), 1)}
    difference = found["distribution, inverse Wishart - QDA"]
    assert difference.value == pytest.approx(found["distribution, inverse Wishart"].value - found["QDA"].value)
    cell = cells["equal spherical", "60"]
    found = {r.method: r.value for r in measures.simulate(replace(cell, arguments={"repetitions": 2}), 1)}
    assert {name for name, value in found.items() if value is None} >= {
        "parameter, inverse Wishart",
        "distribution, noninformative",
        "parameter, noninformative",
    }
    assert found["distribution, inverse Wishart"] is not None


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
