"""The live check of a chapter: train a few new splits now and compare them with the stored ones."""

from __future__ import annotations

import math
import tempfile

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


def compare_means(stored: npt.ArrayLike, new: npt.ArrayLike) -> tuple[float, float, bool]:
    """Return the stored mean, the half-width of the interval around it for a new mean, and whether ``new`` is inside.

    The half-width is four standard errors of the difference of the two means; the spread is that of ``stored``.

    Examples
    --------
    >>> compare_means([1.0, 2.0, 3.0], [2.5, 3.5, 3.0])
    (2.0, 3.265986323710904, True)
    """
    old, fresh = pd.Series(stored, dtype=float), pd.Series(new, dtype=float)
    width = 4 * old.std() * math.sqrt(1 / len(old) + 1 / len(fresh))
    return float(old.mean()), float(width), bool(abs(fresh.mean() - old.mean()) <= width)
