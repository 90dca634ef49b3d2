"""What the checks of the chapter *The tables of risk-based calibration* try: gradients and parts."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rcbook import experiments
from rcbook.experiments.studies.iterates_and_reach_of_rc import chosen_iterates, decidable_under, reported_iterates
from rcbook.projected_descent import quadratic_gradient
from rcpkg import QDA, CategoricalNB, Statistics
from rcpkg.base import Array


def slopes_of_descent() -> tuple[Array, Array, dict[tuple, float], dict[str, tuple]]:
    """Slopes of the mean log-loss beside corrected and printed gradients."""
    flowers = load_iris()
    Z, y = StandardScaler().fit_transform(flowers.data), flowers.target
    Y = np.eye(3)[y]
    codes = np.digitize(Z, [-1, 0, 1]).astype(float)
    rng = np.random.default_rng(6)

    def mean_log_loss(model, X, eta):
        """Mean log-loss as a function of η, each p(x | y) being normalised."""
        density = model.family_.class_log_partition(eta) - eta.count
        scores = model.family_.scores(X, eta) - density
        true = np.sum(Y * scores, axis=1)
        return np.mean(np.logaddexp.reduce(scores, axis=1) - true)

    def directions(eta, size):
        for _ in range(size):
            v = eta.map(lambda part: rng.normal(size=part.shape))
            if hasattr(v, "second"):
                v.second = (v.second + v.second.swapaxes(1, 2)) / 2
            yield v

    def rules(model, X, eta):
        """Gradients of the log-likelihood given x: corrected, and as printed."""
        s = model.statistics(X, Y - model.predict_proba(X))
        if isinstance(model, QDA):
            for name in ("corrected", "printed"):
                parts = quadratic_gradient(s, eta.first, eta.second, printed=name == "printed")
                names = ("count", "first", "second")
                yield name, Statistics(**dict(zip(names, parts)))
        else:
            own = s.count[:, None] * np.exp(model.parameters_.log_prob)
            yield "corrected", Statistics(count=s.count, cells=s.cells - own)
            yield "printed", s

    t, off = 1e-5, {}
    models = {"QDA": (QDA(prior_strength=30.0), Z), "NB": (CategoricalNB(prior_strength=30.0), codes)}
    for title, (model, X) in models.items():
        model.fit(X, y)
        eta = model.family_.natural_parameters(model.parameters_)
        eta.count = model.parameters_.log_prior
        for name, rule in rules(model, X, eta):
            errors, slopes = [], []
            for v in directions(eta, 20):
                up, down = (mean_log_loss(model, X, eta + k * v) for k in (t, -t))
                slopes.append((up - down) / (2 * t))
                errors.append(slopes[-1] + rule.dot(v) / len(y))
            off[title, name] = np.abs(errors).max() / np.abs(slopes).max()
    return Z, y, off, models


def signature() -> tuple[list[float], list[float], float, pd.Series]:
    """Errors on parts and whole of fits to the training part and to all rows."""
    wine = load_wine()
    A, b = StandardScaler().fit_transform(wine.data), wine.target
    fixed = QDA().fit(A, b)
    parts, others = [], []
    for seed in range(5):
        A_train, A_test, b_train, b_test = train_test_split(A, b, test_size=0.25, random_state=seed)
        q = len(b_train) / len(b)
        train, test = (1 - fixed.score(*part) for part in ((A_train, b_train), (A_test, b_test)))
        parts.append(q * train + (1 - q) * test)
        others.append(1 - QDA().fit(A_train, b_train).score(A, b))
    whole = 1 - fixed.score(A, b)
    # iris: the stored means over twenty divisions, made by the runner, and one fit
    stored = experiments.results("study", "rc2025-updates-on-all-rows")
    stored = stored[(stored.dataset == "iris") & (stored.method == "ML")]
    stored = stored.pivot(index="setting_value", columns="metric", values="value")
    C, c = load_iris(return_X_y=True)
    q = 1 - np.ceil(0.25 * len(c)) / len(c)
    weighted = q * stored.train_error_percent + (1 - q) * stored.test_error_percent
    off = weighted - 100 * (1 - QDA().fit(C, c).score(C, c))
    return parts, others, whole, off


def other_iterates(card: pd.DataFrame) -> tuple[pd.Series, float, float, pd.Series]:
    """What became of the reading of iterates and that of descent ("Other iterates"), by the ``card`` of `power`.

    Returns
    -------
    tuple
        Which pairs of RC have the largest count, by criterion and updates; the share of its numbers on all rows that
        cannot be decided; of those decided under the first rise of the error, the share that agrees; which pairs of
        gradient descent are accepted.
    """
    iterates = reported_iterates()
    of_rc = iterates[(iterates.way == "all") & (iterates.metric != "reach") & (iterates.method == "RC")]
    decided = of_rc[decidable_under(of_rc, card)]
    agreeing = decided.agrees[decided.criterion == "rise of error"].mean()
    pairs = chosen_iterates(iterates)
    return pairs.best["RC"], 1 - len(decided) / len(of_rc), agreeing, pairs.accepted["GD"]


def where_reach_is_off(exact: pd.DataFrame, card: pd.DataFrame) -> tuple[set[tuple], set[tuple]]:
    """Tables and rows whose reach does not come out though their closed form does; those where gradient descent does
    not."""
    reach = exact[(exact.metric == "reach") & (exact.table != "IX")]
    starts = card[card.method.isin(["ML", "MAP"]) & (card.verdict == "reproduced")]
    starts = set(zip(starts.table, starts.row))
    gd = card[(card.source == "rc2024") & (card.method == "GD")]
    gd = gd[gd.metric.eq("empirical_error_fraction") & (gd.verdict != "reproduced")]
    return set(zip(reach.table[~reach.agrees], reach.row[~reach.agrees])) & starts, set(zip(gd.table, gd.row))
