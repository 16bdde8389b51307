"""One story: no sentence of a chapter contradicts the ledger, and judgements and results come from data."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import story  # noqa: E402

# How many judgements and typed results a chapter may still have; a chapter that is not listed has those of "*".
with Path(__file__).with_name("story.csv").open(encoding="utf-8", newline="") as _file:
    LEFT = {
        row["chapter"]: (int(row["untied"]), int(row["typed"])) for row in csv.DictReader(_file)
    }
CHAPTERS = story.chapters()


@pytest.mark.parametrize("name", CHAPTERS)
def test_judgements_and_results_come_from_data(name: str) -> None:
    untied, typed = story.untied(CHAPTERS[name]), story.typed(CHAPTERS[name])
    most = LEFT.get(name, LEFT["*"])
    assert len(untied) <= most[0], (
        "tied to no line of the ledger, substitution or cell:\n" + "\n".join(untied)
    )
    assert len(typed) <= most[1], f"typed, not from data: {', '.join(typed)}"


def test_pages_type_no_result_and_the_first_pages_no_number() -> None:
    """Each is a substitution, so that it follows the data. The course names two versions.

    They are of its license and of Python, and no results.
    """
    pages = [ROOT / "book" / f"{name}.md" for name in ("teaching", "responsible_use", "explorers")]
    typed = [
        f"{page.stem}: {one}"
        for page in pages
        for one in story.typed(page.read_text(encoding="utf-8"))
    ]
    assert typed == ["teaching: 4.0", "teaching: 3.11"]
    first = [ROOT / "book" / "intro.md", *(ROOT / "book" / "parts").glob("*.md")]
    assert [
        one for page in first for one in story.typed(page.read_text(encoding="utf-8"), story.NUMBER)
    ] == []


def test_no_sentence_contradicts_the_ledger(full_ledger: pd.DataFrame) -> None:
    verdicts = full_ledger.set_index("id")["verdict"].to_dict()
    pages = CHAPTERS | {
        "table of claims": (ROOT / "book" / "parts" / "check.md").read_text(encoding="utf-8")
    }
    found = [
        f"{name}: {one}"
        for name, text in pages.items()
        for one in story.contradictions(text, verdicts)
    ]
    assert not found, "\n".join(found)


PLANTED = [
    "On a GPU the factor of 36 is reproduced (C007).",
    "This reproduces the paper's factor of two to three.",
    "Our runs confirm the factor of 36 (C007).",
    "Whitened FRHSIC is better than every rival on every dataset.",
    "On tabular data a simple remedy is as good as FRHSIC.",
]


@pytest.mark.parametrize("sentence", PLANTED)
@pytest.mark.parametrize("name", ["runtime", "ledger"])
def test_planted_contradictions_are_found(name: str, sentence: str) -> None:
    """Each is put at the end of a chapter as a paragraph of its own, and the number of findings rises by one."""

    def findings(text: str) -> int:
        return len(story.untied(text)) + len(
            story.contradictions(text, dict.fromkeys(keys, "disagrees"))
        )

    keys = set(story.LINE.findall(CHAPTERS[name])) | {"C007"}
    assert (
        findings(f"{CHAPTERS[name]}\n\nA paragraph between.\n\n{sentence}\n")
        == findings(CHAPTERS[name]) + 1
    )


def test_sentences_that_say_what_the_ledger_says_pass() -> None:
    verdicts = {"C007": "disagrees", "C005": "agrees", "C211": "open"}
    for sentence in (
        "The factor of 36 disagrees with the text (C007), and the slope agrees (C005, C007).",
        "The factor is not reproduced (C007).",
        "The slope is confirmed (C005).",
        "The ledger leaves the selected weight open (C211).",
        "The verdict is {{ verdicts.C007 }}, so the factor is not reproduced.",
    ):
        assert story.untied(sentence) == []
        assert story.contradictions(sentence, verdicts) == []
    assert story.contradictions("The slope differs (C005).", verdicts)
    assert story.contradictions("The weight is confirmed (C211).", verdicts)
    assert story.contradictions("The claim holds (C999).", verdicts)


def test_what_carries_a_sentence() -> None:
    cell = "```{code-cell} ipython3\nprint(1)\n```"
    assert story.untied(f"FRHSIC is better than FREM.\n\n{cell}") == []
    assert story.untied(f"FRHSIC is better than FREM.\n\nAnother paragraph.\n\n{cell}") != []
    assert story.untied(f"The number is reproduced.\n\n{cell}") != []
    assert story.untied("The bound holds for $n\\ge 2$.") == []
    assert story.typed(f"{cell}\n\nAt λ = 0.5 and the level 5 % the loss is 3.2 %.") == ["3.2 %"]
