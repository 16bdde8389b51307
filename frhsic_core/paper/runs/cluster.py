"""The same stacks on a Dask cluster: workers train, this process stores."""

from __future__ import annotations

from collections.abc import Callable

from frhsic_core.paper.runs.devices import set_threads
from frhsic_core.paper.runs.plan import Experiment, Job
from frhsic_core.paper.runs.store import Part, ResultStore
from frhsic_core.paper.runs.sweep import Report, in_one_line, run_job

__all__ = ["run_on_cluster"]


def _train(job: Job, device: str, threads: int) -> Part:
    set_threads(threads)
    return run_job(job, device=device)


def run_on_cluster(
    experiment: Experiment,
    store: ResultStore,
    *,
    address: str,
    device: str = "auto",
    threads: int = 1,
    retries: int = 3,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Train what ``store`` lacks of ``experiment`` on the workers at ``address``.

    Stacks go to whichever worker is free; a worker that dies gives its stack to another. Each is stored when it comes
    back, by this process alone, so that workers need the data and the package but no shared disk.

    Parameters
    ----------
    experiment, store
        As in :func:`~frhsic_core.paper.runs.sweep.run_experiment`.
    address : str
        Of the scheduler, ``tcp://host:8786``.
    device, threads
        On each worker.
    retries : int
        How often a stack that raised an error is tried again.
    say : callable, optional
        Is told a line for each stack.
    """
    from distributed import Client, as_completed

    say = say or (lambda line: None)
    store.require_writable()
    jobs = experiment.missing(store.done())
    report = Report()
    with Client(address, timeout="30s", set_as_default=False) as client:
        say(f"{experiment.name}: {len(jobs)} stacks on {len(client.scheduler_info()['workers'])} workers")
        futures = {
            client.submit(_train, job, device, threads, key=f"{experiment.name}-{job.key}", retries=retries): job
            for job in jobs
        }
        for future in as_completed(futures, loop=client.loop):
            job = futures[future]
            error = future.exception()
            if error is not None:
                report.failed.append(f"{job}: {in_one_line(error)}")
                say(f"failed: {report.failed[-1]}")
                continue
            part: Part = future.result()
            store.write(part)
            future.release()
            report.stacks, report.models = report.stacks + 1, report.models + len(job.models)
            report.seconds_training += part.provenance["seconds_training"]
            report.seconds_evaluation += part.provenance["seconds_evaluation"]
            say(f"[{report.stacks}/{len(jobs)}] {job}: {part.provenance['seconds_training']:.1f} s training")
    report.left = len(experiment.missing(store.done()))
    return report
