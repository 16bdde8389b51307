"""Guards the sentences of the chapter on audits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from frhsic_core.conditional import Curve
from frhsic_core.paper.experiments.audit_examples import stored_curve
from frhsic_core.paper.experiments.levels_and_coverage import coverage
from frhsic_core.paper.stored import stored_rows


@pytest.fixture(scope="module")
def curves() -> dict[str, Curve]:
    rows = stored_rows("audit_examples")
    return {name: stored_curve(rows, name) for name in ("adult", "compas")}


def test_six_points_are_more_than_on_compas_and_less_than_on_adult(
    curves: dict[str, Curve],
) -> None:
    assert curves["compas"].gdp_high < 0.06 < curves["adult"].gdp_low


def test_two_groups_of_adult_hide_most_of_the_curve(curves: dict[str, Curve]) -> None:
    curve = curves["adult"]
    younger = np.cumsum(curve.share) < 0.5
    assert curve.mean[younger].min() < 0.02
    assert 0.30 < curve.mean[younger].max() < 0.36
    means = [
        np.average(curve.mean[part], weights=curve.share[part]) for part in (younger, ~younger)
    ]
    assert means[1] - means[0] < 0.5 * (curve.mean[curve.inside].max() - curve.mean.min())


def test_the_band_covers_a_little_less_than_it_should_and_the_interval_more() -> None:
    found = coverage(stored_rows("audit_coverage"))
    assert 0.93 < found["band"].mean() < 0.945
    assert found["interval"].mean() > 0.97
    worst = found.loc[found["band"].idxmin()]
    assert (worst["law"], worst["shape"], worst["n"]) == ("log-normal", "wave", 200)
    # It alone covers too rarely beyond chance.
    rows = stored_rows("audit_coverage").set_index(["law", "shape", "score", "n"])
    assert set(rows.index.get_level_values("n")) == {200, 2000, 20_000}
    chance = stats.binom.cdf(rows["band"], rows["draws"], 0.95) * len(rows)
    assert list(rows.index[chance < 0.05]) == [("log-normal", "wave", "probability", 200)]


def test_the_numbers_of_the_hiring_table(printed) -> None:
    gdp, low, high, chance, p = printed.numbers("audit_your_model", "mean gap (GDP)")
    assert chance < low < gdp < high
    assert p <= 0.01
    assert printed.numbers("audit_your_model", "4. chosen of the youngest quarter")[-1] < 0.8
    assert "Inside the group from 45.4 to 57.5 alone" in printed.words(
        "audit_your_model", "- A table with 4 groups"
    )
