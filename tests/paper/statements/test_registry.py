"""The registry against the list of statements."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from frhsic_core.paper.statements import registry
from frhsic_core.paper.statements.certificate import Certificate, inequality

ROOT = Path(__file__).resolve().parents[3]


def test_all_rows_are_there() -> None:
    text = (Path(registry.__file__).parent / "statements.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["number"] for row in rows] == list(registry.statements())
    assert len(rows) == 24
    assert sum(s.needs_verdict for s in registry.statements().values()) == 22
    assert {n for n, s in registry.statements().items() if not s.needs_verdict} == {
        "Definition 2.1",
        "Definition 3.3",
    }


def test_every_checking_module_has_its_test_file() -> None:
    modules = {
        check.__module__.rsplit(".", 1)[-1]
        for functions in registry.checks().values()
        for check in functions
    }
    missing = [
        name
        for name in sorted(modules)
        if not (ROOT / "tests" / "paper" / "statements" / f"test_{name}.py").is_file()
    ]
    assert missing == []


def test_find_statement() -> None:
    assert registry.find_statement("theorem 4.5").label == "cor:hsic-mmd-equivalence"
    assert registry.find_statement("4.5").number == "Theorem 4.5"
    assert registry.find_statement("g.2").number == "Proposition G.2"
    numbers = [number.rpartition(" ")[2] for number in registry.statements()]
    assert len(set(numbers)) == len(numbers), "a bare number would name two statements"
    assert len({s.label for s in registry.statements().values()}) == len(numbers), "a label would"
    assert registry.find_statement("prop:equivalence").number == "Proposition 3.1"
    with pytest.raises(KeyError, match=r"Theorem 9\.9"):
        registry.find_statement("Theorem 9.9")


def test_a_check_is_told_before_it_runs() -> None:
    seen: list[tuple[str, str]] = []
    results = registry.run_checks(
        ["Lemma B.2"],
        quick=True,
        before=lambda number, check: seen.append((number, check.__name__)),
    )
    assert {("Lemma B.2", result.check) for result in results} == set(seen)


@pytest.fixture
def no_checks(monkeypatch: pytest.MonkeyPatch) -> list:
    """Empty the register, so that a check of this file stays in this file."""
    registered: list = []
    monkeypatch.setattr(registry, "_REGISTERED", registered)
    return registered


def test_a_check_writes_number_and_label_on_its_certificates(no_checks: list) -> None:
    @registry.check("Theorem 4.7")
    def sound() -> list[Certificate]:
        return [inequality("one below two", middle=1.0, upper=2.0, evidence="exact")]

    for certificates in (sound(), sound(quick=True)):
        assert [(c.statement, c.label) for c in certificates] == [("Theorem 4.7", "thm:hsic_gdp")]
    assert no_checks == [("Theorem 4.7", sound)]


def test_quick_reaches_the_check_that_takes_it(no_checks: list) -> None:
    @registry.check("Theorem 4.7", name="another")
    def sized(*, quick: bool) -> list[Certificate]:
        return [inequality("below", middle=float(quick), upper=2.0, evidence="exact")]

    assert [sized(quick=quick)[0].middle for quick in (True, False)] == [1.0, 0.0]
    assert sized()[0].middle == 0.0
    assert sized.__name__ == "another"


def test_an_unknown_statement_cannot_be_checked(no_checks: list) -> None:
    with pytest.raises(ValueError, match=r"Theorem 0\.0"):
        registry.check("Theorem 0.0")
    assert no_checks == []
