"""Assemble the ``frhsic`` command, and print its tables, progress and errors.

The modules of this package define the subcommands. They import torch only when a subcommand needs it, so that
``frhsic --help`` starts quickly.
"""

from __future__ import annotations

import importlib
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import frhsic_core

__all__ = ["command", "main"]

INTERRUPTED = 130
# A column with broken lines needs at least this many characters to be readable.
_FOLDED = 16
_WIDE = 160  # characters of a line in a file or a pipe
EXIT_STATUS = (
    "Exit status: 0 success; 1 a check failed or a file is not available; 2 the command is wrong, or a path cannot be "
    "read or written; 3 work remains; 4 a training run failed; 130 interrupted with Ctrl-C."
)


def fail(message: object, *, status: int = 2) -> typer.Exit:
    """Print an error message without a traceback, and return the exception that the command should raise."""
    text = message
    if isinstance(message, OSError) and message.strerror:  # without a number such as "[Errno 28]"
        text = f"{message.filename}: {message.strerror}" if message.filename else message.strerror
    elif isinstance(message, KeyError):  # without quotes
        text = message.args[0]
    Console(stderr=True, soft_wrap=True, highlight=False).print(str(text), markup=False)
    return typer.Exit(status)


@contextmanager
def as_sentences() -> Iterator[None]:
    """Turn every error of a command into a sentence and exit status 2, since 1 and 3 have a meaning for the caller.

    A warning becomes a sentence too.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: typer.echo(
                f"Warning: {message}", err=True
            )
            yield
    except typer.Exit:
        raise
    except MemoryError:
        raise fail("The rows do not fit into memory: pass a smaller --max-rows.") from None
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise fail(error) from None
    except Exception as error:
        traceback.print_exc()
        raise fail(
            f"The command stopped on an unexpected error ({type(error).__name__}). Please report it."
        ) from None


def echo(text: object) -> None:
    """Print a text without markup; the terminal breaks its lines."""
    Console(soft_wrap=True, highlight=False).print(str(text), markup=False)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show on the error stream that a computation runs: a spinner in a terminal, one line in a file.

    It yields a function that shows another text in a terminal.
    """
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    if not errors.is_terminal:
        errors.print(text, markup=False)
        yield lambda _: None
        return
    with errors.status(escape(text)) as status:
        yield lambda shown: status.update(escape(shown))


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    fold: Collection[str] = (),
    title: str | None = None,
) -> None:
    """Print a table whose cells are never cut, so that a user can copy every name.

    The columns ``fold`` may break lines. A narrow terminal leaves columns out from the right, and a line names them.
    """
    out = Console(highlight=False)
    width = out.width if out.is_terminal else _WIDE
    needed = [3 + max(map(cell_len, cells)) for cells in zip(headings, *rows, strict=True)]
    needed = [
        min(size, 3 + _FOLDED) if name in fold else size
        for name, size in zip(headings, needed, strict=True)
    ]
    kept = len(headings)
    while kept > 2 and sum(needed[:kept]) + 1 > width:
        kept -= 1
    table = Table(title=title)
    for name in headings[:kept]:
        table.add_column(escape(name), no_wrap=name not in fold, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row[:kept]))  # rich would read an interval in brackets as markup
    # If the table is still too wide, the terminal breaks its lines, which is better than cutting names.
    out.width = max(width, sum(needed[:kept]) + 1)
    out.print(table)
    if kept < len(headings):
        out.width = width
        out.print(
            f"Columns left out in a terminal of {width} characters: {', '.join(headings[kept:])}.",
            markup=False,
        )


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"frhsic-core {frhsic_core.__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Audit predictions, check the theorems of the FRHSIC paper, download its data, and run its experiments."""


def command() -> typer.Typer:
    """Return the command with all subcommands."""
    app = typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
    )
    app.callback(epilog=f"Example: frhsic status\n\n{EXIT_STATUS}")(_options)
    practice, paper = (
        importlib.import_module(f"frhsic_core.cli.{name}") for name in ("practice", "paper")
    )
    app.add_typer(practice.data, name="data")
    for function, example in (practice.EXAMPLES | paper.EXAMPLES).items():
        app.command(epilog=f"Example: {example}")(as_sentences()(function))
    return app


def main() -> None:
    """Run the command; Ctrl-C ends it with status 130 and without a traceback."""
    try:
        command()(standalone_mode=True)
    except (KeyboardInterrupt, SystemExit) as end:  # the first while the modules are imported
        status = INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code
        if status == INTERRUPTED:
            typer.echo("Interrupted.", err=True)
        sys.exit(status)
