"""Define the command ``frhsic audit``."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Annotated

import typer

from frhsic_core.cli.terminal import console, fail, waiting


def audit(
    predictions: Annotated[Path, typer.Argument(help="CSV or parquet file with one row for each person.")],
    score: Annotated[
        list[str] | None, typer.Option(help="Column of the predictions. Repeat it for an embedding.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Column of a sensitive attribute. Can be repeated.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the true labels.")] = None,
    control: Annotated[
        list[str] | None, typer.Option(help="Column of a legitimate factor to adjust for. Can be repeated.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weights of the rows.")] = None,
    positive_class: Annotated[
        str | None, typer.Option(help="The label (or hard prediction) that counts as 1, if it is a word.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The report. JSON and Markdown are written beside it.")] = Path(
        "audit.html"
    ),
    json: Annotated[Path | None, typer.Option(help="Write the JSON to this file instead.")] = None,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(help="Threshold for a gate, such as gdp=0.05 or gdp\\[age]=0.05. Can be repeated."),
    ] = None,
    unit: Annotated[str, typer.Option(help="What a row is, for the sentences.")] = "people",
    max_rows: Annotated[int, typer.Option(min=100, help="Audit a random sample of a larger file.")] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Measure how much predictions depend on age, income or another attribute, and write a report.

    The attribute is not cut into groups. The report says in sentences how the predictions change along the attribute,
    for whom the gap is largest, and whether it is more than chance.

    Exit status: 0 done, and no number is above its threshold; 1 a number is above its threshold with its whole
    interval; 2 the command is wrong, or a file cannot be read or written; 3 an interval contains its threshold, so the
    data cannot decide.
    """
    try:
        status = _audit(
            predictions, score or [], sensitive or [], label, control or [], weight, positive_class, out, json,
            fail_above or [], unit, max_rows, seed,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (ValueError, TypeError, KeyError, OSError, MemoryError) as error:
        raise fail(_message(error, out)) from None
    except (
        Exception
    ) as error:  # 1 and 3 have a meaning for the caller, so a fault of the program must not end with them
        traceback.print_exc()
        raise fail(f"The audit stopped on an unexpected error ({type(error).__name__}). Please report it.") from None
    raise typer.Exit(status)


def _message(error: Exception, out: Path) -> object:
    if isinstance(error, MemoryError):
        return "The rows do not fit into memory: pass a smaller --max-rows."
    if isinstance(error, KeyError):
        return error.args[0] if error.args else "unknown name"
    if isinstance(error, OSError):  # reading has errors of its own
        return (
            f"{error.filename or out} could not be written ({error.strerror or error}): free some space, or choose "
            "another folder with --out. No file was changed."
        )
    return error


def _audit(
    predictions: Path,
    score: list[str],
    sensitive: list[str],
    label: str | None,
    control: list[str],
    weight: str | None,
    positive_class: str | None,
    out: Path,
    json: Path | None,
    fail_above: list[str],
    unit: str,
    max_rows: int,
    seed: int,
) -> int:
    from frhsic_core.auditing._input import read_columns, read_table

    score, sensitive = list(dict.fromkeys(score)), list(dict.fromkeys(sensitive))
    for name in sensitive:
        if name in score or name in control:
            other = "--score" if name in score else "--control"
            raise ValueError(f"{name!r} is named by --sensitive and by {other}: name two different columns.")
    with waiting(f"Reading {predictions.name} ..."):
        roles = [*score, *sensitive, *([label] if label else []), *control, *([weight] if weight else [])]
        # Without the two that are needed the reader answers with the names of the columns.
        table = read_table(predictions, roles if score and sensitive else [], max_rows=max_rows, random_state=seed)
    import torch

    from frhsic_core.auditing._predictions import audit_columns
    from frhsic_core.auditing._report import save
    from frhsic_core.auditing._results import decide, exit_status, parse_threshold

    torch.set_num_threads(1)  # the matrices are small: on several threads the same audit takes longer
    thresholds = [parse_threshold(text) for text in fail_above]
    data = table.data
    columns = read_columns(
        data[score],
        data[sensitive],
        data[label] if label else None,
        data[control] if control else None,
        data[weight] if weight else None,
        positive_class,
    )
    notes: tuple[str, ...] = ()
    if table.sampled:
        notes = (f"The file has {table.rows:,} rows; a random sample of {len(data):,} was audited (seed {seed}).",)
    with waiting(f"Auditing {len(data):,} rows ..."):
        result = audit_columns(columns, unit=unit, random_state=seed, notes=notes, source=predictions.name)
        verdicts = decide(result, thresholds)
    written = save(result, out, verdicts=verdicts, json_path=json)
    shown = console()
    for sentence in [*result.sentences, *map(str, verdicts)]:
        shown.print(f"- {sentence}", markup=False, soft_wrap=True)
    shown.print(f"Report: {', '.join(map(str, reversed(written)))}", markup=False, soft_wrap=True)
    return exit_status(verdicts)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit", epilog="Example: frhsic audit predictions.csv --score p --sensitive age")(audit)
