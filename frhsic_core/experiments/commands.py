"""The commands ``frhsic run``, ``tables``, ``status``, ``reproduce``, ``ledger``; those that train load torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from frhsic_core.experiments.plan import Experiment, models_of
from frhsic_core.experiments.presets import EXPERIMENTS, PRESETS, experiment_for
from frhsic_core.experiments.reference import book_folder
from frhsic_core.experiments.store import ResultStore
from frhsic_core.experiments.study import Study, StudyStore
from frhsic_core.experiments.tables.main_table import DEPENDENCE, beside_paper, pareto_table
from frhsic_core.experiments.writing import StoreError

__all__ = ["register"]

Preset = Annotated[str, typer.Option(help="smoke (seconds), text (as the paper states), full (everything)")]
Place = Annotated[Path | None, typer.Option(help="Folder of the results; by default that of the book.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Minutes = Annotated[float | None, typer.Option(help="Stop cleanly before so many minutes; run again to go on.")]
Only = Annotated[list[str] | None, typer.Option(help="Only these; may be given several times.")]
Splits = Annotated[int | None, typer.Option(help="Only the first so many splits.")]
Threads = Annotated[int, typer.Option(help="CPU threads of torch; more are slower on small stacks.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler: train on its workers.")]


def _folder(store: Path | None, preset: str) -> Path:
    if store is not None:
        return store
    return Path("_build") / "results" if preset == "smoke" else book_folder("results")


def _fail(message: object) -> typer.Exit:
    Console(stderr=True, soft_wrap=True, highlight=False).print(str(message), markup=False)
    return typer.Exit(2)


def run(
    experiment: Annotated[str, typer.Argument(help=f"One of: {', '.join(EXPERIMENTS)}.")] = "main",
    preset: Preset = "full",
    store: Place = None,
    device: Device = "auto",
    minutes: Minutes = None,
    protocol: Only = None,
    dataset: Only = None,
    method: Only = None,
    splits: Splits = None,
    threads: Threads = 1,
    dask: Dask = None,
) -> None:
    """Train what the store lacks of an experiment, stack by stack; killed at any moment, it resumes.

    Exit status 0: all is done; 3: stacks are left; 4: a stack failed.
    """
    from frhsic_core.experiments.study import run_study
    from frhsic_core.experiments.sweep import run_experiment, set_threads

    say = lambda line: typer.echo(line)  # noqa: E731
    try:
        chosen = experiment_for(
            experiment,
            preset,
            protocols=tuple(protocol or ()) or None,
            datasets=tuple(dataset or ()) or None,
            methods=tuple(method or ()) or None,
            splits=splits,
        )
        if isinstance(chosen, Study):
            if dask is not None:
                raise ValueError(f"{experiment} measures this machine or needs one alone: run it without --dask.")
            set_threads(threads)
            study = StudyStore(_folder(store, preset), chosen.name)
            report = run_study(chosen, study, device=device, minutes=minutes, say=say)
            study.compact(chosen)
            typer.echo(str(report))
            raise typer.Exit(4 if report.failed else 3 if report.left else 0)
        results = ResultStore(_folder(store, preset), chosen.name)
        if dask is not None:
            from frhsic_core.experiments.cluster import run_on_cluster

            report = run_on_cluster(chosen, results, address=dask, device=device, threads=threads, say=say)
        else:
            set_threads(threads)
            report = run_experiment(chosen, results, device=device, minutes=minutes, say=say)
        results.compact()
    except (ValueError, OSError) as error:
        raise _fail(error) from None
    typer.echo(str(report))
    raise typer.Exit(4 if report.failed else 3 if report.left else 0)


def tables(
    experiment: Annotated[str, typer.Argument()] = "main",
    store: Place = None,
    protocol: Annotated[str, typer.Option(help="text or reference")] = "reference",
    dependence: Annotated[str, typer.Option(help=f"One of: {', '.join(DEPENDENCE)}.")] = "gdp_reference",
    splits: Splits = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the numbers to this file.")] = None,
) -> None:
    """Print matched points and nAUP with intervals, and beside them what the paper prints."""
    if not experiment.startswith("main"):
        raise _fail(f"{experiment!r} has no Pareto tables: main has them; its chapter shows what another one found.")
    if dependence not in DEPENDENCE:
        raise _fail(f"dependence is {dependence!r}: choose one of {', '.join(DEPENDENCE)}.")
    try:
        rows = ResultStore(store or book_folder("results"), experiment).read()
        rows = rows[(rows["protocol"] == protocol) & (rows["option"] == "")]
        first = sorted(set(rows["split"]))[: splits or None]
        table = pareto_table(rows, dependence=dependence, splits=first)
    except (ValueError, OSError) as error:
        raise _fail(error) from None
    if table.empty:
        raise _fail(f"There are no rows of the {protocol} protocol yet: frhsic run {experiment}")
    if dependence == "gdp_reference":
        table = beside_paper(table)
    _show(table, title=f"{experiment}, {protocol} protocol, {DEPENDENCE[dependence]}")
    if csv is not None:
        table.to_csv(csv, index=False)


def status(store: Place = None) -> None:
    """Show how far each experiment is: models trained of those each preset needs, time spent, on what."""
    table = Table("experiment", "preset", "models", "of", "stacks left", "training", "evaluation", "devices")
    for name in EXPERIMENTS:
        for preset in PRESETS:
            chosen = experiment_for(name, preset)
            try:
                counts, spent, environments = _progress(chosen, _folder(store, preset))
            except StoreError as error:
                raise _fail(error) from None
            devices = ", ".join(sorted({environment["device"] for environment in environments}))
            table.add_row(name, preset, *counts, *map(_minutes, spent), devices)
    _console().print(table)


def _progress(chosen: Experiment | Study, folder: Path) -> tuple[list[str], list[float], list[dict[str, str]]]:
    """Return models done, needed and stacks left; seconds of what *this* preset needs; on what they ran."""
    if isinstance(chosen, Study):
        study = StudyStore(folder, chosen.name)
        side, units = study.provenance(), chosen.keys()
        mine = [unit for unit in side["units"] if unit["key"] in units]
        counts = [f"{len(mine):,}", f"{len(units):,}", str(len(units) - len(mine))]
        used = [side["environments"][unit["environment"]] for unit in mine]
        return counts, [sum(unit["seconds"] for unit in mine), 0.0], used
    results = ResultStore(folder, chosen.name)
    done, needed, provenance = results.done(), chosen.keys(), results.provenance()
    spent, used = [0.0, 0.0], []
    for stack in provenance["stacks"]:
        models = models_of(stack["lams"], stack["splits"], stack["repeats"])
        share = sum((stack["recipe"], *model) in needed for model in models) / len(models)
        if share:  # a stack of which this preset needs a part costs it that part
            spent = [spent[i] + share * stack[f"seconds_{what}"] for i, what in enumerate(("training", "evaluation"))]
            used.append(provenance["environments"][stack["environment"]])
    return [f"{len(needed & done):,}", f"{len(needed):,}", str(len(chosen.missing(done)))], spent, used


def reproduce(
    preset: Preset = "full",
    store: Place = None,
    device: Device = "auto",
    minutes: Minutes = None,
    threads: Threads = 1,
) -> None:
    """Run every experiment one after the other; the minutes are for all of them together."""
    import time

    begin, worst = time.monotonic(), 0
    for name in EXPERIMENTS:
        left = None if minutes is None else minutes - (time.monotonic() - begin) / 60
        if left is not None and left <= 0:
            worst = max(worst, 3)
            typer.echo(f"{name}: no time left")
            continue
        try:
            run(name, preset, store, device, left, None, None, None, None, threads, None)
        except typer.Exit as finished:
            worst = max(worst, finished.exit_code)
            if finished.exit_code == 2:
                break
    raise typer.Exit(worst)


def ledger(
    verdict: Annotated[str | None, typer.Option(help="Only lines with this verdict, for example 'differs'.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Print every number of the paper beside ours, with the verdict the data give."""
    from json import dumps

    from frhsic_core.experiments.ledger import heading
    from frhsic_core.experiments.ledger import ledger as computed

    try:
        everything, lines = computed(), computed(verdict=verdict)
    except (ValueError, OSError) as error:
        raise _fail(error) from None
    top = heading(everything)
    if json:
        typer.echo(dumps({**top, "lines": lines.to_dict("records")}, ensure_ascii=False, indent=1))
        return
    for name, value in top.items():
        text = ", ".join(f"{count} {what}" for what, count in value.items()) if isinstance(value, dict) else value
        typer.echo(f"{name}: {', '.join(text) if isinstance(text, list) else text}")
    columns = ["id", "claim", "printed", "ours", "verdict", "from stored runs", "note"]
    shown = Table(*columns)
    for line in lines[columns].itertuples(index=False):
        # Intervals are written in brackets, which rich would read as markup.
        shown.add_row(*(escape(cell) for cell in line))
    _console().print(shown)


def register(app: typer.Typer) -> None:
    """Add the five commands to ``app``."""
    for command in (run, tables, status, reproduce, ledger):
        app.command()(command)


def _minutes(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _show(table: pd.DataFrame, *, title: str) -> None:
    shown = Table(title=title)
    printed = "paper_naup" in table
    for heading in ("dataset", "S variant", "method", "λ", "performance", "dependence", "nAUP", "95 % interval"):
        shown.add_column(heading)
    if printed:
        for heading in ("paper: perf.", "GDP", "nAUP"):
            shown.add_column(heading)

    def text(value: float, digits: int, spread: float = float("nan")) -> str:
        shown = "–" if pd.isna(value) else f"{value:.{digits}f}"
        return shown if pd.isna(spread) else f"{shown} ± {spread:.{digits}f}"

    for line in table.to_dict("records"):
        digits = 4 if line["dataset"] == "crime" else 3
        cells = [
            line["dataset"],
            line["variant"],
            line["method"],
            "–" if pd.isna(line["lam"]) else f"{line['lam']:g}",
            text(line["performance"], digits, line["performance_sd"]),
            text(line["dependence"], 3, line["dependence_sd"]),
            text(line["naup"], 3),
            "–" if pd.isna(line["naup"]) else f"{line['naup_low']:.3f} to {line['naup_high']:.3f}",
        ]
        if printed:
            cells += [text(line["paper_performance"], digits), text(line["paper_dependence"], 3)]
            cells += [text(line["paper_naup"], 3)]
        shown.add_row(*cells)
    _console().print(shown)


def _console() -> Console:
    return Console(width=None if Console().is_terminal else 150, highlight=False)
