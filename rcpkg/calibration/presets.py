"""Presets: learners that are one rule, one step and one stop."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rcpkg.base import constructed
from rcpkg.calibration._docs import documented
from rcpkg.calibration.learner import Learner, Settings, StopName
from rcpkg.calibration.rules import frequency_weights, soft_error_weights
from rcpkg.calibration.steps import Fixed, Step
from rcpkg.calibration.stops import HeldOut, Stop


@documented()
@constructed
class TM(Learner):
    """The TM algorithm of Edwards and Lauritzen for a full exponential family.

    The T-step linearises the marginal log-likelihood, the M-step maximises what is left:
    s ← s + s(X, Y) − s(X, h), that is `RiskCalibration` with a learning rate of one. Statistics that do not depend
    on the class do not move, because each row of Y − P sums to zero.

    Parameters
    ----------
    %(estimator)s
    %(on_invalid)s
    stopping : {"soft_error", "best_soft_error", "best_error", "none"} or Stop, default="none"
        %(stops)s
    max_iter : int, default=64
        Number of updates.
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    %(path)s
    %(converged_)s

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

    on_invalid: Literal["halt", "raise"] = "halt"
    stopping: StopName | Stop = "none"
    max_iter: int = 64

    def _settings(self) -> Settings:
        return self._preset(Fixed(1.0, self.on_invalid))


@constructed
class _OfRule(Learner):
    """A learner that is a rule, with any step and stop."""

    step: Step | None = None
    stopping: StopName | Stop | HeldOut = "soft_error"
    max_iter: int = 64
    random_state: int | np.random.RandomState | None = None

    def _settings(self) -> Settings:
        return self._preset(self.step)


@documented()
@constructed
class DiscriminativeFrequencyEstimate(_OfRule):
    """Discriminative frequency estimates of Su et al., in the batch form of rc2025: s ← s + lr · s(X, Y ∘ (1 − P)).

    The formula is printed without a learning rate. The total weight of the statistics grows with each update by lr
    times the sum of the soft errors.

    Parameters
    ----------
    %(estimator)s
    %(step and stop)s
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    %(path)s
    %(converged_)s

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


@documented()
@constructed
class SoftErrorCalibration(_OfRule):
    """The exact gradient of the soft 0-1 loss in place of Y − P: s ← s + lr · s(X, W), W_iy = P_i,y_i (Y_iy − P_iy).

    Its objective is minus the sum of the soft errors 1 − P_i,y_i.

    Parameters
    ----------
    %(estimator)s
    %(step and stop)s
    %(cost)s
    %(verbose)s

    Attributes
    ----------
    %(path)s
    %(converged_)s

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
