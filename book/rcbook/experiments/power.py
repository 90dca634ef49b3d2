"""What a verdict is worth: whether a printed number can be decided at all, by rules beside those of the scorecard.

The rules are those of ``data/second_rules.csv``. They were stated after the results were known, and before this module
was written; tolerances and verdicts of the scorecard stay as they are. Whether a number can be decided does not depend
on its verdict.
"""

from fnmatch import translate
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from rcbook import published
from rcbook._files import data_folder
from rcbook.experiments.comparisons import holm
from rcbook.experiments.scorecard import ROUNDING, scorecard, tolerance
from rcbook.published import KEY
from rcpkg.base import Array

WEIGHED = (
    "agrees",
    "agrees: constant",
    "agrees: not with the printed spread",
    "differs: explained",
    "differs: explained jointly",
    "differs: diagnosed",
    "differs: unexplained",
)
PATTERNS = ["source", "table", "row", "method", "metric"]
TABLE = ["source", "table", "metric"]
TESTS = {"table_test": ["p_blocks_mean", "p_blocks_square"], "table_mean": ["p_mean"], "table_largest": ["p_largest"]}


@lru_cache
def _rules() -> pd.DataFrame:
    return pd.read_csv(data_folder() / "second_rules.csv", dtype=str, keep_default_na=False)


def _applies(cells: pd.DataFrame, kind: str) -> pd.Series:
    """The value of the first rule of a kind that fits a cell; NaN if none does."""
    found = pd.Series(np.nan, index=cells.index, dtype=object)
    for rule in _rules()[_rules().rule == kind].to_dict("records"):
        fits = pd.concat([cells[name].str.match(translate(rule[name])) for name in PATTERNS], axis=1).all(axis=1)
        found = found.where(found.notna() | ~fits, rule["value"])
    return found


def _with_tolerance(card: pd.DataFrame) -> pd.DataFrame:
    """The compared cells with what is printed (``printed, half_unit, printed_std``) and their tolerance."""
    printed = published.tables()
    printed = printed.assign(half_unit=published.half_unit(printed.value_printed))
    printed = printed.rename(columns={"value": "printed", "std": "printed_std"})
    cells = card[card.n_runs.notna()].reset_index(names="cell")
    cells = cells.merge(printed[[*KEY, "printed", "half_unit", "printed_std"]], on=KEY, validate="1:1")
    kinds = cells[TABLE].drop_duplicates()
    fixed = pd.DataFrame([tolerance(*kind) for kind in kinds.itertuples(index=False)], index=kinds.index)
    fixed = fixed[["read_as", "rule", "z", "slack", "published_runs"]].rename(columns={"rule": "kind"})
    fixed = kinds.join(fixed)
    numbers = ["z", "slack", "published_runs"]
    fixed[numbers] = fixed[numbers].apply(pd.to_numeric).fillna(0.0)
    return cells.merge(fixed, on=TABLE, validate="m:1").set_index("cell")


def allowed_distances(cells: pd.DataFrame) -> tuple[Array, Array]:
    """How far ours may lie from the numbers that print so: by `tolerance`, and by Welch's test with the printed spread.

    Parameters
    ----------
    cells : DataFrame
        ``kind`` of protocol, ``z``, ``slack``, ``published_runs`` p, our ``n_runs`` n and ``value_se``, the
        ``printed_std`` with ``half_unit``; ``level`` of Welch's test, NaN where the printed spread is not used.

    Returns
    -------
    tuple of two arrays
        z σ̂ sqrt(1/n + 1/p) + a, with zero for numbers that are not random; t sqrt(σ̂²/n + s²/p), with s the upper end
        of what prints as the spread does and t the quantile of Student's distribution with Welch's degrees of freedom,
        infinite where it is not used.
    """
    random = (cells.kind == "statistical") & (cells.n_runs > 1)
    se, n, p = cells.value_se.fillna(0.0), cells.n_runs, cells.published_runs.clip(lower=1)
    own = np.where(random, cells.z * se * np.sqrt(1 + n / p) + cells.slack, 0.0)
    used = random & cells.level.notna() & cells.printed_std.notna()
    ours, theirs = se**2, (cells.printed_std + 2 * cells.half_unit) ** 2 / p
    dof = (ours + theirs) ** 2 / (ours**2 / (n - 1).clip(lower=1) + theirs**2 / (p - 1).clip(lower=1))
    welch = stats.t.isf(cells.level.astype(float) / 2, dof) * np.sqrt(ours + theirs)
    return own, np.where(used, welch, np.inf)


def _distance(cells: pd.DataFrame) -> pd.Series:
    """Distance from ours to the numbers that print so; NaN where there is a dash."""
    cut = cells.read_as == "truncated"
    low = cells.printed - cells.half_unit.where(~cut, 0.0)
    return pd.concat([low - cells.value, cells.value - (low + 2 * cells.half_unit)], axis=1).max(axis=1).clip(lower=0)


def _others(cells: pd.DataFrame) -> pd.DataFrame:
    """Range of the numbers printed for the methods of a cell's row, how many others there are, which would pass."""
    row = ["source", "table", "dataset", "setting_value", "metric"]
    own = cells[[*row, "method", "printed", "half_width"]].reset_index()
    pairs = own.merge(own[[*row, "method", "printed"]].dropna(), on=row, suffixes=("", "_other"))
    pairs = pairs[pairs.method != pairs.method_other]
    apart = (pairs.printed_other - pairs.printed).abs()
    pairs = pairs.assign(near=(apart <= pairs.half_width + ROUNDING).astype(float))
    found = pairs.groupby("cell").agg(
        others=("near", "size"),
        others_pass=("near", "mean"),
        low=("printed_other", "min"),
        high=("printed_other", "max"),
    )
    found = found.reindex(cells.index)
    high, low = np.fmax(found.high, cells.printed), np.fmin(found.low, cells.printed)
    return found.assign(others=found.others.fillna(0), range=high - low)[["others", "others_pass", "range"]]


def _undecided(cells: pd.DataFrame) -> pd.Series:
    """Why a cell cannot be decided; empty if it can."""
    width, unit = 2 * cells.half_width, 2 * cells.half_unit
    random = (cells.kind == "statistical") & (cells.n_runs > 1)
    to_row = cells.width_to_row.astype(float) * cells["range"]
    to_value = cells.width_to_value.astype(float) * np.maximum(cells.printed, unit)
    alone = cells.others == 0
    reasons = {
        "nothing to compare": cells.no_comparison.notna(),
        "a dash": cells.printed.isna() | cells.value.isna(),
        "all methods of the row print alike": ~alone & (cells["range"] == 0),
        "acceptance too wide for the row": ~alone & random & (width > to_row + ROUNDING),
        "acceptance too wide for the number": width > to_value + ROUNDING,
    }
    return pd.Series(np.select(list(reasons.values()), list(reasons), default=""), index=cells.index)


def _weighed(cells: pd.DataFrame) -> pd.Series:
    """The verdict of the scorecard, with what the second rules add."""
    agrees = cells.verdict.isin(["reproduced", "statistically consistent"])
    alike = (cells.value_se <= ROUNDING) & (cells.n_runs > 1) & cells.constant.notna()
    near = (cells.value - cells.printed).abs() <= cells.constant.astype(float) + ROUNDING
    outside = _distance(cells) > allowed_distances(cells)[1] + ROUNDING

    def told(kind: str) -> list[bool]:
        pairs = zip(cells.why, cells[kind].fillna(""), strict=True)
        return [bool(value) and why.startswith(value.removesuffix("*")) for why, value in pairs]

    cases = {
        "agrees: constant": alike & near,
        "agrees: not with the printed spread": agrees & outside,
        "agrees": agrees,
        "differs: diagnosed": told("diagnosis"),
        "differs: explained jointly": told("joint"),
        "differs: explained": cells.verdict == "differs: explained",
    }
    return pd.Series(np.select(list(cases.values()), list(cases), "differs: unexplained"), index=cells.index)


def _prepared(card: pd.DataFrame) -> pd.DataFrame:
    cells = _with_tolerance(card)
    for kind in ("width_to_row", "width_to_value", "no_comparison", "constant", "diagnosis", "joint"):
        cells[kind] = _applies(cells, kind)
    cells["level"] = _applies(cells, "printed_spread").astype(float)
    cells["half_width"] = cells.half_unit + np.minimum(*allowed_distances(cells))
    return cells


def power(card: pd.DataFrame | None = None) -> pd.DataFrame:
    """The scorecard with what each verdict is worth, by the rules of ``data/second_rules.csv``.

    Parameters
    ----------
    card : DataFrame, optional
        Rows of the `scorecard`, whole rows of tables; all of them by default.

    Returns
    -------
    DataFrame
        The rows of the card, with ``half_width`` of the acceptance interval; ``others``, the number of other methods
        in the same row of the table, and ``others_pass``, the share of their printed numbers that would pass in the
        place of this one; ``decidable``, and if not ``undecided``, the reason; ``weighed``, one of `WEIGHED`. They
        are empty for numbers that are not compared.
    """
    card = scorecard() if card is None else card
    cells = _prepared(card)
    cells = cells.join(_others(cells))
    cells["undecided"] = _undecided(cells)
    cells["decidable"] = cells.undecided == ""
    cells["weighed"] = _weighed(cells)
    new = cells[["half_width", "others", "others_pass", "range", "decidable", "undecided", "weighed"]]
    new = new.reindex(card.index)
    texts = new[["undecided", "weighed"]].fillna("")
    return card.join(new.assign(**texts, decidable=new.decidable.eq(True)))


def power_by_table(cells: pd.DataFrame) -> pd.DataFrame:
    """For each table: numbers compared, share that can be decided, and how wide acceptance is.

    Parameters
    ----------
    cells : DataFrame
        Rows of `power`.

    Returns
    -------
    DataFrame
        Indexed by ``source, table``: ``compared``, ``decidable``; ``width``, the median of the acceptance interval over
        the range of its row, and ``others_pass``, the mean share of other methods that would pass, where there are any.
    """
    cells = cells[cells.weighed != ""]
    width = (2 * cells.half_width / cells["range"]).where((cells.others > 0) & (cells["range"] > 0))
    table = cells.assign(width=width).groupby(["source", "table"], sort=False)
    return table.agg(
        compared=("weighed", "size"),
        decidable=("decidable", "sum"),
        width=("width", "median"),
        others_pass=("others_pass", "mean"),
    )


def table_tests(card: pd.DataFrame) -> pd.DataFrame:
    """Are the differences of a table, in their standard errors, jointly as they should be?

    z = (ours − middle of what prints so) / sqrt(σ̂²(1/n + 1/p) + u²/12), divided by the standard deviation of Student's
    distribution with n − 1 degrees of freedom, has mean 0 and variance 1 about, if the print is right. The numbers of
    one data set and setting share their draws and are one block.

    Parameters
    ----------
    card : DataFrame
        Rows of the `scorecard`, or of `power`.

    Returns
    -------
    DataFrame
        Indexed by ``source, table, metric``: ``cells``, ``blocks``, ``mean_z`` over blocks, ``largest_z`` in absolute
        value; p values adjusted by Holm's method: by Student's test over the blocks (``p_blocks_mean``,
        ``p_blocks_square``), of the sum of block means against the normal distribution, whose variance bounds theirs
        (``p_mean``), and of the largest z by Bonferroni's inequality (``p_largest``); whether each of `TESTS` passes
        (``fits_table_mean``, …), and ``fits``: all do.
    """
    cells = _prepared(card)
    cells = cells[(cells.kind == "statistical") & (cells.n_runs > 3)]
    cells = cells[(cells.value_se > ROUNDING) & cells.printed.notna() & cells.no_comparison.isna()]
    middle = cells.printed + cells.half_unit.where(cells.read_as == "truncated", 0.0)
    variance = cells.value_se**2 * (1 + cells.n_runs / cells.published_runs) + cells.half_unit**2 / 3
    dof = cells.n_runs - 1
    cells["z"] = (cells.value - middle) / np.sqrt(variance * dof / (dof - 2))
    cells["square"] = cells.z**2
    cells["p"] = 2 * stats.t.sf((cells.z * np.sqrt(dof / (dof - 2))).abs(), dof)
    rows = {}
    for key, part in cells.groupby(TABLE, sort=False):
        blocks = part.groupby(["dataset", "setting_value"])[["z", "square"]].mean()
        if len(blocks) < 3:
            continue
        by_blocks = [stats.ttest_1samp(blocks[name], middle).pvalue for name, middle in (("z", 0.0), ("square", 1.0))]
        p_mean = 2 * stats.norm.sf(abs(blocks.z.sum()) / np.sqrt(len(blocks)))
        p_largest = min(1.0, len(part) * part.p.min())
        rows[key] = [len(part), len(blocks), blocks.z.mean(), part.z.abs().max(), *by_blocks, p_mean, p_largest]
    columns = ["cells", "blocks", "mean_z", "largest_z", "p_blocks_mean", "p_blocks_square", "p_mean", "p_largest"]
    tests = pd.DataFrame.from_dict(rows, orient="index", columns=columns).astype({"cells": int, "blocks": int})
    tests.index = pd.MultiIndex.from_tuples(tests.index, names=TABLE)
    level = _rules().set_index("rule").value.astype(str)
    fits = pd.Series(True, index=tests.index)
    for rule, pair in TESTS.items():
        tests[pair] = holm(tests[pair].to_numpy().ravel()).reshape(-1, len(pair))
        tests[f"fits_{rule}"] = (tests[pair] >= float(level[rule])).all(axis=1)
        fits &= tests[f"fits_{rule}"]
    return tests.assign(fits=fits)
