"""Class weights that nobody knows: no correction, one step of EM, EM to its end, known weights (chapter 13; ours).

Fixed before the first run. Sets of numbers of the honest comparison and of the study ``what-calibration-keeps``,
without classes of fewer than `LEAST_OF_A_CLASS` rows, at most 1,000 rows. Each run halves the rows; all learners are
fitted to one half. From the other half samples of `SAMPLE` rows are drawn with replacement, whose class weights are
those of training ("none"), drawn evenly from all weights there are ("artificial", the artificial prevalence protocol of
the literature on quantification), or proportional to 1/π_y ("inverse": what was frequent is rare). `DRAWS` samples of
each kind; all learners and all ways meet the same samples.

One step of EM takes for π' the mean of the posteriors as they are. It is the correction of DistPFN (Lee and others,
2026), but for the 1e-8 that their code adds to π_y.

Hypotheses, over the sets:

1. With artificial weights EM has less log-loss than one step on more than half of the sets, for both calibrated models,
   logistic regression and boosting with temperature.
2. EM finds weights with a smaller mean error from calibrated posteriors than from those of the same closed form, on
   more than half of the sets, for QDA and for naive Bayes.
3. Without a shift EM costs a calibrated model at most 0.01 nats of log-loss in the mean over the sets.
"""

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments import readings
from rcbook.experiments.cells import SEARCHED, Cell, Record, Study, mean_record
from rcbook.experiments.rescalings import TEMPERATURE, rescaled
from rcbook.experiments.studies import what_calibration_keeps as keeps
from rcbook.experiments.studies.gain_of_calibration import kept_classes
from rcpkg import QDA, GaussianNB, RiskCalibration
from rcpkg.base import Array, Classifier
from rcpkg.class_prior import em

STUDY_NAME = "unknown-class-weights"
SETS = (
    *("blood_transfusion", "climate_model", "diabetes", "ecoli", "glass", "haberman", "indian_liver", "ionosphere"),
    *("liver_disorder", "magic", "pulsar", "redwine", "svmguide3"),
    *keeps.SETS,
)
RUNS, DRAWS, SAMPLE = 3, 5, 200
LEAST_OF_A_CLASS = 40
SHIFTS = ("none", "artificial", "inverse")
NO_CORRECTION, ONE_STEP, EM, KNOWN = "no correction", "one step", "EM", "known weights"
BOOSTING = "boosting, temperature"


def learners() -> dict[str, Classifier]:
    """Closed forms, what calibration makes of them, logistic regression and boosting with temperature scaling."""
    found = {f"{name}, closed form": family for name, family in keeps.FAMILIES.items()}
    found |= {"QDA, calibrated": RiskCalibration(QDA()), "GaussianNB, calibrated": RiskCalibration(GaussianNB())}
    found["logistic regression"] = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)
    return found | {BOOSTING: rescaled(boosting)[TEMPERATURE]}


def shifted(shift: str, prior: Array, rng: np.random.RandomState) -> Array:
    """Class weights π' of a sample."""
    if shift == "artificial":
        return rng.dirichlet(np.ones(len(prior)))
    new = 1 / prior if shift == "inverse" else prior
    return new / new.sum()


def sampled(y: NDArray[np.intp], weights: Array, rng: np.random.RandomState) -> NDArray[np.intp]:
    """`SAMPLE` rows, drawn with replacement, of classes with these weights."""
    counts = rng.multinomial(SAMPLE, weights)
    return np.concatenate([rng.choice(np.flatnonzero(y == c), k) for c, k in enumerate(counts) if k])


def estimates(P: Array, prior: Array, known: Array) -> dict[str, Array]:
    """The class weights of each way of correction, from posteriors P at the weights of training."""
    ratio = np.maximum(P, keeps.FLOOR) / prior
    found = em(ratio, prior, tol=1e-8, max_iter=10_000)[0]
    return {NO_CORRECTION: prior, ONE_STEP: P.mean(axis=0), EM: found, KNOWN: known}


def compared(cell: Cell, seed: int) -> list[Record]:
    """Log-loss, errors and the mean error of the class weights, over divisions and samples."""
    X, y = keeps.rows_of(cell.row)
    X, y = kept_classes(X, y, y, LEAST_OF_A_CLASS)
    scores: dict[tuple[str, str], list[float]] = {}
    for run in np.random.SeedSequence(seed).generate_state(cell.arguments["repetitions"]):
        rng = np.random.RandomState(run)
        train, test, labels, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=int(run))
        prior = np.bincount(labels) / len(labels)
        posteriors = {name: model.fit(train, labels).predict_proba(test) for name, model in learners().items()}
        for shift in SHIFTS:
            for _ in range(DRAWS):
                known = np.maximum(shifted(shift, prior, rng), keeps.FLOOR)
                rows = sampled(y_test, known, rng)
                for name, P in posteriors.items():
                    for way, weights in estimates(P[rows], prior, known).items():
                        changed = keeps.reweighted(P[rows], prior, np.maximum(weights, keeps.FLOOR))
                        found = {
                            "log_loss": keeps.log_loss(changed, y_test[rows]),
                            "error": float((changed.argmax(axis=1) != y_test[rows]).mean()),
                            "weights": float(np.abs(weights - known).mean()),
                        }
                        for metric, value in found.items():
                            scores.setdefault((name, f"{shift}|{way}|{metric}"), []).append(value)
    return [mean_record(*key, values) for key, values in scores.items()]


Study(
    STUDY_NAME,
    tolerance=SEARCHED,
    rows=SETS,
    protocol=compared,
    arguments={"repetitions": RUNS},
    quick=lambda cell: cell.row in ("iris", "wine"),
)


tidy = partial(
    readings.tidy, STUDY_NAME, row="data", method="model", metric=r"(?P<shift>[^|]+)\|(?P<way>[^|]+)\|(?P<score>.+)"
)


def table(score: str, shift: str) -> pd.DataFrame:
    """A row a model and set, a column a way of correction."""
    stored = tidy()
    chosen = stored[(stored["score"] == score) & (stored["shift"] == shift)]
    found = chosen.pivot(index=["model", "data"], columns="way", values="value")
    return found[[NO_CORRECTION, ONE_STEP, EM, KNOWN]].reindex([*learners()], level="model")
