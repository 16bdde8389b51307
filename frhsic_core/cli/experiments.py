"""Define the commands ``frhsic run``, ``tables``, ``status``, ``reproduce`` and ``ledger``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from frhsic_core.choices import one_of
from frhsic_core.cli.printing import print_contradicted, print_heading, print_lines, print_pareto, time_text
from frhsic_core.cli.terminal import INTERRUPTED, fail, print_table, waiting
from frhsic_core.paper.experiments.main import DEPENDENCE, beside_paper, pareto_table
from frhsic_core.paper.experiments.presets import EXPERIMENTS, PRESETS, experiment_for, plans_for
from frhsic_core.paper.runs.plan import Experiment, Study, keys_of
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder

Preset = Annotated[
    str, typer.Option(help="Size: smoke (a few seconds), text (as described in the paper) or full (everything).")
]
Place = Annotated[
    Path | None,
    typer.Option(help="Folder of the results. The default is book/results, or _build/results for the preset smoke."),
]
Device = Annotated[str, typer.Option(help="Device to train on: auto, cpu, cuda, cuda:1, ...")]
Minutes = Annotated[
    float | None, typer.Option(min=0, help="Stop after this number of minutes. Run the command again to resume.")
]
Protocols = Annotated[list[str] | None, typer.Option(help="Run only this protocol. Can be repeated.")]
Datasets = Annotated[list[str] | None, typer.Option(help="Run only this dataset. Can be repeated.")]
Methods = Annotated[list[str] | None, typer.Option(help="Run only this method. Can be repeated.")]
Splits = Annotated[int | None, typer.Option(min=1, help="Use only the first N splits.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of torch. Small models are fastest with one.")]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes that train at the same time. The default is one on a CPU and up to six on a GPU."
    ),
]
Dask = Annotated[str | None, typer.Option(help="Train on the workers of the Dask scheduler at this address.")]
RESUME = "Finished results are kept. Run the same command again to resume."


def _folder(store: Path | None, preset: str) -> Path:
    if store is not None:
        return store
    return Path("_build") / "results" if preset == "smoke" else book_folder("results")


def _results(folder: Path, name: str) -> ResultStore:
    """Return a store that reports damaged and lost files on the error stream."""
    return ResultStore(folder, name, log=lambda line: typer.echo(line, err=True))


def run(
    experiment: Annotated[
        str, typer.Argument(help=f"One of: {', '.join(EXPERIMENTS)}; or one of its tables.")
    ] = "main",
    preset: Preset = "full",
    store: Place = None,
    device: Device = "auto",
    minutes: Minutes = None,
    protocol: Protocols = None,
    dataset: Datasets = None,
    method: Methods = None,
    splits: Splits = None,
    threads: Threads = 1,
    workers: Workers = None,
    dask: Dask = None,
) -> None:
    """Run an experiment and store its results. A run that was stopped resumes where it was.

    Only missing results are computed. Missing datasets are downloaded first, and each download is reported.

    Exit status: 0 done; 2 wrong arguments or no access to the results; 3 work left; 4 failure; 130 Ctrl-C.
    """
    try:
        plans = plans_for(
            experiment,
            preset,
            protocols=tuple(protocol or ()) or None,
            datasets=tuple(dataset or ()) or None,
            methods=tuple(method or ()) or None,
            splits=splits,
        )
        begin = time.monotonic()
        status = 0
        for plan in plans:
            left = None if minutes is None else max(0.0, minutes - (time.monotonic() - begin) / 60)
            options = {"device": device, "minutes": left, "threads": threads, "workers": workers, "dask": dask}
            status = max(status, _run(plan, _folder(store, preset), **options))
    except KeyboardInterrupt:
        raise fail(RESUME, status=INTERRUPTED) from None
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise fail("--dask needs dask: pip install 'frhsic-core[experiments]'.") from None
    except (ValueError, OSError) as error:
        raise fail(error) from None
    raise typer.Exit(status)


def _run(
    chosen: Experiment | Study,
    folder: Path,
    *,
    device: str,
    minutes: float | None,
    threads: int,
    workers: int | None,
    dask: str | None,
) -> int:
    from frhsic_core.paper.runs.runner import run_experiment

    results = _results(folder, chosen.name)
    report = run_experiment(
        chosen, results, device=device, threads=threads, minutes=minutes, workers=workers, dask=dask, log=typer.echo
    )
    if isinstance(chosen, Study):
        results.compact(chosen)
    elif importlib.util.find_spec("pyarrow") is not None:
        results.compact()
    elif report.jobs:
        typer.echo(f"The results stay in {results.database}. To export them: pip install 'frhsic-core[experiments]'.")
    typer.echo(str(report))
    return report.exit_status


def tables(
    experiment: Annotated[str, typer.Argument(help="Name of the table: main, or main_smoke with --store.")] = "main",
    store: Place = None,
    protocol: Annotated[str, typer.Option(help="Protocol of the runs: text or reference.")] = "reference",
    dependence: Annotated[
        str, typer.Option(help=f"Measure of dependence: one of {', '.join(DEPENDENCE)}.")
    ] = "gdp_reference",
    splits: Splits = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the numbers to this file.")] = None,
) -> None:
    """Print the matched points and nAUP of each method with intervals, beside the values of the paper.

    Exit status: 0 printed; 2 wrong arguments, or nothing is stored.
    """
    try:
        if not experiment.startswith("main"):
            raise ValueError(
                f"{experiment!r} has no Pareto table: only main has one. Read the chapter of {experiment!r} instead."
            )
        one_of("protocol", protocol, ("text", "reference"))
        one_of("dependence", dependence, DEPENDENCE)
        if csv is not None and not csv.absolute().parent.is_dir():
            raise ValueError(f"csv is {csv}, but there is no folder {csv.absolute().parent}: create it first.")
        folder = store or book_folder("results")
        rows = _results(folder, experiment).read()
        rows = rows[(rows["protocol"] == protocol) & (rows["option"] == "")]
        stored = sorted(set(rows["split"]))
        if not stored:
            raise ValueError(f"{folder} has no rows of the {protocol} protocol yet. Run: frhsic run {experiment}")
        if splits is not None and splits > len(stored):
            raise ValueError(f"splits is {splits}, but only {len(stored)} are stored.")
        table = pareto_table(rows, dependence=dependence, splits=stored[:splits])
        if table.empty:
            raise ValueError(
                f"The sweep of the {protocol} protocol in {folder} is incomplete. Run: frhsic run {experiment}"
            )
        if dependence == "gdp_reference":
            table = beside_paper(table)
        print_pareto(table, title=f"{experiment}, {protocol} protocol, {DEPENDENCE[dependence]}")
        if csv is not None:
            table.to_csv(csv, index=False)
    except (ValueError, OSError) as error:
        raise fail(error) from None


def status(store: Place = None) -> None:
    """Show the progress of each stored table and preset: results stored, results required, time spent and devices.

    Results are trained models, or measured units of a study.

    Exit status: 0 shown; 2 the results cannot be found or read.
    """
    headings = ("table", "preset", "stored", "of", "jobs left", "training", "evaluation", "devices")
    rows = []
    try:
        if store is not None and not store.is_dir():
            raise ValueError(f"store is {store}, which is not a folder: give a folder with results.")
        for table in [table for tables in EXPERIMENTS.values() for table in tables]:
            for preset in PRESETS:
                counts, spent, environments = _progress(experiment_for(table, preset), _folder(store, preset))
                devices = ", ".join(sorted({environment["device"] for environment in environments}))
                rows.append((table, preset, *counts, *map(time_text, spent), devices))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    print_table(headings, rows, fold={"devices": None}, drop=("devices", "evaluation", "training", "of"))


def _progress(chosen: Experiment | Study, folder: Path) -> tuple[list[str], list[float], list[dict[str, str]]]:
    """Return rows done, rows needed and jobs left; seconds that *this* preset needed; the machines that were used."""
    results = _results(folder, chosen.name)
    done = results.done()
    needed = chosen.keys()
    side = results.provenance()
    training = 0.0
    evaluation = 0.0
    machines = []
    for record in [*side.get("stacks", []), *side.get("units", [])]:
        keys = keys_of(record)
        share = len(keys & needed) / len(keys)
        if share:  # a preset that needs a part of a stack is charged that part
            training += share * record.get("seconds_training", record.get("seconds", float("nan")))
            evaluation += share * record.get("seconds_evaluation", 0.0)
            machines.append(side["environments"][record["environment"]])
    counts = [f"{len(needed & done):,}", f"{len(needed):,}", str(len(chosen.missing(done)))]
    return counts, [training, evaluation], machines


def reproduce(
    preset: Preset = "full",
    store: Place = None,
    device: Device = "auto",
    minutes: Minutes = None,
    threads: Threads = 1,
) -> None:
    """Run all experiments one after the other. The time limit is for all of them together.

    Exit status: the largest one of frhsic run. Wrong arguments and Ctrl-C stop the command at once.
    """
    begin = time.monotonic()
    worst = 0
    for name in EXPERIMENTS:
        left = None if minutes is None else minutes - (time.monotonic() - begin) / 60
        if left is not None and left <= 0:
            worst = max(worst, 3)
            typer.echo(f"{name}: no time left")
            continue
        try:
            run(name, preset, store, device, left, threads=threads)
        except typer.Exit as finished:
            worst = max(worst, finished.exit_code)
            if finished.exit_code in (2, INTERRUPTED):
                raise
    raise typer.Exit(worst)


def ledger(
    verdict: Annotated[str | None, typer.Option(help="Print only claims with this verdict, such as 'differs'.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Print only claims of this kind, such as 'measured' or 'proved or checked'.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every claim, with its notes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Compare every number of the paper with the stored runs. Print the counts and what is contradicted.

    Lines are counted by kind: measured (a number from data or runs), implemented as printed (a setting that was copied
    from the paper), and proved or checked (a statement). Only measured lines are evidence about results.

    Exit status: 0 printed; 2 wrong arguments, or nothing is stored.
    """
    from json import dumps

    from frhsic_core.paper.claims import CONTRADICTED, KINDS, VERDICTS, heading
    from frhsic_core.paper.claims import ledger as computed

    try:
        if verdict is not None:
            one_of("verdict", verdict, VERDICTS)
        if kind is not None:
            one_of("kind", kind, KINDS)
        book_folder("results")
        with waiting("Judging the printed numbers from the stored runs. This takes about 15 seconds."):
            top = heading(computed())
            lines = computed(verdict=verdict, kind=kind)
    except (ValueError, OSError) as error:
        raise fail(error) from None
    if json:
        # JSON has no NaN: a line without an interval has null.
        plain = lines.astype(object).where(lines.notna(), None)
        typer.echo(dumps({**top, "lines": plain.to_dict("records")}, ensure_ascii=False, indent=1))
        return
    print_heading(top)
    if everything or verdict is not None:
        print_lines(lines)
    else:
        print_contradicted(lines, CONTRADICTED)


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
