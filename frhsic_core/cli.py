"""The ``frhsic`` command: data, certificates, experiments.

Each layer keeps its own commands beside its code; this module only mounts them, so that ``frhsic --help`` is quick and
asking for a table never imports torch.
"""

from __future__ import annotations

import importlib

import typer

import frhsic_core

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"frhsic-core {frhsic_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Check the theorems, fetch the data, run the experiments of the executable edition of FRHSIC."""


def main() -> None:
    """Mount the commands of every layer and run."""
    app.add_typer(importlib.import_module("frhsic_core.data.commands").app, name="data")
    app.command("certify")(importlib.import_module("frhsic_core.theory.commands").certify)
    importlib.import_module("frhsic_core.experiments.commands").register(app)
    app()
