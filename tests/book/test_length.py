"""The length of the book: reading times by the printed rule, and tables in view."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CORE_HOURS = 5.0
TABLES = 65


@pytest.fixture(scope="module")
def chapter_facts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book" / "_ext")
        import chapter_facts

        yield chapter_facts


@pytest.fixture(scope="module")
def halves() -> dict[str, list[Path]]:
    """Return the files of the pages below each caption of the contents."""
    found = {}
    for half in yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]:
        names = [entry["file"] for part in half["chapters"] for entry in part["sections"]]
        paths = [next(path for end in ("ipynb", "md") if (path := ROOT / f"{name}.{end}").is_file()) for name in names]
        found[half["caption"].partition(":")[0]] = paths
    return found


def test_a_chapter_is_counted(chapter_facts, tmp_path: Path) -> None:
    """What is folded does not count: neither the code of the third cell nor the table of the fourth."""
    table = nbformat.v4.new_output("display_data", data={"text/html": "<table></table>"})
    picture = nbformat.v4.new_output("display_data", data={"image/png": ""})
    cells = [
        nbformat.v4.new_markdown_cell("word " * 400),
        nbformat.v4.new_code_cell("1\n\n2", execution_count=1, outputs=[picture, table]),
        nbformat.v4.new_code_cell("3", execution_count=2, metadata={"tags": ["hide-input"]}),
        nbformat.v4.new_code_cell("4", execution_count=3, metadata={"tags": ["hide-output"]}, outputs=[table]),
        nbformat.v4.new_code_cell(""),
    ]
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    found = chapter_facts.facts(path)
    assert (found.cells, found.executed, found.figures, found.errors, found.words) == (3, 3, 1, 0, 400)
    assert (found.tables, found.code) == (1, 3)
    assert found.seconds == pytest.approx(60 * 400 / 180 + 30 + 30 + 3 * 2)
    assert found.minutes == 3


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Two words", (2, 0, 0, 0, 0)),
        ("The {term}`corrected test <Corrected test>` of $S$", (5, 0, 0, 0, 0)),
        ("with $a+b$ here", (3, 1, 0, 0, 0)),
        ("$$\na = b\n$$ (eq-one)", (0, 0, 1, 0, 0)),
        ("```{math}\n:label: eq\na = b\n```", (0, 0, 1, 0, 0)),
        ("````{prf:theorem} Theorem 1\n:label: one\n\nSo $$x$$ holds.\n````", (4, 0, 1, 0, 0)),
        (":::::{dropdown} Solutions\nfour words are here\n$$x$$\n:::::\nafter", (1, 0, 0, 0, 0)),
        ("(ch-label)=\n% a comment\n```{index} ! Theorem 4.5\n```\n", (0, 0, 0, 0, 0)),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", (4, 0, 0, 1, 0)),
        ("```bash\nmake\n\nmake test\n```", (0, 0, 0, 0, 2)),
    ],
)
def test_a_page_is_counted(chapter_facts, text: str, counts: tuple[int, ...]) -> None:
    assert tuple(chapter_facts.counted_text(text).values()) == counts


def test_the_chapters_of_a_part_add_up_to_its_time(chapter_facts) -> None:
    """The sum of the rows, as printed, is the time of the part but for rounding: half a minute for each row."""
    for half in yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"][:2]:
        for part in half["chapters"]:
            names = [entry["file"] for entry in part["sections"]]
            files = [next(p for end in ("ipynb", "md") if (p := ROOT / f"{name}.{end}").is_file()) for name in names]
            found = [chapter_facts.facts(path) for path in files]
            number, unit = chapter_facts.hours(sum(f.seconds for f in found)).split()
            shown = float(number) * (60 if unit == "hours" else 1)
            assert shown == pytest.approx(sum(f.minutes for f in found), abs=3 + len(found) / 2), part["file"]


def test_the_first_card_names_the_time_of_its_pages(chapter_facts) -> None:
    """Half an hour is this page, the audit and the remedies."""
    chapters = ("audit_your_model", "which_remedy")
    pages = [ROOT / "book" / "intro.md", *(ROOT / "notebooks" / f"{name}.ipynb" for name in chapters)]
    assert "{grid-item-card} Half an hour\n" in pages[0].read_text(encoding="utf-8")
    assert 25 < sum(chapter_facts.facts(page).seconds for page in pages) / 60 < 40


def test_the_core_is_read_in_five_hours(chapter_facts, halves) -> None:
    hours = sum(chapter_facts.facts(path).seconds for path in halves["Core"]) / 3600
    assert 2 < hours <= CORE_HOURS, f"The core takes {hours:.2f} hours to read: move or fold something."


def test_few_tables_are_in_view(chapter_facts, halves) -> None:
    paths = [*halves["Core"], *halves["Audit of the paper"]]
    counts = {path.stem: chapter_facts.facts(path).tables for path in paths}
    total = sum(counts.values())
    most = sorted(counts, key=counts.__getitem__, reverse=True)[:5]
    assert total <= TABLES, f"{total} tables are in view, most in {', '.join(most)}: fold them (tag hide-cell) or draw."
