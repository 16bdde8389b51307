"""The commands ``frhsic run``, ``tables``, ``status``, ``reproduce``, ``ledger``; those that train load torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from frhsic_core.cli.printing import print_heading, print_lines, print_pareto, print_unreproduced, time_text
from frhsic_core.cli.terminal import INTERRUPTED, fail, one_of, print_table, waiting
from frhsic_core.paper.experiments.presets import EXPERIMENTS, PRESETS, experiment_for
from frhsic_core.paper.experiments.tables.main_table import DEPENDENCE, beside_paper, pareto_table
from frhsic_core.paper.runs.plan import Experiment, models_of
from frhsic_core.paper.runs.reference import book_folder
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.study import Study, StudyStore

__all__ = ["register"]

Preset = Annotated[str, typer.Option(help="smoke (seconds), text (as the paper states), full (everything)")]
Place = Annotated[Path | None, typer.Option(help="Folder of the results; by default that of the book.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
Minutes = Annotated[float | None, typer.Option(min=0, help="Stop cleanly before so many minutes; run again to go on.")]
Only = Annotated[list[str] | None, typer.Option(help="Only these; may be given several times.")]
Splits = Annotated[int | None, typer.Option(min=1, help="Only the first so many splits.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of torch; more are slower on small stacks.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler: train on its workers.")]
GO_ON = "Finished stacks are kept: run the same command again to go on."


def _folder(store: Path | None, preset: str) -> Path:
    if store is not None:
        return store
    return Path("_build") / "results" if preset == "smoke" else book_folder("results")


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

    Datasets that are not here are fetched first, and said.

    Exit status 0: all is done; 2: a mistake, or no place to write to; 3: stacks are left; 4: one failed; 130: Ctrl-C.
    """
    try:
        chosen = experiment_for(
            experiment,
            preset,
            protocols=tuple(protocol or ()) or None,
            datasets=tuple(dataset or ()) or None,
            methods=tuple(method or ()) or None,
            splits=splits,
        )
        status = _run(chosen, _folder(store, preset), device=device, minutes=minutes, threads=threads, dask=dask)
    except KeyboardInterrupt:
        raise fail(GO_ON, status=INTERRUPTED) from None
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise fail("--dask needs dask: pip install 'frhsic-core[experiments]'.") from None
    except (ValueError, OSError) as error:
        raise fail(error) from None
    raise typer.Exit(status)


def _run(
    chosen: Experiment | Study, folder: Path, *, device: str, minutes: float | None, threads: int, dask: str | None
) -> int:
    from frhsic_core.paper.runs.devices import require_known, set_threads
    from frhsic_core.paper.runs.study import run_study
    from frhsic_core.paper.runs.sweep import run_experiment

    if isinstance(chosen, Study):
        if dask is not None:
            raise ValueError(f"{chosen.name} measures this machine or needs one alone: run it without --dask.")
        set_threads(threads)
        study = StudyStore(folder, chosen.name)
        report = run_study(chosen, study, device=device, minutes=minutes, say=typer.echo)
        study.compact(chosen)
        typer.echo(str(report))
        return report.exit_status
    results = ResultStore(folder, chosen.name)
    if dask is not None:
        from frhsic_core.paper.runs.cluster import run_on_cluster

        require_known(device)  # whether the workers have it, they say
        report = run_on_cluster(chosen, results, address=dask, device=device, threads=threads, say=typer.echo)
    else:
        set_threads(threads)
        report = run_experiment(chosen, results, device=device, minutes=minutes, say=typer.echo)
    if importlib.util.find_spec("pyarrow") is not None:
        results.compact()
    elif report.stacks:
        typer.echo(f"Results stay in {results.parts}: pip install 'frhsic-core[experiments]' to merge and print them.")
    typer.echo(str(report))
    return report.exit_status


def tables(
    experiment: Annotated[str, typer.Argument(help="main, or main_smoke with --store.")] = "main",
    store: Place = None,
    protocol: Annotated[str, typer.Option(help="text or reference")] = "reference",
    dependence: Annotated[str, typer.Option(help=f"One of: {', '.join(DEPENDENCE)}.")] = "gdp_reference",
    splits: Splits = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the numbers to this file.")] = None,
) -> None:
    """Print matched points and nAUP with intervals, and beside them what the paper prints.

    Exit status 0: printed; 2: a mistake in the command, or nothing is stored.
    """
    try:
        if not experiment.startswith("main"):
            raise ValueError(
                f"{experiment!r} has no Pareto tables: main has; the chapter of another shows its findings."
            )
        one_of("protocol", protocol, ("text", "reference"))
        one_of("dependence", dependence, DEPENDENCE)
        if csv is not None and not csv.absolute().parent.is_dir():
            raise ValueError(f"csv is {csv}, but there is no folder {csv.absolute().parent}: make it first.")
        folder = store or book_folder("results")
        rows = ResultStore(folder, experiment).read()
        rows = rows[(rows["protocol"] == protocol) & (rows["option"] == "")]
        stored = sorted(set(rows["split"]))
        if not stored:
            raise ValueError(f"{folder} has no rows of the {protocol} protocol yet: frhsic run {experiment}")
        if splits is not None and splits > len(stored):
            raise ValueError(f"splits is {splits}: {len(stored)} are stored.")
        table = pareto_table(rows, dependence=dependence, splits=stored[:splits])
        if table.empty:
            raise ValueError(f"{folder} has no whole sweep of the {protocol} protocol yet: frhsic run {experiment}")
        if dependence == "gdp_reference":
            table = beside_paper(table)
        print_pareto(table, title=f"{experiment}, {protocol} protocol, {DEPENDENCE[dependence]}")
        if csv is not None:
            table.to_csv(csv, index=False)
    except (ValueError, OSError) as error:
        raise fail(error) from None


def status(store: Place = None) -> None:
    """Show how far each experiment is: models trained of those each preset needs, time spent, on what.

    Exit status 0: shown; 2: the store cannot be found or read.
    """
    headings = ("experiment", "preset", "models", "of", "stacks left", "training", "evaluation", "devices")
    rows = []
    try:
        if store is not None and not store.is_dir():
            raise ValueError(f"store is {store}, which is no folder: name one with results.")
        for name in EXPERIMENTS:
            for preset in PRESETS:
                counts, spent, environments = _progress(experiment_for(name, preset), _folder(store, preset))
                devices = ", ".join(sorted({environment["device"] for environment in environments}))
                rows.append((name, preset, *counts, *map(time_text, spent), devices))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    print_table(headings, rows, fold={"devices": None}, drop=("devices", "evaluation", "training", "of"))


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
    """Run every experiment one after the other; the minutes are for all of them together.

    Exit status: the largest of those of frhsic run; a mistake or Ctrl-C ends it at once.
    """
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
            if finished.exit_code in (2, INTERRUPTED):
                raise
    raise typer.Exit(worst)


def ledger(
    verdict: Annotated[str | None, typer.Option(help="Only lines with this verdict, for example 'differs'.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every line, with its notes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON, or the lines of --verdict.")] = False,
) -> None:
    """Judge every number of the paper from stored runs: counts, and the lines that are not reproduced.

    Exit status 0: printed; 2: a mistake in the command, or nothing is stored.
    """
    from json import dumps

    from frhsic_core.paper.claims import VERDICTS, heading
    from frhsic_core.paper.claims import ledger as computed

    try:
        if verdict is not None:
            one_of("verdict", verdict, VERDICTS)
        book_folder("results")
        with waiting("Judging the printed numbers from the stored runs, some 15 seconds ..."):
            table = computed()
            lines, top = computed(verdict=verdict), heading(table)
    except (ValueError, OSError) as error:
        raise fail(error) from None
    if json:
        typer.echo(dumps({**top, "lines": lines.to_dict("records")}, ensure_ascii=False, indent=1))
        return
    print_heading(top)
    if everything or verdict is not None:
        print_lines(lines)
    else:
        print_unreproduced(lines, tuple(name for name in VERDICTS if not name.startswith("reproduced")))


EXAMPLES: dict[Callable[..., None], str] = {
    run: "frhsic run main --preset smoke --device cpu",
    tables: "frhsic tables --protocol text --splits 5",
    status: "frhsic status",
    reproduce: "frhsic reproduce --preset text --minutes 60",
    ledger: "frhsic ledger --verdict differs",
}


def register(app: typer.Typer) -> None:
    """Add the five commands to ``app``."""
    for command, example in EXAMPLES.items():
        app.command(epilog=f"Example: {example}")(command)
