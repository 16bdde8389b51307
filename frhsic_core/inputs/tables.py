"""Turn what a user may pass for one or several columns into one kind of table.

Lists, NumPy arrays, masked arrays, tensors, pandas, polars, pyarrow and Dask become a pandas
DataFrame with one row for each person. What cannot be a table is an error here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.inputs.arrays import NUMBERS, as_array


def computed(given: Any) -> Any:
    """Return the values of a Dask collection; the few columns of a call fit into memory."""
    return given.compute() if hasattr(given, "compute") else given


def is_table(given: Any) -> bool:
    """Return whether an argument has columns of its own, which may differ in kind."""
    pandas = pd.DataFrame | pd.Series | pd.Index | pd.api.extensions.ExtensionArray
    if isinstance(given, pandas | Mapping):
        return True
    return hasattr(given, "to_pandas") or hasattr(given, "compute")


def plain_numbers(given: Any) -> np.ndarray | None:
    """Return the values of a pandas object whose columns are all plain numbers; None for others."""
    if isinstance(given, pd.DataFrame):
        kinds = list(given.dtypes)
    elif isinstance(given, pd.Series | pd.Index):
        kinds = [given.dtype]
    else:
        return None
    if kinds and all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in kinds):
        return given.to_numpy()
    return None


def as_table(given: Any, *, argument: str, default: str) -> pd.DataFrame:
    """Return columns of any kind as a table.

    Parameters
    ----------
    given : array_like
        One or several columns.
    argument : str
        Name of the argument in messages.
    default : str
        Name of a column that has none; of several columns each gets a number.

    Examples
    --------
    >>> as_table([[1, 2], [3, 4]], argument="s", default="s").columns.tolist()
    ['s_0', 's_1']
    """
    given = computed(given)
    if hasattr(given, "to_pandas"):  # polars, pyarrow
        given = _to_pandas(given, argument)
    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, pd.api.extensions.ExtensionArray):
        return pd.DataFrame({default: given})
    if isinstance(given, Mapping):
        return _table_of_mapping(given, argument)
    if isinstance(given, pd.Series | pd.Index):
        name = default if given.name is None else given.name
        return pd.DataFrame({name: given})
    array = as_array(given, argument=argument)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{argument} has shape {array.shape}: pass one or several columns, (n,) or (n, k)."
        )
    if array.ndim == 1:
        return pd.DataFrame({default: array})
    count = array.shape[1]
    names = [default] if count == 1 else [f"{default}_{k}" for k in range(count)]
    return pd.DataFrame(array, columns=names)


def _to_pandas(given: Any, argument: str) -> Any:
    try:
        return given.to_pandas()
    except ImportError:  # polars without pyarrow
        if hasattr(given, "to_dict"):  # a table
            return pd.DataFrame(given.to_dict(as_series=False))
        return pd.Series(given.to_list(), name=given.name or None)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise TypeError(f"{argument} could not be read as a table ({error}).") from error


def _table_of_mapping(given: Mapping[Any, Any], argument: str) -> pd.DataFrame:
    columns = {}
    for name, values in given.items():
        if isinstance(values, pd.Series):
            columns[name] = values
            continue
        table = as_table(values, argument=f"{argument}[{name!r}]", default=str(name))
        if table.shape[1] != 1:
            raise ValueError(
                f"{argument}[{name!r}] has {table.shape[1]} columns: pass one column for each name."
            )
        columns[name] = table.iloc[:, 0]
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        shown = " and ".join(str(length) for length in sorted(lengths)[:2])
        raise ValueError(f"{argument} has columns with {shown} rows: all need one row per sample.")
    return pd.DataFrame(columns)
