"""Saving a fitted estimator as tensors and JSON in one file, without code.

A pickle runs whatever code its writer put into it. The files of this module hold weights, numbers and text only and are
read with ``weights_only=True``. The class that reads the file supplies the code.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from frhsic_core.bounds import DependenceBound
from frhsic_core.learning.selection import LambdaChoice, LambdaSelection
from frhsic_core.learning.state_file import read_state, write_state

KIND = "frhsic-core estimator"
E = TypeVar("E", bound=BaseEstimator)


def save_estimator(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, completely or not at all.

    Raises
    ------
    TypeError
        A parameter is not plain data, such as a kernel given as a function. Such an estimator can only be pickled.
    """
    check_is_fitted(estimator)
    record: dict[str, Any] = {
        "kind": KIND,
        "class": type(estimator).__name__,
        "parameters": _plain(estimator.get_params(deep=False)),
        "fitted": {},
    }
    tensors: dict[str, torch.Tensor] = {}
    for name, value in sorted(vars(estimator).items()):
        if not name.endswith("_") or name.startswith("_"):
            continue
        if isinstance(value, nn.Module):
            tensors |= {f"{name}.{key}": tensor for key, tensor in value.state_dict().items()}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            tensors[name] = torch.from_numpy(np.ascontiguousarray(value))
        else:
            record["fitted"][name] = _plain(value)
    try:
        text = json.dumps(record, default=_number)
    except TypeError as error:
        raise TypeError(
            f"this {type(estimator).__name__} cannot be saved as plain data ({error}): use numbers and names as "
            "settings, and a whole number as random_state."
        ) from None
    write_state(path, {"json": text, "tensors": tensors})


def load_estimator(cls: type[E], path: str | os.PathLike[str]) -> E:
    """Read an estimator of class ``cls`` that :func:`save_estimator` wrote; nothing in the file is executed.

    Raises
    ------
    ValueError
        The file is no saved estimator, truncated, damaged or of a newer version, it is an estimator of another class,
        or something is missing or not a number in it; the message says which.
    """
    advice = "pass a file that save() wrote"
    state = read_state(path, what="a saved estimator", advice=advice)
    try:
        return _rebuilt(cls, state, path)
    except (KeyError, TypeError, AttributeError, RuntimeError, json.JSONDecodeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{path} is not a whole saved estimator ({why}): {advice}.") from None


def _rebuilt(cls: type[E], state: dict[str, Any], path: str | os.PathLike[str]) -> E:
    record = json.loads(state["json"])
    if record["kind"] != KIND or record["class"] != cls.__name__:
        raise ValueError(
            f"{path} contains {record['class']}, not {cls.__name__}: load it with the class that saved it."
        )
    estimator = cls(**_restored(record["parameters"]))
    for name, value in record["fitted"].items():
        setattr(estimator, name, _restored(value))
    networks: dict[str, dict[str, torch.Tensor]] = {"encoder_": {}, "head_": {}}
    for name, tensor in state["tensors"].items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{path} has NaN or infinite values in {name}: fit and save the estimator again.")
        owner, _, key = name.partition(".")
        if key:
            networks[owner][key] = tensor
        else:
            setattr(estimator, name, tensor.numpy())
    for name in estimator._needed:
        if not hasattr(estimator, name):
            raise KeyError(name)
    estimator.encoder_, estimator.head_ = estimator._networks()
    estimator.encoder_.load_state_dict(networks["encoder_"])
    estimator.head_.load_state_dict(networks["head_"])
    return estimator


def _plain(value: Any) -> Any:
    """Return values that JSON does not know (tuples, tables, arrays of text, choices, certificates) under a tag."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {"__tuple__": [_plain(item) for item in value]}
    if isinstance(value, pd.DataFrame):
        return {"__table__": value.to_dict(orient="list")}
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": "object" if value.dtype.kind == "O" else str(value.dtype)}
    if isinstance(value, LambdaChoice):
        return {"__choice__": {name: _plain(item) for name, item in vars(value).items()}}
    if isinstance(value, DependenceBound):
        return {"__certificate__": {name: _plain(item) for name, item in vars(value).items()}}
    if isinstance(value, LambdaSelection):
        return {"__selection__": asdict(value)}
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "__tuple__" in value:
        return tuple(_restored(item) for item in value["__tuple__"])
    if "__table__" in value:
        return pd.DataFrame(value["__table__"])
    if "__array__" in value:
        return np.array(value["__array__"], dtype=value["dtype"])
    if "__choice__" in value:
        return LambdaChoice(**{name: _restored(item) for name, item in value["__choice__"].items()})
    if "__certificate__" in value:
        return DependenceBound(**{name: _restored(item) for name, item in value["__certificate__"].items()})
    if "__selection__" in value:
        return LambdaSelection(**value["__selection__"])
    return {key: _restored(item) for key, item in value.items()}


def _number(value: Any) -> Any:
    """Return a NumPy number as a Python number; raise ``TypeError`` for anything else."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__}")
