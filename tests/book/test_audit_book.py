"""The script that looks for typed numbers and moves printed ones finds what it should."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import audit_book  # noqa: E402


def test_no_number_is_typed_on_the_landing_page_or_a_part_page() -> None:
    assert [line for page in audit_book.PAGES for line in audit_book.typed_numbers(page)] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("HSIC led on four of the datasets.", ["four"]),
        ("It is .786 in 12 of 30 comparisons, 1,500 rows.", [".786", "12", "30", "1,500"]),
        ("Theorem 5.1, Proposition G.2 and Corollaries 5.2 and G.3 hold for $n=3$ and `lam=10.0`.", []),
        ("There are two routes; {{ runs.datasets }} datasets, see {chapter}`results`.", []),
        (":gutter: 3", []),
        ("Of two methods one wins.", ["two"]),
    ],
)
def test_typed_numbers(tmp_path: Path, line: str, found: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"(part-1)=\n# Title\n\n{line}\n", encoding="utf-8")
    hits = audit_book.typed_numbers(page)
    assert [hit.partition(": '")[2].partition("'")[0] for hit in hits] == found


def test_numbers_that_agree_notice_a_move() -> None:
    found = audit_book.moved_prints()
    agree = found[found["verdict"] == "agrees"]
    assert len(agree) > 20
    assert agree["both"].all()
