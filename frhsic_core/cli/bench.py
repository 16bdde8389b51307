"""Define the command ``frhsic bench``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from frhsic_core.cli.terminal import INTERRUPTED, fail, print_table


def bench(
    preset: Annotated[str, typer.Option(help="Size: smoke (seconds) or full (some minutes).")] = "full",
    device: Annotated[str, typer.Option(help="Device to measure: auto, cpu, cuda, cuda:1, ...")] = "auto",
    store: Annotated[Path, typer.Option(help="Folder of the measurements.")] = Path("_build") / "bench",
    again: Annotated[bool, typer.Option("--again", help="Measure again what is stored.")] = False,
) -> None:
    """Measure how fast this machine computes HSIC, beside other libraries and beside the limits of the device.

    Libraries that are installed are compared: hyppo, dcor, causal-learn and KeOps. Each one computes the same numbers
    in turns, in one process, after a call to warm up. The table has medians. A CPU is measured with one thread.

    Exit status: 0 done; 2 wrong arguments or no access to the folder; 4 failure; 130 Ctrl-C.
    """
    from frhsic_core.paper.experiments.presets import experiment_for
    from frhsic_core.paper.runs.jobs import resolved_device
    from frhsic_core.paper.runs.plan import Study
    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.store import ResultStore

    try:
        device = resolved_device(device)
        study = experiment_for("bench_gpu" if device.startswith("cuda") else "bench_cpu", preset)
        assert isinstance(study, Study)
        results = ResultStore(store, study.name, say=lambda line: typer.echo(line, err=True))
        if again:
            for path in (results.table, results.sidecar):
                path.unlink(missing_ok=True)
        report = run_experiment(study, results, device=device, say=typer.echo)
        results.compact(study)
        show(results)
    except KeyboardInterrupt:
        raise fail(
            "Finished measurements are kept. Run the same command again to resume.", status=INTERRUPTED
        ) from None
    except (ValueError, OSError) as error:
        raise fail(error) from None
    for line in report.failed:
        typer.echo(f"failed: {line}", err=True)
    raise typer.Exit(report.exit_status)


def show(results: object) -> None:
    """Print the measurements of a store, with the ratio of each implementation to this library."""
    from frhsic_core.paper.experiments.how_fast import FORMS, OURS, ratios
    from frhsic_core.paper.runs.store import ResultStore

    assert isinstance(results, ResultStore)
    rows = results.read()
    if rows.empty:
        return
    lines = []
    for part in dict.fromkeys(rows["part"]):
        if part == "limit":
            continue
        base = next(iter(FORMS)) if part == "training" else OURS
        for row in ratios(rows, part, to=base).to_dict("records"):
            size = row["n"] if row["n"] == row["n"] else row["models"]
            seconds = row["seconds"] / (row["steps"] if part == "training" else 1.0)
            lines.append(
                (
                    f"{part} {row['precision']}" if isinstance(row.get("precision"), str) else part,
                    f"{int(size):,}",
                    row["implementation"],
                    row["dtype"],
                    f"{seconds:.4g}",
                    f"{row['ratio']:.3g}",
                    "–" if math.isnan(row["mebibytes"]) else f"{row['mebibytes']:,.0f}",
                )
            )
    print_table(("part", "n or models", "implementation", "dtype", "seconds", "ratio", "MiB"), lines)
    threads = int(rows["threads"].max())
    where = f"{threads} CPU thread{'' if threads == 1 else 's'}" if threads else "GPU"
    machine = results.provenance()["environments"][0]["device"]
    typer.echo(f"{machine}, {where}; medians of up to 15 rounds in turns, after a call to warm up.")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog="Example: frhsic bench --preset smoke")(bench)
