"""What the stored study of gaps says: wins by kind of gaps, and the verdicts on its hypotheses (chapter 13)."""

from collections.abc import Iterable

import pandas as pd
from scipy.stats import binomtest

from rcbook.experiments.cells import STUDY
from rcbook.experiments.comparisons import contest, holm
from rcbook.experiments.gappy_divisions import ASIDE, CATEGORIES, KINDS, NUMBERS
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies.gaps import COMPLETE, OURS, SHOWN_BOOSTING, STUDY_NAME
from rcbook.experiments.studies.honest_comparison import ROPE

LEVEL = 0.05
EVERY = "every one"
OFTEN = 0.8  # of the sets, hypothesis 1
SOME = tuple(kind for kind in KINDS if kind not in ("0% at random", "10% at random"))  # hypothesis 1
MUCH = tuple(kind for kind in SOME if kind != "20% at random")  # hypothesis 2
CLOSED = {NUMBERS: "QDA", CATEGORIES: "TAN"}
PLAIN = {NUMBERS: "QDA, calibrated", CATEGORIES: "TAN, calibrated"}
JOINT = {
    NUMBERS: ("QDA", "QDA, shrunk", "GaussianNB", "QDA, calibrated", "GaussianNB, calibrated", "QDA, conformant"),
    CATEGORIES: ("TAN", "NB", "TAN, calibrated", "TAN, calibrated, pooled target", "NB, calibrated", "TAN, conformant"),
}
TOLD = {"as stated": "as stated", "refuted": "refuted", "": "open"}


def scores(arm: str, metric: str = "log_loss", study: str = STUDY_NAME) -> pd.DataFrame:
    """A metric of the stored cells: a row for each set and kind of gaps, a column for each learner and way."""
    found = results(STUDY, study)
    parts = found.metric.str.extract(r"(?P<metric>[^,]+), (?P<kind>.*)")
    kept = (parts.metric == metric) & found.setting_value.str.startswith(arm)
    wide = found[kept].assign(kind=parts.kind).pivot_table(index=["row", "kind"], columns="method", values="value")
    return wide.rename_axis(index=["data set", "kind"], columns=None)


def seconds(arm: str, metric: str) -> pd.DataFrame:
    """``fit_seconds`` or ``predict_seconds``: a row for each set, a column for each learner and way."""
    found = results(STUDY, STUDY_NAME)
    kept = (found.metric == metric) & (found.setting_value == arm)
    return found[kept].pivot_table(index="row", columns="method", values="value")


def whole(losses: pd.DataFrame, learners: Iterable[str]) -> pd.DataFrame:
    """The columns of some learners, NaN where one is not stored at all, and of the sets that have all of them."""
    return losses.reindex(columns=list(learners)).dropna()


def candidate(arm: str, losses: pd.DataFrame) -> str:
    """Ours where a cell of it is stored, else plain calibration of the same model."""
    return OURS[arm] if OURS[arm] in losses else PLAIN[arm]


def differences(losses: pd.DataFrame, ours: str, rivals: Iterable[str]) -> pd.DataFrame:
    """A rival's metric less that of ours, NaN where one of them is not stored; the last column is of the best rival."""
    rivals = [rival for rival in rivals if rival in losses]
    table = losses[rivals].assign(**{EVERY: losses[rivals].min(axis=1, skipna=False)})
    return table.sub(losses[ours], axis=0)


def wins(losses: pd.DataFrame, ours: str, rivals: Iterable[str]) -> pd.DataFrame:
    """On how many sets ours has less than each rival, and than all of them.

    Returns
    -------
    DataFrame
        A row for each rival that is stored; of how many ``sets`` both are, and a column for each kind of gaps.
    """
    found = differences(losses, ours, rivals)
    by_kind = found.groupby(level="kind", sort=False)
    table = by_kind.agg(lambda column: int((column > 0).sum())).T.reindex(columns=list(KINDS), fill_value=0)
    table.insert(0, "sets", by_kind.count().max())
    return table.rename_axis(columns=None)


def _tests(arm: str, losses: pd.DataFrame) -> list[dict]:
    """One row for each hypothesis and kind of gaps, p not yet corrected."""
    ours, rows = OURS[arm], []
    closed = (*COMPLETE, *JOINT[arm])
    for number, rivals, kinds in ("1", COMPLETE, SOME), ("1c", closed, SOME):
        table = whole(losses, [ours, *rivals])
        for kind in kinds:
            of_kind = table[table.index.get_level_values("kind") == kind]
            if len(of_kind):
                less = int((of_kind[ours] < of_kind[list(rivals)].min(axis=1)).sum())
                p = binomtest(less, len(of_kind), OFTEN, alternative="less").pvalue
                rows.append({"hypothesis": number, "kind": kind, "sets": len(of_kind), "better": less, "p": p})
    better_of = losses.reindex(columns=[CLOSED[arm], PLAIN[arm]]).min(axis=1, skipna=False)
    pairs = ("2", SHOWN_BOOSTING, MUCH), ("3", "better of both", tuple(KINDS))
    for number, rival, kinds in pairs:
        table = whole(losses.assign(**{"better of both": better_of}), [ours, rival])
        for kind in kinds:
            of_kind = table[table.index.get_level_values("kind") == kind]
            if len(of_kind):
                found = contest(of_kind, [(ours, rival)], ROPE["log_loss"]).iloc[0].to_dict()
                del found["learner"], found["against"], found["p_holm"]
                rows.append({"hypothesis": number, "kind": kind, **found})
    return [{"arm": arm, **row} for row in rows]


def _outcome(row: pd.Series) -> str:
    """By the rules of the protocol, from one row with its corrected p."""
    significant = row.p_holm < LEVEL
    if row.hypothesis.startswith("1"):
        return "as stated" if row.better >= OFTEN * row.sets else "refuted" if significant else ""
    if significant and row["median"] > 0:
        return "refuted"
    if row.hypothesis == "2":
        return "as stated" if significant or row["median"] <= ROPE["log_loss"] else ""
    return "as stated" if row.worse == 0 else ""


COLUMNS = ["arm", "hypothesis", "kind", "sets", "better", "level", "worse", "median", "p", "p_holm", "outcome"]


def hypotheses(of_arms: dict[str, pd.DataFrame] | None = None) -> pd.DataFrame:
    """Verdicts on the stated hypotheses, for each arm and kind of gaps, from the sets that are stored.

    Parameters
    ----------
    of_arms : dict of DataFrame, optional
        Log-losses as `scores` has them, by arm; by default those stored.

    Returns
    -------
    DataFrame
        ``arm``, ``hypothesis``, ``kind``, number of ``sets``; on how many ours is ``better``, ``level`` and ``worse``
        (of 1 and 1c better than every rival, with no region of equivalence); ``median`` of the difference to the
        rival; ``p`` and ``p_holm``; ``outcome``: "as stated", "refuted" or nothing, which is open. No row where
        nothing is stored.
    """
    losses = {arm: scores(arm) for arm in ASIDE} if of_arms is None else of_arms
    table = pd.DataFrame([row for arm in losses for row in _tests(arm, losses[arm])], columns=COLUMNS[:-2])
    table["p_holm"] = holm(table.p)
    table["outcome"] = [_outcome(row) for _, row in table.iterrows()]
    return table.reset_index(drop=True)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Of `hypotheses`, for each hypothesis and arm the number of kinds of gaps by outcome, and of sets, the fewest."""
    if table.empty:
        return pd.DataFrame(columns=["sets", *TOLD.values()])
    told = pd.crosstab([table.hypothesis, table.arm], table.outcome.map(TOLD))
    fewest = table.groupby(["hypothesis", "arm"]).sets.min()
    return told.reindex(columns=list(TOLD.values()), fill_value=0).assign(sets=fewest)[["sets", *TOLD.values()]]


def advantage(losses: pd.DataFrame, ours: str, rivals: Iterable[str]) -> pd.DataFrame:
    """Median of `differences` over sets: a row for each kind of gaps, a column for each rival that is stored."""
    found = differences(losses, ours, rivals).drop(columns=EVERY)
    return found.groupby(level="kind", sort=False).median().reindex(list(KINDS))
