"""Learners over data sets: what is read from the stored honest comparison."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from rcpkg.experiments.protocols import STUDY
from rcpkg.experiments.scorecard import results
from rcpkg.experiments.studies.honest_comparison import DEVELOPMENT, FAMILIES, LARGE, LOGISTIC, SET_ASIDE, STUDY_NAME

METRICS = ("error_percent", "log_loss", "brier", "calibration_error")
# differences that matter to nobody: the region of practical equivalence, fixed before its results were looked at
ROPE = {"error_percent": 1.0, "log_loss": 0.01, "brier": 0.01, "calibration_error": 0.01}


def means(metric: str, sets: Iterable[str] = (*DEVELOPMENT, *SET_ASIDE, *LARGE)) -> pd.DataFrame:
    """Mean test score over the splits: a row for each data set, a column for each learner, less is better.

    Columns are named ``method (family start)``. A learner that could not be fitted to some split has no value.
    """
    study = results(STUDY, STUDY_NAME)
    study = study[(study.metric == metric) & study.row.isin(list(sets))]
    setting = np.where(study.setting_value == "", "", " (" + study.setting_value + ")")
    wide = study.assign(learner=study.method + setting).pivot_table(
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


def learners(family: str) -> list[str]:
    """The learners of a family, from the MAP model wherever the start is free.

    All exist on every data set but one, ``RC safe, pooled target (QDA ML)``: it starts from maximum likelihood, whose
    covariances are singular on some sets.
    """
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}; got {family!r}")
    names = ["closed form", "RC as published", "RC safe, early stopping", "GD as printed", "GD corrected"]
    if family != "LR":
        names += ["RC safe, generative target", "RC safe, pooled target"]
    starts = {name: "ML" if (name, family) == ("RC safe, pooled target", "QDA") else "MAP" for name in names}
    found = [f"{name} ({family} {start})" for name, start in starts.items()]
    return [*found, f"conditional optimum ({family} MAP)", f"{LOGISTIC} ({family})"]
