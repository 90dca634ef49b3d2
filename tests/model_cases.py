"""One small data set for each closed-form model, so that an identity is tested on all of them."""

import inspect
import tracemalloc
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import ClassifierMixin, clone

import rcpkg
from rcpkg import (
    LDA,
    QDA,
    TAN,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    KDependenceBayes,
    MultinomialNB,
    ProductModel,
    SharedVarianceGaussianNB,
)
from rcpkg.base import Estimator
from rcpkg.families import one_hot
from rcpkg.gaussians import BDA7_SEEDS, Seed


class Fitted(NamedTuple):
    """A fitted model, its rows, class numbers and label matrix."""

    model: object
    X: np.ndarray
    y: np.ndarray
    Y: np.ndarray


def classes(n, r, rng):
    return rng.permutation(np.arange(n) % r)


def gaussian_rows(n=90, d=3, r=3, seed=0):
    """Overlapping Gaussian classes with covariances of their own."""
    rng = np.random.default_rng(seed)
    y = classes(n, r, rng)
    factors = np.eye(d) + 0.2 * rng.standard_normal((r, d, d))
    X = rng.standard_normal((r, d))[y] + np.einsum("iab,ib->ia", factors[y], rng.standard_normal((n, d)))
    return X, y


def categorical_rows(n=120, n_states=(2, 3, 5), r=3, seed=0):
    """Codes whose distribution depends on the class; every state occurs in every class."""
    rng = np.random.default_rng(seed)
    y = classes(n, r, rng)
    X = np.empty((n, len(n_states)))
    for j, k in enumerate(n_states):
        p = 0.3 / k + 0.7 * rng.dirichlet(np.ones(k), size=r)
        X[:, j] = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)[y, :-1]).sum(axis=1)
        for c in range(r):
            X[np.flatnonzero(y == c)[:k], j] = np.arange(k)
    return X, y


def document_rows(n=60, d=4, r=3, length=12, seed=0):
    """Word counts of documents of one length."""
    rng = np.random.default_rng(seed)
    y = classes(n, r, rng)
    p = rng.dirichlet(np.full(d, 3.0), size=r)
    return np.array([rng.multinomial(length, p[c]) for c in y], dtype=float), y


def network_rows(n=150, n_states=(2, 3, 2, 3), r=3, seed=0):
    """Codes of which some depend on others, in a way that depends on the class; every row occurs in every class."""
    rng = np.random.default_rng(seed)
    every = np.array(list(product(*map(range, n_states))))
    X, y = rng.integers(0, n_states, size=(n, len(n_states))), classes(n, r, rng)
    for j, (a, b) in ((1, (0, 0)), (2, (1, 1)), (3, (1, 2))):
        told = (X[:, a] + X[:, b] + y) % n_states[j]
        X[:, j] = np.where(rng.uniform(size=n) < 0.3 + 0.1 * j, told, X[:, j])
    order = rng.permutation(n + r * len(every))
    y = np.concatenate([y, np.repeat(np.arange(r), len(every))])
    return np.vstack([X, *[every] * r])[order].astype(float), y[order]


def mixed_rows(seed=0):
    """Two categorical columns, then three continuous ones."""
    codes, y = categorical_rows(n_states=(2, 3), seed=seed)
    shift = np.random.default_rng(seed).standard_normal((3, 3))
    return np.hstack([codes, shift[y] + np.random.default_rng(seed + 1).standard_normal((len(y), 3))]), y


def mixed_model(strength=0.0):
    return ProductModel(
        [
            ("codes", CategoricalNB(prior_strength=strength), [0, 1]),
            ("sizes", QDA(prior_strength=strength), [2, 4]),
            ("other", GaussianNB(prior_strength=strength), [3]),
        ],
        class_prior_strength=strength,
    )


GAUSSIAN = {
    "QDA": QDA(),
    "LDA": LDA(),
    "GaussianNB": GaussianNB(),
    "SharedVarianceGaussianNB": SharedVarianceGaussianNB(),
}
GAUSSIAN_MAP = {
    f"{name} MAP": clone(model).set_params(prior_strength=3.0, prior_mean=0.5, prior_covariance=2.0)
    for name, model in GAUSSIAN.items()
}
COUNTS = {"CategoricalNB": CategoricalNB(), "BernoulliNB": BernoulliNB(), "MultinomialNB": MultinomialNB()}
COUNTS_MAP = {f"{name} MAP": clone(model).set_params(prior_strength=2.0) for name, model in COUNTS.items()}
PRODUCT = {"ProductModel": mixed_model()}
PRODUCT_MAP = {"ProductModel MAP": mixed_model(2.0)}
NETWORKS = {"TAN": TAN(prior_strength=0.0), "KDependenceBayes": KDependenceBayes(k=2, prior_strength=0.0)}
NETWORKS_MAP = {f"{name} MAP": clone(model).set_params(prior_strength=2.0) for name, model in NETWORKS.items()}
ML = {**GAUSSIAN, **COUNTS, **PRODUCT, **NETWORKS}
MAP = {**GAUSSIAN_MAP, **COUNTS_MAP, **PRODUCT_MAP, **NETWORKS_MAP}
MODELS = {**ML, **MAP}


WITH_SETTINGS = [
    *(rcpkg.RDA(lambdas=(0.5,)), rcpkg.EDDA(models=("EEE",)), rcpkg.SVMKNN(n_neighbors=5)),
    rcpkg.RiskCalibrationCV(LDA(), target="pooled", target_weights=[3.0, 30.0]),
    *(rcpkg.RiskCalibration(GaussianNB()), rcpkg.ConditionalLikelihood(GaussianNB(), target_weight=1.0)),
    *(rcpkg.TM(GaussianNB(), max_iter=5), rcpkg.SoftErrorCalibration(LDA(), max_iter=5)),
    rcpkg.DiscriminativeFrequencyEstimate(GaussianNB(), max_iter=5),
    *(rcpkg.Mixture(GaussianNB(), n_components=2, random_state=0), ProductModel([("all", GaussianNB(), slice(None))])),
    rcpkg.TableClassifier(candidates=[("nb", GaussianNB())], cv=2, random_state=0),
    rcpkg.BregmanClustering(n_clusters=2, random_state=0),
]
ABSTRACT = "ClosedFormClassifier", "GenerativeClassifier"
#: name -> one of each public estimator, with the settings that it asks for, or by which it is quick
EACH_ESTIMATOR = {type(estimator).__name__: estimator for estimator in WITH_SETTINGS}
for _name in rcpkg.__all__:
    _kind = getattr(rcpkg, _name)
    if inspect.isclass(_kind) and issubclass(_kind, Estimator) and _name not in (*ABSTRACT, *EACH_ESTIMATOR):
        EACH_ESTIMATOR[_name] = _kind()


def rows_for(name, seed=0):
    """Rows and class numbers that suit the model of this name."""
    if name.startswith("Categorical"):
        return categorical_rows(seed=seed)
    if name.startswith("Bernoulli"):
        return categorical_rows(n_states=(2, 2, 2, 2), seed=seed)
    if name.startswith("Multinomial"):
        return document_rows(seed=seed)
    if name.startswith("Product"):
        return mixed_rows(seed)
    if name.startswith(("TAN", "KDependence")):
        return network_rows(seed=seed)
    return gaussian_rows(seed=seed)


def fitted(name, seed=0):
    """The model of this name, fitted to its rows."""
    X, y = rows_for(name, seed)
    return Fitted(clone(MODELS[name]).fit(X, y), X, y, one_hot(y, y.max() + 1))


def row_statistics(model, X, r):
    """s(x_i, y) as vectors, shape (n, r, k)."""
    return np.array([[model.statistics(x[None], one_hot(np.array([y]), r)).ravel() for y in range(r)] for x in X])


def random_direction(like, rng):
    """Random statistics of the same structure, with symmetric second moments."""

    def draw(part):
        if not isinstance(part, np.ndarray):
            return part.map(draw)
        v = rng.standard_normal(part.shape)
        symmetric = part.ndim >= 2 and part.shape[-1] == part.shape[-2] and np.allclose(part, part.swapaxes(-1, -2))
        return (v + v.swapaxes(-1, -2)) / 2 if symmetric else v

    return like.map(draw)


ALL_SEEDS = (*BDA7_SEEDS, Seed("trace_class"), Seed("identity", 0, 2.0))


def breaking_problem(trial):
    """A random problem with what breaks downdates: single rows, constant features, duplicates, an outlier."""
    rng = np.random.default_rng(trial)
    d, r = int(rng.integers(1, 9)), int(rng.integers(2, 5))
    n = int(rng.integers(r + 1, 26))
    y = np.r_[np.arange(r), rng.integers(0, r, n - r)]
    X = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) + np.eye(d)) + rng.normal(size=(r, d))[y]
    if trial % 5 == 1:
        X[:, 0] = 3.7
    elif trial % 5 == 2:
        X[y == 0, 0] = 1.3
    elif trial % 5 == 3:
        X[n // 2 :] = X[: n - n // 2]
    elif trial % 5 == 4:
        X[0] += 1e4
    return X, y, r, d


# models and learning rates of which a later step turns invalid
INVALID = {"CategoricalNB": (CategoricalNB(), 6.0), "QDA": (QDA(), 6.0), "GaussianNB": (GaussianNB(), 6.0)}


def invalid_rows(name):
    return categorical_rows(n=60) if name == "CategoricalNB" else gaussian_rows(n=60)


def peak_memory(call):
    """Bytes that a call without arguments has allocated at the most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(message, call, *arguments, **options):
    """A call is a ValueError in words that match; of a classifier it changes no attribute."""
    owner = getattr(call, "__self__", None)
    before = set(getattr(owner, "__dict__", ()))
    with pytest.raises(ValueError, match=message):
        call(*arguments, **options)
    assert not isinstance(owner, ClassifierMixin) or set(vars(owner)) == before


# what runs on each model, and a law that mentions no prior: the models with one are left to the slow suite
ALL = pytest.mark.parametrize("name", MODELS)
OF_ANY_PRIOR = pytest.mark.parametrize("name", [*ML, *(pytest.param(name, marks=pytest.mark.slow) for name in MAP)])
# of each family one: the others go through the same code with other parameters, and costly tests leave them to the
# slow suite
OF_EACH_FAMILY = {"QDA", "SharedVarianceGaussianNB", "BernoulliNB", "MultinomialNB", "ProductModel", "TAN"}


def slow(*values):
    """Values of a parameter that are left to the slow suite."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def of_each_family(*cases):
    """Cases, each a name of a model or a tuple that begins with one; slow where the name is not in `OF_EACH_FAMILY`."""
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] not in OF_EACH_FAMILY)) for case in cases]
