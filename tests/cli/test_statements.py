"""``frhsic certify``: output, comparison with the record, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from frhsic_core.cli import as_sentences
from frhsic_core.cli import paper as commands
from frhsic_core.paper.statements import registry
from frhsic_core.paper.statements.certificate import Certificate, inequality

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path("book") / "claims" / "verdicts.json"
app = typer.Typer()
app.command("certify")(as_sentences()(commands.certify))
runner = CliRunner()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two cheap checks in place of all, and an empty folder in place of the book."""
    monkeypatch.setattr(registry, "_REGISTERED", [])

    @registry.check("Theorem 4.5")
    def sound(*, quick: bool) -> list[Certificate]:
        return [inequality("one below two", middle=1.0, upper=2.0, evidence="exact")]

    @registry.check("Remark B.3")
    def refuted(*, quick: bool) -> list[Certificate]:
        return [
            inequality(
                "one below a half" + 200 * " and",
                middle=1.0,
                upper=0.5 if quick else 0.25,
                evidence="interval",
            )
        ]

    table = dict.fromkeys(registry.statements(), ())
    table |= {"Theorem 4.5": (sound,), "Remark B.3": (refuted,)}
    monkeypatch.setattr(registry, "checks", lambda: table)
    monkeypatch.delenv("FRHSIC_BOOK", raising=False)
    monkeypatch.setattr(commands, "verdicts_file", lambda: tmp_path / "claims" / "verdicts.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_book(*parts: str) -> Path:
    raise FileNotFoundError("There is no book here.")


def test_table(small: Path) -> None:
    result = runner.invoke(app, [])
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 160  # a long claim breaks its lines
    for text in (
        "Theorem 4.5 holds;",
        "one below two",
        "exact",
        "Remark B.3 is open;",
        "fails as stated",
        "-7.50e-01",
    ):
        assert text in result.stdout
    assert (
        0 <= int(result.stdout.rpartition("Seconds: ")[2].strip(".\n")) < 600
    )  # of this run, not of a clock
    assert "No verdicts were compared" in result.stderr


def test_quick_and_one_statement_by_number_or_label(small: Path) -> None:
    assert "-5.00e-01" in runner.invoke(app, ["--quick"]).stdout
    for name in ("Theorem 4.5", "cor:hsic-mmd-equivalence"):
        shown = runner.invoke(app, ["--statement", name]).stdout
        assert "Certificates: 1. Statements: 1." in shown
        assert "Remark B.3" not in shown
    unknown = runner.invoke(app, ["--statement", "Theorem 9.9"])
    assert (unknown.exit_code, "Theorem 9.9" in unknown.stderr) == (2, True)


def test_record_then_compare(small: Path) -> None:
    path = small / "claims" / "verdicts.json"
    assert runner.invoke(app, ["--record"]).exit_code == 0
    written = path.read_bytes()
    assert len(json.loads(written)) == 2
    runner.invoke(app, ["--record"])
    assert path.read_bytes() == written
    again = runner.invoke(app, [])
    assert again.exit_code == 0
    assert "CHANGED" not in again.stderr
    # Sizes differ between quick and full runs; verdicts do not.
    assert runner.invoke(app, ["--quick"]).exit_code == 0


@pytest.mark.parametrize(
    ("row", "change", "options", "words"),
    [
        (1, {"verdict": "holds"}, [], ["CHANGED: Remark B.3: one below a half"]),
        (1, {"upper": 0.25 * 1.001}, [], ["upper was"]),
        (1, {"quick": {"upper": 0.5 * 1.001}}, ["--quick"], ["upper was"]),
        (
            0,
            {"claim": "another"},
            [],
            ["CHANGED: Theorem 4.5: another", "Not recorded yet: Theorem 4.5: one below two"],
        ),
        # The last of six digits may differ by rounding, and other statements may be left out.
        (1, {"upper": 0.25 * (1 + 1e-7)}, [], []),
        (1, {"quick": {"upper": 0.5 * (1 + 1e-7)}}, ["--quick"], []),
        (1, {"verdict": "holds"}, ["--statement", "Theorem 4.5"], []),
    ],
)
def test_a_changed_record_fails(
    small: Path, row: int, change: dict[str, Any], options: list[str], words: list[str]
) -> None:
    path = small / "claims" / "verdicts.json"
    runner.invoke(app, ["--record"])
    rows = json.loads(path.read_text())
    for name, value in change.items():
        rows[row][name] = rows[row][name] | value if isinstance(value, dict) else value
    path.write_text(json.dumps(rows))
    result = runner.invoke(app, options)
    assert result.exit_code == bool(words)
    assert all(text in result.stderr for text in words)


def test_record_needs_all_statements(small: Path) -> None:
    result = runner.invoke(app, ["--record", "--statement", "Theorem 4.5"])
    assert result.exit_code == 2
    assert "--statement" in result.stderr
    assert not (small / "claims").exists()


def test_a_broken_record_is_found_before_the_checks(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small / "claims" / "verdicts.json"
    path.parent.mkdir()
    path.write_text("[{half")
    monkeypatch.setattr(
        commands, "_check", lambda *_, **__: pytest.fail("the checks were run first")
    )
    result = runner.invoke(app, [])
    assert result.exit_code == 2
    assert "verdicts.json is not a record" in result.stderr


def test_a_record_that_cannot_be_written(small: Path) -> None:
    (small / "claims").write_text("")
    result = runner.invoke(app, ["--record"])
    assert result.exit_code == 2
    assert str(small / "claims") in result.stderr


def test_without_a_book_nothing_is_compared_or_recorded(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "verdicts_file", no_book)
    result = runner.invoke(app, [])
    assert (result.exit_code, "No verdicts were compared" in result.stderr) == (0, True)
    monkeypatch.setattr(
        commands, "_check", lambda *_, **__: pytest.fail("the checks were run first")
    )
    result = runner.invoke(app, ["--record"])
    assert (result.exit_code, "There is no book here" in result.stderr) == (2, True)


@pytest.mark.skipif(not (ROOT / RECORDED).is_file(), reason="not a checkout")
def test_the_committed_record_covers_every_statement() -> None:
    rows = json.loads((ROOT / RECORDED).read_text(encoding="utf-8"))
    assert {row["statement"] for row in rows} == set(registry.statements())
    assert len({(row["statement"], row["claim"]) for row in rows}) == len(rows)
    assert {row["verdict"] for row in rows} <= {
        "holds",
        "holds as corrected",
        "ours: holds",
        "fails as stated",
    }
    evidence = {(row["statement"], row["evidence"]) for row in rows}
    assert evidence >= {
        ("Proposition 4.1", "proof"),
        ("Theorem 4.5", "interval"),
        ("Corollary 4.6", "proof"),
    }
    # Whatever fails as stated is followed by what holds instead; Theorem 5.1 is restated, and corrected, as G.2.
    failing = {row["statement"] for row in rows if row["verdict"] == "fails as stated"}
    corrected = {row["statement"] for row in rows if row["verdict"] == "holds as corrected"}
    assert failing - {"Theorem 5.1"} <= corrected
    assert "Proposition G.2" in corrected
