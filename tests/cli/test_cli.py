"""The ``frhsic`` command as a whole: help, examples, Ctrl-C, tables in a narrow terminal."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from records import Records
from rich.console import Console
from typer.testing import CliRunner

from frhsic_core import cli
from frhsic_core.cli import terminal
from frhsic_core.data import available_datasets

APP = cli.command()


def commands(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return every command and group by the words that call it."""
    found = {path: command}
    if hasattr(command, "commands"):
        for name in command.list_commands(None):
            found |= commands(command.get_command(None, name), (*path, name))
    return found


COMMANDS = commands(typer.main.get_command(APP))


def described() -> dict[str, Any]:
    """Return the options of every command with their defaults, and what is printed about datasets."""
    found: dict[str, Any] = {}
    for path, command in COMMANDS.items():
        options = [
            (p.name, p.opts, p.required, getattr(p, "multiple", None)) for p in command.params
        ]
        given = {
            p.name: str(p.default)
            for p in command.params
            if isinstance(p.default, int | float | str | Path)
        }
        found[" ".join(path)] = [
            command.epilog,
            getattr(command, "no_args_is_help", None),
            options,
            given,
        ]
    for words in (["data", "list"], *(["data", "card", name] for name in available_datasets())):
        shown = CliRunner().invoke(APP, words).output
        found[" ".join(words)] = " ".join(
            re.sub(r"[^\w\s.,:+()-]", " ", shown).split()
        )  # without the lines of a table
    return found


def test_commands_and_what_they_print_of_datasets_are_on_record(recorded: Records) -> None:
    recorded(described())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_an_example_that_parses(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(APP, [*path, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    examples = [line.strip() for line in shown.output.splitlines() if "Example: frhsic" in line]
    assert len(examples) == 1
    words = shlex.split(examples[0].removeprefix("Example: "))[1:]
    assert tuple(words[: len(path)]) == path
    # Parsed to the last command, without running it: an option that was renamed fails here.
    called = max((known for known in COMMANDS if tuple(words[: len(known)]) == known), key=len)
    COMMANDS[called].make_context("frhsic", words[len(called) :])


def test_exit_statuses_are_documented() -> None:
    shown = " ".join(CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "300"}).output.split())
    assert cli.EXIT_STATUS in shown
    for path, command in COMMANDS.items():
        if path not in ((), ("data",), ("data", "list"), ("data", "card")):
            assert "Exit status" in command.help, path


# What runs in the background may have been told to ignore Ctrl-C, and so would its children.
LISTENING = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def test_ctrl_c_in_a_run_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("frhsic_core.paper.runs.runner.run_experiment", interrupted)
    result = CliRunner().invoke(APP, ["run", "main", "--preset", "smoke", "--store", str(tmp_path)])
    assert (result.exit_code, "Run the same command again to resume" in result.stderr) == (
        130,
        True,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_while_the_ledger_is_judged_is_no_traceback(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from frhsic_core import cli\n"
        "import frhsic_core.paper.claims as ledger\n"
        "ledger.ledger = lambda **_: time.sleep(60)\n"
        "sys.argv = ['frhsic', 'ledger']\n"
        "cli.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    assert "Judging" in process.stderr.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors.strip()) == (130, "", "Interrupted.")


@pytest.mark.parametrize("width", [120, 80, 50, 20])
def test_tables_leave_columns_out_before_they_cut_a_cell(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "_Stream", lambda **_: out)
    rows = [
        ("a_long_experiment_name", "12 [1, 2]", "word " * 20, "x" * 30),
        ("b", "3", "short", "y"),
    ]
    terminal.print_table(("name", "value", "note", "device"), rows, fold=("note",))
    text = out.file.getvalue()
    assert "a_long_experiment_name" in text
    assert "12 [1, 2]" in text
    assert "…" not in text
    assert ("x" * 30 in text) == (width >= 120)
    assert ("left out" in text) == (width < 120)
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width


def test_an_error_of_the_system_is_said_without_its_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert terminal.fail(OSError(28, "The disk is full: free some.")).exit_code == 2
    assert capsys.readouterr().err == "The disk is full: free some.\n"
    terminal.fail(FileNotFoundError(2, "No such file", "x.csv"))
    assert capsys.readouterr().err == "x.csv: No such file\n"
