"""Print the tables, progress and errors of the command."""

from __future__ import annotations

import io
import os
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

from frhsic_core.inputs.visible import visible

# A column with broken lines needs at least this many characters to be readable.
_FOLDED = 16
_WIDE = 160  # characters of a line in a file or a pipe


def fail(message: object, *, status: int = 2) -> typer.Exit:
    """Print an error without a traceback, and return the exception that the command raises."""
    text = message
    if isinstance(message, OSError) and message.strerror:  # without a number such as "[Errno 28]"
        text = message.strerror
        if message.filename:
            text = f"{message.filename}: {message.strerror}"
    elif isinstance(message, KeyError):  # without quotes
        text = message.args[0]
    _print(text, errors=True)
    return typer.Exit(status)


@contextmanager
def as_sentences() -> Iterator[None]:
    """Turn every error of a command into a sentence and exit status 2.

    The statuses 1 and 3 have a meaning for the caller. A warning becomes a sentence too.
    """
    _accept_every_name()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
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
            f"The command stopped on an unexpected error ({type(error).__name__}). "
            "Please report it."
        ) from None


def _show_warning(message: object, *_: object, **__: object) -> None:
    _print(f"Warning: {message}", errors=True)


def _accept_every_name() -> None:
    """Let a terminal that lacks a letter of a name show its code instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


class _Stream(Console):
    """A terminal, a file or a pipe. If nobody reads the pipe any more, nothing more is written.

    rich would end the command with exit status 1, which is the answer of a gate.
    """

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def echo(text: object) -> None:
    """Print a text without markup; the terminal breaks its lines."""
    _print(text, errors=False)


def _print(text: object, *, errors: bool) -> None:
    """Print a text. A stream that cannot be written does not change the exit status."""
    console = _Stream(stderr=errors, soft_wrap=True, highlight=False)
    with _if_writable(errors=errors):
        console.print(visible(str(text)), markup=False)


@contextmanager
def _if_writable(*, errors: bool) -> Iterator[None]:
    """Print nothing more on a stream that cannot be written, as on a full disk."""
    try:
        yield
    except OSError:
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  it stays open to the end
        setattr(sys, "stderr" if errors else "stdout", nowhere)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show on the error stream that a computation runs: a spinner, or one line in a file.

    It yields a function that shows another text in a terminal.
    """
    console = _Stream(stderr=True, soft_wrap=True, highlight=False)
    if not console.is_terminal:
        _print(text, errors=True)
        yield lambda _: None
        return
    with console.status(escape(visible(text))) as status:
        yield lambda shown: status.update(escape(visible(shown)))


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    fold: Collection[str] = (),
    title: str | None = None,
) -> None:
    """Print a table whose cells are never cut, so that a user can copy every name.

    The columns ``fold`` may break lines. A narrow terminal leaves columns out from the right, and
    a line names them.
    """
    out = _Stream(highlight=False)
    width = out.width if out.is_terminal else _WIDE
    needed = []
    for column in zip(headings, *rows, strict=True):
        longest = max(cell_len(cell) for cell in column)
        if column[0] in fold:
            longest = min(longest, _FOLDED)
        needed.append(3 + longest)
    kept = len(headings)
    while kept > 2 and sum(needed[:kept]) + 1 > width:
        kept -= 1
    table = Table(title=title)
    for name in headings[:kept]:
        table.add_column(escape(name), no_wrap=name not in fold, overflow="fold")
    for row in rows:
        # Without this, rich reads an interval in brackets as markup.
        table.add_row(*[escape(visible(cell)) for cell in row[:kept]])
    # If the table is still too wide, the terminal breaks its lines, which is better than cutting
    # names.
    out.width = max(width, sum(needed[:kept]) + 1)
    with _if_writable(errors=False):
        out.print(table)
        if kept < len(headings):
            out.width = width
            left_out = ", ".join(headings[kept:])
            out.print(
                f"Columns left out in a terminal of {width} characters: {left_out}.", markup=False
            )
