"""``frhsic certify``: run every check, show the table, and notice when a verdict changes."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from frhsic_core.paper.statements.registry import Check, Result, checks, find_statement, run_checks, statements

__all__ = ["certify", "compare", "find_recorded", "read_recorded", "record", "register"]

RECORDED = Path("book") / "claims" / "verdicts.json"
VERDICT_STYLE = {"holds": "green", "holds as corrected": "cyan", "fails as stated": "yellow", "inconclusive": "red"}


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


def find_recorded(start: Path | None = None) -> Path | None:
    """Return ``claims/verdicts.json`` of ``FRHSIC_BOOK``, or of the checkout around the working folder or this package.

    None where there is no such file.
    """
    if start is None and os.environ.get("FRHSIC_BOOK"):
        path = Path(os.environ["FRHSIC_BOOK"]).expanduser() / "claims" / "verdicts.json"
        return path if path.is_file() else None
    here = Path.cwd() if start is None else start
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / RECORDED).is_file():
            return folder / RECORDED
    return None


def read_recorded(path: Path) -> dict[tuple[str, str], str]:
    """Return the recorded verdicts by statement and claim."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {(entry["statement"], entry["claim"]): entry["verdict"] for entry in rows}


def record(results: Iterable[Result], path: Path) -> None:
    """Write the certificates as JSON, one per line, numbers to six digits so that a rerun changes nothing."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.6g}")
        if isinstance(value, Mapping):
            return {key: rounded(item) for key, item in value.items()}
        return [rounded(item) for item in value] if isinstance(value, list) else value

    lines = [json.dumps(rounded(row(result)), ensure_ascii=False) for result in results]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def compare(
    results: Sequence[Result], recorded: Mapping[tuple[str, str], str], *, numbers: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return what changed against the record (an error) and what is not in it yet (news), as lines of text."""
    found = {result.key: result.certificate.verdict for result in results}
    changed = [
        f"{statement}: {claim}: recorded {recorded[statement, claim]!r}, now {verdict!r}"
        for (statement, claim), verdict in found.items()
        if recorded.get((statement, claim), verdict) != verdict
    ]
    wanted = set(numbers)
    changed += [
        f"{statement}: {claim}: recorded {verdict!r}, now not checked"
        for (statement, claim), verdict in recorded.items()
        if statement in wanted and (statement, claim) not in found
    ]
    return changed, [f"{key[0]}: {key[1]}" for key in found if key not in recorded]


def certify(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller grids and fewer draws: under a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of the table.")] = False,
    statement: Annotated[
        str | None, typer.Option("--statement", help='One statement, by number ("Theorem 4.5") or label.')
    ] = None,
    record_verdicts: Annotated[
        bool, typer.Option("--record", help="Write the verdicts as the ones to compare with from now on.")
    ] = False,
    recorded: Annotated[
        Path | None, typer.Option("--recorded", help="The recorded verdicts; default: book/claims/verdicts.json.")
    ] = None,
) -> None:
    """Check every statement of the paper and print what was found; fail if a verdict is not the recorded one.

    Exit status 0: the verdicts are those recorded; 1: one changed; 2: a mistake in the command.
    """
    try:
        numbers = [find_statement(statement).number] if statement is not None else list(statements())
    except KeyError as error:
        raise _fail(error.args[0]) from None
    if importlib.util.find_spec("flint") is None:
        raise _fail("interval evidence needs python-flint: pip install 'frhsic-core[test]'.")
    # Whatever can be wrong with the record is said now, not after a minute of checks.
    path = recorded if recorded is not None else find_recorded()
    known: dict[tuple[str, str], str] = {}
    if record_verdicts:
        if len(numbers) < len(statements()):
            raise _fail("--record writes all statements at once: leave --statement out.")
    elif recorded is not None and not recorded.is_file():
        raise _fail(f"{recorded} does not exist: record verdicts there with --record first.")
    elif path is not None:
        try:
            known = read_recorded(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _fail(f"{path} is no record of verdicts ({error}): restore it, or write it with --record.") from None
    import torch  # here, so that `frhsic --help` does not wait for it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # many small tensors: more threads only wait for each other
    try:
        started = time.perf_counter()
        results = _run(numbers, quick=quick)
        seconds = time.perf_counter() - started
    finally:
        torch.set_num_threads(threads)
    if as_json:
        typer.echo(json.dumps([row(result) for result in results], ensure_ascii=False, indent=1))
    else:
        _show(results, seconds)
    if record_verdicts:
        path = path or Path.cwd() / RECORDED
        try:
            record(results, path)
        except OSError as error:
            raise _fail(f"the verdicts cannot be written to {path}: {error.strerror or error}.") from None
        typer.echo(f"recorded {len(results)} verdicts in {path}.", err=True)
        return
    if path is None:
        typer.echo(f"no recorded verdicts found ({RECORDED} of a checkout): nothing to compare with.", err=True)
        return
    changed, new = compare(results, known, numbers=numbers)
    for line in new:
        typer.echo(f"not recorded yet: {line}", err=True)
    for line in changed:
        typer.echo(f"CHANGED: {line}", err=True)
    if changed:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog='Example: frhsic certify --quick --statement "Theorem 4.5"')(certify)


def _fail(message: str) -> typer.Exit:
    typer.echo(f"error: {message}", err=True)
    return typer.Exit(2)


def _run(numbers: list[str], *, quick: bool) -> list[Result]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    total = sum(len(checks()[number]) for number in numbers)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Progress goes to the error stream, so that --json can be piped; it stays silent where that is no terminal.
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("certify", total=total)
        done = -1

        def before(number: str, check: Check) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, description=f"{number}: {check.__name__.replace('_', ' ')}")

        return list(run_checks(numbers, quick=quick, before=before))


def _show(results: list[Result], seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a file or a pipe has no width; eighty columns would break every claim
    wide = console.width >= 100
    table = Table(title="The statements of the paper, checked")
    table.add_column("statement", no_wrap=True)
    if wide:
        table.add_column("claim")
    table.add_column("evidence", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("slack", justify="right", no_wrap=True)
    previous = ""
    for result in results:
        c = result.certificate
        claim = [c.claim] if wide else []
        verdict = f"[{VERDICT_STYLE[c.verdict]}]{c.verdict}[/]"
        table.add_row(c.statement if c.statement != previous else "", *claim, c.evidence, verdict, f"{c.slack:.2e}")
        previous = c.statement
    console.print(table)
    certified = len({result.certificate.statement for result in results})
    console.print(f"{len(results)} certificates for {certified} statements in {seconds:.0f} s.")
