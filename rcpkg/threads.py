"""How many threads BLAS takes in a fit."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

SMALL = 1_000_000  # values of a table that is small
Fit = TypeVar("Fit", bound=Callable[..., Any])


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread_if_small(fit: Fit) -> Fit:
    """Decorator of a ``fit`` that runs BLAS on one thread where the table X is small.

    numpy and scipy bring a BLAS and its threads each. A fit goes back and forth between them, and the threads of one,
    which stay busy a while after their work, hold up those of the other; only large products gain from them.
    """

    @wraps(fit)
    def limited(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        small = np.prod(getattr(X, "shape", np.inf)) <= SMALL
        with _libraries().limit(limits=1 if small else None, user_api="blas"):
            return fit(self, X, *args, **kwargs)

    return cast(Fit, limited)
