"""A raw table to a calibrated classifier: what its columns are, which models are tried, and which one is taken."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from rcpkg._bases import TransformerMixin
from rcpkg.base import Array, Estimator, GenerativeClassifier, constructed
from rcpkg.calibration import RiskCalibration, RiskCalibrationCV
from rcpkg.calibration.choose_weight import TARGET_WEIGHTS
from rcpkg.calibration.in_view import Copies, check_in_view, copies
from rcpkg.calibration.left_out import mean_and_error
from rcpkg.checks import check_magnitude, check_number, counting, feature_name, refuse_labels, warn
from rcpkg.choice import folds
from rcpkg.columns import in_columns
from rcpkg.discretization import MDLDiscretizer
from rcpkg.families import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    ClosedFormClassifier,
    GaussianNB,
    Mixture,
    ProductModel,
    SharedVarianceGaussianNB,
)
from rcpkg.linalg import EPS
from rcpkg.progress import tell, telling
from rcpkg.rows import in_memory

# Numbers that decide something: what each means, and what half or twice of it does. "16 tables" are of 150 to 1,000
# rows, judged by three folds, with numbers as naive Bayes or LDA, calibrated.

#: Skewness of numbers beyond which they are transformed. On 16 tables half loses .001 to .003 nats a row in the mean,
#: and twice gains .002, of which single tables gain or lose up to .04.
SKEWED = 1.0
#: Share of the rows; where more have one value, as zero, a power makes the others nearly one value, too. On 16 tables
#: half loses .003 nats a row in the mean, twice gains .0006.
MOST_OF_A_VALUE = 0.4
#: Share of the rows that have a value of their own, from which on text is no category; and text of no more values is
#: one whatever the share. Of 315 columns of text of 42 tables one is no category, of 235 values in 270
#: rows, also with half of either or twice of the second; with twice of the first all are.
FREE_TEXT, FEW_VALUES = 0.5, 20
#: In files, in any case of letters; among numbers they would make a category of each number
MISSING_MARKS = ("?", "-", ".", "", "na", "n/a", "nan", "<na>", "null")
#: Rows beyond which one weight of the target does for all: QDA of ten numbers of 5,000 rows takes .28 in place of .09 s
#: with nine weights, and gains .0034 nats a row; of half .15 and .006, of twice .6 and .0004.
MOST_ROWS_BY_WEIGHT = 5000
#: Parameters of a Gaussian beyond which likewise, those of 23 columns: QDA on 1,500 rows takes .55 s with nine weights,
#: with half .16 and with twice 2 s
MOST_PARAMETERS_BY_WEIGHT = 300
#: Parameters of a Gaussian beyond which variances are shared, those of 61 columns: QDA on 1,500 rows takes .8 s, with
#: half as many as well, and with twice 1.0 s
MOST_PARAMETERS_OF_FULL = 2000
#: Weight of the pooled target of trees, which have many parameters for their rows. On 16 tables half gains .03 nats a
#: row in the mean, from -.11 to .03, and twice loses .05.
TREE_WEIGHT = 30.0
#: Folds that choose the weight for intervals. On seven tables two lose .007 nats a row in two thirds of the time, and
#: six gain .0005 in twice of it; five gain .002 on 69 fits.
FOLDS_OF_CUTS = 3
LEAST_CLASS_OF_CUTS = FOLDS_OF_CUTS + 1  # rows of a class, of which a fold within a fold still leaves one


class Columns(NamedTuple):
    """Names of the columns of numbers, of those that are skewed, and of categories."""

    numbers: list[Any]
    skewed: list[Any]
    categories: list[Any]


@constructed
class TableColumns(TransformerMixin, Estimator):
    """Numbers as floats, those that are skewed by Yeo and Johnson's power transform, and categories as text.

    Missing values stay missing. Numbers beyond those of the training rows count as the nearest of these, since a
    Gaussian is certain of what lies far out. Columns of text are categories, and of numbers those that have two values;
    ordered categories of pandas are numbers.

    Parameters
    ----------
    columns : Columns, optional
        What is known of the columns already, so that the rows of a fold do not decide otherwise.
    intervals : bool, default=False
        Whether numbers are cut to intervals that tell the classes apart (`MDLDiscretizer`).

    Attributes
    ----------
    columns_ : Columns
        Which columns are what.

    Raises
    ------
    ValueError
        Where a column holds text that hardly ever repeats.
    """

    columns: Columns | None = None
    intervals: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.intervals
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Decide what the columns are."""
        self._levels = levels_of(X)
        frame = as_frame(X, self._levels)
        self.columns_ = _columns_of(frame) if self.columns is None else self.columns
        numbers = frame[self.columns_.numbers].astype(float)
        check_magnitude(numbers.to_numpy(), fitting=True, names=numbers)
        self._unseen = [name for name in frame if frame[name].isna().all()]  # in a fold, say: of no kind
        self._text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
        self._known, self._range = list(frame.columns), (numbers.min().to_numpy(), numbers.max().to_numpy())
        self._power = self._cuts = None
        if self.columns_.skewed:
            # standardised first, since the power of what varies little about a large mean is beyond all bounds
            self._power = make_pipeline(StandardScaler(), PowerTransformer()).fit(numbers[self.columns_.skewed])
        if self.intervals and self.columns_.numbers:
            self._cuts = MDLDiscretizer().fit(numbers, y)
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """The numbers and the categories of rows, by their names."""
        frame = as_frame(X, self._levels)
        if list(frame.columns) != self._known:
            raise ValueError(f"X must have the columns of the training rows, {self._known}; got {list(frame.columns)}")
        frame = frame.assign(**dict.fromkeys(self._unseen, np.nan))  # of which no model can tell
        numbers = pd.DataFrame({name: _as_numbers(frame, name) for name in self.columns_.numbers}, index=frame.index)
        numbers = numbers.clip(*self._range, axis=1)
        if self._cuts is not None:
            numbers = pd.DataFrame(self._cuts.transform(numbers), columns=numbers.columns)
        elif self._power is not None:
            numbers[self.columns_.skewed] = self._power.transform(numbers[self.columns_.skewed])
        texts = {name: _as_text(_as_in_training(frame, name, name in self._text)) for name in self.columns_.categories}
        return pd.DataFrame({**dict(numbers.items()), **texts})


def levels_of(X: Any) -> dict[str, list[Any]]:
    """The categories of the columns of a frame of pandas that are ordered, by their names."""
    columns = _named(X).items() if isinstance(X, pd.DataFrame) else ()
    ordered = {name: x.dtype for name, x in columns if isinstance(x.dtype, pd.CategoricalDtype) and x.dtype.ordered}
    return {name: dtype.categories.tolist() for name, dtype in ordered.items()}


def _named(X: pd.DataFrame) -> pd.DataFrame:
    """The frame with names of its columns that are text, also where they have several levels."""
    return X.set_axis([*map(str, X.columns)], axis=1).reset_index(drop=True)


def as_frame(X: Any, levels: dict[str, list[Any]] | None = None) -> pd.DataFrame:
    """X as a frame whose columns, with names that are strings, are numbers or text.

    Ordered categories stay what they are or, given their ``levels`` in training, are their places among these, whatever
    levels rows to predict declare; NaN where they are none of them.
    """
    given = _named(X) if isinstance(X, pd.DataFrame) else None
    X = in_columns(X if given is None else given)
    if not isinstance(X, pd.DataFrame):
        if issparse(X) or (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) != 2:
            dense = ", of which X.toarray() makes one" * issparse(X)
            raise ValueError(f"X must be a table of rows, an array or a frame; got {type(X).__name__}{dense}")
        X = pd.DataFrame(np.asarray(X)).infer_objects()
    frame = _named(X)
    if levels is None:
        return frame.assign(**{name: given[name] for name in levels_of(given)})  # of which numbers have become floats
    for name in levels.keys() & set(frame.columns):
        column = _as_in_training(frame, name, any(isinstance(level, str) for level in levels[name]))
        places = pd.Index(levels[name], dtype=object).get_indexer(column.astype(object))
        frame[name] = np.where(places < 0, np.nan, places)
    return frame


def _as_numbers(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column, which has held numbers in training, as floats."""
    numbers = pd.to_numeric(frame[name], errors="coerce").astype(float)
    text = numbers.isna() & frame[name].notna()
    if text.any():
        raise ValueError(
            f"{feature_name(frame, frame.columns.get_loc(name))} holds {frame[name][text].iloc[0]!r}, and held numbers "
            "in training: give None where its value is missing"
        )
    return numbers


def _numbers_in_place_of(X: Any) -> Any:
    """A table with zeros in the place of text, for validation of all that is not in its columns."""
    X = in_columns(X)
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame({name: _zeros_for(column.to_numpy()) for name, column in X.items()}, index=X.index)
    of_objects = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind not in "biuf"
    return np.column_stack([_zeros_for(column) for column in X.T]) if of_objects and X.size else X


def _zeros_for(column: NDArray) -> NDArray:
    """The column, with zeros in the place of text."""
    return np.array([value if not isinstance(value, str) else 0.0 for value in column.tolist()], dtype=float)


def _columns_of(frame: pd.DataFrame) -> Columns:
    """What the columns of training rows are; those without any value are left out."""
    numbers, skewed, categories = [], [], []
    for j, name in enumerate(frame.columns):
        column = frame[name].dropna()
        n_values = column.nunique()
        if not n_values:
            warn(f"{feature_name(frame, j)} holds missing values only, and is left out")
        elif not pd.api.types.is_numeric_dtype(frame[name].dtype) and isinstance(column.iloc[0], str):
            is_mark = column.astype(str).str.strip().str.lower().isin(MISSING_MARKS)
            if is_mark.any() and not is_mark.all() and pd.to_numeric(column[~is_mark], errors="coerce").notna().all():
                raise ValueError(
                    f"{feature_name(frame, j)} holds {column[is_mark].iloc[0]!r} among numbers: read it as a missing "
                    "value, with na_values of pandas.read_csv, or replace it by a word if it is a category"
                )
            if n_values > max(FEW_VALUES, FREE_TEXT * len(column)):
                raise ValueError(
                    f"{feature_name(frame, j)} holds text with {n_values} values in {len(column)} rows, which is no "
                    "category: drop it if it names the rows, or make numbers or categories of its words"
                )
            categories.append(name)
        elif n_values == 2:
            categories.append(name)
        else:
            numbers.append(name)
            deviation = column.astype(float) - column.astype(float).mean()
            deviation /= deviation.abs().max() or 1.0  # whose cube might overflow
            spread = np.sqrt((deviation**2).mean())
            commonest = column.value_counts().iloc[0] / len(column)
            if commonest <= MOST_OF_A_VALUE and abs((deviation**3).mean()) > SKEWED * spread**3:
                skewed.append(name)
    if not numbers and not categories:
        raise ValueError("X holds missing values only")
    return Columns(numbers, skewed, categories)


def _as_in_training(frame: pd.DataFrame, name: str, was_text: bool) -> pd.Series:
    """A column, as text if it ``was_text`` in training, or as floats."""
    column = frame[name]
    if not was_text:
        return _as_numbers(frame, name)
    if pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        j = frame.columns.get_loc(name)
        raise ValueError(f"{feature_name(frame, j)} holds numbers, and held text in training: make them the same text")
    return column


def _as_text(column: pd.Series) -> NDArray[np.object_]:
    """Values as text, None where they are missing."""
    return np.array([None if pd.isna(value) else str(value) for value in column], dtype=object)


class CandidateModel(NamedTuple):
    """A ``model`` of a table whose columns `TableColumns` has made, with its name; of numbers or of ``intervals``. Of
    equal ``rank`` are those that are equally simple, such as a closed form and what calibration makes of it."""

    name: str
    model: Any
    intervals: bool = False
    rank: int = 0


def candidates_of(
    columns: Columns, counts: ArrayLike, gaps: bool, in_view: Any = None, seed: int = 0
) -> list[CandidateModel]:
    """Candidates for a table with such ``columns``, and ``counts`` of rows of the classes, from the simplest to the
    richest."""
    numbers, categories, n_rows = columns.numbers, columns.categories, np.sum(counts)
    codes = CategoricalNB(prior_strength=1.0)

    def product(of_numbers: ClosedFormClassifier) -> ProductModel:
        return ProductModel([("numbers", of_numbers, numbers), ("categories", codes, categories)])

    one_weight = gaps or in_view is not None or n_rows > MOST_ROWS_BY_WEIGHT
    n_parameters = len(numbers) * (len(numbers) + 3) / 2  # of a Gaussian

    def calibrated(model: ClosedFormClassifier, one: bool = one_weight, **target: Any) -> Any:
        if one or target:
            return RiskCalibration(model, **target, gaps_in_view=in_view, random_state=seed)
        # the weight alone, as the studies of tables ran it; the target beside it would take twice the time
        return RiskCalibrationCV(model, target="pooled", target_weights=TARGET_WEIGHTS, cv="loo")

    naive = product(GaussianNB())
    models = [CandidateModel("naive Bayes", naive), CandidateModel("naive Bayes, calibrated", calibrated(naive))]
    tied = len(models)
    if numbers:
        name, model = "naive Bayes of intervals, calibrated", ProductModel([("all", codes, [*numbers, *categories])])
        if one_weight or np.min(counts) < LEAST_CLASS_OF_CUTS:
            models.append(CandidateModel(name, calibrated(model, True), True))
        else:
            # rows that choose the weight must have no say in the cuts, so that folds make these anew: of rows that had
            # one, the log-loss came out .13 too low in the mean of 69 fits, and the weight too small
            cuts = TableColumns(columns=columns._replace(skewed=[]), intervals=True)
            chosen = RiskCalibrationCV(
                make_pipeline(cuts, model), target="pooled", target_weights=TARGET_WEIGHTS, cv=FOLDS_OF_CUTS
            )
            models.append(CandidateModel(name, chosen))
    full_covariances = len(numbers) > 1 and n_parameters <= min(n_rows, MOST_PARAMETERS_OF_FULL)
    one_for_gaussians = one_weight or n_parameters > MOST_PARAMETERS_BY_WEIGHT
    if n_parameters > MOST_PARAMETERS_OF_FULL:
        models.append(CandidateModel("shared variances, calibrated", calibrated(product(SharedVarianceGaussianNB()))))
    elif len(numbers) > 1:
        models.append(CandidateModel("LDA, calibrated", calibrated(product(LDA()), one_for_gaussians)))
    if full_covariances:
        models.append(CandidateModel("QDA, calibrated", calibrated(product(QDA()), one_for_gaussians)))
    for k in (2, 3):
        mixture = Mixture(naive, n_components=k, random_state=seed)
        models.append(CandidateModel(f"mixture of {k}, calibrated", calibrated(mixture, True)))
    if full_covariances:
        full = Mixture(product(QDA()), n_components=2, random_state=seed)
        models.append(CandidateModel("mixture of 2 full Gaussians, calibrated", calibrated(full, True)))
    if len(numbers) + len(categories) > 1:
        tree = ProductModel([("all", TAN(), [*numbers, *categories])])
        models.append(
            CandidateModel("tree of intervals, calibrated", calibrated(tree, target_weight=TREE_WEIGHT), bool(numbers))
        )
    return models[:tied] + [candidate._replace(rank=k) for k, candidate in enumerate(models[tied:], start=1)]


@constructed
class TableClassifier(GenerativeClassifier):
    """A raw table, with numbers, categories and gaps, to a calibrated classifier.

    It sees what the columns are, tries joint models of this library, calibrated or not, by folds, and takes the
    simplest whose log-loss on rows left out is within one standard error of the least. A closed form and what
    calibration makes of it are equally simple: of these the better is taken.

    What ``report_`` says of a row comes from fits that have not seen its label: in each fold parameters, cuts of
    numbers to intervals, and the weight of a target are learnt anew from the rows outside. Rows that choose the weight
    are left out likewise: for intervals by three folds within the fold, each with cuts of its own, in place of
    leave-one-out. What the columns are is decided once, from all rows without their labels.

    One row in n + 1 may be of any class whatever its features are: with p(x, y) of the model that was taken, and the
    class frequencies π_y of training rows of weight n, it predicts by (1 − ε) p(x, y) + ε π_y p(x), ε = 1/(n + 1), so
    that no class is impossible.

    Parameters
    ----------
    candidates : "auto" or list of (name, estimator), default="auto"
        What is tried, the simplest first. "auto": naive Bayes in closed form; calibrated naive Bayes, naive Bayes of
        intervals, LDA (for more than 61 numbers Gaussians with shared variances) and, where rows are no fewer than
        the parameters of a covariance, QDA for the numbers, mixtures of 2 and 3 naive Bayes and, likewise, of 2 full
        Gaussians, and a tree of intervals. Estimators of a list take a frame of floats and text.
    gaps_in_view : float, sequence of floats, "training" or boolean array of shape (K, d), optional
        What new rows will lack, as in `RiskCalibration`: candidates are calibrated and judged with these gaps, too.
    cv : int or splitter, default=5
        Folds by which candidates are judged.
    budget : float, optional
        Seconds after which no further candidate is tried, and one that is being tried ends with its fold: what lasts
        longer is one fold, and the fit of the model that is taken. The first candidate is tried whatever it costs.
        None: all are tried, which alone gives the same choice each time.
    random_state : int or RandomState, optional
        Seed of the folds, of the starts of mixtures and of the gaps in view.
    cost : array of shape (r, r), optional
        ``cost[g, h]`` is the cost of predicting class g when the truth is class h: `predict` takes the class of least
        expected cost. Which candidate is taken does not depend on it.
    verbose : int, default=0
        1 prints a line for each candidate and, where it lasts, for its iterations; 2 each of these.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        Log class probabilities of the model that was taken.
    report_ : DataFrame
        A row a candidate, in the order in which they are tried: candidate, log_loss and error on rows left out,
        std_error (of the difference of its log-loss from the least), seconds, taken, and note: why a candidate was
        not judged (the budget was spent, the fit failed), with infinite losses. The first is "class frequencies",
        those outside the fold. The least of several log-losses is itself a little too low for rows to come.
    advice_ : str
        What was taken, and whether it is worth it.
    best_estimator_ : Pipeline
        The columns and the model, fitted to all rows; of the model are also ``score_samples``, ``conditional_mean`` and
        what explains its predictions, for the columns as they are then.
    columns_ : Columns
        Numbers, those that are transformed since they are skewed, and categories.

    Raises
    ------
    ValueError
        In ``fit``, where a column holds text that is no category, dates, or other things that are no feature.

    See Also
    --------
    rcpkg.rivals.compare : Whether this classifier or a rival does better on a table.

    References
    ----------
    None of the sources. The one-standard-error rule: Breiman, Friedman, Olshen and Stone (1984).

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import TableClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> X = X.assign(strong=(X.alcohol > 13).map({True: "yes", False: "no"})).mask(X.hue < 0.6)
    >>> model = TableClassifier(cv=3, random_state=0).fit(X[["alcohol", "hue", "strong"]], y)
    >>> model.columns_.categories, model.report_.candidate[model.report_.taken].item()
    (['strong'], 'naive Bayes, calibrated')
    """

    candidates: Literal["auto"] | Sequence[tuple[str, Any]] = "auto"
    gaps_in_view: Any = None
    cv: Any = 5
    budget: float | None = None
    random_state: int | np.random.RandomState | None = None
    cost: ArrayLike | None = None
    verbose: int = 0

    advice_: ClassVar[str]
    best_estimator_: ClassVar[Any]
    columns_: ClassVar[Columns]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    @in_memory
    @telling
    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Try the candidates, and fit the one that is taken to all rows; of `Rows` one block."""
        check_in_view(self.gaps_in_view)
        if self.budget is not None:
            check_number("budget", self.budget, 0)
        frame, y, weight, _ = self._counting_rows(X, y, sample_weight)
        frame = frame.reset_index(drop=True)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        self.columns_ = TableColumns().fit(frame, y).columns_
        candidates = self._candidates(frame, y, seed)
        present = counting(sample_weight, _num_samples(X))
        divisions = list(self._divisions(y, present, seed))
        judged = np.unique(np.concatenate([held for _, held in divisions]))  # all rows, but for some splitters
        deadline = time.perf_counter() + (np.inf if self.budget is None else self.budget)
        losses = np.full((1 + len(candidates), 2, len(y)), np.inf)  # those of the class frequencies first
        for train, held in divisions:
            counts = np.bincount(y[train], None if weight is None else weight[train], minlength=len(self.classes_))
            losses[0][:, held] = error_and_log_loss(np.tile(counts / counts.sum(), (len(held), 1)), y[held])
        prepared = cache(partial(self._prepared, frame, y, divisions, seed))  # once for all candidates
        seconds, notes = np.zeros(len(candidates)), [""] * len(candidates)
        for place, candidate in enumerate(candidates):
            started = time.perf_counter()
            try:
                for fold, (train, held) in enumerate(divisions):
                    if place and time.perf_counter() > deadline:
                        raise TimeoutError(f"the budget of {self.budget:g} seconds was spent")
                    of_train = None if weight is None else weight[train]
                    with warnings.catch_warnings(action="ignore"):
                        rows = prepared(fold, candidate.intervals)
                        losses[1 + place][:, held] = _left_out(candidate.model, rows, y[train], y[held], of_train)
            except (ValueError, TimeoutError) as error:
                losses[1 + place], notes[place] = np.inf, str(error)
            seconds[place] = time.perf_counter() - started
            outcome = notes[place] or f"log-loss {losses[1 + place, 1, judged].mean():.4f}"
            tell("%s: %s, %.1f s", candidate.name, outcome, seconds[place])
        self._take(candidates, losses[..., judged], seconds, notes, None if weight is None else weight[judged])
        with warnings.catch_warnings():
            if isinstance(self.candidates, str):  # whose settings are not the user's, and `advice_` has what folds say
                warnings.filterwarnings("ignore", "rows left out|target_weight_=")
            self.best_estimator_ = _fitted(self._taken, self.columns_, frame, y, weight)
        counts = np.bincount(y, weight, minlength=len(self.classes_))
        self._frequencies, self._share = np.log(counts / counts.sum()), 1 / (counts.sum() + 1)
        self.class_log_prior_ = getattr(self.best_estimator_[-1], "class_log_prior_", self._frequencies)
        return self

    @property
    def partial_fit(self) -> Any:
        """Missing: the candidates are compared on all rows."""
        raise AttributeError("TableClassifier has no partial_fit, since candidates are compared on all rows")

    def _prepared(
        self, frame: pd.DataFrame, y: NDArray, divisions: Sequence[Any], seed: int, fold: int, intervals: bool
    ) -> tuple[pd.DataFrame, pd.DataFrame, Copies]:
        """Of a fold what models see: its rows to train on, copies of those held out, and which copies these are."""
        train, held = divisions[fold]
        columns = TableColumns(columns=self.columns_, intervals=intervals).fit(frame.iloc[train], y[train])
        rows = frame.iloc[held].reset_index(drop=True)
        present = np.where(rows.isna(), np.nan, 1.0)
        masked = copies(present, self.gaps_in_view, check_random_state(seed))
        shown = rows.iloc[masked.row].reset_index(drop=True).where(~np.isnan(masked.X))
        return columns.transform(frame.iloc[train]), columns.transform(shown), masked

    def _check_rows(self, X: Any, y: ArrayLike, reset: bool = True) -> tuple[pd.DataFrame, NDArray]:
        y = super()._check_rows(_numbers_in_place_of(X), y, reset)[1]
        return as_frame(X), y

    def _check_X(self, X: Any) -> pd.DataFrame:
        super()._check_X(_numbers_in_place_of(X))
        return as_frame(X)

    def _candidates(self, frame: pd.DataFrame, y: NDArray[np.intp], seed: int) -> list[CandidateModel]:
        if isinstance(given := self.candidates, str) and given == "auto":
            gaps = bool(frame.isna().any(axis=None))
            if isinstance(self.gaps_in_view, pd.DataFrame):
                refuse_labels("gaps_in_view", self.gaps_in_view.iloc[0], self)
            in_view, kept = self.gaps_in_view, [*self.columns_.numbers, *self.columns_.categories]
            if np.ndim(in_view) == 2 and np.shape(in_view)[1] == frame.shape[1]:  # patterns, of columns in this order
                in_view = np.asarray(in_view)[:, frame.columns.get_indexer(kept)]
            return candidates_of(self.columns_, np.bincount(y), gaps, in_view, seed)
        pairs = given if isinstance(given, list | tuple) else []
        if not pairs or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 and is_classifier(pair[1]) for pair in pairs
        ):
            raise ValueError(f"candidates must be 'auto' or a list of (name, classifier); got {given!r}")
        return [CandidateModel(name, model, rank=k) for k, (name, model) in enumerate(pairs)]

    def _divisions(self, y: NDArray[np.intp], present: NDArray[np.bool_], seed: int) -> Any:
        """Folds of the rows that are ``present``; fewer than asked for where the largest class has fewer rows."""
        cv = self.cv
        if isinstance(cv, int):
            check_number("cv", cv, 2, integer=True)
            largest = int(np.bincount(y).max())
            if largest < 2:
                raise ValueError(
                    "y has no class of two rows, so that no row can be left out: give more rows of each class"
                )
            cv = StratifiedKFold(min(cv, largest), shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of classes with fewer rows than folds
            yield from folds(cv, np.zeros((len(y), 1)), y, present)

    def _take(self, models: list[CandidateModel], losses: Array, seconds: Array, notes: list[str], weight: Any) -> None:
        """Decide by errors and log-losses (1 + candidates, 2, n) of rows left out."""
        mean = np.average(losses, axis=2, weights=weight)
        if not np.isfinite(mean[1:, 1]).any():
            raise ValueError(
                "no candidate could be fitted in each fold: give the rarest class more rows, or other candidates. "
                f"{models[0].name}: {notes[0]}"
            )
        best = 1 + int(np.argmin(mean[1:, 1]))
        with np.errstate(invalid="ignore"):
            excess, error = mean_and_error(losses[:, 1] - losses[best, 1], weight)
        error = np.nan_to_num(error, nan=np.inf)
        ranks = [np.inf, *(candidate.rank for candidate in models)]
        rank = np.where(np.isfinite(mean[:, 1]) & (excess <= error), ranks, np.inf)
        place = int(np.argmin(np.where(rank == rank.min(), mean[:, 1], np.inf)))
        self._taken = models[place - 1]
        self._report = {
            "candidate": ["class frequencies", *(candidate.name for candidate in models)],
            "log_loss": mean[:, 1].tolist(),
            "error": mean[:, 0].tolist(),
            "std_error": error.tolist(),
            "seconds": [0.0, *seconds.tolist()],
            "taken": (np.arange(len(losses)) == place).tolist(),
            "note": ["", *notes],
        }
        self.advice_ = _advice(self.report_, losses[:, 1], place, weight)

    @property
    def report_(self) -> pd.DataFrame:
        """What was tried, a row a candidate; kept as lists, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._report)

    def _joint_log_proba(self, X: pd.DataFrame) -> Array:
        columns, model = self.best_estimator_[0], self.best_estimator_[-1]
        rows = columns.transform(X)
        if isinstance(model, GenerativeClassifier):
            joint = model.predict_joint_log_proba(rows)
        else:
            with np.errstate(divide="ignore"):
                joint = np.log(model.predict_proba(rows))
        of_any_class = self._frequencies + np.logaddexp.reduce(joint, axis=1, keepdims=True)
        return np.logaddexp(joint + np.log1p(-self._share), of_any_class + np.log(self._share))

    @property
    def _calibrated_at(self) -> Array:
        return getattr(self.best_estimator_[-1], "_calibrated_at", self._frequencies)


def _fitted(candidate: CandidateModel, columns: Columns, frame: pd.DataFrame, y: NDArray[np.intp], weight: Any) -> Any:
    """A pipeline of the columns and the model of a candidate, fitted to rows."""
    pipeline = make_pipeline(TableColumns(columns=columns, intervals=candidate.intervals), clone(candidate.model))
    weights = {} if weight is None else {f"{pipeline.steps[-1][0]}__sample_weight": weight}
    return pipeline.fit(frame, y, **weights)


def _left_out(
    model: Any, rows: tuple[pd.DataFrame, pd.DataFrame, Copies], y: NDArray[np.intp], y_held: NDArray, weight: Any
) -> Array:
    """Errors and log-losses, (2, n), of the rows held out of a fold, in the mean over their copies."""
    train, shown, masked = rows
    model = clone(model).fit(train, y, **({} if weight is None else {"sample_weight": weight}))
    P = np.zeros((len(shown), 1 + max(y.max(), y_held.max())))
    P[:, model.classes_] = model.predict_proba(shown)
    frequencies = np.bincount(y, weight, minlength=P.shape[1])
    P += (frequencies / frequencies.sum() - P) / (frequencies.sum() + 1)
    return masked.mean(error_and_log_loss(P, y_held[masked.row]))


def error_and_log_loss(P: Array, y: NDArray[np.intp]) -> Array:
    """Errors and log-losses, (2, n), of rows with such class probabilities; as in scikit-learn's log-loss, what is less
    than EPS counts as EPS."""
    return np.array([P.argmax(axis=1) != y, -np.log(np.maximum(P[np.arange(len(y)), y], EPS))])


def _advice(report: pd.DataFrame, losses: Array, place: int, weight: Any) -> str:
    """One sentence: what was taken, and what it gains over class frequencies and over the first candidate."""
    untried = sum(note != "" for note in report.note)
    rest = f"; {untried} of {len(report) - 1} candidates were not judged, see report_" if untried else ""
    name, loss = report.candidate[place], report.log_loss[place]
    less, error = mean_and_error(losses[0] - losses[place], weight)
    if less <= 2 * error:
        return (
            f"{name} is not worth it: on rows left out its log-loss is {loss:.3f}, and that of the class frequencies "
            f"{report.log_loss[0]:.3f}, a difference of {less:.3f} ± {error:.3f}{rest}"
        )
    advice = f"take {name}: on rows left out its log-loss is {loss:.3f}, {less:.3f} ± {error:.3f} less than that of "
    advice += "the class frequencies"
    if place > 1 and np.isfinite(losses[1]).all():
        less, error = mean_and_error(losses[1] - losses[place], weight)
        advice += f" and {less:.3f} ± {error:.3f} less than that of {report.candidate[1]}"
    return advice + rest
