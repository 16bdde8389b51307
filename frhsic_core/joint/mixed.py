"""Mixed attributes, such as age and sex together: tables with numeric and categorical columns, and their kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from frhsic_core.arrays import ArrayLike
from frhsic_core.kernels import Categorical, Kernel, Product, default_kernel


def read_mixed(s: ArrayLike, *, name: str = "s") -> tuple[ArrayLike, tuple[int, ...]]:
    """Return ``s`` with its categorical columns as codes, and the places of these columns.

    A column of text, categories or other objects is categorical. Numbers, booleans, dates and tensors are returned as
    they are.

    Examples
    --------
    >>> import pandas as pd
    >>> table, places = read_mixed(pd.DataFrame({"age": [30, 40], "sex": ["f", "m"]}))
    >>> table.to_numpy().tolist(), places
    ([[30.0, 0.0], [40.0, 1.0]], (1,))
    """
    if isinstance(s, Tensor) or (isinstance(s, np.ndarray) and s.dtype.kind not in "OUS"):
        return s, ()
    import pandas as pd

    if not hasattr(s, "iloc"):
        array = np.asarray(s)
        if array.dtype.kind not in "OUS" or array.ndim not in (1, 2):
            return s, ()
        table = pd.DataFrame(array).infer_objects()
    else:
        table = s.to_frame() if s.ndim == 1 else s
    places = tuple(i for i in range(table.shape[1]) if _is_categorical(table.iloc[:, i]))
    if not places:
        return s, ()
    columns = [_codes(table.iloc[:, i], name) if i in places else table.iloc[:, i] for i in range(table.shape[1])]
    coded = pd.concat([pd.Series(column, index=table.index).astype(np.float64) for column in columns], axis=1)
    return coded if hasattr(s, "iloc") else coded.to_numpy(), places


def _is_categorical(column: Any) -> bool:
    import pandas as pd

    types = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if types.is_numeric_dtype(column) or types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return False
    return bool(pd.to_numeric(column, errors="coerce").isna().any())  # numbers that are stored as objects stay numbers


def _codes(column: Any, name: str) -> np.ndarray:
    import pandas as pd

    codes, _ = pd.factorize(column, sort=False)
    if (codes < 0).any():
        raise ValueError(f"{name} has {int((codes < 0).sum())} missing values: drop those rows or name a category.")
    return codes.astype(np.float64)


def mixed_kernel(s: Tensor, categorical: tuple[int, ...]) -> Kernel:
    """Return the product over columns of a Gaussian at the median bandwidth, or the kernel of categories.

    Categorical columns have the kernel :class:`~frhsic_core.kernels.Categorical`. A product of characteristic
    kernels is characteristic, so it detects dependence on combinations of the columns too.
    """
    factors = [
        Categorical() if i in categorical else default_kernel(column) for i, column in enumerate(s.split(1, dim=-1))
    ]
    return factors[0] if len(factors) == 1 else Product(factors)
