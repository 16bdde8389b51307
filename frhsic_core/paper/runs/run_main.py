"""``python -m frhsic_core.paper.runs.run_main``: a sweep with numpy, pandas, scikit-learn and torch alone.

The ``frhsic run`` command does the same; this entry needs neither typer nor pyarrow, for machines that have a GPU and
little else. Finished stacks stay parts (``NAME.parts/*.npz``); ``frhsic tables`` or ``--compact`` merges them where
pyarrow is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from frhsic_core.paper.experiments.presets import EXPERIMENTS, PRESETS, experiment_for
from frhsic_core.paper.experiments.tables.main_table import short_table
from frhsic_core.paper.runs.devices import set_threads
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.study import Study, StudyStore, run_study
from frhsic_core.paper.runs.sweep import run_experiment


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print a short table.

    Returns 0 when all is done, 2 after a mistake, 3 when stacks are left, 4 when one failed, 130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(prog="run_main", description=__doc__.splitlines()[0])
    parser.add_argument("experiment", nargs="?", default="main", choices=list(EXPERIMENTS))
    parser.add_argument("--preset", default="full", choices=PRESETS)
    parser.add_argument("--store", default="book/results", help="folder of the results")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, help="stop cleanly before so many minutes")
    parser.add_argument("--protocol", nargs="+", help="only these protocols")
    parser.add_argument("--dataset", nargs="+", help="only these datasets")
    parser.add_argument("--method", nargs="+", help="only these methods")
    parser.add_argument("--splits", type=int, help="only the first so many splits")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of torch; more are slower on small stacks")
    parser.add_argument("--compact", action="store_true", help="merge the parts into one parquet file at the end")
    chosen = parser.parse_args(arguments)
    try:
        experiment = experiment_for(
            chosen.experiment,
            chosen.preset,
            protocols=chosen.protocol and tuple(chosen.protocol),
            datasets=chosen.dataset and tuple(chosen.dataset),
            methods=chosen.method and tuple(chosen.method),
            splits=chosen.splits,
        )
        set_threads(chosen.threads)
        say = lambda line: print(line, flush=True)  # noqa: E731
        if isinstance(experiment, Study):
            results = StudyStore(chosen.store, experiment.name)
            report = run_study(experiment, results, device=chosen.device, minutes=chosen.minutes, say=say)
            if chosen.compact:
                results.compact(experiment)
            print(report)
            return report.exit_status
        store = ResultStore(chosen.store, experiment.name)
        report = run_experiment(experiment, store, device=chosen.device, minutes=chosen.minutes, say=say)
        if chosen.compact:
            store.compact()
    except KeyboardInterrupt:
        print("Interrupted: finished stacks are kept; run again to go on.", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) and not error.filename else None
        print(f"run_main: {said or error}", file=sys.stderr)
        return 2
    print(report)
    print(short_table(store.read(parts_only=not chosen.compact)))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
