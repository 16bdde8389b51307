"""Tricks to pass a gate with a real gap: each is refused, or visible in the verdict.

One table for all: people whose score rises with age, so that GDP is about .1. Each trick changes the table so that a
gate would pass. The verdict must be another one, say what was done, or be refused with a reason.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from frhsic_core import audit
from frhsic_core.auditing import Verdict
from frhsic_core.auditing._rows import Copies, find_copies, left_out, two_sample_pvalue
from frhsic_core.inputs.columns import read_columns


def people(n: int = 2000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    p = np.clip(0.3 + 0.006 * (age - 49) + 0.08 * rng.normal(size=n), 0.0, 1.0)
    return pd.DataFrame({"p": p, "age": age, "w": np.ones(n)})


def old(table: pd.DataFrame) -> pd.Series:
    return table["age"] > 35


def no_score(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(p=table["p"].where(~old(table)))


def no_age(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(age=table["age"].where(~old(table)))


def no_weight(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(w=table["w"].where(~old(table)))


def weight_zero(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(w=np.where(old(table), 0.0, 1.0))


def weight_tiny(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(w=np.where(old(table), 1e-6, 1.0))


def smaller_unit(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(p=table["p"] / 1000)


def one_huge_score(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(p=np.where(table.index == 0, 1e6, table["p"].round(2)))


def pasted(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table[:150]] * 50, ignore_index=True)


def many_of_one_age(table: pd.DataFrame) -> pd.DataFrame:
    added = pd.DataFrame({"p": np.full(12_000, 0.3), "age": 49.0, "w": 1.0})
    added["p"] += 0.08 * np.random.default_rng(1).normal(size=12_000)
    return pd.concat([table, added.clip(lower=0.0)], ignore_index=True)


def two_ages(table: pd.DataFrame) -> pd.DataFrame:
    spread = np.abs(table["age"] - 49)
    p = 0.2 + 0.01 * spread
    return table.assign(p=p, age=np.where(table["age"] > 49, 60.0, 30.0))


def flips(table: pd.DataFrame) -> pd.DataFrame:
    age = np.sort(np.random.default_rng(2).uniform(20, 70, len(table)))
    side = np.where(np.floor(age * 5) % 2 == 0, 0.3, -0.3)
    return table.assign(age=age, p=0.5 + side)


def spread_only(table: pd.DataFrame) -> pd.DataFrame:
    noise = np.random.default_rng(3).choice([-1.0, 1.0], len(table))
    return table.assign(p=0.5 + noise * 0.006 * (table["age"] - 17))


def last_people(table: pd.DataFrame) -> pd.DataFrame:
    noise = 0.1 * np.random.default_rng(4).normal(size=len(table))
    return table.assign(p=np.clip(0.4 + noise + 0.4 * (table["age"] >= 78), 0.0, 1.0))


def months(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(control=12 * table["age"])


def five_years(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(control=table["age"] // 5)


@dataclass(frozen=True)
class Trick:
    """What was done, the gate, whether a strict gate fails, and what the verdict says."""

    change: Callable[[pd.DataFrame], pd.DataFrame]
    gate: str
    says: str
    strict_fails: bool = False
    options: tuple[str, ...] = ()


TRICKS = {
    "no score for the old": Trick(no_score, "gdp=0.09", "p is missing in .* differ", True),
    "no age for the old": Trick(no_age, "gdp=0.09", "age is missing in .* differ", True),
    "no weight for the old": Trick(
        no_weight, "gdp=0.09", "w is missing in .* differ", True, ("weights",)
    ),
    "weight 0 for the old": Trick(
        weight_zero, "gdp=0.09", "w is zero in .* differ", True, ("weights",)
    ),
    "weight 1e-6 for the old": Trick(
        weight_tiny, "gdp=0.09", "w is below 1 % of its mean in .* differ", True, ("weights",)
    ),
    "scores divided by 1000": Trick(
        smaller_unit, "gdp=0.05", "of the standard deviation of the scores"
    ),
    "one huge score": Trick(
        one_huge_score, "gdp_over_sd=0.3", "values far from all others .* 1e.06"
    ),
    "rows pasted 50 times": Trick(
        pasted, "gdp=0.3", "7,500 rows are only 150 different ones.* 50 times", True
    ),
    "12,000 people of one age": Trick(
        many_of_one_age, "gdp=0.05", r"8\d% of the people have age 49"
    ),
    "two values of age": Trick(two_ages, "gdp=0.05", "age has only two values"),
    "the sign flips": Trick(
        flips, "gdp=0.1", "neighbors in age are more alike than the curve", True
    ),
    "a gap in the spread only": Trick(
        spread_only, "gdp=0.05", "do depend on age .* in another way than in their mean"
    ),
    "a gap of the last people": Trick(
        last_people, "gdp=0.05", "the mean score of the .* certainly more than the threshold"
    ),
    "the control is the attribute": Trick(
        months, "gdp_given=0.05", "control explains 100% of age", True, ("control",)
    ),
    "the control is the age in five years": Trick(
        five_years, "gdp_given=0.05", "control explains 9.% of age", True, ("control",)
    ),
}


def gate(trick: Trick) -> tuple[Verdict, Verdict]:
    """Return the verdict, and the strict one."""
    table = trick.change(people())
    given = {"sensitive_features": table["age"]}
    if "weights" in trick.options:
        given["sample_weight"] = table["w"]
    if "control" in trick.options:
        given["control_features"] = table["control"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values far from all others
        found = audit(table["p"], **given)
    return found.check(trick.gate)[0], found.check(trick.gate, strict=True)[0]


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_visible_in_the_verdict(name: str) -> None:
    trick = TRICKS[name]
    verdict, strict = gate(trick)
    assert verdict.outcome == "below"  # the trick works
    assert re.search(trick.says, str(verdict)), str(verdict)
    assert (strict.status == 1) == trick.strict_fails
    assert (strict.outcome == "doubtful") == trick.strict_fails


def test_the_honest_table_fails_the_gate_and_has_no_doubt() -> None:
    table = people()
    found = audit(table["p"], sensitive_features=table["age"])
    assert found.check("gdp=0.05")[0].outcome == "above"
    passed = found.check("gdp=0.2", strict=True)[0]
    assert (passed.outcome, passed.doubts) == ("below", ())


UNREACHABLE = {
    "percent": ("gdp=5", "gdp is at most 0.5 .* If 5 are percent, write gdp=0.05"),
    "the largest possible mean gap": ("gdp=0.5", "can never fail"),
    "an impact gap in percent": ("impact_gap=20", "impact_gap is at most 1.* write impact_gap=0.2"),
    "more than a standard deviation": ("gdp_over_sd=1.5", "gdp_over_sd is at most 1"),
    "more than the whole range": ("max_gap=1", "max_gap is at most 1 for scores from 0 to 1"),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_threshold_that_can_never_fail_is_refused(name: str) -> None:
    text, message = UNREACHABLE[name]
    table = people(300)
    found = audit(table["p"], sensitive_features=table["age"], threshold=0.3)
    with pytest.raises(ValueError, match=message):
        found.check(text)


def test_amounts_have_the_limit_of_their_own_range() -> None:
    table = people(300)
    found = audit(900 + 100 * table["p"], sensitive_features=table["age"])
    assert found.check("gdp=5")[0].limit == 5.0
    with pytest.raises(ValueError, match="can never fail"):
        found.check("gdp=60")


def test_pasted_rows_have_no_guarantee() -> None:
    table = pasted(people())
    found = audit(table["p"], sensitive_features=table["age"])
    with pytest.raises(
        ValueError, match=r"occur 50 times \(150 are different\). Remove the copies"
    ):
        found.check("gdp=0.3", guaranteed=True)


def test_weights_say_for_how_many_people_they_count() -> None:
    table = people()
    weight = np.where(table["age"] > 70, 10.0, 0.1)
    expected = f"{weight.sum() ** 2 / (weight**2).sum():,.0f}"
    found = audit(table["p"], sensitive_features=table["age"], sample_weight=weight)
    assert f"2,000 rows count like {expected} rows of equal weight" in " ".join(found.sentences)
    even = audit(table["p"], sensitive_features=table["age"], sample_weight=np.full(2000, 3.0))
    assert "equal weight" not in " ".join(even.sentences)


def test_no_p_value_is_zero() -> None:
    verdict = gate(TRICKS["no score for the old"])[0]
    assert "(p < 0.0001)" in str(verdict)
    assert "p = 0)" not in str(verdict)


def copies(values: np.ndarray, ages: np.ndarray) -> Copies:
    return find_copies(read_columns(values, ages))


def test_equal_rows_of_different_people_are_no_copies() -> None:
    """Decisions about a few ages, coarse scores, and scores that age decides: their numbers of twins vary."""
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, 4000).astype(float)
    assert not copies(rng.integers(0, 2, 4000).astype(float), ages).pasted
    assert not copies(rng.random(4000).round(1), ages).pasted
    assert not copies(ages / 100, ages).pasted
    assert not copies(rng.random(4000), ages).pasted


PASTED = {
    "twice": lambda v: np.repeat(v, 2),
    "fifty times": lambda v: np.tile(v, 50),
    "fifty times and a few more": lambda v: np.concatenate([np.tile(v, 50), v[:60] + 1e-3]),
    "some of them ten times": lambda v: np.concatenate([v, np.tile(v[:200], 10)]),
}


@pytest.mark.parametrize("name", PASTED)
def test_copies_are_found(name: str) -> None:
    rng = np.random.default_rng(1)
    rows = PASTED[name](np.arange(400.0))
    scores, ages = rng.random(1000), rng.integers(18, 80, 1000).astype(float)
    assert copies(scores[rows.astype(int)] + rows % 1, ages[rows.astype(int)]).pasted


def test_the_test_of_two_samples_has_its_level() -> None:
    """Of 400 pairs with one distribution, at most so many are rejected; with another one nearly all are."""
    rng = np.random.default_rng(2)
    for draw in (lambda n: rng.normal(size=n), lambda n: rng.integers(0, 3, n).astype(float)):
        rejected = [two_sample_pvalue(draw(20), draw(300)) <= 0.05 for _ in range(400)]
        assert sum(rejected) <= 36  # once in 10,000 tries
        other = [two_sample_pvalue(draw(40) + 1.0, draw(300)) <= 0.05 for _ in range(40)]
        assert sum(other) >= 36


def test_people_left_out_at_random_are_no_doubt() -> None:
    """Of 40 tables with scores that are missing at random, one in twenty may be doubted."""
    doubted = 0
    for seed in range(40):
        table = people(300, seed)
        lost = np.random.default_rng(seed).random(300) < 0.2
        found = left_out(read_columns(table["p"].where(~lost), table["age"]), 0.05, 0)
        doubted += any(entry.differs for entry in found)
        assert found[0].rows == lost.sum()
    assert doubted <= 9
