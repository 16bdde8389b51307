"""Assemble the ``frhsic`` command, and print its tables, progress and errors.

The modules of this package define the subcommands. They import torch only when a subcommand needs it, so that
``frhsic --help`` starts quickly.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

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


class Commands(TyperGroup):
    """The commands of practice; those of the paper join them when another name, or the list, is asked for.

    So ``frhsic audit`` imports nothing of the paper.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name."""
        if cmd_name not in self.commands:
            self._add_those_of_the_paper()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        self._add_those_of_the_paper()
        return super().list_commands(ctx)

    def _add_those_of_the_paper(self) -> None:
        paper = importlib.import_module("frhsic_core.cli.paper")
        app = typer.Typer()
        _add(app, paper.EXAMPLES, panel="The paper")
        app.add_typer(paper.data, name="data", rich_help_panel="The paper")
        group: Any = typer.main.get_command(app)
        for name, found in group.commands.items():
            self.commands.setdefault(name, found)


def _add(app: typer.Typer, examples: Mapping[Callable[..., None], str], *, panel: str) -> None:
    """Add functions as commands of a panel of the help, each with an example."""
    for function, example in examples.items():
        add = app.command(epilog=f"Example: {example}", rich_help_panel=panel)
        add(as_sentences()(function))


def command() -> typer.Typer:
    """Return the command with all subcommands."""
    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    app.callback(epilog=f"Example: frhsic status\n\n{EXIT_STATUS}")(_options)
    for name in ("practice", "monitoring"):
        module = importlib.import_module(f"frhsic_core.cli.{name}")
        _add(app, module.EXAMPLES, panel="Practice")
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
