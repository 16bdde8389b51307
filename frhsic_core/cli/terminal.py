"""What the commands of every layer share: a console, errors of one sentence, names that are never cut."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["EXIT_STATUS", "INTERRUPTED", "console", "fail", "one_of", "print_table", "waiting"]

INTERRUPTED = 130
# Columns below which broken lines are no longer read.
_FOLDED = 16
EXIT_STATUS = (
    "Exit status: 0 done; 1 a check failed or a file could not be had; 2 a mistake in the command, or a place that "
    "cannot be read or written; 3 something is left to run; 4 a stack failed; 130 interrupted with Ctrl-C."
)


def console(*, stderr: bool = False, wide: int = 160) -> Console:
    """Return a console as wide as the terminal; a file or a pipe has no width and gets ``wide`` columns."""
    plain = Console(stderr=stderr, highlight=False)
    return plain if plain.is_terminal else Console(stderr=stderr, highlight=False, width=wide)


def fail(message: object, *, status: int = 2) -> typer.Exit:
    """Print what is wrong on the error stream, without a traceback, and return what the command should raise."""
    # An OSError made of a number and a sentence would start with "[Errno 28]".
    text = message.strerror if isinstance(message, OSError) and not message.filename else None
    Console(stderr=True, soft_wrap=True, highlight=False).print(text or str(message), markup=False)
    return typer.Exit(status)


def one_of(what: str, given: str, choices: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``choices``; else raise a ValueError that names the nearest and all of them."""
    known = list(choices)
    if given in known:
        return given
    close = difflib.get_close_matches(given, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"{what} is {given!r}{hint}: choose one of {', '.join(known)}.")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say on the error stream that something is computed: a moving line with seconds, or one line in a file."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    if not errors.is_terminal:
        errors.print(text, markup=False)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        progress.add_task(text, total=None)
        yield


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    fold: Mapping[str, int | None] | None = None,
    drop: Sequence[str] = (),
    title: str | None = None,
    out: Console | None = None,
) -> None:
    """Print text cells, none of them cut: names in them are there to be typed again.

    Parameters
    ----------
    headings, rows
        Distinct headings, and the cells of each row.
    fold : mapping, optional
        Columns that may break lines, each with the width at which it does; None where only the terminal sets one.
    drop : sequence of str
        Columns to leave out, one after the other, until the rest fits into the terminal; what is left out is said.
    title : str, optional
        Printed above.
    out : Console, optional
        By default :func:`console`.
    """
    out, fold = out or console(), fold or {}
    columns = dict(zip(headings, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(headings, ())
    needed = {name: max(map(cell_len, (name, *cells))) + 3 for name, cells in columns.items()}
    needed |= {name: min(needed[name], _FOLDED + 3) for name in fold}
    kept = list(headings)
    for name in drop:
        if sum(needed[kept_name] for kept_name in kept) + 1 <= out.width:
            break
        kept.remove(name)
    table = Table(title=title)
    for name in kept:
        table.add_column(escape(name), no_wrap=name not in fold, overflow="fold", max_width=fold.get(name))
    for row in zip(*(columns[name] for name in kept), strict=True):
        table.add_row(*map(escape, row))  # intervals are written in brackets, which rich would read as markup
    # Where even that is too much, lines run over the edge and the terminal breaks them: better than cut names.
    width = out.width
    out.width = max(width, sum(needed[name] for name in kept) + 1)
    out.print(table)
    out.width = width
    if len(kept) < len(headings):
        left_out = ", ".join(name for name in headings if name not in kept)
        out.print(f"Left out on {out.width} columns: {left_out}.", markup=False)
