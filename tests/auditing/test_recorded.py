"""Whole reports are those in ``golden``: every word exactly, every number up to one unit of its last digit.

``pytest --record tests/auditing/test_recorded.py`` writes the files again. They are what a reader gets, one element of
the page on a line: read the difference.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from records import Records
from sklearn import config_context

from frhsic_core import __version__, audit, audit_representation
from frhsic_core.auditing import Audit, _measuring, _statistics
from frhsic_core.auditing._pictures import Frame, ticks
from frhsic_core.auditing._words import number, percent, short
from frhsic_core.auditing.changes import change_report
from frhsic_core.inputs.columns import Column, far_codes
from frhsic_core.inputs.files import read_table


def scores(table: pd.DataFrame) -> Audit:
    """Two attributes, a label, a control, thresholds that hold, fail and stay open, and a file as the source."""
    given = {
        "sensitive_features": table[["age", "group"]],
        "y_true": table["hired"],
        "control_features": table["skill"],
    }
    found = audit(table["score"], **given, threshold=0.5, model="a logistic model")
    verdicts = found.check("gdp[age]=0.2", "gdp=0.01") + found.check(
        "gdp[age]=0.1", "gdp[age]=0.4", guaranteed=True
    )
    return replace(found, verdicts=tuple(verdicts), provenance={"file": "people.csv"})


def decisions(table: pd.DataFrame) -> Audit:
    """Decisions in words about a few ages, with weights."""
    given = {"sensitive_features": table[["group"]].assign(age=table["age"] // 20 * 20)}
    given["sample_weight"] = 1 + table["skill"].abs()
    words, label = (np.where(table[name] > 0.6, "yes", "no") for name in ("score", "hired"))
    return audit(words, **given, y_true=label, positive_class="yes")


def amounts(table: pd.DataFrame) -> Audit:
    """Shares without a label, some of them missing, about an age of which nobody has the same."""
    amount = (0.9 * table["score"]).where(table["skill"] < 1.5).rename("share")
    return audit(
        amount, sensitive_features=table["age"] + 1e-3 * np.arange(len(table)), unit="customers"
    )


def points(table: pd.DataFrame) -> Audit:
    """Points of a scorecard at a threshold, with a label of words, some of them missing, and another level."""
    label = table["hired"].map({0: "no", 1: "yes"}).where(table["skill"] > -1.5)
    ages = table["age"].where(table["skill"] < 1.5, np.inf)
    given = {"sensitive_features": ages, "y_true": label, "positive_class": "yes"}
    return audit(
        9e6 * (table["score"] - 0.6).clip(0), **given, threshold=1e6, alpha=0.2, random_state=3
    )


def towns(table: pd.DataFrame) -> Audit:
    """Two attributes in words, decisions at a threshold, weights, a control of few values, and labels on a scale."""
    town = (
        pd.Series(["A", "a town with a long name", "C & D", "E|F", "G", "H"])
        .loc[table["age"] % 6]
        .to_numpy()
    )
    given = {
        "control_features": {"grade": table["skill"].round(), "town": town},
        "sample_weight": table["age"] // 30,
    }
    both = pd.DataFrame({"town": town, "group": table["group"].where(table["skill"] < 1.5)})
    return audit(
        table["score"], sensitive_features=both, y_true=table["score"] ** 2, threshold=0.7, **given
    )


def samples(table: pd.DataFrame) -> Audit:
    """Tiny amounts in more rows than some statistics use, controls, real labels, and a user's routing of metadata."""
    rows = {"PROBE_ROWS": 60, "KHGR_ROWS": 30, "FIT_ROWS": 50}
    given = {
        "control_features": table[["skill", "hired"]],
        "sample_weight": table["age"],
        "alpha": 0.1,
    }
    both = table[["age"]].assign(exp=np.exp(table["skill"]))
    with (
        patch.multiple(_statistics, **rows),
        patch.object(_measuring, "TEST_ROWS", 40),
        config_context(enable_metadata_routing=True),
    ):
        return audit(
            1e-5 * table["score"], sensitive_features=both, y_true=2e-5 * table["score"], **given
        )


def constants(table: pd.DataFrame) -> Audit:
    """Everybody has the score zero, and nearly everybody the same value of the attribute."""
    rare = table["age"].where(table["age"] > 70, 0.0)
    return audit(
        np.zeros(150), sensitive_features=rare, y_true=np.ones(150), unit="towns", alpha=0.3
    )


def changes(table: pd.DataFrame) -> str:
    """Report what an adjustment changed, whoever fitted it, also of people and attributes without a curve."""
    before, known = Column("score", table["score"].to_numpy()), (table["skill"] < 1.5).to_numpy()
    after = np.where(table["hired"], 0.5 * before.values + 0.2, np.nan)
    town = Column("town", table["age"].to_numpy() % 24, tuple(f"T{k}" for k in range(24)))
    columns = [Column("age", table["age"].to_numpy()), town, Column("one", np.ones(150))]
    texts = [
        change_report(before, after, columns, known, fitted_on=on)
        for on in ("others", "half", "itself")
    ]
    texts.append(
        change_report(before, after, columns, known & (before.values > 0.95), fitted_on="half")
    )
    return "\n".join(
        [
            *texts[0][0],
            texts[0][1],
            *(line for said, page in texts[1:] for line in (*said, page[:9])),
        ]
    )


def representations(table: pd.DataFrame) -> str:
    """Audit a stack of representations with constant, collinear and rescaled coordinates, by two attributes."""
    table["wave"] = np.cos(table["age"] / 9)
    s, z = (
        table[["age", "hired"]].to_numpy(float),
        table[["skill", "score", "wave", "skill"]].to_numpy(),
    )
    z = np.stack([z, z * [1e-9, 1.0, 0.0, 1e9], np.cos(z)])
    found = audit_representation(
        z, s, predictions=z[..., 1], max_rows=90, features=40, random_state=2, chunk_size=2
    )
    return "\n".join(
        f"{name} {' '.join(f'{x:.4f}' for x in value)}" for name, value in found.as_dict().items()
    )


def words(table: pd.DataFrame) -> str:
    """Numbers, shares, names and axes of every size, calls, and codes far from all other values."""
    sizes = [
        sign * digits * 10.0**k
        for k in range(-14, 13)
        for digits in (1, 2.5, 9.9996)
        for sign in (1, -1)
    ]
    lines = [
        f"{x:g} {number(x)} {percent(min(abs(x), 1.0))}"
        for x in (0.0, np.nan, 0.0995, 0.0994, *sizes)
    ]
    lines += [
        f"{x} {u} {number(x, unit=u)}"
        for x in (0.0, -1234.5678)
        for u in (0.0, 1e-6, 1e-4, 1e-3, 0.2, 1.0, 1e9)
    ]
    lines += [
        f"{a:g} {b:g} {ticks(a, a + b)[1]}" for a in (-9e4, 0.0, 0.71) for b in (0.0, *sizes[::2])
    ]
    lines += [
        f"{call.__name__} {inspect.signature(call)}"
        for call in (audit, audit_representation, read_table)
    ]
    lines += [short("  a\n b "), short(""), short("x" * 60), short("x" * 61)]
    ages = np.arange(18.0, 90.0)
    lines += [
        audit(k * abs(table["age"] - 49), sensitive_features=table["age"]).sentences[0]
        for k in (1, -1)
    ]
    for codes in ([-999, 999], [-9, 300], [999.5], [9e9, 9e9, 9e8], [400, np.nan]):
        lines += [
            far_codes(np.array([*some, *codes]), "age") for some in (ages, ages[:10], ages[:9])
        ]
    frames = (Frame((2.0, 2.0), (1.0, 1.0)), Frame((-2.0, 3.0), (0.0, 1.0)))
    return "\n".join(
        [
            *lines,
            *(f"{frame.x(2.0):.1f} {frame.y(1.0):.1f} {frame.bar(1, 2, 0.5)}" for frame in frames),
        ]
    )


CASES = {
    case.__name__: case
    for case in (
        scores,
        decisions,
        amounts,
        points,
        towns,
        samples,
        constants,
        changes,
        representations,
        words,
    )
}


def report(name: str) -> dict[str, str]:
    """Return the files of a case: the page without its style, one element on a line, and the card; or a text."""
    generator = np.random.default_rng(7)
    table = pd.DataFrame(
        {"age": generator.integers(18, 80, 150).astype(float), "skill": generator.normal(size=150)}
    )
    table["group"] = np.where(generator.random(150) < 0.4, "f", "m")
    table["score"] = (1 / (1 + np.exp(-table["skill"] - 0.03 * (table["age"] - 45)))).round(3)
    table["hired"] = (generator.random(150) < table["score"]).astype(int)
    found = CASES[name](table)
    if isinstance(found, str):
        return {f"{name}.txt": by_element(found)}
    found = replace(found, provenance={"date": "2026-01-02"} | found.provenance)
    return {
        f"{name}.html": by_element(found.to_html()).replace(__version__, "VERSION"),
        f"{name}.md": found.to_markdown().replace(__version__, "VERSION"),
    }


def by_element(page: str) -> str:
    """Return a page without its style and without empty lines, one element on a line."""
    plain = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).replace("><", ">\n<")
    lines = [line.strip() for line in plain.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def last_digit(a: str, b: str) -> bool:
    """Whether two numbers are the same up to one unit of the last digit."""
    # A number whose last digit is rounded away has fewer digits, such as 0.1 for 0.0996; zero may have a sign.
    first, second = (Decimal(x).as_tuple().exponent for x in (a, b))
    gap = abs(float(a) - float(b))
    return a == b or (
        "." in a + b and gap <= 1.01 * 10.0 ** max(first, second) and (gap > 0 or first == second)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_the_recorded_one(name: str, recorded: Records) -> None:
    for file, text in report(name).items():
        recorded.text(text, f"golden/{file}", texts=last_digit)
