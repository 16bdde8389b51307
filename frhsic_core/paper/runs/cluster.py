"""Run jobs on the workers of a Dask cluster, the way to use several machines."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from frhsic_core.paper.runs.jobs import run_job, set_threads
from frhsic_core.paper.runs.plan import Job, Unit
from frhsic_core.paper.runs.store import Part


def _run(job: Job | Unit, device: str, threads: int) -> Part:
    set_threads(threads)
    return run_job(job, device=device)


def run_on_workers(
    jobs: Sequence[Job | Unit], *, address: str, device: str = "auto", threads: int = 1, retries: int = 3
) -> Generator[tuple[Job | Unit, Part | BaseException], None, None]:
    """Yield each job with its part, or with the error that ended it, as the workers finish them.

    A job goes to the next free worker. If a worker dies, its job goes to another one. The calling process stores the
    parts, so the workers need the package and the data, but no shared disk.

    Parameters
    ----------
    jobs : sequence of Job
        The stacks to train.
    address : str
        Address of the Dask scheduler, such as ``tcp://host:8786``.
    device, threads
        Device and number of CPU threads of each worker.
    retries : int
        How often a job that raised an error is tried again.
    """
    from distributed import Client, as_completed

    with Client(address, timeout="30s", set_as_default=False) as client:
        futures = {
            client.submit(_run, job, device, threads, key=f"frhsic-{job.key}", retries=retries): job for job in jobs
        }
        for future in as_completed(futures, loop=client.loop):
            error = future.exception()
            yield futures[future], future.result() if error is None else error
            future.release()
