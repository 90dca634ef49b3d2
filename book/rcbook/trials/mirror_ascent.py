"""What the checks of the chapter *Mirror ascent* try: directions, models, gradients, targets and priors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from rcbook.small_families import (
    Y,
    calibrated,
    codes,
    derivative,
    entries,
    every_x,
    families,
    log_likelihood,
    n,
    nb,
    posterior_curvature,
    random_like,
    row_statistics,
    rows,
    softmax_rows,
    y,
)
from rcbook.trials.steps_leaves_and_rates import to_generative
from rcpkg import (
    LDA,
    QDA,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    InvalidStatistics,
    RiskCalibration,
    Statistics,
)
from rcpkg.base import Array
from rcpkg.families.count_model import CategoricalParameters
from rcpkg.families.gaussian_prior import GaussianParameters


def first_directions(
    bayes: GaussianNB, cloud_X: Array, cloud_Y: Array, cloud_paths: Mapping[str, list[GaussianParameters]]
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Angles of first steps with the gradient, in both planes."""
    P = softmax_rows(bayes.log_joint(cloud_X, bayes.parameters_))
    g = bayes.statistics(cloud_X, cloud_Y - P).ravel()

    def first_direction(way, to_plane):
        """Direction of the first step, without what moves no distribution."""
        before, after = (to_plane(theta).ravel() for theta in cloud_paths[way][:2])
        step = after - before
        step[:2] -= step[:2].mean()  # the coefficients of the two classes
        return step / np.linalg.norm(step) - g / np.linalg.norm(g)

    mean, natural = bayes.family_.mean_parameters, bayes.family_.natural_parameters
    return first_direction, mean, natural


def models_and_partitions() -> tuple[list[float], list[float], list[float]]:
    """Base measures, partitions and their slopes for all models."""
    remainders, partitions, slopes = [], [], []
    for model, X in families.values():
        eta = model.family_.natural_parameters(model.parameters_)
        mu = model.family_.mean_parameters(model.parameters_)
        log_h = model.predict_joint_log_proba(X) - model.family_.scores(X, eta)
        remainders.append(np.ptp(log_h, axis=1).max())
        partitions.append(model.family_.log_partition(eta))
        slopes += [derivative(model.family_.log_partition, eta, v) - mu.dot(v) for v in entries(model, X)]
    return remainders, partitions, slopes


def divergences_of_models() -> tuple[Array, Array, float, float, float]:
    """The divergences of the partition and of its dual beside KL, for two models."""
    other = CategoricalNB(prior_strength=30.0).fit(codes, y)
    log_p, log_q = (m.predict_joint_log_proba(every_x) for m in (nb, other))
    kl = np.array([np.sum(np.exp(log_p) * (log_p - log_q)), np.sum(np.exp(log_q) * (log_q - log_p))])
    (mu, eta), (mu2, eta2) = (
        (m.family_.mean_parameters(m.parameters_), m.family_.natural_parameters(m.parameters_))
        for m in (nb, other)
    )
    bregman = nb.family_.log_partition(eta2) - nb.family_.log_partition(eta) - mu.dot(eta2 - eta)
    # ψ* at means is Σ p log p
    dual = np.sum(np.exp(log_p) * log_p) - np.sum(np.exp(log_q) * log_q) - eta2.dot(mu - mu2)
    both = (mu - mu2).dot(eta - eta2)
    return log_p, kl, bregman, dual, both


def gradients_and_chords() -> tuple[list[float], Array, list[bool]]:
    """Slopes and curvatures of the conditional likelihood a row less the formulas, entry by entry, and chords."""

    def cll_at(model, X, eta):
        """CLL for any eta, a model's or not."""
        scores = model.family_.scores(X, eta)
        return np.sum((scores - np.logaddexp.reduce(scores, 1, keepdims=True))[Y > 0])

    def gradient_at(model, X, eta):
        return model.statistics(X, Y - softmax_rows(model.family_.scores(X, eta)))

    rng = np.random.default_rng(502)
    slopes_off, curvatures_off, chords = [], [], []
    for model, X in families.values():
        eta = model.family_.natural_parameters(model.parameters_)
        g, ways = gradient_at(model, X, eta), entries(model, X)
        V = np.array([v.ravel() for v in ways])
        slopes_off += [(derivative(partial(cll_at, model, X), eta, v) - g.dot(v)) / n for v in ways]
        C = posterior_curvature(row_statistics(model, X), model.predict_proba(X))
        bent = np.array([derivative(partial(gradient_at, model, X), eta, v).ravel() for v in ways])
        curvatures_off.append(np.ravel(bent @ V.T + V @ C @ V.T) / n)
        for _ in range(20):  # far from the model; many of no model at all
            a, b = (eta + random_like(eta, rng, 3.0) for _ in range(2))
            ends = [cll_at(model, X, end) for end in (a, b)]
            middle = cll_at(model, X, 0.5 * (a + b))
            chords.append(middle - 0.5 * sum(ends) > 0)
    return slopes_off, np.concatenate(curvatures_off), chords


def mirror_steps() -> tuple[list[float], Array, Array, Array, Array]:
    """A step of RC beside points nearby, slopes in mean parameters, and means after the step beside mirror ascent."""

    def proximal(model, eta_new, eta, mu, g, lr):
        """<g, eta'> - (m/lr) KL(p_eta || p_eta'), where psi(eta) = 0."""
        return g.dot(eta_new) - n / lr * (model.family_.log_partition(eta_new) - mu.dot(eta_new - eta))

    rng = np.random.default_rng(503)
    falls, mirrored, lr = [], [], 0.5
    for model, X in families.values():
        eta = model.family_.natural_parameters(model.parameters_)
        mu = model.family_.mean_parameters(model.parameters_)
        g = model.statistics(X, Y - model.predict_proba(X))
        after = calibrated(model, lr, 1, X)
        eta_plus = after.family_.natural_parameters(after.parameters_)
        mirrored.append((model.family_.mean_parameters(after.parameters_) - (mu + lr / n * g)).ravel())
        best = proximal(model, eta_plus, eta, mu, g, lr)
        nearby = [eta_plus + random_like(eta, rng, scale) for scale in (1e-4, 1e-3) for _ in range(50)]
        falls += [best - proximal(model, point, eta, mu, g, lr) for point in nearby]
    S = row_statistics(nb, every_x)
    p = np.exp(nb.predict_joint_log_proba(every_x))
    mean = np.einsum("ny,nyk->k", p, S)
    fisher_eta = np.einsum("ny,nyk,nyl->kl", p, S, S) - np.outer(mean, mean)
    g = nb.statistics(codes, Y - nb.predict_proba(codes)).ravel()
    gradient_mu = np.linalg.pinv(fisher_eta, rcond=1e-10) @ g
    mu, slopes = nb.family_.mean_parameters(nb.parameters_), []
    for e in entries(nb, codes):  # the change of μ with each entry of η
        v = fisher_eta @ e.ravel()
        slope = derivative(lambda mu: log_likelihood(nb, codes, nb.parameters(mu)), mu, mu.unravel(v))
        slopes.append((slope / n, gradient_mu @ v / n, g @ v / n))
    seen, natural, plain = np.transpose(slopes)
    return falls, seen, natural, plain, np.concatenate(mirrored)


def draws_of_copies(
    outcomes: Mapping[str, list[pd.DataFrame]], sides: Array, drawn: Sequence[Array]
) -> tuple[list[pd.DataFrame], list[pd.DataFrame], list[int]]:
    """Losses and soft errors along forty updates, draw by draw."""
    by_rc, by_soft = outcomes.values()
    stopped = RiskCalibration.as_published(CategoricalNB(), learning_rate=0.02, max_iter=40)
    kept = [stopped.fit(copies, sides).best_iter_ for copies in drawn]
    return by_rc, by_soft, kept


def natural_of(fit: ConditionalLikelihood) -> Statistics:
    """Natural parameters of a fit."""
    return fit.estimator_.family_.natural_parameters(fit.estimator_.parameters_)


def targets(
    rng: np.random.Generator,
) -> tuple[
    tuple[float, float, float],
    dict[str, tuple],
    pd.DataFrame,
    list[float],
    list[bool],
    list[float],
    pd.Series,
    list[bool],
]:
    """Optima with a target by weight: losses, divergences and bounds."""
    wine_X, wine_y = load_wine(return_X_y=True)
    wine_X = StandardScaler().fit_transform(wine_X)
    weights, found, losses = (1e-3, 1.0, 1e4), {}, {}
    suprema, over_bound, largest, apart = {}, [], [], []
    for title, model, X, labels in (
        ("LDA, wine (separable)", LDA(), wine_X, wine_y),
        ("QDA, heavy tails", QDA(), rows, y),
        ("NB, categories", CategoricalNB(), codes, y),
    ):
        fits = {b: to_generative(model, b).fit(X, labels) for b in weights}
        found[title] = model, X, labels, fits
        losses[title] = {b: f.history_.log_loss.iloc[-1] for b, f in fits.items()}
        suprema[title] = 0.0
        if X is not wine_X:  # whose rows are separable
            free = ConditionalLikelihood(model).fit(X, labels)
            suprema[title] = free.history_.log_loss.iloc[-1]
        model.fit(X, labels)
        eta_bar = model.family_.natural_parameters(model.parameters_)
        mu_bar, size = model.family_.mean_parameters(model.parameters_), len(labels)
        hot = np.eye(3)[labels]
        start = -log_likelihood(model, X, model.parameters_, hot) / size
        for b, fit in fits.items():
            eta_b, theta = natural_of(fit), fit.estimator_.parameters_
            kl = mu_bar.dot(eta_bar - eta_b)  # psi = 0 at both
            both = (model.family_.mean_parameters(theta) - mu_bar).dot(eta_b - eta_bar)
            over_bound.append(both * b / (start - losses[title][b]))
        apart.append(kl)
        others = fits[1.0].estimator_.parameters_  # is it the maximum?
        for _ in range(20):
            eta = natural_of(fits[1.0])
            theta = model.family_.from_natural(eta + random_like(eta, rng, 1e-2))
            F = [
                log_likelihood(model, X, t, hot) + size * mu_bar.dot(model.family_.natural_parameters(t))
                for t in (others, theta)
            ]
            largest.append(F[0] > F[1])
    losses = pd.DataFrame(losses).T.rename_axis(columns="b")
    above = losses[1e-3] - pd.Series(suprema)
    everyone = [f.converged_ for *_, fits in found.values() for f in fits.values()]
    return weights, found, losses, over_bound, largest, apart, above, everyone


def blends(rng: np.random.Generator) -> tuple[list[float], list[list[float]], dict[float, float]]:
    """The objective with a target as a blend, far away, and near the boundary."""
    model = CategoricalNB().fit(codes, y)  # part 3: F_b - CLL - b LL is a constant
    rest = []
    for _ in range(10):
        eta = model.family_.natural_parameters(model.parameters_)
        theta = model.family_.from_natural(eta + random_like(eta, rng, 0.3))
        joint = model.log_joint(codes, theta)
        target = model.statistics_.dot(model.family_.natural_parameters(theta))
        rest.append(2.0 * (target - np.sum(joint[Y > 0])))  # psi = 0

    def penalised(eta):
        scores = model.family_.scores(codes, eta)
        cll = np.sum((scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))[Y > 0])
        return cll + model.statistics_.dot(eta) - n * model.family_.log_partition(eta)

    ways = [random_like(eta, rng) for _ in range(20)]
    far = [[penalised(eta + t * way) for t in (10, 100, 1000)] for way in ways]
    halves, both = np.array([0, 0, 1, 1]), np.array([[0.0], [1.0]] * 2)
    binary = CategoricalNB(n_states=2).fit(both, halves)
    only_zeros, half = np.zeros((4, 1)), np.array([0.5, 0.5])
    edge = Statistics(count=half, cells=np.array([[0.5, 0.0], [0.5, 0.0]]))
    heights = {}
    for epsilon in (1e-1, 1e-2, 1e-3, 1e-4):  # of x = 1, in the model
        theta = binary.parameters_._replace(log_prob=np.log([[1 - epsilon, epsilon]] * 2))
        cll = log_likelihood(binary, only_zeros, theta, np.eye(2)[halves])
        heights[epsilon] = cll + edge.dot(binary.family_.natural_parameters(theta))
    return rest, far, heights


def updates_with_a_target(
    found: Mapping[str, Any], penalised_update: Callable[..., Any]
) -> tuple[list[Array], float, float, pd.DataFrame, list[float], pd.Series, list[bool]]:
    """Where updates with a target end, how they contract, and implicit ones beside points nearby."""
    agreement = []
    for model, X, labels, fits in found.values():
        by_rc = RiskCalibration(
            model, target="generative", target_weight=1.0, step="safe", max_iter=200, tol=0.0
        ).fit(X, labels)
        agreement.append(by_rc.predict_proba(X) - fits[1.0].predict_proba(X))
    model, b, lr = QDA().fit(rows, y), 60.0, 0.1
    target = model.statistics_
    stationary = to_generative(QDA(), b).fit(rows, y).estimator_.statistics_
    ways = {}
    for implicit in (True, False):
        s, note, distances = model.statistics_ * 1.0, "stays valid", []
        try:
            for _ in range(25):
                s = penalised_update(model, rows, s, target, b, lr, implicit)
                distances.append(np.abs((s - stationary).ravel()).max())
        except InvalidStatistics:
            note = "turns invalid"
        ways["implicit" if implicit else "explicit"] = {
            "statistics": note,
            "first distance": distances[0],
            "last distance": distances[-1],
        }
    factors = []  # one update where g = 0: labels are the posteriors
    for model, X in ((nb, codes), (LDA(), rows)):
        start = model.fit(X, y).statistics_
        aim = n * model.family_.mean_parameters(model.family_.grand_parameters(model.statistics_)[0])
        own = model.predict_proba(X)
        for rate, weight in ((0.1, 3.0), (0.5, 10.0)):
            for implicit in (True, False):
                step = penalised_update(model, X, start, aim, weight, rate, implicit, own)
                expected = 1 / (1 + rate * weight) if implicit else 1 - rate * weight
                left = (step - aim).ravel() - expected * (start - aim).ravel()
                factors.append(np.abs(left).max() / n)
    rng, falls, b_small, rate = np.random.default_rng(505), [], 2.0, 0.5
    for model, X in ((nb, codes), (LDA(), rows)):
        family, start = model.fit(X, y).family_, model.statistics_
        eta, aim = family.natural_parameters(model.parameters_), 0.7 * start + 0.3 * n * family.mean_parameters(
            family.grand_parameters(start)[0]
        )
        g = model.statistics(X, Y - model.predict_proba(X))

        def penalised(point, family=family, g=g, aim=aim, start=start, eta=eta):
            """The maximand of the implicit update, for a target of n rows."""
            psi = family.log_partition(point)
            kl = psi - family.log_partition(eta) - start.dot(point - eta) / n
            return g.dot(point) + b_small * (aim.dot(point) - n * psi) - n / rate * kl

        after = model.parameters(penalised_update(model, X, start, aim, b_small, rate))
        best = family.natural_parameters(after)
        falls += [penalised(best) > penalised(best + random_like(eta, rng, 1e-3)) for _ in range(50)]
    ways = pd.DataFrame(ways).T.astype({"first distance": float, "last distance": float})
    arrives = ways["last distance"] < 1e-2
    return agreement, b, lr, ways, factors, arrives, falls


def made_targets() -> tuple[bool, list[bool], list[Array | float], list[float]]:
    """Pseudo-rows, kept and shared parts of pooled and grand targets."""
    try:
        RiskCalibration.as_published(CategoricalNB(), target="generative", target_weight=1.0).fit(
            np.column_stack([codes, y == 0]), y
        )
        refused = False
    except InvalidStatistics:
        refused = True  # the last feature is constant within a class
    sizes, same, spread_out = [], [], []
    for model, X, size in ((QDA(), rows, 9.0), (GaussianNB(), rows, 6.0), (CategoricalNB(), codes, 3.0)):
        model.fit(X, y)
        pooled, pseudo_rows = model.family_.pooled_parameters(model.statistics_)
        grand, grand_rows = model.family_.grand_parameters(model.statistics_)
        sizes += [pseudo_rows == size, grand_rows == size]
        same.append(pooled.log_prior - model.parameters_.log_prior)
        spread_out.append(np.ptp(grand.log_prior))
        if isinstance(model, CategoricalNB):
            state = np.mean(codes[:, 0] == 1)  # of all classes
            same += [pooled.log_prob - pooled.log_prob[0]]
            same += [pooled.log_prob[0, 1] - np.log(state)]
        else:
            total = np.cov(X.T, bias=True)
            if isinstance(model, GaussianNB):
                total = np.diag(total)
            same += [pooled.mean - model.parameters_.mean]
            same += [grand.mean - X.mean(axis=0), grand.covariance - total]
            spread_out.append(np.ptp(pooled.covariance, axis=0).max())
        if isinstance(model, QDA):
            same += [pooled.covariance - LDA().fit(X, y).parameters_.covariance]
    return refused, sizes, same, spread_out


def ascents_on_the_clouds(
    cloud_X: Array,
    cloud_y: Array,
    bayes: GaussianNB,
    cloud_paths: Mapping[str, list[GaussianParameters]],
    cloud_losses: Callable[..., Any],
    fresh_X: Array,
    fresh_y: Array,
) -> pd.DataFrame:
    """Log-losses of RC and gradient ascent on the clouds."""
    by_target = RiskCalibration(GaussianNB(), target="pooled", target_weight=1.0, step="safe").fit(
        cloud_X, cloud_y
    )
    of_clouds = {
        ("closed form", 0): bayes.parameters_,
        **{(way, t): p[t] for way, p in cloud_paths.items() for t in (10, 300)},
        ("RC, target of weight 1", by_target.n_iter_): (by_target.estimator_.parameters_),
    }
    return pd.DataFrame(
        {
            key: [cloud_losses(theta, cloud_X, cloud_y)[0], *cloud_losses(theta, fresh_X, fresh_y)]
            for key, theta in of_clouds.items()
        },
        index=["training log-loss", "log-loss", "error"],
    ).T.rename_axis(["learner", "updates"])


def slope_along(
    model: CategoricalNB, X: Array, s: Statistics, g: Statistics, Y: Array = Y, t: float = 1e-05
) -> float:
    """Derivative of CLL along an update, by finite differences."""
    ends = [model.parameters(s + sign * t * g) for sign in (1, -1)]
    up, down = (log_likelihood(model, X, theta, Y) for theta in ends)
    return (up - down) / (2 * t)


def slope_nb(model: CategoricalNB, s: Statistics, theta: CategoricalParameters, g: Statistics) -> float:
    """By the formula for pseudo-counts."""
    of_class = model.class_prior_strength
    T = model.family_.families_.totals(s.cells) + model.prior_strength
    p = np.exp(theta.log_prob)
    cells = (g.cells - p * g.count[:, None]) ** 2 / p / T
    classes = g.count**2 / (s.count + of_class / len(s.count))
    return classes.sum() + cells.sum()


def slope_qda(model: QDA, s: Statistics, theta: GaussianParameters, g: Statistics) -> float:
    """By the formula for QDA, with moments about the model's means."""
    of_class, k = model.class_prior_strength, model.prior_strength
    total = np.sum(g.count**2 / (s.count + of_class / len(s.count)))
    for c, (mean, cov) in enumerate(zip(theta.mean, theta.covariance)):
        a = mean - model.family_.origin_
        G = g.first[c] - g.count[c] * a
        cross = np.outer(a, g.first[c])
        Gamma = g.second[c] - cross - cross.T
        Gamma += g.count[c] * (np.outer(a, a) - cov)
        d = s.first[c] / s.count[c] - a
        change = Gamma - np.outer(G, d) - np.outer(d, G)
        change += g.count[c] * np.outer(d, d)
        P = np.linalg.inv(cov)
        rate = G @ P @ G + 0.5 * np.trace(P @ Gamma @ P @ change)
        total += rate / (s.count[c] + k)
    return total


def priors_of_naive_bayes(gradient_of: Callable[..., Any]) -> tuple[dict[bool, list], Array, Array]:
    """Updates of naive Bayes with pseudo-counts, and slopes of the likelihood."""
    moves = {True: [], False: []}
    rates, formulas = [], []
    for own, conjugate in ((6.0, True), (2.0, False)):
        model = CategoricalNB(prior_strength=2.0, class_prior_strength=own)
        s = model.fit(codes, y).statistics_
        for _ in range(5):
            theta, g = gradient_of(model, codes, s)
            after = model.parameters(s + 0.5 * g)
            move = model.family_.mean_parameters(after) - model.family_.mean_parameters(theta)
            rest = (move - 0.5 / (n + own) * g).ravel()
            moves[conjugate].append(np.abs(rest).max())
            rates.append(slope_along(model, codes, s, g))
            formulas.append(slope_nb(model, s, theta, g))
            s = s + 0.5 * g
    rates, formulas = np.array(rates), np.array(formulas)
    return moves, rates, formulas


def priors_of_gaussians(
    gradient_of: Callable[..., Any],
) -> tuple[Array, int, int, Array, Array, int, float, float, list[tuple], Array, Array, Array, Array]:
    """Falling updates of QDA with a prior, and when they can fall."""
    labels = np.arange(20) % 2
    falling, fall = 0, None
    for seed in range(50):
        z = np.random.default_rng(seed).normal(size=20)
        X = (2 + 1.5 * labels + (1 + labels) * z)[:, None]
        model = QDA(prior_strength=10.0, class_prior_strength=2.0).fit(X, labels)
        s, Y2 = model.statistics_, np.eye(2)[labels]
        for t in range(20):
            try:
                theta, g = gradient_of(model, X, s, Y2)
            except InvalidStatistics:
                break
            rate = slope_qda(model, s, theta, g)
            if rate < 0:
                falling += 1
                fall = fall or (seed, t, rate, slope_along(model, X, s, g, Y2), X)
                break
            s = s + 0.1 * g
    seed, t, rate, slope, X = fall

    def move_of(model, s, g, t=1e-5):
        """Derivatives of means and covariances of class 0 along g, d = 1."""
        up, down = (model.parameters(s + k * g) for k in (t, -t))
        return [
            (a[0].item() - b[0].item()) / (2 * t)
            for a, b in ((up.mean, down.mean), (up.covariance, down.covariance))
        ]

    asymmetry, bounds = {}, []
    for centre in (*np.linspace(-20, 20, 41), None):
        model = QDA(prior_strength=10.0, prior_mean=centre or 0.0, class_prior_strength=2.0)
        if centre is None:  # the mean of class 0
            model.set_params(prior_mean=X[labels == 0].mean())
        s = model.fit(X, labels).statistics_
        theta, a = model.parameters_, model.parameters_.mean[0] - model.family_.origin_
        var, off = theta.covariance[0].item(), (s.first[0] / s.count[0] - a).item()
        units, moves, rates = [], [], np.zeros((2, 2))
        for G, Gamma in ((var, 0.0), (0.0, 2 * var**2)):  # of gradients 1, 0 and 0, 1
            g = 0.0 * s
            g.first[0], g.second[0] = G, Gamma + 2 * a * G
            units.append(g)
            moves.append(move_of(model, s, g))
        J = np.transpose(moves)
        asymmetry[centre] = off, J[1, 0] - J[0, 1]
        for i, j in np.ndindex(2, 2):  # of the quadratic form of the rate
            rates[i, j] = sum(k * slope_qda(model, s, theta, units[i] + k * units[j]) / 4 for k in (1, -1))
        bounds.append((off**2 / var, np.linalg.eigvalsh(rates)[0]))
    shape, least = np.transpose(bounds)
    offset, skew = np.abs(np.array([*asymmetry.values()])).T
    return labels, falling, seed, X, Y2, t, rate, slope, bounds, shape, least, offset, skew


def stuck_updates(X: Array, gradient_of: Callable[..., Any], labels: Array, Y2: Array) -> pd.DataFrame:
    """Updates with the MAP map, and final log-losses beside the optimum."""

    def halved_map(model, X, s, Y, T):
        """RC with the MAP map, halved until CLL rises: updates made, and CLL."""
        value, lr = log_likelihood(model, X, model.parameters(s), Y), 1.0
        for t in range(T):
            g, lr = gradient_of(model, X, s, Y)[1], 4 * lr
            while lr > 1e-12:
                lr /= 2
                try:
                    theta = model.parameters(s + lr * g)
                except InvalidStatistics:
                    continue
                new = log_likelihood(model, X, theta, Y)
                if new > value + 1e-9:  # beyond rounding
                    break
            else:
                return t, value
            s, value = s + lr * g, new
        return T, value

    optimum = ConditionalLikelihood(QDA()).fit(X, labels).history_.log_loss.iloc[-1]
    priors = {}
    for title, centre in (("zero", 0.0), ("mean of the rows", X.mean())):
        model = QDA(prior_strength=10.0, prior_mean=centre, class_prior_strength=2.0)
        s = model.fit(X, labels).statistics_
        updates, value = halved_map(model, X, s, Y2, 100)
        safe = RiskCalibration(model, step="safe", max_iter=100, target_weight=0.0, tol=0.0)
        beyond = safe.fit(X, labels).history_.log_loss.iloc[-1] - optimum
        priors[title] = {
            "updates": updates,
            "MAP map": max(-value / 20 - optimum, 0.0),
            "safe RC": max(beyond, 0.0),
        }
    return pd.DataFrame(priors).T.astype({"updates": int})


def both_ways(
    model: GaussianNB, X: Array, Y: Array, rate_of_rc: float, rate_of_gradient: float, T: int
) -> dict[str, list[GaussianParameters]]:
    """Parameters of RC, and of gradient ascent in eta, from the closed form."""
    paths: dict[str, list[GaussianParameters]] = {"RC": [], "gradient ascent": []}
    s, eta = model.statistics_, model.family_.natural_parameters(model.parameters_)
    for _ in range(T + 1):
        theta = model.parameters(s)
        paths["RC"].append(theta)
        s = s + rate_of_rc * model.statistics(X, Y - softmax_rows(model.log_joint(X, theta)))
        theta = model.family_.from_natural(eta)
        paths["gradient ascent"].append(theta)
        eta = eta + rate_of_gradient * model.statistics(X, Y - softmax_rows(model.log_joint(X, theta)))
    return paths
