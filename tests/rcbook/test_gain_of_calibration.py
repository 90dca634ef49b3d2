"""When calibration pays: what the protocol promises, and what is stored of it and of the choice of the weight."""

from rcbook.experiments import results
from rcbook.experiments.cells import STUDY
from rcbook.experiments.studies.choice_of_weight import BEYOND, CASES, KEY, summary

# The choice of the weight against a grid search --------------------------------------------------------


def test_the_weight_is_chosen_as_well_and_ten_times_faster_up_to_a_thousand_parameters():
    """The bounds that the benchmark fixed before it was run; the third, 3 for more parameters, does not hold."""
    table = results(STUDY, "choice-of-weight")
    assert set(map(tuple, table[KEY].to_numpy())) <= set(CASES + BEYOND) and table.dataset.nunique() >= 25
    assert table.commit.str.len().eq(40).all()  # a + says that the code was not committed
    found = summary(table)
    assert found["median ratio within"] >= 10 and found["median ratio beyond"] < 3
    assert -0.01 < found["lower end"] < found["upper end"] < 0.01
