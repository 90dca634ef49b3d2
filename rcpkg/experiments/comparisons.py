"""Learners over data sets: a study as a table of scores, and which learner does better than which."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from rcpkg.experiments.cells import STUDY
from rcpkg.experiments.scorecard import results


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
        p = stats.wilcoxon(difference).pvalue if difference.any() else 1.0
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
    order = table.p.argsort().to_numpy()
    adjusted = np.maximum.accumulate(table.p.to_numpy()[order] * np.arange(len(table), 0, -1))
    table.loc[order, "p_holm"] = np.minimum(adjusted, 1.0)
    return table
