"""Define the commands about the paper: run, bench, tables, status, reproduce, ledger and certify."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from frhsic_core.choices import one_of
from frhsic_core.cli.terminal import INTERRUPTED, console, fail, print_table, waiting
from frhsic_core.paper.experiments.main import beside_paper, pareto_table
from frhsic_core.paper.experiments.presets import EXPERIMENTS, PRESETS, experiment_for, plans_for
from frhsic_core.paper.record import compare, read_recorded, record, row
from frhsic_core.paper.runs.plan import Experiment, Study, keys_of
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.registry import Check, Result, checks, find_statement, run_checks, statements
from frhsic_core.registry import DEPENDENCE

Preset = Annotated[
    str, typer.Option(help="Size: smoke (a few seconds), text (as described in the paper) or full (everything).")
]
Place = Annotated[
    Path | None,
    typer.Option(help="Folder of the results. The default is book/results, or _build/results for the preset smoke."),
]
Device = Annotated[str, typer.Option(help="Device to use: auto, cpu, cuda, cuda:1, ...")]
Minutes = Annotated[
    float | None, typer.Option(min=0, help="Stop after this number of minutes. Run the command again to resume.")
]
Splits = Annotated[int | None, typer.Option(min=1, help="Use only the first N splits.")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of torch. Small models are fastest with one.")]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes that train at the same time. The default is one on a CPU and up to six on a GPU."
    ),
]


# Runs -----------------------------------------------------------------------------------------------------------------


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
    protocol: Annotated[list[str] | None, typer.Option(help="Run only this protocol. Can be repeated.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Run only this dataset. Can be repeated.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Run only this method. Can be repeated.")] = None,
    splits: Splits = None,
    threads: Threads = 1,
    workers: Workers = None,
    dask: Annotated[
        str | None, typer.Option(help="Train on the workers of the Dask scheduler at this address.")
    ] = None,
) -> None:
    """Run an experiment and store its results. A run that was stopped resumes where it was.

    Only missing results are computed. Missing datasets are downloaded first, and each download is reported.

    Exit status: 0 done; 2 wrong arguments or no access to the results; 3 work left; 4 failure; 130 Ctrl-C.
    """
    restriction = {"protocols": protocol, "datasets": dataset, "methods": method}
    options = {"device": device, "threads": threads, "workers": workers, "dask": dask}
    status = 0
    begin = time.monotonic()
    try:
        chosen = {name: tuple(values) for name, values in restriction.items() if values}
        for plan in plans_for(experiment, preset, splits=splits, **chosen):
            left = None if minutes is None else max(0.0, minutes - (time.monotonic() - begin) / 60)
            status = max(status, _run(plan, _results(_folder(store, preset), plan.name), minutes=left, **options))
    except KeyboardInterrupt:
        raise fail("Finished results are kept. Run the same command again to resume.", status=INTERRUPTED) from None
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise fail("--dask needs dask: pip install 'frhsic-core[experiments]'.") from None
    except (ValueError, OSError) as error:
        raise fail(error) from None
    raise typer.Exit(status)


def _run(plan: Experiment | Study, results: ResultStore, **options: Any) -> int:
    """Run a plan, export its results and return the exit status."""
    from frhsic_core.paper.runs.runner import run_experiment

    report = run_experiment(plan, results, log=typer.echo, **options)
    if isinstance(plan, Study):
        results.compact(plan)
    elif importlib.util.find_spec("pyarrow") is not None:
        results.compact()
    elif report.jobs:
        typer.echo(f"The results stay in {results.database}. To export them: pip install 'frhsic-core[experiments]'.")
    typer.echo(str(report))
    return report.exit_status


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


def bench(
    preset: Preset = "full",
    device: Device = "auto",
    store: Annotated[Path, typer.Option(help="Folder of the measurements.")] = Path("_build") / "bench",
    threads: Threads = 1,
) -> None:
    """Measure how fast this machine computes HSIC, beside other libraries.

    It is frhsic run cost_cpu, or cost_gpu on a GPU, in a folder of its own. The chapter about cost reads such a table.

    Exit status: that of frhsic run.
    """
    from frhsic_core.paper.runs.jobs import resolved_device

    try:
        table = "cost_gpu" if resolved_device(device).startswith("cuda") else "cost_cpu"
    except ValueError as error:
        raise fail(error) from None
    run(table, preset, store, device, threads=threads)


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
                rows.append((table, preset, *_progress(experiment_for(table, preset), _folder(store, preset))))
    except (ValueError, OSError) as error:
        raise fail(error) from None
    print_table(headings, rows, fold={"devices": None}, drop=("devices", "evaluation", "training", "of"))


def _progress(chosen: Experiment | Study, folder: Path) -> tuple[str, ...]:
    """Return rows done, rows needed and jobs left; the time that *this* preset needed; the machines that were used."""
    results = _results(folder, chosen.name)
    done = results.done()
    needed = chosen.keys()
    side = results.provenance()
    training = 0.0
    evaluation = 0.0
    machines = set()
    for job in [*side.get("stacks", []), *side.get("units", [])]:
        keys = keys_of(job)
        share = len(keys & needed) / len(keys)
        if share:  # a preset that needs a part of a stack is charged that part
            training += share * job.get("seconds_training", job.get("seconds", math.nan))
            evaluation += share * job.get("seconds_evaluation", 0.0)
            machines.add(side["environments"][job["environment"]]["device"])
    counts = (f"{len(needed & done):,}", f"{len(needed):,}", str(len(chosen.missing(done))))
    return (*counts, _time(training), _time(evaluation), ", ".join(sorted(machines)))


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


# Stored results -------------------------------------------------------------------------------------------------------


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
        _print_pareto(table, title=f"{experiment}, {protocol} protocol, {DEPENDENCE[dependence]}")
        if csv is not None:
            table.to_csv(csv, index=False)
    except (ValueError, OSError) as error:
        raise fail(error) from None


def _text(value: float, digits: int, spread: float = math.nan) -> str:
    shown = "–" if pd.isna(value) else f"{value:.{digits}f}"
    return shown if pd.isna(spread) else f"{shown} ± {spread:.{digits}f}"


def _print_pareto(table: pd.DataFrame, *, title: str) -> None:
    """Print matched points and areas, with those of the paper if the table has them."""
    rows = []
    for line in table.to_dict("records"):
        digits = 4 if line["dataset"] == "crime" else 3
        cells = {
            "dataset": line["dataset"],
            "S variant": line["variant"],
            "method": line["method"],
            "λ": "–" if pd.isna(line["lam"]) else f"{line['lam']:g}",
            "performance": _text(line["performance"], digits, line["performance_sd"]),
            "dependence": _text(line["dependence"], 3, line["dependence_sd"]),
            "nAUP": _text(line["naup"], 3),
            "95 % interval": "–" if pd.isna(line["naup"]) else f"{line['naup_low']:.3f} to {line['naup_high']:.3f}",
        }
        if "paper_naup" in table:
            cells["paper: perf."] = _text(line["paper_performance"], digits)
            cells["paper: GDP"] = _text(line["paper_dependence"], 3)
            cells["paper: nAUP"] = _text(line["paper_naup"], 3)
        rows.append(cells)
    drop = ("95 % interval", "paper: perf.", "paper: GDP", "S variant", "λ", "paper: nAUP")
    headings = list(rows[0])
    print_table(
        headings,
        [list(cells.values()) for cells in rows],
        drop=[name for name in drop if name in headings],
        title=title,
    )


def ledger(
    verdict: Annotated[
        str | None, typer.Option(help="Print only claims with this verdict, such as 'disagrees'.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Print only claims of this kind, such as 'measured' or 'proved or checked'.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every claim, with its notes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Compare every number of the paper with the stored runs. Print the counts and what disagrees.

    Lines are counted by kind: measured (a number from data or runs), implemented as printed (a setting that was copied
    from the paper), and proved or checked (a statement). Only measured lines are evidence about results.

    Exit status: 0 printed; 2 wrong arguments, or nothing is stored.
    """
    from frhsic_core.paper import claims

    try:
        if verdict is not None:
            one_of("verdict", verdict, claims.VERDICTS)
        if kind is not None:
            one_of("kind", kind, claims.KINDS)
        book_folder("results")
        with waiting("Judging the printed numbers from the stored runs. This takes about 15 seconds."):
            top = claims.heading(claims.ledger())
            lines = claims.ledger(verdict=verdict, kind=kind)
    except (ValueError, OSError) as error:
        raise fail(error) from None
    if as_json:
        plain = lines.astype(object).where(lines.notna(), None)
        typer.echo(json.dumps({**top, "lines": plain.to_dict("records")}, ensure_ascii=False, indent=1))
        return
    for name, value in top.items():
        text = ", ".join(f"{count} {what}" for what, count in value.items()) if isinstance(value, dict) else value
        typer.echo(f"{name}: {', '.join(text) if isinstance(text, list) else text}")
    fold = {"kind": 14, "claim": None, "printed": 16, "ours": None, "verdict": 20, "note": None}
    columns = ["id", "claim", "printed", "ours", "verdict"]
    if everything or verdict is not None:
        columns = ["id", "kind", "claim", "printed", "ours", "verdict", "by the code", "from stored runs", "note"]
        drop = ("from stored runs", "kind", "by the code", "note")
        print_table(columns, lines[columns].to_numpy().tolist(), fold=fold | {"from stored runs": None}, drop=drop)
        return
    lines = lines[lines["verdict"].isin(claims.CONTRADICTED)]
    lines = lines.sort_values("verdict", key=lambda column: column.map(claims.CONTRADICTED.index), kind="stable")
    shown = {name: width for name, width in fold.items() if name in columns}
    print_table(columns, lines[columns].to_numpy().tolist(), fold=shown)
    typer.echo(
        "Run frhsic ledger --all for the reasons and all claims, --verdict NAME for one verdict, --json for a program."
    )


# Statements -----------------------------------------------------------------------------------------------------------


def certify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Use smaller grids and fewer draws; this takes less than a minute.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of the table.")] = False,
    statement: Annotated[
        str | None, typer.Option(help='Check one statement only, by number ("Theorem 4.5" or 4.5) or by label.')
    ] = None,
    record_verdicts: Annotated[
        bool, typer.Option("--record", help="Write the verdicts as the record to compare with from now on.")
    ] = False,
    recorded: Annotated[
        Path | None, typer.Option(help="File with the recorded verdicts; by default claims/verdicts.json of the book.")
    ] = None,
) -> None:
    """Check every statement of the paper and compare verdicts and numbers with the recorded ones.

    Exit status 0: nothing recorded changed; 1: a verdict or a number changed; 2: a mistake in the command.
    """
    # All problems are reported before the checks run, which takes minutes.
    try:
        numbers = [find_statement(statement).number] if statement is not None else list(statements())
        path, missing = _record_file(recorded, writing=record_verdicts)
        known = {} if record_verdicts or path is None else read_recorded(path)
    except (KeyError, ValueError, OSError) as error:
        raise fail(error.args[0] if isinstance(error, KeyError) else error) from None
    if importlib.util.find_spec("flint") is None:
        raise fail("Proofs in interval arithmetic need python-flint: install it with pip install python-flint.")
    if record_verdicts and len(numbers) < len(statements()):
        raise fail("--record writes the verdicts of all statements: leave --statement out.")
    started = time.perf_counter()
    results = _check(numbers, quick=quick and not record_verdicts)
    if as_json:
        typer.echo(json.dumps([row(result) for result in results], ensure_ascii=False, indent=1))
    else:
        _print_results(results, time.perf_counter() - started)
    if record_verdicts and path is not None:
        try:
            record(results, path, quick=_check(numbers, quick=True))
        except OSError as error:
            raise fail(f"The verdicts cannot be written to {path}: {error.strerror or error}.") from None
        typer.echo(f"Recorded {len(results)} verdicts in {path}.", err=True)
        return
    if path is None:
        typer.echo(f"No verdicts were compared. {missing}", err=True)
        return
    changed, new = compare(results, known, numbers=numbers, quick=quick)
    for line in [*(f"Not recorded yet: {line}" for line in new), *(f"CHANGED: {line}" for line in changed)]:
        typer.echo(line, err=True)
    if changed:
        raise typer.Exit(1)


def _record_file(given: Path | None, *, writing: bool) -> tuple[Path | None, str]:
    """Return the file of the record, or None with the reason: an installed package has no book."""
    try:
        path = given or book_folder("claims", "verdicts.json")
    except FileNotFoundError as error:
        if writing:
            raise FileNotFoundError(f"{error} Pass the file to write with --recorded.") from None
        return None, str(error)
    if writing or path.is_file():
        return path, ""
    if given is not None:
        raise FileNotFoundError(f"{path} does not exist: write it first with --record.")
    return None, f"{path} does not exist: write it first with --record."


def _check(numbers: list[str], *, quick: bool) -> list[Result]:
    import torch  # imported here, so that `frhsic --help` does not wait for it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    total = sum(len(checks()[number]) for number in numbers)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # many small tensors: more threads only wait for each other
    # Progress goes to the error stream, so that --json can be piped, and is not shown if that is not a terminal.
    try:
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task("certify", total=total)

            def before(number: str, check: Check) -> None:
                progress.update(task, description=f"{number}: {check.__name__.replace('_', ' ')}", advance=1)

            return list(run_checks(numbers, quick=quick, before=before))
    finally:
        torch.set_num_threads(threads)


def _print_results(results: list[Result], seconds: float) -> None:
    found = [result.certificate for result in results]
    rows = [(c.statement, c.claim, c.evidence, c.verdict, f"{c.slack:.2e}") for c in found]
    headings = ("statement", "claim", "evidence", "verdict", "slack")
    print_table(headings, rows, fold={"claim": None}, drop=("claim",), title="The statements of the paper")
    certified = len({certificate.statement for certificate in found})
    what = "statement" if certified == 1 else "statements"
    typer.echo(f"{len(results)} certificates for {certified} {what} in {seconds:.0f} s.")


EXAMPLES: dict[Callable[..., None], str] = {
    certify: 'frhsic certify --quick --statement "Theorem 4.5"',
    run: "frhsic run main --preset smoke --device cpu",
    tables: "frhsic tables --protocol text --splits 5",
    status: "frhsic status",
    reproduce: "frhsic reproduce --preset text --minutes 60",
    ledger: "frhsic ledger --verdict disagrees",
    bench: "frhsic bench --preset smoke",
}


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    for command, example in EXAMPLES.items():
        app.command(epilog=f"Example: {example}")(command)
