"""Change the code at random, one change at a time, and count how many changes the tests notice.

Usage: ``python tests/mutants/run.py [--seed 1] [--count 60] [--jobs N] [--only joint]``, or ``make mutants SEED=1
COUNT=120``. Without a seed a new one is drawn and printed.

The mutants are drawn from the syntax tree of the library (see draw.py); ``--only book/_ext`` draws them from the book's
extensions instead. The tests of the same folder and the module's doctests should notice them, for modules of the paper
also the findings and chapters that import them and the records of the paper. What they do not notice runs against the
tests of other folders that call a public name of the module. A mutant that no test can notice is a table
``[[equivalent]]`` in ``tests/mutants/equivalent.toml`` with the keys ``file``, ``before`` and ``after`` (the changed
lines, as the list of survivors prints them) and ``reason``. It is not run.

Each worker changes a copy of the tree in a temporary folder. Only the standard library and pytest are needed.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parent)
)  # pytest and the tests import this file by its path

import draw

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = 0.92
NOT_COPIED = shutil.ignore_patterns(
    ".*_cache",
    ".git",
    ".venv",
    ".hypothesis",
    "_build",
    "build",
    "dist",
    "__pycache__",
    "*.egg-info",
    "*.parts",
)


def equivalent(root: Path) -> dict[tuple[str, str, str], str]:
    """Return the reasons of the mutants that no test can notice, by file and changed lines."""
    path = root / "tests" / "mutants" / "equivalent.toml"
    tables = (
        tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
        if path.is_file()
        else []
    )
    return {
        (table["file"], draw.tidy(table["before"]), draw.tidy(table["after"])): table["reason"]
        for table in tables
    }


def write(path: Path, text: str) -> None:
    """Write a source file and remove its compiled form, which Python may take for current within one second."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


class Runner:
    """Run pytest in copies of the tree, one copy per worker."""

    def __init__(self, root: Path, room: Path, jobs: int, limit: float):
        self.copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy = room / f"copy{number}"
            shutil.copytree(root, copy, ignore=NOT_COPIED, symlinks=True)
            self.copies.put(copy)
        self.limit = limit

    def pytest(self, copy: Path, tests: Iterable[str]) -> tuple[int | None, str]:
        """Return the exit status (None after a time-out) and the output."""
        # What `make test` leaves out takes too long for each mutant, but for the records of small runs.
        words = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider"]
        words += ["-m", "not slow or recorded"]
        tests = list(tests)
        if any(name.endswith(".ipynb") for name in tests):
            words += ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval.cfg"]
        path = os.pathsep.join(
            [str(copy), os.environ.get("PYTHONPATH", "")]
        )  # packages may be there; the copy first
        variables = os.environ | {
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": path,
        }
        options = {"cwd": copy, "env": variables, "timeout": self.limit, "text": True}
        try:
            done = subprocess.run([*words, *tests], capture_output=True, check=False, **options)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout + done.stderr

    def unchanged(self, tests: Iterable[str]) -> str:
        """Run the tests of the unchanged code; return what is wrong, if anything."""
        copy = self.copies.get()
        try:
            status, output = self.pytest(
                copy, sorted(tests, reverse=True)
            )  # doctests last, as in draw.tests_of
        finally:
            self.copies.put(copy)
        if status is None:
            return f"{tests} took longer than {self.limit:.0f} s"
        if status != 0:
            return f"{tests} failed without a mutant:\n{output[-3000:]}"
        return "" if re.search(r"\b[1-9]\d* passed", output) else f"{tests} were all skipped"

    def outcome(self, change: draw.Change, tests: tuple[str, ...]) -> str:
        """Run the tests with one change; return the first that notices it, or nothing."""
        copy = self.copies.get()
        path = copy / change.file
        original = path.read_text(encoding="utf-8")
        try:
            write(path, change.apply(original))
            status, output = self.pytest(copy, tests)
        finally:
            write(path, original)
            self.copies.put(copy)
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return (
            ""
            if status == 0
            else "time-out"
            if status is None
            else first.group(1)
            if first
            else "pytest"
        )

    def noticed(self, change: draw.Change, tests: tuple[str, ...], others: tuple[str, ...]) -> str:
        """Return the first test that notices a change, of its folder or of the others that pass without it."""
        here = self.outcome(change, tests)
        return (
            here if here or not others or self.unchanged(others) else self.outcome(change, others)
        )


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the mutants, print the score; return 1 if it is too low and 2 if the tests fail without a mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants that run at the same time"
    )
    parser.add_argument(
        "--only", default="", help="mutants whose file contains this, such as a folder"
    )
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="seed of the draw"
    )
    parser.add_argument(
        "--count", type=int, default=60, help="number of mutants to draw, equivalent ones included"
    )
    parser.add_argument(
        "--timeout", type=float, default=900.0, help="most seconds of one run of pytest"
    )
    given = parser.parse_args(words)
    reasons, shown = equivalent(root), {}
    changes, noticed, by_folder = [], Counter(), Counter()
    for change in draw.draw(root, seed=given.seed, count=given.count, only=given.only):
        line, before, after = change.lines((root / change.file).read_text(encoding="utf-8"))
        old, new = textwrap.indent(before, "  - "), textwrap.indent(after, "  + ")
        shown[change] = f"{change.file}:{line}: {change.kind}\n{old}\n{new}"
        if reason := reasons.get((change.file, before, after)):
            print(f"Equivalent: {shown[change]}\n  {reason}\n")
        else:
            changes.append(change)
    print(f"{len(changes)} mutants of seed {given.seed}", flush=True)
    tests = {change: draw.tests_of(root, change) for change in changes}
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as room,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        runner = Runner(root, Path(room), given.jobs, given.timeout)
        # Changes of one folder share their tests, in different orders; the doctests are those of the changed modules.
        shared: dict[frozenset[str], set[str]] = {}
        for change, files in tests.items():
            shared.setdefault(frozenset(files) - {change.file}, set()).update(files)
        faults = [fault for fault in pool.map(runner.unchanged, shared.values()) if fault]
        if faults:
            print(
                "These tests do not pass with the unchanged code:",
                *faults,
                sep="\n",
                file=sys.stderr,
            )
            return 2
        others = [draw.elsewhere(root, change) for change in changes]
        outcomes = pool.map(runner.noticed, changes, tests.values(), others)
        for change, by in zip(changes, outcomes, strict=True):
            print(f"{f'Killed by {by}' if by else 'Survived'}: {shown[change]}\n", flush=True)
            folder = str(Path(change.file).parent)
            by_folder[folder] += 1
            noticed[folder] += bool(by)
    for folder in sorted(by_folder):
        print(f"{noticed[folder]:4} of {by_folder[folder]:4}  {folder}")
    killed, counted = noticed.total(), len(changes)
    print(
        f"The tests notice {killed} of {counted} mutants ({killed / counted:.1%}; required {REQUIRED:.0%})."
    )
    return int(killed < REQUIRED * counted)


if __name__ == "__main__":
    raise SystemExit(main())
