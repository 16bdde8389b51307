"""The registry against the list of statements."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from frhsic_core.paper.statements import registry
from frhsic_core.paper.statements.certificate import EVIDENCE, Certificate

ROOT = Path(__file__).resolve().parents[3]


def test_all_rows_are_there() -> None:
    text = (Path(registry.__file__).parent / "statements.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["number"] for row in rows] == list(registry.statements())
    assert len(rows) == 24
    assert sum(s.needs_verdict for s in registry.statements().values()) == 22
    assert {n for n, s in registry.statements().items() if not s.needs_verdict} == {"Definition 2.1", "Definition 3.3"}


def test_labels_are_unique_but_for_the_unnumbered_one() -> None:
    labels = [s.label for s in registry.statements().values()]
    assert len(set(labels)) == len(labels)


def test_every_statement_has_a_check() -> None:
    without = [number for number, functions in registry.checks().items() if not functions]
    assert without == []


def test_every_checking_module_has_its_test_file() -> None:
    modules = {check.__module__.rsplit(".", 1)[-1] for functions in registry.checks().values() for check in functions}
    missing = [
        name for name in sorted(modules) if not (ROOT / "tests" / "paper" / "statements" / f"test_{name}.py").is_file()
    ]
    assert missing == []


def test_find_statement() -> None:
    assert registry.find_statement("theorem 4.5").label == "cor:hsic-mmd-equivalence"
    assert registry.find_statement("4.5").number == "Theorem 4.5"
    assert registry.find_statement("g.2").number == "Proposition G.2"
    numbers = [number.rpartition(" ")[2] for number in registry.statements()]
    assert len(set(numbers)) == len(numbers), "a bare number would name two statements"
    assert registry.find_statement("prop:equivalence").number == "Proposition 3.1"
    with pytest.raises(KeyError, match=r"no statement 'Theorem 9.9': choose one of Definition 2.1"):
        registry.find_statement("Theorem 9.9")


def test_results_carry_their_origin() -> None:
    seen: list[tuple[str, str]] = []

    def before(number: str, check: registry.Check) -> None:
        seen.append((number, check.__name__))

    results = list(registry.run_checks(["Lemma B.2"], quick=True, before=before))
    assert {result.certificate.statement for result in results} == {"Lemma B.2"}
    assert {number for number, _ in seen} == {"Lemma B.2"}
    assert ("finite_attribute", "discrete_lemma") in {(result.module, result.check) for result in results}
    assert results[0].test == "tests/paper/statements/test_finite_attribute.py"
    for result in results:
        assert isinstance(result.certificate, Certificate)
        assert result.certificate.evidence in EVIDENCE
        assert result.certificate.label == registry.statements()["Lemma B.2"].label
    assert len({result.key for result in results}) == len(results)


def test_a_table_that_names_no_statement_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from frhsic_core.paper.statements import zero_level

    monkeypatch.setitem(zero_level.CHECKS, "Theorem 0.0", [])
    registry.checks.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"zero_level checks 'Theorem 0.0', which is no row"):
            registry.checks()
    finally:
        monkeypatch.undo()
        registry.checks.cache_clear()
