"""Find words of judgement and typed results in the prose of the chapters that are tied to no data.

A sentence that says *reproduced*, *agrees*, *holds*, *differs*, *better*, *worse* or *as good as*
takes its verdict from data. It is tied if its paragraph names a line of the ledger (``C007``),
shows a substitution (``{{ paired.comparisons }}``), or stands beside a code cell whose output shows
the comparison; for *reproduced* and *confirmed*, which are about a printed number, a cell is not
enough. A statement of mathematics is tied by the number of the theorem or by its formula. A
sentence that names a line of the ledger must also say what the ledger says.

A number in prose is a setting, a citation or a level, or it comes from data. Settings are the
numbers after the words and signs in ``SETTINGS``. The tests of the book limit what is left in each
chapter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[2] / "notebooks"
STATEMENT = re.compile(
    r"(?:Theorem|Proposition|Corollar(?:y|ies)|Lemma|Remark|Definition|Section|Table)s?\s+[A-H]?\.?\d+(?:\.\d+)?"
    r"(?:(?:, | and )[A-H]?\.?\d+(?:\.\d+)?)*"
)
# Words of agreement and of disagreement; the others compare two methods.
FOR = r"reproduc(?:es?|ed)|agrees?|holds?|confirm(?:s|ed)?"
AGAINST = r"differs?|disagrees?|fails?|contradict(?:s|ed)?"
UNDECIDED = r"open|not decided|undecided"
COMPARED = r"(?:significantly )?(?:better|worse) than|as good as|outperforms?|beats?"
WORDS = re.compile(rf"\b(?:{FOR}|{AGAINST}|{COMPARED})\b", re.IGNORECASE)
# What these words also mean: the contents of a cell, a question, a wish.
HARMLESS = re.compile(
    r"\b(?:holds? (?:for the|the|all|out|only|a |an )|held out|whether|would|could|should|may|can|must)\b",
    re.IGNORECASE,
)
# A condition makes a comparison harmless, but not a word about the paper's numbers.
CONDITION = re.compile(r"\b(?:if|when|which)\b", re.IGNORECASE)
MARKUP = re.compile(r"\s*(?::{3,}|`{3,}|:[\w-]+:|%|\([\w-]+\)=)")
# Words about the paper's numbers, for which a picture nearby is not enough.
REPRODUCED = re.compile(
    r"\b(?:reproduc(?:es?|ed)|confirm(?:s|ed)?|contradict(?:s|ed)?)\b", re.IGNORECASE
)
CODE = re.compile(r"(?<!\})`[^`]*`")  # a name or a command; the words of a role are prose
LINE = re.compile(r"\b([CT]\d{3})\b")
# A negation turns the word around: "is not reproduced".
NOT = re.compile(r"\b(?:not|no|never|neither|nor|hardly)\b", re.IGNORECASE)
RESULT = re.compile(r"(?<![\w.,])(?:\d*\.?\d+ ?[%×]|\d+(?:\.\d+)?e-?\d+|\d*\.\d+)(?![\w])")
COUNTED = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|dozen|hundred|thousand"
NUMBER = re.compile(rf"(?<![\w.])(?:\d[\d.,]*\d|\d|\.\d+)(?![\w])|\b(?:{COUNTED})\b", re.IGNORECASE)
SETTINGS = re.compile(
    r"\b(?:level|limit|alpha|delta|probability|confidence|tolerance|threshold|within|margin|interval|quantile|band|"
    r"bandwidths?|lambda|λ|weight|rate|seed|at most|at least|below|above|n|σ|ρ)s?(?: of| is| are|:| =| ≤| <)?[ ~]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of prose, and whether a code cell stands directly before or after it."""

    text: str
    beside_code: bool


def paragraphs(source: str) -> list[Paragraph]:
    """Return the paragraphs of a chapter: no front matter, code, figures or exercises' solutions."""
    source = re.sub(r"\A---\n.*?\n---\n", "", source, flags=re.DOTALL)
    source = re.sub(r":{4,}\{dropdown\} Solutions.*?:{4,}\n", "\n", source, flags=re.DOTALL)
    source = re.sub(
        r"^(`{3,})\{code-cell\}.*?^\1$", "\n\n@code@\n\n", source, flags=re.DOTALL | re.MULTILINE
    )
    source = re.sub(
        r"^(`{3,})(?:python|bash|\{(?:figure|raw)\}).*?^\1$",
        "\n",
        source,
        flags=re.DOTALL | re.MULTILINE,
    )
    source = re.sub(r"\$\$.*?\$\$(?: \([\w-]+\))?", "$formula$", source, flags=re.DOTALL)
    blocks = [block.strip() for block in re.split(r"\n\s*\n", source) if block.strip()]
    found = []
    for i, block in enumerate(blocks):
        if block == "@code@":
            continue
        lines = [line for line in block.splitlines() if not MARKUP.match(line)]
        beside = "@code@" in (
            blocks[i - 1] if i else "",
            blocks[i + 1] if i + 1 < len(blocks) else "",
        )
        found.append(Paragraph("\n".join(lines), beside))
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph; an item of a list is one or more of them."""
    parts = re.split(r"(?<=[.!?:])\s+(?=[A-Z*{(`$-])|\n(?=[-*|\d:])", text)
    return [" ".join(part.split()) for part in parts if part.strip()]


def tied(sentence: str, paragraph: Paragraph) -> bool:
    """Return whether data, or for words of mathematics a statement or a formula, carry a sentence."""
    if "{{" in paragraph.text or LINE.search(paragraph.text):
        return True
    if paragraph.beside_code and not REPRODUCED.search(sentence):
        return True
    mathematical = re.search(rf"\b(?:{FOR}|{AGAINST})\b", sentence, re.IGNORECASE)
    proved = STATEMENT.search(paragraph.text) or "$" in sentence or "{prf:ref}" in paragraph.text
    return bool(mathematical and proved and not re.search(COMPARED, sentence, re.IGNORECASE))


def untied(source: str) -> list[str]:
    """Return the sentences that judge and are tied to nothing.

    Examples
    --------
    >>> untied("The printed factor is reproduced.")
    ['The printed factor is reproduced.']
    >>> untied("Run `frhsic monitor --fail-above .05` every day.")
    []
    >>> untied("The printed factor agrees (C005).") + untied("Theorem 4.5 holds.") + untied("Ask whether it holds.")
    []
    """
    found = []
    for paragraph in paragraphs(source):
        for sentence in sentences(paragraph.text):
            if sentence.endswith("?"):  # a question judges nothing
                continue
            said = CODE.sub("", sentence)
            if not WORDS.search(said) or HARMLESS.search(sentence):
                continue
            conditional = CONDITION.search(sentence) and not REPRODUCED.search(sentence)
            if not conditional and not tied(sentence, paragraph):
                found.append(sentence)
    return found


def contradictions(source: str, verdicts: Mapping[str, str]) -> list[str]:
    """Return the sentences that name a line of the ledger and say something else than its verdict.

    Examples
    --------
    >>> contradictions("The factor of 36 is reproduced (C007).", {"C007": "disagrees"})
    ['C007 disagrees: The factor of 36 is reproduced (C007).']
    >>> contradictions("The factor is not reproduced (C007).", {"C007": "disagrees"})
    []
    """
    found = []
    for paragraph in paragraphs(source):
        for sentence in sentences(paragraph.text):
            said = {
                verdict
                for verdict, pattern in (
                    ("agrees", FOR),
                    ("disagrees", AGAINST),
                    ("open", UNDECIDED),
                )
                if re.search(rf"\b(?:{pattern})\b", sentence, re.IGNORECASE)
            }
            if said == {"agrees"} and NOT.search(sentence):
                said = {"disagrees", "open", "holds as corrected"}
            for key in LINE.findall(sentence):
                verdict = (
                    "disagrees"
                    if verdicts.get(key) == "holds as corrected"
                    else verdicts.get(key, "missing")
                )
                if verdict == "missing" or (
                    said and verdict in ("agrees", "disagrees", "open") and verdict not in said
                ):
                    found.append(f"{key} {verdict}: {sentence}")
    return found


def typed(source: str, pattern: re.Pattern[str] = RESULT) -> list[str]:
    """Return the results that the prose of a page types: decimals, per cents and factors that are no settings.

    With the pattern ``NUMBER`` these are all numbers, also those in words.

    Examples
    --------
    >>> typed("The loss is .74 and falls by 12 %. At the level 5 % the test of size $n=.5$ rejects.")
    ['.74', '12 %']
    >>> typed("FRHSIC wins on four of the 12 datasets, {{ runs.datasets }} in all (Theorem 4.5).", NUMBER)
    ['four', '12']
    """
    found = []
    for paragraph in paragraphs(source):
        text = paragraph.text
        for harmless in (
            r"\{\{.*?\}\}",
            r"\{[\w:-]+\}`[^`]*`",
            r"`[^`]*`",
            r"\$[^$]*\$",
            r"\]\([^)]*\)",
        ):
            text = re.sub(harmless, "", text, flags=re.DOTALL)
        text = STATEMENT.sub("", text)
        found += [
            hit[0]
            for hit in pattern.finditer(text)
            if not SETTINGS.search(text[: hit.start()][-40:])
        ]
    return found


def chapters() -> dict[str, str]:
    """Return the sources of all chapters."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(CHAPTERS.glob("*.md"))}
