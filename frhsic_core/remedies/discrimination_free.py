"""Discrimination-free prices: the best estimate, averaged over S with weights that ignore X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.remedies.people import People
from frhsic_core.remedies.plain import WITH_S
from frhsic_core.remedies.remedy import FittedModel, Remedy

_PLACES = 15  # of S, over which an estimate is averaged


class DiscriminationFree(Remedy):
    r"""Average a model that sees S over S, whatever the person's X; S is not needed to predict.

    .. math:: f(x) = \int h(x, s)\, dP_S(s),\qquad h(x, s) = E[y \mid X = x, S = s]

    (Lindholm, Richman, Tsanakas and Wüthrich, 2022). A model of X alone is
    E[h(x, S) | X = x]: it guesses S from x and prices the guess. This one gives every x the same
    distribution of S, so no column works as a stand-in for S. The mean score is that of h on
    average over independent X and S, and usually another one than before.

    **Its weakness.** f is a function of x, and x still depends on S: if y = x + s and x rises with
    s, f(x) = x + E[S] rises with s, too. It removes what S does through the *guess*, not the
    dependence of f(X) on S; where X and S affect y with opposite signs, the dependence even grows.

    The integral is a mean over fifteen people with evenly spaced ranks of S, or over fifteen random
    people if there are several attributes.
    """

    def fit(self, people: People, name: Any, *, seed: int = 0) -> Averaged:
        return Averaged(WITH_S.fit(people, name, seed=seed), places_of(people.s))


class Averaged:
    """Predictions of a model that sees S, averaged over places of S."""

    def __init__(self, model: FittedModel, places: pd.DataFrame) -> None:
        self.model = model
        self.places = places

    def __call__(self, x: Any, s: pd.DataFrame | None) -> np.ndarray:
        total = np.zeros(len(x))
        for row in range(len(self.places)):
            same = self.places.iloc[[row] * len(x)].reset_index(drop=True)
            total += self.model(x, same)
        return total / len(self.places)


def places_of(s: pd.DataFrame) -> pd.DataFrame:
    """Return attributes of a few people that stand for all.

    Examples
    --------
    >>> places_of(pd.DataFrame({"age": np.arange(31.0)}))["age"].tolist()[:4]
    [1.0, 3.0, 5.0, 7.0]
    """
    order = np.random.default_rng(0).permutation(len(s))
    if s.shape[1] == 1:
        order = np.argsort(s.iloc[:, 0].to_numpy(), kind="stable")
    count = min(_PLACES, len(s))
    shares = (np.arange(count) + 0.5) / count
    rows = order[(shares * len(s)).astype(int)]
    return s.iloc[rows].reset_index(drop=True)
