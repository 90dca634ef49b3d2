"""Generative classifiers, trained to classify: scikit-learn's interface, a joint model p(x, y) inside.

Start here
----------
A raw table, its columns numbers and categories, values missing or not::

    from rcpkg import TableClassifier, compare
    model = TableClassifier().fit(X, y)   # chooses a model by cross-validation: model.report_, model.advice_
    print(compare(X, y))                  # beside logistic regression and boosting: use it, tie, or take another

==========================================  ====================================================================
kind of table                               model
==========================================  ====================================================================
any, no time to choose                      TableClassifier()
numbers                                     RiskCalibrationCV(QDA()); LDA() for few rows, GaussianNB() for many features
categories                                  RiskCalibrationCV(CategoricalNB(prior_strength=1.0)); TAN() if they depend
numbers and categories                      RiskCalibrationCV(ProductModel([(name, model, columns), …]))
counts of words, sparse rows                RiskCalibrationCV(MultinomialNB(prior_strength=1.0))
clouds of several clumps a class            Mixture(QDA())
few rows, numbers                           BDA7(), LDA(), RDA()
boundaries that bend from place to place    LocalBDA(n_neighbors="cv")
more rows than memory holds                 RiskCalibration(model).fit(Rows.from_parquet(file, label=column))
a stream                                    model.partial_fit, of a closed form or of RiskCalibration
==========================================  ====================================================================

Rows to predict may have missing values: each joint model sums them out. `class_prior_of` estimates new class weights,
`explain.contributions` gives reasons, `calibration_test` tells whether calibration has anything to gain.

Docstrings name their sources: rc2024 and rc2025 are Pérez, Echegoyen and Santafé (2024, 2025), thesis2007 is the
dissertation of Srivastava (2007), wanbia2014 is Zaidi, Carman, Cerquides and Webb (2014).
"""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
_MODULES = {alias.name: node.module for node in _STUB if isinstance(node, ast.ImportFrom) for alias in node.names}
__all__ = next(ast.literal_eval(node.value) for node in _STUB if isinstance(node, ast.Assign))


def __getattr__(name: str) -> Any:
    """A public name or a module of the package, imported when it is first used: `import rcpkg` imports nothing else."""
    if _MODULES.get(name, __name__) != __name__:
        value = getattr(import_module(_MODULES[name]), name)
    elif find_spec(f"{__name__}.{name}"):
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
