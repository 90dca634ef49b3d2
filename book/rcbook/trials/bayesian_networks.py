"""What the checks of the chapter *Bayesian networks* try: partitions, slopes, searches and targets of networks."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from rcbook.network_rivals import HierarchicalDirichlet
from rcbook.small_families import derivative, entries, random_like
from rcpkg import ConditionalLikelihood, KDependenceBayes, MDLDiscretizer, RiskCalibration, Statistics
from rcpkg.base import Array
from rcpkg.calibration import Objective, Safe, Stop, climb
from rcpkg.families import one_hot
from rcpkg.families.cliques import Families
from rcpkg.families.count_model import CategoricalParameters


def full_families(
    networks: Mapping[str, KDependenceBayes], every: Array, curved: KDependenceBayes
) -> tuple[dict[str, list], Array, Array]:
    """Log-partition, probabilities and means of networks, by passes and by sums."""
    rng = np.random.default_rng(801)
    off = {"psi": [], "theta": [], "mu": []}
    for model in networks.values():
        for _ in range(10):
            eta = model.statistics_.unravel(rng.normal(scale=2, size=model.statistics_.ravel().size))
            scores = model.family_.scores(every.astype(float), eta)
            psi = logsumexp(scores)
            p = np.exp(scores - psi)
            theta = model.family_.from_natural(eta)
            of_theta = np.exp(model.log_joint(every.astype(float), theta))
            of_mu = model.statistics(every.astype(float), p)
            off["psi"].append(model.family_.log_partition(eta) - psi)
            off["theta"].append(np.abs(of_theta - p).max())
            passed = model.family_.mean_parameters(theta)
            off["mu"].append(np.abs((passed - of_mu).ravel()).max())
    # part 3: p with an interaction of the parents 0 and 1 of feature 2, and the
    # nearest network, which has the conditional distributions of p
    eta = 0.0 * curved.statistics_
    tables = curved.family_.families_.split(eta.cells)
    tables[2][:, 1, 1] = 2.0
    scores = curved.family_.scores(every.astype(float), eta)
    p = np.exp(scores - logsumexp(scores))
    own = curved.family_.without_prior()
    nearest = own.parameters(own.statistics(every.astype(float), p))
    q = own.log_joint(every.astype(float), nearest)
    return off, p, q


def mirror_steps(
    y: Array, networks: Mapping[str, KDependenceBayes], X: Array
) -> tuple[list[float], list[Array], list[float], list[float], Array]:
    """Slopes, posteriors and statistics of networks with targets, and what safe steps add to the objective."""
    slopes, ends, gaps_of_tables, rises = [], [], [], []
    Y = one_hot(y, 3)
    for model in networks.values():
        eta = model.family_.natural_parameters(model.parameters_)

        def likelihood(natural, model=model):
            scores = model.family_.scores(X, natural)
            return (scores - logsumexp(scores, axis=1, keepdims=True))[Y > 0].sum()

        scores = model.family_.scores(X, eta)
        P = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        gradient = model.statistics(X, Y - P)
        slopes += [(derivative(likelihood, eta, v) - gradient.dot(v)) / len(y) for v in entries(model, X)]
        for target in "pooled", "generative", "nested":
            settings = {"target": target, "target_weight": 1.0, "tol": 1e-8}
            by_steps = RiskCalibration(model, step="safe", **settings).fit(X, y)
            by_search = ConditionalLikelihood(model, **settings).fit(X, y)
            ends.append(by_steps.predict_proba(X) - by_search.predict_proba(X))
            s, found = by_steps.estimator_.statistics_, by_steps.estimator_
            m_mu = s.count.sum() * found.family_.mean_parameters(found.parameters_)
            gaps_of_tables.append(np.abs((s - m_mu).ravel()).max())
            objective = Objective.from_estimator(model, X, y, target=target, target_weight=1.0)
            trail = climb(objective, Safe(), Stop(), 30, keep_points=True)
            rises += [*np.diff([point.value for point in trail.points])]
    return slopes, ends, gaps_of_tables, rises, Y


def logistic_networks() -> tuple[list[dict], float, RiskCalibration, Array, Array]:
    """Ends of searches over networks, beside logistic regression, and beside a posterior of an exclusive or."""
    triples = np.array(list(product([0, 1], repeat=3)))
    apart_by_u = triples[:, 0] ^ triples[:, 1]
    p1 = np.where(apart_by_u == 1, 0.85 - 0.1 * triples[:, 2], 0.2 + 0.1 * triples[:, 2])
    rows = np.repeat(triples, 2, axis=0).astype(float)
    weights = 50 * np.column_stack([1 - p1, p1]).ravel()
    labels = np.tile([0, 1], 8)

    # which of the 13 distributions the class and each feature follow, by class and triple
    third = 5 + 4 * triples[:, 0] + 2 * triples[:, 1]
    used = np.array([[np.zeros(8, int), np.full(8, 1 + c), np.full(8, 3 + c), third + c] for c in (0, 1)])
    value = np.array([[np.full(8, c), *triples.T] for c in (0, 1)])

    def network_loss(z, p1=p1):
        "Mean log-loss of the network with these log odds of its distributions, where p1 is the posterior; its slope."
        joint = -np.logaddexp(0, np.where(value == 1, -1, 1) * z[used]).sum(axis=1)
        log_p = joint - np.logaddexp(*joint)
        of_classes = np.array([1 - p1, p1])
        left = (of_classes - np.exp(log_p))[:, None] * (value - expit(z)[used])
        return -np.mean((of_classes * log_p).sum(axis=0)), -np.bincount(used.ravel(), left.ravel()) / 8

    ends = [
        minimize(
            network_loss,
            np.random.default_rng(seed).normal(size=13),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 2000, "gtol": 1e-8, "ftol": 0},
        )
        for seed in range(8)
    ]
    odd = np.where(apart_by_u == 1, 0.85, 0.2)  # of x_0 xor x_1 alone
    most = {"maxiter": 2000}
    xor = [minimize(network_loss, end.x, (odd,), jac=True, method="L-BFGS-B", options=most).fun for end in ends]
    xor = np.array(xor) + np.mean(odd * np.log(odd) + (1 - odd) * np.log(1 - odd))
    joined = KDependenceBayes(structure=[[], [0], [0, 1]])
    regression = ConditionalLikelihood(joined, tol=1e-8)
    best = regression.fit(rows, labels, weights).history_.log_loss.iloc[-1]
    safe = RiskCalibration(joined, target_weight=0.0).fit(rows, labels, weights)
    losses = np.array([end.fun for end in ends])
    return ends, best, safe, losses, xor


def curved_network(curved: KDependenceBayes, X: Array, Y: Array, y: Array) -> tuple[list[float], Array]:
    """Slopes of a curved network and its losses along safe steps."""
    model, gaps, rng = curved.family_.without_prior(), [], np.random.default_rng(803)
    start = curved.family_.with_pseudo_rows(curved.statistics_)

    def at(s):
        "CLL of the rows, and g, theta and the totals of the distributions."
        theta = model.parameters(s)
        joint = model.log_joint(X, theta)
        log_P = joint - logsumexp(joint, axis=1, keepdims=True)
        g = model.statistics(X, Y - np.exp(log_P))
        return log_P[Y > 0].sum(), g, np.exp(theta.log_prob)

    families_of = model.families_
    for _ in range(5):
        scale = rng.uniform(0.5, 2, size=len(families_of.lengths))
        free = start.unravel(start.ravel().copy())
        free.cells *= np.repeat(scale, families_of.lengths)  # other totals
        _value, g, theta = at(free)
        totals, sums = families_of.totals(free.cells), families_of.totals(g.cells)
        slope = np.sum(g.count**2 / free.count)
        slope += np.sum(g.cells * (g.cells / theta - sums) / totals)
        for update in (
            lambda lr, s=free, g=g: s + lr * g,
            lambda lr, s=free, g=g: model.safe_update(s, lr * g),
        ):
            up, down = (at(update(lr))[0] for lr in (1e-6, -1e-6))
            gaps.append((up - down) / 2e-6 / slope - 1)
    learner = RiskCalibration(curved, step="safe", max_iter=150, tol=0.0).fit(X, y)
    falls = np.diff(learner.history_.log_loss)
    return gaps, falls


def nested_targets(
    networks: Mapping[str, KDependenceBayes],
    dependent_rows: Callable[..., Any],
    graphs: Mapping[str, list[list]],
    every: Array,
) -> tuple[
    Array, CategoricalParameters, float, Array, Array, float, Array, float, Statistics, Array, Families, Array, Array
]:
    """Nested networks, their pseudo-rows, and optima for five weights; what posteriors at the largest weight and the
    smoothed closed form are off."""
    rich, (few_X, few_y) = networks["a 2-tree"], dependent_rows(60, seed=3)
    rich = KDependenceBayes(structure=graphs["a 2-tree"]).fit(few_X, few_y)
    nested, size = rich.family_.nested_parameters(rich.statistics_)
    fits = {
        b: RiskCalibration(rich, target="nested", target_weight=b, tol=1e-11, max_iter=3000).fit(few_X, few_y)
        for b in (1e-5, 1e-2, 1.0, 1e2, 1e6)
    }
    joint = rich.log_joint(every.astype(float), nested)
    of_nested = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    lowest = ConditionalLikelihood(rich, tol=1e-8).fit(few_X, few_y).objective_
    losses = np.array([fit.history_.log_loss.iloc[-1] for fit in fits.values()])
    # the nested network from the rows, by its own graph
    smaller = KDependenceBayes(structure=[[], [], [1], [1]]).fit(few_X, few_y)
    by_hand = smaller.log_joint(every.astype(float), smaller.parameters_) - joint
    own, b = rich.family_.without_prior(), 0.7
    target = size * rich.family_.mean_parameters(nested)
    both = own.parameters(rich.statistics_ + b * target)
    families_of = own.families_
    s, t = rich.statistics_.cells, b * target.cells
    formula = s + families_of.totals(t) * np.exp(nested.log_prob)
    formula /= families_of.totals(s) + families_of.totals(t)
    at_largest = fits[1e6].predict_proba(every.astype(float)) - of_nested
    smoothed = np.exp(both.log_prob) - formula
    return few_y, nested, size, at_largest, losses, lowest, by_hand, b, target, smoothed, families_of, s, t


def chords_with_a_target(
    few: tuple[Array, Array], structure: list, b: float, target: Statistics, size: float
) -> list[bool]:
    """Whether the objective with a target lies above its chords."""
    X, y = few
    model, rng = KDependenceBayes(structure=structure).fit(X, y), np.random.default_rng(804)
    eta = model.family_.natural_parameters(model.parameters_)

    def penalised(eta):
        scores = model.family_.scores(X, eta)
        cll = (scores[np.arange(len(y)), y] - logsumexp(scores, axis=1)).sum()
        return cll + b * (target.dot(eta) - size * model.family_.log_partition(eta))

    ends = [[eta + random_like(eta, rng, scale) for _ in range(2)] for scale in np.repeat((0.3, 1.0, 3.0), 20)]
    return [penalised(0.5 * v + 0.5 * w) > 0.5 * (penalised(v) + penalised(w)) for v, w in ends]


def smoothing_by_contexts(
    few_y: Array,
    b: float,
    size: float,
    families_of: Families,
    t: Array,
    s: Array,
    target: Statistics,
    nested: CategoricalParameters,
) -> tuple[Array, Array, float, Array, list[Array], Array, Array, Array]:
    """Weights of smoothing by context, and Dirichlet totals; what contexts without rows have beside the nested network;
    and by how much the totals of a class in the tables of a joint distribution, and of pseudo-counts of one, differ."""
    n, size_b = len(few_y), b * size
    weight = families_of.totals(t) / (families_of.totals(s) + families_of.totals(t))
    expected = n * families_of.totals(target.cells) / size  # by the nested network
    rarer = families_of.totals(s) < expected
    linear = size_b / (n + size_b)
    # rows in proportion to the nested network: linear interpolation
    same = n / size * families_of.totals(target.cells)
    level = families_of.totals(t) / (same + families_of.totals(t))
    # pseudo-counts of Dirichlet smoothing with c = 1, and what ties tables
    c_table = families_of.split(np.exp(nested.log_prob))
    totals = [table.reshape(3, -1).sum(axis=1) for table in c_table]
    # in contexts without rows, in both formulas
    theta = np.exp(nested.log_prob)
    has_rows = np.repeat(np.arange(len(families_of.lengths)) % 5 > 0, families_of.lengths)  # the others are emptied
    fewer, own = s * has_rows, families_of.totals(s * has_rows)
    smoothed = [(fewer + part * theta) / (own + part) for part in (families_of.totals(t), 1.0)]
    alone = np.array([(found - theta)[:, ~has_rows] for found in smoothed])
    # the totals of a class in the tables of a joint distribution, and of one pseudo-count a cell
    joint, ones = (
        [table.reshape(3, -1).sum(axis=1) for table in families_of.split(cells)]
        for cells in (target.cells, np.ones_like(target.cells))
    )
    return weight, rarer, linear, level, totals, alone, np.ptp(joint, axis=0), np.ptp(ones, axis=0)


def losses_on_half(X: Array, y: Array) -> tuple[float, list[float], float]:
    """Log-losses on each second row of networks learnt from the others: of the closed form, and with distributions
    by HDP, of five short chains and of a long one."""
    cutter = MDLDiscretizer().fit(X[::2], y[::2])
    codes = cutter.transform(X)
    deep = KDependenceBayes(k=3, decomposable=False, n_states=codes.max(axis=0).astype(int) + 1)

    def loss(learner: Any) -> float:
        P = learner.fit(codes[::2], y[::2]).predict_proba(codes[1::2])
        return float(-np.log(P[np.arange(len(P)), y[1::2]]).mean())

    short = [loss(HierarchicalDirichlet(deep, random_state=k)) for k in range(5)]
    return loss(deep), short, loss(HierarchicalDirichlet(deep, n_samples=1500, burn_in=500))
