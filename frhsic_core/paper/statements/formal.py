"""The statements that a proof assistant has checked, read from the files of ``book/proofs``.

A theorem of such a file stands between two comments, ``(* begin Theorem 4.5, upper side *)`` and ``(* end ... *)``. The
words after ``begin`` say which statement of the paper it proves, and which part. ``lemma of Theorem 5.1`` and ``step
to Corollary 5.2`` mark theorems that prove a part of an argument only.

``.ci/proofs --record`` compiles every file, asks Coq on which axioms each theorem rests (``Print Assumptions``), and
writes the answers to ``checked.json`` beside a hash of each file. A certificate of evidence "proof" compares the hashes
with the files: after a change of a file, or of a file that it imports, it is inconclusive until the proofs are checked
again. ``frhsic certify`` therefore needs no Coq.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements import Certificate, check, equality
from frhsic_core.paper.statements.registry import statements

CLOSED = "Closed under the global context"  # Coq's words for a theorem that rests on no axiom
_SHOWN = re.compile(
    r"\(\* begin (?P<mark>(?P<part>lemma of |step to )?(?P<statement>\w+ [\w.]*\d)(?:, .*?)?) \*\)"
    r"(?P<text>.*?)\(\* end (?P=mark) \*\)",
    re.DOTALL,
)
_NAME = re.compile(r"^Theorem (\w+)", re.MULTILINE)
_IMPORTS = re.compile(r"^From Proofs Require Import ([\w ]+)\.", re.MULTILINE)


@dataclass(frozen=True)
class FormalTheorem:
    """One theorem of a file of formal proofs.

    Attributes
    ----------
    statement : str
        Number of the statement of the paper.
    whole : bool
        False for a lemma or a step of its proof.
    file, name : str
        File (without ``.v``) and name of the theorem.
    words : str
        What the comment says after the number, e.g. ``"upper side"``; the number itself where it says no more.
    """

    statement: str
    whole: bool
    file: str
    name: str
    words: str

    @property
    def full_name(self) -> str:
        """File and name, as in ``checked.json``."""
        return f"{self.file}.{self.name}"


def theorems_in(folder: Path) -> tuple[FormalTheorem, ...]:
    """Return the theorems of all files of a folder that prove a statement of the paper or a part of one."""
    found = []
    for path in sorted(folder.glob("*.v")):
        for match in _SHOWN.finditer(path.read_text(encoding="utf-8")):
            name = _NAME.search(match["text"])
            if name is None or match["statement"] not in statements():
                continue  # definitions, and general theorems of algebra
            words = match["mark"].partition(", ")[2] or match["mark"]
            found.append(FormalTheorem(match["statement"], not match["part"], path.stem, name[1], words))
    return tuple(found)


@cache
def formal_theorems() -> tuple[FormalTheorem, ...]:
    """Return the theorems of the book; none where there is no book.

    Examples
    --------
    >>> sorted({one.file for one in formal_theorems() if one.statement == "Theorem 4.7"})
    ['Theorem_4_7']
    """
    try:
        folder = book_folder("proofs")
    except FileNotFoundError:
        return ()
    return theorems_in(folder)


def formally_proved() -> tuple[str, ...]:
    """Return the numbers of the statements that are proved as a whole, in the order of the paper.

    Examples
    --------
    >>> "Theorem 4.7" in formally_proved(), "Theorem 5.1" in formally_proved()
    (True, False)
    """
    return tuple(n for n in statements() if any(one.whole and one.statement == n for one in formal_theorems()))


def needed_files(folder: Path, name: str) -> set[str]:
    """Return a file and all files that it imports, directly or not."""
    imports = _IMPORTS.search((folder / f"{name}.v").read_text(encoding="utf-8"))
    others = imports[1].split() if imports else []
    return {name}.union(*(needed_files(folder, other) for other in others))


def file_hash(folder: Path, name: str) -> str:
    """Return the SHA-256 of a file of proofs."""
    return hashlib.sha256((folder / f"{name}.v").read_bytes()).hexdigest()


def axioms_of(theorem: FormalTheorem, folder: Path, record: Mapping[str, Any]) -> str | None:
    """Return what Coq said that a theorem rests on, or None if its file has changed since, or was never checked."""
    current = all(record["files"].get(n) == file_hash(folder, n) for n in needed_files(folder, theorem.file))
    return record["theorems"].get(theorem.full_name) if current else None


def restrictions(folder: Path) -> dict[str, str]:
    """Return under which restrictions each theorem is proved, by its full name, from ``statements.csv``."""
    with (folder / "statements.csv").open(encoding="utf-8", newline="") as file:
        return {f"{row['file']}.{row['theorem']}": row["assumptions"] for row in csv.DictReader(file)}


def proof_certificates(number: str, folder: Path) -> list[Certificate]:
    """Certify that Coq accepted every theorem about a statement, and that none rests on an axiom."""
    theorems = [one for one in theorems_in(folder) if one.statement == number]
    path = folder / "checked.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"files": {}, "theorems": {}}
    answers = [axioms_of(one, folder, record) for one in theorems]
    without_axioms = float(sum(answer == CLOSED for answer in answers))
    known = restrictions(folder)
    scope = dict.fromkeys(words for one in theorems for words in known[one.full_name].split("; "))
    what = "proved in Coq" if any(one.whole for one in theorems) else "parts of its proof, proved in Coq"
    return [
        equality(
            f"{what}: theorems that rest on no axiom, against all theorems",
            left=math.nan if None in answers else without_axioms,
            right=float(len(theorems)),
            tolerance=0.0,
            evidence="proof",
            assumptions=tuple(word for word in scope if not word.startswith("none")),
            details={"theorems": {one.full_name: one.words for one in theorems}, "checked with": record.get("coq", "")},
        )
    ]


def _register(number: str) -> None:
    @check(number, name="formal_proof")
    def run() -> list[Certificate]:
        return proof_certificates(number, book_folder("proofs"))


for _number in dict.fromkeys(one.statement for one in formal_theorems()):
    _register(_number)
