"""Learners compared: over data sets that are independent, and over divisions of one data set, which share rows."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from rcbook.experiments.cells import STUDY
from rcbook.experiments.scorecard import results
from rcpkg.base import Array

WHOLE_PERMUTATIONS = 13  # values, up to which scipy.stats.wilcoxon takes ties by all permutations of signs


def mean_scores(study: str, metric: str, sets: Iterable[str]) -> pd.DataFrame:
    """Mean of a metric over the runs of a stored study: a row for each data set, a column for each learner.

    Columns are named ``method (setting)``. A learner that could not be fitted to some division has no value.
    """
    cells = results(STUDY, study)
    cells = cells[(cells.metric == metric) & cells.row.isin(list(sets))]
    setting = np.where(cells.setting_value == "", "", " (" + cells.setting_value + ")")
    wide = cells.assign(learner=cells.method + setting).pivot_table(
        index="row", columns="learner", values="value", sort=False
    )
    return wide.rename_axis(index="data set", columns=None)


def beliefs(excess: Array, rope: float, draws: int = 10_000) -> Array:
    """Posterior probabilities that the first of two learners is better, level and worse, by differences of losses.

    The signed-rank test of Benavoli et al. (2017) with a pseudo-difference of zero and the given ``draws``: that of
    ``baycomp``, all draws at once, in a twentieth of its time.
    """
    differences = np.append(0.0, excess)
    sums = differences + differences[:, None]
    above, below = ((sign * sums > 2 * rope) + 0.5 * (sign * sums == 2 * rope) for sign in (1, -1))
    weights = np.random.RandomState(0).dirichlet(np.append(0.5, np.ones(len(excess))), draws)
    better, worse = (((weights @ pairs) * weights).sum(axis=1) for pairs in (below, above))
    winners = np.argmax([better, 1 - better - worse, worse], axis=0)
    return np.bincount(winners, minlength=3) / draws


def contest(scores: pd.DataFrame, pairs: Sequence[tuple[str, str]], rope: float) -> pd.DataFrame:
    """Pairs of learners over the data sets on which both exist; less is better.

    Returns
    -------
    DataFrame
        A row for each pair (a, b): ``sets``; on how many a is better, within the ``rope`` (in either direction) and
        worse; the median of a − b; p of Wilcoxon's signed-rank test, and ``p_holm``, adjusted over all pairs.
    """
    rows = []
    for a, b in pairs:
        difference = (scores[a] - scores[b]).dropna()
        p = _signed_rank(difference.to_numpy()) if difference.any() else 1.0
        rows.append(
            {
                "learner": a,
                "against": b,
                "sets": len(difference),
                "better": int((difference < -rope).sum()),
                "level": int((difference.abs() <= rope).sum()),
                "worse": int((difference > rope).sum()),
                "median": float(difference.median()),
                "p": float(p),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table.p))


class Equivalence(NamedTuple):
    """Differences and a region of equivalence: their mean with its 90 % interval, their median, and p of both."""

    sets: int
    mean: float
    low: float
    high: float
    p_mean: float
    median: float
    p_median: float


def equivalence(differences: ArrayLike, margin: float) -> Equivalence:
    """Two one-sided tests of the claim that two learners are level: that differences lie within ± ``margin``.

    A test that finds no difference does not show that there is none. Here the hypothesis is a difference of the
    margin or more, in either direction, and a small p refutes it.

    Parameters
    ----------
    differences : array of shape (n_sets,)
        Score of one learner less that of the other on each of at least two data sets; NaN where one has none.
    margin : float
        Half the width of the region, fixed before the differences are looked at.

    Returns
    -------
    Equivalence
        ``p_mean`` is the larger p of Student's two one-sided tests, below 0.05 exactly if ``low``, ``high``, the 90 %
        interval of the mean, lies within the region; ``p_median`` that of the two one-sided signed-rank tests.

    Raises
    ------
    ValueError
        If there are fewer than two differences, or the margin is not positive.

    References
    ----------
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability, Journal of Pharmacokinetics and Biopharmaceutics 15.
    """
    d = np.asarray(differences, dtype=float)
    d = d[~np.isnan(d)]
    if len(d) < 2:
        raise ValueError(f"differences must hold at least two data sets; got {len(d)}")
    if not margin > 0:
        raise ValueError(f"margin must be positive; got {margin}")
    sides = (-margin, "greater"), (margin, "less")
    mean = stats.ttest_1samp(d, 0.0)
    low, high = mean.confidence_interval(0.9)
    return Equivalence(
        len(d),
        float(d.mean()),
        float(low),
        float(high),
        max(float(stats.ttest_1samp(d, edge, alternative=side).pvalue) for edge, side in sides),
        float(np.median(d)),
        max(float(stats.wilcoxon(d - edge, alternative=side).pvalue) for edge, side in sides),
    )


def equivalences(differences: Mapping[Hashable, ArrayLike], margin: float) -> pd.DataFrame:
    """Of each array of differences: on how many sets below, within and above the margin, and its `equivalence`."""
    rows = {}
    for name, values in differences.items():
        d, found = np.asarray(values, dtype=float), equivalence(values, margin)
        rows[name] = {
            "sets": found.sets,
            "better": int(np.sum(d < -margin)),
            "within": int(np.sum(np.abs(d) <= margin)),
            "worse": int(np.sum(d > margin)),
            "median": found.median,
            "p, median": found.p_median,
            "mean": found.mean,
            "90 % from": found.low,
            "to": found.high,
            "p, mean": found.p_mean,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _signed_rank(d: Array) -> float:
    """p of `scipy.stats.wilcoxon`; of few values with ties or zeros all signs are tried at once."""
    changed = d[d != 0]
    ranks = stats.rankdata(np.abs(changed))
    if len(d) > WHOLE_PERMUTATIONS or len(np.unique(ranks)) == len(d):
        return float(stats.wilcoxon(d).pvalue)
    sums = np.array(list(product((0, 1), repeat=len(ranks)))) @ ranks
    rounding, observed = 1e-9, ranks[changed > 0].sum()
    tails = np.mean(sums <= observed + rounding), np.mean(sums >= observed - rounding)
    return min(1.0, 2 * float(min(tails)))


def holm(p_values: ArrayLike) -> Array:
    """P values adjusted by Holm's method, in their order."""
    p = np.asarray(p_values, dtype=float)
    order = p.argsort()
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def corrected_standard_error(values: ArrayLike, n_train: int, n_test: int) -> Array:
    """sqrt((1/J + n_test/n_train) s²), s² the variance of J values from random divisions of the same rows.

    Divisions share rows, so that their values are correlated. If any two have the correlation ρ, the mean has the
    variance E[s²] (1/J + ρ/(1 − ρ)); the formula follows with the guess ρ = n_test/(n_test + n_train).

    Parameters
    ----------
    values : array of shape (J, ...)
        A value, such as the difference of two learners, for each division.
    n_train, n_test : int
        Rows in the training and in the test part of each division.

    Returns
    -------
    array of shape (...)

    Raises
    ------
    ValueError
        If there are fewer than two divisions, or a part is empty.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52: the corrected t-test.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(f"values must hold at least two divisions along their first axis; got shape {values.shape}")
    if n_train < 1 or n_test < 1:
        raise ValueError(f"n_train and n_test must be at least 1; got {n_train} and {n_test}")
    return np.sqrt((1 / len(values) + n_test / n_train) * values.var(axis=0, ddof=1))
