"""Check what is passed to the ``fit`` of an estimator, and let a fit change all of it or nothing.

scikit-learn checks shapes and numbers. The checks here are our own where its message does not name
the column, the value or the call that a user needs.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from frhsic_core.inputs.columns import LARGEST, SMALLEST
from frhsic_core.inputs.rows import require_same_rows, warn_caller

Fit = TypeVar("Fit", bound=Callable[..., Any])
# Typical distances of S from its median: float32 then has a resolution of 1e5 · 6e-8 = .006 of one.
FARTHEST = 1e5


class MissingAttributeWarning(UserWarning):
    """λ is positive but there is no sensitive attribute: the model was trained without a penalty."""


class FitWarning(UserWarning):
    """The fit ended without an error, but the model is probably not what was wanted."""


def all_or_nothing(fit: Fit) -> Fit:
    """Let ``fit`` change an estimator only when it has come to its end.

    A copy is fitted. The estimator takes all attributes of the copy in one step that nothing can
    interrupt. Before this step it is what it was, and so it stays when the fit fails or is
    interrupted: the old model, or an estimator that is not fitted.

    Examples
    --------
    >>> class Mean:
    ...     @all_or_nothing
    ...     def fit(self, x):
    ...         self.mean_ = sum(x)
    ...         self.mean_ /= len(x)
    >>> model = Mean().fit([1.0, 3.0])
    >>> try:
    ...     model.fit([])
    ... except ZeroDivisionError:
    ...     print(model.mean_)
    2.0
    """

    @functools.wraps(fit)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        fitted = copy.copy(self)
        fit(fitted, *args, **options)
        self.__dict__ = fitted.__dict__
        return self

    return cast(Fit, whole)


def require_numbers(y: Any, *, name: str = "y") -> None:
    """Raise ``ValueError`` for a target with text or dates where numbers are needed."""
    values = np.asarray(y).ravel()
    if values.dtype.kind in "Mm":
        shown = f"dates (first: {values[0]})"
    elif values.dtype.kind in "OUS" and (text := _first_text(values)) is not None:
        shown = f"text (first: {str(text)!r})"
    else:
        return
    raise ValueError(
        f"{name} has {shown}, but numbers are needed: convert it first, or use a classifier if it "
        "has two classes."
    )


def _first_text(values: np.ndarray) -> str | bytes | None:
    for value in values:
        if isinstance(value, str | bytes):
            return value
    return None


def require_labels(y: np.ndarray) -> None:
    """Raise ``ValueError`` for missing labels among text, which scikit-learn does not look for."""
    if y.dtype == object and (missing := int(pd.isna(y).sum())):
        raise ValueError(f"y has {missing} missing values: drop those rows first.")


def two_classes(y: np.ndarray, *, advice: str) -> np.ndarray:
    """Return the classes of y, sorted; raise ``ValueError`` unless there are two.

    The ``advice`` is for a target of more classes.
    """
    require_labels(y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}. Join the "
            f"classes of y to two, or train one model for each class: {advice}."
        )
    classes = np.unique(y)
    if len(classes) < 2:
        only = next(iter(classes.tolist()), None)
        raise ValueError(
            f"y has one class only ({only!r}): a classifier needs samples of both classes."
        )
    return classes


def require_features(X: Any) -> None:
    """Raise ``ValueError`` for a table without columns."""
    shape = tuple(getattr(X, "shape", ()))
    if shape[1:] == (0,):
        raise ValueError(
            f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required: pass a table "
            "with columns."
        )


def require_aligned(X: Any, y: Any, s: Any, sample_weight: Any) -> None:
    """Raise ``ValueError`` for pandas objects whose row labels are in another order than those of X.

    Without labels in X they are compared with those of y.
    """
    others = {"y": y, "sensitive_features": s, "sample_weight": sample_weight}
    first, name = X, "X"
    if not hasattr(X, "iloc"):
        first, name = others.pop("y"), "y"
    for what, other in others.items():
        require_same_rows(first, other, names=(name, what))


def warn_of_attribute(X: Any, s: pd.DataFrame) -> None:
    """Warn if a column of X is one of the attributes, by its values."""
    if sparse.issparse(X):
        return
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    for name, attribute in s.items():
        values = attribute.to_numpy()
        for other, column in table.items():
            if _has_values(column, values):
                warn_caller(
                    f"column {other!r} of X is the sensitive attribute {name!r}: the model can use "
                    "it directly, and predictions need it of every person. Leave it out of X, "
                    "unless this is what you want.",
                    FitWarning,
                )
                return


def _has_values(column: pd.Series, values: np.ndarray) -> bool:
    """Return whether a column has exactly these values; the first one decides in most cases."""
    if column.isna().any() or column.iloc[0] != values[0]:
        return False
    return bool((column.to_numpy() == values).all())


def require_squares(x: np.ndarray) -> None:
    """Raise ``ValueError`` for a column of features whose squares are zero or infinite."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    for place, value in enumerate(largest):
        if 0.0 < value < SMALLEST or value > LARGEST:
            raise ValueError(
                f"column {place} of X has values up to {value:.3g}, whose squares are no numbers: "
                "choose another unit."
            )


def require_resolution(s: np.ndarray, name: str, *, more: str = "") -> None:
    """Raise ``ValueError`` if one value is so far away that the other differences are rounded away."""
    middle = np.median(s)
    distance = np.abs(s - middle)
    if distance.max() > FARTHEST * np.median(distance[distance > 0]):
        raise ValueError(
            f"sensitive_features has the value {s[distance.argmax()]:.6g} (column {name}), more "
            f"than {FARTHEST:,.0f} times as far from the median {middle:.6g} as the other values "
            "typically are: their differences would be rounded away. If it is a code for missing "
            "values, drop these rows. Otherwise pass the logarithm or the ranks of the attribute."
            f"{more}"
        )
