"""Run jobs in several processes of this machine, the way to use one GPU fully.

A training step of a stack of small models leaves most of a GPU idle. Several processes fill it. The calling process
hands out one job at a time, claims it in the store and stores its part, so that a process that dies loses only the job
that it worked on; that job goes to another process.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from frhsic_core.paper.runs.jobs import OutOfTime, Samples, free_memory, run_job, set_threads
from frhsic_core.paper.runs.plan import Experiment, Job, Study, Unit
from frhsic_core.paper.runs.store import Part, ResultStore

Outcomes = Generator[tuple[Job | Unit, Part | BaseException], None, None]
# More processes than this hardly train faster on one GPU, and each one loads the data.
ON_ONE_GPU = 6
# A job is given up when this many processes have died with it: it is likely to be what kills them.
ATTEMPTS = 3


class WorkerDied(RuntimeError):
    """The processes that ran a job ended without an answer."""


def chosen_workers(asked: int | None, experiment: Experiment | Study, device: str, *, jobs: int) -> int:
    """Return how many processes to use: as asked, else several on a GPU and one on a CPU.

    Examples
    --------
    >>> from frhsic_core.paper.experiments.presets import experiment_for
    >>> chosen_workers(None, experiment_for("main", "smoke"), "cpu", jobs=8)
    1
    """
    if isinstance(experiment, Study):
        if asked is not None and asked > 1:
            raise ValueError(
                f"workers is {asked}, but {experiment.name} measures units one after the other: leave out --workers."
            )
        return 1
    if asked is not None:
        return max(1, min(asked, jobs))
    if not device.startswith("cuda"):
        return 1
    return max(1, min(ON_ONE_GPU, (os.cpu_count() or 1) // 2, jobs))


@contextmanager
def shared_gpu(device: str, *, say: Callable[[str], None]) -> Iterator[None]:
    """Let the processes started inside the block use one GPU at the same time, by NVIDIA's Multi-Process Service.

    Without the service a GPU serves one process after the other. It is started for this block in a folder of its own,
    and only if a process that uses it is seen to work. Settings of the GPU are not changed.
    """
    command = shutil.which("nvidia-cuda-mps-control")
    if not device.startswith("cuda") or command is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="frhsic-mps-") as folder:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = os.environ | variables
        probe = [sys.executable, "-c", f"import torch; torch.zeros(1, device={device!r}).item()"]
        quiet: dict[str, Any] = {"env": environment, "capture_output": True, "timeout": 60}
        try:
            subprocess.run([command, "-d"], check=True, **quiet)
            subprocess.run(probe, check=True, **quiet)
            os.environ.update(variables)
        except (OSError, subprocess.SubprocessError) as error:
            say(f"The Multi-Process Service does not work here ({type(error).__name__}): processes take turns.")
        try:
            yield
        finally:
            for name in variables:
                os.environ.pop(name, None)
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run([command], input=b"quit\n", **quiet)


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    job: Job | Unit | None = None
    claim: ExitStack = field(default_factory=ExitStack)

    def release(self) -> None:
        """Give the claim of the job back."""
        self.job = None
        self.claim.close()


def run_in_processes(
    jobs: Sequence[Job | Unit],
    store: ResultStore,
    *,
    workers: int,
    device: str,
    threads: int = 1,
    deadline: float = math.inf,
    say: Callable[[str], None],
) -> Outcomes:
    """Yield each job with its part, or with the error that ended it, as the processes finish them.

    A job stays claimed until the caller asks for the next one, so that it is stored before another runner may take it.

    Parameters
    ----------
    jobs : sequence of Job
        The stacks to train, the longest first.
    store : ResultStore
        Where the jobs are claimed.
    workers : int
        Number of processes.
    device, threads
        Device and number of CPU threads of each process.
    deadline : float
        As in :func:`~frhsic_core.paper.runs.jobs.run_job`.
    say : callable
        Receives a line when another runner has a job, and when a process dies.
    """
    waiting = list(jobs)
    deaths: dict[str, int] = {}
    pool: list[_Worker] = []
    context = multiprocessing.get_context("spawn")  # a forked process could not use CUDA

    def start() -> _Worker:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, device, threads), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def give(worker: _Worker) -> None:
        """Give the next job that nobody else has to an idle process."""
        while waiting and time.monotonic() < deadline:
            job = waiting.pop(0)
            held = ExitStack()
            mine = held.enter_context(store.claim(job))
            if mine and set(job.keys) - store.done():
                worker.job, worker.claim = job, held
                with suppress(OSError):  # a process that died while it was idle is found by the caller
                    worker.connection.send((job, deadline))
                return
            held.close()
            say(f"{job}: another runner has this stack")

    sharing = ExitStack()
    try:
        sharing.enter_context(shared_gpu(device, say=say))
        for _ in range(min(workers, len(waiting))):
            pool.append(start())
            give(pool[-1])
        while any(worker.job is not None for worker in pool):
            ready = wait([worker.connection for worker in pool if worker.job is not None])
            for worker in [worker for worker in pool if worker.connection in ready]:
                job = worker.job
                assert job is not None
                try:
                    outcome = worker.connection.recv()
                except (EOFError, OSError):  # the process is gone
                    pool.remove(worker)
                    worker.release()
                    worker.process.join()
                    deaths[job.key] = deaths.get(job.key, 0) + 1
                    status = worker.process.exitcode
                    if deaths[job.key] < ATTEMPTS:
                        say(f"{job}: its process ended with status {status} and is replaced")
                        waiting.insert(0, job)
                    else:
                        yield job, WorkerDied(f"{deaths[job.key]} processes ended with it, the last with {status}.")
                    if waiting:
                        pool.append(start())
                        give(pool[-1])
                    continue
                if isinstance(outcome, OutOfTime):
                    say(str(outcome))
                    waiting.clear()
                else:
                    yield job, outcome
                worker.release()
                give(worker)
    finally:
        for worker in pool:
            worker.release()
            worker.connection.close()  # an idle process ends by itself
        for worker in pool:
            worker.process.join(timeout=0.5)
            if worker.process.is_alive():  # in the middle of a job that nobody waits for
                worker.process.kill()
                worker.process.join()
        sharing.close()


def _work(connection: Connection, device: str, threads: int) -> None:
    """Run the jobs that come through ``connection`` until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the calling process, which then ends this one
    set_threads(threads)
    samples = Samples(device)
    while True:
        try:
            job, deadline = connection.recv()
        except (EOFError, OSError):
            return
        outcome: Part | BaseException
        try:
            outcome = run_job(job, samples=samples, deadline=deadline)
        except KeyboardInterrupt:
            return
        except Exception as error:  # one broken job must not stop the others
            outcome = _sendable(error)
        finally:
            free_memory(device)
        try:
            connection.send(outcome)
        except OSError:  # the calling process is gone
            return


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
