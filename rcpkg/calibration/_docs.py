"""What the docstrings of the learners share."""

from functools import partial

from rcpkg._docs import documented

BLOCKS = {
    "estimator": """
        estimator : ClosedFormClassifier
            The model to calibrate, such as ``QDA()``; it is cloned, not fitted itself.
        """,
    "target": """
            Model that the penalty draws to: the closed form with what distinguishes the classes pooled (covariances,
            distributions of counts), the closed form itself, one that is the same for every class, the network in which
            each feature has one parent less (`TAN`, `KDependenceBayes`), or a model of yours; where it is cloned, as in
            cross-validation, in a ``FrozenEstimator`` of scikit-learn.
        """,
    "stops": """
            "soft_error": stop when the training soft error rises, and return the model before (rc2025).
            "best_soft_error", "best_error" (rc2024): the best of all iterates. "none": the last iterate. `HeldOut`: the
            iterate of least log-loss on held-out rows; `Converged`: the last, once it has converged.
        """,
    "gaps in view": """
            Calibrate also for rows with gaps to come: each training row shares its weight w evenly with K masked copies
            of itself, and log p(y | what a copy keeps) counts w / (K + 1). One copy for each rate, in [0, 1), at which
            values are lost at random, for each given pattern, True where a value is hidden, or with "training" one with
            the gaps of another training row. A copy that loses nothing is its row again: a rate of 0, like a table
            without gaps, shows none. One that loses everything says nothing. The closed form and the target are those
            of the rows as they are. Only rows in memory, of models that take gaps in training; no Newton's method.
        """,
    "on_invalid": """
        on_invalid : {"halt", "raise"}, default="halt"
            When an update leaves the valid statistics: end with the iterates so far (rc2025), or raise
            `InvalidStatistics`.
        """,
    "step and stop": """
        step : Step, optional
            `Fixed`, `Batches` or `Safe`; ``Fixed(0.1)`` by default.
        stopping : {"soft_error", "best_soft_error", "best_error", "none"} or Stop, default="soft_error"
            %(stops)s
        max_iter : int, default=64
            Number of updates.
        %(random_state)s
        """,
    "random_state": """
        random_state : int or RandomState, optional
            For the held-out rows, the order of the batches and the gaps in view.
        """,
    "verbose": """
        verbose : int, default=0
            1: print a line a second while a fit goes on, and at its ends; 2: one an iteration. The logger "rcpkg" gets
            the same, of the levels INFO and DEBUG.
        """,
    "fitted": """
        classes_ : array of shape (r,)
            Labels, sorted.
        class_log_prior_ : array of shape (r,)
            log p(y) of the calibrated model.
        estimator_ : ClosedFormClassifier
            The calibrated model.
        """,
    "way": """
        %(fitted)s
        n_iter_ : int
            Updates made.
        history_ : DataFrame
            A row an iterate: iteration, soft_error, error, log_loss, step (its length, or by Newton's method that of
            the next, √(gᵀH⁻¹g) a row), the objective if that is penalised, and validation_log_loss with `HeldOut`.
        stop_reason_ : str
            "converged": the promised gain is at most ``tol``; "max_iter"; "soft_error": it rose; "invalid": a step left
            the valid statistics; "no_step": none is left that raises the objective; "separable": without a target the
            model separates the training rows, and no optimum is finite.
        """,
    "path": """
        %(way)s
        best_iter_ : int
            The update that gave ``estimator_``.
        joint_model_ : str
            Which of the models with the posteriors of the training rows ``estimator_`` is: the "optimum" with a target,
            the "most probable" one, an "iterate" on the way, or what the "search" for posteriors ended at: there is no
            way to the most probable one, as where rows have gaps, or no finite optimum, since rows are separable,
            wholly or in part.
        """,
    "converged_": """
        converged_ : bool
            Whether the reason is "converged". A `ConvergenceWarning` tells of a run that was to converge and did not,
            and of one whose first update was invalid.
        """,
}
documented = partial(documented, **BLOCKS)
