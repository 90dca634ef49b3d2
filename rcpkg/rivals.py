"""Is it worth it: a classifier of this library beside its rivals on one table, complete and with values hidden."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.compose import make_column_selector as columns_of
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import check_random_state

from rcpkg.base import Array
from rcpkg.calibration.in_view import copies
from rcpkg.checks import check_number, check_sequence, number_labels, refusal
from rcpkg.columns import as_labels
from rcpkg.progress import printed, tell
from rcpkg.table import TableClassifier, TableColumns, as_frame, error_and_log_loss, levels_of

#: Shares of the values that copies lose, evenly spaced. In the mean over rows that lack none to three quarters of
#: theirs, .5 alone changes the log-loss of boosting on iris, wine and breast cancer by .03, .004 and -.006, six shares
#: by .06, -.05 and -.001.
RATES = (0.25, 0.5, 0.75)
OURS = "rcpkg"
BOOSTING, ON_COPIES, LOGISTIC = "boosting", "boosting on masked copies", "logistic regression"
COMPLETE, HIDDEN = "complete", "hidden"


class MaskedCopies(NamedTuple):
    """Rows and masked copies of them, their labels, and weights: a row and its copies together count as the row."""

    X: Any
    y: NDArray
    sample_weight: Array


def mask_copies(
    X: Any,
    y: ArrayLike,
    rates: float | Sequence[float] = RATES,
    random_state: int | np.random.RandomState | None = None,
) -> MaskedCopies:
    """Rows beside copies of themselves from which values are hidden: how any classifier can learn to do with gaps.

    Parameters
    ----------
    X : array-like or frame of shape (n, d)
        Rows; what is missing already stays so.
    y : array-like of shape (n,)
        Labels.
    rates : float or sequence of floats, default=(0.25, 0.5, 0.75)
        A copy for each: every value is hidden with this probability, in one of 64 patterns. Copies that lose nothing
        are left out.
    random_state : int or RandomState, optional
        Draws the patterns.

    Returns
    -------
    MaskedCopies
        X, a frame where it was one, else an array, y and ``sample_weight``.

    References
    ----------
    Saar-Tsechansky and Provost (2007) compare classifiers for fewer features with imputation.

    Examples
    --------
    >>> from rcpkg import mask_copies
    >>> X, y, weight = mask_copies([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], rates=0.5, random_state=0)
    >>> len(X) == len(y) == len(weight), weight.sum().item()
    (True, 2.0)
    """
    rates = check_sequence("rates", np.atleast_1d(rates).tolist(), 0.0)
    check_number("rates", rates.max().item(), 0, 1)
    frame, y = as_frame(X), np.asarray(as_labels(y)).ravel()
    if len(y) != len(frame):
        raise ValueError(f"X has {len(frame)} rows and y {len(y)}: it must hold one a row")
    masked = copies(np.where(frame.isna(), np.nan, 1.0), rates, check_random_state(random_state))
    shown = frame.iloc[masked.row].reset_index(drop=True).where(~np.isnan(masked.X))
    given = shown.set_axis(X.columns, axis=1) if isinstance(X, pd.DataFrame) else shown.to_numpy()
    return MaskedCopies(given, y[masked.row], masked.share)


@dataclass(frozen=True)
class Comparison:
    """The decision card of `compare`; printed, it is the table and the verdicts.

    Attributes
    ----------
    table : DataFrame
        A row a learner and condition ("complete", "hidden"): log_loss and error in the mean over the folds, and
        difference, its log-loss less that of the classifier, with std_error.
    verdicts : dict
        For each condition "use it", "tie", "take …" or "undecided".
    margin : float
        Nats within which log-losses count as equal.

    Examples
    --------
    >>> import pandas as pd
    >>> from rcpkg import Comparison
    >>> table = pd.DataFrame({"learner": ["rcpkg", "boosting"], "condition": "complete", "log_loss": [0.123, 0.145]})
    >>> print(Comparison(table, {"complete": "use it"}, margin=0.02))  # as `compare` makes it
     learner condition  log_loss
       rcpkg  complete     0.123
    boosting  complete     0.145
    complete: use it
    """

    table: pd.DataFrame
    verdicts: Mapping[str, str]
    margin: float

    def __str__(self) -> str:
        verdicts = [f"{condition}: {verdict}" for condition, verdict in self.verdicts.items()]
        return "\n".join([self.table.round(3).to_string(index=False), *verdicts])

    __repr__ = __str__


def rivals(random_state: int = 0) -> dict[str, Any]:
    """Logistic regression behind imputation with indicators, and boosting, for frames of floats and text."""
    numbers, texts = columns_of(dtype_include="number"), columns_of(dtype_exclude="number")
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("n", filled, numbers), ("c", one_hot, texts)])
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=random_state)
    steps = {  # whatever container the user asks scikit-learn for, which sparse columns do not fit in
        LOGISTIC: (columns.set_output(transform="default"), LogisticRegression(max_iter=1000)),
        BOOSTING: (FunctionTransformer(with_categories).set_output(transform="default"), boosting),
    }
    return {name: make_pipeline(*each) for name, each in steps.items()}


def compare(
    X: Any,
    y: ArrayLike,
    estimator: Any = None,
    *,
    hidden: float = 1 / 3,
    margin: float = 0.02,
    level: float = 0.05,
    cv: int = 5,
    random_state: int | None = 0,
    verbose: int = 0,
) -> Comparison:
    """Whether a classifier of this library is worth it on a table: beside logistic regression and boosting.

    All learners are fitted to the same folds, with the settings that they have by default, and judged on the same rows
    left out, as they are and with values hidden at random. Boosting is also fitted to masked copies of the rows.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
        A raw table.
    y : array-like of shape (n,)
        Labels.
    estimator : classifier, optional
        ``TableClassifier(cv=3)`` by default.
    hidden : float, default=1/3
        Probability with which a value is hidden.
    margin : float, default=0.02
        Nats of log-loss within which two learners count as equal.
    level : float, default=0.05
        Of each one-sided test.
    cv : int, default=5
        Stratified folds.
    random_state : int, optional
        Seed of the folds, of what is hidden and of the learners.
    verbose : int, default=0
        1 prints a line for each learner and fold.

    Returns
    -------
    Comparison
        Of the rival of least log-loss: "tie" where two one-sided tests find the difference to be less than
        ``margin`` either way; else "use it" or "take …" where a one-sided test finds the classifier, or the
        rival, to have less; else "undecided". The tests are Student's t of the differences between folds, with the
        variance of Nadeau and Bengio (2003), since training rows are shared. The rival is chosen by the same rows,
        which favours it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, RiskCalibrationCV, compare
    >>> card = compare(*load_iris(return_X_y=True), RiskCalibrationCV(LDA()), cv=3)
    >>> sorted(card.verdicts)
    ['complete', 'hidden']
    """
    check_number("hidden", hidden, 0, 1)
    check_number("margin", margin, 0)
    check_number("level", level, 0, 1, above=True)
    check_number("cv", cv, 2, integer=True)
    if estimator is not None and not (is_classifier(estimator) and hasattr(estimator, "predict_proba")):
        raise refusal("estimator", "be a classifier with predict_proba", estimator)
    frame, (classes, y) = as_frame(X, levels_of(X)), number_labels(np.asarray(as_labels(y)).ravel())
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    estimator = TableClassifier(cv=3, random_state=seed) if estimator is None else estimator
    names = [OURS, *rivals(), ON_COPIES]
    losses = np.zeros((len(names), 2, 2, cv))  # learner, condition, error or log-loss, fold
    divisions = StratifiedKFold(cv, shuffle=True, random_state=seed).split(frame, y)
    with printed(verbose):
        for fold, (train, held) in enumerate(divisions):
            rows, shown = frame.iloc[train], frame.iloc[held].reset_index(drop=True)
            lost = np.random.default_rng([seed, fold]).uniform(size=shown.shape) < hidden
            conditions = {COMPLETE: shown, HIDDEN: shown.mask(lost)}
            for place, (name, model) in enumerate(_fitted(estimator, rows, y[train], seed).items()):
                for condition, new in enumerate(conditions.values()):
                    P = np.zeros((len(new), len(classes)))
                    P[:, model.classes_] = model.predict_proba(new)
                    losses[place, condition, :, fold] = error_and_log_loss(P, y[held]).mean(axis=1)
                tell("fold %d of %s, %s: log-loss %.4f", fold + 1, cv, name, losses[place, 0, 1, fold])
    return _card(names, losses, margin, level)


def _fitted(estimator: Any, rows: pd.DataFrame, y: NDArray[np.intp], seed: int) -> dict[str, Any]:
    """All learners, fitted to some rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = clone(estimator)
        raw = isinstance(ours, TableClassifier)
        fitted = {OURS: (ours if raw else make_pipeline(TableColumns(), ours)).fit(rows, y)}
        for name, rival in rivals(seed).items():
            fitted[name] = make_pipeline(TableColumns(), rival).fit(rows, y)
        columns = TableColumns().fit(rows, y)
        copied = mask_copies(columns.transform(rows), y, random_state=seed)
        boosting = rivals(seed)[BOOSTING]
        boosting.fit(copied.X, copied.y, **{f"{boosting.steps[-1][0]}__sample_weight": copied.sample_weight})
        return fitted | {ON_COPIES: make_pipeline(columns, boosting)}


def with_categories(X: pd.DataFrame) -> pd.DataFrame:
    """Columns of text as pandas' categories, which boosting knows by their type."""
    texts = X.select_dtypes(exclude="number").columns
    return X.astype(dict.fromkeys(texts, "category"))


def _card(names: list[str], losses: Array, margin: float, level: float) -> Comparison:
    """The table and the verdicts of errors and log-losses by learner, condition and fold; the first learner is ours."""
    k, means, excess = losses.shape[-1], losses.mean(axis=-1), losses[:, :, 1] - losses[0, :, 1]
    difference, error = excess.mean(axis=-1), np.sqrt((1 / k + 1 / (k - 1)) * excess.var(axis=-1, ddof=1))
    columns = {"log_loss": means[:, :, 1], "error": means[:, :, 0], "difference": difference, "std_error": error}
    rows = pd.MultiIndex.from_product([(COMPLETE, HIDDEN), names], names=["condition", "learner"])
    table = pd.DataFrame({name: values.T.ravel() for name, values in columns.items()}, index=rows).reset_index()
    width, verdicts = error * student.ppf(1 - level, k - 1), {}
    for c, condition in enumerate((COMPLETE, HIDDEN)):
        best = 1 + int(np.argmin(means[1:, c, 1]))
        verdicts[condition] = _verdict(difference[best, c], width[best, c], margin, names[best])
    return Comparison(table, verdicts, margin)


def _verdict(excess: float, width: float, margin: float, rival: str) -> str:
    """What the log-loss in ``excess`` of a ``rival`` over ours, with the half ``width`` of its interval, says."""
    if -margin < excess - width and excess + width < margin:
        return "tie"
    if excess > width:
        return "use it"
    return f"take {rival}" if excess < -width else "undecided"
