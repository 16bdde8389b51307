"""All statements at a glance: formal proofs, failing sentences, and what builds on what.

Nothing here is typed by hand. Verdicts and evidence come from the recorded certificates, formal
proofs from the list of ``book/proofs``, and proofs in a chapter from a comment ``% proof of Theorem
4.5`` that stands above each of them.

``book/proofs/statements.csv`` lists the formal theorems; a marker that starts with ``lemma of`` or
``step to`` proves a part of an argument. ``.ci/proofs --record`` compiles every file, asks Coq on
which axioms each theorem rests (``Print Assumptions``), and writes the answers to ``checked.json``
beside a hash of each file. A certificate of evidence "proof" compares the hashes with the files:
after a change of any file it is inconclusive until the proofs are checked again. ``frhsic certify``
therefore needs no Coq.

Several certificates may concern one sentence of the paper: the same theorem stated twice, two laws
that break one remark. ``sentences.csv`` names every sentence that a certificate failed, with the
certificates that concern it and the class it belongs to:

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
from typing import Any, NamedTuple

from frhsic_core.paper.statements import Certificate, check, equality
from frhsic_core.paper.statements.certificate import EVIDENCE
from frhsic_core.paper.statements.registry import Statement, statements
from frhsic_core.paper.stored import chapters_folder, proofs_folder

# Formal proofs ------------------------------------------------------------------------------------

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
        """What the marker says after the number, e.g. ``"upper side"``; else the number itself."""
        _, _, after_the_number = self.marker.partition(", ")
        return after_the_number or self.marker


def theorems_in(folder: Path) -> tuple[FormalTheorem, ...]:
    """Return the theorems of a folder that prove a statement of the paper or a part of one."""
    with (folder / "statements.csv").open(encoding="utf-8", newline="") as file:
        theorems = [FormalTheorem(**row) for row in csv.DictReader(file)]
    return tuple(one for one in theorems if one.statement in statements())


@cache
def formal_theorems() -> tuple[FormalTheorem, ...]:
    """Return the theorems of the book; none where there is no book.

    Examples
    --------
    >>> sorted({one.file for one in formal_theorems() if one.statement == "Theorem 4.7"})
    ['Theorem_4_7']
    """
    try:
        folder = proofs_folder()
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
    proved = {one.statement for one in formal_theorems() if one.whole}
    return tuple(number for number in statements() if number in proved)


@dataclass(frozen=True)
class CoqRecord:
    """What ``checked.json`` records.

    Attributes
    ----------
    files : mapping
        The hash of each file that was checked, by its name without ``.v``.
    answers : mapping
        Coq's words about the axioms of each theorem, by its full name.
    coq : str
        The version of Coq.
    """

    files: Mapping[str, str]
    answers: Mapping[str, str]
    coq: str

    def is_current(self, folder: Path) -> bool:
        """Return whether the files of a folder are those that were checked."""
        hashes = {
            file.stem: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.v")
        }
        return self.files == hashes


def recorded_answers(folder: Path) -> CoqRecord:
    """Read ``checked.json``; an empty record if there is none."""
    path = folder / "checked.json"
    if not path.is_file():
        return CoqRecord(files={}, answers={}, coq="")
    found = json.loads(path.read_text(encoding="utf-8"))
    return CoqRecord(found["files"], answers=found["theorems"], coq=found.get("coq", ""))


def assumptions_of(theorems: Iterable[FormalTheorem]) -> tuple[str, ...]:
    """Return the assumptions of theorems, each once; "none" is no assumption."""
    found: dict[str, None] = {}
    for one in theorems:
        found |= dict.fromkeys(one.assumptions.split("; "))
    return tuple(word for word in found if not word.startswith("none"))


def proof_certificates(number: str, folder: Path) -> list[Certificate]:
    """Certify that Coq accepted all theorems about a statement, and that none rests on an axiom."""
    theorems = [one for one in theorems_in(folder) if one.statement == number]
    record = recorded_answers(folder)
    answers = [record.answers.get(one.full_name) for one in theorems]
    if record.is_current(folder) and None not in answers:
        without_axioms = float(answers.count(CLOSED))
    else:
        without_axioms = math.nan
    if any(one.whole for one in theorems):
        what = "proved in Coq"
    else:
        what = "parts of its proof, proved in Coq"
    return [
        equality(
            f"{what}: theorems that rest on no axiom, against all theorems",
            left=without_axioms,
            right=float(len(theorems)),
            tolerance=0.0,
            evidence="proof",
            assumptions=assumptions_of(theorems),
            details={
                "theorems": {one.full_name: one.words for one in theorems},
                "checked with": record.coq,
            },
        )
    ]


def _register(number: str) -> None:
    @check(number, name="formal_proof")
    def run() -> list[Certificate]:
        return proof_certificates(number, proofs_folder())


for _number in dict.fromkeys(one.statement for one in formal_theorems()):
    _register(_number)


# Sentences of the paper ---------------------------------------------------------------------------

Row = Mapping[str, Any]  # a recorded certificate

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
        Whether the sentence is what its statements state, and not a further sentence in them or
        near them. True for every numbered statement, and for a remark whose main claim fails.
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
    folder = resources.files("frhsic_core.paper.statements")
    text = folder.joinpath("sentences.csv").read_text(encoding="utf-8")
    return tuple(sentence_of(row) for row in csv.DictReader(text.splitlines()))


def sentence_of(row: Mapping[str, str]) -> Sentence:
    """Return the sentence of one row of ``sentences.csv``."""
    return Sentence(
        kind=row["kind"],
        statements=tuple(row["statements"].split("; ")),
        place=row["place"],
        sentence=row["sentence"],
        holds=row["holds"],
        certificates=tuple(json.loads(row["certificates"])),
        itself=row["itself"] == "yes",
    )


def theorems() -> tuple[str, ...]:
    """Return the numbers of the paper's theorems, propositions, corollaries and lemmas.

    Examples
    --------
    >>> len(theorems())
    18
    """
    kinds = ("Theorem", "Proposition", "Corollary", "Lemma")
    return tuple(number for number in statements() if number.startswith(kinds))


def concerns(sentence: Sentence, row: Row) -> bool:
    """Return whether a recorded certificate is of one of the statements, with one of the texts."""
    if row["statement"] not in sentence.statements:
        return False
    return any(text in row["claim"] for text in sentence.certificates)


def concerned(sentence: Sentence, rows: Iterable[Row]) -> list[Row]:
    """Return the recorded certificates that concern a sentence."""
    return [row for row in rows if concerns(sentence, row)]


def failing(rows: Iterable[Row]) -> list[Sentence]:
    """Return the sentences that a recorded certificate failed."""
    failed = [row for row in rows if row["verdict"] == FAILS]
    return [sentence for sentence in sentences() if concerned(sentence, failed)]


class Judgment(NamedTuple):
    """What the certificates say about a statement.

    Attributes
    ----------
    words : {"holds", "needs a further condition", "is open"}
        Whether it holds as printed.
    near : int
        How many other sentences in or near it fail.
    """

    words: str = "holds"
    near: int = 0


def judge(rows: list[Row]) -> Judgment:
    """Return what the certificates of one statement say about it.

    It "is open" if a certificate fails or is inconclusive and belongs to no sentence of
    ``sentences.csv``.
    """
    broken = failing(rows)
    itself = [sentence for sentence in broken if sentence.itself]
    near = len(broken) - len(itself)
    for row in rows:
        explained = any(concerns(sentence, row) for sentence in broken)
        if row["verdict"] in (FAILS, "inconclusive") and not explained:
            return Judgment("is open", near)
    if itself:
        return Judgment("needs a further condition", near)
    return Judgment("holds", near)


def judged(rows: Iterable[Row]) -> dict[str, Judgment]:
    """Return the judgment of each statement that has a certificate."""
    of_statement: dict[str, list[Row]] = {}
    for row in rows:
        of_statement.setdefault(row["statement"], []).append(row)
    return {number: judge(own) for number, own in of_statement.items()}


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """Count the theorems, those without a counterexample, and the failing sentences of each class.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.

    Returns
    -------
    dict
        ``"theorems"``, ``"theorems that hold"`` and the number of failing sentences for every one
        of ``KINDS``.
    """
    rows = list(rows)
    judgments = judged(rows)
    holding = [n for n in theorems() if judgments.get(n, Judgment()).words == "holds"]
    found = {"theorems": len(theorems()), "theorems that hold": len(holding)}
    kinds = Counter(sentence.kind for sentence in failing(rows))
    for kind in KINDS:
        found[kind] = kinds[kind]
    return found


# All statements -----------------------------------------------------------------------------------

# What was found about a statement, and the class of its box in the picture.
VERDICTS = {
    "holds": "holds",
    "holds; a sentence in or near it fails": "sentence",
    "needs a further condition": "condition",
}
_PAGE_PROOF = re.compile(r"^% proof of (\w[\w-]* (?:[\w.]*\d|bound))(?:, (.*))?$", re.MULTILINE)


@cache
def page_proofs(folder: Path) -> dict[str, tuple[str, str]]:
    """Return, for each statement that a chapter proves, the chapter and the restriction.

    The restriction is mostly empty.
    """
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.glob("*.md")):
        for number, restriction in _PAGE_PROOF.findall(path.read_text(encoding="utf-8")):
            found[number] = (path.stem, restriction)
    return found


@dataclass(frozen=True)
class Standing:
    """What is known about one statement.

    Attributes
    ----------
    statement : Statement
    here : str
        Empty if no chapter proves it; otherwise ``"yes"`` or the restriction under which it is
        proved.
    formal : str
        Empty, ``"parts"``, or the restriction under which Coq checked it (``"yes"`` if there is
        none).
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
        words = {"proof": "proof of parts"} if self.formal == "parts" else {}
        return tuple(words.get(one, one) for one in self.evidence)

    @property
    def link(self) -> str:
        """Address of its box from a chapter of the book."""
        return f"{self.statement.chapter}.html#{self.statement.anchor}"


def _formal_words(number: str) -> str:
    """Return what ``Standing.formal`` is for a statement."""
    own = [one for one in formal_theorems() if one.statement == number]
    if not own:
        return ""
    if number not in formally_proved():
        return "parts"
    spaces = [one.assumptions.split("; ")[0] for one in own if one.whole]
    for space in sorted(spaces):
        if space.startswith("finite"):
            return f"for {space}"
    return "yes"


def standings(rows: Iterable[Row]) -> list[Standing]:
    """Return what is known about every statement, in the order of the paper.

    Every one of them is proved in a chapter.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.
    """
    rows = list(rows)
    judgments = judged(rows)
    proofs = page_proofs(chapters_folder())
    found = []
    for number, statement in statements().items():
        here = ""
        if number in proofs:
            _, restriction = proofs[number]
            here = restriction or "yes"
        judgment = judgments.get(number, Judgment())
        verdict = judgment.words
        if verdict == "holds" and judgment.near > 0:
            verdict = "holds; a sentence in or near it fails"
        present = {row["evidence"] for row in rows if row["statement"] == number}
        found.append(
            Standing(
                statement,
                here=here,
                formal=_formal_words(number),
                evidence=tuple(one for one in EVIDENCE if one in present),
                verdict=verdict,
            )
        )
    return found


def overview_table(found: Iterable[Standing]) -> list[dict[str, str]]:
    """Return the rows of the table of all statements, with links; ``"–"`` stands for no."""
    rows = []
    for one in found:
        statement = one.statement
        name = f'<a href="{one.link}">{statement.number}</a>'
        in_paper = "–" if statement.paper_proof == "no" else statement.paper_proof
        rows.append(
            {
                "statement": f"{name}<br><small>{statement.what}</small>",
                "proved in the paper": in_paper,
                "here": one.here or "–",
                "formally": one.formal or "–",
                "evidence": ", ".join(one.evidence_words),
                "verdict": one.verdict,
            }
        )
    return rows


# The picture, in pixels: a box, the gaps between boxes, and the margin around all.
WIDTH, HEIGHT = 96, 44
ACROSS, DOWN = 18, 24
MARGIN = 12
_ABBREVIATED = {
    "Theorem": "Thm",
    "Proposition": "Prop",
    "Corollary": "Cor",
    "Definition": "Def",
    "Remark": "Rem",
}


def drawn_edges() -> list[tuple[str, str]]:
    """Return the dependencies as pairs of what is used and what uses it."""
    found = []
    for number, statement in statements().items():
        found += [(used, number) for used in statement.builds_on]
    return found


def _corner(number: str) -> tuple[int, int]:
    """Return the upper left corner of the box of a statement."""
    column, row = statements()[number].place
    return MARGIN + column * (WIDTH + ACROSS), MARGIN + row * (HEIGHT + DOWN)


def _edge(used: str, user: str) -> str:
    """Return the path of the arrow from a statement to one that uses it."""
    column, row = statements()[used].place
    to_column, to_row = statements()[user].place
    if to_row == row + 1:
        return _curve_down(used, user)
    # The longest lines pass on the right.
    on_the_right = to_column == column and to_row - row > 3
    return _line_around(used, user, on_the_right=on_the_right)


def _curve_down(used: str, user: str) -> str:
    """Return a curve from the bottom of a box to the top of a box in the next row."""
    x, y = _corner(used)
    to_x, to_y = _corner(user)
    start, bottom = x + WIDTH / 2, y + HEIGHT
    end, top = to_x + WIDTH / 2, to_y - 1
    bend = DOWN * 0.6
    return f"M{start} {bottom}C{start} {bottom + bend} {end} {to_y - bend} {end} {top}"


def _line_around(used: str, user: str, *, on_the_right: bool) -> str:
    """Return a line through the gap beside a column, so that it passes behind no box."""
    x, y = _corner(used)
    to_x, to_y = _corner(user)
    if on_the_right:
        start = x + WIDTH
        turn = start + ACROSS / 2
    else:
        start = x
        turn = start - ACROSS / 2
    end = to_x - 1 if turn < to_x else to_x + WIDTH + 1
    height = y + HEIGHT * 0.7
    target = to_y + HEIGHT / 2
    return f"M{start} {height}L{turn} {height}L{turn} {target}L{end} {target}"


def _short_name(number: str) -> str:
    """Return what a box calls a statement: "Thm 4.5"; "Linear" for "Linear-encoder bound"."""
    kind, _, rest = number.partition(" ")
    if rest == "bound":
        return kind.partition("-")[0]
    return f"{_ABBREVIATED.get(kind, kind)} {rest}"


def _box(one: Standing) -> str:
    """Return the box of a statement: a link with a title, a frame and two lines of text."""
    statement = one.statement
    x, y = _corner(statement.number)
    center = x + WIDTH / 2
    proof = {"": "", "parts": "parts"}.get(one.formal, "formal")
    classes = f"{VERDICTS[one.verdict]} {proof}".strip()
    title = escape(f"{statement.number}: {statement.what}. Verdict: {one.verdict}.")
    name = _short_name(statement.number)
    words = escape(statement.short)
    return (
        f'<a href="{one.link}" class="{classes}"><title>{title}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text class="number" x="{center}" y="{y + 19}">{name}</text>'
        f'<text class="words" x="{center}" y="{y + 34}">{words}</text></a>'
    )


def _arrow(used: str, user: str) -> str:
    return f'<path d="{_edge(used, user)}" marker-end="url(#statement-arrow)"/>'


def _legend() -> str:
    """Return the meaning of colors and frames."""
    meanings = {kind: words for words, kind in VERDICTS.items()}
    meanings["formal"] = "proof checked by a proof assistant"
    meanings["parts"] = "parts of the proof checked"
    entries = [
        f'<span><span class="key {kind}"></span>{words}</span>' for kind, words in meanings.items()
    ]
    return "".join(entries)


def map_html(found: Iterable[Standing]) -> str:
    """Return the picture of all statements as inline SVG with its legend.

    Each box is a link to its chapter. The color of a box is the verdict. A thick frame marks a
    statement whose proof Coq has checked (broken: parts of the proof only). An arrow leads from a
    statement to one whose proof uses it.
    """
    places = [statement.place for statement in statements().values()]
    columns = 1 + max(column for column, _ in places)
    rows = 1 + max(row for _, row in places)
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * ACROSS
    height = 2 * MARGIN + rows * HEIGHT + (rows - 1) * DOWN
    label = "The statements of the paper; an arrow leads to a statement whose proof uses another"
    edges = "".join(_arrow(used, user) for used, user in drawn_edges())
    boxes = "".join(_box(one) for one in found)
    return (
        '<div class="statement-map">'
        f'<svg viewBox="0 0 {width} {height}" role="group" aria-label="{label}">'
        '<defs><marker id="statement-arrow" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{edges}{boxes}</svg>"
        f'<div class="legend">{_legend()}</div></div>'
    )
