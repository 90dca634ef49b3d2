"""Lines of progress: where they are asked for, and nowhere else."""

import logging

import pytest
from model_cases import categorical_rows, gaussian_rows
from sklearn.base import clone

from rcpkg import LDA, WANBIAC, CategoricalNB, Mixture, RiskCalibration, RiskCalibrationCV


@pytest.mark.parametrize("learner", [RiskCalibration, RiskCalibrationCV])
def test_a_verbose_fit_prints_how_far_it_is(learner, capsys, caplog):
    X, y = gaussian_rows()
    learner(LDA()).fit(X, y)
    assert not capsys.readouterr().out
    with caplog.at_level(logging.INFO, "rcpkg"):
        quiet = learner(LDA()).fit(X, y)
    told = [record.getMessage() for record in caplog.records]
    assert any("after" in line or "log-loss" in line for line in told) and not capsys.readouterr().out
    loud = learner(LDA(), verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("iteration") for line in lines) >= quiet.n_iter_
    assert loud.predict_proba(X).tolist() == quiet.predict_proba(X).tolist()
    if learner is RiskCalibrationCV:
        assert sum("of rows left out" in line for line in lines) >= len(loud.cv_results_)
    else:
        assert any("converged after" in line for line in lines)
    learner(LDA()).fit(X, y)  # a fit after a verbose one is quiet
    assert not capsys.readouterr().out


@pytest.mark.parametrize("learner", [WANBIAC(), Mixture(CategoricalNB(prior_strength=1.0), n_components=2)])
def test_other_long_searches_print_their_iterations(learner, capsys):
    learner.fit(*categorical_rows())
    assert not capsys.readouterr().out
    loud = clone(learner).set_params(verbose=2).fit(*categorical_rows())
    assert len(capsys.readouterr().out.splitlines()) >= loud.n_iter_ > 1


@pytest.mark.parametrize("learner", [RiskCalibration(LDA()), RiskCalibrationCV(LDA()), Mixture(LDA()), WANBIAC()])
def test_verbose_is_a_number(learner):
    with pytest.raises(ValueError, match="verbose must be a finite number >= 0; got 'loud'"):
        learner.set_params(verbose="loud").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
