"""A pytest plugin that puts rcpkg's classes in the places of scikit-learn's. It renames, and computes nothing."""

import numpy as np
from rcbook.strict_naive_bayes import StrictCategoricalNB
from sklearn import discriminant_analysis as da
from sklearn import naive_bayes as nb

import rcpkg

# fmt: off
TAKEN = {"priors", "n_components", "alpha", "fit_prior", "class_prior", "min_categories", "solver", "store_covariance"}
READ_OFF = {
    "theta_": lambda m: m.means_, **dict.fromkeys(["var_", "covariance_"], lambda m: m.covariances_),
    "class_count_": lambda m: m.statistics_.count, "n_categories_": lambda m: m.n_states_,
    **dict.fromkeys(["class_prior_", "priors_"], lambda m: np.exp(m.class_log_prior_)),
    **dict.fromkeys(["feature_count_", "category_count_"], lambda m: m.by_feature(m.statistics_.cells)),
    "feature_log_prob_": lambda m: m.by_feature(m.parameters_.log_prob)}


def put_in(module, name, ours, parameters=lambda m, X: {}, by_feature=lambda m, cells: cells):
    """Replace a class by ours, with ``parameters`` of ours for its own (a solver only computes) and its attributes."""
    default, names = getattr(module, name)().get_params(), getattr(module, name)._get_param_names

    class Adapter(ours):
        _get_param_names = names

        def __init__(self, **given):
            ours.__init__(self, class_prior_strength=0.0)
            self.__dict__.update(default | given)

        def fit(self, X, y, sample_weight=None):
            return ours.fit(self.renamed(X, y), X, y, sample_weight)

        def partial_fit(self, X, y, classes=None, sample_weight=None):
            return ours.partial_fit(self.renamed(X, y if classes is None else classes), X, y, classes, sample_weight)

        def renamed(self, X, y):
            if other := [name for name in default.keys() - TAKEN if getattr(self, name) is not default[name]]:
                raise NotImplementedError(f"{ours.__name__} has no {other[0]}")
            self.__dict__.update(parameters(self, X))
            if "class_prior" in default:
                self.priors = self.class_prior if self.fit_prior else np.full(r := len(np.unique(y)), 1 / r)
            return self

        def __getattr__(self, name):
            if name not in READ_OFF or (name == "covariance_" and not self.store_covariance):
                raise AttributeError(name)
            return READ_OFF[name](self)

    Adapter.__name__, Adapter.by_feature = name, by_feature
    setattr(module, name, Adapter)


put_in(nb, "GaussianNB", rcpkg.GaussianNB, lambda m, X: {"rows_per_feature": 0.0})
put_in(da, "LinearDiscriminantAnalysis", rcpkg.LDA, lambda m, X: {"rows_per_feature": 0.0})
put_in(da, "QuadraticDiscriminantAnalysis", rcpkg.QDA, lambda m, X: {"singular_ridge": 0.0})
put_in(nb, "MultinomialNB", rcpkg.MultinomialNB, lambda m, X: {"prior_strength": m.alpha * np.shape(X)[1]})
put_in(nb, "BernoulliNB", rcpkg.BernoulliNB, lambda m, X: {"prior_strength": m.alpha * 2}, lambda m, c: c[:, 1::2])
put_in(nb, "CategoricalNB", StrictCategoricalNB, lambda m, X: {"prior_strength": m.alpha * (np.max(X, axis=0) + 1),
       "n_states": m.min_categories}, lambda m, c: np.split(c, np.cumsum(m.n_states_)[:-1], 1))
nb.ComplementNB = type("ComplementNB", (), {})  # which rcpkg has not
