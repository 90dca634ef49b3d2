"""Export of a Bayesian network classifier in the Bayesian Interchange Format, which other programs read."""

import re
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rcpkg.base import Array
from rcpkg.families.networks import NetworkClassifier

__all__ = ["to_bif"]

RESERVED = {"default", "discrete", "network", "probability", "property", "table", "type", "variable"}


def _words(names: Iterable[Any]) -> list[str]:
    """Words of letters, digits and underscores, no two alike, in the place of names."""
    words: list[str] = []
    for name in names:
        word = re.sub(r"[^A-Za-z0-9_]", "_", str(name))
        word = stem = word if re.match(r"[A-Za-z]", word) and word.lower() not in RESERVED else f"v{word}"
        number = 2
        while word in words:
            word, number = f"{stem}_{number}", number + 1
        words.append(word)
    return words


def _declared(word: str, name: object, states: list[str], values: Iterable[Any]) -> str:
    """A variable, its name and the values that its states stand for."""
    lines = [f"// {str(name)!r}", *(f"//   {state} = {str(value)!r}" for state, value in zip(states, values))]
    lines += [f"variable {word} {{", f"  type discrete [ {len(states)} ] {{ {', '.join(states)} }};", "}"]
    return "\n".join(lines)


def _distribution(j: int, parents: list[int], table: Array, words: list[str], states: list[list[str]]) -> str:
    """The probabilities of a variable for all states of its parents, with all their digits."""
    names = ", ".join(words[f] for f in parents)
    lines = [f"probability ( {words[j]}{' | ' if parents else ''}{names} ) {{"]
    for given, p in zip(product(*(states[f] for f in parents)), table.reshape(-1, table.shape[-1])):
        head = f"({', '.join(given)})" if parents else "table"
        lines.append(f"  {head} {', '.join(repr(float(value)) for value in p)};")
    return "\n".join([*lines, "}"])


def to_bif(model: NetworkClassifier, class_name: str = "class") -> str:
    """p(y) and p(x_j | x_pa(j), y) of all features, as text in the Bayesian Interchange Format.

    Parameters
    ----------
    model : fitted TAN or KDependenceBayes
        Of a calibrated network its ``estimator_``.
    class_name : str
        Name of the class among the features.

    Returns
    -------
    str
        Version 0.15 of the format: the class, then the features, in the order of the model. A name keeps its letters,
        digits and underscores, any other character becomes an underscore; one that begins with no letter, or is a word
        of the format, gets a v in front, one that is taken a number behind. A comment on each variable tells them.

    Raises
    ------
    TypeError
        If the model is no Bayesian network.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from rcpkg import KDependenceBayes
    >>> rows = [["dry", "a b"], ["dry", "c"], ["wet", "c"]]
    >>> model = KDependenceBayes(structure=[[], [0]], prior_strength=2.0).fit(rows, ["no", "no", "yes"])
    >>> print(to_bif(model).partition("probability ( x1 | class, x0 )")[2].strip())
    {
      (no, dry) 0.5, 0.5;
      (no, wet) 0.5, 0.5;
      (yes, dry) 0.5, 0.5;
      (yes, wet) 0.3333333333333333, 0.6666666666666666;
    }
    """
    if not isinstance(model, NetworkClassifier):
        raise TypeError(f"model must be a TAN or a KDependenceBayes; got {type(model).__name__}")
    check_is_fitted(model)
    names = [class_name, *getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(model.n_states_))])]
    values = [model.classes_, *model.categories_]
    words, states = _words(names), [_words(pa) for pa in values]
    parameters = model.parameters_
    tables = [np.exp(parameters.log_prior), *model.family_.families_.split(np.exp(parameters.log_prob))]
    parents = [[], *([0, *(1 + f for f in pa)] for pa in model.parents_)]
    lines = ["network unknown {", "}", *map(_declared, words, names, states, values)]
    lines += [_distribution(j, pa, table, words, states) for j, (pa, table) in enumerate(zip(parents, tables))]
    return "\n".join(lines) + "\n"
