"""The commands of the library on a page: ``{{ commands }}`` gives each command its options as a table.

The words are those of ``frhsic COMMAND --help``, read from the application when the book is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from frhsic_core.cli import command


def each_command(group: Any, name: str = "frhsic") -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of every command, those of a group after the name of the group."""
    for part in group.list_commands(None):
        found = group.get_command(None, part)
        if hasattr(found, "commands"):
            yield from each_command(found, f"{name} {part}")
        else:
            yield f"{name} {part}", found


def as_code(words: str) -> str:
    """Return the words with options such as --help as code, in which two hyphens stay two."""
    return re.sub(r"(?<!\w)--[a-z-]+", r"`\g<0>`", words)


def row(parameter: Any) -> str:
    """Return the row of an argument or an option: how it is typed, what it does, and its default."""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name.upper()}`"
    words = as_code((parameter.help or "").replace("\\[", "[").replace("|", "\\|"))
    unsaid = parameter.default is None or parameter.default is False or parameter.default == ""
    default = "" if unsaid else f"`{parameter.default}`"
    return f"| {names} | {words} | {default} |"


def tables() -> str:
    """Return the page: for each command its words, its exit status, a table of its options and an example.

    Examples
    --------
    >>> page = tables()
    >>> "| `--max-rows` | Audit a random sample of a larger file. | `5000000` |" in page, "`--guaranteed` the" in page
    (True, True)
    >>> page.count("| option |"), "**`frhsic data card`**" in page
    (10, True)
    """
    page = ""
    for name, found in each_command(typer.main.get_command(command())):
        rows = [row(parameter) for parameter in found.params if parameter.name != "help"]
        words = as_code(re.sub(r"(?<!\n)\n(?!\n)", " ", (found.help or "").strip()))
        example = (found.epilog or "").removeprefix("Example: ")
        page += f"**`{name}`** {words} Example: `{example}`\n\n"
        if rows:
            page += (
                "\n".join(["| option | what it does | default |", "|---|---|---|", *rows]) + "\n\n"
            )
    return page
