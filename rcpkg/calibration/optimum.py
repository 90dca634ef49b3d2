"""The optimum of conditional likelihood of an objective, with or without a target or a ridge; as steps of `climb`, too.

One function decides on the search. With a target it is Newton's method in minimal coordinates (`TargetPath`), without
one that of multinomial logistic regression on the features of the family (`by_newton`); L-BFGS in named coordinates
where these are asked for, or a Hessian is too large.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.curvature import MinimalForm, is_state, within_reach
from rcpkg.calibration.features import Features
from rcpkg.calibration.lbfgs import (
    LARGEST_WHITENED,
    in_free_coordinates,
    in_linear_coordinates,
    refuse_zero_probabilities,
)
from rcpkg.calibration.logistic import LogisticObjective
from rcpkg.calibration.newton import Found, by_newton, free_rows
from rcpkg.calibration.objective import Objective, Point, check_each
from rcpkg.calibration.steps import Run, Step
from rcpkg.calibration.stops import Outcome
from rcpkg.calibration.target_path import TargetPath, by_safe_steps
from rcpkg.families import Statistics, can, require
from rcpkg.linalg import EPS, Factor, backtracked, jittered_cholesky

MOST_FEATURES = 1500  # beyond, whichever model with the posteriors comes first
MOST_STEPS = 1000  # along the fibre
TOL = 1e-12  # squared length of a Newton step there, in nats a row
BEYOND = 0.1  # of a step there, by which it could be longer and still end inside the domain
LOST = 1e-6  # nats a row that rounding may cost there


class Settings(NamedTuple):
    """How to search: those of `ConditionalLikelihood`, and the gain in nats a row at which safe steps end, where these
    take the place of Newton's."""

    solver: str = "auto"
    coordinates: str = "whitened"
    l2: float = 0.0
    tol: float = 1e-7
    max_iter: int = 1000
    safe_tol: float = 1e-10

    @property
    def by_default(self) -> bool:
        """Whether any way to the optimum will do."""
        return (self.solver, self.coordinates, self.l2) == ("auto", "whitened", 0.0)


AUTO = Settings()


def fastest_optimum(objective: Objective, tol: float, max_iter: int, start: Statistics | None = None) -> Outcome:
    """The optimum of an ``objective``, by the second-order solver wherever there is one, and by safe steps otherwise.

    It ends where the next step promises at most ``tol`` nats a row: one of Newton's half its squared length.
    """
    if objective.rows.is_one_block and not _has_scores(objective):
        return along_the_fibre(objective, by_safe_steps(objective, tol, max_iter, start))
    settings, natural = Settings(tol=float(np.sqrt(2 * tol)), max_iter=max_iter, safe_tol=tol), None
    if start is not None:
        natural = objective.family.natural_parameters(objective.family.parameters(start))
    return optimum_of(objective, settings, natural)


def _has_scores(objective: Objective) -> bool:
    """Whether the scores of all rows are linear in features that the classes share, as Newton's method takes them."""
    family = objective.family
    try:
        require(family, "Newton's method")
        check_each(objective.rows, family.check_complete)
        check_each(objective.rows, family.check_full)
    except ValueError:
        return False
    return True


def along_the_fibre(objective: Objective, end: Outcome) -> Outcome:
    """The most probable model with the posteriors of a path's ``end``, where there is no target and a way to it."""
    if objective.target or not _has_scores(objective):
        return end
    family = objective.family
    natural, near = (_finite(family.natural_parameters(at)) for at in (end.parameters, _closed_form_of(objective)))
    parameters = most_probable(objective, natural, near, end.history[-1]["log_loss"])
    return end._replace(statistics=_statistics_of(objective, parameters), parameters=parameters)


def optimum_of(objective: Objective, settings: Settings = AUTO, natural: Statistics | None = None) -> Outcome:
    """The optimum of an ``objective`` of `calibration_weights`, from its start or from another η, ``natural``.

    On rows of several blocks safe steps lead there.
    """
    if settings.by_default and not objective.rows.is_one_block:
        start = None if natural is None else _statistics_of(objective, objective.family.from_natural(natural))
        return along_the_fibre(objective, by_safe_steps(objective, settings.safe_tol, settings.max_iter, start))
    family, X = objective.family, objective.X
    family.check_complete(X)
    family.check_full(X)
    if objective.target and settings.solver != "lbfgs" and settings.coordinates == "whitened":
        path = TargetPath(objective, max_iter=settings.max_iter)
        if path.lack and settings.solver == "newton":
            raise ValueError(f"solver='newton' is not to be had: {path.lack}; leave it at 'auto'")
        return path.follow(objective.target.weight, settings.tol, settings.safe_tol, natural)
    if natural is None:
        natural = family.natural_parameters(_closed_form_of(objective))
    if settings.coordinates == "closed_form":
        refuse_zero_probabilities(natural)
    start = _finite(natural)
    found = searched(objective, settings, start)
    if objective.target:
        parameters = family.from_natural(found.natural)
    else:
        parameters = most_probable(objective, found.natural, start, found.iterates.history[-1]["log_loss"])
    iterates = found.iterates
    statistics = _statistics_of(objective, parameters)
    return Outcome.found(statistics, parameters, iterates.value, iterates.history, found.stop_reason)


def searched(objective: Objective, settings: Settings, natural: Statistics) -> Found:
    """What the search finds from ``natural`` on that the settings, the family and its size ask for."""
    name, l2, linear = settings.coordinates, settings.l2, can(objective.family, "l2")
    given = {"start": natural, "tol": settings.tol, "max_iter": settings.max_iter}
    if not linear and (l2 or settings.solver == "newton" or name not in ("whitened", "standardised")):
        raise ValueError(
            f"the scores of {type(objective.family).__name__} are not known to be linear in features of the rows: "
            "l2, solver='newton' and linear coordinates are not available; leave them at their defaults"
        )

    def pooled() -> Any:
        return pooled_parameters(objective)

    if objective.target or name == "standardised" or not linear:
        coordinates = objective.family.free_coordinates(pooled(), objective.target is not None)
        return in_free_coordinates(objective, coordinates=coordinates, **given)
    if settings.solver == "newton" or (settings.solver == "auto" and name == "whitened"):
        logistic = conditioned(objective, l2, pooled())
        if logistic is not None:
            return by_newton(logistic, **given)
        name = "curvature"
    features, ridge = features_of(objective, "plain" if l2 else "natural"), None
    if l2 and name in ("whitened", "curvature") and features.width <= LARGEST_WHITENED:
        features = features_of(objective, "conditioned", pooled())
        ridge = features.ridge()
    r = len(objective.family.classes_)
    logistic = LogisticObjective(features, objective.y, r, objective.weight, l2, r, ridge)
    certified = partial(conditioned, objective, l2, pooled())
    return in_linear_coordinates(logistic, name=name, certified=certified, **given)


def features_of(objective: Objective, kind: str, pooled: Any = None) -> Features:
    """Those of its rows."""
    family = objective.family
    return Features(family.feature_map(objective.X, kind, pooled=pooled), len(family.classes_))


def conditioned(objective: Objective, l2: float, pooled: Any) -> LogisticObjective | None:
    """The objective in features of good condition; None where they are too many for a curvature."""
    features, r = features_of(objective, "conditioned", pooled), len(objective.family.classes_)
    free = free_rows(r, features.width)
    if not free:
        return None
    ridge = features.ridge() if l2 else None
    return LogisticObjective(features, objective.y, r, objective.weight, l2, free, ridge)


def pooled_parameters(objective: Objective) -> Any:
    """Pooled parameters of the rows alone, which have their units, if these have a positive definite covariance."""
    if not can(objective.family, "target='pooled'"):
        return None
    try:
        return objective.family.pooled_parameters(objective.labels)[0]
    except InvalidStatistics:
        return objective.family.pooled_parameters(objective.start)[0]


def _closed_form_of(objective: Objective) -> Any:
    """Parameters of the closed form, or with a target of where its path begins."""
    closed = None if objective.target else objective.closed_form
    return objective.family.parameters(objective.start) if closed is None else closed


def _statistics_of(objective: Objective, parameters: Any) -> Statistics:
    """s with θ(s) = ``parameters`` of as many rows as there are."""
    return objective.total_weight * objective.family.mean_parameters(parameters)


def _finite(natural: Statistics) -> Statistics:
    """η with the logarithms of zero probabilities replaced by that of rounding."""

    def replaced(part: Statistics | Array) -> Statistics | Array:
        return _finite(part) if isinstance(part, Statistics) else np.where(np.isneginf(part), np.log(EPS), part)

    return natural.map(replaced)


@dataclass(frozen=True)
class Newton(Step):
    """One step to the optimum of conditional likelihood by Newton's method, of at most ``max_iter`` iterations, as
    `ConditionalLikelihood` takes it: to where a Newton step has at most the length ``tol``."""

    tol: float = 1e-7
    max_iter: int = 1000

    @property
    def settings(self) -> Settings:
        """Those of the search."""
        return Settings("newton", tol=self.tol, max_iter=self.max_iter)

    def begin(self, objective: Objective, rng: np.random.RandomState) -> Run:
        require(objective.family, "ConditionalLikelihood")

        over = False

        def run(point: Point, t: int) -> Point | None:
            nonlocal over
            if over:
                return None
            optimum = optimum_of(objective, self.settings, point.natural)
            over = optimum.stop_reason == "converged"
            following = objective.at(optimum.statistics, optimum.parameters, float(len(optimum.history) - 1))
            return following if following.value > point.value else None

        return run


@dataclass(frozen=True)
class LBFGS(Newton):
    """One step to the optimum of conditional likelihood by L-BFGS in one of the ``coordinates`` of
    `ConditionalLikelihood`, whose ``tol`` it has."""

    coordinates: str = "whitened"

    @property
    def settings(self) -> Settings:
        return Settings("lbfgs", self.coordinates, tol=self.tol, max_iter=self.max_iter)


def most_probable(objective: Objective, natural: Statistics, near: Statistics, log_loss: float) -> Any:
    """Parameters of the model of greatest likelihood with the posteriors of η, ``natural``, and their ``log_loss``;
    another η that is finite, such as that of the closed form, is ``near``.

    Where there is none, or rounding loses the posteriors on the way to it, those of η, with a warning if it loses these
    too.
    """
    family = objective.family
    direct = family.from_natural(natural)
    if not _has_most_probable(objective):
        return direct
    for parameters in _along_the_fibre(objective, natural, direct, near), direct:
        if objective.at(objective.labels, parameters).losses.log_loss <= log_loss + LOST:
            return parameters
    warnings.warn(
        "rounding loses the posteriors that were found, since some features are very skewed or correlated: transform "
        "them (PowerTransformer), or set target_weight > 0",
        ConvergenceWarning,
        stacklevel=2,
    )
    return direct


def _has_most_probable(objective: Objective) -> bool:
    """Whether there is a way along the fibre, and a model with the rows' means of all features."""
    family = objective.family
    if not can(family, "Newton's method"):
        return False
    try:
        if can(family, "target='grand'"):
            family.without_prior().grand_parameters(objective.labels)
    except InvalidStatistics:
        return False
    return True


def _along_the_fibre(objective: Objective, natural: Statistics, parameters: Any, near: Statistics) -> Any:
    """The most probable model with the posteriors of η, ``natural``, and its ``parameters``, by Newton's method.

    With c added to the coefficients of every class, and d to the shared ones, posteriors stay. On this fibre the
    log-likelihood of the rows is m [⟨(c, d), t⟩ − ψ(η + (c, d))] but for a constant, concave, t being the means of the
    features over the rows. At its maximum the model has these means, as iterates of fixed steps from the closed form.
    """
    family = objective.family
    form = MinimalForm(family, objective.some, objective.labels)
    n_features = form.width - 1 + form.map.shared
    if not 0 < n_features <= MOST_FEATURES:
        return parameters
    t = _over_classes(form, form.sums(objective.labels)) / objective.total_weight
    beta = form.coefficients(natural)
    beta = beta + _of_all(form, _over_classes(form, form.coefficients(near) - beta) / _counts(form))

    def loss(end: Array) -> tuple[float, Any]:
        if not form.map.is_inside(form.natural(beta + _of_all(form, end + BEYOND * (end - c)))):
            return np.inf, None
        moved = form.natural(beta + _of_all(form, end))
        try:
            return family.log_partition(moved) - t @ end, family.from_natural(moved)
        except np.linalg.LinAlgError:  # inside but for rounding
            return np.inf, None

    c = np.zeros(n_features)
    value, nearer = loss(c)
    if nearer is None:
        beta = form.coefficients(family.natural_parameters(parameters))
        value, nearer = loss(c)
    parameters = nearer or parameters
    for _ in range(MOST_STEPS if nearer else 0):
        mean, covariance = _over_rows(form, parameters)
        states = is_state(covariance.diagonal(), mean)
        curvature = partial(_with_diagonal, covariance)
        try:
            step = within_reach(curvature, t - mean, states)[0].solve(t - mean)
        except np.linalg.LinAlgError:  # singular but for rounding
            break
        slope = float((mean - t) @ step)
        end = backtracked(loss, c, value, step, slope) if slope < -TOL else None
        if end is None:
            break
        _, c, value, parameters = end
    return parameters


def _with_diagonal(covariance: Array, more: Array) -> Factor:
    return jittered_cholesky(covariance + np.diag(more))


def _over_classes(form: MinimalForm, vector: Array) -> Array:
    """Sums over the classes for the own features, without the constant, and the entries of the shared ones."""
    return np.concatenate([form.by_class(vector).sum(axis=0)[1:], vector[form.r * form.width :]])


def _of_all(form: MinimalForm, c: Array) -> Array:
    """The vector β of coefficients that all classes share."""
    own, shared = np.split(c, [form.width - 1])
    return np.concatenate([np.tile(np.append(0.0, own), form.r), shared])


def _counts(form: MinimalForm) -> Array:
    """Of how many entries each is the sum over the classes."""
    return np.append(np.full(form.width - 1, float(form.r)), np.ones(form.map.shared))


def _over_rows(form: MinimalForm, parameters: Any) -> tuple[Array, Array]:
    """Mean and covariance of the features under p(x)."""
    centres, covariances = form.map.moments(parameters)
    prior = np.exp(parameters.log_prior)
    mean = prior @ centres
    apart = centres - mean
    return mean, np.einsum("y,yab->ab", prior, covariances) + (apart * prior[:, None]).T @ apart
