"""The numbers of a remedy between the strengths that were measured."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from frhsic_core.remedies.catalog import REMEDIES

_STEP = 0.025  # of the strengths between


def along_strengths(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, and rows for strengths between those that were measured.

    The numbers follow monotone cubic splines through the measured ones. All strengths were measured
    on the same samples, so the curves are smooth although each number has noise. An encoder's λ are
    trainings of their own: nothing is known between them.
    """
    parts = [rows]
    for (key, _), own in rows.groupby(["remedy", "learner"], sort=False):
        if len(own) > 1 and REMEDIES[str(key)].is_path:
            parts.append(_between(own.sort_values("strength")))
    return pd.concat(parts, ignore_index=True)


def _between(own: pd.DataFrame) -> pd.DataFrame:
    known = own["strength"].to_numpy()
    first = np.ceil(known[0] / _STEP) * _STEP
    every = np.round(np.arange(first, known[-1], _STEP), 6)
    strengths = np.setdiff1d(every, known)
    between = own.iloc[[0] * len(strengths)].reset_index(drop=True)
    numbers = own.select_dtypes("float").columns.difference(["strength"])
    for name in numbers:
        between[name] = PchipInterpolator(known, own[name].to_numpy())(strengths)
    between["strength"] = strengths
    between["non_dominated"] = False
    return between
