"""Write the verdicts of all statements to ``book/claims/verdicts.json``, and compare new ones with them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from frhsic_core.paper.statements.registry import Result, statements

Recorded = Mapping[tuple[str, str], Mapping[str, Any]]
SIDES = ("lower", "middle", "upper", "slack")


def row(result: Result) -> dict[str, Any]:
    """Return one certificate as plain values, with its statement's description and where it was made."""
    what = statements()[result.certificate.statement].what
    return {
        **result.certificate.as_dict(),
        "what": what,
        "module": result.module,
        "check": result.check,
    }


def read_recorded(path: Path) -> Recorded:
    """Return the recorded certificates by statement and claim; ValueError if the file is not such a record."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            (entry["statement"], entry["claim"]): {"verdict": entry["verdict"], **entry}
            for entry in rows
        }
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not a record of verdicts ({error}): restore it, or write it with --record."
        ) from None


def record(results: Iterable[Result], path: Path, *, quick: Iterable[Result]) -> None:
    """Write the certificates as JSON, one per line, with numbers to six digits, so that a rerun changes nothing.

    ``quick`` holds the certificates of a run with ``--quick``; their sides are recorded beside those of the full run.
    """
    small = {result.key: {side: row(result)[side] for side in SIDES} for result in quick}

    def rounded(values: dict[str, Any]) -> Any:
        return json.loads(
            json.dumps(values), parse_float=lambda number: float(f"{float(number):.6g}")
        )

    lines = [
        json.dumps(rounded({**row(result), "quick": small.get(result.key)}), ensure_ascii=False)
        for result in results
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def compare(
    results: Sequence[Result], recorded: Recorded, *, numbers: Iterable[str], quick: bool = False
) -> tuple[list[str], list[str]]:
    """Return the certificates whose verdict or sides changed and those that are not recorded yet, as lines of text.

    The sides of statistical certificates are not compared: they rest on random draws, which another version of a
    package may order differently.
    """
    found = {result.key: row(result) for result in results}
    changed = []
    for (statement, claim), now in found.items():
        before = recorded.get((statement, claim))
        if before is None:
            continue
        if before["verdict"] != now["verdict"]:
            changed.append(
                f"{statement}: {claim}: recorded {before['verdict']!r}, now {now['verdict']!r}"
            )
        elif now["evidence"] != "statistical":
            sides = before.get("quick") if quick else before
            changed += [
                f"{statement}: {claim}: {side} was {sides[side]:.6g}, now {now[side]:.6g}"
                for side in ("lower", "middle", "upper")
                if sides is not None and _moved(sides, now, side)
            ]
    wanted = set(numbers)
    changed += [
        f"{statement}: {claim}: recorded {before['verdict']!r}, now not checked"
        for (statement, claim), before in recorded.items()
        if statement in wanted and (statement, claim) not in found
    ]
    return changed, [f"{key[0]}: {key[1]}" for key in found if key not in recorded]


def _moved(before: Mapping[str, Any], now: Mapping[str, Any], side: str) -> bool:
    """Return whether a side differs from its recorded six digits by more than rounding explains."""
    if before[side] is None or now[side] is None:
        return False
    # A slack at the level of rounding means that rounding chose which of many equal cases is shown.
    if all(0.0 < abs(sides["slack"]) < 1e-6 for sides in (before, now)):
        return False
    return not math.isclose(before[side], now[side], rel_tol=1e-4, abs_tol=1e-9)
