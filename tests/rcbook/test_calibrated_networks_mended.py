"""The study of networks without its two defects: what its protocol promises."""

import numpy as np
import pandas as pd
from holm import holm_by_hand
from numpy.testing import assert_allclose, assert_array_equal
from rcbook.experiments import runner
from rcbook.experiments.cells import STUDY
from rcbook.experiments.comparisons import contest
from rcbook.experiments.studies import calibrated_networks as before
from rcbook.experiments.studies import calibrated_networks_mended as study


def rows_with_numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.column_stack([y + rng.normal(scale=0.6, size=n), rng.integers(3, size=n), rng.normal(size=n) - y])
    return before.Part(X, y, np.array([False, True, False]), n - 10)


def test_cuts_of_a_comparison_do_not_see_the_labels_that_it_is_judged_by():
    """Other labels of the rows held out leave the codes as they are; the codes of the final fit change with them."""
    rows = rows_with_numbers()
    fit, held = np.arange(40), np.arange(40, 50)
    other = rows._replace(y=np.where(np.isin(np.arange(60), held), 1 - rows.y, rows.y))
    one, two = (before.coded(of, fit, held) for of in (rows, other))
    assert_array_equal(one.X, two.X)
    assert_array_equal(one.X_test, two.X_test)
    assert one.X.max() > 0
    whole, changed = (before.coded(of, np.arange(50), np.arange(50, 60)) for of in (rows, other))
    assert whole.X.shape != changed.X.shape or (whole.X != changed.X).any()


def test_hypotheses_are_those_of_the_protocol():
    """Holm's correction is over all groups; sets on which grids were tried are in no test; either side may win."""
    sets, rng = before.sets(), np.random.default_rng(0)
    names = list(sets)
    losses = pd.DataFrame(rng.uniform(0.2, 1, (len(names), len(study.LEARNERS))), names, list(study.LEARNERS))
    losses["KDB, RC safe, pooled target"] = losses["KDB"] - 0.1
    losses["KDB, RC safe, nested target"] = losses[study.HDP] + 0.1
    groups = {"one": names[::2], "other": names[1::2]}
    table = study.hypotheses(losses, groups)
    assert list(table.group) == ["one"] * 12 + ["other"] * 12
    assert_allclose(table.p_holm, holm_by_hand(table.p))
    found = table.set_index(["group", "target", "hypothesis"])
    for group, of in groups.items():
        assert found.outcome[group, "pooled", 1] == "as stated" and found.outcome[group, "nested", 5] == "the reverse"
        tested = losses.loc[[name for name in of if name not in before.TRIED]]
        many = [name for name in tested.index if sets[name][0] > before.FEW_ROWS]
        pair = ("KDB, RC safe, pooled target", before.BOOSTING)
        assert found.p[group, "pooled", 4] == contest(tested.loc[many], [pair], 0.01).p[0]
        assert found.sets[group, "pooled", 2] == len(tested)
    assert set(study.hypotheses(losses.drop(columns=list(study.RIVALS)), groups).hypothesis) == {1, 2, 3, 4}


# The stored study --------------------------------------------------------------------------------------

NAMES = (study.STUDY_NAME, study.CURVES_NAME)
DONE = [done for name in NAMES for done in runner.read(runner.table_path(STUDY, name))]


def test_logistic_regression_is_converged():
    gradients = [r.value for done in DONE for r in done.records if r.metric == "gradient"]
    assert len(gradients) > 30 and max(gradients) <= study.GRADIENT
