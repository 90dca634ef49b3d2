"""Lines that tell how far a long fit has come: to the logger "rcpkg" and, where a fit is ``verbose``, printed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from time import monotonic
from typing import Any, TypeVar, cast

from rcpkg.checks import check_number

LOGGER = logging.getLogger("rcpkg")
_VERBOSE, _LAST = ContextVar("verbose", default=0), ContextVar("last", default=-1)
Fit = TypeVar("Fit", bound=Callable[..., Any])


def tell(line: str, *values: Any, iteration: bool = False) -> None:
    """A line of progress with its ``values``, as `logging` has them: of the level INFO, which ``verbose=1`` prints; of
    an ``iteration`` DEBUG, which 2 prints, where there was such a line in this second."""
    level, verbose = logging.INFO, _VERBOSE.get()
    if iteration:
        now = int(monotonic())
        if now == _LAST.get():
            level = logging.DEBUG
        _LAST.set(now)
    LOGGER.log(level, line, *values)
    if verbose > (level == logging.DEBUG):
        print(line % values, flush=True)


@contextmanager
def printed(verbose: int) -> Iterator[None]:
    """Print the lines of what is within, in this thread."""
    check_number("verbose", verbose, 0)
    token = _VERBOSE.set(max(verbose, _VERBOSE.get()))
    try:
        yield
    finally:
        _VERBOSE.reset(token)


def telling(fit: Fit) -> Fit:
    """Decorator of a ``fit`` that prints its lines where the estimator is ``verbose``."""

    @wraps(fit)
    def aloud(self: Any, *args: Any, **kwargs: Any) -> Any:
        with printed(self.verbose):
            return fit(self, *args, **kwargs)

    return cast(Fit, aloud)
