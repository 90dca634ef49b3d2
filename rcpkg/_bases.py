"""The classes of scikit-learn from which estimators inherit.

scikit-learn has no types. To mypy a class below one without types takes any keyword, so that a misspelt parameter goes
unnoticed: it is shown bases of which everything is unknown but the constructor. Other checkers read scikit-learn's.
"""

from typing import Any

MYPY = False
if MYPY:

    class BaseEstimator:
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin: ...

    class ClassNamePrefixFeaturesOutMixin: ...

    class ClusterMixin: ...

    class MetaEstimatorMixin: ...

    class OneToOneFeatureMixin: ...

    class TransformerMixin: ...

    class _BaseComposition(BaseEstimator): ...

else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
    from sklearn.base import ClusterMixin as ClusterMixin
    from sklearn.base import MetaEstimatorMixin as MetaEstimatorMixin
    from sklearn.base import OneToOneFeatureMixin as OneToOneFeatureMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.utils.metaestimators import _BaseComposition as _BaseComposition
