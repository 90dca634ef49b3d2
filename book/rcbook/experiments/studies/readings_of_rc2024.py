"""Readings of the tables of rc2024, where ours leaves numbers unexplained (chapter 18).

``data/readings.csv`` states each with what had been seen of its columns before it was run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from rcbook import datasets, published
from rcbook.experiments import readings
from rcbook.experiments.cells import STUDY, Cell, Record, Study, cells_of, mean_record, name_of
from rcbook.experiments.scorecard import judged, results
from rcbook.experiments.studies import tables_of_rc2024
from rcbook.experiments.studies.data_and_models_of_rc import ITERATIONS, LEARNING_RATE, data_rows, first_reach, rc_data
from rcbook.experiments.studies.forms_of_map_covariances import FORMS
from rcbook.experiments.studies.readings_of_bda7 import Repaired
from rcbook.strict_naive_bayes import StrictCategoricalNB
from rcpkg.base import Array, InvalidStatistics, log_posterior
from rcpkg.calibration import Objective, Point, Run, Step, Stop, climb
from rcpkg.families import CategoricalParameters, Statistics, one_hot

STUDY_NAME = "rc-readings"
LARGE = 7_000  # rows; larger data sets come last, by their size
ROUNDING = 1e-9
FOUND_ON = ("iris", "haberman", "liver_disorder", "glass", "heart", "ecoli", "diabetes", "blood_transfusion")
FOUND_ON += ("climate_model", "sonar")  # the form of the grid is chosen on these
BINS = {
    "nb-uniform-bins": {"strategy": "uniform"},
    "nb-quantile-bins": {"strategy": "quantile", "quantile_method": "averaged_inverted_cdf"},
}
REMEDIES = {"ml-pinv": "singular-pinv", "ml-ridge": "singular-ridge", "ml-drop": "singular-drop", "ml-rounding": "none"}


# Naive Bayes: where the prior enters, and what becomes of negative counts ------------------------------


class Rule(NamedTuple):
    """Where the pseudo-counts are: in the start, in the map to parameters, added at an update; and when a run ends."""

    strength: float | str = 1.0
    start: float = 0.0  # times the pseudo-counts
    mapped: bool = False  # the map to the parameters adds them
    reported: bool = False  # the map of the reported models adds them
    added: float = 0.0  # times the pseudo-counts, at each update
    expected: bool = False  # the start is what the MAP model expects
    floor: bool = True  # negative: with the pseudo-counts that the map adds; otherwise without them
    halt: bool = False  # a negative count ends the run; otherwise what is held keeps its value
    held: str = "cell"  # or its "state" in all classes, its "distribution", its "feature" in all classes, its "class"
    by_class: bool = False  # counts are divided by that of their class; otherwise by the sum over the states
    least: float = ROUNDING  # below the floor by no more than this is not negative


RULES = {
    "nb-halt": Rule(mapped=True, halt=True),
    "nb-halt-bare": Rule(mapped=True, floor=False, halt=True),
    "nb-freeze-bare": Rule(mapped=True, floor=False),
    "nb-halt-text": Rule("classes", mapped=True, halt=True),
    "nb-per-update": Rule(start=1.0, added=1.0),
    "nb-expected": Rule(start=1.0, added=-LEARNING_RATE),
    "nb-smooth-last": Rule(reported=True),
    "nb-smooth-first": Rule(expected=True),
    "nb-smooth-first-halt": Rule(expected=True, halt=True),
    "nb-hold-distribution": Rule(mapped=True, floor=False, held="distribution"),
    "nb-hold-feature": Rule(mapped=True, floor=False, held="feature"),
    "nb-hold-class": Rule(mapped=True, floor=False, held="class"),
}
EXACT = Rule(mapped=True, floor=False, held="distribution", by_class=True, least=0.0)
EXACT_RULES = {"nb-hold-exact": EXACT, "nb-hold-exact-ml": EXACT._replace(strength=0.0)}
HELD = ("cell", "state", "distribution", "feature", "zero")  # of "zero" nothing is held: a negative count becomes zero
RULE_GRIDS = {
    "nb-hold-grid": [
        Rule(mapped=True, held=held, by_class=by_class, floor=floor)
        for held, by_class, floor in product(HELD, (False, True), (False, True))
    ],
    "nb-hold-grid-ml": [Rule(0.0, mapped=True, held=held, by_class=b) for held, b in product(HELD, (False, True))],
}


def _kept(low: tuple[NDArray, NDArray], held: str, states: NDArray) -> tuple[NDArray, NDArray]:
    """Which counts of classes, (r,), and of cells, (r, sum of states), keep their values, from the negative ones."""
    count, cells = low
    if held == "class":
        kept = count | cells.any(axis=1)
        return kept, np.broadcast_to(kept[:, None], cells.shape)
    if held == "cell":
        return low
    if held == "state":
        return count, np.broadcast_to(cells.any(axis=0), cells.shape)
    starts = np.concatenate([[0], np.cumsum(states)[:-1]])
    distributions = np.logical_or.reduceat(cells, starts, axis=1)
    if held == "feature":
        distributions = np.broadcast_to(distributions.any(axis=0), distributions.shape)
    return count, np.repeat(distributions, states, axis=1)


@dataclass(frozen=True)
class Smoothed(Step):
    """An update of RC for naive Bayes with a prior of ``pseudo`` counts, as a ``rule`` has it."""

    rule: Rule
    pseudo: Statistics
    states: NDArray
    strength: float

    stop_reason = "invalid"

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        rule, pseudo = self.rule, self.pseudo
        floor = (-1.0 if rule.mapped and rule.floor else 0.0) * pseudo

        def run(point: Point, t: int) -> Point | None:
            s = point.statistics
            new = s + LEARNING_RATE * point.gradient + rule.added * pseudo
            low = new.count < floor.count - rule.least, new.cells < floor.cells - rule.least
            if rule.halt and (low[0].any() or low[1].any()):
                return None
            if rule.held == "zero":
                s = Statistics(count=np.maximum(new.count, floor.count), cells=np.maximum(new.cells, floor.cells))
            else:
                kept = _kept(low, rule.held, self.states)
                s = Statistics(count=np.where(kept[0], s.count, new.count), cells=np.where(kept[1], s.cells, new.cells))
            try:
                return self.evaluate(objective, s)
            except InvalidStatistics:
                return None

        return run

    def evaluate(self, objective: Objective, s: Statistics) -> Point:
        """The point of statistics, their cells divided by those of the class if the rule says so."""
        parameters = objective.family.parameters(s)
        if self.rule.by_class:
            parameters = _by_class(s.cells + self.pseudo.cells, s.count + self.strength, parameters)
        return objective.evaluate(s, parameters, LEARNING_RATE)


def smoothed_errors(X: Array, y: NDArray, rule: Rule) -> Array:
    """Training errors of the iterates of RC for naive Bayes, the prior entering as the rule says."""
    codes = np.unique(y, return_inverse=True)[1]
    return np.array([np.mean(joint.argmax(axis=1) != codes) for joint in smoothed_joints(X, y, rule, X)])


def smoothed_joints(X: Array, y: NDArray, rule: Rule, rows: Array) -> Iterator[Array]:
    """log p(x, y) of any ``rows`` under the iterates of RC for naive Bayes; states are those of the rows."""
    states, n_classes = rows.max(axis=0).astype(int) + 1, len(np.unique(y))
    strength = float(n_classes) if rule.strength == "classes" else float(rule.strength)
    plain = StrictCategoricalNB(n_states=states).fit(X, y)
    of_classes = float(n_classes) * (strength > 0)
    smooth = StrictCategoricalNB(n_states=states, prior_strength=strength, class_prior_strength=of_classes).fit(X, y)
    pseudo = Statistics(
        count=np.full(n_classes, float(strength > 0)),
        cells=np.tile(strength / np.repeat(states, states), (n_classes, 1)),
    )
    codes = np.searchsorted(plain.classes_, y)
    encoded, Y = plain.family_.encode(X), one_hot(codes, n_classes)
    s = plain.statistics_ + rule.start * pseudo
    if rule.expected:
        s = len(y) * smooth.family_.mean_parameters(smooth.parameters_)
    family, reporter = smooth if rule.mapped else plain, smooth if rule.reported or rule.mapped else plain
    step = Smoothed(rule, pseudo, states, strength)
    objective = Objective(family.family_, encoded, Y, start=s)
    path = climb(objective, step, Stop(), ITERATIONS - 1, start=step.evaluate(objective, s), keep_points=True)
    shown_rows = plain.family_.encode(rows)
    for point in path.points:
        try:
            shown = point.parameters if rule.by_class else reporter.parameters(point.statistics)
        except InvalidStatistics:
            break
        yield reporter.log_joint(shown_rows, shown)


def _by_class(cells: Array, count: Array, parameters: CategoricalParameters) -> CategoricalParameters:
    """Counts with their pseudo-counts, (r, K), divided by those of their classes."""
    with np.errstate(divide="ignore"):
        return parameters._replace(log_prob=np.log(cells / count[:, None]))


def naive_bayes(cell: Cell, seed: int) -> list[Record]:
    """RC's column of Table III under a rule."""
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    errors = smoothed_errors(X, y, RULES[cell.arguments["reading"]])
    return [
        Record("RC", "empirical_error_fraction", float(errors.min())),
        Record("RC", "iterations", int(errors.argmin()) + 1),
    ]


def exact_rule(cell: Cell, seed: int) -> list[Record]:
    """RC's columns of Tables II, III and IX by `EXACT_RULES`; "reach" with the other learner as in the tables."""
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    errors = smoothed_errors(X, y, EXACT_RULES[cell.arguments["reading"]])
    other = "DFE" if cell.setting_value.startswith("IX") else "GD"
    others = tables_of_rc2024.all_rows_history(cell, other).error.to_numpy()
    return [
        Record("RC", "empirical_error_fraction", float(errors.min())),
        Record("RC", "iterations", int(errors.argmin()) + 1),
        Record("RC", "reach", first_reach(errors - ROUNDING, others)),
    ]


def reach_by_print(cell: Cell, seed: int) -> list[Record]:
    """RC's "reach" in Tables II and III by `EXACT_RULES`, with the printed error of gradient descent."""
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    rule = EXACT_RULES["nb-hold-exact" if cell.arguments["closed_form"] == "MAP" else "nb-hold-exact-ml"]
    table = cell.setting_value.partition("|")[0]
    printed = published.wide("rc2024", table, "empirical_error_fraction").GD[cell.row]
    return [Record("RC", "reach", first_reach(smoothed_errors(X, y, rule), np.array([printed + 0.0005 + ROUNDING])))]


def rule_grid(cell: Cell, seed: int) -> list[Record]:
    """RC's column of Table II or III under each rule of a grid: the method has the number of the rule."""
    X, y = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    records = []
    for k, rule in enumerate(RULE_GRIDS[cell.arguments["reading"]]):
        errors = smoothed_errors(X, y, rule)
        records.append(Record(f"RC|{k}", "empirical_error_fraction", float(errors.min())))
        records.append(Record(f"RC|{k}", "iterations", int(errors.argmin()) + 1))
    return records


def bins(cell: Cell, seed: int) -> list[Record]:
    """The closed form of naive Bayes with other bins, or with the first class where no class is possible."""
    name = cell.arguments["reading"]
    bunch = datasets.load(cell.arguments["name"], cell.arguments["variant"])
    X = bunch.data
    if name == "nb-first-class":
        X, _ = rc_data(cell.arguments["name"], cell.arguments["variant"], "NB")
    elif name == "nb-random-bins":
        X = np.column_stack([_random_bins(column) for column in X.T])
    else:
        X = np.column_stack([_codes(column, KBinsDiscretizer(5, encode="ordinal", **BINS[name])) for column in X.T])
    model = StrictCategoricalNB().fit(X, bunch.target)
    codes = np.searchsorted(model.classes_, bunch.target)
    joint = model.log_joint(model.family_.encode(X), model.parameters_)
    if name != "nb-first-class":
        joint = log_posterior(joint, model.family_.log_class_probabilities(model.parameters_))
    return [Record("ML", "empirical_error_fraction", float(np.mean(joint.argmax(axis=1) != codes)))]


def _codes(column: Array, binning: KBinsDiscretizer) -> Array:
    values, codes = np.unique(column, return_inverse=True)
    if len(values) < 5:
        return codes
    return np.unique(binning.fit_transform(column[:, None])[:, 0], return_inverse=True)[1]


def _random_bins(column: Array) -> Array:
    """Five k-means bins from k-means++ with seed 0."""
    values, codes = np.unique(column, return_inverse=True)
    if len(values) < 5:
        return codes
    centres = KMeans(5, n_init=1, random_state=0).fit(column[:, None]).cluster_centers_[:, 0]
    centres = np.unique(centres)
    return np.searchsorted((centres[1:] + centres[:-1]) / 2, column, side="right")


def last_best(cell: Cell, seed: int) -> list[Record]:
    """The last iterate of least error in place of the first."""
    errors = tables_of_rc2024.all_rows_history(cell, cell.method).error.to_numpy()
    return [Record(cell.method, "iterations", int(np.flatnonzero(errors == errors.min())[-1]) + 1)]


# QDA ------------------------------------------------------------------------------------------------


def map_grid(cell: Cell, seed: int) -> list[Record]:
    """The closed form of QDA with a prior, under each form of a grid: the method is the number of the form."""
    bunch = datasets.load(cell.arguments["name"], cell.arguments["variant"])
    errors = FORMS[cell.arguments["reading"]](bunch.data, bunch.target)
    return [
        Record(f"MAP|{k}", "empirical_error_fraction", None if np.isnan(e) else float(e)) for k, e in enumerate(errors)
    ]


def singular(cell: Cell, seed: int) -> list[Record]:
    """QDA by maximum likelihood where it does not exist, under a remedy."""
    name, remedy = cell.arguments["name"], REMEDIES[cell.arguments["reading"]]
    bunch = datasets.load(name, cell.arguments["variant"])
    X, y = StandardScaler().fit_transform(bunch.data), bunch.target

    def error(train: NDArray, test: NDArray) -> float:
        model = Repaired(remedy, pooled=False, class_prior=0.0).fit(X[train], y[train])
        return float(np.mean(model.predict(X[test]) != y[test]))

    everything = np.arange(len(y))
    if cell.arguments["source"] == "rc2024":
        return [Record("ML", "empirical_error_fraction", error(everything, everything))]
    runs = []
    for split in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        order = np.random.default_rng(int(split)).permutation(len(y))
        test, train = np.split(order, [int(np.ceil(0.25 * len(y)))])
        runs.append([100 * error(train, train), 100 * error(train, test)])
    train_errors, test_errors = zip(*runs, strict=True)
    return [
        mean_record("ML", "train_error_percent", train_errors),
        mean_record("ML", "test_error_percent", test_errors),
    ]


# The study ------------------------------------------------------------------------------------------

PROTOCOLS = {
    **dict.fromkeys(RULES, naive_bayes),
    **dict.fromkeys([*BINS, "nb-random-bins", "nb-first-class"], bins),
    **dict.fromkeys(REMEDIES, singular),
    "last-best": last_best,
    **dict.fromkeys(FORMS, map_grid),
    **dict.fromkeys(RULE_GRIDS, rule_grid),
    **dict.fromkeys(EXACT_RULES, exact_rule),
    "nb-hold-exact-reach": reach_by_print,
}
NO_ESTIMATE = {"IV": ("blood_transfusion", "redwine"), "5": ("qsar", "redwine", "optdigits")}


def _concerned(name: str, table: str, methods: list[str]) -> Iterator[tuple[int, Cell]]:
    """The cells of the columns of a reading, each after its number of rows; of grids those that are stated."""
    source = "rc2025" if table == "5" else "rc2024"
    sizes = data_rows(source, table).drop_duplicates("row").set_index("row").n_instances
    for cell in cells_of(source, table):
        size = int(sizes[cell.row])
        if cell.reason or cell.method not in methods or (name == "qda-map-wide" and cell.stream not in FOUND_ON):
            continue
        if name in RULE_GRIDS and size > LARGE:
            continue
        if name not in REMEDIES:
            yield size, cell
        elif cell.stream in NO_ESTIMATE[table]:
            yield size, replace(cell, arguments=cell.arguments | {"variant": source})


def _in_order() -> Iterator[Cell]:
    """The printed numbers of the columns that each reading names, large data sets last."""
    named = [
        (size, str(name), table, cell)
        for name, row in readings.stated().iterrows()
        for table in (row.tables.split() if name in PROTOCOLS else ())
        for size, cell in _concerned(str(name), table, row["columns"].split())
    ]
    for _, name, table, cell in sorted(named, key=lambda entry: max(entry[0], LARGE)):
        yield replace(
            cell,
            source=STUDY,
            table=STUDY_NAME,
            protocol=name_of(PROTOCOLS[name]),
            arguments=cell.arguments | {"reading": name, "source": cell.source},
            setting_value=f"{table}|{name}",
        )


Study(STUDY_NAME, rows=_in_order, quick=False)


def judged_readings() -> pd.DataFrame:
    """Each printed number of the columns concerned under each reading, by the scorecard's tolerance.

    Of a grid only the form that has most numbers to the last digit on the sets it may be chosen on.

    Returns
    -------
    DataFrame
        The rows of `readings.judged_readings`, with ``sound``: whether the closed form of the table, from which the
        learners start, comes out on the data set.
    """
    return _with_sound(readings.judged_readings(STUDY_NAME, ["rc2024", "rc2025"], chosen=_best_of_grid))


def columns_explained(cells: pd.DataFrame) -> pd.DataFrame:
    """Per reading and printed column: how many numbers agree as stated and under the reading.

    Parameters
    ----------
    cells : DataFrame
        Rows of `judged_readings`.

    Returns
    -------
    DataFrame
        Indexed by ``reading, table, metric``: ``numbers``, ``stated``, ``under`` the reading; ``sound``, those of data
        sets on which the closed form of the table comes out, and ``sound_under``; ``accepted``: all numbers agree under
        the reading, of those of `EXACT_RULES` all sound ones, and not all of these did as stated; no column of a
        remedy where no estimate exists, which is tried on single sets.
    """
    sound = cells.assign(sound_under=cells.sound & cells.agrees, sound_stated=cells.sound & cells.agreed)
    found = sound.groupby(["reading", "table", "metric"], sort=False).agg(
        numbers=("agrees", "size"),
        stated=("agreed", "sum"),
        under=("agrees", "sum"),
        sound=("sound", "sum"),
        sound_stated=("sound_stated", "sum"),
        sound_under=("sound_under", "sum"),
    )
    exact = found.index.get_level_values("reading").isin([*EXACT_RULES, "nb-hold-exact-reach"])
    asked = found.numbers.where(~exact, found.sound)
    agree, agreed = found.under.where(~exact, found.sound_under), found.stated.where(~exact, found.sound_stated)
    whole = ~found.index.get_level_values("reading").isin(list(REMEDIES))
    return found.drop(columns="sound_stated").assign(accepted=whole & (agree == asked) & (agreed < asked))


def explained_numbers(cells: pd.DataFrame) -> pd.DataFrame:
    """The numbers of accepted columns that differ as stated: those of sound data sets, and of others those that agree
    under the reading (added after the runs); rows of `judged_readings`.

    ``suggested``: they are among those that suggested `EXACT_RULES`, on which its grid was chosen, or vehicle.
    """
    accepted = columns_explained(cells).accepted
    chosen = accepted.reindex(pd.MultiIndex.from_frame(cells[["reading", "table", "metric"]])).to_numpy()
    suggested = (cells.table == "III") & cells.dataset.str.replace(" ", "_").isin([*FOUND_ON, "vehicle"])
    return cells.assign(suggested=suggested)[chosen & (cells.sound | cells.agrees) & ~cells.agreed]


def _with_sound(cells: pd.DataFrame) -> pd.DataFrame:
    """Whether the closed form comes out: the column of Tables II to V and IX from which the learners start; of "reach"
    also errors and iterations of the other learner, which it depends on (a condition added after the runs)."""
    tables = [table for table in cells.table.unique() if table in tables_of_rc2024.RC2024_MODELS]
    stated = pd.concat([judged("rc2024", table, results("rc2024", table)) for table in tables])
    starts = stated[stated.method.isin(["ML", "MAP"])].set_index(["table", "row"]).agrees
    others = stated[stated.method.isin(["GD", "DFE"])].groupby(["table", "row"]).agrees.all()
    rows = pd.MultiIndex.from_frame(cells[["table", "row"]])
    start, other = (of_row.reindex(rows).eq(True).to_numpy() for of_row in (starts, others))
    return cells.assign(sound=start & (other | (cells.metric != "reach").to_numpy()))


def _best_of_grid(name: str, table: str, part: pd.DataFrame) -> pd.DataFrame:
    """Numbers of the form of a grid with most of them to the last digit on `FOUND_ON`, named by its number."""
    if name not in (*FORMS, *RULE_GRIDS):
        return part
    method = part.method.iloc[0].partition("|")[0]
    printed = published.table("rc2024", table)
    printed = printed[printed.method == method].set_index(["row", "metric"])[["value", "value_printed"]]
    cells = part.join(printed.rename(columns={"value": "printed"}), on=["row", "metric"])
    exact = (cells.value - cells.printed).abs() <= published.half_unit(cells.value_printed) + ROUNDING
    hits = exact[cells.dataset.isin(FOUND_ON)].groupby(cells.method).sum()
    best = hits.idxmax()
    return part[part.method == best].assign(method=method, form=best)
