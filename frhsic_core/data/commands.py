"""The ``frhsic data`` command: ``list``, ``fetch``, ``verify``, ``card NAME``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from frhsic_core.data.cards import CARDS
from frhsic_core.data.dataset import Dataset
from frhsic_core.data.fetching import Folders, find_local
from frhsic_core.data.files import DataError
from frhsic_core.data.registry import REAL, SYNTHETIC, VARIANTS, available_datasets, load_dataset, sources_of
from frhsic_core.data.summaries import summarize

app = typer.Typer(no_args_is_help=True, help="The five real datasets and the synthetic laws.")
Names = Annotated[list[str] | None, typer.Argument(help="Datasets; all five real ones when none is named.")]


class _Bar:
    """A rich progress bar with the interface pooch asks of one."""

    def __init__(self, progress: Progress, label: str) -> None:
        self.progress = progress
        self.task = progress.add_task(label, total=None)

    @property
    def total(self) -> float | None:
        """Bytes to come."""
        return self.progress.tasks[self.task].total

    @total.setter
    def total(self, value: float) -> None:
        self.progress.update(self.task, total=value)

    def update(self, amount: float) -> None:
        """Count bytes that arrived."""
        self.progress.advance(self.task, amount)

    def reset(self) -> None:
        """Start anew (pooch calls it once at the end)."""
        self.progress.reset(self.task)

    def close(self) -> None:
        """Nothing to close: the display owns the bar."""


def _console(**options: Any) -> Console:
    return Console(soft_wrap=True, highlight=False, **options)


def _wanted(names: list[str] | None) -> list[str]:
    chosen = names or list(REAL)
    unknown = [name for name in chosen if name not in available_datasets()]
    if unknown:
        known = ", ".join(available_datasets())
        _console(stderr=True).print(f"There is no dataset {', '.join(unknown)}. There are: {known}.", markup=False)
        raise typer.Exit(2)
    return chosen


@app.command("list")
def list_datasets() -> None:
    """Show every dataset: n, d, task, sensitive attribute, source, and whether it is here."""
    folders = Folders.from_environment()
    table = Table("name", "variant", "n", "d", "task", "S", "source", "status")
    for name in REAL:
        for variant in VARIANTS:
            sources = sources_of(name, variant)
            located = next((found for s in sources if (found := find_local(s.file, folders, []))), None)
            shown = (
                next((s for s in sources if s.file.links), sources[0])
                if located is None
                else next(s for s in sources if s.file is located.file)
            )
            status = "not here: frhsic data fetch " + name if located is None else f"verified, in {located.origin}"
            table.add_row(
                name, variant, f"{shown.counts[-1]:,}", str(shown.d), REAL[name].task, REAL[name].sensitive[variant],
                f"{shown.kind}: {shown.file.name}", status,
            )  # fmt: skip
    for name in SYNTHETIC:
        law = load_dataset(name)
        table.add_row(
            name, "-", f"{law.n:,}", str(law.d), law.task, law.sensitive_name, "a probability law", "built in"
        )
    _console(width=None if Console().is_terminal else 160).print(table)


@app.command()
def fetch(names: Names = None) -> None:
    """Bring the files of the named datasets into the cache, verified; says by hand how where the network cannot."""
    failed = False
    console, errors = _console(), _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    for name in _wanted(names):
        for variant in VARIANTS if name in REAL else ("text",):
            try:
                with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
                    data = load_dataset(name, variant, progress=_Bar(progress, name))
                console.print(f"{name} ({variant}): {_origin(data)}", markup=False)
            except DataError as error:
                failed = True
                console.print(f"{name} ({variant}): not available\n{error}\n", markup=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def verify(names: Names = None) -> None:
    """Check sha256, columns, n and d of the files that are here; never touches the network."""
    failed = False
    console = _console()
    for name in _wanted(names):
        for variant in VARIANTS if name in REAL else ("text",):
            try:
                data = load_dataset(name, variant, download=False)
                console.print(f"ok      {name} ({variant}): n={data.n:,}, d={data.d}, {_origin(data)}", markup=False)
            except DataError as error:
                failed = True
                console.print(f"failed  {name} ({variant}): {error}\n", markup=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def card(name: str, variant: Annotated[str, typer.Option(help="text or reference")] = "text") -> None:
    """Print the card of one dataset, with numbers where its files are here."""
    _wanted([name])
    console, it = _console(), CARDS[name]
    console.rule(it.title)
    for label, text in (
        ("what", it.measured),
        ("by", it.by),
        ("S", it.sensitive),
        ("Y", it.target),
        ("terms", it.terms),
    ):
        console.print(f"{label:<6}{text}", markup=False)
    for label, entries in (("known problems", it.problems), ("not to be concluded from it", it.not_for)):
        console.print(f"{label}:", markup=False)
        for entry in entries:
            console.print(f"  - {entry}", markup=False)
    try:
        data = load_dataset(name, variant, download=False)
    except DataError:
        console.print(f"numbers: the files are not here; get them with: frhsic data fetch {name}", markup=False)
        return
    summary = summarize(data)
    s, y = summary["s"], summary["y"]
    console.print(str(data.provenance), markup=False)
    console.print(
        f"numbers ({variant}): n={data.n:,}, d={data.d}; S from {s['min']:g} to {s['max']:g}, mean {s['mean']:.3g}, "
        f"{s['distinct']:,} distinct values; mean of Y {y['mean']:.3f}; correlation of S and Y "
        f"{summary['correlation']:.3f}; X explains {summary['x_explains_s']:.0%} of S linearly",
        markup=False,
    )


def _origin(data: Dataset) -> str:
    if not data.provenance.files:
        return data.provenance.source
    record = data.provenance.files[0]
    known = "as expected" if record.hash_known_in_advance else "recorded at first use"
    return f"{record.name} from {record.origin}, sha256 {record.sha256[:12]}… {known}"
