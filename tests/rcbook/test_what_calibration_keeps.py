"""The study of what calibration keeps (chapter 13): its formulas, and the stored results."""

import numpy as np
from model_cases import gaussian_rows
from numpy.testing import assert_allclose
from rcbook.experiments.studies import what_calibration_keeps as study
from sklearn.metrics import log_loss

from rcpkg import LDA, GaussianNB


def test_other_weights_are_those_of_predict_proba():
    X, y = gaussian_rows()
    model, new = LDA().fit(X, y), np.array([0.7, 0.2, 0.1])
    changed = study.reweighted(model.predict_proba(X), np.exp(model.class_log_prior_), new)
    assert_allclose(changed, model.predict_proba(X, class_prior=new), rtol=1e-10)
    assert_allclose(study.log_loss(changed, y), log_loss(y, changed))


def test_unlabelled_rows_count_by_their_posteriors():
    X, y = gaussian_rows()
    P = np.random.default_rng(0).dirichlet(np.ones(3), 90)
    model = study.with_unlabelled(GaussianNB(), X, y, X, P)
    W = np.eye(3)[y] + P
    assert_allclose(model.means_, (W.T @ X) / W.sum(axis=0)[:, None])
    assert_allclose(np.exp(model.class_log_prior_), W.sum(axis=0) / 180)


def test_em_raises_the_likelihood_of_all_rows():
    X, y = gaussian_rows(n=300)
    few, others = np.r_[0:30], np.r_[30:300]

    def likelihood(model):
        labelled = model.predict_joint_log_proba(X[few])[np.arange(30), y[few]].sum()
        return labelled + model.score_samples(X[others]).sum()

    values = [likelihood(study.fitted_by_em(LDA(), X[few], y[few], X[others], k)) for k in range(6)]
    assert np.all(np.diff(values) > 0)
