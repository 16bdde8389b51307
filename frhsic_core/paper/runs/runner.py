"""Run an experiment: train its stacks or measure its units, store each when it is finished, and resume.

Jobs run in this process or in processes of joblib. Own parts, because joblib lacks them: the claims that let several
runners share a store, the time limit, and the service that lets several processes use one GPU.

On a machine that has only numpy, scipy, pandas, scikit-learn and torch, call it from Python::

    from frhsic_core.paper.experiments import experiment_for
    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.store import ResultStore

    experiment = experiment_for("main")
    print(run_experiment(experiment, ResultStore("results", experiment.name), log=print))

The results stay in ``results/main.sqlite``. On a machine with pyarrow, ``frhsic run main --store results`` exports
them.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from frhsic_core.paper.runs.jobs import OutOfTime, loaded, run_job, splits_of
from frhsic_core.paper.runs.plan import Experiment, Job, Unit
from frhsic_core.paper.runs.store import ResultStore, StoreError

Log = Callable[[str], object]
Outcome = tuple[Job, int | Exception | None]
# More processes than this hardly train faster on one GPU, and each one loads the data.
ON_ONE_GPU = 6


# Where jobs run -------------------------------------------------------------------------------------------------------


def chosen_workers(asked: int | None, jobs: Sequence[Job], device: str) -> int:
    """Return how many processes to use: as asked, else several on a GPU and one on a CPU; units have one."""
    if any(isinstance(job, Unit) for job in jobs):  # some measure time
        return 1
    if asked is None:
        asked = min(ON_ONE_GPU, (os.cpu_count() or 1) // 2) if device.startswith("cuda") else 1
    return max(1, min(asked, len(jobs)))


def _run_claimed(
    job: Job, store: ResultStore, device: str, deadline: float, own_process: bool
) -> Outcome:
    """Run and store a job that no other runner has; return its number of rows, its error, or None if another has it.

    The claim is held until the rows are stored, so that no other runner starts the job in between.
    """
    if own_process:
        import torch

        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # Ctrl-C is for the calling process, which then ends this one
        torch.set_num_threads(1)
    try:
        with store.claim(job) as mine:
            if not mine or not set(job.keys) - store.done():
                return job, None
            part = run_job(job, device=device, deadline=deadline)
            store.write(part)
            return job, len(part.rows)
    except Exception as error:  # one broken job (a missing file, memory) must not stop the others
        return job, error
    finally:
        if device.startswith(
            "cuda"
        ):  # a trainer and its captured graphs refer to each other: nothing else frees them
            import torch

            gc.collect()
            torch.cuda.empty_cache()


@contextmanager
def _processes(workers: int, device: str, *, log: Log) -> Iterator[None]:
    """Let processes that are started in this block share the GPU, and end them afterwards."""
    if workers == 1:
        yield
        return
    with shared_gpu(device, log=log):
        try:
            yield
        finally:
            get_reusable_executor(max_workers=workers).shutdown(wait=True, kill_workers=True)


@contextmanager
def shared_gpu(device: str, *, log: Log) -> Iterator[None]:
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
        probe = [sys.executable, "-c", f"import torch; torch.zeros(1, device={device!r}).item()"]
        quiet: dict[str, Any] = {
            "env": os.environ | variables,
            "capture_output": True,
            "timeout": 60,
        }
        try:
            subprocess.run([command, "-d"], check=True, **quiet)
            subprocess.run(probe, check=True, **quiet)
            os.environ.update(variables)
        except (OSError, subprocess.SubprocessError) as error:
            log(
                f"The Multi-Process Service does not work here ({type(error).__name__}): processes take turns."
            )
        try:
            yield
        finally:
            for name in variables:
                os.environ.pop(name, None)
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run([command], input=b"quit\n", **quiet)


# The whole run --------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """Count what a run did and what is left to do."""

    jobs: int = 0
    rows: int = 0
    seconds: float = 0.0
    left: int = 0
    stopped: str = ""
    failed: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_status(self) -> int:
        """0 if all is done, 3 if jobs are left, 4 if a job failed, 130 if interrupted."""
        return 130 if self.interrupted else 4 if self.failed else 3 if self.left else 0

    def add(self, job: Job, outcome: int | Exception | None) -> str:
        """Count a finished or failed job and return one line about it."""
        if outcome is None:
            return f"{job}: another runner has it"
        if isinstance(outcome, OutOfTime):
            self.stopped = "time limit"
            return str(outcome)
        if isinstance(outcome, Exception):
            # What was tried and what to do often stand on the later lines of an error.
            reason = " ".join(str(outcome).split())[:400]
            self.failed.append(f"{job}: {type(outcome).__name__}: {reason}")
            return f"failed: {self.failed[-1]}"
        self.jobs += 1
        self.rows += outcome
        return f"{job}: {_count(outcome, 'row')}"

    def __str__(self) -> str:
        done = f"{_count(self.jobs, 'job')}, {_count(self.rows, 'row')} finished"
        left = f"{_count(self.left, 'job')} left" + (f" ({self.stopped})" if self.stopped else "")
        return "\n".join(
            [f"{done} in {self.seconds:.1f} s", left, *(f"failed: {line}" for line in self.failed)]
        )


def run_experiment(
    experiment: Experiment,
    store: ResultStore,
    *,
    device: str = "auto",
    minutes: float | None = None,
    workers: int | None = None,
    log: Log | None = None,
) -> Report:
    """Run the jobs of ``experiment`` that ``store`` does not have yet.

    Each job is stored when it is finished, so a run that is killed loses only the jobs in progress. Run it again to
    resume; after the end it changes nothing. Several runners can share a store: each takes other jobs.

    Parameters
    ----------
    experiment : Experiment
        What to train or to measure.
    store : ResultStore
        Where to keep it. The store is checked for writing before anything is computed.
    device : str
        ``"auto"`` is CUDA if there is a GPU.
    minutes : float, optional
        Wall-clock limit. A stack that would end after it is stopped early; a unit in progress is finished.
    workers : int, optional
        Number of processes that train stacks at the same time. By default one on a CPU and several on a GPU, because a
        training step of a stack of small models leaves most of a GPU idle.
    log : callable, optional
        Receives one line of text for each job.

    Returns
    -------
    Report
        What was done, what is left, and what failed.
    """
    from frhsic_core.learning.trainer import resolve_device

    log = log or (lambda line: None)
    jobs = experiment.missing(store.done())
    report = Report()
    log(f"{experiment.name}: {_count(len(jobs), 'job')} to run")
    if not jobs:
        return report
    # An error that every job would meet is raised once, now.
    store.require_writable()
    begin = time.monotonic()
    deadline = math.inf if minutes is None else begin + 60.0 * minutes
    device = str(resolve_device(device))
    width = chosen_workers(workers, jobs, device)
    fetch_missing_data((job.data for job in jobs if job.data), log=log)
    if width > 1:
        log(f"{width} processes train at the same time on {device}")
        jobs.sort(
            key=lambda job: job.weight, reverse=True
        )  # a long one at the end would leave the others idle
    calls = (
        delayed(_run_claimed)(job, store, device, deadline, width > 1)
        for job in jobs
        if not report.stopped and time.monotonic() < deadline
    )
    total, seen = sum(job.weight for job in jobs), 0.0
    try:
        with _processes(width, device, log=log):
            pool = Parallel(
                width, return_as="generator_unordered", pre_dispatch=width, batch_size=1
            )
            for number, (job, outcome) in enumerate(pool(calls), start=1):
                if isinstance(outcome, StoreError):
                    raise outcome
                line = report.add(job, outcome)
                seen += job.weight
                left = (time.monotonic() - begin) * (total - seen) / seen
                log(f"[{number}/{len(jobs)}] {line}; about {left / 60:.0f} min left")
    except KeyboardInterrupt:
        report.interrupted = True
        report.stopped = (
            "interrupted; finished results are kept; run the same command again to resume"
        )
    except TerminatedWorkerError:
        report.stopped = (
            "a process was killed, perhaps for lack of memory; run again, with fewer --workers"
        )
    finally:
        splits_of.cache_clear()
        loaded.cache_clear()
    report.seconds = time.monotonic() - begin
    report.left = len(experiment.missing(store.done()))
    if report.left and not report.stopped and not report.failed and deadline < math.inf:
        report.stopped = "time limit"
    return report


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def fetch_missing_data(wanted: Iterable[tuple[str, str]], *, log: Log) -> None:
    """Download the datasets ``(name, variant)`` that are missing, before several processes would.

    A failed download is reported by the jobs that need the data, with the list of sources that were tried.
    """
    from frhsic_core.data._files import DataError, Folders, find_local
    from frhsic_core.data._loading import REAL
    from frhsic_core.paper.datasets import load_variant, sources_of

    for name, variant in dict.fromkeys(each for each in wanted if each[0] in REAL):
        folders = Folders.from_environment()
        if any(find_local(source.file, folders, []) for source in sources_of(name, variant)):
            continue
        log(f"{name} ({variant}) is missing and is downloaded to {folders.cache} now")
        with suppress(DataError, OSError):
            load_variant(name, variant)
