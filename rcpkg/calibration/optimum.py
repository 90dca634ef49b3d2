"""The optimum of conditional likelihood of an objective, and which of the joint models with its posteriors it is.

Without a target posteriors are all that conditional likelihood knows: it fixes the joint model up to the directions v
that no training row sees, ⟨v, s(x_i, y) − s(x_i, 1)⟩ = 0 for all i and y. Whatever the optimiser, a fit then ends with
`most_probable`: the model of greatest joint likelihood among those with the posteriors found, on the rows of the
training table and on all whose features are in their span. It is the model at which fixed steps from the closed form
end by themselves, and it is unique up to what no model depends on. There is none where the rows have no most probable
member of the family, since features depend on each other or are more than rows; and none is sought for families without
minimal coordinates or with more than 1.5 `MOST_PARAMETERS` such directions. Then the model is the one that the search
ended at, ``joint_model_`` says "search", and another optimiser may tell rows with missing values otherwise, and
complete rows outside of that span. Where rows are separable, wholly or in part, posteriors have no finite optimum
either, and each optimiser ends at others: ``joint_model_`` says "search", too, of the most probable model with these.
With a target the optimum is one model.
"""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration.climb import climb
from rcpkg.calibration.conditional import (
    Conditional,
    Fibre,
    Iterate,
    Smooth,
    closed_form_of,
    finite_natural,
    null_space,
    pooled_parameters,
)
from rcpkg.calibration.constants import MOST_PARAMETERS, NEWTON_TOL, PATIENCE
from rcpkg.calibration.coordinates import Named
from rcpkg.calibration.curvature import MinimalForm
from rcpkg.calibration.newton import LBFGS, Newton
from rcpkg.calibration.objective import Objective, check_each
from rcpkg.calibration.steps import Safe, Step
from rcpkg.calibration.stops import Converged, Path
from rcpkg.checks import warn
from rcpkg.families import Statistics, Unsupported, can
from rcpkg.linalg import MOST_STEPS, RESOLVED


def optimum(
    objective: Objective,
    tol: float,
    max_iter: int,
    start: Any = None,
    step: Step | None = None,
    l2: float = 0.0,
) -> Path:
    """The path to the optimum of an ``objective`` of `calibration_weights`, until a step promises ``tol`` nats a row.

    By Newton's steps, or another second-order ``step``, wherever the family and its rows have coordinates for these,
    and by safe steps otherwise, unless an ``l2`` > 0 or a step is asked for.
    """
    try:
        smooth = in_coordinates(objective, l2, step)
    except Unsupported:
        if l2 or step is not None:
            objective.rows.only("Newton's method, and what needs all rows at once,")  # or says so itself
            raise
        return most_probable(climb(objective, Safe(), Converged(tol), max_iter, start=start))
    first = start if start is None or isinstance(start, Iterate) else smooth.evaluate(start)
    return most_probable(climb(smooth, step or Newton(), Converged(tol), max_iter, start=first))


def in_coordinates(objective: Objective, l2: float = 0.0, step: Step | None = None) -> Smooth:
    """The objective as a function of coordinates; raises `Unsupported` where it has none."""
    if not objective.rows.is_one_block:
        raise Unsupported("Newton's method takes rows that are one block, and several leave safe steps")
    if isinstance(step, LBFGS) and step.coordinates != "whitened":
        return Named(objective, l2, step.coordinates)
    return Conditional(objective, l2)


def most_probable(path: Path) -> Path:
    """A path that means the most probable model with the posteriors of its last point; see the head of this module.

    Where there is none, or rounding loses the posteriors on the way to it, it means those of the search, with a warning
    if rounding loses these too.
    """
    F = path.objective
    F = getattr(F, "source", F)
    if F.target:
        path.joint_model = "optimum" if path.stop_reason == "converged" else "iterate"
        return path
    separated = is_separated(path.point)
    if separated:
        path.stop_reason = "separable"
    direct, log_loss = path.chosen, path.point.losses.log_loss
    # without a finite optimum no model is meant, and the way to the most probable one may be endless
    moved = along_the_fibre(F, finite_natural(path.chosen.natural), PATIENCE if separated else MOST_STEPS)
    for point in filter(None, (moved, direct)):
        if F.evaluate(F.labels, point.parameters).losses.log_loss <= log_loss + RESOLVED:
            unique = point is moved and is_attained(path)
            path.chosen, path.joint_model = point, "most probable" if unique else "search"
            return path
    warn(
        "rounding loses the posteriors that were found, since some features are very skewed or correlated: transform "
        "them (PowerTransformer), or set target_weight > 0",
        ConvergenceWarning,
    )
    return path


def is_separated(point: Any) -> bool:
    """Whether the model of a point without a target or a ridge separates complete rows: then no optimum is finite."""
    if isinstance(point, Iterate):
        return point.separated
    F = point.objective
    try:
        check_each(F.rows, F.family.check_complete)
    except Unsupported:
        return False
    return can(F.family, "Newton's method") and point.losses.error == 0


def is_attained(path: Path) -> bool:
    """Whether a path without a target ended near a finite optimum, as far as the family's coordinates can tell."""
    F, point = path.objective, path.point
    if path.stop_reason == "separable":
        return False
    if isinstance(F, Objective):
        try:
            F = in_coordinates(F)
        except Unsupported:
            return True
        point = F.at_natural(point.natural)
    return F.is_attained(point)


def along_the_fibre(objective: Objective, natural: Any, max_iter: int = MOST_STEPS) -> Iterate | None:
    """The most probable model with the posteriors of an η, if there is one and a way to it, or where that ends."""
    family = objective.family
    if not has_most_probable(objective):
        return None
    try:
        check_each(objective.rows, family.check_complete)
        check_each(objective.rows, family.check_full)
    except Unsupported:
        return None
    pooled = pooled_parameters(objective)
    forms = [MinimalForm(family, block.X, objective.labels, pooled) for block in objective.rows]
    form = forms[0]
    if not 0 < form.width - 1 + form.map.n_shared <= 1.5 * MOST_PARAMETERS:
        return None
    null = null_space([each.rows for each in forms])
    # with a common precision that makes it valid η may lose digits: only where there is no other start
    made_valid = form.coefficients(family.natural_parameters(family.from_natural(natural)))
    for betas in (nearest(form, objective, natural), [made_valid]):
        fibres = [Fibre(form, objective, beta, null) for beta in betas]
        if fibres[0].dimension > 1.5 * MOST_PARAMETERS:
            return None
        starts = [fibre.iterate(np.zeros(fibre.dimension)) for fibre in fibres]
        start = min(starts, key=lambda point: point.evaluation.value)
        if np.isfinite(start.evaluation.value):
            try:
                path = climb(start.objective, Newton(), Converged(NEWTON_TOL), max_iter, start=start)
                if path.stop_reason != "converged":
                    return path.point
                # the step whose promise ended the way is known: with it the end tells nothing of the way but rounding
                end = start.objective.iterate(path.point.z - path.point.newton_step)
                return end if np.isfinite(end.evaluation.value) else path.point
            except np.linalg.LinAlgError:  # the curvature is singular but for rounding
                return None
    return None


def nearest(form: MinimalForm, objective: Objective, natural: Statistics) -> list[Array]:
    """Two starts β with the posteriors of an η, near the closed form, as other models with these posteriors are.

    What all classes have in common is the closed form's, in the mean over the classes or so that no class has more of
    it. The mean would make a rare state that tells a class nearly sure in it."""
    beta, closed = (form.coefficients(each) for each in (natural, finite_natural(closed_form_of(objective))))
    betas = []
    for chosen in (np.mean, np.min):
        shift = closed - beta
        form.by_class(shift)[:] = chosen(form.by_class(shift), axis=0)
        betas.append(beta + shift)
    return betas


def has_most_probable(objective: Objective) -> bool:
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
