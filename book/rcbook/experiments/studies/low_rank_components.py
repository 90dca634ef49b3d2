"""Do Gaussian components of low rank pay, between diagonal and full ones? (chapter 14; ours)

A component of rank q has the covariance W Wᵀ + σ² I of standardised numbers, whose M-step is in closed form (Tipping
and Bishop, 1999): of the scatter the q greatest eigenvalues stay, and the others become their mean. Factor analysis,
with a variance for each feature, has no such step.

Fixed before the first cell was run. Ten tables of numbers, `SETS`, of the study of tables with rivals, with the same
divisions and hidden values. A Gaussian mixture a class, not calibrated, as in `rcbook.exact_rivals`; its form is chosen
by three folds as all rivals are there, of diagonal ones with up to three components and full ones with up to two, or of
these and of low rank, with q of `RANKS` and up to two components. Low rank pays if the choice that has it is better by
`GAIN` nats in the median of the tables, on complete rows or with 35 % hidden. Then it becomes a setting of Gaussians.
"""

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from rcbook.exact_rivals import REGULARISATION, ROWS_A_COMPONENT, MixturePerClass
from rcbook.experiments import readings
from rcbook.experiments.cells import SEARCHED, Cell, Record, Study
from rcbook.experiments.studies import tables_with_rivals as tables
from rcpkg.base import Array
from rcpkg.table import TableColumns

STUDY_NAME = "low-rank-components"
SETS = ("climate_model", "diabetes", "redwine", "wall_following", "page_blocks", "magic")
SETS += ("wine", "vehicle", "segment", "waveform")
RANKS, GAIN = (1, 2, 4), 0.02
WITHOUT, WITH = "diagonal or full", "diagonal, full or low rank"


def of_low_rank(S: Array, rank: int) -> Array:
    """The most probable W Wᵀ + σ² I of scatters (…, d, d): eigenvalues beyond the ``rank`` greatest in the mean."""
    values, vectors = np.linalg.eigh(S)
    small = S.shape[-1] - rank
    if small > 1:
        values[..., :small] = values[..., :small].mean(axis=-1, keepdims=True)
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


class LowRankMixture(GaussianMixture):
    """EM whose covariances have a rank beside a multiple of the identity."""

    def __init__(self, n_components: int = 1, rank: int = 1) -> None:
        super().__init__(n_components, reg_covar=REGULARISATION, random_state=0)
        self.rank = rank

    def _m_step(self, X: Array, log_resp: Array, **backend: Any) -> None:
        super()._m_step(X, log_resp, **backend)
        self.covariances_ = of_low_rank(self.covariances_, self.rank)
        self.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(self.covariances_)).swapaxes(-1, -2)


class LowRankPerClass(MixturePerClass):
    """Such a mixture for each class."""

    def __init__(self, n_components: int = 1, rank: int = 1) -> None:
        self.n_components = n_components
        self.rank = rank

    def _learn(self, numbers: Array, categories: list[Array], labels: NDArray[np.intp]) -> None:
        of_class = [labels == y for y in range(len(self.classes_))]
        self._log_prior, self._tables = np.log(np.mean(of_class, axis=1)), []
        sizes = [int(np.clip(rows.sum() // ROWS_A_COMPONENT, 1, self.n_components)) for rows in of_class]
        filled = np.nan_to_num(numbers)
        self._mixtures = [LowRankMixture(k, self.rank).fit(filled[rows]) for k, rows in zip(sizes, of_class)]


def compared(cell: Cell, seed: int) -> list[Record]:
    """Log-losses of both choices, complete and hidden, and seconds of their fits."""
    X, y, rows, labels = tables.division(cell.row, 0)
    uniform = np.random.default_rng([seed, 0]).uniform(size=rows.shape)
    grids: dict[str, dict[str, Any]] = {WITHOUT: tables.exact_rivals()[tables.PER_CLASS]}
    of_rank = {f"{k}, rank {q}": LowRankPerClass(k, q) for k in (1, 2) for q in RANKS}
    grids[WITH] = dict(list(grids[WITHOUT].items())[:3]) | of_rank | dict(list(grids[WITHOUT].items())[3:])
    settings: dict[str, Any] = {"cv": 3, "gaps_in_view": tables.RATES, "random_state": 0}
    found = []
    with warnings.catch_warnings(action="ignore"):
        columns = TableColumns().fit(X, y).columns_
        for name, grid in grids.items():
            began = time.process_time()
            learner = tables.tuned(grid, columns, settings).fit(X, y)
            found.append(Record(name, "seconds", time.process_time() - began))
            taken = learner.report_.candidate[learner.report_.taken].item()
            found.append(Record(name, "low rank", float("rank" in taken)))
            for share in tables.SHARES:
                P = learner.predict_proba(rows.mask(uniform < share))
                own = np.maximum(P[np.arange(len(labels)), labels], 1e-12)
                found.append(Record(name, f"log_loss|{share:g}", float(-np.log(own).mean())))
    return found


Study(
    STUDY_NAME,
    tolerance=SEARCHED,
    metered=("seconds",),
    rows=SETS,
    stream=lambda cell: f"{tables.STUDY_NAME}:{cell.row}",
    protocol=compared,
    quick=lambda cell: cell.row == "wine",
)


def table() -> pd.DataFrame:
    """A row a table and share: log-losses of both choices, the gain by low rank, and whether it was taken."""
    stored = readings.tidy(STUDY_NAME, row="data", method="choice")
    taken = stored[(stored.metric == "low rank") & (stored.choice == WITH)].set_index("data").value
    found = stored[stored.metric.str.startswith("log_loss")].pivot(
        index=["metric", "data"], columns="choice", values="value"
    )
    return found.assign(gain=found[WITHOUT] - found[WITH]).join(taken.rename("taken"))
