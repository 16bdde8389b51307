"""Print tables, progress and errors for the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

INTERRUPTED = 130
# A column with broken lines needs at least this many characters to be readable.
_FOLDED = 16
EXIT_STATUS = (
    "Exit status: 0 success; 1 a check failed or a file is not available; 2 the command is wrong, or a path cannot be "
    "read or written; 3 work remains; 4 a training run failed; 130 interrupted with Ctrl-C."
)


def console(*, stderr: bool = False, wide: int = 160) -> Console:
    """Return a console as wide as the terminal, or ``wide`` columns wide for a file or a pipe."""
    plain = Console(stderr=stderr, highlight=False)
    return plain if plain.is_terminal else Console(stderr=stderr, highlight=False, width=wide)


def fail(message: object, *, status: int = 2) -> typer.Exit:
    """Print an error message without a traceback, and return the exception that the command should raise."""
    # The text of an OSError would otherwise start with a number such as "[Errno 28]".
    text = message.strerror if isinstance(message, OSError) and not message.filename else None
    Console(stderr=True, soft_wrap=True, highlight=False).print(text or str(message), markup=False)
    return typer.Exit(status)


def echo(text: object) -> None:
    """Print a text without markup; the terminal breaks its lines."""
    Console(soft_wrap=True, highlight=False).print(str(text), markup=False)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show on the error stream that a computation runs: a spinner in a terminal, one line in a file."""
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
    """Print a table whose cells are never cut, so that a user can copy every name.

    Parameters
    ----------
    headings, rows
        Distinct headings, and the cells of each row.
    fold : mapping, optional
        Columns that may break lines, with their largest width (None: no limit but the terminal).
    drop : sequence of str
        Columns to leave out, one after the other, until the table fits the terminal. A line names them.
    title : str, optional
        The title of the table.
    out : Console, optional
        Where to print; by default :func:`console`.
    """
    out = out or console()
    fold = fold or {}
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
        table.add_row(*map(escape, row))  # rich would read an interval in brackets as markup
    # If the table is still too wide, the terminal breaks its lines, which is better than cutting names.
    width = out.width
    out.width = max(width, sum(needed[name] for name in kept) + 1)
    out.print(table)
    out.width = width
    if len(kept) < len(headings):
        left_out = ", ".join(name for name in headings if name not in kept)
        out.print(f"Columns left out in a terminal of {out.width} characters: {left_out}.", markup=False)
