"""Define the command ``frhsic monitor``."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Annotated

import typer

from frhsic_core._atomic_files import write_atomically
from frhsic_core._choices import one_of
from frhsic_core.cli.outputs import Files
from frhsic_core.cli.terminal import echo, waiting


def monitor(
    data: Annotated[Path, typer.Argument(help="A table (CSV or parquet), or a folder of tables.")],
    model: Annotated[str, typer.Option(help="Name and version of the model.")],
    score: Annotated[str, typer.Option(help="Column of the predictions.")],
    sensitive: Annotated[str, typer.Option(help="Column of a sensitive attribute.")],
    date: Annotated[
        str | None,
        typer.Option(help="Column of dates. Without one each file of the folder is a period."),
    ] = None,
    every: Annotated[
        str, typer.Option(help="Length of a period: day, week, month, quarter or year.")
    ] = "month",
    row_id: Annotated[
        str, typer.Option("--id", help="Column that names a row, so that it counts once.")
    ] = "",
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="No row is in two files, although rows are equal.")
    ] = False,
    edges: Annotated[
        str, typer.Option(help="Inner edges of bins of the attribute, such as 30,45,60.")
    ] = "",
    lowest: Annotated[float, typer.Option(help="Smallest possible score.")] = 0.0,
    highest: Annotated[float, typer.Option(help="Largest possible score.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Probability that any statement is ever wrong.")
    ] = 0.05,
    planned_rows: Annotated[
        int, typer.Option(help="Rows that you expect in all: there the guarantee is tightest.")
    ] = 10_000,
    fail_above: Annotated[
        float | None, typer.Option(help="Threshold of GDP for a gate, such as 0.05.")
    ] = None,
    state: Annotated[Path, typer.Option(help="What is remembered between two looks.")] = Path(
        "monitor.json"
    ),
    out: Annotated[Path, typer.Option(help="The page with the pictures.")] = Path("monitor.html"),
) -> None:
    """Watch how much the scores of a model depend on an attribute, with one guarantee for all looks together.

    Run it as often as you like, on a folder or a table that grows. Each row counts once. The guarantee
    on GDP holds at every look at once, from the first row on. If a later period certainly has another
    distribution, the page says since when, and the guarantee begins again there; this is part of the
    same probability of error.

    Exit status: 0 done, and the guarantee is not above the threshold; 1 GDP is certainly above the
    threshold since some period; 2 the command is wrong, or a file cannot be read or written; 3 the
    rows cannot decide, because the guarantee is above the threshold.
    """
    from frhsic_core.monitoring.intake import files_of, take_in
    from frhsic_core.monitoring.monitor import Settings, resumed
    from frhsic_core.monitoring.page import page, sentences
    from frhsic_core.monitoring.periods import LENGTHS

    written = Files([state, out], overwrite=True)
    paths = files_of(data)
    written.require_none_of(*paths)
    settings = Settings(
        model=model,
        score=score,
        sensitive=sensitive,
        planned_rows=planned_rows,
        delta=delta,
        edges=_numbers(edges),
        lowest=lowest,
        highest=highest,
        every=one_of("every", every, LENGTHS) if date else "file",
        row_id=row_id,
    )
    if fail_above is not None and not 0.0 <= fail_above < 0.5 * settings.unit:
        raise ValueError(
            f"--fail-above {fail_above:g} can never fail: GDP is at most {0.5 * settings.unit:g} for "
            f"scores from {lowest:g} to {highest:g}. Give a smaller number."
        )
    with resumed(state, settings) as found:
        with waiting(f"Reading {len(paths)} file{'s' * (len(paths) != 1)} ..."):
            intake = take_in(found, [p for p in paths if p != state], date=date, disjoint=disjoint)
        history = found.history()
        notes = intake.sentences()
        shown = page(found, history, limit=fail_above, notes=notes)
        files: dict[Path, Callable[[object], object]] = {
            state: methodcaller("write", found.to_bytes()),
            out: methodcaller("write", shown.encode()),
        }
        write_atomically(files)
    for sentence in [*notes, *sentences(found, history, fail_above)]:
        echo(f"- {sentence}")
    echo(f"Page: {out}. State: {state}")
    raise typer.Exit(0 if fail_above is None else history.status(fail_above))


def _numbers(text: str) -> tuple[float, ...]:
    """Return numbers between commas, in rising order."""
    if not text:
        return ()
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--edges is {text!r}: write numbers such as 30,45,60.") from None
    if list(found) != sorted(set(found)):
        raise ValueError(f"--edges is {text!r}: write the numbers in rising order.")
    return found


EXAMPLES: dict[Callable[..., None], str] = {
    monitor: "frhsic monitor scores/ --model 'credit 3' --score p --sensitive age --date month",
}
