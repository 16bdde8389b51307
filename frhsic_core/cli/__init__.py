"""Assemble the ``frhsic`` command, and print its tables, progress and errors.

The modules of this package define the subcommands. They import torch only when a subcommand needs it, so that
``frhsic --help`` starts quickly.
"""

from __future__ import annotations

import importlib
import sys

import typer

import frhsic_core
from frhsic_core.cli.terminal import as_sentences

__all__ = ["command", "main"]

INTERRUPTED = 130
EXIT_STATUS = (
    "Exit status: 0 success; 1 a check failed or a file is not available; 2 the command is wrong, "
    "or a path cannot be read or written; 3 work remains; 4 a training run failed; 130 interrupted "
    "with Ctrl-C."
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
    practice = importlib.import_module("frhsic_core.cli.practice")
    monitoring = importlib.import_module("frhsic_core.cli.monitoring")
    paper = importlib.import_module("frhsic_core.cli.paper")
    app.add_typer(practice.data, name="data")
    for function, example in (practice.EXAMPLES | monitoring.EXAMPLES | paper.EXAMPLES).items():
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
