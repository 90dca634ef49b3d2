"""Holm's adjusted p values by their definition, for the tests of studies that adjust."""

import numpy as np
from numpy.typing import ArrayLike


def holm_by_hand(p: ArrayLike) -> list[float]:
    """For each p value the greatest of min(1, k q) over the p values q that are not larger, k values being ≥ q."""
    p = np.asarray(p, dtype=float)
    rank = {i: place for place, i in enumerate(sorted(range(len(p)), key=lambda i: (p[i], i)))}
    steps = [min(1.0, (len(p) - rank[i]) * p[i]) for i in range(len(p))]
    return [max(steps[j] for j in range(len(p)) if rank[j] <= rank[i]) for i in range(len(p))]
