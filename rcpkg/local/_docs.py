"""What the docstrings of the classifiers of a neighbourhood share."""

from functools import partial

from rcpkg._docs import documented

_N_NEIGHBORS = """
        n_neighbors : int, "cv" or sequence of int, default=5
            Neighbours k of {whose}. Of several sizes, leave-one-out takes the best.
            "cv": 1, ..., 20, 30, ..., 100 up to {most}.
        """
BLOCKS = {
    "n_neighbors of each class": _N_NEIGHBORS.format(whose="each class", most="the size of the smallest class"),
    "n_neighbors of all": _N_NEIGHBORS.format(whose="all classes together", most="n - 1"),
    "choice": """
        %(scoring)s
        ties : {"log_loss", "smallest"}, default="log_loss"
            Of equally good sizes: the one of least leave-one-out log-loss and then the smallest, or at once the
            smallest.
        %(cost)s
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
            Sizes tried, in order; only after a choice of k.
        cv_errors_ : array
            Their leave-one-out error rates or, with a ``cost``, mean costs; only after a choice of k.
        """,
    "attributes": """
        %(k_)s
        %(grid_)s
        cv_log_loss_ : array
            Their leave-one-out log-losses, over the rows whose class is possible at some size; only after a choice of
            k, where ``scoring`` or ``ties`` needs them.
        """,
}
documented = partial(documented, **BLOCKS)
