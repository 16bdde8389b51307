"""All statements at a glance: where each is proved, what was found, and a picture of what builds on what.

Nothing here is typed by hand. Verdicts and evidence come from the recorded certificates, formal proofs from the files
of ``book/proofs``, and proofs in a chapter from a comment ``% proof of Theorem 4.5`` that stands above each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.certificate import EVIDENCE
from frhsic_core.paper.statements.formal import formal_theorems, formally_proved, restrictions
from frhsic_core.paper.statements.registry import Statement, statements
from frhsic_core.paper.statements.sentences import FAILS, failing

# What was found about a statement, and the class of its box in the picture.
VERDICTS = {
    "holds": "holds",
    "no counterexample": "searched",
    "holds; a sentence in or near it fails": "sentence",
    "needs a further condition": "condition",
}
_PAGE_PROOF = re.compile(r"^% proof of (\w[\w-]* (?:[\w.]*\d|bound))(?:, (.*))?$", re.MULTILINE)


def page_proofs(folder: Path) -> dict[str, tuple[str, str]]:
    """Return for each statement that a chapter proves the chapter and the restriction, which is mostly empty."""
    return {
        number: (path.stem, words or "")
        for path in sorted(folder.glob("*.md"))
        for number, words in _PAGE_PROOF.findall(path.read_text(encoding="utf-8"))
    }


@cache
def _chapter_proofs() -> dict[str, tuple[str, str]]:
    return page_proofs(book_folder().parent / "notebooks")


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
    def proved(self) -> bool:
        """Whether the book proves it, on a page or formally, with or without a restriction."""
        return bool(self.here) or self.formal not in ("", "parts")

    @property
    def evidence_words(self) -> tuple[str, ...]:
        """Evidence as a table shows it. A formal proof of parts is not a proof of the statement."""
        return tuple("proof of parts" if e == "proof" and self.formal == "parts" else e for e in self.evidence)

    @property
    def link(self) -> str:
        """Address of its box from a chapter of the book."""
        return f"{self.statement.chapter}.html#{self.statement.anchor}"


def _formal_words(number: str) -> str:
    if number not in formally_proved():
        return "parts" if any(one.statement == number for one in formal_theorems()) else ""
    known = restrictions(book_folder("proofs"))
    words = {known[one.full_name].split("; ")[0] for one in formal_theorems() if one.whole and one.statement == number}
    finite = next((word for word in sorted(words) if word.startswith("finite")), "")
    return f"for {finite}" if finite else "yes"


def standings(rows: Iterable[Mapping[str, Any]]) -> list[Standing]:
    """Return what is known about every statement, in the order of the paper.

    Parameters
    ----------
    rows : iterable of mappings
        Certificates on record, as in ``book/claims/verdicts.json``.
    """
    rows = list(rows)
    broken = {n for s in failing(rows) if s.itself for n in s.statements}
    found = []
    for number, statement in statements().items():
        own = [row for row in rows if row["statement"] == number]
        present = {row["evidence"] for row in own}
        chapter = _chapter_proofs().get(number)
        here = "" if chapter is None else chapter[1] or "yes"
        formal = _formal_words(number)
        one = Standing(statement, here, formal, tuple(e for e in EVIDENCE if e in present), "")
        if number in broken:
            verdict = "needs a further condition"
        elif any(row["verdict"] == FAILS for row in own):
            verdict = "holds; a sentence in or near it fails"
        else:
            verdict = "holds" if one.proved or not statement.needs_verdict else "no counterexample"
        found.append(Standing(statement, here, formal, one.evidence, verdict))
    return found


def overview_table(found: Iterable[Standing]) -> list[dict[str, str]]:
    """Return the rows of the table of all statements, with links; ``"–"`` stands for no."""
    return [
        {
            "statement": f'<a href="{one.link}">{one.statement.number}</a><br><small>{one.statement.what}</small>',
            "proved in the paper": {"no": "–"}.get(one.statement.paper_proof, one.statement.paper_proof),
            "here": one.here or "–",
            "formally": one.formal or "–",
            "evidence": ", ".join(one.evidence_words),
            "verdict": one.verdict,
        }
        for one in found
    ]


# Column and row of each box. Statements that build on each other stand below each other, or in adjacent columns.
PLACES = {
    "Theorem 3.2": (0, 0), "Definition 3.3": (1, 0), "Linear-encoder bound": (3, 0),
    "Corollary 3.4": (0, 1), "Lemma B.1": (1, 1), "Definition 2.1": (2, 1),
    "Proposition 3.1": (0, 2), "Proposition 4.1": (1, 2), "Theorem 4.7": (2, 2), "Proposition G.2": (3, 2),
    "Proposition G.1": (0, 3), "Theorem 4.3": (1, 3), "Corollary G.3": (2, 3), "Theorem 5.1": (3, 3),
    "Corollary 4.4": (0, 4), "Theorem 4.5": (1, 4), "Remark G.4": (2, 4), "Corollary 5.2": (3, 4),
    "Remark 4.2": (0, 5), "Corollary 4.6": (1, 5), "Remark B.3": (2, 5), "Corollary 5.3": (3, 5),
    "Lemma B.2": (0, 6), "Proposition C.1": (2, 6),
}  # fmt: skip
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 96, 44, 18, 24, 12
_ABBREVIATED = {"Theorem": "Thm", "Proposition": "Prop", "Corollary": "Cor", "Definition": "Def", "Remark": "Rem"}

# Both themes of the book: the theme sets data-theme on the root of the page. Colors keep a contrast of 4.5 with text.
STYLE = """
.statement-map { max-width: 46rem; margin: 0 auto; }
.statement-map svg { width: 100%; height: auto; display: block; }
.statement-map text { font-family: inherit; fill: #1b1b1b; text-anchor: middle; }
.statement-map .number { font-size: 13px; font-weight: 600; }
.statement-map .words { font-size: 9.5px; }
.statement-map rect { stroke: #555; stroke-width: 1; }
.statement-map .holds rect { fill: #bfe3d3; } .statement-map .searched rect { fill: #e8e8e8; }
.statement-map .sentence rect { fill: #f6dfa0; } .statement-map .condition rect { fill: #f3c2a8; }
.statement-map .formal rect { stroke-width: 3; stroke: #0b4f8a; }
.statement-map .parts rect { stroke-width: 3; stroke: #0b4f8a; stroke-dasharray: 7 5; }
.statement-map .unproved rect { stroke-dasharray: 2 3; }
.statement-map path { fill: none; stroke: #767676; stroke-width: 1.3; }
.statement-map marker path { fill: #767676; stroke: none; }
.statement-map a:hover rect, .statement-map a:focus rect { stroke: #000; stroke-width: 3; }
.statement-map .legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .9rem; margin-top: .6rem; }
.statement-map .key { display: inline-block; width: 1.5em; height: 1em; vertical-align: -.1em; margin-right: .4em;
  border: 1px solid #555; }
.statement-map .key.holds { background: #bfe3d3; } .statement-map .key.searched { background: #e8e8e8; }
.statement-map .key.sentence { background: #f6dfa0; } .statement-map .key.condition { background: #f3c2a8; }
.statement-map .key.formal { border: 3px solid #0b4f8a; } .statement-map .key.parts { border: 3px dashed #0b4f8a; }
.statement-map .key.unproved { border-style: dotted; }
html[data-theme="dark"] .statement-map path { stroke: #a8a8a8; }
html[data-theme="dark"] .statement-map marker path { fill: #a8a8a8; }
html[data-theme="dark"] .statement-map rect, html[data-theme="dark"] .statement-map .key { stroke: #ddd;
  border-color: #ddd; }
html[data-theme="dark"] .statement-map .formal rect, html[data-theme="dark"] .statement-map .parts rect {
  stroke: #6db6ff; }
html[data-theme="dark"] .statement-map .key.formal, html[data-theme="dark"] .statement-map .key.parts {
  border-color: #6db6ff; }
html[data-theme="dark"] .statement-map a:hover rect { stroke: #fff; }
"""


def ancestors(number: str) -> set[str]:
    """Return every statement that a statement builds on, directly or not.

    Examples
    --------
    >>> sorted(ancestors("Corollary 3.4"))
    ['Definition 3.3', 'Theorem 3.2']
    """
    direct = statements()[number].builds_on
    return set(direct).union(*(ancestors(one) for one in direct))


def drawn_edges() -> list[tuple[str, str]]:
    """Return the dependencies that do not follow from others, as pairs of what is used and what uses it."""
    edges = []
    for number, statement in statements().items():
        for used in statement.builds_on:
            if not any(used in ancestors(other) for other in statement.builds_on if other != used):
                edges.append((used, number))
    return edges


@cache
def places() -> dict[str, tuple[int, int]]:
    """Return column and row of every box; statements without a place of their own follow below the others."""
    last = max(row for _, row in PLACES.values())
    new = [number for number in statements() if number not in PLACES]
    return PLACES | {number: (index % 4, last + 1 + index // 4) for index, number in enumerate(new)}


def _corner(number: str) -> tuple[int, int]:
    column, row = places()[number]
    return MARGIN + column * (WIDTH + ACROSS), MARGIN + row * (HEIGHT + DOWN)


def _edge(used: str, user: str) -> str:
    (column, row), (to_column, to_row) = places()[used], places()[user]
    (x, y), (to_x, to_y) = _corner(used), _corner(user)
    if to_row == row + 1:
        start, end = x + WIDTH / 2, to_x + WIDTH / 2
        bend = DOWN * 0.6
        return f"M{start} {y + HEIGHT}C{start} {y + HEIGHT + bend} {end} {to_y - bend} {end} {to_y - 1}"
    # Through the gap beside the column, so that no line passes behind a box.
    right = to_column > column or (to_column == column and to_row - row > 3)
    side = to_x if to_column > column else to_x + WIDTH
    if to_column == column:
        side = x + WIDTH if right else x
    turn = side + ACROSS / 2 * (1 if side > to_x else -1)
    start = x + WIDTH if right else x
    height, target = y + HEIGHT * 0.7, to_y + HEIGHT / 2
    return f"M{start} {height}L{turn} {height}L{turn} {target}L{side + (1 if turn > side else -1)} {target}"


def _box(one: Standing) -> str:
    x, y = _corner(one.statement.number)
    kind, _, rest = one.statement.number.partition(" ")
    name = f"{_ABBREVIATED.get(kind, kind)} {rest}" if rest != "bound" else kind.partition("-")[0]
    state = {"": "", "parts": "parts"}.get(one.formal, "formal")
    if not one.proved and one.statement.needs_verdict:
        state = "unproved"
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
    the proof only), a dotted frame one that the book does not prove. An arrow leads from a statement to one whose proof
    uses it.
    """
    found = list(found)
    columns, rows = (1 + max(place[axis] for place in places().values()) for axis in (0, 1))
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * ACROSS
    height = 2 * MARGIN + rows * HEIGHT + (rows - 1) * DOWN
    edges = "".join(f'<path d="{_edge(*edge)}" marker-end="url(#statement-arrow)"/>' for edge in drawn_edges())
    boxes = "".join(_box(one) for one in found)
    present = [words for words in VERDICTS if any(one.verdict == words for one in found)]
    keys = [(VERDICTS[words], words) for words in present]
    keys.append(("formal", "proof checked by a proof assistant"))
    keys.append(("parts", "parts of the proof checked"))
    if any(not one.proved and one.statement.needs_verdict for one in found):
        keys.append(("unproved", "not proved in this book"))
    legend = "".join(f'<span><span class="key {kind}"></span>{words}</span>' for kind, words in keys)
    return (
        f'<div class="statement-map"><style>{STYLE}</style>'
        f'<svg viewBox="0 0 {width} {height}" role="group" '
        'aria-label="The statements of the paper; an arrow leads to a statement whose proof uses another">'
        '<defs><marker id="statement-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        f'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>{edges}{boxes}</svg>'
        f'<div class="legend">{legend}</div></div>'
    )
