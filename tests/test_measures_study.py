"""The study behind figures 4.1 and 4.2: what it records, and that the stored results obey the ranges of validity."""

from dataclasses import replace

import pytest

from rcpkg.experiments import measures


def test_a_cell_records_errors_and_paired_differences():
    cells = {(cell.row, cell.setting_value): cell for cell in measures.cells()}
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
