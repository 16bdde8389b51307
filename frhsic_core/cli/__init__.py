"""Assemble the ``frhsic`` command.

The modules of this package define the subcommands. They import torch only when a subcommand needs it, so that
``frhsic --help`` starts quickly.
"""

from __future__ import annotations

import importlib
import sys

import typer

import frhsic_core
from frhsic_core.cli.terminal import EXIT_STATUS, INTERRUPTED

__all__ = ["command", "main"]


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
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)
    app.callback(epilog=f"Example: frhsic status\n\n{EXIT_STATUS}")(_options)
    for module in ("practice", "paper"):
        importlib.import_module(f"frhsic_core.cli.{module}").register(app)
    return app


def main() -> None:
    """Run the command; Ctrl-C ends it with status 130 and without a traceback."""
    try:
        command()(standalone_mode=True)
    except KeyboardInterrupt:  # Ctrl-C while the modules were imported
        status = INTERRUPTED
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    else:
        status = 0
    if status == INTERRUPTED:
        typer.echo("Interrupted.", err=True)
    sys.exit(status)
