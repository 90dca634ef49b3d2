"""Measurements that nothing else may disturb."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module gives in a process of its own, whose memory holds nothing else."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
