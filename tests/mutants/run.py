"""Change the code at random, one change at a time, and count how many changes the tests notice.

Usage: ``python tests/mutants/run.py [--seed 1] [--count 60] [--jobs N] [--only joint]``, or ``make mutants SEED=1
COUNT=120``. Without a seed a new one is drawn and printed. By default as many mutants run at once as there are
processors. ``--part 2/4`` runs the second of four parts of a draw: on a machine that is lent for some minutes, run one
part after the other; together they are the whole draw.

The mutants are drawn from the syntax tree of the library (see draw.py); ``--only book/_ext`` draws them from the book's
extensions instead. The tests of the same folder and the module's doctests should notice them, for modules of the paper
also the findings and chapters that import them and the records of the paper. What they do not notice runs against the
tests of other folders that call a public name of the module. A mutant that no test can notice is a table
``[[equivalent]]`` in ``tests/mutants/equivalent.toml`` with the keys ``file``, ``before`` and ``after`` (the changed
statement, of an ``if`` or a loop its head, in any layout) and ``reason``. It is not run.

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
    """Return the reasons of the mutants that no test can notice, by file and changed statement."""
    path = root / "tests" / "mutants" / "equivalent.toml"
    if not path.is_file():
        return {}
    reasons = {}
    for table in tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]:
        before = draw.normal(table["before"])
        after = draw.normal(table["after"])
        reasons[table["file"], before, after] = table["reason"]
    return reasons


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
        if status == 0:
            return ""
        if status is None:
            return "time-out"
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return first.group(1) if first else "pytest"

    def noticed(self, change: draw.Change, tests: tuple[str, ...], others: tuple[str, ...]) -> str:
        """Return the first test that notices a change, of its folder or of the others that pass without it."""
        here = self.outcome(change, tests)
        if here or not others or self.unchanged(others):
            return here
        return self.outcome(change, others)


def options() -> argparse.ArgumentParser:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    jobs = os.cpu_count() or 1
    add("--jobs", type=int, default=jobs, help="mutants that run at the same time")
    add("--only", default="", help="mutants whose file contains this, such as a folder")
    add("--seed", type=int, default=random.randrange(10**6), help="seed of the draw")
    add("--count", type=int, default=60, help="mutants to draw, equivalent ones included")
    add("--part", type=part, default=(1, 1), metavar="I/N", help="run the I-th of N parts alone")
    add("--timeout", type=float, default=900.0, help="most seconds of one run of pytest")
    return parser


def part(words: str) -> tuple[int, int]:
    """Return which part of how many ``I/N`` names."""
    match = re.fullmatch(r"(\d+)/(\d+)", words)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{words!r} is no part: write 2/4 for the second of four.")
    return int(match[1]), int(match[2])


def described(change: draw.Change, text: str) -> str:
    """Return what a change is: its place, its kind, and the lines before and after."""
    line, before, after = change.lines(text)
    old = textwrap.indent(before, "  - ")
    new = textwrap.indent(after, "  + ")
    return f"{change.file}:{line}: {change.kind}\n{old}\n{new}"


def to_run(root: Path, drawn: Iterable[draw.Change]) -> dict[draw.Change, str]:
    """Return the changes that a test can notice with their description, and print the others."""
    reasons = equivalent(root)
    shown = {}
    for change in drawn:
        text = (root / change.file).read_text(encoding="utf-8")
        description = described(change, text)
        reason = reasons.get((change.file, *change.statements(text)))
        if reason is None:
            shown[change] = description
        else:
            print(f"Equivalent: {description}\n  {reason}\n")
    return shown


def shared_tests(tests: dict[draw.Change, tuple[str, ...]]) -> list[set[str]]:
    """Return each set of test files once: changes of one folder share theirs.

    The doctests of all changed modules of a folder are added to its tests.
    """
    shared: dict[frozenset[str], set[str]] = {}
    for change, files in tests.items():
        of_the_folder = frozenset(files) - {change.file}
        shared.setdefault(of_the_folder, set()).update(files)
    return list(shared.values())


def print_score(outcomes: dict[draw.Change, str]) -> float:
    """Print how many changes of each folder were noticed; return the share of all."""
    drawn, noticed = Counter(), Counter()
    for change, by in outcomes.items():
        folder = str(Path(change.file).parent)
        drawn[folder] += 1
        noticed[folder] += bool(by)
    for folder in sorted(drawn):
        print(f"{noticed[folder]:4} of {drawn[folder]:4}  {folder}")
    share = noticed.total() / max(1, len(outcomes))
    print(
        f"The tests notice {noticed.total()} of {len(outcomes)} mutants "
        f"({share:.1%}; required {REQUIRED:.0%})."
    )
    return share


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the mutants and print the score.

    The status is 1 if the score is too low and 2 if the tests fail without a mutant.
    """
    given = options().parse_args(words)
    drawn = draw.draw(root, seed=given.seed, count=given.count, only=given.only)
    number, parts = given.part
    shown = to_run(root, drawn[number - 1 :: parts])
    print(f"{len(shown)} mutants of seed {given.seed}", flush=True)
    tests = {change: draw.tests_of(root, change) for change in shown}
    others = [draw.elsewhere(root, change) for change in shown]
    outcomes = {}
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as room,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        runner = Runner(root, Path(room), given.jobs, given.timeout)
        faults = [fault for fault in pool.map(runner.unchanged, shared_tests(tests)) if fault]
        if faults:
            print("These tests do not pass with the unchanged code:", file=sys.stderr)
            print(*faults, sep="\n", file=sys.stderr)
            return 2
        found = pool.map(runner.noticed, shown, tests.values(), others)
        for change, by in zip(shown, found, strict=True):
            outcomes[change] = by
            result = f"Killed by {by}" if by else "Survived"
            print(f"{result}: {shown[change]}\n", flush=True)
    return int(print_score(outcomes) < REQUIRED)


if __name__ == "__main__":
    raise SystemExit(main())
