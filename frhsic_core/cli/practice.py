"""Define the commands of practice: ``frhsic audit``, ``frhsic adjust`` and the group ``frhsic data``."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from frhsic_core._choices import one_of
from frhsic_core.cli import as_sentences, echo, print_table, waiting
from frhsic_core.data._files import DataError, Folders, find_local
from frhsic_core.data._loading import CARDS, REAL, RECIPES, available_datasets, load_dataset
from frhsic_core.paper.datasets import load_variant, recipe_of, sources_of, variants_of
from frhsic_core.registry import DATASETS

data = typer.Typer(
    no_args_is_help=True,
    help="List, download and describe the datasets.",
    epilog="Example: frhsic data list",
)
Sensitive = Annotated[
    list[str] | None, typer.Option(help="Column of a sensitive attribute. Can be repeated.")
]


def _known(name: str) -> str:
    return one_of("dataset", name, available_datasets())


@data.command("list", epilog="Example: frhsic data list")
def list_datasets() -> None:
    """List all datasets with their size, task, sensitive attribute, source and local status. Local files are verified.

    Nothing is downloaded.
    """
    folders = Folders.from_environment()
    rows = []
    for name in REAL:
        for variant in variants_of(name):
            sources = sources_of(name, variant)
            shown = next((source for source in sources if source.file.links), sources[0])
            status = f"missing: frhsic data fetch {name}"
            try:
                for source in sources:
                    if located := find_local(source.file, folders, []):
                        shown, status = source, f"verified, in {located.origin}"
                        break
            except OSError as error:
                status = f"not readable: {error.strerror or error}"
            rows.append((
                name, variant, status, recipe_of(name, variant).sensitive, str(shown.d), f"{shown.counts[-1]:,}",
                RECIPES[name].task, f"{shown.kind}: {shown.file.name}",
            ))  # fmt: skip
    for name in (key for key in RECIPES if key not in REAL):
        law = load_dataset(name)
        size = (str(law.d), f"{law.n:,}", law.task)
        rows.append((name, "-", "built in", law.sensitive_name, *size, "a probability law"))
    headings = ("name", "variant", "status", "S", "d", "n", "task", "source")
    print_table(headings, rows, fold=("source", "status"))


@data.command(epilog="Example: frhsic data fetch compas crime")
@as_sentences()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of datasets. Default: all real datasets.")
    ] = None,
) -> None:
    """Download the named datasets to the cache, unless they are there, and verify them: checksum, columns and rows.

    If a download fails, or a file is wrong, instructions for a manual download are printed.

    Exit status: 0 all datasets are available; 1 at least one is not; 2 the command is wrong.
    """
    failed = False
    for name in list(map(_known, names or REAL)):
        for variant in variants_of(name):
            try:
                with waiting(f"Loading {name} ({variant}) ..."):
                    loaded = load_variant(name, variant)
                echo(loaded.provenance)
            except (DataError, OSError) as error:
                failed = True
                echo(f"{name} ({variant}): not available\n{error}\n")
    if failed:
        raise typer.Exit(1)


@data.command(epilog="Example: frhsic data card adult")
@as_sentences()
def card(
    name: Annotated[str, typer.Argument(help="Name of a dataset; see frhsic data list.")],
) -> None:
    """Print the description of a dataset: what was measured, by whom, the terms of use and the known problems."""
    it = CARDS[_known(name)]
    echo(f"── {DATASETS[name].label} ──")
    for text in (it.measured, it.by, it.sensitive, it.target, it.terms):
        echo(text)
    for label, entries in (
        ("Known problems", it.problems),
        ("Limits of what the data show", it.not_for),
    ):
        echo("\n  - ".join([f"{label}:", *entries]))


# The audit ------------------------------------------------------------------------------------------------------------


def audit(
    predictions: Annotated[
        Path | None,
        typer.Argument(help="CSV file, parquet file or folder of parquet files, one row a person."),
    ] = None,
    score: Annotated[list[str] | None, typer.Option(help="Column of the predictions.")] = None,
    sensitive: Sensitive = None,
    label: Annotated[str | None, typer.Option(help="Column of the true labels.")] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(help="Column of a legitimate factor to adjust for. Can be repeated."),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weights of the rows.")] = None,
    positive_class: Annotated[
        str | None,
        typer.Option(help="The label (or hard prediction) that counts as 1, if it is a word."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Select people with at least this score: selection rates and impact ratios."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Name and version of the model, for the report.")] = "",
    demo: Annotated[
        bool, typer.Option("--demo", help="Audit invented people; their table is written too.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="The report. JSON and Markdown are written beside it.")
    ] = Path("audit.html"),
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            help="Threshold for a gate, such as gdp=0.05 or gdp\\[age]=0.05. Can be repeated."
        ),
    ] = None,
    guaranteed: Annotated[
        bool,
        typer.Option(
            "--guaranteed",
            help="Pass only if the guaranteed bound on GDP is below the threshold. It holds for rows that did not "
            "train or choose the model, and the command cannot recognize those that did.",
        ),
    ] = False,
    unit: Annotated[str, typer.Option(help="What a row is, for the sentences.")] = "people",
    max_rows: Annotated[
        int, typer.Option(min=100, help="Audit a random sample of a larger file.")
    ] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Measure how much predictions depend on age, income or another attribute, and write a report.

    The attribute is not cut into groups. The report says in sentences how the predictions change along the attribute,
    for whom the gap is largest, and whether it is more than chance.

    Exit status: 0 done, and no number is above its threshold; 1 a number is above its threshold with its whole
    interval; 2 the command is wrong, or a file cannot be read or written; 3 an interval contains its threshold, or with
    --guaranteed the bound is above it, so the data cannot decide.
    """
    score, sensitive, control = (
        list(dict.fromkeys(names or [])) for names in (score, sensitive, control)
    )
    from frhsic_core.inputs.files import read_table

    if guaranteed and not fail_above:
        raise ValueError("--guaranteed needs a threshold: add --fail-above gdp=0.05.")
    if demo:
        predictions = out.with_name(f"{out.stem}_people.csv")
        score, sensitive, label, threshold = ["p"], ["age"], "hired", 0.5
        _write_people(predictions)
        call = "--score p --sensitive age --label hired --threshold 0.5"
        echo(
            f"The table of invented people is {predictions}. This is: frhsic audit {predictions} {call}"
        )
    if predictions is None:
        raise ValueError("name a CSV or parquet file, or try it with --demo.")
    named = _different(
        {
            "--score": score,
            "--sensitive": sensitive,
            "--label": [label],
            "--control": control,
            "--weight": [weight],
        }
    )
    with waiting(f"Reading {predictions.name} ..."):
        # Without the two that are needed the reader answers with the names of the columns.
        data, rows = read_table(
            predictions, named if score and sensitive else [], max_rows=max_rows, random_state=seed
        )
    import torch

    from frhsic_core.auditing import audit as measure

    torch.set_num_threads(
        1
    )  # the matrices are small: on several threads the same audit takes longer
    given = {
        "sensitive_features": sensitive,
        "y_true": label,
        "control_features": control,
        "sample_weight": weight,
    }
    options: dict[str, Any] = {argument: data[names] for argument, names in given.items() if names}
    options |= {
        "positive_class": positive_class,
        "threshold": threshold,
        "unit": unit,
        "model": model,
    }
    with waiting(f"Auditing {len(data):,} rows ..."):
        result = measure(data[score], **options, random_state=seed)
        notes = result.notes
        if rows > len(data):
            notes = (
                f"The file has {rows:,} rows; a random sample of {len(data):,} was audited (seed {seed}).",
                *notes,
            )
        result = replace(result, notes=notes, provenance=result.provenance | _origin(predictions))
        result = replace(
            result, verdicts=tuple(result.check(*fail_above or (), guaranteed=guaranteed))
        )
    written = result.save(out)
    for sentence in [*result.sentences, *result.verdicts]:
        echo(f"- {sentence}")
    echo(f"Report: {', '.join(map(str, reversed(written)))}")
    # The worst of them: above, then inconclusive.
    raise typer.Exit(
        max((verdict.status for verdict in result.verdicts), key=(0, 3, 1).index, default=0)
    )


def _different(roles: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Return the columns that the options name; a column that two of them name is an error."""
    seen: dict[str, str] = {}
    for option, names in roles.items():
        for name in names:
            if name and seen.setdefault(name, option) != option:
                raise ValueError(
                    f"{name!r} is named by {seen[name]} and by {option}: name two different columns."
                )
    return list(seen)


def _origin(path: Path) -> dict[str, str]:
    """Return the name of a file, its size and its SHA-256; of a folder those of its files by their names."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    size = sum(file.stat().st_size for file in files)
    return {"file": path.name, "size": f"{size:,} bytes", "sha256": digest.hexdigest()}


def _write_people(path: Path) -> None:
    """Write the people of the running example with the scores of a model that was trained on others."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    train, others = (load_dataset("people", random_state=seed) for seed in (0, 1))
    model = LogisticRegression().fit(train.X, train.y)
    table = pd.DataFrame(others.X, columns=list(others.feature_names))
    table = table.assign(
        age=others.s.round(), hired=others.y.astype(int), p=model.predict_proba(others.X)[:, 1]
    )
    table.round(4).to_csv(path, index=False)


# The adjustment -------------------------------------------------------------------------------------------------------


def adjust(
    scores: Annotated[
        Path, typer.Argument(help="CSV or parquet file with one row for each person.")
    ],
    score: Annotated[str | None, typer.Option(help="Column of the scores.")] = None,
    sensitive: Sensitive = None,
    out: Annotated[Path, typer.Option(help="The same table with one more column.")] = Path(
        "adjusted.csv"
    ),
    save: Annotated[Path | None, typer.Option(help="Save the adjustment to this file.")] = None,
    use: Annotated[
        Path | None, typer.Option(help="Apply a saved adjustment instead of fitting a new one.")
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="People without an attribute: empty cells, refuse, leave their scores as they are, "
            "or give them the score that is expected of people with their score."
        ),
    ] = "empty",
) -> None:
    """Make scores depend less on age, income or another attribute, from scores and attributes alone.

    No labels and no model are needed. The table is written with one more column of adjusted scores, and a picture of
    the scores before and after stands beside it. People with the same attributes keep their order.

    Exit status: 0 done; 2 the command is wrong, or a file cannot be read or written.
    """
    sensitive = list(dict.fromkeys(sensitive or []))
    _different({"--score": [score], "--sensitive": sensitive})
    for option, path in (("--out", out), ("--save", save)):
        if path is not None and path.resolve() in (scores.resolve(), use and use.resolve()):
            raise ValueError(
                f"{option} {path} would replace a file that this command reads: name another file."
            )
    from frhsic_core.inputs.columns import as_columns
    from frhsic_core.inputs.files import read_table, read_text

    with waiting(f"Reading {scores.name} ..."):
        data = read_table(
            scores, [score, *sensitive] if score and sensitive else [], max_rows=sys.maxsize
        )[0]
        assert score is not None
        whole = read_text(scores)
    added = f"{score}_adjusted"
    if added in whole:
        raise ValueError(f"{scores.name} already has a column {added!r}: rename it, or remove it.")
    from frhsic_core._atomic_files import write_atomically
    from frhsic_core.auditing._report import change_report
    from frhsic_core.remedies.scores import ScoreAdjuster, other_half

    before = as_columns(data[[score]], argument="scores", default="score", categorical=False)[0]
    columns = as_columns(
        data[sensitive], argument="sensitive", default="sensitive", categorical=True
    )
    known = np.logical_and.reduce([column.known for column in (before, *columns)])
    f, frame = before.values[known], data.loc[known, sensitive].reset_index(drop=True)
    rest = before.known & ~known
    said_of_rest = _without_attribute(missing, int(rest.sum()))
    with waiting(f"Adjusting {len(f):,} score{'s' * (len(f) != 1)} ..."):
        adjuster = (
            ScoreAdjuster.load(use) if use else ScoreAdjuster().fit(f, sensitive_features=frame)
        )
        new = np.full(len(data), np.nan)
        new[known] = adjuster.transform(f, sensitive_features=frame)
        if missing in ("leave", "expected") and rest.any():
            new[rest] = adjuster.set_params(missing=missing).without_attribute(before.values[rest])
            adjuster.set_params(missing="refuse")
        shown, half = new, None if use else other_half(adjuster, f, frame)
        if half is not None:
            shown = np.full(len(data), np.nan)
            shown[np.flatnonzero(known)[half[0]]] = half[1]
    fitted_on = "others" if use else "itself" if half is None else "half"
    said, page = change_report(before, shown, columns, known, fitted_on=fitted_on)
    table = whole.assign(**{added: new})
    parquet = out.suffix.lower() in (".parquet", ".pq")
    files: dict[Path, Callable[[Any], Any]] = {
        out: partial(table.to_parquet if parquet else table.to_csv, index=False)
    }
    if page:
        files[out.with_suffix(".html")] = lambda file: file.write(page.encode())
    write_atomically(files)
    if save is not None:
        adjuster.save(save)
    for sentence in [*said, *said_of_rest]:
        echo(f"- {sentence}")
    echo(f"Written: {', '.join(map(str, [*files, *([save] if save else [])]))}")
    call = f"frhsic audit {out} --sensitive {' --sensitive '.join(sensitive)} --label LABEL"
    echo(
        f"What it costs in AUC, if you have labels: {call} --score {score}, and the same with --score {added}."
    )


def _without_attribute(missing: str, people: int) -> list[str]:
    """Return what happens to people with a score but without an attribute, as a sentence."""
    one_of("missing", missing, ("empty", "refuse", "leave", "expected"))
    if people == 0:
        return []
    if missing == "refuse":
        raise ValueError(
            f"{people:,} people have a score but not every attribute: fill these cells, remove the "
            "rows, or choose --missing empty, leave or expected."
        )
    done = {
        "empty": "get no adjusted score (--missing leave or expected gives them one)",
        "leave": "keep their score as it is",
        "expected": "get the adjusted score that is expected of people with their score",
    }
    return [f"{people:,} people have a score but not every attribute: they {done[missing]}."]


EXAMPLES: dict[Callable[..., None], str] = {
    audit: "frhsic audit predictions.csv --score p --sensitive age",
    adjust: "frhsic adjust scores.csv --score p --sensitive age",
}
