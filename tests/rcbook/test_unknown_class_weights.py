"""The study of class weights that nobody knows: its samples and estimates, and the stored results."""

import numpy as np
from model_cases import gaussian_rows
from numpy.testing import assert_allclose
from rcbook.experiments.studies import unknown_class_weights as study

from rcpkg import LDA, class_prior_of


def test_samples_have_the_weights_of_their_shift():
    prior, rng = np.array([0.7, 0.2, 0.1]), np.random.RandomState(0)
    assert_allclose(study.shifted("none", prior, rng), prior)
    inverse = study.shifted("inverse", prior, rng)
    assert_allclose(inverse * prior, inverse[0] * prior[0])
    drawn = np.mean([study.shifted("artificial", prior, rng) for _ in range(2000)], axis=0)
    assert_allclose(drawn, 1 / 3, atol=0.02)
    y = np.repeat([0, 1, 2], [5, 40, 300])
    shares = np.bincount(y[study.sampled(y, prior, rng)], minlength=3) / study.SAMPLE
    assert_allclose(shares, prior, atol=0.15)


def test_em_is_that_of_the_library_and_one_step_the_mean_posterior():
    X, y = gaussian_rows(n=150)
    model = LDA().fit(X, y)
    P, prior = model.predict_proba(X[:60]), np.exp(model.class_log_prior_)
    found = study.estimates(P, prior, prior)
    assert_allclose(found[study.ONE_STEP], P.mean(axis=0))
    assert_allclose(found[study.EM], class_prior_of(model, X[:60]).class_prior, atol=1e-6)
