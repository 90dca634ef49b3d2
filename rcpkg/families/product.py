"""Conditionally independent blocks of features, each with a model of its own."""

import sys
from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import field
from functools import partial
from itertools import repeat
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils._indexing import _get_column_indices

from rcpkg._bases import _BaseComposition
from rcpkg.base import Array, constructed
from rcpkg.capabilities import MARGINALS, can
from rcpkg.checks import feature_name, refuse_labels
from rcpkg.columns import in_columns
from rcpkg.families.classifier import ClosedFormClassifier
from rcpkg.families.family import Family, PriorSettings, if_all_have
from rcpkg.families.features import ProductFeatures
from rcpkg.families.named_categories import NamedCategories
from rcpkg.families.portions import chosen, part_of
from rcpkg.families.statistics import Statistics, class_counts
from rcpkg.rows import Rows


class ProductParameters(NamedTuple):
    """Class log probabilities (r,), and the parameters of each block.

    >>> from rcpkg import LDA, CategoricalNB, ProductModel
    >>> model = ProductModel([("kind", CategoricalNB(), [0]), ("size", LDA(), [1])])
    >>> theta = model.fit([[0, 1.0], [1, 2.0], [1, 5.0], [0, 9.0]], [0, 0, 1, 1]).parameters_
    >>> np.exp(theta.log_prior), len(theta.blocks)
    (array([0.5, 0.5]), 2)
    """

    log_prior: Array
    blocks: tuple


def _column_numbers(chosen: Any, d: int, names: NDArray | None) -> NDArray[np.intp]:
    """Numbers of the columns, of d, that integers, a slice, a mask or names choose, as in `ColumnTransformer`."""
    X = np.empty((0, d)) if names is None else pd.DataFrame(columns=names)
    try:
        if isinstance(chosen, pd.Series) and chosen.dtype == bool:
            refuse_labels("a mask of columns", chosen, SimpleNamespace(feature_names_in_=getattr(X, "columns", ())))
        if isinstance(chosen, Collection) and not isinstance(chosen, str | np.ndarray):
            chosen = list(chosen)  # of polars, say
        every = isinstance(chosen, slice) and chosen == slice(None)  # which is taken for a slice of names
        columns = _get_column_indices(X, slice(0, None) if every else chosen)
        if np.ndim(columns) > 1:
            raise ValueError("they have more than one axis")
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(
            "blocks must choose columns of X by integers, a mask, a slice or a callable, or names of a DataFrame, "
            f"which a transformer makes after set_output(transform='pandas'); {chosen!r} does not: {error}"
        ) from error
    return np.atleast_1d(np.asarray(columns, dtype=np.intp))


@constructed
class ProductSettings(PriorSettings):
    """Settings of a product: its blocks have their own."""

    class_prior_strength: float = 0.0
    prior_strength: float = field(init=False, default=0.0)


@constructed
class ProductFamily(ProductSettings, Family):
    """Families of conditionally independent ``blocks`` of features, by name, and the numbers of their ``columns_``."""

    blocks: dict[str, Family]

    columns_: ClassVar[list[NDArray[np.intp]]]

    @property
    def families(self) -> list[Family]:
        return list(self.blocks.values())

    def describe(self, **rows: Any) -> Self:
        """Each block knows of the rows what concerns its columns; what is known to other products stays as it is."""
        super().describe(**rows)
        if hasattr(self, "columns_"):
            known = map(self._description, self.columns_)
            self.blocks = {name: copy(part).describe(**rows) for (name, part), rows in zip(self.blocks.items(), known)}
        return self

    def _description(self, columns: NDArray[np.intp]) -> dict[str, Any]:
        """What the product knows of the rows, for some of the columns."""
        known = {"names": {k: self.names[j] for k, j in enumerate(columns) if j in self.names}}
        if hasattr(self, "classes_"):
            known["classes_"] = self.classes_
        if hasattr(self, "_columns"):
            known["_columns"] = [self._columns[j] for j in columns]
        names = getattr(self, "feature_names_in_", None)  # of an array the numbers of its columns
        return known | {"feature_names_in_": columns.astype(object) if names is None else names[columns]}

    def _each(self, method: str, *arguments: Iterable) -> list[Any]:
        """What a method of each block gives for its part of each argument."""
        return [getattr(part, method)(*of_block) for part, *of_block in zip(self.families, *arguments)]

    def _statistics(self, method: str, *arguments: Iterable) -> Statistics:
        """The same as statistics, by the names of the blocks."""
        return Statistics(**dict(zip(self.blocks, self._each(method, *arguments))))

    def _parts(self, X: Array | tuple) -> tuple:
        """The columns of each block; encoded rows are divided already."""
        return X if isinstance(X, tuple) else tuple(X[:, columns] for columns in self.columns_)

    def _filled(self, rows: NDArray, parts: Iterable[NDArray]) -> NDArray:
        """The ``rows`` with the parts of the blocks in their columns."""
        for columns, part in zip(self.columns_, parts):
            rows[:, columns] = part
        return rows

    @property
    def unseen(self) -> NDArray[np.intp]:
        return np.sort(np.concatenate([columns[part.unseen] for part, columns in zip(self.families, self.columns_)]))

    @property
    def learns_structure(self) -> bool:  # type: ignore[override]
        return any(part.learns_structure for part in self.families)

    def learn_structure(self, rows: Rows) -> None:
        for part, columns in zip(self.families, self.columns_):
            if part.learns_structure or hasattr(part, "structure"):
                part.learn_structure(rows.map(partial(chosen, columns)))

    def prepare(self, X: Array) -> None:
        super().prepare(X)
        self._each("prepare", self._parts(X))

    def representatives(self, X: Array) -> Array:
        """Representatives of the blocks side by side; a block with fewer rows than another repeats them."""
        parts = self._each("representatives", self._parts(X))
        n = max(map(len, parts))
        return self._filled(np.tile(X[:1], (n, 1)), [part[np.arange(n) % len(part)] for part in parts])

    def encode(self, X: Array) -> tuple:
        return tuple(self._each("encode", self._parts(X)))

    def encode_new(self, X: Array) -> tuple:
        return tuple(self._each("encode_new", self._parts(X)))

    def check_complete(self, X: tuple) -> None:
        self._each("check_complete", X)

    def check_full(self, X: tuple) -> None:
        self._each("check_full", X)

    def statistics(self, X: Array | tuple, weights: Array) -> Statistics:
        return self._statistics("statistics", self._parts(X), repeat(weights))

    def expected_statistics(self, X: Array | tuple, weights: Array, parameters: ProductParameters) -> Statistics:
        return self._statistics("expected_statistics", self._parts(X), repeat(weights), parameters.blocks)

    def extend_statistics(self, X: Array, statistics: Statistics) -> Statistics:
        return self._statistics("extend_statistics", self._parts(X), statistics)

    def raw_statistics(self, rows: Rows) -> Statistics:
        return self._statistics("raw_statistics", [rows.map(partial(chosen, columns)) for columns in self.columns_])

    def closed_form_statistics(self, rows: Rows) -> Statistics:
        places = range(len(self.blocks))
        return self._statistics("closed_form_statistics", [rows.map(partial(part_of, k)) for k in places])

    def fix_prior(self, statistics: Statistics, n_rows: int) -> None:
        self._each("fix_prior", statistics, repeat(n_rows))

    def parameters(self, statistics: Statistics) -> ProductParameters:
        """The parameters of each block, and the class distribution from the counts that all blocks share."""
        log_prior = self.class_log_prior(class_counts(statistics))
        return ProductParameters(log_prior, tuple(self._each("parameters", statistics)))

    def log_joint(self, X: Array | tuple, parameters: ProductParameters) -> Array:
        """log p(y) + Σ_b [log p_b(x_b, y) − log p_b(y)]."""
        joint = parameters.log_prior
        for of_block, block in zip(self._each("log_joint", self._parts(X), parameters.blocks), parameters.blocks):
            joint = joint + of_block - np.where(np.isneginf(block.log_prior), 0.0, block.log_prior)
        return joint

    @if_all_have
    def natural_parameters(self, parameters: ProductParameters) -> Statistics:
        """The η of each block; the class term log p(y) once, in the first block."""
        terms = [parameters.log_prior, *[np.zeros_like(parameters.log_prior)] * (len(self.blocks) - 1)]
        blocks = [block._replace(log_prior=term) for block, term in zip(parameters.blocks, terms)]
        return self._statistics("natural_parameters", blocks)

    @if_all_have
    def from_natural(self, natural: Statistics) -> ProductParameters:
        """Parameters of each block; the class distribution is the normalised product of those of the blocks."""
        blocks = tuple(self._each("from_natural", natural))
        log_prior = np.sum([block.log_prior for block in blocks], axis=0)
        return ProductParameters(log_prior - logsumexp(log_prior), blocks)

    @if_all_have
    def mean_parameters(self, parameters: ProductParameters) -> Statistics:
        """The μ of each block, with the class distribution of the product."""
        blocks = [block._replace(log_prior=parameters.log_prior) for block in parameters.blocks]
        return self._statistics("mean_parameters", blocks)

    @if_all_have
    def class_log_partition(self, natural: Statistics) -> Array:
        return np.sum(self._each("class_log_partition", natural), axis=0)

    @if_all_have
    def scores(self, X: Array | tuple, natural: Statistics) -> Array:
        return np.sum(self._each("scores", self._parts(X), natural), axis=0)

    @if_all_have
    def safe_update(self, old: Statistics, change: Statistics) -> Statistics:
        return self._statistics("safe_update", old, change)

    def precondition(self, old: Statistics, expected: Statistics, change: Statistics) -> Statistics:
        return self._statistics("precondition", old, expected, change)

    @if_all_have
    def pooled_parameters(self, statistics: Statistics) -> tuple[ProductParameters, float]:
        """Observed class weights and the pooled blocks, with the pseudo-rows of the block that needs most."""
        blocks, sizes = zip(*self._each("pooled_parameters", statistics))
        return ProductParameters(self.class_log_prior(class_counts(statistics)), blocks), max(sizes)

    @if_all_have
    def grand_parameters(self, statistics: Statistics) -> tuple[ProductParameters, float]:
        """Equal class weights and the grand blocks, with the pseudo-rows of the block that needs most."""
        blocks, sizes = zip(*self._each("grand_parameters", statistics))
        return ProductParameters(blocks[0].log_prior, blocks), max(sizes)

    @if_all_have
    def feature_map(
        self,
        X: tuple,
        kind: str = "minimal",
        statistics: Statistics | None = None,
        pooled: ProductParameters | None = None,
    ) -> ProductFeatures:
        parameters = repeat(None) if pooled is None else pooled.blocks
        maps = self._each("feature_map", X, repeat(kind), statistics or repeat(None), parameters)
        return ProductFeatures(maps, list(self.blocks))

    @if_all_have
    def redraw(self, X: Array, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        return self._filled(X.copy(), self._each("redraw", self._parts(X), repeat(y), repeat(rng)))

    @if_all_have
    def draw(self, parameters: ProductParameters, y: NDArray[np.intp], rng: np.random.RandomState) -> Array:
        unused = np.setdiff1d(np.arange(self.n_features_in_), np.concatenate(self.columns_))
        if unused.size:
            raise ValueError(f"columns {unused.tolist()} belong to no block, so that rows cannot be sampled")
        X = np.empty((len(y), self.n_features_in_), dtype=object if self.names else float)
        return self._filled(X, self._each("draw", parameters.blocks, repeat(y), repeat(rng)))

    @if_all_have
    def expected_rows(self, X: Array, weights: Array, parameters: ProductParameters) -> dict[str, Any]:
        return dict(zip(self.blocks, self._each("expected_rows", self._parts(X), repeat(weights), parameters.blocks)))

    def dependence(self, X: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Within blocks; columns of no block say nothing."""
        joined, silent = np.zeros((X.shape[1], X.shape[1]), dtype=bool), np.ones(X.shape, dtype=bool)
        for columns, of_block in zip(self.columns_, self._each("dependence", self._parts(X))):
            joined[np.ix_(columns, columns)], silent[:, columns] = of_block
        return joined, silent

    @if_all_have
    def frozen(self, parameters: ProductParameters) -> list[dict[str, Any]]:
        blocks = zip(self.columns_, self._each("frozen", parameters.blocks))
        return [part | {"columns": columns[part["columns"]]} for columns, parts in blocks for part in parts]

    def log_base(self, X: Array) -> Array | float:
        return sum(self._each("log_base", self._parts(X)))

    @property
    def has_prior(self) -> bool:
        return super().has_prior or any(part.has_prior for part in self.families)

    def without_prior(self) -> Self:
        product = super().without_prior()
        product.blocks = dict(zip(self.blocks, self._each("without_prior")))
        return product

    def same_form(self, other: object) -> bool:
        return (
            super().same_form(other)
            and list(self.blocks) == list(other.blocks)
            and all(map(np.array_equal, self.columns_, other.columns_))
            and all(self._each("same_form", other.families))
        )


class ProductModel(ProductSettings, NamedCategories, _BaseComposition, family=ProductFamily):
    """Conditionally independent blocks of features: p(x, y) = p(y) ∏_b p_b(x_b | y).

    Statistics, parameters, η and μ are those of the blocks; the class distribution is its own. Parameters of a block
    are reached by its name: ``set_params(size__prior_strength=1.0)``.

    Parameters
    ----------
    blocks : list of (name, model, columns)
        The model is one of this page's, not a product. Columns are as in `ColumnTransformer`: integers, a slice, a
        boolean mask, or a callable that is given X and returns one of these; where X is a DataFrame, also names and
        slices of names, whose ends are both included. Meta-estimators that pass arrays on, such as
        `OneVsOneClassifier`, need integers. X is dense, whatever the blocks take. Text goes to blocks of
        `CategoricalNB`, missing values to blocks whose models take them.
    class_prior_strength : float, default=0.0
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; 0 is maximum likelihood.
    priors, cost
        As in `QDA`.

    Attributes
    ----------
    statistics_ : Statistics
        Those of each block, by its name.
    parameters_ : ProductParameters
        log_prior (r,) and blocks, a tuple; None while the rows of ``partial_fit`` do not suffice.
    family_ : ProductFamily
        Its ``blocks`` are the families of the blocks, by their names, which know numbers of states and origins.
    columns_ : list of arrays of int
        Columns of each block.
    classes_, class_log_prior_
        As in `QDA`.

    References
    ----------
    None of the sources: the factorisation is that of naive Bayes (rc2025 §3.1), with blocks in the place of features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rcpkg import QDA, CategoricalNB, ProductModel
    >>> X, y = load_iris(return_X_y=True)
    >>> X[:, 3] = X[:, 3] > 1.5  # a category and three measurements
    >>> blocks = [("wide", CategoricalNB(), [3]), ("size", QDA(), slice(0, 3))]
    >>> model = ProductModel(blocks).fit(X, y)
    >>> model.predict_proba(X[[70, 106]]).round(2)
    array([[0.  , 0.07, 0.93],
           [0.  , 0.01, 0.99]])
    """

    blocks: list[tuple[str, ClosedFormClassifier, Any]] = field(kw_only=False)

    columns_: ClassVar[list[NDArray[np.intp]]]

    @property
    def _named_models(self) -> list[tuple[str, ClosedFormClassifier]]:
        try:
            return [(name, model) for name, model, _ in self.blocks]
        except (TypeError, ValueError):  # blocks of another form, which fit refuses
            return []

    @_named_models.setter
    def _named_models(self, pairs: list[tuple[str, ClosedFormClassifier]]) -> None:
        self.blocks = [(*pair, columns) for pair, (_, _, columns) in zip(pairs, self.blocks)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with the blocks and theirs by name if ``deep``."""
        return self._get_params("_named_models", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name`` replaces the model of a block, ``name__parameter`` sets one of its parameters."""
        return self._set_params("_named_models", **params)

    def _settings(self) -> dict[str, Any]:
        return {"class_prior_strength": self.class_prior_strength, "priors": self.priors}

    def _new_family(self) -> ProductFamily:
        """The families of the blocks."""
        columns = getattr(self, "columns_", [...] * len(self._named_models))  # a block without columns is left out
        known = [
            (name, model)
            for (name, model), of_block in zip(self._named_models, columns)
            if isinstance(model, ClosedFormClassifier) and np.size(of_block)
        ]
        return ProductFamily(blocks={name: model._new_family() for name, model in known}, **self._settings())

    def _with_family(self, family: Family, statistics: Statistics, parameters: Any = None) -> Self:
        """This classifier with another family, whose settings its blocks take."""
        model = super()._with_family(family, statistics, parameters)
        model._named_models = [
            (name, clone(block).set_params(**{key: getattr(family.blocks[name], key) for key in block._settings()}))
            if name in family.blocks
            else (name, block)
            for name, block in self._named_models
        ]
        return model

    def _description(self) -> dict[str, Any]:
        used = [columns for columns in getattr(self, "columns_", ()) if len(columns)]
        return super()._description() | ({"columns_": used} if hasattr(self, "columns_") else {})

    def _prepare(self, X: Array) -> None:
        names = [name for name, _, _ in self._checked_blocks()]
        Statistics(**dict.fromkeys(names, 0.0))  # refuses names that a part cannot have
        if not hasattr(self, "columns_"):
            self._choose_columns(X, X.shape[1])
        used = np.concatenate(self.columns_)
        if not len(used):
            raise ValueError("blocks choose no column of X: none of them has one")
        if len(np.unique(used)) < len(used):
            raise ValueError("blocks must not share columns; conditionally independent blocks have none in common")
        for name, model, _ in self.blocks:
            known = isinstance(model, ClosedFormClassifier) and not isinstance(model, ProductModel)
            if not known or not can(model, "ProductModel"):
                raise ValueError(
                    f"block {name!r} must be one of the models of rcpkg.families, not a product or a pipeline (scale "
                    f"columns before the product), and of networks a decomposable one; got {model!r}"
                )
        self._check_values(X)
        super()._prepare(X)

    def _extend(self, X: Array) -> None:
        self._check_values(X)
        super()._extend(X)

    def _check_values(self, X: Array, predicting: bool = False) -> None:
        """Refuse text and missing values in blocks whose models do not take them."""
        for (name, model, _), columns in zip(self.blocks, self.columns_):
            text = [j for j in columns if j in self._names]
            if text and not model.__sklearn_tags__().input_tags.string:
                raise ValueError(
                    f"{feature_name(self, text[0])} of block {name!r} holds text, and {type(model).__name__} takes "
                    "numbers only"
                )
            missing = columns[np.isnan(X[:, columns]).any(axis=0)]
            sums_out = predicting and can(model, MARGINALS)
            if missing.size and not sums_out and not model.__sklearn_tags__().input_tags.allow_nan:
                raise ValueError(
                    f"{feature_name(self, missing[0])} of block {name!r} contains NaN, which {type(model).__name__} "
                    "does not accept: impute it, or leave such rows out"
                )

    def statistics(self, X: Array | tuple, weights: Array) -> Statistics:
        if not hasattr(self, "family_"):
            self._prepare(X)
        return super().statistics(X, weights)

    def _check_X(self, X: ArrayLike) -> Array:
        X = super()._check_X(X)
        self._check_values(X, predicting=True)
        return X

    def _check_rows(self, X: ArrayLike, y: ArrayLike, reset: bool = True) -> tuple[Array, NDArray]:
        """Validated X and y; callables choose their columns from X as it is given."""
        checked = super()._check_rows(X, y, reset)
        if reset:
            self._choose_columns(X if isinstance(X, pd.DataFrame) else in_columns(X), self.n_features_in_)
        return checked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        models = [model for _, model in self._named_models if isinstance(model, ClosedFormClassifier)]
        of_blocks = [model.__sklearn_tags__().input_tags for model in models]
        tags.input_tags.categorical = bool(of_blocks) and all(block.categorical for block in of_blocks)
        tags.input_tags.positive_only = any(block.positive_only for block in of_blocks)
        tags.input_tags.string = any(block.string for block in of_blocks)
        tags.input_tags.allow_nan = any(block.allow_nan for block in of_blocks)
        return tags

    def _choose_columns(self, X: Any, d: int) -> None:
        selector = getattr(sys.modules.get("sklearn.compose"), "make_column_selector", ())

        def chosen(choice: Any) -> Any:
            if not callable(choice):
                return choice
            found = choice(X)
            return X.columns.get_indexer_for(found) if isinstance(choice, selector) else found  # names may be integers

        names = getattr(self, "feature_names_in_", None)
        self.columns_ = [_column_numbers(chosen(choice), d, names) for _, _, choice in self._checked_blocks()]

    def _checked_blocks(self) -> list[tuple[str, ClosedFormClassifier, Any]]:
        names = [name for name, _ in self._named_models]
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"blocks must be a non-empty list of (name, model, columns); got {self.blocks!r}")
        self._validate_names(names)
        return self.blocks
