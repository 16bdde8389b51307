"""The variants: their plans, and the rule that chooses among the candidates."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.learning.penalties import make_penalty
from frhsic_core.paper.experiments.comparison import named
from frhsic_core.paper.experiments.variants import (
    CANDIDATES,
    MEASURES,
    RECOMMENDED,
    RIVALS,
    rival_rows,
    shortfalls,
)

# The recommended form ------------------------------------------------------------------------------------------------


def test_candidates_are_different_and_can_be_built() -> None:
    assert (
        len({c.name for c in CANDIDATES})
        == len({(c.settings, c.dimension) for c in CANDIDATES})
        == 24
    )
    assert RECOMMENDED in {c.name for c in CANDIDATES}
    assert len(RIVALS) == len(set(RIVALS)) == 12
    for candidate in CANDIDATES:
        assert (
            make_penalty("frhsic", protocol="reference", **dict(candidate.settings)).key == "frhsic"
        )


def rows_of(points: dict[tuple[str, str], dict[str, float]]) -> pd.DataFrame:
    """One λ for each name on each dataset, accuracy .8, with the given dependence by each measure."""
    base = {
        "variant": "reference",
        "protocol": "reference",
        "task": "classification",
        "split": 42,
        "constant": 0.5,
    }
    lines = []
    for dataset in ("compas", "acs_income"):
        unfair = {
            "method": "unfair",
            "option": "",
            "lam": 0.0,
            "performance": 0.8,
            **dict.fromkeys(MEASURES, 1.0),
        }
        low = unfair | {
            "method": "frem",
            "lam": 1.0,
            "performance": 0.5,
            **dict.fromkeys(MEASURES, 1.0),
        }
        lines += [{**base, "dataset": dataset, **line} for line in (unfair, low)]
    for (dataset, name), dependence in points.items():
        method, _, option = name.partition(":")
        line = {
            "dataset": dataset,
            "method": method,
            "option": option,
            "lam": 1.0,
            "performance": 0.8,
        }
        lines.append(base | line | dependence)
    return named(pd.DataFrame(lines))


def test_the_rule_by_hand() -> None:
    """With one λ the area is one minus the dependence: the worst measure counts, averaged over the datasets."""
    a, b = CANDIDATES[0].name, CANDIDATES[1].name
    points = {}
    for dataset, worst in (("compas", 0.5), ("acs_income", 0.3)):
        points[dataset, "dcor"] = dict.fromkeys(MEASURES, 0.2)
        points[dataset, a] = dict(
            zip(MEASURES, (0.0, 0.0, worst), strict=True)
        )  # good by GDP alone
        points[dataset, b] = dict.fromkeys(MEASURES, 0.3)
    table = shortfalls(rows_of(points))
    assert list(table.index) == [b, a]
    assert table["score"].to_dict() == pytest.approx({a: 0.5 * (0.3 + 0.1), b: 0.1}, abs=0.01)


def test_a_tie_goes_to_the_earlier_candidate() -> None:
    points = {}
    for dataset in ("compas", "acs_income"):
        points[dataset, "dcor"] = dict.fromkeys(MEASURES, 0.2)
        for candidate in (CANDIDATES[5], CANDIDATES[2]):
            points[dataset, candidate.name] = dict.fromkeys(MEASURES, 0.4)
    assert list(shortfalls(rows_of(points)).index) == [CANDIDATES[2].name, CANDIDATES[5].name]


def test_rivals_come_from_both_sweeps() -> None:
    main = pd.DataFrame({"method": ["unfair", "frhsic", "dcor"], "option": ""})
    best = pd.DataFrame(
        {"method": ["dcor", "frhsic", "frhsic"], "option": ["narrow", "narrow", "default"]}
    )
    same = {"variant": "reference", "protocol": "reference", "dataset": "compas"}
    kept = named(rival_rows(main.assign(**same), best.assign(**same)))
    assert set(kept["name"]) == {"unfair", "dcor", "dcor:narrow"}
