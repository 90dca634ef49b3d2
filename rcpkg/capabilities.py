"""What a family can do follows from the methods that it gives; what it lacks is told in one sentence."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

MARGINALS = "the joint model of rows with gaps"
#: What is asked of a family -> the methods that it takes, beside those of every closed-form classifier
NEEDS = {
    "sampling": ("draw",),
    MARGINALS: ("expected_rows",),
    "a scorer": ("frozen",),
    "a safe step": ("safe_update",),
    "convergence": ("natural_parameters", "safe_update"),
    "distances of joint models": ("natural_parameters", "mean_parameters"),
    "target_weight > 0": ("natural_parameters", "mean_parameters", "log_partition", "safe_update", "without_prior"),
    "target='pooled'": ("pooled_parameters",),
    "target='grand'": ("grand_parameters",),
    "target='nested'": ("nested_parameters",),
    "ConditionalLikelihood": ("natural_parameters", "from_natural", "mean_parameters", "log_partition", "scores"),
    "Newton's method": ("feature_map", "from_natural", "mean_parameters", "log_partition"),
    "l2": ("feature_map",),
    "calibration_test": ("feature_map", "from_natural", "mean_parameters", "log_partition", "without_prior", "redraw"),
    "ProductModel": ("natural_parameters", "from_natural", "mean_parameters", "class_log_partition"),
}
#: What a family has of itself once it gives others
FOLLOWS = {
    "log_partition": ("class_log_partition",),
    "scores": ("features", "moments"),
    "feature_map": ("features", "moments"),
}


class Unsupported(ValueError, NotImplementedError):
    """A family is asked for what it does not give."""


class given_if:
    """Decorator of a method that is there where ``check(model)`` raises no ValueError, whose sentence is that of the
    AttributeError otherwise; `available_if` of scikit-learn keeps it to itself."""

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        self.method = method
        return update_wrapper(self, method)

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self.method
        try:
            self.check(model)
        except ValueError as error:
            name = f"{type(model).__name__!r} object has no attribute {self.method.__name__!r}"
            raise AttributeError(f"{name}: {error}") from error
        return MethodType(self.method, model)


def _asked(model: Any) -> Any:
    """The family of a classifier, which knows the training rows if it is fitted; a family itself."""
    known = getattr(model, "family_", None)
    return known if known is not None else model._new_family() if hasattr(model, "_new_family") else model


def can(model: Any, capability: str) -> bool:
    """Whether ``model``, a family or a classifier that has one, gives what a ``capability`` of `NEEDS` takes.

    >>> from rcpkg import QDA, MultinomialNB
    >>> can(QDA(), "sampling"), can(QDA(), "target='nested'"), can(MultinomialNB(), "target='nested'")
    (True, False, False)
    """
    return gives(*NEEDS[capability])(_asked(model))


def require(model: Any, capability: str) -> None:
    """Say by `Unsupported` what ``model``, a family or a classifier that has one, lacks for a ``capability``.

    >>> from rcpkg import MultinomialNB
    >>> require(MultinomialNB(), "target='nested'")
    Traceback (most recent call last):
        ...
    rcpkg.capabilities.Unsupported: target='nested' needs nested_parameters, which MultinomialFamily ...
    """
    family = _asked(model)
    missing = [method for method in NEEDS[capability] if not hasattr(family, method)]
    if missing:
        raise Unsupported(
            f"{capability} needs {' and '.join(missing)}, which {type(family).__name__} does not give: see 'A model of "
            "your own' in the reference"
        )


def gives(*methods: str) -> Callable[[Any], bool]:
    """For `available_if`: whether a family gives these methods, from which another follows."""
    return lambda model: all(hasattr(model, method) for method in methods)
