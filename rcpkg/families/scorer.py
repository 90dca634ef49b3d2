"""A fitted model frozen to arrays, which scores one row in microseconds, here and in other languages."""

import json
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtrs

from rcpkg.base import Array, by_row, log_posterior
from rcpkg.families.blocks import Blocks, Distances
from rcpkg.families.cliques import Families
from rcpkg.families.missing_states import log_marginal
from rcpkg.linalg import correlations

FORMAT = "rcpkg-scorer/1"
LOG_2PI = np.log(2 * np.pi)


class Scorer:
    """p(y | x) of one row at a time, from the arrays of a fitted model: ``model.scorer()`` makes it.

    What a call of a model takes is the validation of its rows. A scorer leaves that to you: a row holds the features in
    the order of training, numbers, codes or names, None or NaN where they are missing. The posteriors are those of
    ``model.predict_proba`` to the last bit.

    Parameters
    ----------
    content : dict
        What `to_json` writes.

    Attributes
    ----------
    classes_ : list of r labels
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QDA().fit(X, y)
    >>> bool((model.scorer().predict_proba(X[70]) == model.predict_proba(X[70:71])[0]).all())
    True
    """

    classes_: list[Any]
    n_features_in_: int

    def __init__(self, content: dict[str, Any]) -> None:
        if content.get("format") != FORMAT:
            raise ValueError(f"content must have the format {FORMAT!r}; got {content.get('format')!r}")
        self.content = content
        self.classes_, self.n_features_in_ = content["classes"], content["n_features"]
        self._log_prior = _array(content["log_prior"])
        self._parts = [KINDS[part["kind"]](part) for part in content["parts"]]

    def predict_proba(self, row: ArrayLike) -> Array:
        """p(y | x), shape (r,), of one row of d features.

        Raises
        ------
        ValueError
            If the row has another number of features.
        """
        if len(row) != self.n_features_in_:
            raise ValueError(f"row must have {self.n_features_in_} features; got {len(row)}")
        joint = self._log_joint(row)
        largest = by_row(np.maximum, joint)
        if not largest[0, 0] > -np.inf:  # impossible under every class, or too far off to tell
            return np.exp(log_posterior(np.where(np.isnan(joint), -np.inf, joint), self._log_prior))[0]
        posterior = joint - largest  # as `log_posterior`, whose look for such rows takes a fifth of the time
        posterior -= np.log(by_row(np.add, np.exp(posterior)))
        return np.exp(posterior)[0]

    def _log_joint(self, row: ArrayLike) -> Array:
        """log p(x, y), shape (1, r); of several parts log p(y) + Σ_b [log p_b(x_b, y) − log p_b(y)]."""
        if not self.content["product"]:
            return self._parts[0].log_joint(row)
        joint = self._log_prior
        for part in self._parts:
            joint = joint + part.log_joint(row) - part.own
        return joint

    def to_json(self) -> str:
        """The arrays as JSON, whose numbers come back to the last bit; null is −∞."""
        return json.dumps(self.content, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The scorer that `to_json` has written."""
        return cls(json.loads(text))


class _Part:
    """Some columns, and a log joint density of them."""

    def __init__(self, part: dict[str, Any]) -> None:
        self.columns = part["columns"]
        self.log_prior = _array(part["log_prior"])
        self.own = np.where(np.isneginf(self.log_prior), 0.0, self.log_prior)

    def log_joint(self, row: ArrayLike) -> Array:
        """log p(x, y), shape (1, r), of the columns of a row."""
        raise NotImplementedError


class _Gaussian(_Part):
    """Gaussian classes; what a row does not change is computed once."""

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(part)
        mean, A = _array(part["mean"]), _array(part["whitener"])
        self.mean, self.covariance = mean, _array(part["covariance"])
        d = mean.shape[1]
        self.form = form = Blocks(part["shared"], part["independent"])
        self.every = self.columns == list(range(d))
        self.distances, self.ones = Distances(form, mean, A), np.ones(d)
        self.constant = self.log_prior + form.log_det(A) - 0.5 * d * LOG_2PI
        if form.independent:
            mean, precision = mean - self.distances.centre, np.atleast_2d(1 / self.covariance)
            self.by_feature = mean * mean * precision, 2 * (mean * precision), precision, -np.log(precision)
        else:
            self.correlation, self.scale = correlations(form.by_class(self.covariance))
            self.unit = np.eye(d)

    def log_joint(self, row: ArrayLike) -> Array:
        x = np.asarray(row, dtype=float)[None]
        x = x if self.every else x[:, self.columns]
        if (total := (x @ self.ones)[0]) == total:
            joint = self.distances(x)
            joint *= -0.5
            joint += self.constant
        else:
            missing = np.isnan(x)[0]
            squares, log_det = (self._by_feature if self.form.independent else self._marginals)(x, missing)
            n_seen = len(missing) - np.count_nonzero(missing)
            joint = self.log_prior - 0.5 * (squares + log_det + n_seen * LOG_2PI)
        return joint

    def _by_feature(self, x: Array, missing: Array) -> tuple[Array, Array]:
        """Of what the row has Σ_j (x_j − μ_yj)²/σ²_yj and Σ_j log σ²_yj, by the expressions of `IndependentRows`."""
        seen, x = 1.0 - missing[None], x - self.distances.centre
        np.putmask(x, missing, 0.0)
        offset, linear, square, log_square = self.by_feature
        return seen @ offset.T - x @ linear.T + (x * x) @ square.T, seen @ log_square.T

    def _marginals(self, x: Array, missing: Array) -> tuple[Array, Array]:
        """The same of full covariances, by the expressions of `GappyRows`."""
        seen, scale, d = ~missing, self.scale.copy(), len(missing)
        np.copyto(scale, 1.0, where=missing)
        factors = np.linalg.cholesky(np.where(seen[:, None] & seen, self.correlation, self.unit))
        pivots = factors.reshape(-1, d * d)[:, :: d + 1] * scale
        deviations = (x - self.mean) / self.scale
        np.copyto(deviations, 0.0, where=missing)
        for y in range(len(deviations)):
            dtrtrs(factors[y % len(factors)].T, deviations[y : y + 1].T, lower=0, trans=1, overwrite_b=1)
        return np.einsum("nd,nd->n", deviations, deviations)[None], 2 * np.add.reduce(np.log(pivots), axis=1)[None]


class _Table(_Part):
    """Features with states, by their codes or names; each may depend on others."""

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(part)
        log_prob = _array(part["log_prob"])
        self.places = [{value: k for k, value in enumerate(states)} for states in part["states"]]
        self.families = Families(part["parents"], np.array([len(states) for states in part["states"]]))
        self.families.lay_out()
        nowhere = np.isneginf(log_prob).all(axis=0)
        self.cells = np.ascontiguousarray(np.where(nowhere, 0.0, log_prob).T)
        self.tables = self.families.split(log_prob)
        sizes = self.families.n_states.tolist()
        self.layout = [
            (int(start), [(f, sizes[f]) for f in members])
            for start, members in zip(self.families.starts, self.families.members)
        ]

    def log_joint(self, row: ArrayLike) -> Array:
        values = row.tolist() if isinstance(row, np.ndarray) else row
        places = [known.get(values[c], -1) for c, known in zip(self.columns, self.places)]
        cells = []
        for start, members in self.layout:
            cell = 0
            for f, size in members:
                if places[f] < 0:
                    break
                cell = cell * size + places[f]
            else:
                cells.append(start + cell)
        joint = (np.add.reduce(self.cells[cells], axis=0) + self.log_prior)[None]
        if self.families.has_arcs and len(cells) < len(places):
            joint += log_marginal(self.families, np.array([places]), self.tables)
        return joint


class _Binary(_Part):
    """Features that are one where they exceed a threshold, by the expressions of `BinaryIndicators`."""

    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__(part)
        log_prob = _array(part["log_prob"])
        terms = np.where(np.isneginf(log_prob).all(axis=0), 0.0, log_prob).T
        impossible = np.isneginf(terms)
        self.threshold, self.terms = part["binarize"], [np.where(impossible, 0.0, terms)]
        self.terms += [impossible.astype(float)] if impossible.any() else []

    def log_joint(self, row: ArrayLike) -> Array:
        x = np.asarray(row, dtype=float)[self.columns]
        ones, missing = np.flatnonzero(x > self.threshold), np.flatnonzero(np.isnan(x))
        total, *impossible = [self._product(terms, ones, missing) for terms in self.terms]
        if impossible:
            total[impossible[0] > 0.5] = -np.inf
        return (total + self.log_prior)[None]

    def _product(self, terms: Array, ones: Array, missing: Array) -> Array:
        zero, one = terms[::2], terms[1::2]
        total = np.add.reduce(np.ascontiguousarray((one - zero)[ones]), axis=0) + zero.sum(axis=0)
        return total - np.add.reduce(np.ascontiguousarray(zero[missing]), axis=0) if len(missing) else total


KINDS: dict[str, type[_Part]] = {"gaussian": _Gaussian, "table": _Table, "binary": _Binary}


def frozen(model: Any) -> Scorer:
    """The scorer of a fitted model: labels, log p(y) and the parts of its family."""
    family, theta = model.family_, model._fitted_parameters()
    parts = [{name: _lists(value) for name, value in part.items()} for part in family.frozen(theta)]
    content = {"format": FORMAT, "classes": model.classes_.tolist(), "n_features": model.n_features_in_}
    names = getattr(model, "feature_names_in_", np.empty(0)).tolist()
    content |= {"features": names, "log_prior": _lists(theta.log_prior), "product": hasattr(family, "blocks")}
    return Scorer(content | {"parts": parts})


def _lists(value: Any) -> Any:
    """A value with arrays as nested lists, and with None for −∞."""
    if not isinstance(value, np.ndarray):
        return [_lists(item) for item in value] if isinstance(value, list) else value
    return (np.where(np.isneginf(value), None, value) if value.dtype.kind == "f" else value).tolist()


def _array(lists: Any) -> Array:
    """The inverse of `_lists`."""
    array = np.array(lists, dtype=float)  # None is NaN
    return np.where(np.isnan(array), -np.inf, array)
