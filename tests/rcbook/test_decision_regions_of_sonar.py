"""The decision regions of thesis2007 Figures 5.1 and 5.2: the committed file comes from the code."""

import pandas as pd
import pytest
from rcbook.experiments.studies import decision_regions_of_sonar as regions


@pytest.mark.needs_data
def test_the_decision_regions_of_figures_5_1_and_5_2_come_from_the_code(tmp_path):
    regions.write(tmp_path)
    (written,) = tmp_path.iterdir()
    table = pd.read_csv(written)
    pd.testing.assert_frame_equal(table, regions.stored())
    assert (table.n_rocks.sum(), table.n_mines.sum()) == (97, 111)
    assert all(set(table[method]) == {0, 1} for method in regions.METHODS)
