"""The conditional distribution of scores given S, and its average over S."""

from __future__ import annotations

import numpy as np
import pandas as pd

from frhsic_core.remedies.basis import AttributeBasis, standardized

PLACES = 1000  # of S, at which the distribution of scores is estimated
LEVELS = 400  # of the scores
SHARES = np.linspace(0.0, 1.0, 401)  # at which quantiles are averaged
_FINEST = 0.125  # step of the grid of S, in bandwidths


class ConditionalRanks:
    r"""The conditional distribution of numbers r given attributes S, and its average as quantiles.

    S is rounded to a grid that is finer than the bandwidth of its kernel, and r to at most 400
    levels, so the samples become a table of counts. Smoothed over S with Gaussian weights, inside
    equal categories, the table gives F(r | s). O(n log n) for the table, O(log n) for each new
    number.
    """

    def fit(
        self,
        r: np.ndarray,
        frame: pd.DataFrame,
        basis: AttributeBasis,
        weight: np.ndarray | None = None,
    ) -> ConditionalRanks:
        """Count the samples at each place of S and level of r.

        The ``basis`` says which attributes are numbers, and from where they are counted.
        """
        self.basis = basis
        w = np.ones(len(r)) if weight is None else weight / weight.mean()
        values = basis.numbers(frame)
        attributes = max(values.shape[1], 1)
        deviation = standardized(values, constant=1.0)[1]
        # Silverman's rule.
        self.width = 1.06 * len(r) ** (-1.0 / (4 + attributes)) * deviation
        self.places, self.words, index = self._grid(frame)
        self.levels = _levels(r)
        self.counts = self._count(r, index, w)
        share = self.counts.sum(1) / self.counts.sum()
        table = self._table(self.places, self.words)
        self.quantiles = np.zeros(len(SHARES))
        for part, line in zip(share, table, strict=True):
            self.quantiles += part * np.interp(SHARES, line, self.levels)
        return self

    def __call__(self, r: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
        """Return the averaged quantile E_S[Q(u | S)] at the rank u = F(r | s) of each number."""
        places, words, index = self._places(frame)
        members = pd.Series(index).groupby(index).indices
        ranks = np.empty(len(r))
        for start in range(0, len(places), PLACES):
            part = slice(start, start + PLACES)
            for place, line in enumerate(self._table(places[part], words[part]), start):
                ranks[members[place]] = np.interp(r[members[place]], self.levels, line)
        return np.interp(ranks, SHARES, self.quantiles)

    def _grid(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Choose the step of the grid of S, and return the places as :meth:`_places` does."""
        self.step = _FINEST
        while True:
            places, words, index = self._places(frame)
            if len(places) <= max(PLACES, len(set(words))):
                return places, words, index
            # Several attributes, or one with a few huge values.
            self.step *= 2.0

    def _places(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distinct places, numbers on the grid and joined categories, and each row's."""
        frame = self.basis.in_order(frame)
        numbers = np.clip(self.basis.numbers(frame), self.basis.low, self.basis.high)
        table = pd.DataFrame(np.rint((numbers - self.basis.low) / (self.step * self.width)))
        table["words"] = ""
        for name in self.basis.levels:
            table["words"] += "\n" + frame[name].to_numpy()
        index = table.groupby(list(table), sort=False).ngroup().to_numpy()
        table = table.drop_duplicates()
        return table.drop(columns="words").to_numpy(), table["words"].to_numpy(object), index

    def _count(self, r: np.ndarray, index: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the weight of the samples at each place and level."""
        last = len(self.levels) - 1
        level = np.searchsorted(self.levels, r, side="left").clip(max=last)
        rows, columns = len(self.places), len(self.levels)
        cell = index * columns + level
        return np.bincount(cell, weights=w, minlength=rows * columns).reshape(rows, columns)

    def _table(self, places: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the mid-ranks F(level | place)."""
        squares = np.zeros((len(places), len(self.places)))
        for new, known in zip(places.T, self.places.T, strict=True):
            squares += (self.step * (new[:, None] - known)) ** 2
        same = words[:, None] == self.words
        # A combination of categories that fit did not have borrows from all.
        same |= ~same.any(1, keepdims=True)
        squares = np.where(same, squares, np.inf)
        nearest = squares.min(1, keepdims=True)
        table = np.exp(-0.5 * (squares - nearest)) @ self.counts
        table /= table.sum(1, keepdims=True)
        return np.cumsum(table, axis=1) - 0.5 * table


def _levels(r: np.ndarray) -> np.ndarray:
    """Return the distinct numbers, or 400 of their quantiles."""
    distinct = np.unique(r)
    if len(distinct) <= LEVELS:
        return distinct
    return np.unique(np.quantile(r, np.linspace(0, 1, LEVELS)))
