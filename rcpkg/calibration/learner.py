"""Learners that calibrate a closed form: a rule, a step, a stop and a target, and the one climb."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rcpkg._bases import MetaEstimatorMixin
from rcpkg.base import Array, GenerativeClassifier, atomic, constructed, one_thread_if_small
from rcpkg.calibration._docs import documented
from rcpkg.calibration.climb import climb
from rcpkg.calibration.constants import FIXED_STEPS, SAFE_TOL, TARGET_WEIGHT
from rcpkg.calibration.in_view import check_in_view
from rcpkg.calibration.left_out import warn_of_optimum
from rcpkg.calibration.objective import Objective, TargetName, check_target, sample_size
from rcpkg.calibration.online import after, portions
from rcpkg.calibration.optimum import most_probable, optimum
from rcpkg.calibration.rules import Rule, calibration_weights
from rcpkg.calibration.steps import Fixed, Safe, Step
from rcpkg.calibration.stops import Best, Converged, HeldOut, Path, SoftErrorRises, Stop
from rcpkg.capabilities import Unsupported, given_if, require
from rcpkg.checks import check_cost, check_number, warn
from rcpkg.families import ClosedFormClassifier, Family, Scorer, Statistics, can, class_counts
from rcpkg.linalg import MOST_STEPS
from rcpkg.progress import tell, telling
from rcpkg.rows import Block, Blocks, Rows

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

StopName = Literal["soft_error", "best_soft_error", "best_error", "none"]
STOPS = {
    "soft_error": SoftErrorRises(),
    "best_soft_error": Best("soft_error"),
    "best_error": Best("error"),
    "none": Converged(0.0),
}


class Settings(NamedTuple):
    """What a learner climbs, and how, with all that is automatic decided; no ``step``: at once to the optimum."""

    step: Step | None
    stop: Stop | HeldOut
    max_iter: int
    tol: float = 0.0
    target: str | ClosedFormClassifier = "pooled"
    target_weight: float = 0.0
    gaps_in_view: Any = None


@constructed
class Learner(MetaEstimatorMixin, GenerativeClassifier):
    """Base of the classifiers that calibrate an ``estimator``: a subclass gives ``_settings``, or a ``fit`` of its own
    that ends with ``_adopt``."""

    estimator: ClosedFormClassifier | Pipeline = field(kw_only=False)
    cost: ArrayLike | None = None
    verbose: int = 0

    estimator_: ClassVar[ClosedFormClassifier]
    n_iter_: ClassVar[int]
    best_iter_: ClassVar[int]
    stop_reason_: ClassVar[str]
    converged_: ClassVar[bool]
    joint_model_: ClassVar[str]
    _rule: ClassVar[Rule] = staticmethod(calibration_weights)
    _needs_complete_rows = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        tags.input_tags.allow_nan &= not self._needs_complete_rows
        return tags

    def _settings(self) -> Settings:
        raise NotImplementedError

    def _preset(self, step: Step | None) -> Settings:
        """A ``step``, ``Fixed(0.1)`` if there is none, with the ``stopping`` and ``max_iter`` of a preset."""
        if step is not None and not isinstance(step, Step):
            raise ValueError(f"step must be a step such as Fixed(0.1); got {step!r}")
        check_number("max_iter", self.max_iter, 0, integer=True)
        return Settings(step or Fixed(), stop_of(self.stopping), self.max_iter)

    @telling
    @one_thread_if_small
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form, then calibrate it; ``fit(rows)`` takes `Rows`, of any size."""
        self._check_estimator()
        settings = self._settings()
        rng = check_random_state(getattr(self, "random_state", None))
        model, rows = self._validated(X, y, sample_weight)
        stop = settings.stop
        if isinstance(stop, HeldOut):
            if not hasattr(self, "random_state"):
                raise ValueError(
                    f"stopping={stop} needs a random_state, which {type(self).__name__} does not take: "
                    "RiskCalibration.as_published does, with any step"
                )
            block = rows.only(f"stopping={stop}")
            train, held = (block.part(index) for index in stop.divided(block.y, block.weight, rng))
            stop, rows = Best("log_loss", (held.X, held.y, held.weight)), Blocks([train])
        step, keeps_prior = settings.step, settings.step is not None and settings.step.keeps_prior
        target = {"target": settings.target, "target_weight": settings.target_weight}
        view = {"gaps_in_view": settings.gaps_in_view, "random_state": rng}
        objective = Objective.from_rows(model, rows, self._rule, keep_prior=keeps_prior, **target, **view)
        if keeps_prior and model.family_.priors is not None:
            warn(
                f"{step} undo the priors of the estimator: they make posteriors fit the class weights of the training "
                "rows; for a population with others, leave priors out and take predict_proba(X, class_prior=…)"
            )
        if objective.target and rows.is_one_block:
            warn_of_lost_target(objective)
        tol = max(stop.tol, settings.tol) if isinstance(stop, Converged) else 0.0
        start = self._last_statistics(objective) if getattr(self, "warm_start", False) else None
        if step is None:
            path = optimum(objective, tol, settings.max_iter, start)
        else:
            path = climb(objective, step, stop, settings.max_iter, tol=settings.tol, start=start, random_state=rng)
            at_optimum = tol > 0 and path.stop_reason in ("converged", "no_step", "separable")
            if at_optimum and not keeps_prior:  # fixed steps never leave the leaf, nor the prior that they keep
                path = most_probable(path)
        tell("%s after %d iterations", path.stop_reason, path.n_iter)
        self._report(objective, path, tol, step)
        if step is None and objective.target and settings.gaps_in_view is None and rows.is_one_block:
            warn_of_optimum(path, model.family_, settings.target, rows)
        return self._adopt(objective, path, best_iter_=path.best_iter, joint_model_=path.joint_model)

    def _last_statistics(self, objective: Objective) -> Statistics | None:
        """The statistics where the last fit to the rows of an ``objective`` has ended, if there was one."""
        if not hasattr(self, "estimator_"):
            return None
        last, family = self.estimator_, objective.family
        before, here = sample_size(last.statistics_) * self._frequencies, objective.labels
        origins = (getattr(each, "origin_", None) for each in (last.family_, family))
        same = last.family_.same_form(family) and np.array_equal(*origins)
        if not (same and np.allclose(before, class_counts(here))):
            raise ValueError("warm_start goes on with the rows of the last fit, and these are others: set it to False")
        return last.statistics_

    def _check_estimator(self) -> None:
        if is_pipeline(self.estimator):
            raise ValueError(
                f"{type(self).__name__} calibrates a model and no pipeline: make it the last step of yours, or take "
                "RiskCalibrationCV, which fits the steps before the model anew in each fold"
            )
        if not isinstance(self.estimator, ClosedFormClassifier):
            raise ValueError(
                f"estimator must be a ClosedFormClassifier of rcpkg (from rcpkg import QDA, GaussianNB, …); got "
                f"{self.estimator!r} of {type(self.estimator).__module__}"
            )

    def _validated(
        self, X: ArrayLike | Rows, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[ClosedFormClassifier, Rows]:
        """A clone of the estimator, prepared for its rows, and these."""
        model = clone(self.estimator)
        return model, model._training_rows(X, y, sample_weight)

    def _adopt(self, objective: Objective, path: Path, **fitted: Any) -> Self:
        """Store the model of a ``path``, what it knows of the data, and the way to it, all at once."""
        model = objective.classifier(path.chosen.statistics, path.chosen.parameters)
        way = {
            "n_iter_": path.n_iter,
            "stop_reason_": path.stop_reason,
            "converged_": path.stop_reason in ("converged", "closed_form"),
        }
        history = {name: np.array([row[name] for row in path.history]) for name in path.history[0]}
        return self._store(model, objective.class_frequencies, history, _online=None, **way, **fitted)

    def _store(self, model: ClosedFormClassifier, frequencies: Array, history: Any, **fitted: Any) -> Self:
        """Store a fitted ``model``, the shares of the classes in its rows, the ``history``, and further attributes."""
        check_cost(self.cost, model.classes_)
        known = "classes_", "class_log_prior_", "n_features_in_", "feature_names_in_"
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        vars(self).update({name: getattr(model, name) for name in known if hasattr(model, name)} | fitted)
        vars(self).update(estimator_=model, _frequencies=frequencies, _history=history)
        return self

    def _report(self, objective: Objective, path: Path, tol: float, step: Step | None) -> None:
        """Warn of a way that changed nothing because it could not, or ended before the optimum."""
        reason, n_iter = path.stop_reason, path.n_iter
        if reason == "invalid" and not n_iter:
            message = (
                f"the first step, {step}, left the valid statistics: the closed form is returned uncalibrated; take "
                "shorter steps, or RiskCalibration with step='safe'"
            )
            warn(message, ConvergenceWarning)
        if not tol or reason not in ("max_iter", "no_step", "separable") or (reason == "max_iter" and not n_iter):
            return
        can_be_drawn = hasattr(self, "target_weight") and can(objective.family, "target_weight > 0")
        draw = "set a target_weight > 0" if can_be_drawn and not objective.target else ""
        message = f"not converged after {n_iter} updates: "
        if reason == "separable":
            message += f"the model separates the classes of the training rows, which has no finite optimum; {draw}"
        else:
            message += f"the next promises a gain of {path.point.promise:.2g} a row, more than tol={tol:.2g}"
            if reason == "max_iter":
                remedies = ["raise max_iter"]
            else:
                message += ", which rounding does not let it reach"
                remedies = ["standardise the features", "give the estimator a prior_strength"]
            message += f"; {', '.join(filter(None, [*remedies, draw]))} or raise tol"
        warn(message, ConvergenceWarning)

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

    def scorer(self) -> Scorer:
        """The calibrated model frozen to arrays, for one row at a time: `Scorer`."""
        check_is_fitted(self)
        return self.estimator_.scorer()

    def _check_X(self, X: ArrayLike) -> Array:
        return self.estimator_._check_X(X)

    def _joint_log_proba(self, X: Array) -> Array:
        return self.estimator_._joint_log_proba(X)

    def _log_base(self, X: Array) -> Array | float:
        return self.estimator_._log_base(X)

    def _new_family(self) -> Family:
        """The family of the estimator."""
        return self._closed_form._new_family()

    @property
    def family_(self) -> Family:
        """The family of the calibrated model, which knows the training rows."""
        return self.estimator_.family_

    def _expected_rows(self, X: Array, weights: Array) -> Any:
        return self.estimator_._expected_rows(X, weights)

    @property
    def _cost_of_decisions(self) -> ArrayLike | None:
        return getattr(self._closed_form, "cost", None) if self.cost is None else self.cost

    @property
    def _closed_form(self) -> ClosedFormClassifier:
        """The model that is calibrated, the last step of a pipeline."""
        return self.estimator[-1] if is_pipeline(self.estimator) else self.estimator

    @property
    def _calibrated_at(self) -> Array:
        return np.log(self._frequencies)


def warn_of_lost_target(objective: Objective) -> None:
    """Warn where the target is lost in the tolerance of a search, and would not be if weights of rows had mean one."""
    pulled, mean = objective.target.weight * objective.target.size, objective.total_weight / len(objective.y)
    if pulled / objective.size < SAFE_TOL <= mean * pulled / objective.size:
        warn(
            f"sample_weight sums to {objective.total_weight:.2g}, beside which the {pulled:g} pseudo-rows of the "
            "target count for nothing: divide it by its mean, or set a greater target_weight"
        )


def is_pipeline(estimator: Any) -> bool:
    """Whether an estimator is a pipeline of scikit-learn, which takes time to import."""
    return hasattr(estimator, "steps")


def stop_of(stopping: Any) -> Stop | HeldOut:
    """The stop that ``stopping``, a name or a stop, means."""
    if isinstance(stopping, Stop | HeldOut):
        return stopping
    if not isinstance(stopping, str) or stopping not in STOPS:
        raise ValueError(
            f"stopping must be one of {', '.join(STOPS)}, or a stop such as HeldOut(0.2); got {stopping!r}"
        )
    return STOPS[stopping]


def _follows_streams(model: Any) -> None:
    """Refuse ``partial_fit`` of what leads to no optimum on a stream."""
    if model.target != "generative" or not model._settings().target_weight:
        raise Unsupported(
            "partial_fit needs target='generative' and a target_weight > 0, whose optimum a stream leads to"
        )
    require(model.estimator, "target_weight > 0")


@documented()
@constructed
class RiskCalibration(Learner):
    """Risk-based calibration of a closed-form generative classifier.

    From s = s(X, Y), repeat s ← s + lr · s(X, Y − P) and take the parameters θ(s), P being the posteriors of the
    current model. With a target of b = ``target_weight`` the start is (s + b s̄)/(1 + b m̄/m), and the update
    s ← [s + lr · (s(X, Y − P) + b s̄)] / (1 + lr b m̄/m), which climbs CLL + b [⟨s̄, η⟩ − m̄ ψ(η)].

    Parameters
    ----------
    %(estimator)s
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        %(target)s
    target_weight : float or "auto", default="auto"
        b ≥ 0; 0 is the sources' algorithm. "auto": 0 with fixed steps, else 3. With b > 0 a prior of the estimator
        shapes the target, and nothing else; ``estimator_`` has none.
    step : "safe" or Step, optional
        `Fixed`: s + lr · s(X, Y − P), as in the sources; `Batches`: the same over mini-batches. "safe", or `Safe`:
        steps that stay valid, each shortened until the (penalised) conditional log-likelihood rises enough, most of
        them accelerated by the curvature that the last updates show; where no step is left that rises the run ends. A
        prior of the estimator then shapes the start, and nothing else; ``estimator_`` has none. None: for an
        exponential family the way to the optimum that is fastest, Newton's method or, where that is not to be had or
        ``stopping`` chooses among iterates, safe steps; ``Fixed(0.1)`` otherwise.
    stopping : {"soft_error", "best_soft_error", "best_error", "none"} or Stop, optional
        %(stops)s
        None: "soft_error" with fixed steps, else "none".
    gaps_in_view : float, sequence of floats, "training" or boolean array of shape (K, d), optional
        %(gaps in view)s
    max_iter : int or "auto", default="auto"
        Greatest number of updates. "auto": 63 fixed ones, the "64 iterations" of the sources, or 1000 others.
    tol : float, default=1e-8
        Ends where the next step, Newton's or a safe one of length one, promises to raise the objective by at most this
        many nats a row and pseudo-row. Posteriors of rows unlike the training rows may still move then: on seven
        tables those of networks by up to .004 at the default, and by 7e-5 with ``tol=1e-12``. 0: go on to ``max_iter``.
        A model without natural parameters does not converge by it.
    %(random_state)s
    warm_start : bool, default=False
        Whether ``fit`` goes on where the last one ended, which had the same rows: with few updates a fit, what
        interrupts one costs no more than these.
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    %(path)s
    converged_ : bool
        Whether the reason is "converged". Without a target this does not certify a finite optimum: on rows that the
        model separates in part there is none, and the gradient vanishes on the way there. A `ConvergenceWarning` tells
        of a run with ``stopping="none"`` and a ``tol`` that ended before, and of one whose first update was invalid.

    Raises
    ------
    InvalidStatistics
        In ``fit``, where the closed form itself does not exist, and with ``Fixed(on_invalid="raise")``.
    ValueError
        In ``fit``, where the estimator has ``priors`` and the steps are not fixed: calibration fits the class weights
        of the training rows. Those of another population are for ``predict_proba(X, class_prior=…)``.

    See Also
    --------
    RiskCalibrationCV : Chooses the weight of the target; for data of one's own.

    Notes
    -----
    The default is the optimum with the pooled target, with one weight for all data. Without a target many joint models
    have the posteriors of the training rows: a fit that converges returns the most probable one, where fixed steps lead
    by themselves, or ``joint_model_`` says which it is.
    ``RiskCalibration.as_published(model)`` is the sources' algorithm with the settings of their tables.

    References
    ----------
    rc2025 Algorithm 1; rc2024 §III. The update is also that of extended Baum-Welch (Gopalakrishnan et al., 1991;
    Normandin, 1991). Safe steps and the target are this book's.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import GaussianNB, RiskCalibration
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RiskCalibration(GaussianNB()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.112, 0.058]
    >>> model.stop_reason_
    'converged'
    >>> published = RiskCalibration.as_published(GaussianNB()).fit(X, y)
    >>> published.history_.log_loss[published.best_iter_].round(3).item()
    0.054
    >>> stream = RiskCalibration(GaussianNB(), target="generative", target_weight=1.0)
    >>> stream = stream.partial_fit(X[::2], y[::2], [0, 1, 2]).partial_fit(X[1::2], y[1::2])
    >>> round(stream.score(X, y), 2)
    0.96
    """

    target: TargetName | ClosedFormClassifier = "pooled"
    target_weight: float | Literal["auto"] = "auto"
    step: Literal["safe"] | Step | None = None
    stopping: StopName | Stop | HeldOut | None = None
    gaps_in_view: Any = None
    max_iter: int | Literal["auto"] = "auto"
    tol: float = SAFE_TOL
    random_state: int | np.random.RandomState | None = None
    warm_start: bool = False

    @given_if(_follows_streams)
    @atomic
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        class_prior: ArrayLike | Mapping | None = None,
    ) -> Self:
        """Learn from a further block of rows, once; the first call names all ``classes``. With ``target="generative"``.

        The statistics go to s + Δ + lr · s(X, Y − P), where Δ is what the block adds to those of the closed form, and
        lr = 1/b or, while fewer than n/b rows came before its n, less. In the mean parameters this is stochastic mirror
        ascent with the step 1/(b m) after m rows. What is climbed, the mean over all rows of log p(y | x) +
        b log p(x, y), is b-strongly concave relative to ψ, so that the iterates lack O(log m / m) of its optimum in
        the mean, as long as the parameters stay bounded. A block of more than 250 rows is cut into equal parts.
        ``history_`` has the losses of each part before it was learnt from, and the log-loss of the closed form; while
        that has been the lower one over all rows, the closed form predicts.
        After ``fit`` it begins anew, with the classes of that.

        Where class weights drift, ``class_prior`` are those of the population of this block, as `predict_proba` takes
        them, and P its posteriors: what differs between populations is then not taken for an error of the model.
        """
        self._check_estimator()
        b = self._settings().target_weight
        online = getattr(self, "_online", None)
        if online is None and classes is None:
            classes = getattr(self, "classes_", None)
        for rows, labels, weight in portions(X, y, sample_weight):
            closed_form = deepcopy(online.closed_form) if online else clone(self.estimator)
            closed_form.partial_fit(rows, labels, classes, weight)
            online = after(online, closed_form, Block(rows, labels, weight), b, class_prior)
        way = {
            "n_iter_": len(online.history),
            "best_iter_": len(online.history),
            "stop_reason_": "",
            "converged_": False,
            "joint_model_": "iterate",
        }
        return self._store(online.predictor, online.frequencies, online.history, _online=online, **way)

    @classmethod
    def as_published(
        cls,
        estimator: ClosedFormClassifier,
        *,
        learning_rate: float = 0.1,
        on_invalid: Literal["halt", "raise"] = "halt",
        **changes: Any,
    ) -> Self:
        """Algorithm 1 of rc2025 with the settings of its tables, for ``estimator``.

        Steps ``Fixed(learning_rate, on_invalid)``, 63 updates at most, a stop when the soft error rises, no target;
        ``changes`` are other parameters of the class. rc2024 takes ``stopping="best_error"``.
        """
        if "step" in changes and (learning_rate, on_invalid) != (0.1, "halt"):
            raise ValueError("learning_rate and on_invalid are those of fixed steps: give them to your step")
        settings = {"step": Fixed(learning_rate, on_invalid), "stopping": "soft_error", "max_iter": FIXED_STEPS}
        return cls(estimator, **settings | {"target_weight": 0.0, "tol": 0.0} | changes)

    def _settings(self) -> Settings:
        """To the optimum, drawn to the target, for an exponential family, and as published otherwise; a stop that is
        not the optimum takes iterates."""
        step, stopping = self.step, self.stopping
        if step is None:
            family = can(self.estimator, "convergence")
            to_the_end = stopping is None or isinstance(stop_of(stopping), Converged)
            step = (None if to_the_end else Safe()) if family else Fixed()
        elif isinstance(step, str) and step == "safe":
            step = Safe()
        elif not isinstance(step, Step):
            raise ValueError(f"step must be None, 'safe' or a step such as Fixed(0.1); got {step!r}")
        ascends = step is None or not step.keeps_prior
        max_iter, weight = self.max_iter, self.target_weight
        if stopping is None:
            stopping = "none" if ascends else "soft_error"
        if isinstance(max_iter, str) and max_iter == "auto":
            max_iter = MOST_STEPS if ascends else FIXED_STEPS
        if isinstance(weight, str) and weight == "auto":
            weight = TARGET_WEIGHT if ascends and can(self.estimator, "target_weight > 0") else 0.0
        check_number("max_iter", max_iter, 0, integer=True)
        check_number("tol", self.tol, 0)
        check_target(self.target, weight)
        check_in_view(self.gaps_in_view)
        return Settings(step, stop_of(stopping), max_iter, self.tol, self.target, weight, self.gaps_in_view)
