"""Look for typed numbers, and move printed numbers a little, in memory, to see what notices.

Usage: ``python book/_ext/audit_book.py``. Two questions:

1. Is a number typed in the prose of the landing page or of a part page? Each should be a substitution
   (:mod:`frhsic_core.paper.page_values`), so that it follows the data.
2. Which verdicts of the ledger notice when a printed number is moved by twice the difference that matters?

No file is changed. The exit status is 1 if a number is typed, or if a number that agrees could be moved without notice.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "book" / "intro.md", *sorted((ROOT / "book" / "parts").glob("*.md")))

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
        verdicts = [judge(repr(float(one)), answer, claim["rule"]).verdict for one in moved]
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
    """Ask the two questions, print the answers and return the exit status."""
    print("1. Numbers typed in prose of the landing page and the part pages")
    typed = [line for page in PAGES for line in typed_numbers(page)]
    print("\n".join(f"   {line}" for line in typed) or "   none: all of them come from data")

    print("2. Printed numbers, moved by twice the difference that matters")
    prints = moved_prints()
    for verdict, part in prints.groupby("verdict"):
        print(f"   {verdict}: {part['notices'].sum()} of {len(part)} verdicts change")
    blind = prints[(prints["verdict"] == "agrees") & ~prints["both"]]["id"].tolist()
    print(f"   agree and still do after a move: {', '.join(blind) or 'none'}")

    return 1 if typed or blind else 0


if __name__ == "__main__":
    sys.exit(main())
