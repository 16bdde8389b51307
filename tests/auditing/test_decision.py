"""The report serves a decision: who gets lower scores, whether it is much, and whether it is so in fact."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from frhsic_core import audit, gdp_curve
from frhsic_core.auditing._curves import telling_pair
from frhsic_core.auditing._pictures import curve_svg
from frhsic_core.auditing.changes import change_report
from frhsic_core.inputs.columns import Column


def scored(n: int, slope: float, seed: int = 0) -> pd.DataFrame:
    """Return people of 20 to 69 whose mean score is .5 plus ``slope`` times the years above 45."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n).astype(float)
    p = np.clip(0.5 + slope * (age - 45) + 0.1 * rng.normal(size=n), 0.0, 1.0)
    return pd.DataFrame({"p": p, "age": age, "hired": (rng.random(n) < p).astype(int)})


def test_a_valley_is_not_missed() -> None:
    """People of 30 and of 60 have the same mean; those of 45 have .25 less than the oldest."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 71, 3000).astype(float)
    p = np.clip(0.3 + 0.0004 * (age - 45) ** 2 + 0.05 * rng.normal(size=3000), 0.0, 1.0)
    pair = telling_pair(gdp_curve(p, age))
    assert 40 <= pair.lower <= 50
    assert abs(pair.higher - 45) >= 20
    assert pair.low > 0.8 * 0.0004 * 20**2
    said = audit(p, sensitive_features={"age": age}).sentences[0]
    assert re.match(r"People with age 4\d get lower scores than people with age \d\d, by 0.2", said)
    assert re.search(r"The means also (rise|fall) by 0.\d+ between \d\d and \d\d.", said)


def test_of_incomes_the_two_people_are_where_people_are() -> None:
    rng = np.random.default_rng(2)
    income = np.exp(rng.normal(10, 1, 4000)).round(2)
    p = np.clip(0.2 + 0.05 * (np.log(income) - 10) + 0.05 * rng.normal(size=4000), 0.0, 1.0)
    pair = telling_pair(gdp_curve(p, income))
    assert pair.lower < np.quantile(income, 0.2)
    assert pair.higher > np.quantile(income, 0.8)


def test_without_a_limit_an_example_says_how_it_would_end() -> None:
    above = scored(2000, 0.01)
    found = audit(above["p"], sensitive_features=above["age"])
    (status,) = found.status
    assert status.kind == "none"
    assert str(status).startswith(
        "No limit was set for the mean gap along age. With a limit of 0.05 it would be above: 0.13"
    )
    assert str(status) in " ".join(re.sub("<[^>]+>", "", found.to_html()).split())


def test_without_a_limit_the_guarantee_says_how_many_people_it_needs() -> None:
    below = scored(300, 0.0005)
    found = audit(below["p"], sensitive_features=below["age"])
    (status,) = found.status
    assert "it would be below" in str(status)
    more = found.bound.more_rows(0.05)
    assert more > 0
    assert f"would be with {more:,} more people and the same estimates." in str(status)


def test_amounts_are_compared_with_a_limit_in_standard_deviations() -> None:
    table = scored(500, 0.01)
    found = audit(1000 * table["p"], sensitive_features=table["age"])
    assert "With a limit of 0.1 standard deviations it would be above" in str(found.status[0])


def test_a_limit_replaces_the_example_and_four_fifths_come_first() -> None:
    table = scored(2000, 0.01)
    found = audit(table["p"], sensitive_features=table["age"], threshold=0.5)
    assert [status.badge for status in found.status] == ["Below four fifths", "No limit was set"]
    assert found.status[0].text in found.sentences
    assert "of the people with age 20 to " in found.status[0].text


def test_outcomes_that_follow_the_scores_and_outcomes_that_do_not() -> None:
    table = scored(4000, 0.008)
    given = {"sensitive_features": table["age"], "threshold": 0.5}
    follows = audit(table["p"], y_true=table["hired"], **given)
    assert "In fact the share of label 1 of hired is lower, too, for age 2" in str(follows)
    coin = pd.Series(np.random.default_rng(3).integers(0, 2, len(table)), name="hired")
    assert "Whether the share of label 1 of hired is lower in fact" in str(
        audit(table["p"], y_true=coin, **given)
    )
    opposite = pd.Series(1 - table["hired"], name="hired")
    said = str(audit(table["p"], y_true=opposite, **given))
    assert "In fact the share of label 1 of hired is higher for age 2" in said
    assert "the scores go the other way" in said


def test_the_report_names_the_model_and_the_condition_of_its_guarantee() -> None:
    table = scored(400, 0.01)
    found = audit(table["p"], sensitive_features=table["age"], model="hiring 1.2")
    page = found.to_html()
    assert "<h1>Audit of hiring 1.2 by age</h1>" in page
    cards = page.partition('class="cards"')[2].partition("<h3>")[0]
    assert "if these people neither trained, adjusted nor chose the model" in cards
    assert "mean gap" in cards
    assert "GDP" not in page.partition("How to read this")[0].partition("<details>")[0]
    assert audit(table["p"], sensitive_features=table["age"]).title == "Audit of the scores by age"


def test_the_last_people_are_named() -> None:
    """77 people from 82 on get .4 more: the sentences name them."""
    rng = np.random.default_rng(4)
    age = np.concatenate([rng.integers(18, 82, 8000), rng.integers(82, 95, 77)]).astype(float)
    p = np.clip(0.3 + 0.1 * rng.normal(size=len(age)) + 0.4 * (age >= 82), 0.0, 1.0)
    said = str(audit(p, sensitive_features={"age": age}))
    group = re.search(r"the (\d+) people with age (\d+) to (\d+) are most certainly apart", said)
    assert group is not None
    assert (int(group[2]) >= 81, int(group[3])) == (True, 94)


def test_a_level_that_is_missing_after_an_adjustment_moves_no_other() -> None:
    """The picture has the levels of the new curve; those of the old one stand beside their own."""
    codes = np.repeat([0.0, 1.0, 2.0], 40)
    means = np.array([0.2, 0.5, 0.8])[codes.astype(int)] + np.tile([-0.01, 0.01], 60)
    town = Column("town", codes, ("east", "north", "south"))
    after = np.where(codes == 1.0, np.nan, means)
    known = np.ones(120, dtype=bool)
    _, page = change_report(Column("p", means), after, [town], known, fitted_on="others")
    places = re.findall(r'class="(point before|point)" cx="([\d.]+)" cy="([\d.]+)"', page)
    old = [(float(x), float(y)) for kind, x, y in places if kind == "point before"]
    new = [(float(x), float(y)) for kind, x, y in places if kind == "point"]
    # East and south have the same means before and after: each pair stands side by side.
    assert [y for _, y in old] == pytest.approx([y for _, y in new], abs=0.1)
    assert len(old) == 2


def test_a_picture_of_shares_stays_within_its_range() -> None:
    table = scored(120, 0.02)
    found = audit(table["p"], sensitive_features=table["age"])
    assert found.curve.high[found.curve.inside].max() > 1.0
    drawn = curve_svg(found["age"], found.curve, label="mean")
    assert str(drawn) not in found.to_html()
    top = [float(y) for y in re.findall(r'class="grid"[^>]* y1="([\d.]+)"', found.to_html())]
    assert min(top) > 16
