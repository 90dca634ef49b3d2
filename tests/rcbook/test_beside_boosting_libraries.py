"""The study of boosting libraries: our own cells, and the stored results that the page names."""

from rcbook.experiments.studies import beside_boosting_libraries as study


def test_the_stored_study_is_whole_and_its_verdicts_are_those_of_the_page():
    stored = study.stored()
    assert len(stored) == len(study.SETS) * (len(study.LIBRARIES) + len(study.SKLEARN) + len(study.OURS))
    assert stored.groupby("model").version.nunique().eq(1).all()
    assert study.verdicts().tolist() == [True, False, True]
    summary = study.summary()
    assert summary["log-loss"].idxmin() == study.EBM
    assert summary["log-loss, half hidden"].idxmin() == "GaussianNB, calibrated"
    assert summary["one row, ms"].nsmallest(2).index.isin([*study.OURS]).all()
