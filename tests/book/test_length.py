"""The length of the book: words in view and folded, words before the first picture, and tables in view."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
# Recorded sizes of the book. Ten percent above a record fails; a new record says here what a reader gets for it.
AIR = 1.10
# Words in view: the story has motives and joints, and a chapter on the model that never saw an age. The chapter on
# promises tells what looking again, every head and chosen models cost. Folded: the proofs of these bounds, and the
# code of the pictures at 100 columns.
# Tables: the four people of that chapter, and the steps on the page of all theorems.
SEEN, FOLDED, TABLES = 37_800, 28_000, 14


@pytest.fixture(scope="module")
def counter():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book" / "_ext")
        import count_words

        yield count_words


@pytest.fixture(scope="module")
def lengths(counter):
    return {path.stem: counter.count(path) for path in counter.chapters()}


def test_a_chapter_is_counted(counter, tmp_path: Path) -> None:
    """What is folded is counted apart: the code of the third cell, and what the fourth one shows."""
    table = nbformat.v4.new_output(
        "display_data", data={"text/html": "<table><td>two words</td></table>"}
    )
    picture = nbformat.v4.new_output("display_data", data={"image/png": ""})
    cells = [
        nbformat.v4.new_markdown_cell("word " * 400),
        nbformat.v4.new_code_cell("1\n\n2", outputs=[picture, table]),
        nbformat.v4.new_code_cell("a = 3", metadata={"tags": ["hide-input"]}),
        nbformat.v4.new_code_cell(
            "4", metadata={"tags": ["hide-output"]}, outputs=[table, picture]
        ),
        nbformat.v4.new_markdown_cell("after"),
    ]
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    found = counter.count(path)
    assert (found.seen, found.folded, found.before, found.tables) == (401, 5, 400, 1)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Two words", (2, 0, 0)),
        ("The {term}`corrected test <Corrected test>` of $S$", (5, 0, 0)),
        ("$$\na = b\n$$ (eq-one)", (0, 0, 0)),
        ("```{math}\n:label: eq\na = b\n```", (0, 0, 0)),
        ("````{prf:theorem} Theorem 1\n:label: one\n\nSo $$x$$ holds.\n````", (4, 0, 0)),
        (":::::{dropdown} Solutions\nfour words are here\n$$x$$\n:::::\nafter", (1, 0, 4)),
        (":::{dropdown} Proof\n````{prf:remark} One\ntwo words\n````\n:::\nafter", (1, 3, 0)),
        ("(ch-label)=\n% a comment\n```{index} ! Theorem 4.5\n```\n", (0, 0, 0)),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", (4, 0, 0)),
        ("```bash\nmake\n\nmake test\n```", (0, 0, 0)),
        ("# Title\n\nThree more words\n\n```{explorer} waves\n```\nafter", (5, 0, 0)),
    ],
)
def test_a_page_is_counted(counter, text: str, counts: tuple[int, ...]) -> None:
    found = counter.Length()
    counter.count_text(text, found)
    assert (found.seen, found.folded, found.solution) == counts
    assert found.before == (4 if "explorer" in text else None)


@pytest.mark.parametrize(
    ("name", "recorded"), [("seen", SEEN), ("folded", FOLDED), ("tables", TABLES)]
)
def test_the_book_does_not_outgrow_its_record(lengths, name: str, recorded: int) -> None:
    counts = {stem: getattr(length, name) for stem, length in lengths.items()}
    most = sorted(counts, key=counts.__getitem__, reverse=True)[:5]
    assert sum(counts.values()) <= AIR * recorded, (
        f"{sum(counts.values())} {name}, most in {', '.join(most)}"
    )
