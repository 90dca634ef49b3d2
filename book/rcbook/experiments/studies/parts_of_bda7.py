"""BDA7 without its heavy tail, and with seeds that have seen the row left out (supplement of chapter 15; ours).

``tail-of-bda7``: test errors in 15 runs of ten problems of thesis2007, section 5.5.3, of 20 features, with the
predictive t and with the Gaussian of the same first two moments. ``frozen-seeds``: 40 runs of the first problem with 50
features; the model chosen by leave-one-out with seeds made from all rows, and without the row left out. The supplement
computed both whenever it ran before they were stored, so no hypothesis stands before the run.
"""

import numpy as np
from scipy import stats

from rcbook import ties
from rcbook.class_densities import log_predictive_loo
from rcbook.experiments.cells import Cell, Row, Study
from rcbook.simulation import chapter5_problem
from rcpkg import BDA7
from rcpkg.base import Array
from rcpkg.choice import log_class_prior, log_class_prior_loo, wrong_predictions
from rcpkg.gaussians import (
    BDA7_SEEDS,
    Sample,
    class_statistics,
    grid_log_predictive,
    grid_log_predictive_loo,
    seed_matrix,
)

TAIL_STUDY, SEEDS_STUDY = "tail-of-bda7", "frozen-seeds"
RUNS_OF_TAIL, RUNS_OF_SEEDS, FEATURES = 15, 40, 50


def without_tail(model: BDA7, X: Array) -> Array:
    """The seven seeds with Gaussians in the place of t densities."""
    columns = []
    statistics, q = model.statistics_, model.dof_
    for h, (n_h, mean, S) in enumerate(zip(*statistics)):
        D = S + seed_matrix(model.seed_, q, statistics, h)
        Sigma = (n_h + 1) / (n_h + q + 1) * D / n_h
        columns.append(stats.multivariate_normal(mean, Sigma).logpdf(X))
    scores = np.stack(columns, axis=1) + model.class_log_prior_
    return model.classes_[scores.argmax(axis=1)]


def tail(cell: Cell, seed: int) -> list[Row]:
    """Test errors of a problem in per cent, with both densities."""
    case, found = int(cell.row), []
    for run in range(RUNS_OF_TAIL):
        rng = np.random.RandomState(1000 * case + run)
        problem = chapter5_problem(case, 20, rng)
        X, y = problem.sample(40, rng)
        X_test, y_test = problem.sample(300, rng)
        model = ties.BDA7(random_state=run).fit(X, y)
        predicted = {"t": model.predict(X_test), "Gaussian": without_tail(model, X_test)}
        errors = {density: 100 * np.mean(of != y_test) for density, of in predicted.items()}
        found.append({"case": case, "run": run, **errors, "difference": errors["Gaussian"] - errors["t"]})
    return found


def frozen(cell: Cell, seed: int) -> list[Row]:
    """Errors in per cent of the models chosen with seeds made with and without the row that is left out."""
    problem, found = chapter5_problem(1, FEATURES), []
    dofs = [float(FEATURES * m) for m in range(1, 7)]
    for run in range(RUNS_OF_SEEDS):
        rng = np.random.RandomState(run)
        X, y = problem.sample(40, rng)
        X_test, y_test = problem.sample(200, rng)
        statistics, prior = class_statistics(X, y, 3), log_class_prior_loo(y, 3)
        honest = grid_log_predictive_loo(Sample(X, y, 3), dofs)
        frozen = grid_log_predictive(X, statistics, dofs)
        for a, q in enumerate(dofs):
            for b, rule in enumerate(BDA7_SEEDS):
                for h in range(3):
                    B = seed_matrix(rule, q, statistics, h)
                    frozen[a, b, y == h, h] = log_predictive_loo(X[y == h], seed=B, dof=q)
        scores = grid_log_predictive(X_test, statistics, dofs) + log_class_prior(statistics.counts)
        test = wrong_predictions(scores, y_test).mean(axis=-1)
        for name, left_out in (("frozen", frozen), ("honest", honest)):
            errors = wrong_predictions(left_out + prior, y).mean(axis=-1)
            tied = np.argwhere(errors <= errors.min() + 1e-12)
            best = tuple(tied[rng.randint(len(tied))])
            told = {"cross-validated": 100 * errors[best], "test": 100 * test[best]}
            found.append({"run": run, "seeds": name} | told)
    return found


Study(TAIL_STUDY, rows=range(1, 11), protocol=tail)
Study(SEEDS_STUDY, rows=("case 1",), protocol=frozen)
