"""Run an experiment job by job: resume, keep a time limit, report progress, use this machine or a cluster.

On a machine that has only numpy, scipy, pandas, scikit-learn and torch, call it from Python::

    from frhsic_core.paper.experiments.presets import experiment_for
    from frhsic_core.paper.runs.runner import run_experiment
    from frhsic_core.paper.runs.store import ResultStore

    experiment = experiment_for("main")
    print(run_experiment(experiment, ResultStore("results", experiment.name), say=print))

The results stay in ``results/main.parts``. On a machine with pyarrow, ``frhsic run main --store results`` merges them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from frhsic_core.paper.runs.jobs import (
    OutOfTime,
    Samples,
    free_memory,
    require_known,
    resolved_device,
    run_job,
    set_threads,
)
from frhsic_core.paper.runs.plan import Experiment, Job, Study, Unit
from frhsic_core.paper.runs.store import Part, ResultStore
from frhsic_core.paper.runs.workers import chosen_workers, run_in_processes
from frhsic_core.registry import DATASETS, METHODS

Outcomes = Generator[tuple[Job | Unit, Part | BaseException], None, None]


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
    slowest: list[tuple[float, str]] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_status(self) -> int:
        """0 if all is done, 3 if jobs are left, 4 if a job failed, 130 if interrupted."""
        return 130 if self.interrupted else 4 if self.failed else 3 if self.left else 0

    def interrupt(self, lost: str) -> None:
        """Record that Ctrl-C ended the run; ``lost`` is what was in progress."""
        self.interrupted = True
        self.stopped = f"interrupted; {lost} lost, finished ones are kept; run the same command again to resume"

    def add(self, part: Part) -> str:
        """Count a finished job and return one line about it."""
        provenance = part.provenance
        training = provenance.get("seconds_training", provenance.get("seconds", 0.0))
        evaluation = provenance.get("seconds_evaluation", 0.0)
        self.jobs += 1
        self.rows += len(part.rows)
        self.seconds_training += training
        self.seconds_evaluation += evaluation
        self.slowest.append((training + evaluation, str(part.job)))
        if isinstance(part.job, Unit):
            return f"{part.job}: {_count(len(part.rows), self.row_name)} in {training:.1f} s"
        return f"{part.job}: {training:.1f} s training, {evaluation:.1f} s evaluation"

    def fail(self, job: Job | Unit, error: BaseException) -> str:
        """Count a failed job and return one line about it."""
        # What was tried and what to do often stand on the later lines of an error.
        reason = " ".join(str(error).split())[:400]
        self.failed.append(f"{job}: {type(error).__name__}: {reason}")
        return f"failed: {self.failed[-1]}"

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
        lines += [f"  {seconds:7.1f} s  {name}" for seconds, name in sorted(self.slowest, reverse=True)[:5]]
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
    say: Callable[[str], None] | None = None,
) -> Report:
    """Run the jobs of ``experiment`` that ``store`` does not have yet.

    Each job is stored when it is finished, so a run that is killed loses only the job in progress. Run it again to
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
        Number of CPU threads of torch. By default it is left as it is.
    minutes : float, optional
        Wall-clock limit. A stack that would end after it is stopped early, and the run ends; a unit is not started.
    workers : int, optional
        Number of processes that train stacks at the same time. By default one on a CPU and several on a GPU; see
        :mod:`frhsic_core.paper.runs.workers`.
    dask : str, optional
        Address of a Dask scheduler whose workers train the stacks; see :mod:`frhsic_core.paper.runs.cluster`.
    say : callable, optional
        Receives one line of text for each job.

    Returns
    -------
    Report
        What was done, what is left, and what failed.
    """
    say = say or (lambda line: None)
    if dask is not None and isinstance(experiment, Study):
        raise ValueError(f"{experiment.name} measures one machine and cannot run on a cluster: run it without --dask.")
    if dask is not None and minutes is not None:
        raise ValueError("A run on a cluster has no time limit: leave out --minutes or --dask.")
    if dask is not None and workers is not None:
        raise ValueError("The cluster decides how many workers there are: leave out --workers or --dask.")
    if threads is not None:
        set_threads(threads)
    jobs = experiment.missing(store.done())
    report = Report(experiment.job_name, experiment.row_name)
    say(f"{experiment.name}: {_to_do(jobs)}")
    if not jobs:
        return report
    # An error that every job would meet is raised once, now.
    store.require_writable()
    outcomes: Outcomes
    deadline = math.inf
    if dask is None:
        device = resolved_device(device)
        report.workers = chosen_workers(workers, experiment, device, jobs=len(jobs))
        fetch_missing_data((job.data for job in jobs if job.data), say=say)
        clock = _Clock(jobs)
        if minutes is not None:
            deadline = clock.begin + 60.0 * minutes
        if report.workers > 1:
            say(f"{report.workers} processes train at the same time on {device}")
            jobs = sorted(jobs, key=_weight, reverse=True)  # a long one at the end would leave the others idle
            outcomes = run_in_processes(
                jobs, store, workers=report.workers, device=device, threads=threads or 1, deadline=deadline, say=say
            )  # fmt: skip
        else:
            outcomes = _run_here(
                jobs, store, samples=Samples(device), deadline=deadline, clock=clock, report=report, say=say
            )  # fmt: skip
    else:
        from frhsic_core.paper.runs.cluster import run_on_workers

        require_known(device)  # a worker may have a device that this machine does not have
        clock = _Clock(jobs)
        outcomes = run_on_workers(jobs, address=dask, device=device, threads=threads or 1)
    with closing(outcomes):  # gives the claim back if a part cannot be written
        try:
            for job, outcome in outcomes:
                if isinstance(outcome, Part):
                    store.write(outcome)
                    clock.finished(job)
                    line = report.add(outcome)
                    say(f"[{report.jobs}/{len(jobs)}] {line}; {clock}")
                else:
                    clock.skipped(job)
                    say(report.fail(job, outcome))
        except KeyboardInterrupt:
            if report.workers == 1:
                raise
            report.interrupt(f"the {report.job_name}s in progress are")
    report.seconds = time.monotonic() - clock.begin
    report.left = len(experiment.missing(store.done()))
    if report.left and not report.stopped and report.seconds >= deadline - clock.begin:
        report.stopped = "time limit"
    return report


def _run_here(
    jobs: Sequence[Job | Unit],
    store: ResultStore,
    *,
    samples: Samples,
    deadline: float,
    clock: _Clock,
    report: Report,
    say: Callable[[str], None],
) -> Outcomes:
    """Yield each job with its part or its error, one after the other; a job stays claimed until the next one."""
    for job in jobs:
        if time.monotonic() + clock.expected(job) > deadline:
            report.stopped = "time limit"
            return
        with store.claim(job) as mine:
            if not mine or not set(job.keys) - store.done():
                say(f"{job}: another runner has this {report.job_name}")
                clock.skipped(job)
                continue
            try:
                outcome: Part | BaseException = run_job(job, samples=samples, deadline=deadline)
            except OutOfTime as error:
                report.stopped = "time limit"
                say(str(error))
                return
            except KeyboardInterrupt:
                report.interrupt(f"the {report.job_name} in progress is")
                return
            except Exception as error:  # one broken job (a missing file, memory) must not stop the others
                outcome = error
            finally:
                free_memory(samples.device)
            yield job, outcome


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _to_do(jobs: Sequence[Job | Unit]) -> str:
    stacks = [job for job in jobs if isinstance(job, Job)]
    if len(stacks) < len(jobs):
        return f"{_count(len(jobs), 'unit')} to measure"
    models = sum(len(job.models) for job in stacks)
    return f"{_count(len(stacks), 'stack')} to train, {_count(models, 'model')}"


class _Clock:
    """Estimate the time left from the time spent and the relative cost of the jobs."""

    def __init__(self, jobs: Sequence[Job | Unit]) -> None:
        self.begin = time.monotonic()
        self.left = sum(map(_weight, jobs))
        self.done = 0.0

    def skipped(self, job: Job | Unit) -> None:
        self.left -= _weight(job)

    def finished(self, job: Job | Unit) -> None:
        self.left -= _weight(job)
        self.done += _weight(job)

    @property
    def seconds_per_weight(self) -> float:
        return (time.monotonic() - self.begin) / self.done if self.done else 0.0

    def expected(self, job: Job | Unit) -> float:
        """Return half of the estimated seconds, so that a job which may still fit is tried."""
        return 0.5 * _weight(job) * self.seconds_per_weight

    def __str__(self) -> str:
        seconds = max(self.left, 0.0) * self.seconds_per_weight
        return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"


def _weight(job: Job | Unit) -> float:
    if isinstance(job, Unit):
        return 1.0
    recipe = job.recipe
    rows = dict(recipe.task.options).get("n") or DATASETS[recipe.task.dataset].rows
    steps = recipe.epochs * max(1.0, rows * recipe.fractions[0] / recipe.batch_size)
    # A step of a small stack costs its launches, a step of a large one its arithmetic.
    return steps * (40.0 + len(job.models) * METHODS[recipe.method].cost * recipe.batch_size / 256)


class _Announced:
    """Print the size of a download once; pooch treats it as a progress bar."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._total = 0.0

    @property
    def total(self) -> float:
        """Bytes to download; 0 if the server does not report it."""
        return self._total

    @total.setter
    def total(self, value: float) -> None:
        self._total = value
        if value:
            self.say(f"  {value / 1e6:.1f} MB to download")

    def update(self, amount: float) -> None:
        """Do nothing, since a log has no moving bar."""

    def reset(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def fetch_missing_data(wanted: Iterable[tuple[str, str]], *, say: Callable[[str], None]) -> None:
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
        say(f"{name} ({variant}) is missing and is downloaded now:")
        for file in files:
            sources = [link.url for link in file.links] + ([f"the wheel of {file.wheel[0]}"] if file.wheel else [])
            if sources:
                say(f"  {file.name} from {' or '.join(sources)} to {file.under(folders.cache)}")
        try:
            data = load_variant(name, variant, progress=_Announced(say))
        except (DataError, OSError):  # the jobs that need the data report it in full
            given_up.add(name)
            say(f"  The download failed. Run frhsic data fetch {name} for the reasons and for a manual download.")
            continue
        size = max(path.stat().st_size for file in files if (path := file.under(folders.cache)).exists())
        say(f"  Downloaded and verified: {size / 1e6:.1f} MB, n = {data.n:,}")
