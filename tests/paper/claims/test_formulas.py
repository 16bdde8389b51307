"""Expressions of the ledger have the value of pandas, and cannot run code."""

from __future__ import annotations

import pandas as pd
import pytest

from frhsic_core.paper.claims.formulas import selected, value_of

ROWS = pd.DataFrame(
    {
        "method": ["frem", "frem", "adv", "unfair"],
        "n": [100, 200, 200, 400],
        "gdp": [0.25, 0.125, float("nan"), 0.5],
        "lambda": [0.0, 1.0, 10.0, 1.0],
        "lowest": [False, True, True, False],
    }
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("method == 'frem'", [0, 1]),
        ("method != 'frem' and n == 200", [2]),
        ("method == 'adv' or `lambda` in [1.0, 3.0]", [1, 2, 3]),
        ("method not in ['frem', 'adv']", [3]),
        ("n == 200 and lowest", [1, 2]),
        ("gdp >= 0.25", [0, 3]),
        ("", [0, 1, 2, 3]),
    ],
)
def test_a_condition_selects_the_rows_of_pandas(condition: str, expected: list[int]) -> None:
    assert selected(ROWS, condition).index.tolist() == expected
    if condition:
        assert ROWS.query(condition).index.tolist() == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("n.max()", 400),
        ("n.min() / 4", 25.0),
        ("-n.min()", -100),
        ("`lambda`.nunique()", 3),
        ("gdp.isna().sum()", 1),
        ("method.isin(['frem']).all()", False),
        ("((gdp < 0.3) & (n < 300)).any()", True),
        ("(gdp.diff() > 0).sum() == 0", True),
        ("exp(abs(log(gdp)).max())", 8.0),
        ("log10(n / gdp).min()", 2.6020599913279625),
        ("n.std(ddof=0)", 108.97247358851683),
    ],
)
def test_a_formula_has_its_value(formula: str, expected: float) -> None:
    assert value_of(ROWS, formula) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd').read()",
        "n.__class__",
        "n.__class__.__mro__",
        "n.apply('sum')",
        "n.to_csv('file')",
        "n.max.__globals__",
        "[row for row in n]",
        "(lambda: 0)()",
        "n[0]",
        "n if lowest else n",
        "f'{n}'",
        "n ** 9 ** 9",
        "0 < n < 300",
        "not lowest",
        "b'text'",
        "(n := 3)",
        "n.sum(**{})",
        "n.isin(*[1])",
        "eval('n')",
    ],
)
def test_what_is_not_listed_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="cannot be computed"):
        value_of(ROWS, formula)


def test_an_error_says_what_is_wrong() -> None:
    with pytest.raises(
        ValueError, match=r"names m, which is no column. The columns are: method, n"
    ):
        value_of(ROWS, "m.max()")
    with pytest.raises(ValueError, match=r"n \+ cannot be computed: invalid syntax"):
        value_of(ROWS, "n +")
