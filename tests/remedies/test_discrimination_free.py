"""Discrimination-free prices: no column stands in for S, and the known weakness."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from frhsic_core.remedies.attributes import read_attributes
from frhsic_core.remedies.catalog import REMEDIES
from frhsic_core.remedies.discrimination_free import places_of
from frhsic_core.remedies.people import People
from frhsic_core.remedies.tasks import TASKS


def sample(effect: float) -> People:
    """Return people whose x rises with s by half, and whose y is x plus an effect of s."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=3000)
    x = 0.5 * s + rng.normal(size=3000)
    y = x + effect * s + 0.1 * rng.normal(size=3000)
    return People(x[:, None], y, read_attributes(s, 3000), TASKS["regression"])


def slopes(key: str, people: People) -> tuple[float, float]:
    """Return how predictions rise with x, and their covariance with s per variance of s."""
    predicted = REMEDIES[key].fit(people, LinearRegression())(people.x, None)
    s = people.s.iloc[:, 0].to_numpy()
    along = np.polyfit(people.x[:, 0], predicted, 1)[0]
    return float(along), float(np.cov(predicted, s)[0, 1] / s.var())


def test_no_column_stands_in_for_the_attribute() -> None:
    """A model of x alone prices a guess of s, here Cov(x, s) / Var(x) = 0.4 of it for each x."""
    people = sample(effect=1.0)
    assert slopes("none", people)[0] == pytest.approx(1.4, abs=0.03)
    assert slopes("price", people)[0] == pytest.approx(1.0, abs=0.02)


def test_its_weakness() -> None:
    """x itself tells s, so the price rises with s; against the effect of s it rises more than before."""
    with_effect, against = sample(effect=1.0), sample(effect=-1.0)
    assert slopes("price", with_effect)[1] == pytest.approx(0.5, abs=0.05)
    assert slopes("none", with_effect)[1] == pytest.approx(0.7, abs=0.05)
    assert slopes("price", against)[1] == pytest.approx(0.5, abs=0.05)
    assert slopes("none", against)[1] == pytest.approx(0.3, abs=0.05)


def test_the_places_stand_for_all() -> None:
    rng = np.random.default_rng(0)
    age = pd.DataFrame({"age": rng.uniform(0, 1, 2000)})
    np.testing.assert_allclose(places_of(age)["age"], (np.arange(15) + 0.5) / 15, atol=0.03)
    both = age.assign(sex=rng.choice(["f", "m"], 2000))
    assert len(places_of(both)) == 15
    assert set(places_of(both)["sex"]) == {"f", "m"}
    assert len(places_of(age[:4])) == 4
