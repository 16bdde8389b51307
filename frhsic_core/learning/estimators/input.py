"""Reading and checking the parameters of an estimator and the data that are passed to its ``fit``.

scikit-learn checks shapes and numbers. The checks here are our own where its message does not name
the column, the value or the call that a user needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import _check_sample_weight, validate_data

from frhsic_core._arrays import ArrayLike
from frhsic_core.inputs.columns import far_codes, read_sample
from frhsic_core.inputs.features import coded, columns_of, has_categories
from frhsic_core.inputs.fitting import (
    FitWarning,
    require_aligned,
    require_features,
    require_labels,
    require_numbers,
    require_resolution,
    warn_of_attribute,
)
from frhsic_core.inputs.rows import require_same_rows, warn_caller
from frhsic_core.inputs.tables import as_table
from frhsic_core.joint.given import read_given
from frhsic_core.learning.penalties import make_penalty
from frhsic_core.learning.rules import LambdaSelection, require_lambdas
from frhsic_core.learning.trainer import resolve_device

DTYPES = {"float32": torch.float32, "float64": torch.float64}
STEPS = 600  # steps of epochs="auto" at the default learning rate
FEWER_STEPS = 400  # the same for fewer than MANY_ROWS samples, which more steps would overfit
MANY_ROWS = 4000
FEWEST_EPOCHS = 8  # and at least this many epochs
LEARNING_RATE = 5e-3  # the default; a smaller one makes as many more steps


# Data ---------------------------------------------------------------------------------------------


class FitInput(NamedTuple):
    """The checked input of ``fit``."""

    # (n, d), float64, NaN where missing; a DataFrame if a column is a category.
    X: np.ndarray | pd.DataFrame
    y: np.ndarray  # (n,), numbers or labels as given
    s: np.ndarray | None  # (n, p), float64
    weights: np.ndarray | None  # (n,), float64
    # (n, q + 1), float64: normal scores, then the code of the group.
    control: np.ndarray | None = None
    categorical: tuple[int, ...] = ()  # columns of s that are codes of categories

    def without_zero_weights(self) -> FitInput:
        """Return the samples of positive weight: the others must not even change the scaling."""
        if self.weights is None:
            return self
        kept = self.weights > 0
        return self._replace(
            X=self.X[kept],
            y=self.y[kept],
            s=None if self.s is None else self.s[kept],
            weights=self.weights[kept],
            control=None if self.control is None else self.control[kept],
        )


def read_fit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    s: Any,
    sample_weight: Any,
    control: Any = None,
    checks: Mapping[str, Any],
) -> FitInput:
    """Check the parameters of an estimator and everything that is passed to its ``fit``.

    ``checks`` are options of :func:`sklearn.utils.validation.validate_data`.
    """
    check_parameters(estimator)
    require_aligned(X, y, s, sample_weight)
    if checks.get("y_numeric"):
        require_numbers(y)
    values, target = _read_data(estimator, X, y, checks)
    require_labels(target)
    attribute: np.ndarray | None = None
    categorical: tuple[int, ...] = ()
    if s is not None:
        named = _by_name(s, X, len(values))
        attribute, categorical = _read_attribute(named, len(values))
        if named is s:  # whoever names a column of X knows that it is there
            warn_of_attribute(X, as_table(s, argument="sensitive_features", default="sensitive"))
    weights: np.ndarray | None = None
    if sample_weight is not None:
        weights = _check_sample_weight(
            sample_weight, values, dtype=np.float64, ensure_non_negative=True
        )
        if not (weights > 0).any():
            raise ValueError(
                "sample_weight is zero everywhere: at least one row needs a positive weight."
            )
    if control is not None:
        aligned = X if hasattr(X, "iloc") else y
        require_same_rows(aligned, control, names=("X", "control_features"))
        named = _by_name(control, X, len(values), name="control_features")
        control = read_given(named, len(values), name="control_features").rows.numpy()
    return FitInput(
        X=values,
        y=target,
        s=attribute,
        weights=weights,
        control=control,
        categorical=categorical,
    )


def _read_data(estimator: Any, X: Any, y: Any, checks: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
    """Return X and y, checked by scikit-learn."""
    require_features(X)
    _check_columns(X)
    options = {**checks, "dtype": np.float64, "ensure_all_finite": "allow-nan"}
    try:
        if has_categories(X):
            _, target = validate_data(estimator, coded(X), y, **options)
            return X, target
        return validate_data(estimator, X, y, **options)
    except (TypeError, ValueError) as error:
        text = _text_columns(X)
        if not text:
            raise
        shown = ", ".join(text[:5])
        if len(text) > 5:
            shown += f" and {len(text) - 5} more"
        raise ValueError(
            f"X has text in {shown}: could not convert string to float. Pass a DataFrame, whose "
            "columns of text are read as categories, or encode or drop such columns."
        ) from error


def _check_columns(X: Any) -> None:
    """Raise ``ValueError`` for columns with the same name, and for dates, which have no scale."""
    if isinstance(X, pd.DataFrame):  # others have no repeated names
        repeated = X.columns[X.columns.duplicated()].unique()
        if len(repeated):
            shown = ", ".join(map(repr, repeated))
            raise ValueError(
                f"X has several columns named {shown}: give each column a name of its own, or pass "
                "X.to_numpy()."
            )
        columns = zip(X.columns, X.dtypes, strict=True)
        dates = [repr(name) for name, dtype in columns if _is_time(dtype)]
    elif _is_time(getattr(X, "dtype", None)):
        dates = ["all"]
    else:
        dates = []
    if dates:
        raise ValueError(
            f"X has dates in column {', '.join(dates)}: turn them into numbers first, such as "
            "years "
            "(X[name].dt.year) or days since a date, or drop them."
        )


def _is_time(dtype: Any) -> bool:
    """Return whether a column has dates (M) or times between dates (m)."""
    return getattr(dtype, "kind", "") in ("M", "m")


def _text_columns(X: Any) -> list[str]:
    """Return the columns of an array with text that is no number, each with the first such text."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUS":
        return []
    found = []
    for i, values in enumerate(X.T):
        text = [value for value in values.tolist() if _is_mere_text(value)]
        if text:
            found.append(f"column {i} (first: {text[0]!r})")
    return found


def _is_mere_text(value: Any) -> bool:
    """Return whether a value is text that does not spell a number."""
    return isinstance(value, str | bytes) and not _is_number(value)


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_attribute(s: Any, rows: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the attribute(s) as ``(n, p)`` float64 and the places of codes."""
    values, categorical = read_sample(s, name="sensitive_features", words=True)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(
            f"sensitive_features has shape {values.shape} but X has {rows} rows: one row per "
            "sample "
            "is needed."
        )
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise ValueError(
            f"sensitive_features has {bad} NaN or infinite values: drop those rows first. Do not "
            "fill them in, because the penalty would then use invented values."
        )
    constant = (values == values[:1]).all(axis=0)
    if constant.any():
        raise ValueError(
            f"sensitive_features is constant (column {constant.argmax()}): nothing can depend on "
            "it. Drop it."
        )
    for column in set(range(values.shape[1])) - set(categorical):
        require_resolution(values[:, column], str(column))
        said = far_codes(values[:, column], f"sensitive_features (column {column})")
        if said:
            warn_caller(said, FitWarning)
    return values, categorical


def _are_names(s: Any) -> bool:
    """Return whether a value is a list of text."""
    if not isinstance(s, list | tuple) or len(s) == 0:
        return False
    return all(isinstance(value, str) for value in s)


def _by_name(s: Any, X: Any, rows: int, *, name: str = "sensitive_features") -> ArrayLike:
    """Replace names of columns by the columns, which stay in X."""
    if isinstance(s, str):
        names = [s]
    elif _are_names(s) and len(s) != rows:
        names = list(s)
    else:
        return s  # values; a text for each row is an error when it is read as numbers
    columns = list(getattr(X, "columns", ()))
    if not columns:
        raise TypeError(
            f"{name} is {s!r}, a name, but X is not a DataFrame: pass the values, one for each "
            "row. After another step of a pipeline X has become an array; then use "
            f"pipeline.fit(X, y, fairclassifier__{name}=X[{s!r}])."
        )
    missing = [column for column in names if column not in columns]
    if missing:
        unknown = ", ".join(map(repr, missing))
        known = ", ".join(map(repr, columns))
        raise ValueError(
            f"{name} is {s!r}, but X has no column {unknown}. Its columns are {known}."
        )
    return X[names]


def read_columns(estimator: Any, X: Any) -> np.ndarray:
    """Return X as the numbers that a fitted estimator was trained on, before scaling."""
    plan = estimator.columns_
    if plan is None:
        return validate_data(estimator, X, dtype=np.float64, reset=False)
    frame = isinstance(X, pd.DataFrame)
    if any("levels" in entry for entry in plan) and not frame:
        raise ValueError(
            "X has no column names, but the model was fitted with categories: pass a DataFrame."
        )
    numbers = coded(X) if has_categories(X) else X
    values = validate_data(
        estimator, numbers, dtype=np.float64, reset=False, ensure_all_finite="allow-nan"
    )
    return columns_of(X if frame else values, plan)


def standardized(y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, float, float]:
    """Return the target with mean 0 and variance 1, and its former mean and standard deviation."""
    mean = float(np.average(y, weights=weights))
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
    if not spread > 0:
        spread = 1.0
    return (y - mean) / spread, mean, spread


# Parameters ---------------------------------------------------------------------------------------


def check_parameters(model: Any) -> None:
    """Raise ``ValueError`` for a parameter that cannot be used, with its value and choices."""
    model._validate_params()
    if model.lam != "auto":
        require_lambdas([model.lam], given=model.lam, alternative=", or 'auto'")
    if not _are_counts(model._layers):
        raise ValueError(
            f"widths is {model.widths!r}: give positive whole numbers, such as (50, 4). The last "
            "is the dimension of Z."
        )
    resolve_device(model.device)
    # A model without a penalty may share the settings of the models that it is compared with.
    if model.method != "unfair":
        make_penalty(model.method, **(model.penalty_settings or {}))
    LambdaSelection.of(model.selection)


def _are_counts(widths: Sequence[Any]) -> bool:
    """Return whether there are widths, all of them positive whole numbers."""
    whole = all(isinstance(width, int | np.integer) for width in widths)
    return len(widths) > 0 and whole and min(widths) > 0


def seed_of(random_state: Any) -> int:
    """Return ``random_state`` if it is a whole number, and otherwise a new seed.

    It is drawn from a generator if one is given. For None it is fresh; scikit-learn would draw from
    NumPy's global generator for None, and so change what the caller draws next.
    """
    if isinstance(random_state, Integral):
        return int(random_state)
    source = random_state
    if source is None:
        source = np.random.RandomState()
    return int(source.randint(np.iinfo(np.int32).max))


def number_of_epochs(
    epochs: int | str, *, rows: int, batch_size: int, learning_rate: float = LEARNING_RATE
) -> int:
    """Return the number of epochs; ``"auto"`` gives 600 steps, and 8 epochs or more.

    With fewer than 4,000 samples it gives 400 steps. A model with a penalty first becomes constant,
    which makes the penalty small, and learns afterwards. If it is stopped early, it looks fair and
    is useless. Steps × learning rate is about how far Adam can move a weight, so a learning rate
    below the default gives as many more steps.

    Examples
    --------
    >>> [number_of_epochs("auto", rows=n, batch_size=256) for n in (1000, 5000, 50_000)]
    [100, 30, 8]
    >>> number_of_epochs("auto", rows=5000, batch_size=256, learning_rate=1e-3)
    150
    """
    if epochs != "auto":
        return int(epochs)
    steps_per_epoch = math.ceil(rows / min(int(batch_size), rows))
    steps = FEWER_STEPS if rows < MANY_ROWS else STEPS
    slower = max(1.0, LEARNING_RATE / learning_rate)
    return max(FEWEST_EPOCHS, math.ceil(steps * slower / steps_per_epoch))


def favorable_class(y: Any, classes: np.ndarray, named: Any, *, condition: str | None) -> Any:
    """Return the class that counts as y = 1.

    It is the named one, the last of an ordered categorical, or the larger label. ``y`` are the
    labels as given, ``classes`` their sorted values, and ``named`` is the parameter
    ``positive_class``. With the condition ``"positives"`` the choice decides whom the penalty
    protects. Then labels that do not show it (text, or numbers other than 0 and 1, −1 and 1) give a
    ``FitWarning``.
    """
    labels = classes.tolist()
    if named is not None:
        if named not in labels:
            shown = " and ".join(map(repr, labels))
            raise ValueError(
                f"positive_class is {named!r}, but y has the classes {shown}: choose one of them."
            )
        return labels[labels.index(named)]
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        in_order = [category for category in dtype.categories.tolist() if category in labels]
        return in_order[-1]
    smaller, larger = labels[0], labels[-1]
    shows_favorable = set(labels) <= {0, 1} or set(labels) <= {-1, 1}
    if condition == "positives" and not shows_favorable:
        warn_caller(
            f"condition='positives' protects the samples of one class, and {larger!r} was taken "
            f"because it comes after {smaller!r} in sorted order. Set positive_class={smaller!r} "
            f"or positive_class={larger!r}.",
            FitWarning,
        )
    return larger
