"""Rows with gaps: calibrated joint models and what a practitioner would run instead (chapter 13; ours).

All below was fixed before the first cell of a set set aside was run.

**Sets.** Two arms. *Numbers*: the features of numbers with at least five values, z-scores by the training rows; rows
with a gap of their own are left out. *Categories*: states as they are, a value missing in the set being a state of
its own, and numbers cut at the sixths of the training rows. Three sets serve in both arms, marked by `BINNED`. The
`SPENT` sets were looked at in trials before this study: everything is developed on them, and no conclusion rests on
them. Of the others, `ASIDE`, no score was seen before this was written. Stratified divisions, `REPETITIONS` by the
rows of the set: a third of the rows, at most `TEST_ROWS`, for testing, at most `TRAINING_ROWS` of the others for
training; classes that would have fewer than `LEAST_CLASS` training rows are left out, and features that are constant
on them.

**Gaps** are made by us. In the first study (``gaps``) all training rows are complete. At prediction each value is
lost at random with one of `SHARES`; or neighbouring columns, in five groups, are lost together, each group with 35 %;
or values are lost by the value of another feature, which is always there, the others with 35 % on average. In the
second study (``gaps-in-training``) 20 % or 50 % are lost at random in training and prediction. Calibration joined it
late, when rivals and closed forms of 19 sets were stored and before any of its own cells was run; no hypothesis was
stated for it. When 19 sets were done, none with more training rows, those of this study were limited to
`TRAINING_ROWS_WITH_GAPS`, for the time that the other sets would have taken, and calibration of trees with the pooled
target was left to the first `SETS_OF_POOLED_TREES` sets in order, most of which had it.

**Learners** know nothing of gaps to come, but for two that are shown masked copies of the training rows and for
calibration *with gaps in view*. Each is tuned by three settings on a fifth of the training rows, or by its own
cross-validation over three weights. What takes gaps is run so: boosting, forest, nearest neighbours. Boosting, forest
and logistic regression run behind imputation too: by means, by chained regressions, and, five draws with averaged
probabilities, by chained regressions drawn from (numbers) or from near rows, a hot deck (categories). The imputer is
told to go on for five rounds also when the training rows are complete, where by default it would stop after one.

**Our candidate** is calibration with gaps in view: of QDA with the pooled target for numbers, of TAN with the
generative target for categories (`OURS`). Its other parameters were set on the spent sets before it was run on others:
each row shares its weight with two copies, of which 25 % and 50 % of the values are hidden, and the weight of the
target is one of three, by five folds with copies of their own.

**Hypotheses**, on sets set aside, for each arm and each kind of gaps, by log-loss:

1. From 20 % on (the four shares, groups, and by value) ours has less than *every* rival trained on complete rows
   (`COMPLETE`) on at least 80 % of the sets. 1c: the same with closed forms, plain calibration and conformant learning
   among the rivals.
2. From 35 % on (three shares, groups, by value) ours is level with or ahead of boosting on masked copies.
3. In all eight kinds ours is no worse than the better of the closed form and plain calibration of the same model with
   the same target.

1 is tested by the binomial test of a share of 80 %, 2 and 3 by Wilcoxon's signed-rank test of the differences; Holm's
correction is over all tests of the study. 1 holds as stated where the share observed is at least 80 % and is refuted
where the test finds it smaller; between them it is open. 2 holds where the test finds ours ahead, or finds nothing and
the median difference is at most `ROPE`; it is refuted where the test finds ours behind. 3 holds where no set is worse
by more than `ROPE` (the wording: anywhere); it is refuted where the test finds ours behind, and open otherwise.

**Order.** Small sets first in each arm, arms in turn; on all sets the joint models, then boosting on masked copies and
nearest neighbours, the other rivals, conformant learning, and gaps in training. A run that is cut off says of how many
sets each comparison is.

**Times** are processor seconds: of the fit with tuning and imputer; of a prediction of all test rows with filling in,
in the mean over the kinds of gaps. Memory was measured afterwards, on four sets
(the study ``memory-with-gaps``).
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rcbook import datasets
from rcbook._files import results_folder
from rcbook.experiments.cells import SEARCHED, STUDY, Cell, Grid, Record, Study, mean_record
from rcbook.experiments.comparisons import contest, holm
from rcbook.experiments.gappy_divisions import ASIDE, CATEGORIES, KINDS, NUMBERS, REPETITIONS, SPENT, division
from rcbook.experiments.scorecard import results
from rcbook.experiments.studies.honest_comparison import ROPE, scores
from rcbook.experiments.studies.learners_with_gaps import (
    BOOSTING,
    CALIBRATED,
    CHAINED,
    CLOSED,
    COMPLETE,
    CONFORMANT,
    INDICATED,
    LEARNERS,
    MEAN,
    MULTIPLE,
    NATIVE,
    OF_ARM,
    ORDER,
    OURS,
    POOLED_TREES,
    RIVALS,
    SHOWN_BOOSTING,
    SHOWN_LOGISTIC,
    Filled,
    filled,
    name_of_way,
)
from rcpkg.base import Array

STUDY_NAME, TRAINING_NAME = "gaps", "gaps-in-training"
IN_TRAINING = {"20% in training": 0.2, "50% in training": 0.5}
SETS_OF_POOLED_TREES = 20


# Protocol ----------------------------------------------------------------------------------------------


def _averaged(fits: list[Any], draws: list[Array]) -> Array:
    """Posteriors averaged over draws; of one fit, or of one fit a draw."""
    fits = fits * len(draws) if len(fits) == 1 else fits
    return np.mean([fit.predict_proba(rows) for fit, rows in zip(fits, draws, strict=True)], axis=0)


def ways_of(method: str, share: float) -> tuple[str, ...]:
    """Those of a learner; with gaps in training means come with indicators, and boosting needs neither."""
    ways = LEARNERS[method].ways
    if share:
        ways = tuple(INDICATED if way == MEAN else way for way in ways)
        return (NATIVE, CHAINED) if method == BOOSTING else ways
    return ways


def _given(method: str, way: str, seed: int, *of_division: Any) -> Filled:
    """What a learner is given, as codes or encoded."""
    data, encoded = division(*of_division), LEARNERS[method].encoded
    if way == NATIVE:
        form: Callable[[Array], Array] = data.encoded if encoded else np.asarray
        return Filled([form(data.X)], {kind: [form(X)] for kind, X in data.tests.items()}, 0.0, 0.0)
    found = filled(way, seed, *of_division)
    form = np.asarray if encoded else data.decoded
    tests = {kind: [form(rows) for rows in draws] for kind, draws in found.tests.items()}
    return Filled([form(rows) for rows in found.train], tests, found.fit_seconds, found.seconds)


def compared(method: str, seed: int, *of_division: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Of one division the numbers of a learner, for each way in which gaps reach it."""
    data, fits = division(*of_division), []
    share = of_division[-1]
    for way in ways_of(method, share):
        given = _given(method, way, seed, *of_division)
        if share or not fits:  # one fit serves all ways where training rows are complete
            start = time.process_time()
            fits = [LEARNERS[method].make(data, seed).fit(rows, data.y) for rows in given.train]
            fit_seconds = time.process_time() - start
        start = time.process_time()
        posteriors = {kind: _averaged(fits, draws) for kind, draws in given.tests.items()}
        seconds = (time.process_time() - start) / len(posteriors)
        yield (
            name_of_way(method, way),
            {
                f"{metric}, {kind}": value
                for kind, P in posteriors.items()
                for metric, value in scores(P, data.y_test).items()
            }
            | {"fit_seconds": fit_seconds + given.fit_seconds, "predict_seconds": seconds + given.seconds},
        )


def compare(cell: Cell, seed: int) -> list[Record]:
    """Means over divisions of four scores on the test rows of each kind of gaps, in each way, and of its times."""
    of_set = cell.arguments["arm"], cell.row, cell.arguments["variant"]
    runs: dict[tuple[str, str], list[float]] = {}
    for part in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        with warnings.catch_warnings(action="ignore"):
            for method, numbers in compared(cell.method, int(part), *of_set, int(part), cell.arguments["share"]):
                for metric, value in numbers.items():
                    runs.setdefault((method, metric), []).append(value)
    return [mean_record(*names, values) for names, values in runs.items()]


def sets(aside: bool = True) -> list[tuple[str, str]]:
    """Arm and name of the sets, as they are run: the arms in turn."""
    of = ASIDE if aside else SPENT
    ranked = [(place / len(names), arm, name) for arm, names in of.items() for place, name in enumerate(names)]
    return [(arm, name) for _, arm, name in sorted(ranked)]


@cache
def repetitions(name: str) -> int:
    """How often a set is divided, by its rows."""
    table = datasets.table()
    rows = table.n_rows[(table.name == name) & (table.variant == "original")].item()
    return next(times for most, times in REPETITIONS.items() if rows <= most)


def _methods(arm: str) -> list[str]:
    other = OF_ARM[CATEGORIES if arm == NUMBERS else NUMBERS]
    return [name for name in LEARNERS if not name.startswith(other)]


def _grids(learners: Iterable[str], share: float = 0.0, setting: str = "", first: int | None = None) -> Iterator[Grid]:
    """Some learners on the ``first`` sets, by default on all."""
    for arm, name in sets()[:first]:
        yield Grid(
            rows=(name,),
            methods=[method for method in _methods(arm) if method in learners],
            settings=(", ".join(filter(None, (arm, setting))),),
            protocol=compare,
            arguments={"arm": arm, "variant": ASIDE[arm][name], "share": share, "repetitions": repetitions(name)},
            stream=f"{arm}: {name}",
            quick=name in ("iris", "hepatitis"),
        )


def _in_order() -> Iterator[Grid]:
    before: set[str] = set()
    for learners in ORDER:
        yield from _grids(set(learners) - before)
        before |= set(learners)


def by_rounding(cell: Cell, record: Record) -> bool:
    """Whether a number is left to how a processor rounds, or sorts equal values.

    A hot deck draws from near rows in such an order, and bins of equally many rows part equal posteriors; a search for
    an optimum that is lacking, or all but lacking, without a target, magnifies rounding.
    """
    hot_deck = record.method.endswith(f", {MULTIPLE}") and cell.arguments["arm"] == CATEGORIES
    return hot_deck or record.metric.startswith("calibration_error") or cell.method in CONFORMANT


Study(STUDY_NAME, *_in_order(), tolerance=SEARCHED, by_rounding=by_rounding)
Study(
    TRAINING_NAME,
    *(
        grid
        for learners, first in (
            ({*RIVALS, *CLOSED} - {SHOWN_BOOSTING, SHOWN_LOGISTIC}, None),
            (set(CALIBRATED) - {POOLED_TREES}, None),
            ({POOLED_TREES}, SETS_OF_POOLED_TREES),
        )
        for setting, share in IN_TRAINING.items()
        for grid in _grids(learners, share, setting, first)
    ),
    tolerance=SEARCHED,
    by_rounding=by_rounding,
)


# What the stored study says -------------------------------------------------------------------------

LEVEL = 0.05
EVERY = "every one"
OFTEN = 0.8  # of the sets, hypothesis 1
SOME = tuple(kind for kind in KINDS if kind not in ("0% at random", "10% at random"))  # hypothesis 1
MUCH = tuple(kind for kind in SOME if kind != "20% at random")  # hypothesis 2
CLOSED_FORM = {NUMBERS: "QDA", CATEGORIES: "TAN"}
PLAINLY_CALIBRATED = {NUMBERS: "QDA, calibrated", CATEGORIES: "TAN, calibrated"}
JOINT = {
    NUMBERS: ("QDA", "QDA, shrunk", "GaussianNB", "QDA, calibrated", "GaussianNB, calibrated", "QDA, conformant"),
    CATEGORIES: ("TAN", "NB", "TAN, calibrated", "TAN, calibrated, pooled target", "NB, calibrated", "TAN, conformant"),
}
TOLD = {"as stated": "as stated", "refuted": "refuted", "": "open"}


@cache
def _with_kind(study: str, folder: Path) -> pd.DataFrame:
    """What a folder of results holds of a study, with the kind of gaps apart from the metric: read once."""
    found = results(STUDY, study)
    parts = found.metric.unique()
    parts = pd.DataFrame([name.partition(", ")[::2] for name in parts], index=parts, columns=["metric", "kind"])
    return found.assign(metric=found.metric.map(parts.metric), kind=found.metric.map(parts.kind))


def losses_of(arm: str, metric: str = "log_loss", study: str = STUDY_NAME) -> pd.DataFrame:
    """A metric of the stored cells: a row for each set and kind of gaps, a column for each learner and way."""
    found = _with_kind(study, results_folder())
    kept = (found.metric == metric) & found.setting_value.str.startswith(arm)
    wide = found[kept].pivot_table(index=["row", "kind"], columns="method", values="value")
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
    return OURS[arm] if OURS[arm] in losses else PLAINLY_CALIBRATED[arm]


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
    better_of = losses.reindex(columns=[CLOSED_FORM[arm], PLAINLY_CALIBRATED[arm]]).min(axis=1, skipna=False)
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
        Log-losses as `losses_of` has them, by arm; by default those stored.

    Returns
    -------
    DataFrame
        ``arm``, ``hypothesis``, ``kind``, number of ``sets``; on how many ours is ``better``, ``level`` and ``worse``
        (of 1 and 1c better than every rival, with no region of equivalence); ``median`` of the difference to the
        rival; ``p`` and ``p_holm``; ``outcome``: "as stated", "refuted" or nothing, which is open. No row where
        nothing is stored.
    """
    losses = {arm: losses_of(arm) for arm in ASIDE} if of_arms is None else of_arms
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
