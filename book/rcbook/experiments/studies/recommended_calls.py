"""Does a recommended call do worse than nothing, and say nothing? (chapter 11)

Fixed before the first cell was run.

- Tables: ten mixed ones (`MIXED`), raw, with the gaps that they have, and those of TabMini with other names.
  Three stratified folds, of rows shuffled once; at most `ROWS` rows of a fold's complement for training, stratified,
  and all rows of the fold for testing. Classes of fewer than `LEAST_CLASS` rows are left out.
- Models: naive Bayes, a product with QDA for the numbers, and a tree of intervals, each on the columns that
  `TableColumns` makes. QDA is left out of tables with more than `MOST_NUMBERS` numbers, for the time.
- Calls, as the pages recommend them: `RiskCalibration(model)`, `RiskCalibrationCV(model)`, and
  `TableClassifier(random_state=0)`, which has no model of ours. Beside them the class frequencies and the closed form.
  A call that refuses a table in a sentence has no row.
- Hypothesis: no fit of a call is worse than the class frequencies by more than `WORSE` in its log-loss on the rows of
  the fold, or than its closed form by as much, without the sentence that says so: a warning of the first two calls,
  ``advice_`` ("not worth it") of the third, which stands beside the class frequencies alone.

The folds have 50 to 1,250 rows, and a log-loss of 50 rows has itself a standard error of about .1: so ``excess_error``
is stored beside each excess, the standard error of the paired difference, and the excesses above two of these are
counted apart.

Told afterwards. cylinder_bands is refused by each call, since a column of it is text that hardly repeats, and has no
row. The hypothesis is refuted: `silent` has the counts. Part of the trees of intervals is not the library's fault: the
study cuts the numbers of all training rows before `RiskCalibrationCV` divides them, so that rows left out have had a
say in the cuts. `TableClassifier` cuts anew in each fold.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline

from rcbook.experiments.cells import SEARCHED, Cell, Row, Study
from rcbook.experiments.studies import small_tables
from rcbook.experiments.studies.tables_with_rivals import frame_of
from rcpkg import (
    QDA,
    TAN,
    CategoricalNB,
    GaussianNB,
    InvalidStatistics,
    ProductModel,
    RiskCalibration,
    RiskCalibrationCV,
    TableClassifier,
)
from rcpkg.base import Array
from rcpkg.table import Columns, TableColumns

STUDY_NAME = "recommended-calls"
MIXED = (
    *("horse_colic", "hepatitis", "credit_screening", "cylinder_bands", "heart_cleveland", "german", "annealing"),
    *("autos", "hypothyroid", "sick"),
)
FOLDS, ROWS, LEAST_CLASS, MOST_NUMBERS = 3, 600, 6, 23
WORSE = 0.02
SENTENCE, ADVICE = "rows left out", "not worth it"  # words of the warnings, and of the advice
TABLE = "TableClassifier"
MODELS = ("naive Bayes", "QDA", "tree of intervals")
CALLS = {"RiskCalibration": RiskCalibration, "RiskCalibrationCV": RiskCalibrationCV}


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and class numbers of a table, shuffled once."""
    X, y = frame_of(name) if name in MIXED else small_tables.rows_of(name)
    rows = np.random.default_rng(0).permutation(
        np.flatnonzero(np.isin(y, np.flatnonzero(np.bincount(y) >= LEAST_CLASS)))
    )
    return X.iloc[rows].reset_index(drop=True), np.unique(y[rows], return_inverse=True)[1]


def model_of(kind: str, columns: Columns) -> Any:
    """A closed form for such columns."""
    numbers, _, categories = columns
    codes = CategoricalNB(prior_strength=1.0)
    if kind == "tree of intervals":
        return ProductModel([("all", TAN(), [*numbers, *categories])])
    gaussian = GaussianNB() if kind == "naive Bayes" else QDA()
    return ProductModel([("numbers", gaussian, numbers), ("categories", codes, categories)])


def losses_of(P: Array, y: np.ndarray) -> Array:
    """Log-losses of rows."""
    return -np.log(np.maximum(P[np.arange(len(y)), y], np.finfo(float).tiny))


def measure(cell: Cell, seed: int) -> list[Row]:
    """A row for each fold and call: log-loss, and the excess over the class frequencies and the closed form."""
    X, y = table_of(cell.row)
    found = []
    for fold, (train, test) in enumerate(StratifiedKFold(FOLDS).split(X, y)):
        if len(train) > ROWS:
            train = train_test_split(train, train_size=ROWS, stratify=y[train], random_state=0)[0]
        rows, labels = X.iloc[train].reset_index(drop=True), y[train]
        frequencies = losses_of(np.tile(np.bincount(labels) / len(labels), (len(test), 1)), y[test])
        case = {"dataset": cell.row, "model": cell.method, "fold": fold, "n": len(train), "n_test": len(test)}
        for call, losses, closed, says_so in fits(
            cell.method, rows, labels, X.iloc[test].reset_index(drop=True), y[test]
        ):
            row = case | {
                "call": call,
                "log_loss": losses.mean(),
                "frequencies": frequencies.mean(),
                "says_so": says_so,
            }
            excess = {"of_frequencies": losses - frequencies} | (
                {} if closed is None else {"of_closed": losses - closed}
            )
            for rival, difference in excess.items():
                row[f"excess_{rival}"] = difference.mean()
                row[f"excess_error_{rival}"] = difference.std(ddof=1) / np.sqrt(len(difference))
            found.append(row)
    return found


def columns_of(X: pd.DataFrame) -> Columns:
    """What the columns are; a table with text that is no category has no row."""
    try:
        return TableColumns().fit(X).columns_
    except ValueError as error:
        raise InvalidStatistics(str(error)) from error


def fits(kind: str, X: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame, labels: np.ndarray) -> Any:
    """The calls of a kind of model, their losses, those of the closed form, and whether they say so."""
    with warnings.catch_warnings(action="ignore"):
        columns = columns_of(X)
        if kind == TABLE:
            table = TableClassifier(random_state=0).fit(X, y)
            yield TABLE, losses_of(table.predict_proba(rows), labels), None, ADVICE in table.advice_
            return
        if kind == "QDA" and not 0 < len(columns.numbers) <= MOST_NUMBERS:
            raise InvalidStatistics(f"no model of {len(columns.numbers)} numbers")
        prepared = TableColumns(columns=columns, intervals=kind == "tree of intervals")
        model = model_of(kind, columns)
        closed = losses_of(make_pipeline(prepared, clone(model)).fit(X, y).predict_proba(rows), labels)
    for call, learner in CALLS.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                fit = make_pipeline(clone(prepared), learner(clone(model))).fit(X, y)
            except ValueError:
                continue
        words = " ".join(str(each.message) for each in said)
        with warnings.catch_warnings(action="ignore"):
            yield call, losses_of(fit.predict_proba(rows), labels), closed, SENTENCE in words


def silent(table: pd.DataFrame, rival: str) -> pd.DataFrame:
    """A row a call: fits, those that say so, those worse than a ``rival`` ("frequencies" or "closed") by more than
    `WORSE`, of these those that do not say so, and of these those worse by two standard errors."""
    excess, error = table[f"excess_of_{rival}"], table[f"excess_error_of_{rival}"]
    worse = excess > WORSE
    kept_quiet = worse & ~table.says_so.astype(bool)
    marks = {"fits": excess.notna(), "say so": table.says_so.astype(bool), "worse": worse, "silent": kept_quiet}
    return pd.DataFrame(marks | {"silent, by 2 errors": kept_quiet & (excess > 2 * error)}).groupby(table.call).sum()


Study(
    STUDY_NAME,
    rows=lambda: dict.fromkeys((*MIXED, *small_tables.registered().index)),
    methods=(*MODELS, TABLE),
    protocol=measure,
    tolerance=SEARCHED,
    quick=lambda cell: cell.row == "labor" and cell.method == "naive Bayes",
)
