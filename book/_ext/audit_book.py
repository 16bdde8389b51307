"""Change stored results and printed numbers a little, in memory, and report what notices.

Usage: ``python book/_ext/audit_book.py [--columns N] [--seed N] [--no-tests]``. Three questions:

1. Is a number typed in the prose of the landing page or of a part page? Each should be a substitution
   (:mod:`frhsic_core.paper.page_values`), so that it follows the data.
2. Which verdicts of the ledger notice when a printed number is moved by twice the difference that matters?
3. Which verdicts, which sentences of the pages and which tests notice when a column of a stored result is changed by a
   few per cent? The columns are drawn at random; ``--columns 0`` takes all of them, which takes hours.

No file is changed. The exit status is 1 if a number is typed, or if a number that is called reproduced could be moved
without notice.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "book" / "intro.md", *sorted((ROOT / "book" / "parts").glob("*.md")))
CHANGE = "FRHSIC_AUDIT_CHANGE"
# Values are multiplied by this: small, and enough to move a mean beyond its last printed digit.
FACTOR = 1.05
SHOWN = 8  # names in a line of the report
# Columns that say which row it is.
KEYS = {"split", "seed", "draw", "replicate", "study", "repeat", "first", "unit", "index"}

WORDS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|dozen|hundred|thousand"
NUMBER = re.compile(rf"(?<![\w.])(?:\d[\d.,]*\d|\d|\.\d+)(?![\w])|\b(?:{WORDS})\b", re.IGNORECASE)
# Words that are names and not counts: the paper compares two routes, the joint and the conditional one.
NAMES = re.compile(r"\b(?:the |are )?two routes\b", re.IGNORECASE)
STATEMENT = re.compile(
    r"(?:Theorem|Proposition|Corollar(?:y|ies)|Lemma|Remark|Definition|Section|Table)s?\s+[A-H]?\.?\d+(?:\.\d+)?"
    r"(?:(?:, | and )[A-H]?\.?\d+(?:\.\d+)?)*"
)


def prose(text: str) -> list[str]:
    """Return the lines of a page without code, mathematics, options of directives and references to statements.

    Examples
    --------
    >>> prose("Theorem 4.5 has {{ a.b }} and `x = 1` of $n=3$ in 7 cases.")
    [' has  and  of  in 7 cases.']
    """
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.DOTALL)
    found = []
    for line in text.splitlines():
        if re.match(r"\s*(?::{3,}|`{3,}|:[\w-]+:|%|\([\w-]+\)=)", line):
            continue
        for pattern in (r"\{\{.*?\}\}", r"\{[\w:-]+\}`[^`]*`", r"`[^`]*`", r"\$[^$]*\$"):
            line = re.sub(pattern, "", line)
        found.append(NAMES.sub("", STATEMENT.sub("", line)))
    return found


def typed_numbers(path: Path) -> list[str]:
    """Return the numbers that a page types in its prose, each with the words around it."""
    found = []
    for line in prose(path.read_text(encoding="utf-8")):
        found += [f"{path.name}: {hit[0]!r} in “{line.strip()[:90]}”" for hit in NUMBER.finditer(line)]
    return found


@dataclass(frozen=True)
class Change:
    """One column of one stored result, multiplied by ``FACTOR``."""

    experiment: str
    column: str

    def applied(self, name: str, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of an experiment, changed where they are the ones meant."""
        if name != self.experiment or self.column not in rows:
            return rows
        return rows.assign(**{self.column: rows[self.column] * FACTOR})


def install(change: Change | None) -> None:
    """Let every reader of stored results see the change (or the files as they are), and forget what was computed."""
    from frhsic_core.paper.runs.store import ResultStore

    original = getattr(ResultStore.read, "original", ResultStore.read)

    def read(self: ResultStore, *args: Any, **kwargs: Any) -> pd.DataFrame:
        rows = original(self, *args, **kwargs)
        return rows if change is None else change.applied(self.name, rows)

    read.original = original  # type: ignore[attr-defined]
    ResultStore.read = read  # type: ignore[method-assign]
    for name, module in list(sys.modules.items()):
        if name.startswith("frhsic_core"):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def leaves(values: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each page value with its dotted name."""
    if isinstance(values, dict):
        for name, part in values.items():
            yield from leaves(part, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, str(values)


def outcome() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the verdict of every line, our value of every line, and every page value, computed now."""
    from frhsic_core.paper.claims import ledger
    from frhsic_core.paper.page_values import page_values

    table = ledger().set_index("id")
    return table["verdict"].to_dict(), table["ours"].to_dict(), dict(leaves(page_values()))


def sentences_with(names: set[str]) -> list[str]:
    """Return the sentences of the pages that show one of the page values."""
    found = []
    for path in PAGES:
        for sentence in re.split(r"(?<=[.:])\s+(?=[A-Z*{-])", path.read_text(encoding="utf-8")):
            used = set(re.findall(r"\{\{\s*([\w.]+)\s*\}\}", sentence))
            if used & names:
                found.append(f"{path.name}: {' '.join(sentence.split())[:100]}")
    return found


def columns() -> list[Change]:
    """Return the numeric columns of every stored result that vary and do not name a row."""
    from frhsic_core.paper.experiments.presets import PLANS
    from frhsic_core.paper.runs.stored import stored_rows

    found = []
    for name in PLANS:
        rows = stored_rows(name)
        numeric = [column for column in rows.columns if pd.api.types.is_float_dtype(rows[column])]
        found += [Change(name, column) for column in numeric if column not in KEYS and rows[column].nunique() > 1]
    return found


def failing_tests(change: Change) -> list[str]:
    """Return the tests of sentences that fail when the change is seen: those that read the experiment."""
    files = [path for path in sorted((ROOT / "tests" / "findings").glob("test_*.py"))
             if f'"{change.experiment}"' in path.read_text(encoding="utf-8")]  # fmt: skip
    if not files:
        return []
    environment = os.environ | {CHANGE: f"{change.experiment}:{change.column}", "PYTHONPATH": os.pathsep.join(
        [str(ROOT / "book" / "_ext"), str(ROOT), os.environ.get("PYTHONPATH", "")])}  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "audit_book", "--no-header", "-rfE", "--tb=no"]
    told = subprocess.run(
        [*command, *map(str, files)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", told.stdout, flags=re.MULTILINE)


def pytest_configure(config: Any) -> None:
    """Apply the change that the environment names; pytest calls this when the module is loaded with ``-p``."""
    if os.environ.get(CHANGE):
        experiment, _, column = os.environ[CHANGE].partition(":")
        install(Change(experiment, column))


def moved_prints() -> pd.DataFrame:
    """Move each printed number of a measured line up and down by twice what matters, and judge it again.

    ``notices`` says whether the verdict changes in at least one direction; ``both`` whether it changes in either (a
    bound: in one of them). A number without a relevant difference is moved by a fifth, an order of magnitude by one.
    """
    from frhsic_core.paper.claims import MEASURED, claims, judge, ledger
    from frhsic_core.paper.claims.rules import half_unit, parsed
    from frhsic_core.paper.claims.verdicts import answer_of

    lines = ledger(kind=MEASURED).set_index("id")
    found = []
    for claim in claims().to_dict("records"):
        number = parsed(claim["value"])
        if claim["id"] not in lines.index or not isinstance(number, float):
            continue
        line = lines.loc[claim["id"]]
        if not line["tested"] and claim["rule"] not in ("magnitude", "approximately", "equal"):
            continue  # a question of yes or no has no deviation
        step = max(2 * half_unit(claim["value"]), 2 * line["margin"] if line["margin"] > 0 else 0.2 * abs(number))
        answer = answer_of(claim["query"], claim["arguments"])
        moved = [number / 10, number * 10] if claim["rule"] == "magnitude" else [number - step, number + step]
        verdicts = [judge(claim["form"], repr(float(one)), answer, claim["rule"])[0] for one in moved]
        found.append(
            {
                "id": claim["id"],
                "verdict": line["verdict"],
                "notices": any(verdict != line["verdict"] for verdict in verdicts),
                "both": sum(verdict == line["verdict"] for verdict in verdicts)
                <= (claim["rule"] in ("at_most", "at_least")),
            }
        )
    return pd.DataFrame(found)


def main() -> int:
    """Ask the three questions, print the answers and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=6, help="how many stored columns to change; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="the seed of their draw")
    parser.add_argument("--no-tests", action="store_true", help="do not run the tests on the changed columns")
    asked = parser.parse_args()

    print("1. Numbers typed in prose of the landing page and the part pages")
    typed = [line for page in PAGES for line in typed_numbers(page)]
    print("\n".join(f"   {line}" for line in typed) or "   none: all of them come from data")

    print("2. Printed numbers, moved by twice the difference that matters")
    prints = moved_prints()
    for verdict, part in prints.groupby("verdict"):
        print(f"   {verdict}: {part['notices'].sum()} of {len(part)} verdicts change")
    blind = prints[(prints["verdict"] == "agrees") & ~prints["both"]]["id"].tolist()
    print(f"   agree and still do after a move: {', '.join(blind) or 'none'}")

    every = columns()
    count = len(every) if asked.columns == 0 else min(asked.columns, len(every))
    drawn = np.random.default_rng(asked.seed).choice(len(every), count, replace=False)
    print(f"3. Stored columns times {FACTOR}: {count} of {len(every)}, drawn with seed {asked.seed}")
    install(None)
    verdicts, ours, values = outcome()
    unnoticed = Counter()
    for place in sorted(drawn):
        change = every[place]
        start = time.perf_counter()
        install(change)
        now_verdicts, now_ours, now_values = outcome()
        install(None)
        turned = [key for key in verdicts if verdicts[key] != now_verdicts[key]]
        moved = [key for key in ours if ours[key] != now_ours[key]]
        changed = {name for name in values if values[name] != now_values[name]}
        sentences = sentences_with(changed)
        failed = [] if asked.no_tests else failing_tests(change)
        print(
            f"   {change.experiment}, {change.column}: {len(moved)} of our values and {len(turned)} verdicts, "
            f"{len(sentences)} sentences, {len(failed)} tests ({time.perf_counter() - start:.0f} s)"
        )
        for what, names in (("verdicts", turned), ("sentences", sentences), ("tests", failed)):
            if names:
                print(
                    f"      {what}: "
                    + "; ".join(names[:8])
                    + (f"; and {len(names) - 8} more" if len(names) > 8 else "")
                )
        unnoticed[change.experiment] += not (moved or sentences or failed)
    silent = sum(unnoticed.values())
    print(f"   {silent} of {count} columns are noticed by nothing that was asked")
    return 1 if typed or blind else 0


if __name__ == "__main__":
    sys.exit(main())
