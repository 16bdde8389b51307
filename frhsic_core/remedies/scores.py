"""Repair scores along S from scores and attributes alone: no labels, no features and no model are needed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from frhsic_core.arrays import ArrayLike, require_same_rows
from frhsic_core.atomic_files import write_atomically
from frhsic_core.auditing._input import as_columns
from frhsic_core.remedies.adjustment import Adjustment, ConditionalRanks, logits
from frhsic_core.remedies.attributes import AttributeBasis, read_attributes, require_variation, warn_of_codes

_FEWEST = 20
_FORMAT = "frhsic adjustment of scores 4"
_PARTS: dict[str, type] = {kind.__name__: kind for kind in (Adjustment, AttributeBasis, ConditionalRanks)}


class ScoreAdjuster(BaseEstimator):
    """Adjust scores along S: fit on scores and attributes, save, and apply to new scores, one by one if needed.

    This is the adjustment of ``AdjustedClassifier`` and ``AdjustedRegressor`` without their model. Scores from 0 to 1
    are adjusted as logits and stay between 0 and 1; other scores keep their unit. Nobody overtakes a person with the
    same attributes. **S is needed for every score that is adjusted.** O(n log n).

    Parameters
    ----------
    method : {"rank", "mean"}
        What no longer depends on S: the whole distribution of the scores, or their mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 1000)
    >>> score = age + 10 * rng.normal(size=1000)
    >>> adjuster = ScoreAdjuster().fit(score, sensitive_features=age)
    >>> new = adjuster.transform([50.0, 50.0], sensitive_features=[30, 60])  # high at age 30, low at age 60
    >>> bool(new[0] > new[1] + 20)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"method": [StrOptions({"rank", "mean"})]}

    def __init__(self, method: str = "rank") -> None:
        self.method = method

    def fit(self, scores: ArrayLike, *, sensitive_features: ArrayLike) -> Self:
        """Fit on scores ``(n,)`` that the model gave to people it was not trained on, and their attributes."""
        self._validate_params()
        values, frame = _read(scores, sensitive_features)
        if len(values) < _FEWEST:
            raise ValueError(
                f"the number of scores is {len(values)}: an adjustment needs at least {_FEWEST} to be fitted."
            )
        require_variation(frame)
        warn_of_codes(frame)
        if len(np.unique(values)) <= 2:
            raise ValueError(
                "scores is constant or has two values: adjust the probabilities behind them, then apply the threshold."
            )
        probabilities = bool(values.min() >= 0.0 and values.max() <= 1.0)
        adjustment = Adjustment(self.method, classifier=probabilities)
        self.adjustment_ = adjustment.fit(logits(values) if probabilities else values, frame)
        return self

    def transform(self, scores: ArrayLike, *, sensitive_features: ArrayLike) -> np.ndarray:
        """Return the adjusted scores; each depends on its own row only."""
        check_is_fitted(self)
        values, frame = _read(scores, sensitive_features)
        if not self.adjustment_.classifier:
            return self.adjustment_(values, frame)
        if len(values) and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise ValueError("scores has values outside of 0 to 1, but fit had probabilities: pass the same kind.")
        return np.asarray(expit(self.adjustment_(logits(values), frame)), dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted adjustment as JSON, which :meth:`load` reads without running any code in it."""
        check_is_fitted(self)
        content = {"format": _FORMAT, "parameters": self.get_params(), "adjustment": self.adjustment_}
        text = json.dumps(content, default=_as_json)
        write_atomically({Path(path): lambda file: file.write(text.encode())})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of :meth:`save`."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"), object_hook=_from_json)
        except (ValueError, KeyError):
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(f"{path} is not a saved adjustment of scores: save the adjustment again.")
        model = cls(**found["parameters"])
        model.adjustment_ = found["adjustment"]
        return model


def other_half(adjuster: ScoreAdjuster, scores: np.ndarray, frame: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Fit on one half of the rows; return which rows are in the other half, and their adjusted scores.

    On the rows that fit it, an adjustment removes the gap of these rows, chance included, and looks too good. Parts
    that fit each other in turn would do so too: pooled, their errors cancel. None: there are too few rows, or a
    category is in one half only.
    """
    other = np.random.default_rng(0).permutation(len(scores)) % 2 == 1
    try:
        fitted = clone(adjuster).fit(scores[~other], sensitive_features=frame[~other])
        return other, fitted.transform(scores[other], sensitive_features=frame[other])
    except ValueError:
        return None


def adjust_scores(scores: ArrayLike, *, sensitive_features: ArrayLike, method: str = "rank") -> np.ndarray:
    """Return scores that depend less on S, from scores and attributes alone.

    No labels, features or model are needed. For new people later, keep a :class:`~frhsic_core.ScoreAdjuster`, which
    this function fits and applies to the same rows. O(n log n).

    Parameters
    ----------
    scores : array_like
        ``(n,)``: probabilities, which stay between 0 and 1, or scores of any unit.
    sensitive_features : array_like
        ``(n,)``, ``(n, p)`` or a frame with numeric and categorical columns.
    method : {"rank", "mean"}
        As in :class:`~frhsic_core.ScoreAdjuster`.

    Examples
    --------
    >>> from frhsic_core import gdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 2000)
    >>> score = 1 / (1 + np.exp(-(age - 45) / 20 - rng.normal(size=2000)))
    >>> gdp(score, age) > 0.1, gdp(adjust_scores(score, sensitive_features=age), age) < 0.02
    (True, True)
    """
    adjuster = ScoreAdjuster(method).fit(scores, sensitive_features=sensitive_features)
    return adjuster.transform(scores, sensitive_features=sensitive_features)


def _read(scores: ArrayLike, s: ArrayLike) -> tuple[np.ndarray, Any]:
    require_same_rows(scores, s, names=("scores", "sensitive_features"))
    column, *more = as_columns(scores, argument="scores", default="scores", categorical=False)
    if more:
        raise ValueError(f"scores has the shape (n, {1 + len(more)}): pass one score for each row, (n,).")
    if column.missing:
        raise ValueError(f"scores has {column.missing} missing or infinite values: drop those rows first.")
    return column.values, read_attributes(s, len(column.values), other="scores")


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype)}
    if type(value).__name__ in _PARTS:
        return {"__part__": type(value).__name__} | vars(value)
    return value.item()  # a NumPy number


def _from_json(found: dict[str, Any]) -> Any:
    if "__array__" in found:
        return np.array(found["__array__"], dtype=found["dtype"])
    if "__part__" not in found:
        return found
    part: Any = object.__new__(_PARTS[found.pop("__part__")])
    vars(part).update(found)
    return part
