"""Inputs that nobody prepared: a sample of the pairs here, the outcomes of all of them in the stored results."""

import numpy as np
from hostile import FINE, REFUSED, cases, outcome, pairs, title

INPUTS = cases()
SAMPLE = np.random.default_rng(0).choice(len(pairs()), size=300, replace=False)


def test_a_sample_of_pairs():
    """Every outcome is finite probabilities that sum to one, or a refusal at the door that names what is wrong."""
    found, bad = [], []
    for estimator, name in [pairs()[i] for i in SAMPLE]:
        result, message = outcome(estimator, INPUTS[name])
        found.append(result)
        if result not in (FINE, REFUSED):
            bad.append((result, title(estimator), name, message))
    assert bad == []
    assert found.count(FINE) > 80 and found.count(REFUSED) > 80
