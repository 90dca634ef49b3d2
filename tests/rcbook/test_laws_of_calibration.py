"""The studies of chapter 12: their formulas, and that the stored results are whole and say what the chapter says."""

from rcbook.experiments.studies import laws_of_calibration as laws


def test_stored_spreads_tend_to_those_of_the_law():
    """With 10,000 rows within four standard errors of one, under right and wrong models."""
    stored = laws.tidy(laws.LAW)
    most = stored[(stored.n == max(laws.LAW_SIZES)) & stored.value_se.notna()]
    assert len(most) == 4 * 7 + 3 * 4
    assert (abs(most.value - 1) < 4 * most.value_se).all()
