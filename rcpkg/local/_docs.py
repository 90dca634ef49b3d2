"""What the docstrings of the classifiers of a neighbourhood share."""

from functools import partial

from rcpkg._docs import documented

_GRID = """
        grid : sequence of int, optional
            Sizes that "cv" tries; by default 1, ..., 20, 30, ..., 100 up to {most}.
        """
_N_NEIGHBORS = """
        n_neighbors : int or "cv", default=5
            Neighbours k of {whose}; "cv": the best of ``grid`` by leave-one-out.
        """
BLOCKS = {
    "n_neighbors of each class": _N_NEIGHBORS.format(whose="each class"),
    "n_neighbors of all": _N_NEIGHBORS.format(whose="all classes together"),
    "grid per class": _GRID.format(most="the size of the smallest class"),
    "grid of all": _GRID.format(most="n - 1"),
    "scoring and ties": """
        scoring : {"error", "log_loss"}, default="error"
            What "cv" compares: the error rate (with a ``cost``, the mean cost), or the mean of -log p(y | x), the one
            to take where probabilities matter.
        ties : {"log_loss", "smallest"}, default="log_loss"
            Of equally good sizes: the one of least leave-one-out log-loss and then the smallest, or at once the
            smallest.
        """,
    "choice": """
        %(scoring and ties)s
        %(cost)s
        """,
    "algorithm": """
        algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
            Neighbour search, as in `sklearn.neighbors.NearestNeighbors`; neighbours are the same by all.
        """,
    "k_": """
        classes_ : array of shape (r,)
            Labels, sorted.
        class_log_prior_ : array of shape (r,)
            Equal log class probabilities.
        n_neighbors_ : int
            k, given or chosen.
        """,
    "grid_": """
        grid_ : array of int
            Sizes tried, in order; only after "cv".
        cv_errors_ : array
            Their leave-one-out error rates or, with a ``cost``, mean costs; only after "cv".
        """,
    "cv_log_loss_": """
        cv_log_loss_ : array
            Their leave-one-out log-losses, over the rows whose class is possible at some size; only after "cv", where
            ``scoring`` or ``ties`` needs them.
        """,
}
documented = partial(documented, **BLOCKS)
