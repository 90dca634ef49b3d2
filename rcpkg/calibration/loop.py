"""One loop, a rule for the weights, one pass an iteration: risk-based calibration."""

import warnings
from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from rcpkg.base import Array, GenerativeClassifier, InvalidStatistics, log_posterior
from rcpkg.calibration.problem import Iterate, Problem, sample_size
from rcpkg.calibration.rules import Rule, calibration_weights, history_row
from rcpkg.calibration.safe_steps import SafeSteps
from rcpkg.checks import check_number, check_weights
from rcpkg.families import ClosedFormClassifier, ConjugateClassifier, Statistics, one_hot, require

STOPPING = ("auto", "soft_error", "best_soft_error", "best_error", "validation", "none")
STEPS = ("auto", "fixed", "safe")
ON_INVALID = ("halt", "freeze", "raise")
TARGETS = ("pooled", "generative", "grand", "nested")
AS_PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {"learning_rate": 0.1, "max_iter": 63, "stopping": "soft_error", "step": "fixed", "target_weight": 0.0, "tol": 0.0}
)  # rc2025 Algorithm 1 with the settings of its tables: 64 iterations, of which the first is the closed form
SAFE_STEPS = 1000  # at most, where they are chosen for the reader; some tens are the rule with a target
TARGET_WEIGHT = 3.0  # does best over the data sets of the honest comparison: results/benchmark_target_weights.csv


def _rows(X: Any, index: NDArray[np.intp]) -> Any:
    """Rows of encoded data, which is an array, a sparse array or a tuple of these."""
    return tuple(_rows(part, index) for part in X) if isinstance(X, tuple) else X[index]


class Run(NamedTuple):
    """What a run of updates leads to: the chosen iterate, the update that gave it, the history, and why it ended."""

    chosen: Iterate
    best_iter: int
    history: list[dict[str, float]]
    stop_reason: str


class RiskCalibration(MetaEstimatorMixin, GenerativeClassifier):
    """Risk-based calibration of a closed-form generative classifier.

    From s = s(X, Y), repeat s ← s + lr · s(X, Y − P) and take the parameters θ(s), P being the posteriors of the
    current model. With a target of b = ``target_weight`` the start is (s + b s̄)/(1 + b m̄/m), and the update
    s ← [s + lr · (s(X, Y − P) + b s̄)] / (1 + lr b m̄/m), which climbs CLL + b [⟨s̄, η⟩ − m̄ ψ(η)].

    Parameters
    ----------
    estimator : ClosedFormClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    learning_rate : float, default=0.1
        lr > 0, on statistics that are sums over rows. With safe steps the first one tried.
    max_iter : int or "auto", default="auto"
        Greatest number of updates. "auto": 1000 safe steps, or 63 fixed ones, the "64 iterations" of the sources.
    stopping : {"auto", "soft_error", "best_soft_error", "best_error", "validation", "none"}, default="auto"
        "soft_error": stop when the training soft error rises, and return the model before (rc2025). "best_soft_error",
        "best_error" (rc2024): the best of all iterates. "validation": the iterate of least log-loss on held-out rows.
        "none": the last iterate. "auto": "validation" if ``validation_fraction`` is set, else "none" with safe steps
        and "soft_error" with fixed ones. A held-out row that is impossible under its class makes the log-loss
        infinite: give the estimator a ``prior_strength``.
    step : {"auto", "fixed", "safe"}, default="auto"
        "fixed": s + lr · s(X, Y − P), as in the sources. "safe": steps that stay valid, each shortened until the
        (penalised) conditional log-likelihood rises enough; two of three are accelerated by the curvature that the
        last updates show. Where no step is left that rises the run ends. A prior of the estimator shapes the start,
        and nothing else; ``estimator_`` has none. "auto": safe for an exponential family of rcpkg whose class weights
        are free (``priors=None``), without batches; fixed otherwise.
    on_invalid : {"halt", "freeze", "raise"}, default="halt"
        When a fixed step leaves the valid statistics: end with the iterates so far (rc2025), keep the values that
        would turn invalid (rc2024), or raise `InvalidStatistics`.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with what distinguishes the classes pooled (covariances,
        distributions of counts), the closed form itself, one that is the same for every class, the network in which
        each feature has one parent less (`TAN`, `KDependenceBayes`), or a model of yours.
    target_weight : float or "auto", default="auto"
        b ≥ 0; 0 is the sources' algorithm. "auto": 3 with safe steps, else 0. With b > 0 a prior of the estimator
        shapes the target, and nothing else; ``estimator_`` has none.
    batch_size : int, optional
        Rows of a mini-batch; an iteration is then a pass over all batches, with fixed steps lr t^(−2/3).
    validation_fraction : float, optional
        Part of the rows, between 0 and 1, held out for ``stopping="validation"``; it must be given then, and only then.
    tol : float, default=1e-8
        Ends where a step of length one promises no more than this gain of the objective, in nats a row and pseudo-row:
        the squared gradient in the metric of the model, which has no units. 0: go on to ``max_iter``. A model without
        natural parameters does not converge by it.
    random_state : int or RandomState, optional
        For the held-out rows and the order of the batches.
    verbose : int, default=0
        1: a progress bar, with the log-loss on the training rows.

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of the calibrated model.
    estimator_ : ClosedFormClassifier
        The calibrated model.
    n_iter_ : int
        Updates made.
    best_iter_ : int
        The update that gave ``estimator_``.
    history_ : DataFrame
        A row an iterate: iteration, soft_error, error, log_loss, step, validation_log_loss if rows are held out.
    stop_reason_ : str
        "converged": the promised gain is at most ``tol``; "max_iter"; "soft_error": it rose; "invalid": a fixed step
        left the valid statistics; "no_step": no safe step is left that raises the objective.
    converged_ : bool
        Whether the reason is "converged". Without a target this does not certify a finite optimum: on rows that the
        model separates there is none, and the gradient vanishes on the way there. A `ConvergenceWarning` tells of a
        run with ``stopping="none"`` and a ``tol`` that ended before, and of one whose first update was invalid.

    Raises
    ------
    InvalidStatistics
        In ``fit``, where the closed form itself does not exist, and with ``on_invalid="raise"``.

    See Also
    --------
    RiskCalibrationCV : Chooses the weight of the target; for data of one's own.

    Notes
    -----
    The defaults are safe steps to convergence and the pooled target, with one weight for all data.
    ``RiskCalibration(model, **AS_PUBLISHED)`` is the sources' algorithm with the settings of their tables: fixed steps
    of 0.1, 63 updates at most, a stop when the soft error rises, no target.

    References
    ----------
    rc2025 Algorithm 1; rc2024 §III. The update is also that of extended Baum-Welch (Gopalakrishnan et al., 1991;
    Normandin, 1991). Safe steps and the target are this book's.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import AS_PUBLISHED, GaussianNB, RiskCalibration
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RiskCalibration(GaussianNB()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.112, 0.058]
    >>> model.stop_reason_
    'converged'
    >>> published = RiskCalibration(GaussianNB(), **AS_PUBLISHED).fit(X, y)
    >>> published.history_.log_loss[published.best_iter_].round(3).item()
    0.054
    """

    _rule: Rule = staticmethod(calibration_weights)
    _objective_loss = "log_loss"
    _moves_class_weights = False  # whatever the step
    _needs_complete_rows = False  # whatever the target

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        learning_rate: float = 0.1,
        max_iter: int | str = "auto",
        stopping: str = "auto",
        step: str = "auto",
        on_invalid: str = "halt",
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float | str = "auto",
        batch_size: int | None = None,
        validation_fraction: float | None = None,
        tol: float = 1e-8,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.stopping = stopping
        self.step = step
        self.on_invalid = on_invalid
        self.target = target
        self.target_weight = target_weight
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        gaps = getattr(self.estimator, "calibrates_gaps", False)
        tags.input_tags.allow_nan &= gaps and not (self.target_weight or self._needs_complete_rows)
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form, then calibrate it."""
        learner = self._settled()
        learner._check_parameters()
        rng = check_random_state(self.random_state)
        model = clone(self.estimator)
        X, y = model.check_X_y(X, y)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(y))
        model.prepare(X)
        problem = learner._problem(model, X, y, sample_weight, rng)
        run = learner._run(problem, rng)  # which may replace the model by one without its prior
        learner._report(problem, run)
        return self._adopt(problem.model, run)

    def _settled(self) -> Self:
        """A copy with settings in place of "auto": safe steps, drawn to the target, where the mathematics allows them.

        That is for risk-based calibration of an exponential family whose class weights are free, without batches. The
        settings are those of `AS_PUBLISHED` otherwise.
        """
        settled = copy(self)
        if self.step == "auto":
            family = isinstance(self.estimator, ConjugateClassifier) and self.estimator.priors is None
            safe = family and self.batch_size is None and self._rule is calibration_weights
            settled.step = "safe" if safe else "fixed"
        automatic = AS_PUBLISHED
        if settled.step == "safe":
            weight = TARGET_WEIGHT if hasattr(self.estimator, "log_partition") else 0.0
            automatic = {"max_iter": SAFE_STEPS, "stopping": "none", "target_weight": weight}
        for name in "max_iter", "stopping", "target_weight":
            if getattr(self, name) == "auto":
                setattr(settled, name, automatic[name])
        if self.stopping == "auto" and self.validation_fraction is not None:
            settled.stopping = "validation"
        return settled

    def _adopt(self, model: ClosedFormClassifier, run: Run) -> Self:
        """Take on the model at the iterate that a run chose, what it knows of the data, and the history of the run."""
        self.estimator_ = model.set_statistics(run.chosen.statistics, run.chosen.parameters)
        self.classes_, self.class_log_prior_ = model.classes_, model.class_log_prior_
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self._history = {name: np.array([row[name] for row in run.history]) for name in run.history[0]}
        self.n_iter_, self.best_iter_ = len(run.history) - 1, run.best_iter
        self.stop_reason_, self.converged_ = run.stop_reason, run.stop_reason == "converged"
        return self

    @property
    def history_(self) -> pd.DataFrame:
        """The history of the run, a row for each update; kept as arrays, so that a saved model needs no pandas."""
        check_is_fitted(self)
        return pd.DataFrame(self._history)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Array, NDArray]:
        """Draw rows and labels (X, y) from the calibrated joint distribution."""
        check_is_fitted(self)
        return self.estimator_.sample(n_samples, random_state)

    def check_X(self, X: ArrayLike) -> Array:
        return self.estimator_.check_X(X)

    def _joint_log_proba(self, X: Array) -> Array:
        return self.estimator_._joint_log_proba(X)

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, ClosedFormClassifier):
            raise ValueError(
                f"estimator must be a ClosedFormClassifier of rcpkg (from rcpkg import QDA, GaussianNB, …); got "
                f"{self.estimator!r} of {type(self.estimator).__module__}"
            )
        for name, choices in ("stopping", STOPPING), ("step", STEPS), ("on_invalid", ON_INVALID):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        check_number("learning_rate", self.learning_rate, 0, above=True)
        check_number("max_iter", self.max_iter, 0, integer=True)
        check_number("target_weight", self.target_weight, 0)
        check_number("tol", self.tol, 0)
        named = isinstance(self.target, str)
        if not (self.target in TARGETS if named else isinstance(self.target, ClosedFormClassifier)):
            raise ValueError(f"target must be a fitted model or one of {', '.join(TARGETS)}; got {self.target!r}")
        climbs = self._moves_class_weights or self.step == "safe" or self.target_weight > 0
        if climbs and getattr(self.estimator, "priors", None) is not None:
            raise ValueError(
                "priors of the estimator must be None with safe steps, a target, gradient descent or L-BFGS: class "
                "weights are part of what is optimised"
            )
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, 1, integer=True)
            if self.step == "safe":
                raise ValueError(
                    "batch_size goes with step='fixed': a mini-batch cannot tell whether the objective falls"
                )
        if (self.stopping == "validation") != (self.validation_fraction is not None):
            raise ValueError("stopping='validation' and validation_fraction (0.2, say) must be set together")
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0, above=True)
            if self.validation_fraction >= 1:
                raise ValueError(f"validation_fraction must lie between 0 and 1; got {self.validation_fraction!r}")

    def _problem(
        self,
        model: ClosedFormClassifier,
        X: Array,
        y: NDArray[np.intp],
        sample_weight: Array | None,
        rng: np.random.RandomState,
    ) -> Problem:
        validation = None
        if self.validation_fraction is not None:
            try:
                train, held = train_test_split(
                    np.arange(len(y)), test_size=self.validation_fraction, stratify=y, random_state=rng
                )
            except ValueError as error:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction!r} does not leave rows of each class on both sides"
                ) from error
            if sample_weight is not None and not sample_weight[held].any():
                raise ValueError("sample_weight is zero for all held-out rows; raise validation_fraction")
            validation = X[held], y[held], None if sample_weight is None else sample_weight[held]
            X, y = X[train], y[train]
            sample_weight = None if sample_weight is None else sample_weight[train]
        Y = one_hot(y, len(model.classes_))
        model.learn_structure(X, Y if sample_weight is None else Y * sample_weight[:, None])
        X = model.encode(X)
        return Problem(model, X, Y, sample_weight, self._rule, self._objective_loss, validation=validation)

    def _set_target(self, problem: Problem, start: Statistics) -> None:
        """Target statistics s̄ = m̄ E[s(x, y)] under the target model; a target on the boundary is refused."""
        model = problem.model
        require(model, "target_weight > 0")
        model.check_complete(problem.X)
        parameters, size = self._target_of(model, start)
        natural = model.natural_parameters(parameters).ravel()
        if self.target in ("pooled", "grand"):
            natural = natural[~np.isneginf(natural)]  # a state of no row has no part in the model, nor in the penalty
        if not np.isfinite(natural).all():
            raise InvalidStatistics(
                "the target lies on the boundary of the model (a state of probability zero): the penalty would be "
                "infinite; set prior_strength > 0, drop unused states, or choose another target"
            )
        problem.target, problem.target_size = size * model.mean_parameters(parameters), size
        problem.target_weight = self.target_weight
        # the prior has made the target, which takes its place: μ is then s/m, as the pull m̄μ = (m̄/m) s says
        problem.model = model.without_prior()

    def _target_of(self, model: ClosedFormClassifier, start: Statistics) -> tuple[Any, float]:
        """Parameters of the target model and the pseudo-rows m̄ it counts for, by the statistics of the closed form."""
        if self.target == "generative":
            return model.parameters(start), sample_size(start)
        if self.target == "pooled":
            return model.pooled_parameters(start)
        if self.target == "grand":
            return model.grand_parameters(start)
        if self.target == "nested":
            require(model, "target='nested'")
            return model.nested_parameters(start)
        check_is_fitted(self.target)
        if not model.same_form(self.target):
            raise ValueError(
                "target must be a fitted model of the same type as estimator, with the same classes, features and "
                "states"
            )
        return self.target.fitted_parameters(), sample_size(self.target.statistics_)

    def _start(self, problem: Problem) -> Statistics:
        """Statistics of the closed form, the target, which is set, being pseudo-data: no state it allows is empty.

        Safe steps climb from the closed form, with its prior, as maximum likelihood: of the parameters of MAP an update
        need not be a direction of ascent.
        """
        start, model = problem.label_statistics(), problem.model
        problem.settled = model.settle(start, problem.n_rows)
        if self.target_weight:
            self._set_target(problem, start)
            if problem.warm_start is not None:
                return problem.warm_start
            return problem.step(start, self.target_weight * problem.target, 1.0)
        if self.step == "safe" and isinstance(model, ConjugateClassifier) and model.has_prior:
            problem.model = model.without_prior()
            if not hasattr(model, "mean_parameters"):
                return model.with_pseudo_rows(start)
            return sample_size(start) * model.mean_parameters(model.parameters(start))
        return start

    def _run(self, problem: Problem, rng: np.random.RandomState) -> Run:
        """The loop, to the iterate that ``stopping`` chooses."""
        current = chosen = problem.evaluate(self._start(problem))
        history, best_iter, reason = [self._record(0, current, 0.0)], 0, "max_iter"
        if self.step == "safe":
            require(problem.model, "a safe step")
        safe = SafeSteps(problem, self.learning_rate) if self.step == "safe" else None
        with tqdm(total=self.max_iter, desc=type(self).__name__, disable=not self.verbose) as bar:
            for t in range(1, self.max_iter + 1):
                if self._converged(problem, current):
                    break
                following, lr = self._update(problem, current, t, safe, rng)
                if following is None:
                    reason = "invalid" if safe is None else "no_step"
                    break
                history.append(self._record(t, following, lr))
                bar.set_postfix(log_loss=f"{following.losses.log_loss:.4g}", refresh=False)
                bar.update()
                if self.stopping == "soft_error" and following.losses.soft_error > current.losses.soft_error:
                    reason = "soft_error"
                    break
                current = following
                if self._criterion(current) < self._criterion(chosen) or self.stopping in ("soft_error", "none"):
                    chosen, best_iter = current, t
        if reason == "max_iter" and self._converged(problem, current):
            reason = "converged"
        return Run(chosen, best_iter, history, reason)

    def _converged(self, problem: Problem, current: Iterate) -> bool:
        return self.tol > 0 and problem.promised_gain(current) <= self.tol

    def _update(
        self, problem: Problem, current: Iterate, t: int, safe: SafeSteps | None, rng: np.random.RandomState
    ) -> tuple[Iterate | None, float]:
        """Iterate t and the step that leads to it, or None where no valid step is left."""
        lr = self.learning_rate if self.batch_size is None else self.learning_rate * t ** (-2 / 3)
        try:
            if safe is not None:
                return safe.update(t, current), safe.lr
            if self.batch_size is None:
                return self._fixed_update(problem, current, lr), lr
            return self._batch_updates(problem, current, lr, rng), lr
        except InvalidStatistics:
            if self.on_invalid == "raise":
                raise
            return None, lr

    def _report(self, problem: Problem, run: Run) -> None:
        """Warn of a run that changed nothing because it could not, or that ended before it converged."""
        n_iter = len(run.history) - 1
        if run.stop_reason == "invalid" and not n_iter:
            message = (
                f"the first update, of learning_rate={self.learning_rate!r}, left the valid statistics: the closed "
                "form is returned uncalibrated; lower learning_rate, or set step='safe'"
            )
        elif self.tol and self.max_iter and self.stopping == "none" and run.stop_reason in ("max_iter", "no_step"):
            message = f"not converged after {n_iter} updates: {self._remedy(problem, run)}"
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _remedy(self, problem: Problem, run: Run) -> str:
        gain = problem.promised_gain(run.chosen)
        promise = f"the next promises a gain of {gain:.2g} a row, more than tol={self.tol:.2g}"
        if run.stop_reason == "max_iter":
            remedy = "raise max_iter"
        else:
            promise = f"{promise}, which rounding does not let it reach"
            remedy = "standardise the features, give the estimator a prior_strength"
        targeted = self.target_weight or not hasattr(problem.model, "mean_parameters")
        return f"{promise}; {remedy}{'' if targeted else ', set a target_weight > 0'} or raise tol"

    def _fixed_update(self, problem: Problem, current: Iterate, lr: float) -> Iterate:
        return problem.evaluate(
            *self._valid(problem.model, current.statistics, problem.step(current.statistics, current.gradient, lr))
        )

    def _valid(self, model: ClosedFormClassifier, old: Statistics, new: Statistics) -> tuple[Statistics, Any]:
        """New statistics with their parameters, frozen in part if they are invalid and that is asked for."""
        try:
            return new, model.parameters(new)
        except InvalidStatistics:
            if self.on_invalid != "freeze":
                raise
        require(model, "on_invalid='freeze'")
        new = model.frozen(old, new)
        return new, model.parameters(new)

    def _batch_updates(self, problem: Problem, current: Iterate, lr: float, rng: np.random.RandomState) -> Iterate:
        """One pass of steps lr s(X_B, W_B) over shuffled batches B, the last of which may be smaller.

        At a given model a batch drawn at random gives |B|/n times a full step on average.
        """
        model, statistics, parameters = problem.model, current.statistics, current.parameters
        order = rng.permutation(len(problem.y))
        for start in range(0, len(order), self.batch_size):
            index = order[start : start + self.batch_size]
            share = len(index) / len(order)
            X = _rows(problem.X, index)
            log_P = log_posterior(model.log_joint(X, parameters), model.log_class_probabilities(parameters))
            gradient = model.statistics(X, problem.weights(log_P, index))
            if self.target_weight:
                gradient = gradient + share * self.target_weight * problem.target
            new = problem.step(statistics, gradient, lr, share)
            statistics, parameters = self._valid(model, statistics, new)
        return problem.evaluate(statistics, parameters)

    def _criterion(self, iterate: Iterate) -> float:
        if self.stopping == "validation":
            return iterate.validation_loss
        return iterate.losses.error if self.stopping == "best_error" else iterate.losses.soft_error

    @staticmethod
    def _record(t: int, iterate: Iterate, lr: float) -> dict[str, float]:
        record = history_row(t, iterate.losses, lr)
        if iterate.validation_loss is not None:
            record["validation_log_loss"] = iterate.validation_loss
        return record
