"""An estimator's parameters, checked before anything is trained: what was given, what is needed, what to do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils import check_random_state

from frhsic_core.learning.fit_warnings import PositiveClassWarning
from frhsic_core.learning.protocols import METHODS, make_penalty
from frhsic_core.learning.selection import check_selection

__all__ = ["check_parameters", "favourable_class", "number_of_epochs", "seed_of"]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
STEPS, FEWEST_EPOCHS = 2000, 50  # of epochs="auto"
_SELECTION = (
    "lams",
    "rule",
    "alpha",
    "epsilon",
    "tolerance",
    "dependence",
    "validation_fraction",
    "repeats",
    "max_rows",
    "n_permutations",
)


def check_parameters(model: Any) -> None:
    """Refuse parameters of a :class:`frhsic_core.learning.fair_model.FairModel` that cannot be used.

    Raises
    ------
    ValueError
        Naming the parameter, its value and the choices.
    """
    if model.method not in METHODS:
        raise ValueError(f"method is {model.method!r}: choose one of {', '.join(map(repr, METHODS))}.")
    if model.lam != "auto" and (isinstance(model.lam, str) or not isinstance(model.lam, Real)):
        raise ValueError(f"lam is {model.lam!r}: give a number that is zero or positive, or 'auto'.")
    if model.lam != "auto" and not 0 <= model.lam < float("inf"):
        raise ValueError(f"lam is {model.lam}: it must be zero or positive, and finite, or 'auto'.")
    if model.epochs != "auto":
        _positive_integer("epochs", model.epochs, ", or 'auto'")
    _positive_integer("batch_size", model.batch_size, "; one larger than the data is the data")
    rate: Any = model.learning_rate
    if isinstance(rate, str) or not isinstance(rate, Real) or not 0 < float(rate) < float("inf"):
        raise ValueError(f"learning_rate is {rate!r}: it must be positive, such as 0.001.")
    widths = model.widths
    if isinstance(widths, str) or not np.iterable(widths) or not len(tuple(widths)):
        raise ValueError(f"widths is {widths!r}: give at least one, such as (50, 4); the last is the width of Z.")
    for width in widths:
        if not isinstance(width, Integral) or width < 1:
            raise ValueError(f"widths is {widths!r}: all must be positive whole numbers, such as (50, 4).")
    if model.dtype not in DTYPES:
        raise ValueError(f"dtype is {model.dtype!r}: choose 'float32' or 'float64'.")
    _check_device(model.device)
    _check_seed(model.random_state)
    settings = model.penalty_settings
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(
            f"penalty_settings is {settings!r}: give a dictionary, such as {{'condition': 'positives'}}, or None."
        )
    # A model without a penalty may share the settings of those it is compared with.
    make_penalty(model.method, protocol=model.protocol, **(settings or {} if model.method != "unfair" else {}))
    _check_selection(model.selection)


def _positive_integer(name: str, value: Any, else_: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or value < 1 or value % 1 != 0:
        raise ValueError(f"{name} is {value!r}: it must be a positive whole number{else_}.")


def _check_device(device: Any) -> None:
    if device != "auto":
        try:
            torch.device(device)
        except (RuntimeError, TypeError):
            raise ValueError(f"device is {device!r}: choose 'auto', 'cpu', 'cuda' or 'cuda:0'.") from None
    if str(device).startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device is {device!r} and there is no CUDA device: use 'cpu' or 'auto'.")


def _check_selection(selection: Any) -> None:
    """A misspelled key would further in be taken for an option of the training, a misspelled rule found after it."""
    if selection is None:
        return
    if not isinstance(selection, Mapping):
        raise ValueError(f"selection is {selection!r}: give a dictionary, such as {{'rule': 'tradeoff'}}, or None.")
    unknown = [key for key in selection if key not in _SELECTION]
    if unknown:
        raise ValueError(f"selection has no {sorted(map(str, unknown))}: choose from {', '.join(_SELECTION)}.")
    check_selection(**selection)


def _check_seed(random_state: Any) -> None:
    if isinstance(random_state, Integral):
        if not -(2**63) <= int(random_state) < 2**63:
            raise ValueError(f"random_state is {random_state}: a whole number of at most 63 bits is needed.")
    elif random_state is not None and not isinstance(random_state, np.random.RandomState):
        raise ValueError(
            f"random_state is {random_state!r}: give a whole number (then fit is repeatable), a RandomState or None."
        )


def seed_of(random_state: Any) -> int:
    """Return a whole number as it is, otherwise a draw."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def number_of_epochs(epochs: int | str, *, rows: int, batch_size: int) -> int:
    """Return the epochs to train; ``"auto"`` is as many as make 2,000 steps, and at least 50.

    A penalised model begins by becoming constant, which makes the penalty small at once, and only then learns: stopped
    early it looks fair and is useless. In steps of Adam at 0.001 that takes some hundreds to two thousand, whatever the
    number of rows.

    Examples
    --------
    >>> [number_of_epochs("auto", rows=n, batch_size=256) for n in (1000, 5000, 50_000)]
    [500, 100, 50]
    """
    if epochs != "auto":
        return int(epochs)
    steps = -(-rows // min(int(batch_size), rows))
    return max(FEWEST_EPOCHS, -(-STEPS // steps))


def favourable_class(y: Any, classes: np.ndarray, named: Any, *, condition: str | None, stacklevel: int) -> Any:
    """Return the class that counts as y = 1: the one named, the last of an ordered categorical, or the larger label.

    Parameters
    ----------
    y : array_like
        The labels as given: an ordered categorical says which is better.
    classes : ndarray
        Its values, sorted.
    named : object
        The parameter ``positive_class``.
    condition : {None, "positives"}
        With ``"positives"`` the choice decides whom the penalty protects: then labels that do not say it (text, or
        numbers other than 0 and 1, −1 and 1) warn (``PositiveClassWarning``).
    stacklevel : int
        As in :func:`warnings.warn`, for the caller of this function.
    """
    labels = classes.tolist()
    if named is not None:
        if named not in labels:
            shown = " and ".join(map(repr, labels))
            raise ValueError(f"positive_class is {named!r}: y has {shown}; name one of them.")
        return labels[labels.index(named)]
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return [category for category in dtype.categories.tolist() if category in labels][-1]
    if condition == "positives" and not any(set(labels) <= pair for pair in ({0, 1}, {-1, 1})):
        warnings.warn(
            f"condition='positives' protects the rows of one class, and {labels[-1]!r} was taken because it is sorted "
            f"after {labels[0]!r}: name the favourable one, positive_class={labels[0]!r} or {labels[-1]!r}.",
            PositiveClassWarning,
            stacklevel=stacklevel + 1,
        )
    return labels[-1]
