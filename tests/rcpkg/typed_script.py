"""A script of a reader who checks types: `mypy --strict` finds nothing in it (test_typing.py), and it runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from rcbook import datasets, published

import rcpkg
from rcpkg import bregman, functional, uniform
from rcpkg.calibration import Fixed

Floats = npt.NDArray[np.float64]


def rows(seed: int) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
    """Two classes of rows in two features."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 2
    return pd.DataFrame(rng.standard_normal((60, 2)) + y[:, None], columns=["length", "width"]), y


def closed_forms() -> list[rcpkg.ClosedFormClassifier]:
    """The models that are fitted in one pass."""
    return [
        rcpkg.QDA(prior_strength=1.0),
        rcpkg.LDA(),
        rcpkg.GaussianNB(priors=[0.5, 0.5]),
        rcpkg.SharedVarianceGaussianNB(),
        rcpkg.Mixture(rcpkg.QDA(), n_components=2, random_state=0),
        rcpkg.ProductModel([("length", rcpkg.QDA(), ["length"]), ("width", rcpkg.LDA(), ["width"])]),
    ]


def calibrated() -> list[rcpkg.GenerativeClassifier]:
    """The learners that calibrate them."""
    return [
        rcpkg.RiskCalibration(rcpkg.QDA()),
        rcpkg.RiskCalibrationCV(rcpkg.LDA(), target_weights=[3.0]),
        rcpkg.TM(rcpkg.LDA(), max_iter=3),
        rcpkg.DiscriminativeFrequencyEstimate(rcpkg.QDA(), step=Fixed(0.05), max_iter=3),
        rcpkg.SoftErrorCalibration(rcpkg.QDA(), max_iter=3),
        rcpkg.ConditionalLikelihood(rcpkg.LDA(), target_weight=1.0),
    ]


def others() -> list[rcpkg.GenerativeClassifier]:
    """Bayesian, regularised and local classifiers."""
    return [
        rcpkg.BayesianQDA(seed="trace"),
        rcpkg.BDA7(),
        rcpkg.QuadraticBayes(),
        rcpkg.RDA(),
        rcpkg.EDDA(),
        rcpkg.NearestMeans(),
        rcpkg.LocalBDA(n_neighbors="cv", cost=[[0.0, 1.0], [2.0, 0.0]]),
        rcpkg.LocalNearestMeans(),
        rcpkg.LocalLinear(),
        rcpkg.BregmanKNN(weights="kernel"),
        rcpkg.TableClassifier(cv=2, budget=0.0, random_state=0),
    ]


def scores() -> dict[str, float]:
    """The share of new rows that each classifier gets right."""
    (X, y), (X_new, y_new) = rows(0), rows(1)
    found: dict[str, float] = {}
    for classifier in [*closed_forms(), *calibrated(), *others()]:
        P: Floats = classifier.fit(X, y).predict_proba(X_new)
        found[type(classifier).__name__] = float((P.argmax(axis=1) == y_new).mean())
    return found


def history() -> pd.Series[float]:
    """The soft errors of a run."""
    X, y = rows(0)
    frame: pd.DataFrame = rcpkg.RiskCalibration(rcpkg.QDA()).fit(X, y).history_
    blocks: rcpkg.Rows = rcpkg.Rows.from_arrays(X, y, block_size=50)
    in_blocks: rcpkg.LDA = rcpkg.LDA().fit(blocks)
    assert in_blocks.predict(blocks).shape == (len(y),)
    return frame["soft_error"]


def votes() -> npt.NDArray[np.intp]:
    """Labels of a classifier without probabilities, and of a clustering."""
    X, y = rows(0)
    clusters: npt.NDArray[np.intp] = rcpkg.BregmanClustering(n_clusters=2, random_state=0).fit(X).predict(X)
    labels: npt.NDArray[np.intp] = rcpkg.SVMKNN(n_neighbors=5).fit(X, y).predict(X)
    return np.stack([clusters, labels])


def weighted() -> Floats:
    """Posteriors of weighted naive Bayes on intervals of the features."""
    X, y = rows(0)
    codes: Floats = rcpkg.MDLDiscretizer().fit(X, y).transform(X)
    P: Floats = rcpkg.WANBIAC(penalty=0.5).fit(codes, y).predict_proba(codes)
    return P


def one_row() -> Floats:
    """Posteriors of a row, by a frozen model and by what JSON keeps of it."""
    X, y = rows(0)
    scorer: rcpkg.Scorer = rcpkg.QDA().fit(X, y).scorer()
    again = rcpkg.Scorer(scorer.content)
    posteriors: Floats = rcpkg.Scorer.from_json(again.to_json()).predict_proba(X.iloc[0])
    return posteriors


def divergences() -> dict[str, float]:
    """Each named divergence of vectors between two distributions."""
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    named: dict[str, rcpkg.BregmanDivergence] = bregman.divergences
    return {name: float(d(p, q)) for name, d in named.items() if d.domain.event_ndim == 1}


def mistakes() -> None:
    """Slips of a reader, which a checker finds: mypy --strict would call these remarks unused if it did not."""
    rcpkg.RiskCalibrationCV(rcpkg.LDA(), target_weigths=[3.0])  # type: ignore[call-arg]
    rcpkg.QDA(prior_strenght=1.0)  # type: ignore[call-arg]
    rcpkg.TableClassifier(budgets=1.0)  # type: ignore[call-arg]
    rcpkg.BregmanClustering(n_cluster=2)  # type: ignore[call-arg]
    rcpkg.ProductModel([], prior=1.0)  # type: ignore[call-arg]
    rcpkg.RiskCalibration(rcpkg.LDA(), target="pool")  # type: ignore[arg-type]
    rcpkg.BayesianQDA(seed="tace")  # type: ignore[arg-type]
    rcpkg.QDA(prior_covariance="diag")  # type: ignore[arg-type]
    rcpkg.LocalBDA(n_neighbors="vc")  # type: ignore[arg-type]


def fitted_attributes() -> tuple[float, str, bool]:
    """What a fit has found has types, too."""
    model = rcpkg.RiskCalibrationCV(rcpkg.LDA()).fit(*rows(0))
    weight: float = model.target_weight_
    reason: str = model.stop_reason_
    return weight, reason, model.converged_


def tables() -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """A printed table, the register of the data sets, and their names."""
    return published.table("rc2025", "3"), datasets.table(), datasets.names()


if __name__ == "__main__":
    print(
        scores(),
        history().tolist(),
        votes().shape,
        weighted().shape,
        one_row().shape,
        divergences(),
        *(len(table) for table in tables()),
    )
    print(uniform.maximum_likelihood(np.array([0.2, 0.7])), functional.__name__, rcpkg.__version__)
