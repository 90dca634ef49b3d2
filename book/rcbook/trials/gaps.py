"""What the checks of the chapter *Gaps* try: marginals, fibres, steps and views with gaps."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from rcbook.experiments.studies import gaps as study
from rcbook.experiments.studies.hidden_values_of_small_sets import with_gaps
from rcpkg import (
    LDA,
    QDA,
    TAN,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    KDependenceBayes,
    RiskCalibration,
)
from rcpkg.base import Array, InvalidStatistics
from rcpkg.calibration import Converged, Objective, Safe, climb
from rcpkg.calibration.objective import Point
from rcpkg.explain import contributions, sufficient_sets
from rcpkg.families import Statistics


def marginals_of_models() -> tuple[Array, Array, QDA, list[tuple], float, float]:
    """Marginal densities, fills and posteriors with gaps, beside sub-blocks and formulas."""
    flowers, species = load_iris(return_X_y=True)
    qda = QDA().fit(flowers, species)
    rng = np.random.default_rng(131)
    patterns = [p for p in product([False, True], repeat=4) if any(p)]
    worst_density, worst_mean = 0.0, 0.0
    for hidden in map(np.array, patterns):
        rows = flowers[rng.choice(len(flowers), 5)].copy()
        rows[:, hidden] = np.nan
        joint = qda.predict_joint_log_proba(rows)
        filled = qda.conditional_mean(rows)
        seen = ~hidden
        exact = np.zeros_like(joint)
        means = np.zeros((3, 5, hidden.sum()))
        for c in range(3):
            mean, cov = qda.means_[c], qda.covariances_[c]
            exact[:, c] = qda.class_log_prior_[c]
            means[c] = mean[hidden]
            if seen.any():
                block = cov[np.ix_(seen, seen)]
                exact[:, c] += multivariate_normal(mean[seen], block).logpdf(rows[:, seen])
                solved = np.linalg.solve(block, cov[np.ix_(seen, hidden)])
                means[c] += (rows[:, seen] - mean[seen]) @ solved
        P = qda.predict_proba(rows)
        by_hand = np.einsum("nc,cnm->nm", P, means)
        worst_density = max(worst_density, abs(joint - exact).max())
        worst_mean = max(worst_mean, abs(filled[:, hidden] - by_hand).max())
    return flowers, species, qda, patterns, worst_density, worst_mean


def ends_on_the_fibre() -> tuple[Array, Array, Array, dict[str, Any], pd.DataFrame, dict[str, Array]]:
    """What several fits end at: gains left on the fibre, and posteriors with a gap."""
    rng = np.random.default_rng(132)
    label = rng.integers(2, size=400)
    cause = np.where(rng.uniform(size=400) < 0.8, label, 1 - label)
    flipped = rng.uniform(size=(400, 4)) < [0.02, 0.05, 0.1, 0.3]
    bits = np.where(flipped, 1 - cause[:, None], cause[:, None])
    bits = bits.astype(float)
    every = np.array(list(product([0.0, 1.0], repeat=4)))

    def best_on_the_fibre(model):
        """Largest gain in joint log-likelihood along the fibre of a model, nats."""
        joint = model.predict_joint_log_proba(every)

        def negative(v):
            # the same function v of x added to the scores of both classes
            log_mass = np.log(np.exp(joint + (every @ v)[:, None]).sum())
            return len(bits) * log_mass - (bits @ v).sum()

        found = minimize(negative, np.zeros(4), method="BFGS", tol=1e-10)
        return negative(np.zeros(4)) - found.fun, found.x

    ends = {
        "RC, fixed steps": RiskCalibration.as_published(CategoricalNB(), stopping="none", max_iter=20_000, tol=1e-12),
        "safe steps": RiskCalibration(CategoricalNB(), target_weight=0.0, step=Safe(), tol=1e-10),
        "Newton": RiskCalibration(CategoricalNB(), target_weight=0.0, tol=1e-10),
        "L-BFGS": ConditionalLikelihood(CategoricalNB(), solver="lbfgs", tol=1e-8),
    }
    ends = {name: learner.fit(bits, label) for name, learner in ends.items()}
    path = climb(Objective.from_estimator(CategoricalNB(), bits, label), Safe(), Converged(1e-10))
    ends["safe steps, raw path"] = path.chosen.model
    table, posteriors = {}, {}
    for name, fitted in ends.items():
        gain, _shift = best_on_the_fibre(fitted)
        posteriors[name] = fitted.predict_proba(every)
        one = every.copy()
        one[:, 1:] = np.nan
        table[name] = {
            "gain left, nats": gain,
            "P(class 1) given bit 1 only": fitted.predict_proba(one)[-1, 1],
            "mean of bit 1": fitted.conditional_mean(np.full((1, 4), np.nan))[0][0, 1],
        }
    table = pd.DataFrame(table).T
    return label, bits, every, ends, table, posteriors


def differences_outside_the_table() -> dict[str, list[Array]]:
    """Posteriors less those of fixed steps, of rows whose features the table
    does not span: x^2 = x for a column of zeros and ones under QDA, and of two
    categories one tells the other."""
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=300)
    bit = np.where(rng.uniform(size=300) < 0.75, y, 1 - y).astype(float)
    number = rng.normal(size=300) * np.where(y == 1, 1.4, 1.0) + 0.6 * y
    state = np.where(rng.uniform(size=300) < 0.5, y, rng.integers(3, size=300))
    other = np.where(rng.uniform(size=300) < 0.6, y, rng.integers(2, size=300))
    tables = {
        "gap": (QDA(), np.column_stack([bit, number])),
        "outside": (CategoricalNB(), np.column_stack([state, state >= 1, other])),
    }
    rows = {
        "gap": [[np.nan, 1.5], [np.nan, -1.5]],
        "outside": [[0.0, 1.0, 0.0], [2.0, 0.0, 1.0]],
    }
    found = {}
    for name, (model, X) in tables.items():
        first, *others = (
            learner.fit(X.astype(float), y).predict_proba(np.array(rows[name]))
            for learner in (
                RiskCalibration.as_published(model, stopping="none", max_iter=40_000, tol=1e-14),
                RiskCalibration(model, target_weight=0.0, tol=1e-12),
                RiskCalibration(model, target_weight=0.0, step=Safe(), tol=1e-12),
                ConditionalLikelihood(model, solver="lbfgs", tol=1e-8),
            )
        )
        found[name] = [P - first for P in others]
    return found


def conformant_fits(
    table: pd.DataFrame, posteriors: Mapping[str, Array]
) -> tuple[pd.Series, pd.Series, Array, list[Array], dict[str, list]]:
    """Fits that end at one model, fixed steps, and rows outside of the table."""
    fixed, raw = table.iloc[0], table.iloc[-1]
    first, *others = posteriors.values()
    unseen = differences_outside_the_table()
    return fixed, raw, first, others, unseen


def doubled_feature(after: RiskCalibration, rows: Array) -> tuple[float, float]:
    """Odds of two equal features, closed form and calibrated, and the bound."""
    model_gap = after.predict_proba(rows[1:])[0, 1] - 0.75
    # of the calibrated model: the law of the hidden feature given the first is 1
    together = np.exp(after.predict_joint_log_proba(np.array([[1.0, 0], [1.0, 1]])))
    hidden_law = together.sum(axis=1) / together.sum()
    first_term = abs(after.predict_proba(rows[:1])[0, 1] - 0.75)
    bound = first_term + hidden_law[0]  # the truth puts all mass on x_2 = x_1
    return model_gap, bound


def naive_bayes_with_gaps(SHARES: Sequence[float]) -> dict[str, pd.DataFrame]:
    """Log-loss of Gaussian naive Bayes by the share of hidden values."""

    def of_naive_bayes(load, seeds=3):
        """Log-loss of Gaussian naive Bayes, closed form and calibrated."""
        X, y = load(return_X_y=True)
        found = {}
        for seed in range(seeds):
            rng = np.random.default_rng([13, seed])
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
            models = {
                "closed form": GaussianNB(),
                "calibrated": RiskCalibration(GaussianNB()),
            }
            models = {k: m.fit(train, y_train) for k, m in models.items()}
            for share in SHARES:
                hidden = with_gaps(test, share, rng)
                for name, fit in models.items():
                    log_P = fit.predict_log_proba(hidden)
                    loss = -log_P[np.arange(len(test)), y_test].mean()
                    found.setdefault((name, share), []).append(loss)
        return pd.Series({k: np.mean(v) for k, v in found.items()}).unstack()

    return {
        "wine": of_naive_bayes(load_wine),
        "breast cancer": of_naive_bayes(load_breast_cancer),
    }


def digits_with_gaps(
    SHARES: Sequence[float],
) -> tuple[Array, Array, Array, dict[float, Array], dict[tuple, dict]]:
    """Log-loss on digits by the share of hidden pixels, for several targets."""
    pixels, digit = load_digits(return_X_y=True)
    grey = np.digitize(pixels[:, ::3], [1, 9]).astype(float)
    grey = grey[:, np.ptp(grey, axis=0) > 0]
    train_grey, test_grey, train_digit, test_digit = train_test_split(
        grey, digit, test_size=0.5, stratify=digit, random_state=0
    )
    rng = np.random.default_rng(136)
    hidden_grey = {share: with_gaps(test_grey, share, rng) for share in SHARES}
    harm = {}
    for name, family in {
        "naive Bayes": CategoricalNB(n_states=3, prior_strength=1.0),
        "tree": TAN(),
    }.items():
        for way, learner in {
            "closed form": family,
            "pooled target": RiskCalibration(family),
            "generative target, b = 1": RiskCalibration(family, target="generative", target_weight=1.0),
        }.items():
            learner.fit(train_grey, train_digit)
            harm[name, way] = {
                share: log_loss(test_digit, learner.predict_proba(rows)) for share, rows in hidden_grey.items()
            }
    return train_grey, train_digit, test_digit, hidden_grey, harm


def by_pattern(X: Array) -> list[tuple[Array, Array]]:
    """Which features a pattern of gaps leaves, and what its rows have of them."""
    seen = ~np.isnan(X)
    return [(there, X[(seen == there).all(axis=1)][:, there]) for there in np.unique(seen, axis=0)]


def em_step(patterns: Sequence[tuple[Array, Array]], mean: Array, cov: Array) -> tuple[Array, Array, float]:
    """One step, and the log-likelihood before it; a row of gaps only may not occur."""
    n, first, second, log_likelihood = 0, 0.0, 0.0, 0.0
    for there, rows in patterns:
        block, off = cov[np.ix_(there, there)], rows - mean[there]
        slope, scaled = np.linalg.solve(block, cov[there]), np.linalg.solve(block, off.T)
        log_det = np.linalg.slogdet(2 * np.pi * block)[1]
        log_likelihood -= (len(rows) * log_det + np.sum(off.T * scaled)) / 2
        filled = mean + off @ slope
        first += filled.sum(axis=0)
        rest = cov - cov[:, there] @ slope
        second += filled.T @ filled + len(rows) * rest
        n += len(rows)
    new = first / n
    return new, second / n - np.outer(new, new), log_likelihood


def divergence(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    """KL of two Gaussians, each a mean and a covariance."""
    (p, A), (q, B) = a, b
    log_det = np.linalg.slogdet(B)[1] - np.linalg.slogdet(A)[1]
    quadratic = (q - p) @ np.linalg.solve(B, q - p)
    return (np.trace(np.linalg.solve(B, A)) + quadratic - len(p) + log_det) / 2


def em_path(X: Array, steps: int) -> list[tuple[tuple, float]]:
    """Models and log-likelihoods on the way from independent features."""
    model = np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0))
    path, patterns = [], by_pattern(X)
    for _ in range(steps):
        *new, log_likelihood = em_step(patterns, *model)
        path.append((model, log_likelihood))
        model = tuple(new)
    return path


def em_of_gaussians(
    flowers: Array, species: Array
) -> tuple[Array, list[float], list[float], dict[str | tuple, Array | tuple]]:
    """Steps of EM, their gains, and means where values are missing by themselves."""
    rng = np.random.default_rng(137)
    gappy_flowers = np.where(rng.uniform(size=flowers.shape) < 0.3, np.nan, flowers)
    gappy_flowers[:, 0] = flowers[:, 0]
    spare, ends_off = [], []
    reference = QDA(rows_per_feature=0.0).fit(gappy_flowers, species)
    for c in range(3):
        path = em_path(gappy_flowers[species == c], 200)
        for (old, before), (new, after) in pairwise(path[:31]):
            spare.append(after - before - 50 * divergence(new, old))
        ends_off += [*np.ravel(path[-1][0][1] - reference.covariances_[c])]
    both = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=5_000)
    found = {}
    for reason, missing in {
        "by the other": both[:, 0] > 0,
        "by itself": both[:, 1] > 0,
    }.items():
        rows = both.copy()
        rows[missing, 1] = np.nan
        path = em_path(rows, 100)
        found[reason] = path[-1][0][0][1], np.nanmean(rows[:, 1])
        found[reason, "gains"] = np.diff([value for _, value in path])
    return gappy_flowers, spare, ends_off, found


def gradients_with_gaps(
    bits: Array, gappy_flowers: Array, species: Array, label: Array
) -> tuple[np.random.Generator, Array, list[float]]:
    """Finite differences of the objective with gaps beside its gradient."""
    rng = np.random.default_rng(138)
    gappy_bits = np.where(rng.uniform(size=bits.shape) < 0.3, np.nan, bits)
    relative = []
    for family, rows, labels in (
        (QDA(), gappy_flowers, species),
        (LDA(), gappy_flowers, species),
        (GaussianNB(), gappy_flowers, species),
        (CategoricalNB(), gappy_bits, label),
        (TAN(), gappy_bits, label),
    ):
        F = Objective.from_estimator(family, rows, labels)
        at_start = F.start
        center = F.evaluate(at_start)
        for _ in range(4):
            W = rng.normal(size=(len(labels), len(np.unique(labels))))
            move = F.family.expected_statistics(F.X, W - W.mean(axis=1, keepdims=True), center.parameters)
            ahead, behind = F.evaluate(at_start + 1e-4 * move), F.evaluate(at_start - 1e-4 * move)
            slope = ahead.value - behind.value
            told = center.gradient.dot(ahead.natural) - center.gradient.dot(behind.natural)
            way = np.linalg.norm((ahead.natural - behind.natural).ravel())
            size = np.linalg.norm(center.gradient.ravel())
            relative.append((slope - told) / (size * way))
    return rng, gappy_bits, relative


def two_tops(first: tuple[int, int], second: tuple[int, int]) -> pd.DataFrame:
    """Value of F at the end of safe steps, from the closed form and from models that favour a value."""
    rows, labels = np.repeat([0.0, 1.0, np.nan], 2), np.tile([0, 1], 3)
    times = [*first, *second, 50, 400]
    F = Objective.from_estimator(CategoricalNB(), rows[:, None], labels, times, target_weight=10.0)
    counts, ends = F.start.count, {}
    for name, share in {"closed form": None, "value 0": 0.9, "value 1": 0.1}.items():
        start = F.start
        if share is not None:
            shares = np.array([[share, 1 - share], [1 - share, share]])
            start = Statistics(count=counts, cells=counts[:, None] * shares)
        end = climb(F, Safe(), Converged(1e-10), start=start).chosen
        seen = np.array([[0.0], [1.0], [np.nan]])
        ends[name] = {
            "F": end.value,
            **dict(zip(("x = 0", "x = 1", "x missing"), np.exp(end.log_posterior(seen))[:, 0])),
            "promised gain": F.promised_gain(end),
        }
    return pd.DataFrame(ends).T


def tops() -> dict[str, pd.DataFrame]:
    """Where calibration ends from three starts, with two kinds of rows."""
    return {
        "values alike": two_tops((300, 100), (300, 100)),
        "values unlike": two_tops((300, 100), (300, 90)),
    }


def by_logits(z: Sequence[float]) -> float:
    """F of the example with values alike, of log odds: of the second class, and of the value 1 in each class."""
    signs = np.array([-1, 1])
    log_prior, log_theta = (-np.logaddexp(0, -np.multiply.outer(part, signs)) for part in (z[0], z[1:]))
    joint = log_prior[:, None] + log_theta
    seen = np.array([[300, 300], [100, 100]])  # class by value; 50 and 400 rows lack the value
    target = 2 * np.array([650, 600])[:, None] / 1250 / 2  # two pseudo-rows, both values equally frequent
    labelled = np.sum(seen * (joint - np.logaddexp(*joint))) + np.dot([50, 400], log_prior)
    return labelled + 10 * np.sum(target * joint)


def steps_with_gaps(
    gappy_flowers: Array, species: Array, gappy_bits: Array, label: Array, tops: Mapping[str, pd.DataFrame]
) -> tuple[list[float], list[float], list[str], Array, Array, pd.Series, pd.Series]:
    """Safe and plain steps with gaps, and the two tops of the example."""
    falls, lengths, broken = [], [], []
    for family, rows, labels in (
        (QDA(), gappy_flowers, species),
        (LDA(), gappy_flowers, species),
        (GaussianNB(), gappy_flowers, species),
        (CategoricalNB(), gappy_bits, label),
        (TAN(), gappy_bits, label),
    ):
        F = Objective.from_estimator(family, rows, labels, target_weight=1.0)
        path = climb(F, Safe(), Converged(1e-6), max_iter=400, keep_points=True)
        values = np.array([point.value for point in path.points])
        falls += [*np.diff(values) / abs(values[0])]
        lengths.append(F.promised_gain(path.points[-1]))
        at_once = F.start + 1e4 * F.evaluate(F.start).gradient
        try:
            F.family.parameters(at_once)
        except InvalidStatistics:
            broken.append(type(family).__name__)
    end = np.array([minimize(lambda z: -by_logits([*z, 0, 0]), [0.0], tol=1e-12).x[0], 0, 0])
    steps = 1e-3 * np.eye(3)
    hessian = np.array(
        [
            [sum(i * j * by_logits(end + i * a + j * b) for i in (-1, 1) for j in (-1, 1)) / 4e-6 for a in steps]
            for b in steps
        ]
    )
    alike, unlike = tops["values alike"]["F"], tops["values unlike"]["F"]
    return falls, lengths, broken, end, hessian, alike, unlike


def gaps_in_view(
    bits: Array, label: Array, every: Array, rng: np.random.Generator
) -> tuple[float, Array, Point, float, Point, float, float, float, float]:
    """Objectives with gaps in view: by masked copies, by hand and by the library."""
    rate = 0.4
    masks = np.array(list(product([False, True], repeat=4)))
    rho = np.where(masks, rate, 1 - rate).prod(axis=1)
    copies = np.vstack([np.where(mask, np.nan, bits) for mask in masks])
    view = Objective.from_estimator(TAN(), copies, np.tile(label, len(masks)), np.repeat(rho, len(bits)))
    point = view.evaluate(view.start)
    of_tree = np.exp(point.model.predict_joint_log_proba(every))

    def by_hand(mask, rows):
        """log p(y | x_O) by adding up the table of the model."""
        alike = (every[None, :, ~mask] == rows[:, None, ~mask]).all(axis=2)
        joint = np.log(alike @ of_tree)
        return joint - np.logaddexp(*joint.T)[:, None]

    enumerated = sum(
        weight * by_hand(mask, bits)[np.arange(len(bits)), label].sum() for weight, mask in zip(rho, masks)
    )
    by_library = Objective.from_estimator(TAN(), bits, label, gaps_in_view=masks[1:])
    at_library = by_library.evaluate(by_library.start)
    of_tree = np.exp(at_library.model.predict_joint_log_proba(every))
    evenly = sum(by_hand(mask, bits)[np.arange(len(bits)), label].mean() for mask in masks) / len(masks)
    chance = rng.dirichlet(np.ones(32)).reshape(16, 2)
    mean_loss, entropy, mean_kl = 0.0, 0.0, 0.0
    for weight, mask in zip(rho, masks):
        alike = (every[None, :, ~mask] == every[:, None, ~mask]).all(axis=2)
        true = np.log(alike @ chance)
        true -= np.logaddexp(*true.T)[:, None]
        said = by_hand(mask, every)
        mean_loss -= weight * (chance * said).sum()
        entropy -= weight * (chance * true).sum()
        of_rows = (np.exp(true) * (true - said)).sum(axis=1)
        mean_kl += weight * chance.sum(axis=1) @ of_rows
    return rate, masks, point, enumerated, at_library, evenly, mean_loss, entropy, mean_kl


def counts_of_the_study(
    of_arms: Mapping[str, pd.DataFrame],
    KINDS: Sequence[str],
    ours: Mapping[str, str],
    counts: Mapping[str, pd.DataFrame],
) -> tuple[list[int], list[float], Array, pd.DataFrame, pd.Series]:
    """Sets counted one by one, orders of medians in the stored numbers, and ties with the closed form of trees."""
    recounted, exact_at_zero = [], []
    for arm, table in of_arms.items():
        for rival in study.COMPLETE:
            for kind in KINDS:
                less = 0
                for name in table.index.get_level_values(0).unique():
                    losses_of_set = table.loc[(name, kind)]
                    less += losses_of_set[ours[arm]] < losses_of_set[rival]
                recounted.append(less - counts[arm].loc[rival, kind])
        complete = table.xs("0% at random", level="kind")
        for rival in "boosting", "logistic regression", "forest":
            ways = complete.loc[:, complete.columns.str.startswith(rival)]
            ways = ways.loc[:, ~ways.columns.str.endswith("copies")]
            exact_at_zero.append(np.ptp(ways.to_numpy(), axis=1).max())
    FREE = {
        "QDA, conformant": "QDA, calibrated",
        "GaussianNB, conformant": "GaussianNB, calibrated",
        "TAN, conformant": "TAN, calibrated",
        "NB, conformant": "NB, calibrated",
    }
    costs_more = [
        medians[free] - medians[drawn]
        for table in of_arms.values()
        for _, medians in table.groupby("kind").median().iterrows()
        for free, drawn in FREE.items()
        if free in medians
    ]
    plain_less_ours = study.advantage(of_arms["numbers"], ours["numbers"], [study.PLAINLY_CALIBRATED["numbers"]])
    of_trees = of_arms["categories"]
    ties = (of_trees[ours["categories"]] == of_trees["TAN"]).groupby("kind").sum()
    return recounted, exact_at_zero, np.array(costs_more), plain_less_ours, ties


def in_errors(gain: pd.Series) -> float:
    """Mean of a gain over the draws, in standard errors."""
    return gain.mean() / (gain.std() / np.sqrt(len(gain)))


def training_with_gaps(
    both: pd.DataFrame, BAYES: Mapping[str, str]
) -> tuple[Array, Array, list[bool], pd.Series]:
    """Whether calibrated models win on most sets against all rivals of numbers and of states, boosting does against
    both, and calibrated TAN is its closed form."""
    counted = both["sets"].to_numpy()
    wins_of = {column: both[column].to_numpy() for column in both}
    numbers, states = (both.index.get_level_values(0) == arm for arm in BAYES)
    fewer = np.where(numbers, counted - 1, counted)
    of_boosting = both.index.get_level_values(1).str.startswith("boosting")
    trees = study.losses_of("categories", study=study.TRAINING_NAME)
    closed = (trees["TAN, calibrated"] == trees["TAN"]).groupby(level="kind").mean()
    return (
        wins_of["QDA or TAN, 20%"][numbers] > counted[numbers] / 2,
        wins_of["naive Bayes, 50%"][states] > counted[states] / 2,
        [
            *(wins_of["QDA or TAN, 50%"] < fewer / 2)[numbers & of_boosting],
            *(wins_of["naive Bayes, 20%"] < counted / 2)[states & of_boosting],
        ],
        closed > 0.5,
    )


def attained_fall() -> float:
    """The probability of a fall less Markov's bound where the posterior takes the values t and 1 alone."""
    bit = np.array([[0.0], [1.0], [1.0]])
    model, t = CategoricalNB().fit(bit, [0, 0, 1], [6.0, 3.0, 1.0]), 0.75  # P(x = 1) = 0.4, p(c | x = 1) = t
    at_c, share = model.predict_proba(bit[:2])[:, 0], np.exp(model.predict_joint_log_proba(bit[:2])).sum(axis=1)
    return share[at_c <= t + 1e-9].sum() - (1 - share @ at_c) / (1 - t)


def reasons(ends: Mapping[str, Any], every: Array) -> tuple[RiskCalibration, list[float], Array, dict[str, Array]]:
    """Probabilities of a fall and contributions, beside the bound and Shapley values."""
    independent = ends["Newton"]
    together = np.exp(independent.predict_joint_log_proba(every))
    P_every, p_every = independent.predict_proba(every), together.sum(axis=1)
    beyond = []
    for row, P, S in zip(every, P_every, sufficient_sets(independent, every, 0.8).features):
        share = p_every * (every[:, S] == row[S]).all(axis=1)
        share /= share.sum()
        at_c = P_every[:, P.argmax()]
        for t in (0.2, 0.5, 0.7):
            beyond.append(share[at_c <= t].sum() - (1 - share @ at_c) / (1 - t))
    alone = np.full((4, *every.shape), np.nan)
    for j in range(4):
        alone[j, :, j] = every[:, j]
    evidence = independent.predict_joint_log_proba(alone.reshape(-1, 4))
    evidence = np.diff(evidence - independent.class_log_prior_)[:, 0]
    by_feature = {
        method: np.diff(contributions(independent, every, method)).reshape(every.shape).T
        for method in ("hidden", "shapley")
    }
    return independent, beyond, evidence, by_feature


def errors_of_contributions(every: Array, rng: np.random.Generator) -> pd.DataFrame:
    """Root mean square errors of contributions to the log odds."""
    flip = np.array([0.02, 0.05, 0.1, 0.3])
    given_cause = np.stack([np.where(every == c, 1 - flip, flip).prod(axis=1) for c in (0, 1)])
    truth = (np.array([[0.8, 0.2], [0.2, 0.8]]) @ given_cause / 2).T

    def true_log_odds(seen):
        """Of the second class, for every row of which some features are seen."""
        alike = (every[:, None, seen] == every[None, :, seen]).all(axis=2)
        return np.diff(np.log(alike @ truth))[:, 0]

    others = [[k for k in range(4) if k != j] for j in range(4)]
    exact = np.stack([true_log_odds([0, 1, 2, 3]) - true_log_odds(S) for S in others], axis=1)
    source = rng.integers(2, size=20_000)
    cause_of = np.where(rng.uniform(size=len(source)) < 0.8, source, 1 - source)
    many = rng.uniform(size=(len(source), 4)) < flip
    many = np.where(many, 1 - cause_of[:, None], cause_of[:, None]).astype(float)
    off = {}
    for name, family in {
        "naive Bayes": CategoricalNB(),
        "tree": TAN(),
        "two parents": KDependenceBayes(k=2),
    }.items():
        for way, learner in {
            "closed form": family,
            "calibrated": RiskCalibration(family),
        }.items():
            found = contributions(learner.fit(many, source), every)
            error = np.diff(found).reshape(exact.shape) - exact
            off[name, way] = np.sqrt(truth.sum(axis=1) @ error**2)
    size = np.sqrt(truth.sum(axis=1) @ exact**2)
    off = pd.DataFrame(off | {("truth", "size of a contribution"): size}).T
    off.columns = [f"bit {j + 1}" for j in range(4)]
    return off


def unlabelled_rows(
    rng: np.random.Generator, bits: Array, independent: RiskCalibration, every: Array, label: Array
) -> tuple[Array, Array, Array, list[float], list[float]]:
    """Posteriors, means and likelihood when unlabelled rows place the model on its fibre."""
    without_label = (rng.uniform(size=(2_000, 4)) < [0.9, 0.3, 0.6, 0.2]).astype(float)
    all_rows = np.vstack([bits, without_label])
    old_joint = independent.predict_joint_log_proba(every)

    def place(rows):
        """Numbers of rows among ``every``."""
        return (rows @ [8, 4, 2, 1]).astype(int)

    def moved_joint(v):
        joint = old_joint + (every @ v)[:, None]
        return joint - np.log(np.exp(joint).sum())

    def minus_likelihood(v):
        joint = moved_joint(v)
        labelled = joint[place(bits), label].sum()
        return -labelled - np.logaddexp(*joint[place(without_label)].T).sum()

    best = moved_joint(minimize(minus_likelihood, np.zeros(4), method="BFGS", tol=1e-10).x)
    directions = rng.normal(size=(50, 2, 4))
    bend = [minus_likelihood(a) + minus_likelihood(b) - 2 * minus_likelihood((a + b) / 2) for a, b in directions]
    first_is_one = every[:, 0] == 1
    said = [np.exp(j[first_is_one]).sum(axis=0) for j in (old_joint, best)]
    said = [of[1] / of.sum() for of in said]
    return all_rows, old_joint, best, bend, said


def unlabelled_outside_the_span() -> tuple[list[float], list[float]]:
    """Posteriors of combinations without labels, by the number of unlabelled rows."""
    (seen_0, seen_1), rise = ((30, 10), (10, 30)), 2 * np.log(3)  # labelled rows (0, 0) and (1, 1), by class

    def table(free):
        """log p(y, x1, x2) of a naive Bayes with the greatest conditional likelihood of the labelled rows."""
        tilt, *of_0 = free  # the log odds of class 1 are -log 3 at (0, 0), and rise by log 3 ± tilt a bit
        of_0 = np.array(of_0)
        of_1 = of_0 + rise / 2 + np.array([tilt, -tilt])
        weight = np.log(seen_0[1] / seen_0[0]) + np.sum(np.logaddexp(0, of_1) - np.logaddexp(0, of_0))
        log_prior = -np.logaddexp(0, [weight, -weight])
        return np.array(
            [
                [
                    [p + b[0] * i - np.logaddexp(0, b[0]) + b[1] * j - np.logaddexp(0, b[1]) for j in (0, 1)]
                    for i in (0, 1)
                ]
                for p, b in zip(log_prior, (of_0, of_1))
            ]
        )

    def of_all(free, others):
        joint = table(free)
        labelled = np.dot(seen_0, joint[:, 0, 0]) + np.dot(seen_1, joint[:, 1, 1])
        return -labelled - np.sum(others * np.logaddexp(*joint)[[1, 0], [0, 1]])

    said, conditional = [], []
    for others in ([0, 0], [400, 20], [400, 400]):  # unlabelled rows (1, 0) and (0, 1)
        ends = [minimize(of_all, start, np.array(others), tol=1e-10) for start in ([1, 0, 0], [-1, 0, 0])]
        joint = table(min(ends, key=lambda end: end.fun).x)
        P = np.exp(joint - np.logaddexp(*joint))
        said.append(P[1, 1, 0])
        conditional.append(np.dot(seen_0, np.log(P[:, 0, 0])) + np.dot(seen_1, np.log(P[:, 1, 1])))
    return said, conditional


def marginals_summed(flowers: Array, species: Array, patterns: Sequence[tuple]) -> tuple[list[Array], list[float]]:
    """Probabilities of rows with gaps less sums over all complete rows, and over integrals, as ratios less one."""
    rng = np.random.default_rng(1313)
    codes = (flowers[:, :, None] > np.quantile(flowers, [0.4, 0.7], axis=0).T).sum(axis=2).astype(float)
    completions = np.array(list(product(range(3), repeat=4)), float)
    summed, integrated = [], []
    for network in (CategoricalNB(prior_strength=1.0), TAN(), KDependenceBayes(k=2)):
        network.fit(codes, species)
        complete = np.exp(network.predict_joint_log_proba(completions))
        for hidden in map(np.array, patterns):
            gappy = np.where(hidden, np.nan, codes[rng.choice(len(codes), 5)])
            agree = (np.isnan(gappy[:, None]) | (gappy[:, None] == completions)).all(axis=2)
            summed.append(np.exp(network.predict_joint_log_proba(gappy)) - agree @ complete)
    line, step = np.linspace(-400, 400, 400_001, retstep=True)
    seen_two, root, heavy = rng.normal(size=2), rng.normal(size=(3, 3)), 4.5
    shape = root @ root.T + np.eye(3)
    density = multivariate_t(np.zeros(3), shape, heavy).pdf(np.column_stack([np.tile(seen_two, (len(line), 1)), line]))
    integrated.append(density.sum() * step / multivariate_t(np.zeros(2), shape[:2, :2], heavy).pdf(seen_two) - 1)
    bell = GaussianNB().fit(flowers, species)
    line, step = np.linspace(-20, 30, 50_001, retstep=True)
    for j in range(4):
        rows = np.tile(flowers[75], (len(line), 1))
        rows[:, j] = line
        gappy = np.where(np.arange(4) == j, np.nan, flowers[75])[None]
        mass = np.exp(bell.predict_joint_log_proba(rows)).sum(axis=0) * step
        integrated += [*(mass / np.exp(bell.predict_joint_log_proba(gappy))[0] - 1)]
    return summed, integrated


def coherent_rules() -> list[float]:
    """From a rule for complete rows, features hidden one by one in all orders: distance from the joint model's rule."""
    rng, converse = np.random.default_rng(1310), []
    p_x, rule = rng.dirichlet(np.ones(8)).reshape(2, 2, 2, 1), rng.dirichlet(np.ones(3), (2, 2, 2))
    for order in permutations(range(3)):
        left, q = p_x, rule
        for count, axis in enumerate(order, 1):
            q = (left * q).sum(axis=axis, keepdims=True) / left.sum(axis=axis, keepdims=True)
            left = left.sum(axis=axis, keepdims=True)
            joint = (p_x * rule).sum(axis=order[:count], keepdims=True)
            converse.append(np.abs(q - joint / joint.sum(axis=-1, keepdims=True)).max())
    return converse


def nearest_to_a_target(bits: Array, label: Array, every: Array) -> tuple[Array, Array]:
    """Where on the fibre of a fit with a target the divergence from it is least, and the means of both, less."""
    rng = np.random.default_rng(1320)
    elsewhere = (rng.uniform(size=(500, 4)) < [0.3, 0.8, 0.5, 0.6]).astype(float)
    of_elsewhere = (elsewhere[:, 0] + rng.uniform(size=500) > 0.9).astype(int)
    aim = CategoricalNB(prior_strength=1.0).fit(elsewhere, of_elsewhere)
    pulled = RiskCalibration(CategoricalNB(), target=aim, target_weight=0.5, tol=1e-12).fit(bits, label)
    of_aim, of_pulled = (np.exp(model.predict_joint_log_proba(every)) for model in (aim, pulled))

    def divergence_from_the_target(v):
        moved = of_pulled * np.exp(every @ v)[:, None]
        return np.sum(of_aim * np.log(of_aim / (moved / moved.sum())))

    nearest = minimize(divergence_from_the_target, np.full(4, 0.1), method="BFGS", options={"gtol": 1e-9}).x
    return nearest, of_pulled.sum(axis=1) @ every - of_aim.sum(axis=1) @ every


def bounds_of_tables() -> tuple[Array, Array, list[Array]]:
    """Errors and bounds of any laws of a hidden feature of four states, and bound less error where it is attained:
    posteriors that differ in one direction, and laws that differ alone, with the class certain given all."""
    rng = np.random.default_rng(1311)

    def both(q_xm, q_y, p_xm, p_y):
        total_variation = np.abs(q_xm - p_xm).sum(axis=-1) / 2
        error = np.abs(np.sum(q_xm * q_y - p_xm * p_y, axis=-1))
        return error, np.sum(p_xm * np.abs(q_y - p_y), axis=-1) + total_variation

    q_xm, p_xm = rng.dirichlet(np.ones(4), size=(2, 2_000))
    q_y, p_y = rng.uniform(size=(2, 2_000, 4))
    sure = (q_xm > p_xm).astype(float)
    attained = [np.subtract(*both(p_xm, np.maximum(q_y, p_y), p_xm, p_y)), np.subtract(*both(q_xm, sure, p_xm, sure))]
    return *both(q_xm, q_y, p_xm, p_y), attained


def where_em_rests(gappy_flowers: Array, species: Array) -> tuple[Array, list[float], Array]:
    """Slopes of the observed likelihood where EM rests and along its first steps, and naive Bayes less what rows that
    have a feature say of it."""

    def slopes(X, mean, cov, h=1e-5):
        pairs = [h * np.outer(a, b) for a in np.eye(len(mean)) for b in np.eye(len(mean))]
        ways = [(e, 0 * cov) for e in h * np.eye(len(mean))] + [(0 * mean, (e + e.T) / 2) for e in pairs]
        patterns = by_pattern(X)
        ends = [[em_step(patterns, mean + t * e, cov + t * E)[2] for t in (1, -1)] for e, E in ways]
        return -np.diff(ends)[:, 0] / (2 * h * len(X))

    rest, climbs = [], []
    for c in range(3):
        rows = gappy_flowers[species == c]
        path = em_path(rows, 600)
        rest.append(slopes(rows, *path[-1][0]))
        for (model, _), (after, _) in pairwise(path[:6]):
            way = np.concatenate([np.ravel(new - old) for new, old in zip(after, model)])
            climbs.append(way @ slopes(rows, *model))
    alone = GaussianNB(rows_per_feature=0.0).fit(gappy_flowers, species)
    of_each = np.array([[of(gappy_flowers[species == c], axis=0) for of in (np.nanmean, np.nanvar)] for c in range(3)])
    return np.concatenate(rest), climbs, np.stack([alone.means_, alone.covariances_], axis=1) - of_each


def gradient_entries(
    gappy_flowers: Array, species: Array, gappy_bits: Array, label: Array, every: Array
) -> tuple[list[float], list[float], list[float]]:
    """Differences of CLL less the gradient, of the formula and of the library, and of the gradient less the Hessian,
    entry by entry of η, of features in unit scale, in units of the largest entry."""
    units = (gappy_flowers - np.nanmean(gappy_flowers, axis=0)) / np.nanstd(gappy_flowers, axis=0)

    def directions(eta):
        """One for each entry of η, symmetric in its matrices."""
        for e in map(eta.unravel, np.eye(eta.ravel().size)):
            square = getattr(e, "second", np.empty(0))
            if square.ndim > 1 and square.shape[-1] == square.shape[-2]:
                square[...] = (square + square.swapaxes(-1, -2)) / 2
            yield e.ravel()

    def enumerated(model, Y):
        """Gradient and Hessian of bits by all complete rows that agree with what is seen."""
        S = np.array([[model.statistics(x[None], np.eye(2)[[y]]).ravel() for y in (0, 1)] for x in every])
        agree = (np.isnan(gappy_bits[:, None]) | (gappy_bits[:, None] == every)).all(axis=2)
        possible = np.exp(model.predict_joint_log_proba(every)) * agree[:, :, None]
        given_y = possible / possible.sum(axis=1, keepdims=True)
        P = possible.sum(axis=1) / possible.sum(axis=(1, 2))[:, None]
        means = np.einsum("ixy,xyk->iyk", given_y, S)
        of_label, of_both = (np.einsum("iy,iyk->ik", W, means) for W in (Y, P))
        squares = np.einsum("iy,ixy,xyk,xyl->kl", Y - P, given_y, S, S, optimize=True)
        return (of_label - of_both).sum(axis=0), squares - of_label.T @ of_label + of_both.T @ of_both

    off, library, hessians, h = [], [], [], 1e-4
    for family, rows, labels in (
        (QDA(), units, species),
        (LDA(), units, species),
        (GaussianNB(), units, species),
        (CategoricalNB(), gappy_bits, label),
        (TAN(), gappy_bits, label),
    ):
        F, Y = Objective.from_estimator(family, rows, labels), np.eye(labels.max() + 1)[labels]
        center = F.evaluate(F.start)
        eta = F.family.natural_parameters(center.parameters)

        def conditional(eta, F=F, Y=Y, rows=rows):
            """CLL, its gradient by the formula, and η of the normalised factors."""
            theta = F.family.from_natural(eta)
            joint = F.family.log_joint(F.X, theta)
            log_P = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
            if rows is gappy_bits:
                g = enumerated(F.evaluate(F.family.mean_parameters(theta)).model, Y)[0]
            else:
                g = F.family.expected_statistics(F.X, Y - np.exp(log_P), theta).ravel()
            return log_P[Y > 0].sum(), g, F.family.natural_parameters(theta).ravel()

        ways = np.array(list(directions(eta)))
        ahead, behind = (
            [np.array(part) for part in zip(*(conditional(eta + t * eta.unravel(e)) for e in ways))] for t in (h, -h)
        )
        slopes, curved, moved = ((up - down) / (2 * h) for up, down in zip(ahead, behind))
        told = ways @ conditional(eta)[1]
        off.append(np.abs(slopes - told).max() / np.abs(told).max())
        library.append(np.abs(slopes - moved @ center.gradient.ravel()).max() / np.abs(told).max())
        if rows is gappy_bits:
            hessian = enumerated(center.model, Y)[1]
            hessians.append(np.abs(curved - hessian).max() / np.abs(hessian).max())
    return off, library, hessians


def drawn_copies(bits: Array, label: Array, masks: Array, rate: float, point: Point) -> tuple[Array, Array]:
    """The gradient with gaps in view less its sum over patterns, and value and gradient of copies whose patterns are
    drawn less theirs, in standard errors."""
    rng = np.random.default_rng(1337)
    family = point.model.family_

    def of_copies(rows):
        encoded = family.encode(rows)
        joint = family.log_joint(encoded, point.parameters)
        log_P = joint - np.logaddexp(*joint.T)[:, None]
        g = family.expected_statistics(encoded, np.eye(2)[label] - np.exp(log_P), point.parameters)
        return np.concatenate([[log_P[np.arange(len(rows)), label].sum()], g.ravel()])

    rho = np.where(masks, rate, 1 - rate).prod(axis=1)
    summed = sum(weight * of_copies(np.where(mask, np.nan, bits)) for weight, mask in zip(rho, masks))
    drawn = np.array([of_copies(with_gaps(bits, rate, rng)) for _ in range(300)])
    stated = np.concatenate([[point.value], point.gradient.ravel()])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    return stated - summed, (drawn.mean(axis=0) - stated) / np.maximum(error, 1e-9)  # some do not move with the draw


def targets_of_unlabelled_rows(bits: Array, label: Array, every: Array) -> list[Array]:
    """Posteriors with the target of labelled and unlabelled rows, of others with the same frequencies, and of fewer."""
    rng, found = np.random.default_rng(1371), []
    without_label = (rng.uniform(size=(2_000, 4)) < [0.9, 0.3, 0.6, 0.2]).astype(float)
    shuffled = np.column_stack([rng.permutation(column) for column in without_label.T])
    for unlabelled in (without_label, shuffled, without_label[without_label[:, 0] == 0]):
        rows = np.vstack([bits, unlabelled])
        aim = CategoricalNB(prior_strength=1.0).fit(np.vstack([rows, rows]), np.repeat([0, 1], len(rows)))
        pulled = RiskCalibration(CategoricalNB(), target=aim, target_weight=0.1, tol=1e-12).fit(bits, label)
        found.append(pulled.predict_proba(every))
    return found
