"""Change the code on purpose, one mutant at a time, and count how many changes the tests notice.

Usage: ``python tests/mutants/run.py [--jobs N] [--only joint] [--out FILE] [--seed 1 --count 120]``, or
``make mutants`` and ``make mutants SEED=1 COUNT=120``.

With a seed, the mutants are drawn at random from the syntax tree of the library (see draw.py), and the tests of the
same folder and the module's doctests should notice them. A drawn mutant that no test can notice is a table
``[[equivalent]]`` in ``tests/mutants/equivalent.toml`` with the keys ``file``, ``before`` and ``after`` (the changed
lines, as the list of survivors prints them) and ``reason``. It is not run.

Without a seed, they are the tables ``[[mutant]]`` in ``tests/mutants/written.toml``, which no draw can give: pages,
scripts and whole steps. Each has the keys ``file``, ``old`` (which occurs exactly once in the file), ``new``,
``tests`` (arguments of pytest) and ``about`` (one sentence).

Each worker changes a copy of the tree in a temporary folder. Only the standard library and pytest are needed.
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
import textwrap
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # pytest and the tests import this file by its path

import draw

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

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    about: str
    start: int = -1  # where the change is; -1 if ``old`` occurs only once
    folder: tuple[str, ...] = ()  # the tests of the unchanged code that give the time limit

    @property
    def key(self) -> str:
        """Return the name of the mutant in the file of results."""
        parts = (self.file, str(self.start), self.old, self.new, *self.tests)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    @property
    def basis(self) -> str:
        """Return the arguments of pytest that must succeed without the change."""
        return " ".join(self.folder or self.tests)

    def apply(self, text: str) -> str:
        """Return the changed text of the file."""
        at = text.index(self.old) if self.start < 0 else self.start
        return text[:at] + self.new + text[at + len(self.old) :]

    def lines(self, text: str) -> tuple[int, str, str]:
        """Return the number of the first changed line, and the changed lines before and after, without indentation."""
        at = text.index(self.old) if self.start < 0 else self.start
        first = text.rindex("\n", 0, at) + 1 if "\n" in text[:at] else 0
        last = text.find("\n", at + len(self.old))
        last = len(text) if last < 0 else last
        after = text[first:at] + self.new + text[at + len(self.old) : last]
        return text.count("\n", 0, first) + 1, tidy(text[first:last]), tidy(after)


def tidy(lines: str) -> str:
    """Return lines of code without their indentation, so that they can be found again when they are moved."""
    return "\n".join(line.strip() for line in lines.strip().splitlines())


def drawn(root: Path, *, seed: int, count: int, only: str = "") -> tuple[list[Mutant], list[tuple[Mutant, str]]]:
    """Draw mutants of the library; return those to run, and those that are equivalent with the reason."""
    path = root / "tests" / "mutants" / "equivalent.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []) if path.is_file() else []
    reasons = {(table["file"], tidy(table["before"]), tidy(table["after"])): table["reason"] for table in tables}
    mutants, equivalent = [], []
    for change in draw.draw(root, seed=seed, count=count, only=only):
        # What `make test` leaves out takes too long for each mutant.
        tests = ("-m", "not slow", *draw.tests_of(root, change))
        folder = ("-m", "not slow", *draw.folder_of(root, change))
        mutant = Mutant(change.file, change.old, change.new, tests, change.kind, change.start, folder)
        _, before, after = mutant.lines((root / change.file).read_text(encoding="utf-8"))
        if reason := reasons.get((change.file, before, after)):
            equivalent.append((mutant, reason))
        else:
            mutants.append(mutant)
    return mutants, equivalent


def load(root: Path = ROOT, only: str = "") -> list[Mutant]:
    """Read the mutants and check that each can be applied."""
    mutants = []
    faults = []
    for path in sorted((root / "tests" / "mutants").glob("written*.toml")):
        for number, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []), start=1):
            where = f"{path.name}, mutant {number}"
            try:
                mutant = Mutant(**(table | {"tests": tuple(table["tests"])}))
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
    return [mutant for mutant in mutants if only in mutant.file]


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
        path = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # packages may be there; the copy comes first
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
                env=os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(copy), *path])},
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
            write(path, mutant.apply(original))
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
    sets = sorted({mutant.folder or mutant.tests for mutant in left if mutant.basis not in seconds})
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
                left = [mutant for mutant in left if mutant.basis in seconds]
                # Longest first, so that no worker waits long for the last one.
                left.sort(key=lambda mutant: -seconds[mutant.basis])
                # A mutant that needs much longer than the unchanged code has been noticed.
                runs = {
                    pool.submit(runner.mutant, mutant, min(limit, 30 + 4 * seconds[mutant.basis])): mutant
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


def report(root: Path, mutants: list[Mutant], known: dict[str, dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the table by folder and the survivors."""
    outcome = {mutant: str(known[mutant.key]["outcome"]) for mutant in mutants}
    folder = {mutant: str(Path(mutant.file).parent) for mutant in mutants}
    width = max(map(len, folder.values()))
    yield f"\n{'folder':{width}}  mutants  killed  timed out  survived"
    for name in [*sorted(set(folder.values())), "all"]:
        counts = Counter(outcome[mutant] for mutant in mutants if name in (folder[mutant], "all"))
        numbers = (counts.total(), counts["killed"], counts["timed out"], counts["survived"])
        yield "{:{}}  {:7}  {:6}  {:9}  {:8}".format(name, width, *numbers)
    for mutant in mutants:
        if outcome[mutant] == "survived":
            line, before, after = mutant.lines((root / mutant.file).read_text(encoding="utf-8"))
            yield f"\nSurvived: {mutant.file}:{line}: {mutant.about}"
            yield textwrap.indent(before, "  - ") + "\n" + textwrap.indent(after, "  + ")
            if not mutant.folder:
                yield f"  Tests: {' '.join(mutant.tests)}"


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the mutants, print the score; return 1 if it is too low and 2 if the tests fail without a mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants that run at the same time")
    parser.add_argument("--only", default="", help="mutants whose file contains this, such as a folder")
    parser.add_argument("--seed", type=int, help="draw mutants at random instead of running the written ones")
    parser.add_argument("--count", type=int, default=60, help="number of mutants to draw, equivalent ones included")
    parser.add_argument("--timeout", type=float, default=900.0, help="most seconds of one run of pytest")
    default = root / "_build" / "mutants.json"
    parser.add_argument("--out", type=Path, default=default, help="file of results; another run resumes from it")
    arguments = parser.parse_args(words)
    equivalent: list[tuple[Mutant, str]] = []
    if arguments.seed is None:
        mutants = load(root, arguments.only)
    else:
        mutants, equivalent = drawn(root, seed=arguments.seed, count=arguments.count, only=arguments.only)
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
        print(*report(root, tried, known), sep="\n")
    for mutant, reason in equivalent:
        line, _, after = mutant.lines((root / mutant.file).read_text(encoding="utf-8"))
        print(f"\nEquivalent: {mutant.file}:{line}: {reason}\n" + textwrap.indent(after, "  + "))
    if faults:
        print("\nThese tests do not pass with the unchanged code:", *faults, sep="\n", file=sys.stderr)
        print(f"{len(mutants) - len(tried)} of {len(mutants)} mutants were not tried.", file=sys.stderr)
        return 2
    killed, counted = sum(known[mutant.key]["outcome"] != "survived" for mutant in mutants), len(mutants)
    share = killed / counted
    print(f"\nThe tests notice {killed} of {counted} mutants ({share:.1%}; required {REQUIRED:.0%}).")
    return int(killed < REQUIRED * counted)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: children stop, copies are removed
    raise SystemExit(main())
