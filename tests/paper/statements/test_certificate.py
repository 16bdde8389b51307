"""Verdicts are computed from the sides, never typed."""

from __future__ import annotations

import json
import math

import pytest

from frhsic_core.paper.statements.certificate import (
    Certificate,
    equality,
    inequality,
    strict_inequality,
)

CLAIM = "a claim"


@pytest.mark.parametrize(
    ("lower", "middle", "upper", "verdict"),
    [
        (math.nan, 1.0, 2.0, "holds"),
        (math.nan, 1.0, 1.0, "holds"),
        (math.nan, 2.0, 1.0, "fails as stated"),
        (0.0, 1.0, 2.0, "holds"),
        (1.5, 1.0, 2.0, "fails as stated"),
        (math.nan, 1.0 + 1e-14, 1.0, "holds"),
        (math.nan, 1.0 + 1e-9, 1.0, "fails as stated"),
        (math.nan, 1e6 + 1e-7, 1e6, "holds"),  # the tolerance is relative to the largest side
        (-1e6, -1e6 - 1e-7, 0.0, "holds"),
        (-math.inf, 1.0, 2.0, "inconclusive"),
        (math.nan, math.nan, 1.0, "inconclusive"),
        (math.nan, 1.0, math.nan, "inconclusive"),
        (math.nan, 1.0, math.inf, "inconclusive"),
        (math.nan, -math.inf, 1.0, "inconclusive"),
        (math.inf, math.inf, math.inf, "inconclusive"),
    ],
)
def test_inequality(lower: float, middle: float, upper: float, verdict: str) -> None:
    certificate = inequality(CLAIM, lower=lower, middle=middle, upper=upper, evidence="exact")
    assert certificate.verdict == verdict
    assert certificate.holds == (verdict == "holds")


def test_slack_is_the_worst_side() -> None:
    assert inequality(CLAIM, lower=0.0, middle=0.25, upper=2.0, evidence="exact").slack == 0.25


@pytest.mark.parametrize(
    ("left", "right", "holds"), [(1.0, 1.0, True), (0.0, 0.0, True), (1.0, 1.1, False)]
)
def test_equality(left: float, right: float, holds: bool) -> None:
    assert equality(CLAIM, left=left, right=right, evidence="exact").holds == holds


@pytest.mark.parametrize(
    ("left", "right"), [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan), (math.inf, 1.0)]
)
def test_an_undefined_side_certifies_nothing(left: float, right: float) -> None:
    assert equality(CLAIM, left=left, right=right, evidence="exact").verdict == "inconclusive"
    assert (
        strict_inequality(CLAIM, middle=left, upper=right, evidence="exact").verdict
        == "inconclusive"
    )


def test_equality_is_relative() -> None:
    assert not equality(CLAIM, left=1e-20, right=2e-20, evidence="exact").holds
    assert equality(CLAIM, left=1e20, right=1e20 * (1 + 1e-12), evidence="exact").holds


@pytest.mark.parametrize(
    ("middle", "upper", "holds"), [(1.0, 2.0, True), (1.0, 1.0, False), (1.0, 1.0 + 1e-9, False)]
)
def test_strict_inequality_needs_its_margin(middle: float, upper: float, holds: bool) -> None:
    certificate = strict_inequality(CLAIM, middle=middle, upper=upper, evidence="exact")
    assert certificate.holds == holds
    assert certificate.relation == "<"


def test_corrected_verdicts() -> None:
    good, bad = (
        inequality(CLAIM, middle=m, upper=2.0, evidence="exact", corrected=True) for m in (1.0, 3.0)
    )
    ours = inequality(CLAIM, middle=1.0, upper=2.0, evidence="exact", ours=True)
    assert (good.verdict, bad.verdict, ours.verdict) == (
        "holds as corrected",
        "fails as stated",
        "ours: holds",
    )


def test_as_dict_is_json() -> None:
    certificate = inequality(
        CLAIM,
        middle=1.0,
        upper=math.inf,
        evidence="exact",
        details={"n": 3, "flag": True, "x": [1.5, math.nan], "s": "t"},
    )
    values = json.loads(json.dumps(certificate.as_dict(), allow_nan=False))
    assert values["lower"] is None
    assert values["upper"] is None
    assert values["details"] == {"n": 3, "flag": True, "x": [1.5, None], "s": "t"}
    assert set(values) == set(Certificate.__dataclass_fields__)
