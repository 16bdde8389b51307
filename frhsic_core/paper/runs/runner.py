"""Run an experiment: train its stacks or measure its units, store each when it is finished, and resume.

Jobs run in this process, in processes of loky (the executor of joblib), or on a Dask cluster, whose client is such an
executor too. Own parts, because the standard ones lack them: the claims that let several runners share a store, the
search for a job that kills its process, and the time limit.

On a machine that has only numpy, scipy, pandas, scikit-learn and torch, call it from Python::

    from frhsic_core.paper.experiments.presets import experiment_for
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
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from frhsic_core.paper.runs.jobs import OutOfTime, Samples, resolved_device, run_job, set_threads
from frhsic_core.paper.runs.plan import Experiment, Job, Study, Unit
from frhsic_core.paper.runs.store import Part, ResultStore
from frhsic_core.registry import DATASETS, METHODS

Log = Callable[[str], object]
Outcomes = Generator[tuple[Job | Unit, Part | BaseException], None, None]
# More processes than this hardly train faster on one GPU, and each one loads the data.
ON_ONE_GPU = 6
# A job is given up when this many processes have died with it: it is likely to be what kills them.
ATTEMPTS = 3
# Jobs that a cluster holds at a time; each one is claimed with an open file.
ON_A_CLUSTER = 256


# Where jobs run -------------------------------------------------------------------------------------------------------


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
    if asked is None:
        asked = min(ON_ONE_GPU, (os.cpu_count() or 1) // 2) if device.startswith("cuda") else 1
    return max(1, min(asked, jobs))


class _InThisProcess(Executor):
    """Run each job when it is submitted."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:  # one broken job (a missing file, memory) must not stop the others
            future.set_exception(error)
        return future


def _start_worker(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the calling process, which then ends this one
    set_threads(threads)


_samples = lru_cache(maxsize=1)(Samples)  # a process keeps the data of its last job


def _run_with_samples(job: Job | Unit, device: str, deadline: float) -> Part:
    try:
        return run_job(job, samples=_samples(device), deadline=deadline)
    finally:
        if device.startswith("cuda"):  # a trainer and its captured graphs refer to each other: nothing else frees them
            import torch

            gc.collect()
            torch.cuda.empty_cache()


def _run_on_cluster(job: Job | Unit, device: str, threads: int) -> Part:
    set_threads(threads)
    return _run_with_samples(job, resolved_device(device), math.inf)


@contextmanager
def _processes(workers: int, device: str, threads: int, *, log: Log) -> Iterator[Callable[[], Executor]]:
    """Yield a function that starts the processes, or starts new ones after one of them died; end them afterwards."""
    if workers == 1:
        yield _InThisProcess
        return
    from joblib.externals.loky import ProcessPoolExecutor

    started: list[Any] = []

    def start() -> Executor:
        started.append(ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(threads,)))
        return started[-1]

    with shared_gpu(device, log=log):
        try:
            yield start
        finally:
            for pool in started:
                pool.shutdown(wait=True, kill_workers=True)


@contextmanager
def _cluster(address: str) -> Iterator[Callable[[], Executor]]:
    from distributed import Client

    with Client(address, timeout="30s", set_as_default=False) as client:
        yield partial(client.get_executor, retries=ATTEMPTS)


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
        quiet: dict[str, Any] = {"env": os.environ | variables, "capture_output": True, "timeout": 60}
        try:
            subprocess.run([command, "-d"], check=True, **quiet)
            subprocess.run(probe, check=True, **quiet)
            os.environ.update(variables)
        except (OSError, subprocess.SubprocessError) as error:
            log(f"The Multi-Process Service does not work here ({type(error).__name__}): processes take turns.")
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

    job_name: str = "stack"
    row_name: str = "model"
    jobs: int = 0
    rows: int = 0
    seconds_training: float = 0.0
    seconds_evaluation: float = 0.0
    seconds: float = 0.0
    workers: int = 1
    left: int = 0
    stopped: str = ""
    failed: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_status(self) -> int:
        """0 if all is done, 3 if jobs are left, 4 if a job failed, 130 if interrupted."""
        return 130 if self.interrupted else 4 if self.failed else 3 if self.left else 0

    def add(self, job: Job | Unit, outcome: Part | BaseException) -> str:
        """Count a finished or failed job and return one line about it."""
        if not isinstance(outcome, Part):
            # What was tried and what to do often stand on the later lines of an error.
            reason = " ".join(str(outcome).split())[:400]
            self.failed.append(f"{job}: {type(outcome).__name__}: {reason}")
            return f"failed: {self.failed[-1]}"
        provenance = outcome.provenance
        training = provenance.get("seconds_training", provenance.get("seconds", 0.0))
        evaluation = provenance.get("seconds_evaluation", 0.0)
        self.jobs += 1
        self.rows += len(outcome.rows)
        self.seconds_training += training
        self.seconds_evaluation += evaluation
        return f"{job}: {_count(len(outcome.rows), self.row_name)} in {training + evaluation:.1f} s"

    def __str__(self) -> str:
        spent = f"{self.seconds_training:.1f} s"
        if self.job_name == "stack":
            spent += f" training, {self.seconds_evaluation:.1f} s evaluation"
        if self.workers > 1:
            spent += f" in {self.workers} processes, {self.seconds:.1f} s from start to end"
        lines = [
            f"{_count(self.jobs, self.job_name)}, {_count(self.rows, self.row_name)} finished: {spent}",
            f"{_count(self.left, self.job_name)} left" + (f" ({self.stopped})" if self.stopped else ""),
        ]
        return "\n".join([*lines, *(f"failed: {line}" for line in self.failed)])


def run_experiment(
    experiment: Experiment | Study,
    store: ResultStore,
    *,
    device: str = "auto",
    threads: int | None = None,
    minutes: float | None = None,
    workers: int | None = None,
    dask: str | None = None,
    log: Log | None = None,
) -> Report:
    """Run the jobs of ``experiment`` that ``store`` does not have yet.

    Each job is stored when it is finished, so a run that is killed loses only the jobs in progress. Run it again to
    resume; after the end it changes nothing. Several runners can share a store: each takes other jobs.

    Parameters
    ----------
    experiment : Experiment or Study
        What to train or to measure.
    store : ResultStore
        Where to keep it. The store is checked for writing before anything is computed.
    device : str
        ``"auto"`` is CUDA if there is a GPU.
    threads : int, optional
        Number of CPU threads of torch. By default it is left as it is, and 1 in other processes.
    minutes : float, optional
        Wall-clock limit. A stack that would end after it is stopped early; a unit in progress is finished.
    workers : int, optional
        Number of processes that train stacks at the same time. By default one on a CPU and several on a GPU, because a
        training step of a stack of small models leaves most of a GPU idle.
    dask : str, optional
        Address of a Dask scheduler whose workers train the stacks. They need the package and the data, but no shared
        disk: this process stores the results.
    log : callable, optional
        Receives one line of text for each job.

    Returns
    -------
    Report
        What was done, what is left, and what failed.
    """
    log = log or (lambda line: None)
    if dask is not None and isinstance(experiment, Study):
        raise ValueError(f"{experiment.name} measures one machine and cannot run on a cluster: run it without --dask.")
    if dask is not None and (minutes is not None or workers is not None):
        raise ValueError("A cluster has no time limit and its own workers: leave out --minutes and --workers.")
    if threads is not None:
        set_threads(threads)
    jobs: Sequence[Job | Unit] = experiment.missing(store.done())
    report = Report(experiment.job_name, experiment.row_name)
    log(f"{experiment.name}: {_to_do(jobs)}")
    if not jobs:
        return report
    # An error that every job would meet is raised once, now.
    store.require_writable()
    begin = time.monotonic()
    deadline = math.inf if minutes is None else begin + 60.0 * minutes
    if dask is None:
        device = resolved_device(device)
        report.workers = width = chosen_workers(workers, experiment, device, jobs=len(jobs))
        fetch_missing_data((job.data for job in jobs if job.data), log=log)
        place = _processes(width, device, threads or 1, log=log)
        run = partial(_run_with_samples, device=device, deadline=deadline)
        if width > 1:
            log(f"{width} processes train at the same time on {device}")
            jobs = sorted(jobs, key=_weight, reverse=True)  # a long one at the end would leave the others idle
    else:
        place, width = _cluster(dask), ON_A_CLUSTER
        run = partial(_run_on_cluster, device=device, threads=threads or 1)
    total = sum(map(_weight, jobs))
    seen = 0.0
    try:
        # Closing the outcomes gives the claims back if a part cannot be written.
        with place as start, closing(_outcomes(jobs, store, start, run, width, deadline, log)) as outcomes:
            for job, outcome in outcomes:
                if isinstance(outcome, Part):
                    store.write(outcome)
                line = report.add(job, outcome)
                seen += _weight(job)
                left = (time.monotonic() - begin) * (total - seen) / seen
                log(f"[{report.jobs}/{len(jobs)}] {line}; about {left / 60:.0f} min left")
    except KeyboardInterrupt:
        report.interrupted = True
        report.stopped = "interrupted; finished results are kept; run the same command again to resume"
    finally:
        _samples.cache_clear()
    report.seconds = time.monotonic() - begin
    report.left = len(experiment.missing(store.done()))
    if report.left and not report.stopped and not report.failed and deadline < math.inf:
        report.stopped = "time limit"
    return report


def _outcomes(
    jobs: Iterable[Job | Unit],
    store: ResultStore,
    start: Callable[[], Executor],
    run: Callable[[Job | Unit], Part],
    width: int,
    deadline: float,
    log: Log,
) -> Outcomes:
    """Yield each job with its part or its error; a job stays claimed until the caller asks for the next one.

    At most ``width`` jobs are submitted at a time, so that other runners find some. When a process dies, its executor
    is replaced, and the jobs that were running are tried alone, which shows the one that kills its process.
    """
    waiting = deque(jobs)
    deaths: Counter[str] = Counter()
    running: dict[Future[Part], tuple[Job | Unit, ExitStack]] = {}
    executor = start()

    def may_start() -> bool:
        if not waiting or time.monotonic() >= deadline:
            return False
        suspects = [job for job in (waiting[0], *(job for job, _ in running.values())) if deaths[job.key]]
        return len(running) < (1 if suspects else width)

    with ExitStack() as claims:
        while True:
            while may_start():
                job = waiting.popleft()
                held = claims.enter_context(ExitStack())
                if held.enter_context(store.claim(job)) and set(job.keys) - store.done():
                    running[executor.submit(run, job)] = job, held
                else:
                    held.close()
                    log(f"{job}: another runner has it")
            if not running:
                return
            ended = wait(running, return_when=FIRST_COMPLETED).done
            broken = any(isinstance(future.exception(), BrokenExecutor) for future in ended)
            for future in wait(running).done if broken else ended:
                job, held = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    deaths[job.key] += 1
                if isinstance(error, OutOfTime):
                    log(str(error))
                    waiting.clear()
                elif isinstance(error, BrokenExecutor) and deaths[job.key] < ATTEMPTS:
                    log(f"{job}: a process ended while it ran, and it is tried again")
                    waiting.appendleft(job)
                else:
                    yield job, future.result() if error is None else error
                held.close()
            if broken:
                executor = start()


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _to_do(jobs: Sequence[Job | Unit]) -> str:
    stacks = [job for job in jobs if isinstance(job, Job)]
    if len(stacks) < len(jobs):
        return f"{_count(len(jobs), 'unit')} to measure"
    models = sum(len(job.models) for job in stacks)
    return f"{_count(len(stacks), 'stack')} to train, {_count(models, 'model')}"


def _weight(job: Job | Unit) -> float:
    """Return the relative cost of a job."""
    if isinstance(job, Unit):
        return 1.0
    recipe = job.recipe
    rows = dict(recipe.task.options).get("n") or DATASETS[recipe.task.dataset].rows
    steps = recipe.epochs * max(1.0, rows * recipe.fractions[0] / recipe.batch_size)
    # A step of a small stack costs its launches, a step of a large one its arithmetic.
    return steps * (40.0 + len(job.models) * METHODS[recipe.method].cost * recipe.batch_size / 256)


def fetch_missing_data(wanted: Iterable[tuple[str, str]], *, log: Log) -> None:
    """Download the datasets ``(name, variant)`` that are missing, and report each file, its source and its size.

    A failed download is reported; the jobs that need the data fail with the list of sources that were tried.
    """
    from frhsic_core.data.files import DataError, Folders, find_local
    from frhsic_core.data.loading import REAL
    from frhsic_core.paper.datasets import VARIANTS, load_variant, sources_of

    folders = Folders.from_environment()
    given_up: set[str] = set()
    for name, variant in dict.fromkeys(wanted):
        if name not in REAL or variant not in VARIANTS or name in given_up:
            continue
        files = [source.file for source in sources_of(name, variant)]
        if any(find_local(file, folders, []) for file in files):
            continue
        log(f"{name} ({variant}) is missing and is downloaded now:")
        for file in files:
            sources = [link.url for link in file.links] + ([f"the wheel of {file.wheel[0]}"] if file.wheel else [])
            if sources:
                log(f"  {file.name} from {' or '.join(sources)} to {file.under(folders.cache)}")
        try:
            data = load_variant(name, variant)
        except (DataError, OSError):  # the jobs that need the data report it in full
            given_up.add(name)
            log(f"  The download failed. Run frhsic data fetch {name} for the reasons and for a manual download.")
            continue
        size = max(path.stat().st_size for file in files if (path := file.under(folders.cache)).exists())
        log(f"  Downloaded and verified: {size / 1e6:.1f} MB, n = {data.n:,}")
