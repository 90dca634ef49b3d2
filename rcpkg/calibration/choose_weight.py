"""The weight of the target, chosen by leave-one-out or cross-validation along the path of weights."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral
from operator import attrgetter
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from rcpkg.base import SMALL, Array, constructed, one_thread_if_small
from rcpkg.calibration._docs import documented
from rcpkg.calibration.constants import FOLD_TOL, LEAST_GAIN, MOST_DECADES, TARGET_WEIGHTS
from rcpkg.calibration.in_view import check_in_view, copies
from rcpkg.calibration.learner import Learner, is_pipeline
from rcpkg.calibration.left_out import (
    CLOSED_FORM,
    FREQUENCIES,
    Candidate,
    Fold,
    Validation,
    by_folds,
    by_leave_one_out,
    closed_form_path,
    few_rows,
    in_fold,
    mean_and_error,
    warn_of_rivals,
)
from rcpkg.calibration.objective import TargetName, check_target
from rcpkg.calibration.stops import Path
from rcpkg.calibration.target_path import NotConverged, TargetPath
from rcpkg.checks import (
    check_columns,
    check_number,
    check_numbers,
    check_weights,
    counting,
    know_columns,
    supervised_step,
    warn,
)
from rcpkg.choice import FOLDS, choose, least, refuse_groups
from rcpkg.choice import folds as divisions
from rcpkg.columns import as_labels, in_table
from rcpkg.families import ClosedFormClassifier, Scorer, Unsupported, can, require
from rcpkg.families.portions import numbered
from rcpkg.linalg import LOG_ROUNDING
from rcpkg.progress import tell, telling
from rcpkg.rows import Block, Rows, check_lengths

BY_DEFAULT = ("pooled", "grand")  # targets: where one serves a table badly, rows left out tell (study choice-of-target)
# weights that are tried where none are given: from 1 on by tenfold steps, then between the best and its neighbours
FIRST_WEIGHT, BETWEEN, DECADE = TARGET_WEIGHTS[4:7]
SCORING = ("log_loss", "error")
PathsOf = Callable[..., list[TargetPath]]  # of a model and rows, one path a target
Folds = Callable[[Any], Iterator[Fold]]  # of ``cv``


@documented()
@constructed
class RiskCalibrationCV(Learner):
    """Risk-based calibration to a target that is chosen, with its weight b, by what it does for rows left out.

    For each target and weight, the optimum of CLL + b [⟨s̄, η⟩ − m̄ ψ(η)], and −log p(y_i | x_i) at the optimum without
    row i, which one step of Newton's method gives without a refit; or the log-loss on held-out folds, with their optima
    from the greatest weight to the least, each from the last. Then `RiskCalibration` with the best target and weight,
    or the closed form as it is, where that does better than all of them.

    Parameters
    ----------
    estimator : ClosedFormClassifier or Pipeline
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself. Or a pipeline that ends with one:
        what its steps before learn, as `MDLDiscretizer` does of the labels, they learn anew in each fold.
        Folds take up to three times as long as leave-one-out: steps that read no labels, such as an imputer, may as
        well stand before, as ``make_pipeline(SimpleImputer(), RiskCalibrationCV(model))``.
    target : {"auto", "pooled", "generative", "grand", "nested"}, fitted ClosedFormClassifier or list, default="auto"
        %(target)s
        Of a list the best one; "auto" are "pooled" and "grand", as far as the estimator has them.
    target_weights : array-like or "auto", default="auto"
        Weights b > 0 to choose from. "auto": from 1 upwards and downwards, by tenfold steps as long as each does
        better, then 3 or .3 times the best, or both, until one does better; with ``n_jobs`` and on large tables by
        folds .01, .03, … 100.
    cv : {"auto", "loo"}, int or splitter, default="auto"
        "loo": approximate leave-one-out, of a row with all of its weight. Where rows are few for the parameters its
        log-losses are off, mostly too low, for small b, and for all b with the targets "generative" and "nested" and of
        models whose classes share a covariance; ``cv=5`` judges all alike, the closed form too. "auto" takes five folds
        in its place where (a) the parameters of the log odds outnumber the rows or (b) a class has two to four rows.
        Both take them, "loo" with a warning, (c) for a pipeline, (d) for a scorer, (e) beyond 1,000 parameters, (f) for
        documents of unequal lengths, (g) for `Rows` of several blocks, where rows share a fold by chance and errors are
        judged by block, and (h) where leave-one-out has no optimum. Where rows have gaps the candidates learn from rows
        whose gaps are filled by what the closed form expects there, which takes less time. Rows in a fold are judged as
        they are, and ``gaps_in_view=0.0`` leaves out the filling.
    closed_form : bool, default=True
        Whether the closed form is a candidate. With "loo" it loses the rows in turn, singly or, of
        many, half a per cent at a time.
    scoring : str or callable, default="log_loss"
        What the best candidate has least of, "log_loss" or "error", or most of: a scorer of scikit-learn by its name,
        such as "roc_auc", or a function of a classifier, rows and labels, in the mean over folds, where rows count
        alike and decisions are those of the 0-1 loss. Log-loss decides among equal ones.
    gaps_in_view : float, sequence of floats, "training" or boolean array of shape (K, d), optional
        %(gaps in view)s
        Candidates are judged on rows left out and their masked copies, by five folds in the place of leave-one-out.
    n_jobs : int, optional
        Processes that share the folds, as joblib counts them; leave-one-out takes one.
    random_state : int or RandomState, optional
        The gaps in view, and which rows share a fold, where ``cv`` is a number of folds: these are stratified, and
        shuffled if it is given. A splitter has a random state of its own.
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    %(way)s
        Also "closed_form", where that is chosen. ``n_iter_`` and ``history_`` count from the
        optimum of a neighbouring weight.
    converged_ : bool
        Whether the reason is "converged" or "closed_form"; a `ConvergenceWarning` tells otherwise.
    target_ : str or ClosedFormClassifier
        The target chosen; "closed_form" where that is.
    target_weight_ : float
        The weight chosen; NaN where the closed form is.
    cv_results_ : DataFrame
        A row a candidate: target, target_weight, log_loss, error, std_error (of the log-loss), the score that a scorer
        gives, and for leave-one-out log_evidence, Laplace's approximation of log p(y | x) under the prior
        ∝ exp b[⟨s̄, η⟩ − m̄ψ(η)]; a last row, of weight NaN, for the closed form.
    validation_ : str
        "approximate leave-one-out" or the number of folds, of filled rows where these have gaps.
    preprocessing_ : Pipeline
        Of a pipeline the steps before the model, fitted to all rows; ``estimator_``, ``sample`` and
        ``conditional_mean`` are about rows as they make them.

    Raises
    ------
    InvalidStatistics
        In ``fit``, where the closed form does not exist, or its target lies on the boundary of the model.

    Warns
    -----
    UserWarning
        Where rows left out do not show that the model does better than the class frequencies, by more than two standard
        errors of the difference, or that it is at most .02 behind its closed form, by one; with the numbers.

    See Also
    --------
    RiskCalibration : The same with a given weight.
    calibration_test : Whether calibration has anything to gain.

    References
    ----------
    This book's. Approximate leave-one-out: Rad and Maleki (2020).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import LDA, RiskCalibrationCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RiskCalibrationCV(LDA()).fit(X, y)
    >>> model.target_, model.target_weight_, model.validation_
    ('pooled', 3.0, 'approximate leave-one-out')
    >>> model.scorer().predict_proba(X[70]).round(2)
    array([0., 1., 0.])
    """

    target: Literal["auto"] | TargetName | ClosedFormClassifier | Sequence[TargetName | ClosedFormClassifier] = "auto"
    target_weights: Sequence[float] | Array | Literal["auto"] = "auto"
    cv: Any = "auto"
    closed_form: bool = True
    scoring: str | Callable[..., float] = "log_loss"
    gaps_in_view: Any = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    target_: ClassVar[str | ClosedFormClassifier]
    target_weight_: ClassVar[float]
    validation_: ClassVar[str]
    preprocessing_: ClassVar[Any]
    _refitted: ClassVar[tuple[Any, Any] | None] = None  # steps before the model, and the rows that they are given

    @telling
    @one_thread_if_small
    def fit(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose the target and its weight, then calibrate; ``groups`` are for a splitter ``cv``."""
        if is_pipeline(self.estimator):
            return self._fit_behind(X, y, sample_weight, groups)
        if step := supervised_step(self):
            warn(
                f"{step} has read the labels of the rows that are left out, so that the weight may come out too small: "
                f"RiskCalibrationCV(make_pipeline({step}(), model)) fits it anew in each fold"
            )
        grid, targets, rng = self._checked_weights(), self._checked_targets(), check_random_state(self.random_state)
        view = {"gaps_in_view": self.gaps_in_view, "random_state": rng}

        def paths_of(model: ClosedFormClassifier, *rows: Any, fills: bool = False) -> list[TargetPath]:
            first = TargetPath.from_estimator(model, targets[0], *rows, fills=fills, **view)
            paths = [first, *map(first.towards, targets[1:])]
            for path in paths:
                path.other_targets = [other for other in paths if other is not path]
            return paths

        several = isinstance(X, Rows) and not X.is_one_block
        prepare = self._of_blocks if several else self._of_arrays
        paths, judged, folds = prepare(paths_of, rng, X, y, sample_weight, groups)
        candidates, validation, method, unreached = self._judged(paths, judged, folds, grid, groups)
        best = self._best(candidates, validation)
        k, weight = candidates[best]
        if k == CLOSED_FORM:
            F, path, target = paths[0].objective, closed_form_path(paths[0]), k
        else:
            F, path, target = paths[k].objective, paths[k].finish(weight), targets[k]
        end, gain = _end(candidates, best, validation, unreached)
        self._warn(weight, path, end if gain > LEAST_GAIN else "")
        of_closed_form = validation.losses[1, 1] if self.closed_form and k != CLOSED_FORM else None
        warn_of_rivals(validation.losses[best, 1], validation.losses[0, 1], of_closed_form, validation.share)
        names = [each if isinstance(each, str) else type(each).__name__ for each in targets]
        chosen = {"target_": target, "target_weight_": weight, "validation_": method}
        chosen["_cv_results"] = _results(candidates, validation, names)
        vars(self).pop("preprocessing_", None)  # of an earlier fit
        return self._adopt(F, path, **chosen)

    @property
    def partial_fit(self) -> Any:
        """Missing: the weight is chosen by rows left out of all."""
        raise AttributeError(
            "RiskCalibrationCV has no partial_fit, since it chooses the weight by rows left out of all rows: "
            "RiskCalibration with target='generative' and a target_weight > 0 learns block by block"
        )

    def _fit_behind(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        """Fit the model of a pipeline to what the steps before it make of the rows."""
        if isinstance(X, Rows):
            X, y, sample_weight, _ = X.without(y, sample_weight).only("a pipeline")
        given = Block(in_table(X), as_labels(y), None if y is None else check_weights(sample_weight, _num_samples(X)))
        counted = check_lengths(given).counting()
        steps, model = clone(self.estimator[:-1]), clone(self).set_params(estimator=self.estimator[-1])
        if not len(steps):
            steps.steps = [("same", "passthrough")]
        model._refitted = clone(steps), counted.X
        # TargetEncoder, for one, takes these for rows that it has seen
        transformed = steps.fit_transform(counted.X, counted.y)
        if counted is not given:  # rows of no weight, which have no say, stand for their neighbours
            transformed = _safe_indexing(transformed, np.cumsum(given.weight > 0) - 1)
        model.fit(transformed, y, sample_weight, groups)
        no_state, names = {*model.get_params(deep=False), "_refitted"}, ("n_features_in_", "feature_names_in_")
        vars(self).update({name: value for name, value in vars(model).items() if name not in no_state})
        vars(self).pop("feature_names_in_", None)  # of what the steps make, or of an earlier fit
        of_rows = {name: getattr(steps, name) for name in names if hasattr(steps, name)}
        vars(self).update(of_rows | {"preprocessing_": steps})
        know_columns(self, counted.X)
        return self

    def scorer(self) -> Scorer:
        """The calibrated model frozen to arrays, for one row at a time: `Scorer`; of no pipeline with steps."""
        if hasattr(self, "preprocessing_") and any(step != "passthrough" for _, step in self.preprocessing_.steps):
            raise ValueError(
                "estimator has steps before the model, which a scorer leaves out: estimator_.scorer() takes rows as "
                "preprocessing_ makes them"
            )
        return super().scorer()

    def _check_X(self, X: ArrayLike) -> Array:
        if not hasattr(self, "preprocessing_"):
            return super()._check_X(X)
        check_columns(self, X)
        return super()._check_X(self.preprocessing_.transform(X))

    def _of_blocks(
        self, paths_of: PathsOf, rng: np.random.RandomState, rows: Rows, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[list[TargetPath], list[TargetPath], Folds]:
        """Paths, one a target, those that are judged, and a function of ``cv`` that gives folds, for several blocks."""
        if groups is not None or not isinstance(self.cv, str | Integral):
            raise Unsupported("with Rows of several blocks cv must be a number of folds, and groups None")
        if self.scoring not in SCORING:
            raise Unsupported('with Rows of several blocks scoring must be "log_loss" or "error"')
        model, seed = clone(self.estimator), int(rng.randint(2**31)) if self.random_state is not None else 0
        paths = paths_of(model, model._training_rows(rows, y, sample_weight))

        def folds(n_folds: int) -> Iterator[Fold]:
            first = 0
            check_number("cv", n_folds, 2, integer=True)
            for k in range(n_folds):
                train, held = (rows.map(partial(in_fold, k, n_folds, seed, held)) for held in (False, True))
                of_train = clone(self.estimator)
                train = of_train._training_rows(train, None, None)
                self._check_classes(model.classes_, np.isin(model.classes_, of_train.classes_))
                held = held.map(partial(numbered, of_train))
                share = np.array(list(held.each(attrgetter("total_weight"))))
                places = np.arange(first, first := first + len(share))
                yield Fold(paths_of(of_train, train, fills=True), held, places, share, in_mean=True)

        return paths, paths, folds

    def _of_arrays(
        self, paths_of: PathsOf, rng: np.random.RandomState, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[list[TargetPath], list[TargetPath], Folds]:
        """The same for rows in memory; the paths that are judged are of filled rows where these have gaps."""
        if isinstance(X, Rows):
            X, y, sample_weight, _ = X.without(y, sample_weight).only("RiskCalibrationCV")
        model = clone(self.estimator)
        n, block = _num_samples(X), model._counting_rows(X, y, sample_weight)
        present = counting(sample_weight, n)
        paths = judged = paths_of(model, *block[:3])
        fills = self.gaps_in_view is None
        if fills and paths[0].gaps and isinstance(self.cv, str):
            judged = paths_of(model, *block[:3], fills=True)
        X, y, weight, _ = block

        def folds(cv: Any) -> Iterator[Fold]:
            if isinstance(cv, Integral) and self.random_state is not None:
                from sklearn.model_selection import StratifiedKFold

                cv = StratifiedKFold(cv, shuffle=True, random_state=check_random_state(self.random_state))
            for train, held in divisions(cv, X, y, present, groups):
                self._check_classes(model.classes_, np.isin(np.arange(len(model.classes_)), y[train]))
                of_train, part, rows = model, block.part(train), X[held]
                if self._refitted is not None:
                    of_train, steps, given = clone(self.estimator), clone(self._refitted[0]), self._refitted[1]
                    part = part._replace(X=_safe_indexing(given, train), y=model.classes_[y[train]])
                    part = of_train._counting_rows(steps.fit_transform(part.X, part.y), part.y, part.weight)
                    rows = of_train._check_X(steps.transform(_safe_indexing(given, held)))
                of_fold = paths_of(of_train, *part[:3], fills=fills)
                masked, share = copies(rows, self.gaps_in_view, rng), np.ones(len(held))
                share = share if weight is None else weight[held]
                yield Fold(of_fold, Rows.from_arrays(masked.X, y[held][masked.row]), held, share, masked.mean)

        return paths, judged, folds

    def _judged(
        self, paths: list[TargetPath], judged: list[TargetPath], folds: Folds, grid: Array, groups: Any
    ) -> tuple[list[Candidate], Validation, str, list[Candidate]]:
        """Candidates, what rows left out say of them, how these were left out, and weights of no optimum in reach."""
        n_folds, validation, scorer, numbers, unreached = self.cv, None, None, range(len(paths)), []
        searches_weights = isinstance(self.target_weights, str)
        rivals = [Candidate(FREQUENCIES), *[Candidate(CLOSED_FORM)] * bool(self.closed_form)]
        whole = rivals + [Candidate(k, float(b)) for k in numbers for b in grid[::-1]]
        first = rivals + [Candidate(k, FIRST_WEIGHT) for k in numbers] if searches_weights else whole
        if isinstance(self.cv, str):
            refuse_groups(groups)
            n_folds, why_not = FOLDS, "" if self.scoring in SCORING else f"scoring={self.scoring!r} judges folds"
            why_not = why_not or next((path.why_not for path in judged if path.why_not), "")
            if self._refitted is not None:
                why_not = "the steps before the model have seen the rows that it would leave out"
            if not why_not and self.cv == "auto":
                why_not = few_rows(judged[0])
            if not why_not:
                judge = partial(by_leave_one_out, judged)
                method = "approximate leave-one-out" + " of filled rows" * (judged is not paths)
                try:
                    validation = judge(first)
                except NotConverged as error:
                    why_not = str(error)
            if why_not and self.cv == "loo":
                warn(f'cv="loo" is not to be had: {why_not}; {FOLDS} folds take its place (cv={FOLDS} asks for them)')
        if validation is None:
            rows = paths[0].objective.rows
            n_features = paths[0].objective.estimator.n_features_in_
            small = rows.is_one_block and len(paths[0].objective.y) * n_features <= SMALL
            searches_weights &= small and self.n_jobs is None  # the folds are kept
            folds = list(folds(n_folds)) if searches_weights else folds(n_folds)
            for path, *parts in zip(paths, *(fold.paths for fold in folds)) if searches_weights else ():
                alike = [part for part in parts if path.objective.family.same_form(part.objective.family)]
                for each in (path, *alike):
                    each.fold_paths = [part for part in alike if part is not each]
            if self.scoring not in SCORING:
                from sklearn.metrics import check_scoring

                scorer = check_scoring(self, self.scoring)
            judge = partial(by_folds, folds, scorer, self.n_jobs, FOLD_TOL if isinstance(self.cv, str) else 0.0)
            first = first if searches_weights else whole
            if searches_weights:  # optima of a greater weight, which come next, are nearer to where searches begin
                judge([Candidate(0, DECADE * FIRST_WEIGHT)])
            validation = judge(first)
            method = f"{validation.n_folds} folds"
        self._tell(paths, first, validation)
        if searches_weights:
            first, validation, unreached = self._search_weights(paths, judge, first, validation)
        return first, validation, method, unreached

    def _search_weights(
        self,
        paths: list[TargetPath],
        judge: Callable[..., Validation],
        candidates: list[Candidate],
        validation: Validation,
    ) -> tuple[list[Candidate], Validation, list[Candidate]]:
        """Try weights of each target in tenfold steps from 1 while the loss improves, then 3 and .3 times the best.

        Greater weights come first, or, where the targets before did best below 1, smaller ones. Returns all candidates,
        what rows left out say of them, and the candidates whose optima were not reached."""
        unreached, numbers = [], range(len(paths))

        def gain(further: Candidate, than: int) -> float:
            """In nats, of a further candidate that is better than another of its target."""
            nonlocal validation
            try:
                judged = judge([further], reached=True)
            except NotConverged:
                unreached.append(further)
                return 0.0
            self._tell(paths, [further], judged)
            validation = validation.extended(judged)
            candidates.append(further)
            loss = mean_and_error(validation.losses[[than, -1], 1], validation.share)[0]
            is_best = self._best(candidates, validation, [further.target]) == len(candidates) - 1
            return loss[0] - loss[1] if is_best else 0.0

        for k in numbers:
            first = best = candidates.index(Candidate(k, FIRST_WEIGHT))
            # targets of one table are mostly best on the same side of 1, which is looked at first
            downwards = k and candidates[self._best(candidates, validation, numbers[:k])].weight <= FIRST_WEIGHT
            for factor in (DECADE, 1 / DECADE)[:: -1 if downwards else 1]:
                if best != first:
                    break
                for _ in range(MOST_DECADES):
                    gained = gain(Candidate(k, candidates[best].weight * factor), best)
                    if not gained:
                        break
                    best = len(candidates) - 1
                    of_best = [best, self._best(candidates, validation)]
                    lead = np.subtract(*mean_and_error(validation.losses[of_best, 1], validation.share)[0])
                    if gained < max(LEAST_GAIN, lead):  # gains fall from decade to decade
                        break
        best = self._best(candidates, validation, numbers)
        k, weight = candidates[best]
        loss = mean_and_error(validation.losses[:, 1], validation.share)[0]

        def beside(factor: float) -> float:
            """The least loss of its target's weights on that side of the best one; −∞ beyond the end of these."""
            sides = ((i, each) for i, each in enumerate(candidates) if each.target == k and i != best)
            return min((loss[i] for i, each in sides if (each.weight > weight) == (factor > 1)), default=-np.inf)

        for factor in sorted((BETWEEN, BETWEEN / DECADE), key=beside):
            if gain(Candidate(k, weight * factor), best):  # the other side is worse then
                break
        return candidates, validation, unreached

    @staticmethod
    def _tell(paths: list[TargetPath], candidates: list[Candidate], validation: Validation) -> None:
        for (k, weight), loss in zip(candidates, mean_and_error(validation.losses[:, 1], validation.share)[0]):
            name = k if isinstance(k, str) else f"target={paths[k].target!r}, target_weight={weight:g}"
            tell("%s: log-loss %.6g of rows left out", name, loss)

    def _best(self, candidates: list[Candidate], validation: Validation, among: Sequence[Any] = ()) -> int:
        """Number of the best candidate, or of the best ``among`` some targets; of equally good ones the first."""
        targets = among or [CLOSED_FORM, *{k for k, _ in candidates if k not in (CLOSED_FORM, FREQUENCIES)}]
        order = np.array([i for i, (k, _) in enumerate(candidates) if k in targets])
        error, log_loss = validation.losses[order].swapaxes(0, 1)
        if validation.scores is None:
            return int(order[choose(error, log_loss, weights=validation.share, scoring=self.scoring).place[0]])
        score, loss = validation.scores[order].mean(axis=1), mean_and_error(log_loss, validation.share)[0]
        among = least(-score, np.ones(len(order), dtype=bool), LOG_ROUNDING)
        return int(order[np.argmax(least(loss, among, LOG_ROUNDING))])

    @property
    def cv_results_(self) -> pd.DataFrame:
        """What each weight of the target achieved; kept as arrays, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._cv_results)

    def _checked_weights(self) -> Array:
        self._check_estimator()
        check_in_view(self.gaps_in_view)
        require(self.estimator, "target_weight > 0")
        given = TARGET_WEIGHTS if isinstance(self.target_weights, str) else self.target_weights
        if isinstance(self.target_weights, str) and self.target_weights != "auto":
            raise ValueError(f'target_weights must be "auto" or numbers > 0; got {self.target_weights!r}')
        weights = check_numbers("target_weights", given)
        if weights.ndim != 1 or not weights.size or not np.all(weights > 0):
            raise ValueError(f"target_weights must be a non-empty list of numbers > 0; got {self.target_weights!r}")
        if isinstance(self.scoring, str) and self.scoring not in SCORING:
            from sklearn.metrics import get_scorer_names

            if self.scoring not in get_scorer_names():
                raise ValueError(
                    f"scoring must be one of {', '.join(SCORING)}, the name of a scorer of scikit-learn, or a function "
                    f"of a classifier, rows and labels; got {self.scoring!r}"
                )
        if isinstance(self.cv, str) and self.cv not in ("auto", "loo"):
            raise ValueError(f'cv must be "auto", "loo", a number of folds or a splitter; got {self.cv!r}')
        return np.unique(weights)

    def _checked_targets(self) -> list[Any]:
        given = self.target
        if isinstance(given, str) and given == "auto":
            given = [name for name in BY_DEFAULT if can(self.estimator, f"target={name!r}")] or ["generative"]
        targets = list(given) if isinstance(given, list | tuple) else [given]
        if not targets:
            raise ValueError("target must name at least one target; got an empty list")
        for target in targets:
            check_target(target, 1.0)
        return targets

    def _warn(self, weight: float, path: Path, end: str) -> None:
        """Warn of a best weight at an end, and of an optimum not reached."""
        if end:
            warn(
                f"target_weight_={weight:g} is the {end} of target_weights: the best may lie beyond; add "
                f"{'greater' if end == 'greatest' else 'smaller'} ones"
            )
        if path.stop_reason not in ("converged", "closed_form"):
            warn(
                f"the optimum of target_weight={weight:g} was not reached in {path.n_iter} steps "
                f"({path.stop_reason}): drop small target_weights, or rescale numeric features",
                ConvergenceWarning,
            )

    @staticmethod
    def _check_classes(classes: NDArray, present: NDArray[np.bool_]) -> None:
        """Refuse a fold whose training part lacks a class."""
        if not present.all():
            raise ValueError(
                f"class {classes[~present][0]!s} has no row in the training part of a fold: use fewer folds, or leave "
                "such classes out"
            )


def _end(
    candidates: list[Candidate], best: int, validation: Validation, unreached: list[Candidate]
) -> tuple[str, float]:
    """Which end of its target's weights the best one is, if it is one, and what it gains over the next, in nats."""
    k, weight = candidates[best]
    rest = [i for i, each in enumerate(candidates) if each.target == k and i != best]
    side = {each.weight > weight for each in [*(candidates[i] for i in rest), *unreached] if each.target == k}
    if len(side) != 1:
        return "", 0.0
    near = min(rest, key=lambda i: abs(np.log(candidates[i].weight / weight)))
    loss = mean_and_error(validation.losses[[best, near], 1], validation.share)[0]
    return "least" if side == {True} else "greatest", loss[1] - loss[0]


def _results(candidates: list[Candidate], validation: Validation, names: list[str]) -> dict[str, Array]:
    """What is known of the candidates, sorted by target and weight, and of the closed form."""
    order = [i for i, (k, _) in enumerate(candidates) if k not in (FREQUENCIES, CLOSED_FORM)]
    order.sort(key=candidates.__getitem__)
    order += [i for i, (k, _) in enumerate(candidates) if k == CLOSED_FORM]
    (log_loss, std_error), (error, _) = (mean_and_error(validation.losses[order, i], validation.share) for i in (1, 0))
    results = {
        "target": np.array([names[k] if isinstance(k, int) else k for k, _ in (candidates[i] for i in order)]),
        "target_weight": np.array([candidates[i].weight for i in order]),
        "log_loss": log_loss,
        "error": error,
        "std_error": std_error,
    }
    if validation.scores is not None:
        results["score"] = validation.scores[order].mean(axis=1)
    if np.isfinite(validation.evidence).any():
        results["log_evidence"] = validation.evidence[order]
    return results
