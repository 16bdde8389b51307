"""Define the commands about the paper: run, tables, status, ledger, certify and the group data.

This is the only module outside of :mod:`frhsic_core.paper` that imports it.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from frhsic_core._choices import one_of
from frhsic_core.cli import INTERRUPTED
from frhsic_core.cli.terminal import as_sentences, echo, fail, print_table, waiting
from frhsic_core.data._files import DataError, Folders, find_local
from frhsic_core.data._loading import CARDS, REAL, RECIPES, available_datasets, load_dataset
from frhsic_core.data._recipes import Source as DataSource
from frhsic_core.paper.datasets import load_variant, recipe_of, sources_of, variants_of
from frhsic_core.paper.experiments import EXPERIMENTS, PRESETS, experiment_for, plans_for
from frhsic_core.paper.experiments.main import beside_paper, pareto_table
from frhsic_core.paper.record import compare, read_recorded, record
from frhsic_core.paper.runs.plan import Experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.statements.overview import judged
from frhsic_core.paper.statements.registry import Result, find_statement, run_checks, statements
from frhsic_core.paper.stored import results_folder, verdicts_file
from frhsic_core.registry import DATASETS, MEASURES

Place = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the results. The default is book/results, or _build/results for the preset smoke."
    ),
]
Preset = Annotated[str, typer.Option(help="Size: smoke (a few seconds) or full (everything).")]
# The columns of the table of matched points; a narrow terminal leaves out the last ones.
_PARETO = [
    "dataset",
    "method",
    "performance",
    "performance_sd",
    "dependence",
    "dependence_sd",
    "naup",
    "paper_naup",
]
_PARETO += ["lam", "variant", "paper_dependence", "paper_performance", "naup_low", "naup_high"]


data = typer.Typer(
    no_args_is_help=True,
    help="List, download and describe the datasets.",
    epilog="Example: frhsic data list",
)

# Data -------------------------------------------------------------------------------------------


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
            shown, status = _found_locally(name, variant, folders)
            rows.append(
                (
                    name,
                    variant,
                    status,
                    recipe_of(name, variant).sensitive,
                    str(shown.d),
                    f"{shown.counts[-1]:,}",
                    RECIPES[name].task,
                    f"{shown.kind}: {shown.file.name}",
                )
            )
    for name in (key for key in RECIPES if key not in REAL):
        law = load_dataset(name)
        size = (str(law.d), f"{law.n:,}", law.task)
        rows.append((name, "-", "built in", law.sensitive_name, *size, "a probability law"))
    headings = ("name", "variant", "status", "S", "d", "n", "task", "source")
    print_table(headings, rows, fold=("source", "status"))


def _found_locally(name: str, variant: str, folders: Folders) -> tuple[DataSource, str]:
    """Return the file of a variant that is on this machine, or else the one to download, and a status."""
    sources = sources_of(name, variant)
    with_links = [source for source in sources if source.file.links]
    to_download = (with_links or list(sources))[0]
    try:
        for source in sources:
            if located := find_local(source.file, folders, []):
                return source, f"verified, in {located.origin}"
    except OSError as error:
        return to_download, f"not readable: {error.strerror or error}"
    return to_download, f"missing: frhsic data fetch {name}"


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


# Runs -----------------------------------------------------------------------------------------------------------------


def _results(store: Path | None, preset: str, name: str) -> ResultStore:
    return ResultStore(
        store or (Path("_build/results") if preset == "smoke" else results_folder()), name
    )


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help=f"One of: {', '.join(EXPERIMENTS)}; one of its tables; or all, one after the other."
        ),
    ] = "main",
    preset: Preset = "full",
    store: Place = None,
    device: Annotated[
        str, typer.Option(help="Device to use: auto, cpu, cuda, cuda:1, ...")
    ] = "auto",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0, help="Stop after this number of minutes. Run the command again to resume."
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None, typer.Option(help="Run only this protocol. Can be repeated.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Run only this dataset. Can be repeated.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Run only this method. Can be repeated.")
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Use only the first N splits.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that train at once. Default: one on a CPU, up to six on a GPU."
        ),
    ] = None,
) -> None:
    """Run an experiment and store its results. A run that was stopped resumes where it was.

    Only missing results are computed. Missing datasets are downloaded first, and each download is reported. The time
    limit is for all experiments together.

    Exit status: 0 done; 2 wrong arguments or no access to the results; 3 work left; 4 failure; 130 Ctrl-C.
    """
    restriction = {"protocols": protocol, "datasets": dataset, "methods": method}
    options = {"device": device, "workers": workers}
    status = 0
    begin = time.monotonic()
    chosen = {name: tuple(values) for name, values in restriction.items() if values}
    try:
        for name in EXPERIMENTS if experiment == "all" else (experiment,):
            for plan in plans_for(name, preset, splits=splits, **chosen):
                left = (
                    None if minutes is None else max(0.0, minutes - (time.monotonic() - begin) / 60)
                )
                status = max(
                    status, _run(plan, _results(store, preset, plan.name), minutes=left, **options)
                )
    except KeyboardInterrupt:
        raise fail(
            "Finished results are kept. Run the same command again to resume.", status=INTERRUPTED
        ) from None
    raise typer.Exit(status)


def _run(plan: Experiment, results: ResultStore, **options: Any) -> int:
    """Run a plan, export its results and return the exit status."""
    import torch

    from frhsic_core.paper.runs.runner import run_experiment

    torch.set_num_threads(1)  # small models are fastest with one
    report = run_experiment(plan, results, log=typer.echo, **options)
    if importlib.util.find_spec("pyarrow") is not None:
        results.compact(plan)
    elif report.jobs:
        typer.echo(
            f"The results stay in {results.database}. To export them: pip install 'frhsic-core[paper]'."
        )
    typer.echo(str(report))
    return report.exit_status


def status(store: Place = None) -> None:
    """Show the progress of each stored table and preset: results stored, results required and jobs left.

    Results are trained models, or measured units of a study. The json file of a table has the time and the device of
    each job.

    Exit status: 0 shown; 2 the results cannot be found or read.
    """
    if store is not None and not store.is_dir():
        raise ValueError(f"store is {store}, which is not a folder: give a folder with results.")
    rows = []
    for table in [table for tables in EXPERIMENTS.values() for table in tables]:
        for preset in PRESETS:
            chosen = experiment_for(table, preset)
            done, needed = _results(store, preset, chosen.name).done(), chosen.keys()
            counts = (len(needed & done), len(needed), len(chosen.missing(done)))
            rows.append((table, preset, *(f"{count:,}" for count in counts)))
    print_table(("table", "preset", "stored", "of", "jobs left"), rows)


# Stored results -------------------------------------------------------------------------------------------------------


def tables(
    preset: Preset = "full",
    store: Place = None,
    protocol: Annotated[
        str, typer.Option(help="Protocol of the runs: text or reference.")
    ] = "reference",
) -> None:
    """Print the matched points and nAUP of each method with intervals, beside the values of the paper.

    Exit status: 0 printed; 2 wrong arguments, or nothing is stored.
    """
    one_of("protocol", protocol, ("text", "reference"))
    results = _results(store, preset, experiment_for("main", preset).name)
    rows = results.read()
    rows = rows[(rows["protocol"] == protocol) & (rows["option"] == "")]
    table = pareto_table(rows, dependence="gdp_reference")
    if table.empty:
        raise ValueError(
            f"{results.root} has no whole sweep of the {protocol} protocol yet. Run: frhsic run main"
        )
    shown = beside_paper(table)[_PARETO].dropna(axis=1, how="all")
    cells = [
        ["–" if pd.isna(v) else f"{v:.4g}" if isinstance(v, float) else v for v in line]
        for line in shown.values
    ]
    title = f"{results.name}, {protocol} protocol, {MEASURES['gdp_reference']}"
    print_table([column.replace("_", " ") for column in shown], cells, title=title)


def ledger(
    verdict: Annotated[
        str | None, typer.Option(help="Print only claims with this verdict, such as 'disagrees'.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print every claim, with its notes.")
    ] = False,
) -> None:
    """Compare every number of the paper with the stored runs. Print the counts and what disagrees.

    Lines are counted by kind: measured (a number from data or runs), implemented as printed (a setting that was copied
    from the paper), and proved or checked (a statement). Only measured lines are evidence about results.

    Exit status: 0 printed; 2 wrong arguments, or nothing is stored.
    """
    from frhsic_core.paper import claims

    if verdict is not None:
        one_of("verdict", verdict, claims.VERDICTS)
    results_folder()
    with waiting("Judging the printed numbers from the stored runs. This takes about 15 seconds."):
        top = claims.heading(claims.ledger())
        lines = claims.ledger(verdict=verdict)
    for name, value in top.items():
        text = (
            ", ".join(f"{count} {what}" for what, count in value.items())
            if isinstance(value, dict)
            else value
        )
        typer.echo(f"{name}: {', '.join(text) if isinstance(text, list) else text}")
    columns = ["id", "claim", "printed", "ours", "verdict"]
    if everything or verdict is not None:
        columns += ["note", "by the code", "kind", "from stored runs"]
        print_table(
            columns, lines[columns].to_numpy().tolist(), fold=set(columns) - {"id", "by the code"}
        )
        return
    lines = lines[lines["verdict"].isin(claims.CONTRADICTED)]
    lines = lines.sort_values(
        "verdict", key=lambda column: column.map(claims.CONTRADICTED.index), kind="stable"
    )
    print_table(columns, lines[columns].to_numpy().tolist(), fold=columns[1:])
    typer.echo(
        "Run frhsic ledger --all for the reasons and all claims, or --verdict NAME for one verdict."
    )


# Statements -----------------------------------------------------------------------------------------------------------


def certify(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use smaller grids and fewer draws; this takes less than a minute."
        ),
    ] = False,
    statement: Annotated[
        str | None,
        typer.Option(
            help='Check one statement only, by number ("Theorem 4.5" or 4.5) or by label.'
        ),
    ] = None,
    record_verdicts: Annotated[
        bool,
        typer.Option(
            "--record", help="Write the verdicts as the record to compare with from now on."
        ),
    ] = False,
) -> None:
    """Check every statement of the paper and compare verdicts and numbers with the recorded ones.

    Exit status 0: nothing recorded changed; 1: a verdict or a number changed; 2: a mistake in the command.
    """
    # All problems are reported before the checks run, which takes minutes.
    numbers = [find_statement(statement).number] if statement is not None else list(statements())
    if record_verdicts and len(numbers) < len(statements()):
        raise ValueError("--record writes the verdicts of all statements: leave --statement out.")
    path = _record_file(writing=record_verdicts)
    known = {} if record_verdicts or path is None else read_recorded(path)
    if importlib.util.find_spec("flint") is None:
        raise fail(
            "Proofs in interval arithmetic need python-flint: install it with pip install python-flint."
        )
    started = time.perf_counter()
    results = _check(numbers, quick=quick and not record_verdicts)
    _print_results(results, time.perf_counter() - started)
    if path is None:
        typer.echo(
            "No verdicts were compared: run the command in a clone, or set FRHSIC_BOOK.", err=True
        )
        return
    if record_verdicts:
        record(results, path, quick=_check(numbers, quick=True))
        typer.echo(f"Recorded {len(results)} verdicts in {path}.", err=True)
        return
    changed, new = compare(results, known, numbers=numbers, quick=quick)
    for line in [
        *(f"Not recorded yet: {line}" for line in new),
        *(f"CHANGED: {line}" for line in changed),
    ]:
        typer.echo(line, err=True)
    if changed:
        raise typer.Exit(1)


def _record_file(*, writing: bool) -> Path | None:
    """Return the file of the record; None if there is none to compare with, as an installed package has no book."""
    try:
        path = verdicts_file()
    except FileNotFoundError:
        if writing:
            raise
        return None
    return path if writing or path.is_file() else None


def _check(numbers: list[str], *, quick: bool) -> list[Result]:
    import torch  # imported here, so that `frhsic --help` does not wait for it

    torch.set_num_threads(1)  # many small tensors: more threads only wait for each other
    with waiting("Checking the statements of the paper ...") as show:
        return list(
            run_checks(
                numbers,
                quick=quick,
                before=lambda number, check: show(f"{number}: {check.__name__}"),
            )
        )


def _print_results(results: list[Result], seconds: float) -> None:
    rows = [
        (c.statement, c.verdict, c.evidence, f"{c.slack:.2e}", c.claim)
        for c in (r.certificate for r in results)
    ]
    print_table(
        ("statement", "verdict", "evidence", "slack", "claim"),
        rows,
        fold=("claim",),
        title="The statements",
    )
    about = judged(result.certificate.as_dict() for result in results)
    lines = [
        f"{name} {words}; other sentences in or near it that fail: {n}."
        for name, (words, n) in about.items()
    ]
    typer.echo(
        "\n".join(
            [
                *lines,
                f"Certificates: {len(results)}. Statements: {len(about)}. Seconds: {seconds:.0f}.",
            ]
        )
    )


EXAMPLES: dict[Callable[..., None], str] = {
    certify: 'frhsic certify --quick --statement "Theorem 4.5"',
    run: "frhsic run main --preset smoke --device cpu",
    tables: "frhsic tables --protocol text",
    status: "frhsic status",
    ledger: "frhsic ledger --verdict disagrees",
}
