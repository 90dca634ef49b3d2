"""What the checks of the chapter *Risk-based calibration* try: statistics, optima, invariants and priors."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import invwishart
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

from rcbook.experiments.studies import learners_on_the_clouds as on_clouds
from rcpkg import QDA, CategoricalNB, RiskCalibration, SharedVarianceGaussianNB, Statistics
from rcpkg.base import Array, GenerativeClassifier
from rcpkg.families.count_model import CategoricalParameters
from rcpkg.families.gaussian_prior import GaussianParameters


def errors_of_random_answers(probabilities: Array, y: Array) -> tuple[Array, float]:
    """Share of errors in each of 4,000 answers of the randomised classifier to all rows, and the error of its mean."""
    rng = np.random.default_rng(43)
    answers = (rng.uniform(size=(4000, len(y), 1)) > probabilities.cumsum(axis=1)[:, :-1]).sum(axis=2)
    simulated = np.mean(answers != y, axis=1)
    return simulated, simulated.std() / np.sqrt(len(simulated))


def algorithm_1_as_printed(model: GenerativeClassifier, X: Array, Y: Array, lr: float) -> Any:
    """Algorithm 1 of rc2025 with its indices as they are printed."""
    s, epsilon = {0: model.statistics(X, Y)}, {}
    h = {0: model.parameters(s[0])}

    def posteriors(parameters):
        return softmax(model.log_joint(X, parameters), axis=1)

    epsilon[0] = np.mean(1 - np.sum(Y * posteriors(h[0]), axis=1))
    t = 1
    while True:
        s[t] = s[t - 1] + lr * model.statistics(X, Y - posteriors(h[t - 1]))
        h[t] = model.parameters(s[t])
        epsilon[t] = np.mean(1 - np.sum(Y * posteriors(h[t]), axis=1))
        t += 1
        if epsilon[t] > epsilon[t - 1]:
            return h[t - 1]


def losses_of_draws(runs: pd.DataFrame, learners: Iterable[str]) -> dict[str, Array]:
    """Error and log-loss of the learners on the stored draws of the clouds, (20, 2)."""
    return {name: runs.loc[runs.learner == name, ["error", "log_loss"]].to_numpy() for name in learners}


def draws_against_the_closed_form(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean error and log-loss of each learner over draws of the clouds, and on how many draws both are below."""
    losses_of = losses_of_draws(runs, on_clouds.WAYS)
    below = {f"draws with less {loss}": k for k, loss in enumerate(("error", "log-loss"))}
    means = pd.DataFrame({name: both.mean(axis=0) for name, both in losses_of.items()}, index=["error", "log-loss"]).T
    counts = {
        heading: [(both < losses_of["closed form"])[:, k].sum() for both in losses_of.values()]
        for heading, k in below.items()
    }
    return means.round(3).assign(**counts)


def draws_of_clouds(runs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Error and log-loss of three learners, by their ``names`` in the chapter, over draws of the clouds."""
    learners = "closed form", "closed form rescaled: temperature", on_clouds.BY_SAFE_STEPS
    before, scaled, after = found = losses_of_draws(runs, learners).values()
    return pd.DataFrame(
        {name: both.mean(axis=0) for name, both in zip(names, found)}
        | {
            "below closed form": (after < before).sum(axis=0),
            "below rescaled": (after < scaled).sum(axis=0),
            "draws": len(before),
        },
        index=["error", "log-loss"],
    ).round(3)


def update_by_a_flower(X: Array, y: Array, Y: Array) -> pd.DataFrame:
    """The update of statistics and parameters by one misclassified flower."""
    fitted = QDA().fit(X, y)
    P = fitted.predict_proba(X)
    flower = np.argmin(P[np.arange(len(y)), y])
    weights = Y[flower] - P[flower]
    s = fitted.statistics(X, Y)
    pulled = s + fitted.statistics(X[[flower]], weights[None])
    old_mean, new_mean = (fitted.parameters(t).mean[:, 2] for t in (s, pulled))
    changes = pd.DataFrame(
        {
            "label": Y[flower],
            "posterior": P[flower],
            "weight in the update": weights.round(3) + 0.0,
            "rows of the class": s.count,
            "rows after the update": pulled.count,
            "mean petal length": old_mean,
            "mean after the update": new_mean,
        },
        index=load_iris().target_names,
    )
    for quantity, values in changes.items():
        whole = quantity in ("label", "rows of the class")
        changes[quantity] = values.map(("{:.0f}" if whole else "{:.3f}").format)
    return changes


def optimum_of_categories() -> tuple[
    np.random.Generator, Array, Array, CategoricalParameters, Callable[..., Any], Array, Array, list[Array]
]:
    """The closed form of naive Bayes with soft labels beside a numerical optimum."""
    rng = np.random.default_rng(42)
    codes = rng.integers([2, 3], size=(60, 2)).astype(float)  # two features, with two and three states
    soft = rng.dirichlet(np.ones(2), size=60)  # two classes
    nb = CategoricalNB(n_states=[2, 3])
    s = nb.statistics(codes, soft)
    closed = nb.parameters(s)

    def unpack(z):
        """Log probabilities of the classes, and of all states in each class."""
        return log_softmax(z[:2]), [
            np.hstack([log_softmax(c[:2]), log_softmax(c[2:])]) for c in z[2:].reshape(2, 5)
        ]

    def negative_log_likelihood(z):
        log_prior, log_prob = unpack(z)
        return -(s.count @ log_prior + np.sum(s.cells * log_prob))

    def optimum(function, n_coordinates, scale):
        """Minimiser of function/scale by quasi-Newton steps from zero."""
        return minimize(
            lambda z: function(z) / scale,
            np.zeros(n_coordinates),
            method="BFGS",
            jac="3-point",
            options={"gtol": 1e-10},
        ).x

    z = optimum(negative_log_likelihood, 12, len(codes))
    log_prior, log_prob = unpack(z)
    return rng, codes, soft, closed, optimum, z, log_prior, log_prob


def triangle(a: float, b: float, k: float) -> Array:
    """A Cholesky factor by its free coordinates."""
    return np.array([[np.exp(a), 0.0], [k, np.exp(b)]])


def optimum_of_gaussians(
    rng: np.random.Generator, optimum: Callable[..., Any]
) -> tuple[Array, Array, GaussianParameters, Array, Array, Array, Array]:
    """The closed form of QDA with signed weights beside a numerical optimum."""
    points = rng.normal(size=(40, 2)) @ [[1.0, 0.6], [0.0, 0.5]] + [1.0, -2.0]
    signed = rng.dirichlet(np.ones(2), size=40) + rng.normal(scale=0.1, size=(40, 2))
    qda = QDA()
    s = qda.statistics(points, signed)
    closed = qda.parameters(s)

    def negative_log_likelihood(z):
        """In free coordinates: log odds, means, and log-Cholesky factors."""
        log_prior, total = log_softmax(np.r_[z[0], 0.0]), 0.0
        for c, (*mean, a, b, k) in enumerate(z[1:].reshape(2, 5)):
            factor = triangle(a, b, k)
            cross = np.outer(s.first[c], mean)
            scatter = s.second[c] - cross - cross.T + s.count[c] * np.outer(mean, mean)
            half = np.linalg.solve(factor, scatter)
            total += s.count[c] * (log_prior[c] - np.log(2 * np.pi) - a - b) - 0.5 * np.trace(
                np.linalg.solve(factor, half.T)
            )
        return -total

    z = optimum(negative_log_likelihood, 11, len(points))
    log_prior, by_class = log_softmax(np.r_[z[0], 0.0]), z[1:].reshape(2, 5)
    factors = np.array([triangle(*shape) for shape in by_class[:, 2:]])
    return points, signed, closed, z, log_prior, by_class, factors


def optimum_with_shared_variances(
    points: Array, signed: Array, optimum: Callable[..., Any]
) -> tuple[GaussianParameters, Array]:
    """The closed form with shared variances beside a numerical optimum."""
    lr_model = SharedVarianceGaussianNB()
    s = lr_model.statistics(points, signed)
    closed = lr_model.parameters(s)

    def negative_log_likelihood(z):
        log_prior, mean, log_variance = (log_softmax(np.r_[z[0], 0.0]), z[1:5].reshape(2, 2), z[5:])
        square = s.second - 2 * np.sum(mean * s.first, axis=0) + s.count @ mean**2
        return (
            0.5 * np.sum(s.count.sum() * log_variance + square / np.exp(log_variance)) - s.count @ log_prior
        )

    z = optimum(negative_log_likelihood, 7, len(points))
    return closed, z


def heavy_tails(rng: np.random.Generator) -> tuple[Array, Array]:
    """Two overlapping classes of 150 rows, Student t with four degrees."""
    labels = np.repeat([0, 1], 150)
    scale = np.where(labels == 0, 1.0, 1.6)[:, None]
    return rng.standard_t(4, size=(300, 2)) * scale + labels[:, None], labels


def fixed_point() -> tuple[Array, QDA, RiskCalibration, Array, Array, Array]:
    """Scores and posteriors at the end of calibration, beside logistic regression."""
    overlapping, overlapping_y = heavy_tails(np.random.default_rng(44))
    closed = QDA().fit(overlapping, overlapping_y)
    calibrated = RiskCalibration.as_published(QDA(), learning_rate=0.5, max_iter=300, stopping="none")
    calibrated.fit(overlapping, overlapping_y)
    features = PolynomialFeatures(2, include_bias=False).fit_transform(overlapping)
    regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    posteriors = regression.fit(features, overlapping_y).predict_proba(features)
    residuals = np.eye(2)[overlapping_y] - calibrated.predict_proba(overlapping)
    score = residuals.T @ np.column_stack([np.ones(len(features)), features])
    return overlapping, closed, calibrated, features, posteriors, score


def mode_of_gaussians(
    points: Array, signed: Array, optimum: Callable[..., Any]
) -> tuple[
    Callable[..., Any],
    Statistics,
    Array,
    Array,
    Array,
    Array,
    float,
    Array,
    Array,
    Array,
    list[Array],
    list[float],
]:
    """Posterior modes of means and covariances on a grid, beside the closed forms."""

    def posterior_mode(s, c, m1, m2, prior_mean, prior_covariance):
        """Equation (eq-rc-map-qda) for the statistics of class c."""
        size, mean = s.count[c], s.first[c] / s.count[c]
        scatter = s.second[c] - size * np.outer(mean, mean)
        away = m1 * size / (m1 + size) * np.outer(*2 * [mean - prior_mean])
        covariance = (m2 * prior_covariance + scatter + away) / (m2 + size)
        return covariance, (m1 * prior_mean + size * mean) / (m1 + size)

    s = QDA().statistics(points, signed)
    m1, m2, prior_mean = 8.0, 3.0, np.array([0.5, -1.0])
    prior_covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    mode, centre = posterior_mode(s, 0, m1, m2, prior_mean, prior_covariance)
    axis = np.linspace(-3.0, 3.0, 101)
    means = np.stack(np.meshgrid(axis + 1, axis - 2), axis=-1).reshape(-1, 2)

    def log_joint_posterior(means, covariance):
        """Prior times likelihood of the weighted rows, at each of the means."""
        size, first, second = s.count[0], s.first[0], s.second[0]
        solved = np.linalg.solve(covariance, means.T).T
        of_rows = np.trace(np.linalg.solve(covariance, second))
        of_rows += np.sum(solved * (size * means - 2 * first), axis=1)
        away = means - prior_mean
        of_prior = m2 * np.trace(np.linalg.solve(covariance, prior_covariance))
        of_prior += m1 * np.sum(np.linalg.solve(covariance, away.T).T * away, axis=1)
        log_det = np.linalg.slogdet(covariance)[1]
        return -0.5 * ((m2 + 1 + size) * log_det + of_rows + of_prior)

    def of_covariance(z):
        factor = triangle(*z)
        return -logsumexp(log_joint_posterior(means, factor @ factor.T))

    def of_both(z):
        factor = triangle(*z[2:])
        return -log_joint_posterior(z[None, :2], factor @ factor.T)[0]

    whole = m2 + s.count[0]
    factor = triangle(*optimum(of_covariance, 3, whole))
    z = optimum(of_both, 5, whole)
    joint_factor = triangle(*z[2:])
    expected, constant = [], []
    for C in invwishart.rvs(df=12, scale=9 * np.eye(2), size=30, random_state=45):
        log_density = log_joint_posterior(means, C)
        expected.append(softmax(log_density) @ means)
        stated = np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, mode))
        constant.append(logsumexp(log_density) + 0.5 * whole * stated)
    return (
        posterior_mode,
        s,
        prior_mean,
        prior_covariance,
        mode,
        centre,
        whole,
        factor,
        z,
        joint_factor,
        expected,
        constant,
    )
