"""The study of class weights that nobody knows: its samples and estimates, and the stored results."""

import numpy as np
from model_cases import gaussian_rows
from numpy.testing import assert_allclose
from rcbook.experiments.studies import unknown_class_weights as study

from rcpkg import LDA, class_prior_of


def test_em_is_that_of_the_library_and_one_step_the_mean_posterior():
    X, y = gaussian_rows(n=150)
    model = LDA().fit(X, y)
    P, prior = model.predict_proba(X[:60]), np.exp(model.class_log_prior_)
    found = study.estimates(P, prior, prior)
    assert_allclose(found[study.ONE_STEP], P.mean(axis=0))
    assert_allclose(found[study.EM], class_prior_of(model, X[:60]).class_prior, atol=1e-6)
