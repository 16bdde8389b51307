"""All statements at a glance: formal proofs, failing sentences, and a picture of what builds on what.

Nothing here is typed by hand. Verdicts and evidence come from the recorded certificates, formal proofs from the list
of ``book/proofs``, and proofs in a chapter from a comment ``% proof of Theorem 4.5`` that stands above each of them.

``book/proofs/statements.csv`` lists the formal theorems; a marker that starts with ``lemma of`` or ``step to`` proves a
part of an argument. ``.ci/proofs --record`` compiles every file, asks Coq on which axioms each theorem rests (``Print
Assumptions``), and writes the answers to ``checked.json`` beside a hash of each file. A certificate of evidence "proof"
compares the hashes with the files: after a change of any file it is inconclusive until the proofs are checked again.
``frhsic certify`` therefore needs no Coq.

Several certificates may concern one sentence of the paper: the same theorem stated twice, two laws that break one
remark. ``sentences.csv`` names every sentence that a certificate failed, with the certificates that concern it and the
class it belongs to:

* *numbered statement*: a theorem, proposition, corollary or lemma, as printed;
* *sentence*: a sentence of a remark, of the text or of a caption;
* *reading*: words that hold under one reading and fail under another.

The file holds no verdict: a sentence fails when one of its certificates does.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements import Certificate, check, equality
from frhsic_core.paper.statements.certificate import EVIDENCE
from frhsic_core.paper.statements.registry import Statement, statements

# Formal proofs -------------------------------------------------------------------------------------------------------

CLOSED = "Closed under the global context"  # Coq's words for a theorem that rests on no axiom


@dataclass(frozen=True)
class FormalTheorem:
    """One row of ``book/proofs/statements.csv``: a theorem of a file of formal proofs.

    Attributes
    ----------
    statement : str
        Number of the statement of the paper.
    file, theorem : str
        File (without ``.v``) and name of the theorem.
    marker : str
        The words of the two comments between which it stands, e.g. ``"Theorem 4.5, upper side"``.
    proved : str
        What it says, in our words.
    assumptions : str
        For which spaces, and under which restrictions; separated by semicolons.
    """

    statement: str
    file: str
    theorem: str
    marker: str
    proved: str
    assumptions: str

    @property
    def whole(self) -> bool:
        """Whether it is no mere lemma or step of a proof."""
        return not self.marker.startswith(("lemma of ", "step to "))

    @property
    def full_name(self) -> str:
        """File and name, as in ``checked.json``."""
        return f"{self.file}.{self.theorem}"

    @property
    def words(self) -> str:
        """What the marker says after the number, e.g. ``"upper side"``; the number itself where it says no more."""
        return self.marker.partition(", ")[2] or self.marker


def theorems_in(folder: Path) -> tuple[FormalTheorem, ...]:
    """Return the theorems of a folder that prove a statement of the paper or a part of one."""
    with (folder / "statements.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            FormalTheorem(**row) for row in csv.DictReader(file) if row["statement"] in statements()
        )


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
    return tuple(
        n
        for n in statements()
        if any(one.whole and one.statement == n for one in formal_theorems())
    )


def proof_certificates(number: str, folder: Path) -> list[Certificate]:
    """Certify that Coq accepted every theorem about a statement, and that none rests on an axiom."""
    theorems = [one for one in theorems_in(folder) if one.statement == number]
    path = folder / "checked.json"
    record = (
        json.loads(path.read_text(encoding="utf-8"))
        if path.is_file()
        else {"files": {}, "theorems": {}}
    )
    files = {
        file.stem: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.v")
    }
    answers = [
        record["theorems"].get(one.full_name) if record["files"] == files else None
        for one in theorems
    ]
    without_axioms = float(sum(answer == CLOSED for answer in answers))
    scope = dict.fromkeys(words for one in theorems for words in one.assumptions.split("; "))
    what = (
        "proved in Coq"
        if any(one.whole for one in theorems)
        else "parts of its proof, proved in Coq"
    )
    return [
        equality(
            f"{what}: theorems that rest on no axiom, against all theorems",
            left=math.nan if None in answers else without_axioms,
            right=float(len(theorems)),
            tolerance=0.0,
            evidence="proof",
            assumptions=tuple(word for word in scope if not word.startswith("none")),
            details={
                "theorems": {one.full_name: one.words for one in theorems},
                "checked with": record.get("coq", ""),
            },
        )
    ]


def _register(number: str) -> None:
    @check(number, name="formal_proof")
    def run() -> list[Certificate]:
        return proof_certificates(number, book_folder("proofs"))


for _number in dict.fromkeys(one.statement for one in formal_theorems()):
    _register(_number)


# Sentences of the paper ----------------------------------------------------------------------------------------------

KINDS = ("numbered statement", "sentence", "reading")
FAILS = "fails as stated"


@dataclass(frozen=True)
class Sentence:
    """One row of ``sentences.csv``.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    statements : tuple of str
        Numbers of the statements it belongs to; two where the paper says it twice.
    place, sentence : str
        Its section of the paper, and what it says, in our words.
    holds : str
        When it holds, or what holds instead.
    certificates : tuple of str
        Beginnings or parts of the claims that concern it.
    itself : bool
        Whether the sentence is what its statements state, and not a further sentence in them or near them. True for
        every numbered statement, and for a remark whose main claim fails.
    """

    kind: str
    statements: tuple[str, ...]
    place: str
    sentence: str
    holds: str
    certificates: tuple[str, ...]
    itself: bool


@cache
def sentences() -> tuple[Sentence, ...]:
    """Return the sentences in the order of the file, classes together.

    Examples
    --------
    >>> sentences()[0].statements
    ('Theorem 5.1', 'Corollary 5.2', 'Proposition G.2', 'Corollary G.3')
    """
    text = (
        resources.files("frhsic_core.paper.statements")
        .joinpath("sentences.csv")
        .read_text(encoding="utf-8")
    )
    return tuple(
        Sentence(
            **{name: row[name] for name in ("kind", "place", "sentence", "holds")},
            statements=tuple(row["statements"].split("; ")),
            certificates=tuple(json.loads(row["certificates"])),
            itself=row["itself"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    )


def theorems() -> tuple[str, ...]:
    """Return the numbers of the paper's theorems, propositions, corollaries and lemmas.

    Examples
    --------
    >>> len(theorems())
    18
    """
    return tuple(
        n for n in statements() if n.startswith(("Theorem", "Proposition", "Corollary", "Lemma"))
    )


def concerned(sentence: Sentence, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the recorded certificates that concern a sentence: of its statements, with one of its texts."""
    return [
        row
        for row in rows
        if row["statement"] in sentence.statements
        and any(text in row["claim"] for text in sentence.certificates)
    ]


def failing(rows: Iterable[Mapping[str, Any]]) -> list[Sentence]:
    """Return the sentences that a recorded certificate failed."""
    rows = list(rows)
    return [s for s in sentences() if any(row["verdict"] == FAILS for row in concerned(s, rows))]


def judged(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """Return for each statement whether it holds as printed, and how many other sentences in or near it fail.

    It "is open" if a certificate fails or is inconclusive and belongs to no sentence of ``sentences.csv``.
    """
    rows, found = list(rows), {}
    for number in dict.fromkeys(row["statement"] for row in rows):
        own = [row for row in rows if row["statement"] == number]
        broken = failing(own)
        known = [row for s in broken for row in concerned(s, own)]
        unknown = any(row["verdict"] in (FAILS, "inconclusive") and row not in known for row in own)
        words = "needs a further condition" if any(s.itself for s in broken) else "holds"
        found[number] = ("is open" if unknown else words, sum(not s.itself for s in broken))
    return found


def counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the paper's theorems, those without a counterexample, and the failing sentences of each class.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.

    Returns
    -------
    dict
        ``"theorems"``, ``"theorems that hold"`` and the number of failing sentences for every one of ``KINDS``.
    """
    rows = list(rows)
    about, kinds = judged(rows), Counter(s.kind for s in failing(rows))
    return {
        "theorems": len(theorems()),
        "theorems that hold": sum(
            number not in about or about[number][0] == "holds" for number in theorems()
        ),
        **{kind: kinds[kind] for kind in KINDS},
    }


# All statements ------------------------------------------------------------------------------------------------------

# What was found about a statement, and the class of its box in the picture.
VERDICTS = {
    "holds": "holds",
    "holds; a sentence in or near it fails": "sentence",
    "needs a further condition": "condition",
}
_PAGE_PROOF = re.compile(r"^% proof of (\w[\w-]* (?:[\w.]*\d|bound))(?:, (.*))?$", re.MULTILINE)


@cache
def page_proofs(folder: Path) -> dict[str, tuple[str, str]]:
    """Return for each statement that a chapter proves the chapter and the restriction, which is mostly empty."""
    return {
        number: (path.stem, words or "")
        for path in sorted(folder.glob("*.md"))
        for number, words in _PAGE_PROOF.findall(path.read_text(encoding="utf-8"))
    }


@dataclass(frozen=True)
class Standing:
    """What is known about one statement.

    Attributes
    ----------
    statement : Statement
    here : str
        Empty if no chapter proves it; otherwise ``"yes"`` or the restriction under which it is proved.
    formal : str
        Empty, ``"parts"``, or the restriction under which Coq checked it (``"yes"`` if there is none).
    evidence : tuple of str
        Classes of its certificates, the strongest first.
    verdict : str
        One of ``VERDICTS``.
    """

    statement: Statement
    here: str
    formal: str
    evidence: tuple[str, ...]
    verdict: str

    @property
    def evidence_words(self) -> tuple[str, ...]:
        """Evidence as a table shows it. A formal proof of parts is not a proof of the statement."""
        return tuple(
            "proof of parts" if e == "proof" and self.formal == "parts" else e
            for e in self.evidence
        )

    @property
    def link(self) -> str:
        """Address of its box from a chapter of the book."""
        return f"{self.statement.chapter}.html#{self.statement.anchor}"


def _formal_words(number: str) -> str:
    own = [one for one in formal_theorems() if one.statement == number]
    if number not in formally_proved():
        return "parts" if own else ""
    words = sorted(one.assumptions.split("; ")[0] for one in own if one.whole)
    return next((f"for {word}" for word in words if word.startswith("finite")), "yes")


def standings(rows: Iterable[Mapping[str, Any]]) -> list[Standing]:
    """Return what is known about every statement, in the order of the paper. Every one of them is proved in a chapter.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.
    """
    rows = list(rows)
    about = judged(rows)
    chapters = page_proofs(book_folder().parent / "notebooks")
    found = []
    for number, statement in statements().items():
        own = [row for row in rows if row["statement"] == number]
        present = {row["evidence"] for row in own}
        chapter = chapters.get(number)
        here = "" if chapter is None else chapter[1] or "yes"
        verdict, near = about.get(number, ("holds", 0))
        verdict = (
            "holds; a sentence in or near it fails" if verdict == "holds" and near else verdict
        )
        evidence = tuple(e for e in EVIDENCE if e in present)
        found.append(Standing(statement, here, _formal_words(number), evidence, verdict))
    return found


def overview_table(found: Iterable[Standing]) -> list[dict[str, str]]:
    """Return the rows of the table of all statements, with links; ``"–"`` stands for no."""
    return [
        {
            "statement": f'<a href="{one.link}">{one.statement.number}</a><br><small>{one.statement.what}</small>',
            "proved in the paper": {"no": "–"}.get(
                one.statement.paper_proof, one.statement.paper_proof
            ),
            "here": one.here or "–",
            "formally": one.formal or "–",
            "evidence": ", ".join(one.evidence_words),
            "verdict": one.verdict,
        }
        for one in found
    ]


WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 96, 44, 18, 24, 12
_ABBREVIATED = {
    "Theorem": "Thm",
    "Proposition": "Prop",
    "Corollary": "Cor",
    "Definition": "Def",
    "Remark": "Rem",
}


def drawn_edges() -> list[tuple[str, str]]:
    """Return the dependencies as pairs of what is used and what uses it."""
    return [
        (used, number) for number, statement in statements().items() for used in statement.builds_on
    ]


def _corner(number: str) -> tuple[int, int]:
    column, row = statements()[number].place
    return MARGIN + column * (WIDTH + ACROSS), MARGIN + row * (HEIGHT + DOWN)


def _edge(used: str, user: str) -> str:
    (column, row), (to_column, to_row) = statements()[used].place, statements()[user].place
    (x, y), (to_x, to_y) = _corner(used), _corner(user)
    if to_row == row + 1:
        start, end = x + WIDTH / 2, to_x + WIDTH / 2
        bend = DOWN * 0.6
        return f"M{start} {y + HEIGHT}C{start} {y + HEIGHT + bend} {end} {to_y - bend} {end} {to_y - 1}"
    # Through the gap beside the column, so that no line passes behind a box; the longest line on the right.
    out = 1 if to_column == column and to_row - row > 3 else -1
    start = x + WIDTH if out > 0 else x
    turn = start + out * ACROSS / 2
    end = to_x - 1 if turn < to_x else to_x + WIDTH + 1
    height, target = y + HEIGHT * 0.7, to_y + HEIGHT / 2
    return f"M{start} {height}L{turn} {height}L{turn} {target}L{end} {target}"


def _box(one: Standing) -> str:
    x, y = _corner(one.statement.number)
    kind, _, rest = one.statement.number.partition(" ")
    name = f"{_ABBREVIATED.get(kind, kind)} {rest}" if rest != "bound" else kind.partition("-")[0]
    state = {"": "", "parts": "parts"}.get(one.formal, "formal")
    classes = f"{VERDICTS[one.verdict]} {state}".strip()
    words = f"{one.statement.number}: {one.statement.what}. Verdict: {one.verdict}."
    center = x + WIDTH / 2
    return (
        f'<a href="{one.link}" class="{classes}"><title>{escape(words)}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text class="number" x="{center}" y="{y + 19}">{name}</text>'
        f'<text class="words" x="{center}" y="{y + 34}">{escape(one.statement.short)}</text></a>'
    )


def map_html(found: Iterable[Standing]) -> str:
    """Return the picture of all statements as inline SVG with its legend: each box is a link to its chapter.

    The color of a box is the verdict. A thick frame marks a statement whose proof Coq has checked (broken: parts of
    the proof only). An arrow leads from a statement to one whose proof uses it.
    """
    found = list(found)
    columns, rows = (1 + max(one.place[axis] for one in statements().values()) for axis in (0, 1))
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * ACROSS
    height = 2 * MARGIN + rows * HEIGHT + (rows - 1) * DOWN
    edges = "".join(
        f'<path d="{_edge(*edge)}" marker-end="url(#statement-arrow)"/>' for edge in drawn_edges()
    )
    boxes = "".join(_box(one) for one in found)
    keys = {kind: words for words, kind in VERDICTS.items()}
    keys |= {"formal": "proof checked by a proof assistant", "parts": "parts of the proof checked"}
    legend = "".join(
        f'<span><span class="key {kind}"></span>{words}</span>' for kind, words in keys.items()
    )
    return (
        '<div class="statement-map">'
        f'<svg viewBox="0 0 {width} {height}" role="group" '
        'aria-label="The statements of the paper; an arrow leads to a statement whose proof uses another">'
        '<defs><marker id="statement-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        f'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>{edges}{boxes}</svg>'
        f'<div class="legend">{legend}</div></div>'
    )
