"""What the docstrings of the Gaussian classifiers share."""

from functools import partial

from rcpkg._docs import documented

BLOCKS = {
    "gaps": """
        Rows with gaps (NaN) are taken in prediction, not in training: what they lack is integrated out, exactly.
        """,
    "class_prior": """
        class_prior : {"laplace", "empirical", "uniform"} or array of shape (r,), default="laplace"
            Class probabilities of the model: (n_h + 1)/(n + r), as by ``class_prior_strength=r`` of the closed-form
            models; n_h/n, 1/r; or given ones, there ``priors``. That of a prediction is of another population.
        """,
    "dof_multiples": """
        dof_multiples : sequence of float, default=(1, 2, 3, 4, 5, 6)
            Candidates of q / d, > 0.
        """,
    "cv": """
        cv : "loo", int or splitter, default="loo"
            "loo" is leave-one-out, exact and closed-form; an integer is a number of stratified folds.
        """,
    "choice": """
        %(scoring)s
        ties : {"log_loss", "random"}, default="log_loss"
            Of equally good models: the one of least cross-validated log-loss and then the first, so that the same data
            give the same model; or one uniformly at random, as in the sources' tables.
        cost : array of shape (r, r), optional
            ``cost[g, h]`` ≥ 0: cost of predicting class g when the truth is h, which is then cross-validated, and
            minimised in expectation; by default the 0-1 loss.
        """,
    "cross-validation": """
        %(cv)s
        %(choice)s
        %(random_state)s
        """,
    "random_state": """
        random_state : int or RandomState, optional
            Matters for ``ties="random"`` only; None: anew in each fit.
        """,
    "cv_log_loss": """
            Cross-validated log-losses, over the rows whose class has a density under some model without them; None with
            ``ties="random"`` where leave-one-out of errors needs them not.
        """,
    "no density": """
        InvalidStatistics
            If under no model of the grid every class has a density: too few rows, or features constant within classes.
        """,
    "statistics_": """
        statistics_ : ClassStatistics
            Counts (r,), means (r, d) and scatter matrices (r, d, d) of all rows.
        """,
}
documented = partial(documented, **BLOCKS)
