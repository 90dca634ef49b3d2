"""The optimum of conditional likelihood, by first- or second-order steps on the natural parameters."""

from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from rcpkg.base import constructed, one_thread_if_small
from rcpkg.calibration._docs import documented
from rcpkg.calibration.coordinates import COORDINATES
from rcpkg.calibration.learner import Learner
from rcpkg.calibration.newton import LBFGS, Newton
from rcpkg.calibration.objective import Objective, TargetName, check_each, check_target
from rcpkg.calibration.optimum import optimum
from rcpkg.calibration.stops import Path
from rcpkg.checks import check_choice, check_number, warn
from rcpkg.families import ClosedFormClassifier, require
from rcpkg.progress import telling
from rcpkg.rows import Rows

SOLVERS = ("auto", "newton", "lbfgs")


@documented()
@constructed
class ConditionalLikelihood(Learner):
    """Maximum conditional likelihood of an exponential-family model by steps on its natural parameters.

    Maximises Σ_i w_i log p(y_i | x_i) + b [⟨s̄, η⟩ − m̄ ψ(η)] − l2 ‖β‖²/2, with p(y | x) ∝ exp⟨η, s(x, y)⟩ and scores
    β_y · φ(x) in features φ that the classes share. For b = 0 many joint models have the posteriors of the rows: the
    most probable one is returned, whatever the optimiser, unless ``joint_model_`` says otherwise.

    Parameters
    ----------
    estimator : ConjugateClassifier
        The model; its prior shapes the start, or the target, and nothing else. ``priors`` must be None. `MultinomialNB`
        needs rows of equal length.
    coordinates : {"whitened", "natural", "closed_form", "curvature"}, default="whitened"
        What L-BFGS moves: the coefficients β as they are ("natural"), as multiples of those of the closed form
        ("closed_form"; for `CategoricalNB` WANBIA-C; zero does not move, and −∞, of a state of probability zero, is
        refused), times the root of the diagonal of the Hessian there ("curvature"), or such that the Hessian at equal
        posteriors is the identity ("whitened"). Newton's steps do not depend on them.
    solver : {"auto", "newton", "lbfgs"}, default="auto"
        "newton": steps in a trust region, by the Hessian of all rows or, where rows or coefficients are many, that of
        some rows or of each class alone, improved by L-BFGS or conjugate gradients. "lbfgs": from the closed form.
        "auto": "lbfgs" for coordinates other than "whitened", "newton" otherwise, and the safe steps of
        `RiskCalibration` for rows of several blocks and families without minimal coordinates.
    l2 : float, default=0.0
        Penalty ≥ 0: scikit-learn's ``LogisticRegression(C=1 / l2)`` on the features 1, x, x_a x_b (a ≤ b) of `QDA`,
        x_a² alone of `GaussianNB`, x of models that share covariances, indicators of all states of `CategoricalNB`,
        the features themselves of other counts. They are those of X as given, constant ones left out. As there, the
        constant is free, and with two classes β is the difference of theirs.
    max_iter : int, default=1000
        Greatest number of iterations.
    tol : float, default=1e-7
        Ends any solver where the length √(gᵀH⁻¹g) of a Newton step does not exceed it, which leaves about tol²/2 nats a
        row; on rows that the model separates, where the supremum 0 is not attained, where the log-loss falls below it.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        %(target)s
    target_weight : float, default=0.0
        b ≥ 0. With b > 0 the optimum is finite on separable rows too. It goes with "whitened" coordinates alone: others
        leave the domain of a Gaussian target.
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    classes_ : array of shape (r,)
        Labels, sorted.
    class_log_prior_ : array of shape (r,)
        log p(y) of ``estimator_``, which are not the shares of the classes in the rows.
    estimator_ : ClosedFormClassifier
        A model with the posteriors of the optimum; with a target the optimum.
    n_iter_ : int
        Iterations made.
    history_ : DataFrame
        A row an iterate, row 0 the start: iteration, soft_error, error, log_loss, step, the length of the next Newton
        step as the solver estimates it, and with a penalty the objective, as in ``objective_``.
    objective_ : float
        What was maximised, with its sign changed, per row and pseudo-row: the mean log-loss with the penalty.
    converged_ : bool
        Whether ``tol`` was reached; a `ConvergenceWarning` tells otherwise. On rows that are separable in part (a state
        that occurs in one class only, say) no optimum is finite, and the gradient vanishes on the way there.
    stop_reason_ : str
        "converged"; "separable": see ``separable_``; "max_iter"; "no_step": the line search found no better η.
    joint_model_ : str
        Which of the models with these posteriors ``estimator_`` is: with a target the "optimum"; else the
        "most probable" one or, where there is no way to that or no finite optimum (rows are separable, wholly or in
        part), what the "search" ended at. Another solver may then end at a model that tells rows with missing values,
        and rows far from those of the table, otherwise.
    separable_ : bool
        There is no penalty, and the last η gives each row's own class the largest score: no finite optimum exists.

    References
    ----------
    The optimum that rc2025 §5.2 and wanbia2014 approach; L-BFGS: Byrd et al. (1995).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import LDA, ConditionalLikelihood
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # setosa can be told from the others without error
    >>> model = ConditionalLikelihood(LDA()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.069, 0.059]
    >>> model.converged_, model.separable_
    (True, False)
    """

    coordinates: Literal["whitened", "natural", "closed_form", "curvature"] = "whitened"
    solver: Literal["auto", "newton", "lbfgs"] = "auto"
    l2: float = 0.0
    max_iter: int = 1000
    tol: float = 1e-7
    target: TargetName | ClosedFormClassifier = "pooled"
    target_weight: float = 0.0

    objective_: ClassVar[float]
    separable_: ClassVar[bool]
    _needs_complete_rows = True

    def _check_parameters(self) -> None:
        self._check_estimator()
        check_number("max_iter", self.max_iter, 0, integer=True)
        check_target(self.target, self.target_weight)
        check_number("tol", self.tol, 0, above=True)
        check_number("l2", self.l2, 0)
        check_choice("coordinates", self.coordinates, COORDINATES)
        check_choice("solver", self.solver, SOLVERS)
        if self.l2 and self.target_weight:
            raise ValueError("l2 > 0 and target_weight > 0 are two penalties: choose one of them")
        if self.target_weight and self.coordinates != "whitened":
            raise ValueError(
                f"coordinates={self.coordinates!r} go with no target_weight > 0: a Gaussian model leaves the domain of "
                "the target's penalty in them; leave them at 'whitened'"
            )
        require(self.estimator, "ConditionalLikelihood")

    @telling
    @one_thread_if_small
    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the closed form, then search for the optimum from there."""
        self._check_parameters()
        model, rows = self._validated(X, y, sample_weight)
        objective = Objective.from_rows(model, rows, target=self.target, target_weight=self.target_weight)
        for refuse in objective.family.check_complete, objective.family.check_full:
            check_each(objective.rows, refuse)
        by_lbfgs = self.solver == "lbfgs" or (self.solver == "auto" and self.coordinates != "whitened")
        step = LBFGS(self.coordinates) if by_lbfgs else Newton() if self.solver == "newton" else None
        path = optimum(objective, self.tol**2 / 2, self.max_iter, step=step, l2=self.l2)
        self._warn(path)
        of_optimum = {"joint_model_": path.joint_model, "objective_": path.value}
        return self._adopt(objective, path, separable_=path.stop_reason == "separable", **of_optimum)

    def _warn(self, path: Path) -> None:
        if path.stop_reason == "converged":
            return
        penalised = self.l2 or self.target_weight
        far = np.sqrt(2 * path.point.promise)  # by the Hessian, which what an optimiser holds for it may belie
        ended = f"the search ended after {path.n_iter} iterations, about {far:.2g} from the optimum"
        message = {
            "separable": "the model separates the classes of the training rows, so that no finite optimum exists",
            "max_iter": f"{ended}; raise max_iter or tol",
            "no_step": f"{ended}, and rounding lets no further step gain; standardise the features or raise tol",
        }[path.stop_reason]
        advice = "" if penalised else "; a target_weight > 0 makes the problem well posed"
        warn(f"{message}{advice}", ConvergenceWarning)
