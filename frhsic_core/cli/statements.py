"""The command ``frhsic certify``: check every statement of the paper and compare the verdicts with the record."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from frhsic_core.cli.terminal import console, fail, print_table
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.registry import Check, Result, checks, find_statement, run_checks, statements


def row(result: Result) -> dict[str, Any]:
    """Return one certificate as plain values, with its statement's description and where it was made."""
    values = result.certificate.as_dict()
    return {
        **values,
        "what": statements()[result.certificate.statement].what,
        "module": result.module,
        "check": result.check,
        "test": result.test,
    }


Recorded = Mapping[tuple[str, str], Mapping[str, Any]]
SIDES = ("lower", "middle", "upper", "slack")


def read_recorded(path: Path) -> Recorded:
    """Return the recorded certificates by statement and claim."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {(entry["statement"], entry["claim"]): {"verdict": entry["verdict"], **entry} for entry in rows}


def record(results: Iterable[Result], path: Path, *, quick: Iterable[Result]) -> None:
    """Write the certificates as JSON, one per line, with numbers to six digits, so that a rerun changes nothing.

    ``quick`` holds the certificates of a run with ``--quick``; their sides are recorded beside those of the full run.
    """
    small = {result.key: {side: row(result)[side] for side in SIDES} for result in quick}

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.6g}")
        if isinstance(value, Mapping):
            return {key: rounded(item) for key, item in value.items()}
        return [rounded(item) for item in value] if isinstance(value, list) else value

    lines = [
        json.dumps(rounded({**row(result), "quick": small.get(result.key)}), ensure_ascii=False) for result in results
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
            changed.append(f"{statement}: {claim}: recorded {before['verdict']!r}, now {now['verdict']!r}")
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


def certify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Use smaller grids and fewer draws; this takes less than a minute.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of the table.")] = False,
    statement: Annotated[
        str | None, typer.Option(help='Check one statement only, by number ("Theorem 4.5" or 4.5) or by label.')
    ] = None,
    record_verdicts: Annotated[
        bool, typer.Option("--record", help="Write the verdicts as the record to compare with from now on.")
    ] = False,
    recorded: Annotated[
        Path | None, typer.Option(help="File with the recorded verdicts; by default claims/verdicts.json of the book.")
    ] = None,
) -> None:
    """Check every statement of the paper and compare verdicts and numbers with the recorded ones.

    Exit status 0: nothing recorded changed; 1: a verdict or a number changed; 2: a mistake in the command.
    """
    try:
        numbers = [find_statement(statement).number] if statement is not None else list(statements())
    except KeyError as error:
        raise fail(error.args[0]) from None
    if importlib.util.find_spec("flint") is None:
        raise fail("Proofs in interval arithmetic need python-flint: install it with pip install python-flint.")
    if record_verdicts and len(numbers) < len(statements()):
        raise fail("--record writes the verdicts of all statements: leave --statement out.")
    # Problems with the record are reported before the checks run, which takes minutes.
    path, missing = _record_file(recorded)
    known: Recorded = {}
    if record_verdicts and path is None:
        raise fail(f"{missing} Or pass the file to write with --recorded.")
    if not record_verdicts and path is not None and not path.is_file():
        missing = f"{path} does not exist: write it first with --record."
        if recorded is not None:
            raise fail(missing)
        path = None
    if not record_verdicts and path is not None:
        try:
            known = read_recorded(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise fail(
                f"{path} is not a record of verdicts ({error}): restore it, or write it with --record."
            ) from None
    started = time.perf_counter()
    results = _run(numbers, quick=quick and not record_verdicts)
    seconds = time.perf_counter() - started
    if as_json:
        typer.echo(json.dumps([row(result) for result in results], ensure_ascii=False, indent=1))
    else:
        _print_results(results, seconds)
    if record_verdicts and path is not None:
        try:
            record(results, path, quick=_run(numbers, quick=True))
        except OSError as error:
            raise fail(f"The verdicts cannot be written to {path}: {error.strerror or error}.") from None
        typer.echo(f"Recorded {len(results)} verdicts in {path}.", err=True)
        return
    if path is None:
        typer.echo(f"No verdicts were compared. {missing}", err=True)
        return
    changed, new = compare(results, known, numbers=numbers, quick=quick)
    for line in new:
        typer.echo(f"Not recorded yet: {line}", err=True)
    for line in changed:
        typer.echo(f"CHANGED: {line}", err=True)
    if changed:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog='Example: frhsic certify --quick --statement "Theorem 4.5"')(certify)


def _record_file(given: Path | None) -> tuple[Path | None, str]:
    """Return the file of the record, or None with the reason: an installed package has no book."""
    if given is not None:
        return given, ""
    try:
        return book_folder("claims", "verdicts.json"), ""
    except FileNotFoundError as error:
        return None, str(error)


def _run(numbers: list[str], *, quick: bool) -> list[Result]:
    import torch  # imported here, so that `frhsic --help` does not wait for it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    total = sum(len(checks()[number]) for number in numbers)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # many small tensors: more threads only wait for each other
    # Progress goes to the error stream, so that --json can be piped, and is not shown if that is not a terminal.
    try:
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task("certify", total=total)
            done = -1

            def before(number: str, check: Check) -> None:
                nonlocal done
                done += 1
                progress.update(task, completed=done, description=f"{number}: {check.__name__.replace('_', ' ')}")

            return list(run_checks(numbers, quick=quick, before=before))
    finally:
        torch.set_num_threads(threads)


def _print_results(results: list[Result], seconds: float) -> None:
    rows = []
    for result in results:
        c = result.certificate
        rows.append((c.statement, c.claim, c.evidence, c.verdict, f"{c.slack:.2e}"))
    headings = ("statement", "claim", "evidence", "verdict", "slack")
    print_table(headings, rows, fold={"claim": None}, drop=("claim",), title="The statements of the paper")
    certified = len({result.certificate.statement for result in results})
    what = "statement" if certified == 1 else "statements"
    typer.echo(f"{len(results)} certificates for {certified} {what} in {seconds:.0f} s.")
