"""Define the commands of practice: ``frhsic audit``, ``frhsic adjust`` and the group ``frhsic data``."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from frhsic_core.choices import one_of
from frhsic_core.cli.terminal import echo, fail, print_table, waiting
from frhsic_core.data.dataset import Dataset
from frhsic_core.data.files import CorruptFile, DataError, Folders, RawFile, find_local
from frhsic_core.data.files import verify as verify_bytes
from frhsic_core.data.loading import CARDS, LAWS, REAL, available_datasets, load_dataset
from frhsic_core.paper.datasets import VARIANTS, load_variant, recipe_of, sources_of, variants_of
from frhsic_core.paper.summaries import summarize
from frhsic_core.registry import DATASETS

data = typer.Typer(
    no_args_is_help=True,
    help="List, download and verify the datasets.",
    epilog="Example: frhsic data list",
)
Names = Annotated[list[str] | None, typer.Argument(help="Names of datasets. Default: all real datasets.")]


def _check(what: str, given: str, known: Iterable[str]) -> None:
    try:
        one_of(what, given, known)
    except ValueError as error:
        raise fail(error) from None


def _wanted(names: list[str] | None) -> list[tuple[str, str]]:
    """Return each named dataset with each of its variants."""
    chosen = names or list(REAL)
    for name in chosen:
        _check("dataset", name, available_datasets())
    return [(name, variant) for name in chosen for variant in variants_of(name)]


def _paths(name: str, variant: str, folders: Folders) -> list[tuple[RawFile, Path]]:
    """Return the local files of a dataset, usable or not."""
    places = [folder for folder in (folders.data, folders.cache) if folder is not None]
    found = [(s.file, s.file.under(folder)) for s in sources_of(name, variant) for folder in places]
    return [(file, path) for file, path in found if path.exists()]


@data.command("list", epilog="Example: frhsic data list")
def list_datasets() -> None:
    """List all datasets with their size, task, sensitive attribute, source and local status."""
    folders = Folders.from_environment()
    rows = []
    for name in REAL:
        for variant in variants_of(name):
            sources = sources_of(name, variant)
            located = None
            status = f"missing: frhsic data fetch {name}"
            try:
                located = next((found for s in sources if (found := find_local(s.file, folders, []))), None)
            except OSError as error:
                status = f"not readable: {error.strerror or error}"
            if located is None:
                shown = next((s for s in sources if s.file.links), sources[0])
            else:
                shown = next(s for s in sources if s.file is located.file)
                status = f"verified, in {located.origin}"
            rows.append((
                name, variant, f"{shown.counts[-1]:,}", str(shown.d), REAL[name].task,
                recipe_of(name, variant).sensitive,
                f"{shown.kind}: {shown.file.name}", status,
            ))  # fmt: skip
    for name in LAWS:
        law = load_dataset(name)
        rows.append(
            (name, "-", f"{law.n:,}", str(law.d), law.task, law.sensitive_name, "a probability law", "built in")
        )
    headings = ("name", "variant", "n", "d", "task", "S", "source", "status")
    fold = {"source": None, "status": None}
    print_table(headings, rows, fold=fold, drop=("source", "task", "n", "d", "S"))


@data.command(epilog="Example: frhsic data fetch compas crime")
def fetch(names: Names = None) -> None:
    """Download the named datasets to the cache and verify them.

    If a download fails, instructions for a manual download are printed.

    Exit status: 0 all datasets are available; 1 at least one is not; 2 the command is wrong.
    """
    failed = False
    for name, variant in _wanted(names):
        try:
            with waiting(f"Loading {name} ({variant}) ..."):
                data = load_variant(name, variant)
            echo(f"{name} ({variant}): {_origin(data)}")
        except DataError as error:
            failed = True
            echo(f"{name} ({variant}): not available\n{error}\n")
    if failed:
        raise typer.Exit(1)


@data.command(epilog="Example: frhsic data verify adult")
def verify(names: Names = None) -> None:
    """Check the local files: checksum, columns and number of rows. Nothing is downloaded.

    Exit status: 0 every local file is correct (missing files are listed); 1 a file is wrong; 2 the command is wrong.
    """
    failed = False
    missing = False
    folders = Folders.from_environment()
    for name, variant in _wanted(names):
        what = f"{name} ({variant})"
        local = _paths(name, variant, folders) if name in REAL else []
        if name in REAL and not local:
            missing = True
            echo(f"missing  {what}: no local file")
            continue
        wrong = {path: problem for file, path in local if (problem := _problem(file, path))}
        try:
            data = _local(name, variant)
            if not wrong:
                echo(f"ok       {what}: n={data.n:,}, d={data.d}, {_origin(data)}")
        except (DataError, OSError) as error:
            wrong = wrong or {local[0][1]: str(error)}
        for path, problem in wrong.items():
            failed = True
            removed = "" if path.exists() else f" Removed from the cache. Download again: frhsic data fetch {name}"
            echo(f"failed   {what}: {path}: {problem}{removed}")
    if missing:
        echo("Missing files are not an error. Download them with: frhsic data fetch NAME")
    if failed:
        raise typer.Exit(1)


def _local(name: str, variant: str) -> Dataset:
    """Load a dataset without downloading anything."""
    return load_variant(name, variant, download=False) if name in REAL else load_variant(name, variant)


def _problem(file: RawFile, path: Path) -> str:
    try:
        verify_bytes(path, file)
    except (CorruptFile, OSError) as error:
        return str(error)
    return ""


@data.command(epilog="Example: frhsic data card adult --variant reference")
def card(
    name: Annotated[str, typer.Argument(help="Name of a dataset; see frhsic data list.")],
    variant: Annotated[
        str,
        typer.Option(help="text (as the paper describes the data) or reference (as its released code prepares them)."),
    ] = "text",
) -> None:
    """Print the description of a dataset, with summary statistics if its files are available."""
    _check("variant", variant, VARIANTS)
    _check("dataset", name, available_datasets())
    it = CARDS[name]
    title = DATASETS[name].full_title or DATASETS[name].title
    echo(f"── {title} ──")
    for text in (it.measured, it.by, it.sensitive, it.target, it.terms):
        echo(text)
    for label, entries in (("Known problems", it.problems), ("Limits of what the data show", it.not_for)):
        echo(f"{label}:")
        for entry in entries:
            echo(f"  - {entry}")
    try:
        data = _local(name, variant)
    except DataError as error:
        local = _paths(name, variant, Folders.from_environment())
        reason = f"not usable: {error}" if local else f"missing. Download them with: frhsic data fetch {name}"
        echo(f"numbers: the files are {reason}")
        return
    summary = summarize(data)
    s = summary["s"]
    y = summary["y"]
    echo(str(data.provenance))
    echo(
        f"numbers ({variant}): n={data.n:,}, d={data.d}; S from {s['min']:g} to {s['max']:g}, mean {s['mean']:.3g}, "
        f"{s['distinct']:,} distinct values; mean of Y {y['mean']:.3f}; correlation of S and Y "
        f"{summary['correlation']:.3f}; X explains {summary['x_explains_s']:.0%} of S linearly"
    )


def _origin(data: Dataset) -> str:
    if not data.provenance.files:
        return data.provenance.source
    record = data.provenance.files[0]
    known = "as expected" if record.hash_known_in_advance else "recorded at first use"
    return f"{record.name} from {record.origin}, sha256 {record.sha256[:12]}… {known}"


# The audit ------------------------------------------------------------------------------------------------------------


def audit(
    predictions: Annotated[
        Path | None, typer.Argument(help="CSV or parquet file with one row for each person.")
    ] = None,
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
    threshold: Annotated[
        float | None, typer.Option(help="Select people with at least this score: selection rates and impact ratios.")
    ] = None,
    model: Annotated[str, typer.Option(help="Name and version of the model, for the report.")] = "",
    demo: Annotated[bool, typer.Option("--demo", help="Audit invented people; their table is written too.")] = False,
    out: Annotated[Path, typer.Option(help="The report. JSON and Markdown are written beside it.")] = Path(
        "audit.html"
    ),
    json: Annotated[Path | None, typer.Option(help="Write the JSON to this file instead.")] = None,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(help="Threshold for a gate, such as gdp=0.05 or gdp\\[age]=0.05. Can be repeated."),
    ] = None,
    guaranteed: Annotated[
        bool, typer.Option("--guaranteed", help="Pass only if the guaranteed bound on GDP is below the threshold.")
    ] = False,
    unit: Annotated[str, typer.Option(help="What a row is, for the sentences.")] = "people",
    max_rows: Annotated[int, typer.Option(min=100, help="Audit a random sample of a larger file.")] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Measure how much predictions depend on age, income or another attribute, and write a report.

    The attribute is not cut into groups. The report says in sentences how the predictions change along the attribute,
    for whom the gap is largest, and whether it is more than chance.

    Exit status: 0 done, and no number is above its threshold; 1 a number is above its threshold with its whole
    interval; 2 the command is wrong, or a file cannot be read or written; 3 an interval contains its threshold, or with
    --guaranteed the bound is above it, so the data cannot decide.
    """
    score = list(dict.fromkeys(score or []))
    sensitive = list(dict.fromkeys(sensitive or []))
    control = control or []
    with _as_sentences(out):
        from frhsic_core.auditing._input import read_columns, read_table

        if guaranteed and not fail_above:
            raise ValueError("--guaranteed needs a threshold: add --fail-above gdp=0.05.")
        if demo:
            predictions = out.with_name(f"{out.stem}_people.csv")
            score, sensitive, label, threshold = ["p"], ["age"], "hired", 0.5
            _write_people(predictions)
            call = "--score p --sensitive age --label hired --threshold 0.5"
            echo(f"The table of invented people is {predictions}. This is: frhsic audit {predictions} {call}")
        if predictions is None:
            raise ValueError("name a CSV or parquet file, or try it with --demo.")
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
        thresholds = [parse_threshold(text) for text in fail_above or []]
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
            provenance = {"model": model} if model else {}
            with predictions.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = predictions.stat().st_size
            provenance |= {"file": predictions.name, "size": f"{size:,} bytes", "sha256": digest}
            options: dict[str, Any] = {
                "threshold": threshold,
                "unit": unit,
                "random_state": seed,
                "provenance": provenance,
            }
            result = audit_columns(columns, notes=notes, source=predictions.name, **options)
            verdicts = decide(result, thresholds, guaranteed=guaranteed)
        written = save(result, out, verdicts=verdicts, json_path=json)
        for sentence in [*result.sentences, *map(str, verdicts)]:
            echo(f"- {sentence}")
        echo(f"Report: {', '.join(map(str, reversed(written)))}")
        raise typer.Exit(exit_status(verdicts))


def _write_people(path: Path) -> None:
    """Write the people of the running example with the scores of a model that was trained on others."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    train, others = (load_dataset("people", random_state=seed) for seed in (0, 1))
    model = LogisticRegression().fit(train.X, train.y)
    table = pd.DataFrame(others.X, columns=list(others.feature_names))
    table = table.assign(age=others.s, hired=others.y.astype(int), p=model.predict_proba(others.X)[:, 1])
    table.round(4).to_csv(path, index=False)


# The adjustment -------------------------------------------------------------------------------------------------------


def adjust(
    scores: Annotated[Path, typer.Argument(help="CSV or parquet file with one row for each person.")],
    score: Annotated[str | None, typer.Option(help="Column of the scores.")] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Column of a sensitive attribute. Can be repeated.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="rank (the default: adjust the whole distribution of the scores) or mean.")
    ] = None,
    strength: Annotated[float | None, typer.Option(help="From 0 (no change) to 1 (complete, the default).")] = None,
    out: Annotated[Path, typer.Option(help="The same table with one more column.")] = Path("adjusted.csv"),
    save: Annotated[Path | None, typer.Option(help="Save the adjustment to this file.")] = None,
    use: Annotated[Path | None, typer.Option(help="Apply a saved adjustment instead of fitting a new one.")] = None,
) -> None:
    """Make scores depend less on age, income or another attribute, from scores and attributes alone.

    No labels and no model are needed. The table is written with one more column of adjusted scores, and a picture of
    the scores before and after stands beside it. People with the same attributes keep their order.

    Exit status: 0 done; 2 the command is wrong, or a file cannot be read or written.
    """
    sensitive = list(dict.fromkeys(sensitive or []))
    with _as_sentences(out):
        if use is not None and (method is not None or strength is not None):
            raise ValueError("--method and --strength belong to the fit: leave them out with --use.")
        from frhsic_core.auditing._input import MIN_ROWS, as_columns, read_table, read_text

        with waiting(f"Reading {scores.name} ..."):
            wanted = [score, *sensitive] if score and sensitive else []
            data = read_table(scores, wanted, max_rows=sys.maxsize).data
            assert score is not None
            whole = read_text(scores)
        added = f"{score}_adjusted"
        if added in whole:
            raise ValueError(f"{scores.name} already has a column {added!r}: rename it, or remove it.")
        from frhsic_core.atomic_files import write_together
        from frhsic_core.auditing._report import change_page
        from frhsic_core.auditing._sentences import number
        from frhsic_core.conditional._curve import Smoother
        from frhsic_core.remedies.scores import ScoreAdjuster

        before = as_columns(data[[score]], argument="scores", default="score", categorical=False)[0]
        columns = as_columns(data[sensitive], argument="sensitive", default="sensitive", categorical=True)
        known = before.known
        for column in columns:
            known = known & column.known
        f, frame = before.values[known], data.loc[known, sensitive].reset_index(drop=True)
        adjuster = ScoreAdjuster(method or "rank", strength=1.0 if strength is None else strength)
        with waiting(f"Adjusting {len(f):,} score{'s' * (len(f) != 1)} ..."):
            adjuster = ScoreAdjuster.load(use) if use else adjuster.fit(f, sensitive_features=frame)
            new = adjuster.transform(f, sensitive_features=frame)
        said: list[str] = []
        changes = []
        for column in columns:
            values = column.values[known]
            if len(f) >= MIN_ROWS and len(set(values[:MIN_ROWS])) > 1:
                smoother = Smoother(values, nominal=bool(column.categories))
                old, now = (smoother.curve(part) for part in (f, new))
                changes.append((column, old, now))
                gaps = [
                    f"{number(c.gdp)} (95% interval {number(c.gdp_low)} to {number(c.gdp_high)})" for c in (old, now)
                ]
                said.append(f"The mean gap along {column.name} was {gaps[0]} and is now {gaps[1]}.")
        if not known.all():
            said.append(f"Rows without a score or an attribute, which have no adjusted score: {(~known).sum():,}.")
        filled = np.full(len(data), np.nan)
        filled[known] = new
        table = whole.assign(**{added: filled})
        parquet = out.suffix.lower() in (".parquet", ".pq")
        files: dict[Path, Callable[[Any], Any]] = {
            out: partial(table.to_parquet if parquet else table.to_csv, index=False)
        }
        if changes:
            content = change_page(score, changes, said).encode()
            files[out.with_suffix(".html")] = lambda file: file.write(content)
        write_together(files)
        if save is not None:
            adjuster.save(save)
        for sentence in said:
            echo(f"- {sentence}")
        echo(f"Written: {', '.join(map(str, [*files, *([save] if save else [])]))}")


@contextmanager
def _as_sentences(out: Path) -> Iterator[None]:
    """Turn every error into a sentence and exit status 2, since 1 and 3 have a meaning for the caller."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except typer.Exit:
        raise
    except MemoryError:
        raise fail("The rows do not fit into memory: pass a smaller --max-rows.") from None
    except KeyError as error:
        raise fail(error.args[0] if error.args else "unknown name") from None
    except OSError as error:  # reading has errors of its own
        raise fail(
            f"{error.filename or out} could not be written ({error.strerror or error}): free some space, or choose "
            "another folder with --out. No file was changed."
        ) from None
    except (ValueError, TypeError) as error:
        raise fail(error) from None
    except Exception as error:
        traceback.print_exc()
        raise fail(f"The command stopped on an unexpected error ({type(error).__name__}). Please report it.") from None


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(data, name="data")
    app.command("audit", epilog="Example: frhsic audit predictions.csv --score p --sensitive age")(audit)
    app.command("adjust", epilog="Example: frhsic adjust scores.csv --score p --sensitive age")(adjust)
