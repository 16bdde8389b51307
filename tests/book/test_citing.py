"""How to cite: the same names, title and version everywhere, and no address of a person."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import frhsic_core

ROOT = Path(__file__).resolve().parents[2]
PAPER = "A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes"


def _read(*names: str) -> str:
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


def test_the_paper_and_its_authors_are_named() -> None:
    citation, page, entries = _read("CITATION.cff"), _read("book", "citing.md"), _read("book", "references.bib")
    for text in (page, entries):
        assert "author = {Ni, Yijin and Huo, Xiaoming}" in text
        assert PAPER in text
    people = re.findall(r"family-names: (\w+)\n\s+given-names: (\w+)", citation)
    assert people == [("Ni", "Yijin"), ("Huo", "Xiaoming")]
    assert citation.count(PAPER) == 2
    for text in (citation, page, entries, _read("book", "for_the_authors.md"), _read("book", "intro.md")):
        assert not re.search(r"[\w.]+@[\w.]+\.\w", text), "no e-mail addresses"


def test_the_version_is_the_package_s() -> None:
    version = frhsic_core.__version__
    assert tomllib.loads(_read("pyproject.toml"))["project"]["version"] == version
    assert f"\nversion: {version}\n" in _read("CITATION.cff")
    assert f"version = {{{version}}}" in _read("book", "citing.md")


def test_every_entry_that_is_cited_exists() -> None:
    known = set(re.findall(r"@\w+\{(\w+),", _read("book", "references.bib")))
    pages = [*(ROOT / "book").glob("*.md"), *(ROOT / "book" / "parts").glob("*.md"), *(ROOT / "notebooks").glob("*.md")]
    cited = {
        key.strip()
        for path in pages
        for keys in re.findall(r"\{cite:\w+\}`([^`]*)`", path.read_text(encoding="utf-8"))
        for key in keys.split(",")
    }
    assert {"frhsic", "kong2025fair", "grari2019fairness", "madras2018learning", "deka2023mmd"} <= cited
    assert cited <= known
