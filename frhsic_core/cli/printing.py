"""Print stored results in a terminal: a Pareto table and the claims of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import typer

from frhsic_core.cli.terminal import print_table


def time_text(seconds: float) -> str:
    """Return a time in seconds, or in minutes if it is longer than two; a time that was not recorded is a dash."""
    if pd.isna(seconds):
        return "–"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _text(value: float, digits: int, spread: float = float("nan")) -> str:
    shown = "–" if pd.isna(value) else f"{value:.{digits}f}"
    return shown if pd.isna(spread) else f"{shown} ± {spread:.{digits}f}"


def print_pareto(table: pd.DataFrame, *, title: str) -> None:
    """Print matched points and areas, with those of the paper if the table has them."""
    headings = ["dataset", "S variant", "method", "λ", "performance", "dependence", "nAUP", "95 % interval"]
    printed = "paper_naup" in table
    if printed:
        headings += ["paper: perf.", "paper: GDP", "paper: nAUP"]
    rows = []
    for line in table.to_dict("records"):
        digits = 4 if line["dataset"] == "crime" else 3
        cells = [
            line["dataset"],
            line["variant"],
            line["method"],
            "–" if pd.isna(line["lam"]) else f"{line['lam']:g}",
            _text(line["performance"], digits, line["performance_sd"]),
            _text(line["dependence"], 3, line["dependence_sd"]),
            _text(line["naup"], 3),
            "–" if pd.isna(line["naup"]) else f"{line['naup_low']:.3f} to {line['naup_high']:.3f}",
        ]
        if printed:
            cells += [_text(line["paper_performance"], digits), _text(line["paper_dependence"], 3)]
            cells += [_text(line["paper_naup"], 3)]
        rows.append(cells)
    drop = ("95 % interval", "paper: perf.", "paper: GDP", "S variant", "λ", "paper: nAUP")
    print_table(headings, rows, drop=[name for name in drop if name in headings], title=title)


def print_heading(top: Mapping[str, Any]) -> None:
    """Print the heading of the ledger: paper, code and counts."""
    for name, value in top.items():
        text = ", ".join(f"{count} {what}" for what, count in value.items()) if isinstance(value, dict) else value
        typer.echo(f"{name}: {', '.join(text) if isinstance(text, list) else text}")


def print_lines(lines: pd.DataFrame) -> None:
    """Print claims of the ledger in full."""
    columns = ["id", "kind", "claim", "printed", "ours", "verdict", "detects", "from stored runs", "note"]
    lines = lines.assign(detects=["" if pd.isna(value) else f"{value:.2g}" for value in lines["detects"]])
    rows = lines[columns].to_numpy().tolist()
    fold = {
        "kind": 14,
        "claim": None,
        "printed": 16,
        "ours": None,
        "verdict": 20,
        "from stored runs": None,
        "note": None,
    }
    print_table(columns, rows, fold=fold, drop=("from stored runs", "kind", "detects", "note"))


def print_contradicted(lines: pd.DataFrame, verdicts: tuple[str, ...]) -> None:
    """Print the claims with one of ``verdicts`` in short form, and how to see the others."""
    columns = ["id", "claim", "printed", "ours", "verdict"]
    lines = lines[lines["verdict"].isin(verdicts)]
    lines = lines.sort_values("verdict", key=lambda column: column.map(verdicts.index), kind="stable")
    fold = {"claim": None, "printed": 16, "ours": None, "verdict": 20}
    print_table(columns, lines[columns].to_numpy().tolist(), fold=fold)
    typer.echo(
        "Run frhsic ledger --all for the reasons and all claims, --verdict NAME for one verdict, --json for a program."
    )
