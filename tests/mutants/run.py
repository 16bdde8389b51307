"""Change the code on purpose, one mutant at a time, and count how many changes the tests notice.

Usage: ``python tests/mutants/run.py [--jobs N] [--only joint] [--out FILE]``, or ``make mutants``.

A mutant is a table ``[[mutant]]`` in ``tests/mutants/*.toml`` with the keys ``file``, ``old`` (which occurs exactly
once in the file), ``new``, ``tests`` (arguments of pytest) and ``about`` (one sentence). ``equivalent`` says why no
test can notice the change; such a mutant is run, too, but not counted. Each worker changes a copy of the tree in a
temporary folder. Only the standard library and pytest are needed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = 0.92
NOT_COPIED = shutil.ignore_patterns(
    ".*_cache", ".git", ".venv", ".hypothesis", "_build", "build", "dist", "__pycache__", "*.egg-info", "*.parts"
)
# One thread per process, as in the Makefile.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file, and the tests that should fail because of it."""

    area: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    about: str
    equivalent: str = ""

    @property
    def key(self) -> str:
        """Return the name of the mutant in the file of results."""
        parts = (self.file, self.old, self.new, *self.tests)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def load(root: Path = ROOT, only: str = "") -> list[Mutant]:
    """Read the mutants and check that each can be applied."""
    mutants = []
    faults = []
    for path in sorted((root / "tests" / "mutants").glob("*.toml")):
        for number, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []), start=1):
            where = f"{path.name}, mutant {number}"
            try:
                mutant = Mutant(area=path.stem, **(table | {"tests": tuple(table["tests"])}))
            except (KeyError, TypeError) as error:
                faults.append(f"{where}: {error}")
                continue
            target = root / mutant.file
            count = target.read_text(encoding="utf-8").count(mutant.old) if target.is_file() else -1
            if count == -1:
                faults.append(f"{where}: there is no file {mutant.file}")
            elif count != 1:
                faults.append(f"{where}: 'old' occurs {count} times in {mutant.file}, not once: {mutant.old!r}")
            elif mutant.old == mutant.new:
                faults.append(f"{where}: 'old' and 'new' are the same")
            elif not mutant.tests or not mutant.about:
                faults.append(f"{where}: 'tests' and 'about' must not be empty")
            mutants.append(mutant)
    keys = Counter(mutant.key for mutant in mutants)
    faults += [f"written twice: {mutant.file}, {mutant.about}" for mutant in mutants if keys[mutant.key] > 1]
    if faults:
        raise SystemExit("\n".join(["These mutants must be corrected:", *faults]))
    return [mutant for mutant in mutants if only in mutant.area or only in mutant.file]


def fingerprint(root: Path) -> str:
    """Return a hash of the code and the tests: results of another state of the tree are not reused."""
    digest = hashlib.sha256()
    paths = sorted(path for part in ("frhsic_core", "tests") for path in (root / part).rglob("*.py"))
    for path in [*paths, root / "pyproject.toml"]:
        if path.is_file():
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


def write(path: Path, text: str) -> None:
    """Write a source file and remove its compiled form, which Python may take for current within one second."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


class Runner:
    """Run pytest in copies of the tree, one copy per worker."""

    def __init__(self, root: Path, room: Path, jobs: int):
        self.copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy = room / f"copy{number}"
            shutil.copytree(root, copy, ignore=NOT_COPIED, symlinks=True)
            self.copies.put(copy)
        self.running: set[subprocess.Popen[str]] = set()
        self.lock = threading.Lock()
        self.stopped = False

    def pytest(self, copy: Path, tests: tuple[str, ...], limit: float) -> tuple[int | None, str, float]:
        """Return the exit status (None after a time-out), the output and the seconds."""
        words = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", *tests]
        start = time.perf_counter()
        with self.lock:
            if self.stopped:
                raise KeyboardInterrupt
            # A session of its own, so that a time-out also ends the processes that a test has started.
            process = subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=copy,
                env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(copy)},
                start_new_session=True,
            )
            self.running.add(process)
        try:
            output, _ = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process)
            output, _ = process.communicate()
            status = None
        finally:
            with self.lock:
                self.running.discard(process)
        if self.stopped:
            raise KeyboardInterrupt
        return status, output, time.perf_counter() - start

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        """End a process and those that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End what is running and start nothing more."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                self.end(process)

    def unchanged(self, tests: tuple[str, ...], limit: float) -> tuple[float, str]:
        """Run the tests of the unchanged code; return the seconds and what is wrong, if anything."""
        copy = self.copies.get()
        try:
            status, output, seconds = self.pytest(copy, tests, limit)
        finally:
            self.copies.put(copy)
        if status is None:
            return seconds, f"took longer than {limit:.0f} s"
        if status != 0:
            return seconds, "failed without a mutant:\n" + output[-3000:]
        return seconds, "" if re.search(r"\b[1-9]\d* passed", output) else "were all skipped"

    def mutant(self, mutant: Mutant, limit: float) -> dict[str, object]:
        """Run the tests of one mutant; return what came of it."""
        copy = self.copies.get()
        path = copy / mutant.file
        original = path.read_text(encoding="utf-8")
        try:
            write(path, original.replace(mutant.old, mutant.new))
            status, output, seconds = self.pytest(copy, mutant.tests, limit)
        finally:
            write(path, original)
            self.copies.put(copy)
        outcome = {None: "timed out", 0: "survived"}.get(status, "killed")
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE) if outcome == "killed" else None
        return {"outcome": outcome, "by": first.group(1) if first else "", "seconds": round(seconds, 1)}


class Results:
    """Keep the results in a file, which is replaced after each of them."""

    def __init__(self, path: Path, tree: str):
        self.path = path
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            stored = {}
        self.content = stored if stored.get("tree") == tree else {"tree": tree, "tests": {}, "mutants": {}}

    def add(self, kind: str, key: str, value: object) -> None:
        """Store one result."""
        self.content[kind][key] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(self.path.name + ".new")
        temporary.write_text(json.dumps(self.content, indent=1), encoding="utf-8")
        temporary.replace(self.path)


def run(root: Path, mutants: list[Mutant], results: Results, *, jobs: int, limit: float) -> list[str]:
    """Run what has no result yet; return what is wrong with the unchanged tests."""
    seconds: dict[str, float] = results.content["tests"]
    known = results.content["mutants"]
    left = [mutant for mutant in mutants if mutant.key not in known]
    sets = sorted({mutant.tests for mutant in left if " ".join(mutant.tests) not in seconds})
    faults: list[str] = []
    print(f"{len(mutants)} mutants, {len(mutants) - len(left)} of them known from {results.path}", flush=True)
    if not left:
        return faults
    with tempfile.TemporaryDirectory(prefix="mutants-") as room:
        runner = Runner(root, Path(room), jobs)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                tasks = {pool.submit(runner.unchanged, tests, limit): " ".join(tests) for tests in sets}
                for number, task in enumerate(as_completed(tasks), start=1):
                    took, fault = task.result()
                    print(f"[tests {number}/{len(sets)}] {took:6.1f} s  {tasks[task]}", flush=True)
                    if fault:
                        faults.append(f"{tasks[task]} {fault}")
                    else:
                        results.add("tests", tasks[task], took)
                left = [mutant for mutant in left if " ".join(mutant.tests) in seconds]
                # Longest first, so that no worker waits long for the last one.
                left.sort(key=lambda mutant: -seconds[" ".join(mutant.tests)])
                # A mutant that needs much longer than the unchanged code has been noticed.
                runs = {
                    pool.submit(runner.mutant, mutant, min(limit, 30 + 4 * seconds[" ".join(mutant.tests)])): mutant
                    for mutant in left
                }
                for number, one in enumerate(as_completed(runs), start=1):
                    mutant, result = runs[one], one.result()
                    results.add("mutants", mutant.key, result)
                    head = f"[{number}/{len(left)}] {result['outcome']:9} {result['seconds']:6.1f} s"
                    print(f"{head}  {mutant.file}: {mutant.about}", flush=True)
            except BaseException:
                runner.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return faults


def report(mutants: list[Mutant], known: dict[str, dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the table, the survivors and the score."""
    outcome = {mutant: str(known[mutant.key]["outcome"]) for mutant in mutants}
    width = max(len(mutant.file) for mutant in mutants)
    yield f"\n{'file':{width}}  mutants  killed  timed out  survived  equivalent"
    for file in [*sorted({mutant.file for mutant in mutants}), "all"]:
        chosen = [mutant for mutant in mutants if file in (mutant.file, "all")]
        counts = Counter(outcome[mutant] for mutant in chosen if not mutant.equivalent)
        numbers = (counts["killed"], counts["timed out"], counts["survived"], sum(bool(m.equivalent) for m in chosen))
        yield "{:{}}  {:7}  {:6}  {:9}  {:8}  {:10}".format(file, width, len(chosen), *numbers)
    for mutant in mutants:
        if outcome[mutant] == "survived":
            yield f"\nSurvived: {mutant.file}: {mutant.about}\n  - {mutant.old.strip()}\n  + {mutant.new.strip()}"
            yield f"  {'Equivalent: ' + mutant.equivalent if mutant.equivalent else 'Tests: ' + ' '.join(mutant.tests)}"
        elif mutant.equivalent:
            yield f"\nMarked as equivalent, but {outcome[mutant]}: {mutant.file}: {mutant.about}"


def score(mutants: list[Mutant], known: dict[str, dict[str, object]]) -> tuple[int, int]:
    """Return how many mutants were noticed, and how many could have been."""
    counted = [mutant for mutant in mutants if not mutant.equivalent]
    return sum(known[mutant.key]["outcome"] != "survived" for mutant in counted), len(counted)


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the mutants, print the score; return 1 if it is too low and 2 if the tests fail without a mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants that run at the same time")
    parser.add_argument("--only", default="", help="mutants whose area (name of the .toml) or file contains this")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds of one run of pytest")
    default = root / "_build" / "mutants.json"
    parser.add_argument("--out", type=Path, default=default, help="file of results; another run resumes from it")
    arguments = parser.parse_args(words)
    mutants = load(root, arguments.only)
    if not mutants:
        raise SystemExit(f"No mutant matches --only {arguments.only}")
    results = Results(arguments.out, fingerprint(root))
    try:
        faults = run(root, mutants, results, jobs=arguments.jobs, limit=arguments.timeout)
    except KeyboardInterrupt:
        print(f"\nInterrupted. The same command resumes from {arguments.out}.", file=sys.stderr)
        return 130
    known = results.content["mutants"]
    tried = [mutant for mutant in mutants if mutant.key in known]
    if tried:
        print(*report(tried, known), sep="\n")
    if faults:
        print("\nThese tests do not pass with the unchanged code:", *faults, sep="\n", file=sys.stderr)
        print(f"{len(mutants) - len(tried)} of {len(mutants)} mutants were not tried.", file=sys.stderr)
        return 2
    killed, counted = score(mutants, known)
    share = killed / max(counted, 1)
    print(f"\nThe tests notice {killed} of {counted} mutants ({share:.1%}; required {REQUIRED:.0%}).")
    return int(killed < REQUIRED * counted)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: children stop, copies are removed
    raise SystemExit(main())
