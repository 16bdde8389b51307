"""Expand attributes S in functions φ(S)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import SplineTransformer

from frhsic_core._arrays import warn_caller
from frhsic_core.remedies.attributes import UNNAMED

BASES = ("linear", "spline")
_FUNCTIONS = 8  # splines of each numeric attribute
_FAR = 0.1  # of the range in fit: numbers farther outside give a warning
_SHOWN = 5  # categories in a message


def standardized(values: np.ndarray, *, constant: float) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column.

    A column whose values differ by rounding errors alone is ``constant``: it gets this number as
    its deviation.

    Examples
    --------
    >>> standardized(np.array([[1.0, 0.1], [3.0, 0.1]]), constant=7.0)[1].tolist()
    [1.0, 7.0]
    """
    # Taken from the first row, differences are exact where the column is far from zero.
    shifted = values - values[0]
    spread = shifted.std(0)
    largest = np.abs(values).max(0)
    rounding = 1e-15 * largest
    mean = values[0] + shifted.mean(0)
    return mean, np.where(spread > rounding, spread, constant)


class AttributeBasis:
    """Expand attributes S in functions φ(S), with scales and knots from the training samples.

    A categorical attribute becomes one indicator for each of its values. The functions of several
    attributes stand beside each other (an additive model).

    Parameters
    ----------
    kind : {"linear", "spline"}
        S itself, or eight cubic B-splines with knots at quantiles.

    Examples
    --------
    >>> table = pd.DataFrame({"age": np.arange(20.0, 70.0), "sex": ["f", "m"] * 25})
    >>> from frhsic_core.remedies.attributes import read_attributes
    >>> s = read_attributes(table, 50)
    >>> AttributeBasis("linear").fit(s).transform(s).shape
    (50, 3)
    >>> AttributeBasis("spline").fit(s).transform(s).shape
    (50, 9)
    """

    def __init__(self, kind: str = "spline") -> None:
        self.kind = kind

    def fit(self, frame: pd.DataFrame) -> AttributeBasis:
        """Read scales, levels and knots from the training samples."""
        self.names = list(frame)
        self.numeric = [name for name in frame if frame[name].dtype != object]
        self.levels: dict[str, list[str]] = {}
        self.shares: dict[str, np.ndarray] = {}
        for name in frame:
            if name in self.numeric:
                continue
            counts = frame[name].value_counts().sort_index()
            self.levels[name] = counts.index.tolist()
            self.shares[name] = counts.to_numpy(np.float64) / len(frame)
        values = frame[self.numeric].to_numpy(np.float64)
        # Numbers are counted from one of them: far from zero, as a year or a time in seconds is,
        # the difference of two numbers is exact, but a spline or a mean of them is not.
        self.origin = values[0]
        values = values - self.origin
        self.mean, self.scale = standardized(values, constant=1.0)
        self.low, self.high = values.min(0), values.max(0)
        self.splines: list[tuple[int, np.ndarray] | None] = [None] * len(self.numeric)
        if self.kind == "spline":
            self.splines = [_spline(column) for column in values.T]
        return self

    @property
    def size(self) -> int:
        """Number of functions."""
        total = sum(map(len, self.levels.values()))
        for spline in self.splines:
            total += 1 if spline is None else spline[0] + len(spline[1]) - 2
        return total

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Return φ(S) ``(n, k)``.

        Numbers outside the range of the training samples count as its ends. A category that the
        training samples do not have counts as an average over theirs. Both give a warning.
        """
        frame = self.in_order(frame)
        self._require_kinds(frame)
        parts = [np.empty((len(frame), 0))]
        values = self.numbers(frame)
        for place, name in enumerate(self.numeric):
            column = values[:, place]
            self._warn_of_far(name, place, column)
            within = np.clip(column, self.low[place], self.high[place])
            parts.append(self._functions(place, within))
        for name in self.levels:
            parts.append(self._indicators(name, frame[name].to_numpy(object)))
        return np.hstack(parts)

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the numeric attributes of an ordered frame, counted from their origin."""
        return frame[self.numeric].to_numpy(np.float64) - self.origin

    def in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the attributes as fit had them.

        They are matched by their names where both have names, and else by position.
        """
        names, fitted = list(frame), list(self.names)
        if len(names) != len(fitted):
            raise ValueError(
                f"sensitive_features has {len(names)} columns, but fit had {len(fitted)}."
            )
        if set(names) == set(fitted):
            return frame[fitted]
        if not (names[0].startswith(UNNAMED) or fitted[0].startswith(UNNAMED)):
            shown = ", ".join(map(repr, names))
            expected = ", ".join(map(repr, fitted))
            raise ValueError(
                f"sensitive_features has the columns {shown}, but fit had {expected}: "
                "pass the same attributes under the same names."
            )
        return frame.set_axis(fitted, axis=1)

    def _require_kinds(self, frame: pd.DataFrame) -> None:
        for name in frame:
            was_text = name in self.levels
            is_text = frame[name].dtype == object
            if is_text != was_text:
                was = "text" if was_text else "numeric"
                raise ValueError(
                    f"sensitive_features has a column that was {was} in fit ({name}): "
                    "pass the same kind."
                )

    def _warn_of_far(self, name: str, place: int, column: np.ndarray) -> None:
        low, high = self.low[place], self.high[place]
        outside = np.maximum(low - column, column - high)
        far = column[outside > _FAR * (high - low)]
        if not len(far):
            return
        origin = self.origin[place]
        warn_caller(
            f"sensitive_features has {name!r} far outside of {origin + low:g} to {origin + high:g}, "
            f"its range in fit, such as {origin + far[0]:g}, in {len(far):,} of {len(column):,} "
            "rows: they count as the nearer end of this range."
        )

    def _functions(self, place: int, column: np.ndarray) -> np.ndarray:
        """Return the functions of one numeric attribute."""
        spline = self.splines[place]
        if spline is None:
            return ((column - self.mean[place]) / self.scale[place])[:, None]
        return _transformer(*spline).transform(column[:, None])

    def _indicators(self, name: str, words: np.ndarray) -> np.ndarray:
        """Return the indicators of one categorical attribute."""
        levels = np.array(self.levels[name], dtype=object)
        equal = (words[:, None] == levels).astype(np.float64)
        unseen = equal.sum(1) == 0
        if unseen.any():
            self._warn_of_unseen(name, words[unseen], len(words))
            equal[unseen] = self.shares[name]
        return equal

    def _warn_of_unseen(self, name: str, words: np.ndarray, rows: int) -> None:
        known = self.levels[name]
        shown = ", ".join(map(repr, known[:_SHOWN]))
        if len(known) > _SHOWN:
            shown += f" and {len(known) - _SHOWN} more"
        warn_caller(
            f"sensitive_features has the category {words[0]!r} of {name!r}, which fit did not have "
            f"({shown}), or others like it, in {len(words):,} of {rows:,} rows: they count as an "
            "average over the known categories. Check how the category is written."
        )


def _spline(column: np.ndarray) -> tuple[int, np.ndarray] | None:
    """Return degree and distinct knots of cubic B-splines.

    Of two values it is None, since a line is exact there.
    """
    distinct = np.unique(column)
    if len(distinct) <= 2:
        return None
    degree = min(3, len(distinct) - 1)
    shares = np.linspace(0, 1, _FUNCTIONS - degree + 1)
    knots = np.unique(np.quantile(column, shares))
    # Many ties can leave a single knot at one end: the ends of the range are always knots.
    return degree, np.unique([distinct[0], *knots, distinct[-1]])


def _transformer(degree: int, knots: np.ndarray) -> SplineTransformer:
    options: dict[str, Any] = {"extrapolation": "constant", "include_bias": False}
    splines = SplineTransformer(degree=degree, knots=knots[:, None], **options)
    return splines.fit(knots[:, None])


def whitened(phi: np.ndarray) -> np.ndarray:
    """Return functions with mean 0 and covariance 1 that span the same space, on the samples."""
    mean, whitening = _whitening(phi)
    return (phi - mean) @ whitening


def _whitening(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean, and the matrix that makes the covariance that of independent numbers."""
    mean = phi.mean(0)
    centered = phi - mean
    values, vectors = np.linalg.eigh(centered.T @ centered / len(phi))
    vectors = with_fixed_signs(vectors)
    kept = values > 1e-6 * values[-1]
    return mean, vectors[:, kept] / np.sqrt(values[kept])


class StandardFunctions:
    """Functions ψ(S) with mean 0 and covariance 1 on the training samples, from splines of S."""

    def fit(self, frame: pd.DataFrame) -> StandardFunctions:
        """Read scales, knots and moments from the training samples."""
        self.basis = AttributeBasis("spline")
        phi = self.basis.fit(frame).transform(frame)
        self.mean, self.whitening = _whitening(phi)
        return self

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Return ψ(S) ``(n, k)``."""
        return np.asarray((self.basis.transform(frame) - self.mean) @ self.whitening)


def with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Return the columns, each with the sign that makes the first of its largest entries positive.

    The sign of an eigenvector is the solver's choice and differs between processors. Entries whose
    sizes differ by less than a millionth count as equally large.

    Examples
    --------
    >>> with_fixed_signs(np.array([[-0.8, 0.6], [0.6, 0.8]])).tolist()
    [[0.8, 0.6], [-0.6, 0.8]]
    """
    size = np.abs(vectors)
    first = (size >= (1.0 - 1e-6) * size.max(0)).argmax(0)
    leading = vectors[first, np.arange(vectors.shape[1])]
    return np.where(leading < 0, -vectors, vectors)
