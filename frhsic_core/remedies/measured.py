"""The table of a comparison: score, what was lost, and dependence, each with its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from frhsic_core.remedies.attributes import attribute_matrix
from frhsic_core.remedies.cross_fits import CrossFits
from frhsic_core.remedies.dependence import dependence_of, distance_correlation_of
from frhsic_core.remedies.remedy import Remedy

_WIDE = float(stats.norm.ppf(0.975))


@dataclass(frozen=True)
class Setting:
    """One remedy with one learner and strength, and its predictions of all samples."""

    remedy: Remedy
    learner: str
    strength: float
    predicted: np.ndarray
    cpu_seconds: float


def measured(settings: Sequence[Setting], fits: CrossFits) -> pd.DataFrame:
    """Return a row for each setting.

    ``lost`` is the score that the best model without a remedy of its league has more. Its interval
    is that of a difference for the same samples, so it is much narrower than that of both scores.
    """
    people = fits.people
    attributes = attribute_matrix(people.s)
    unit = people.task.unit(people.y)
    worth = [people.task.contributions(one.predicted, people.y) for one in settings]
    best = best_plain(settings, worth)
    rows: list[dict[str, Any]] = []
    for setting, own in zip(settings, worth, strict=True):
        less = best[setting.remedy.needs_s] - own
        row = {
            "remedy": setting.remedy.key,
            "learner": setting.learner,
            "strength": setting.strength,
            "needs_s": setting.remedy.needs_s,
            "score": float(own.mean()),
            "score_half": half_width(own),
            "lost": float(less.mean()),
            "lost_half": half_width(less),
            "dcor_half": _noise_of_dcor(setting.predicted, attributes, fits),
            "cpu_seconds": setting.cpu_seconds,
        }
        rows.append(row | dependence_of(setting.predicted, attributes, scale=unit))
    table = pd.DataFrame(rows)
    table["non_dominated"] = non_dominated(table["score"], table["dcor"])
    return table


def best_plain(settings: Sequence[Setting], worth: Sequence[np.ndarray]) -> dict[bool, np.ndarray]:
    """Return what each sample contributes to the best score without a remedy, for each league."""
    best: dict[bool, np.ndarray] = {}
    for setting, own in zip(settings, worth, strict=True):
        league = setting.remedy.needs_s
        if not setting.remedy.is_plain:
            continue
        if league not in best or own.mean() > best[league].mean():
            best[league] = own
    return best


def half_width(contributions: np.ndarray) -> float:
    """Return half the width of a 95 % interval of a mean."""
    return float(_WIDE * contributions.std(ddof=1) / np.sqrt(len(contributions)))


def _noise_of_dcor(predicted: np.ndarray, attributes: np.ndarray, fits: CrossFits) -> float:
    """Return half the width of a 95 % interval, from the folds left out in turn (a jackknife)."""
    found = []
    for train, _ in fits.folds:
        found.append(distance_correlation_of(predicted[train], attributes[train]))
    count = len(found)
    error = np.sqrt((count - 1) * np.var(found))
    return float(stats.t.ppf(0.975, count - 1) * error)


def non_dominated(score: Any, dependence: Any) -> np.ndarray:
    """Return which points no other point beats.

    A point beats another with a higher or equal score and less or equal dependence, one strictly.

    Examples
    --------
    >>> non_dominated([0.9, 0.8, 0.7], [0.5, 0.1, 0.2]).tolist()
    [True, True, False]
    """
    u, d = np.asarray(score, float), np.asarray(dependence, float)
    at_least = (u >= u[:, None]) & (d <= d[:, None])
    beats = at_least & ~at_least.T
    return np.logical_not(beats.any(1, keepdims=True))[:, 0]
