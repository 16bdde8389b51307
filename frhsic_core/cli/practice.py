"""Define the commands of practice: ``frhsic data list``, ``fetch``, ``verify`` and ``card``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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

app = typer.Typer(
    no_args_is_help=True,
    help="List, download and verify the datasets.",
    epilog="Example: frhsic data list",
)
Names = Annotated[list[str] | None, typer.Argument(help="Names of datasets. Default: all real datasets.")]


def _check(what: str, given: str, known: tuple[str, ...]) -> None:
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


@app.command("list", epilog="Example: frhsic data list")
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


@app.command(epilog="Example: frhsic data fetch compas crime")
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


@app.command(epilog="Example: frhsic data verify adult")
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
            data = load_variant(name, variant, **({"download": False} if name in REAL else {}))
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


def _problem(file: RawFile, path: Path) -> str:
    try:
        verify_bytes(path, file)
    except (CorruptFile, OSError) as error:
        return str(error)
    return ""


@app.command(epilog="Example: frhsic data card adult --variant reference")
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
        data = load_variant(name, variant, **({"download": False} if name in REAL else {}))
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
