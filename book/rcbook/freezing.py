"""Steps that freeze what would turn invalid, of rc2024 §III (chapters 4, 11 and 18).

Only the tables of this source need them. `rcpkg.calibration.Safe` bends a step so that all statistics stay valid.
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from rcpkg.base import InvalidStatistics
from rcpkg.calibration import Fixed
from rcpkg.families import Family, Statistics, Unsupported
from rcpkg.families.count_model import CountFamily
from rcpkg.families.gaussian import GaussianFamily
from rcpkg.families.product import ProductFamily


@singledispatch
def frozen(family: Family, old: Statistics, new: Statistics) -> Statistics:
    """``new`` statistics of a family where they are valid, and ``old`` ones elsewhere.

    Of counts, each that would turn negative keeps its value; the parameter map normalises what results. Of Gaussians,
    class after class takes its new statistics where they give a positive definite covariance. A product goes block by
    block.
    """
    raise Unsupported(f"no rule says which statistics of {type(family).__name__} to freeze")


@frozen.register
def _(family: CountFamily, old: Statistics, new: Statistics) -> Statistics:
    pseudo = family.with_pseudo_rows(0.0 * old)
    return Statistics(
        count=np.where(new.count + pseudo.count > 0, new.count, old.count),
        cells=np.where(new.cells + pseudo.cells >= 0, new.cells, old.cells),
    )


@frozen.register
def _(family: GaussianFamily, old: Statistics, new: Statistics) -> Statistics:
    kept, shared = old, family.shared
    by_class = [name for name in vars(new) if not (shared and name == "second")]
    for y in range(len(old.count)):
        trial = dict(vars(kept))
        for name in by_class:
            trial[name] = trial[name].copy()
            trial[name][y] = getattr(new, name)[y]
        kept = _if_valid(family, Statistics(**trial), kept)
    return _if_valid(family, Statistics(**{**vars(kept), "second": new.second}), kept) if shared else kept


@frozen.register
def _(family: ProductFamily, old: Statistics, new: Statistics) -> Statistics:
    parts = (frozen(part, before, after) for part, before, after in zip(family.families, old, new))
    return Statistics(**dict(zip(family.blocks, parts)))


def _if_valid(family: Family, trial: Statistics, otherwise: Statistics) -> Statistics:
    try:
        family.parameters(trial)
    except InvalidStatistics:
        return otherwise
    return trial


@dataclass(frozen=True)
class Freezing(Fixed):
    """`rcpkg.calibration.Fixed`, but that statistics which would turn invalid keep their values."""

    def _valid(self, family: Family, old: Statistics, new: Statistics) -> tuple[Statistics, Any]:
        try:
            return super()._valid(family, old, new)
        except InvalidStatistics:
            return super()._valid(family, old, frozen(family, old, new))
