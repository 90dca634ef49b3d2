"""Relatives of risk-based calibration: the same loop with another rule, or with a learning rate of one."""

import numpy as np

from rcpkg.calibration.loop import RiskCalibration
from rcpkg.calibration.rules import frequency_weights, soft_error_weights
from rcpkg.families import ClosedFormClassifier


class TM(RiskCalibration):
    """The TM algorithm of Edwards and Lauritzen for a full exponential family.

    The T-step linearises the marginal log-likelihood, the M-step maximises what is left:
    s ← s + s(X, Y) − s(X, h), that is `RiskCalibration` with a learning rate of one. Statistics that do not depend
    on the class do not move, because each row of Y − P sums to zero.

    Parameters
    ----------
    estimator : ClosedFormClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    max_iter : int, default=64
        Number of updates.
    stopping : {"soft_error", "best_soft_error", "best_error", "validation", "none"}, default="none"
        "soft_error": stop when the training soft error rises, and return the model before. "best_soft_error",
        "best_error", "validation": the iterate of least soft error, error, log-loss on held-out rows. "none": the last.
    on_invalid : {"halt", "freeze", "raise"}, default="halt"
        When an update leaves the valid statistics: end with the iterates so far (rc2025), keep the values that
        would turn invalid (rc2024), or raise `InvalidStatistics`.
    validation_fraction : float, optional
        Part of the rows, between 0 and 1, held out for ``stopping="validation"``, and given only then.
    tol : float, default=0.0
        Ends where a step of length one promises no more than this gain, in nats a row, were the rule a gradient;
        0: go on to ``max_iter``.
    random_state : int or RandomState, optional
        For the choice of the held-out rows.
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
        left the valid statistics.
    converged_ : bool
        Whether the reason is "converged". A `ConvergenceWarning` tells of a run with ``stopping="none"`` and a ``tol``
        that ended before, and of one whose first update was invalid.

    References
    ----------
    rc2025 §5.2; Edwards and Lauritzen (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import TM, GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TM(GaussianNB(), max_iter=10).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, -1]].round(3).tolist()
    [0.111, 0.047]
    >>> round(model.score(X, y), 2)
    0.97
    """

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        max_iter: int = 64,
        stopping: str = "none",
        on_invalid: str = "halt",
        validation_fraction: float | None = None,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            learning_rate=1.0,
            max_iter=max_iter,
            stopping=stopping,
            step="fixed",
            on_invalid=on_invalid,
            target_weight=0.0,
            validation_fraction=validation_fraction,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )


class DiscriminativeFrequencyEstimate(RiskCalibration):
    """Discriminative frequency estimates of Su et al., in the batch form of rc2025: s ← s + lr · s(X, Y ∘ (1 − P)).

    The formula is printed without a learning rate. The total weight of the statistics grows with each update by lr
    times the sum of the soft errors.

    Parameters
    ----------
    estimator : ClosedFormClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    learning_rate : float, default=0.1
        lr > 0, on statistics that are sums over rows. With ``step="safe"`` the first step tried.
    max_iter : int, default=64
        Number of updates.
    stopping : {"soft_error", "best_soft_error", "best_error", "validation", "none"}, default="soft_error"
        "soft_error": stop when the training soft error rises, and return the model before. "best_soft_error",
        "best_error", "validation": the iterate of least soft error, error, log-loss on held-out rows. "none": the last.
    step : {"fixed", "safe"}, default="fixed"
        "safe": valid steps, each shortened until the (penalised) conditional log-likelihood rises enough; the run ends
        where none is left. A prior of the estimator shapes the start, and nothing else.
    on_invalid : {"halt", "freeze", "raise"}, default="halt"
        When a fixed step leaves the valid statistics: end with the iterates so far (rc2025), keep the values that
        would turn invalid (rc2024), or raise `InvalidStatistics`.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with its covariances or counts pooled, the closed form itself,
        one that is the same for every class, the network with one parent less a feature, or a model of yours.
    target_weight : float, default=0.0
        b ≥ 0. With b > 0 a prior of the estimator shapes the target, and nothing else.
    batch_size : int, optional
        Rows of a mini-batch; an iteration is then a pass over all batches, with fixed steps lr t^(−2/3).
    validation_fraction : float, optional
        Part of the rows, between 0 and 1, held out for ``stopping="validation"``, and given only then.
    tol : float, default=0.0
        Ends where a step of length one promises no more than this gain, in nats a row, were the rule a gradient;
        0: go on to ``max_iter``.
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
        left the valid statistics; "no_step": no safe step is left.
    converged_ : bool
        Whether the reason is "converged". A `ConvergenceWarning` tells of a run with ``stopping="none"`` and a ``tol``
        that ended before, and of one whose first update was invalid.

    References
    ----------
    rc2025 §5.1; Su et al. (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from rcpkg import DiscriminativeFrequencyEstimate, GaussianNB
    >>> X, y = load_wine(return_X_y=True)
    >>> model = DiscriminativeFrequencyEstimate(GaussianNB()).fit(X, y)
    >>> model.history_.log_loss.iloc[[0, model.best_iter_]].round(3).tolist()
    [0.051, 0.022]
    >>> round(model.score(X, y), 2)
    0.99
    """

    _rule = staticmethod(frequency_weights)

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        learning_rate: float = 0.1,
        max_iter: int = 64,
        stopping: str = "soft_error",
        step: str = "fixed",
        on_invalid: str = "halt",
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        batch_size: int | None = None,
        validation_fraction: float | None = None,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            learning_rate=learning_rate,
            max_iter=max_iter,
            stopping=stopping,
            step=step,
            on_invalid=on_invalid,
            target=target,
            target_weight=target_weight,
            batch_size=batch_size,
            validation_fraction=validation_fraction,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )


class SoftErrorCalibration(RiskCalibration):
    """The exact gradient of the soft 0-1 loss in place of Y − P: s ← s + lr · s(X, W), W_iy = P_i,y_i (Y_iy − P_iy).

    Its objective is minus the sum of the soft errors 1 − P_i,y_i, plus b [⟨s̄, η⟩ − m̄ ψ(η)] with a target.

    Parameters
    ----------
    estimator : ClosedFormClassifier
        The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
    learning_rate : float, default=0.1
        lr > 0, on statistics that are sums over rows. With ``step="safe"`` the first step tried.
    max_iter : int, default=64
        Number of updates.
    stopping : {"soft_error", "best_soft_error", "best_error", "validation", "none"}, default="soft_error"
        "soft_error": stop when the training soft error rises, and return the model before. "best_soft_error",
        "best_error", "validation": the iterate of least soft error, error, log-loss on held-out rows. "none": the last.
    step : {"fixed", "safe"}, default="fixed"
        "safe": valid steps, each shortened until the (penalised) soft error falls enough; the run ends where none is
        left. A prior of the estimator shapes the start, and nothing else.
    on_invalid : {"halt", "freeze", "raise"}, default="halt"
        When a fixed step leaves the valid statistics: end with the iterates so far (rc2025), keep the values that
        would turn invalid (rc2024), or raise `InvalidStatistics`.
    target : {"pooled", "generative", "grand", "nested"} or fitted ClosedFormClassifier, default="pooled"
        Model that the penalty draws to: the closed form with its covariances or counts pooled, the closed form itself,
        one that is the same for every class, the network with one parent less a feature, or a model of yours.
    target_weight : float, default=0.0
        b ≥ 0. With b > 0 a prior of the estimator shapes the target, and nothing else.
    batch_size : int, optional
        Rows of a mini-batch; an iteration is then a pass over all batches, with fixed steps lr t^(−2/3).
    validation_fraction : float, optional
        Part of the rows, between 0 and 1, held out for ``stopping="validation"``, and given only then.
    tol : float, default=0.0
        Ends where a step of length one promises no more than this gain, in nats a row, were the rule a gradient;
        0: go on to ``max_iter``.
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
        left the valid statistics; "no_step": no safe step is left.
    converged_ : bool
        Whether the reason is "converged". A `ConvergenceWarning` tells of a run with ``stopping="none"`` and a ``tol``
        that ended before, and of one whose first update was invalid.

    References
    ----------
    The gradient of rc2025 eq. 2, which the sources approximate by Y − P.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import GaussianNB, SoftErrorCalibration
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftErrorCalibration(GaussianNB()).fit(X, y)
    >>> model.history_.soft_error.iloc[[0, model.best_iter_]].round(3).tolist()
    [0.052, 0.043]
    >>> round(model.score(X, y), 2)
    0.97
    """

    _rule = staticmethod(soft_error_weights)
    _objective_loss = "soft_error"

    def __init__(
        self,
        estimator: ClosedFormClassifier,
        *,
        learning_rate: float = 0.1,
        max_iter: int = 64,
        stopping: str = "soft_error",
        step: str = "fixed",
        on_invalid: str = "halt",
        target: str | ClosedFormClassifier = "pooled",
        target_weight: float = 0.0,
        batch_size: int | None = None,
        validation_fraction: float | None = None,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            learning_rate=learning_rate,
            max_iter=max_iter,
            stopping=stopping,
            step=step,
            on_invalid=on_invalid,
            target=target,
            target_weight=target_weight,
            batch_size=batch_size,
            validation_fraction=validation_fraction,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
