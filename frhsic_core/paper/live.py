"""The live check of a chapter: train a few new splits now and compare them with the stored ones."""

from __future__ import annotations

import math
import tempfile
from typing import NamedTuple

import numpy.typing as npt
import pandas as pd

from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore


def train_now(experiment: Experiment) -> pd.DataFrame:
    """Train an experiment on the CPU and return its rows without storing them."""
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(folder, experiment.name)
        run_experiment(experiment, store, device="cpu")
        return store.read()


class Agreement(NamedTuple):
    """The interval around a stored mean in which a new mean should lie, and whether it does."""

    mean: float
    width: float
    inside: bool


def compare_means(stored: npt.ArrayLike, new: npt.ArrayLike) -> Agreement:
    """Compare the mean of new values with the interval that stored values predict for it.

    The half-width is four standard errors of the difference of the two means; the spread is that of ``stored``.

    Examples
    --------
    >>> compare_means([1.0, 2.0, 3.0], [2.5, 3.5, 3.0])
    Agreement(mean=2.0, width=3.265986323710904, inside=True)
    """
    old, fresh = pd.Series(stored, dtype=float), pd.Series(new, dtype=float)
    width = 4 * old.std() * math.sqrt(1 / len(old) + 1 / len(fresh))
    return Agreement(float(old.mean()), float(width), bool(abs(fresh.mean() - old.mean()) <= width))
