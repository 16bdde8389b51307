"""Every page of the built book, read as text: links, words for pictures, sizes.

The build takes warnings as errors. `make test` builds the pages that someone wrote, `make test-all` the whole book.
"""

from __future__ import annotations

import inspect
import re
from functools import reduce
from html import unescape
from html.parser import HTMLParser
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import frhsic_core

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(600)


class Page(HTMLParser):
    """Links, identifiers, pictures and headings of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.pictures: list[tuple[str, str | None]] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.names.update(value for key in ("id", "name") if (value := found.get(key)))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag == "img":
            self.pictures.append((found.get("src") or "", found.get("alt")))
        if tag in ("script", "img", "iframe") and found.get("src"):
            self.loaded.append(str(found["src"]))
        if tag == "link" and found.get("rel") != "canonical" and found.get("href"):
            self.loaded.append(str(found["href"]))


@pytest.fixture(scope="session")
def pages(book: Path) -> dict[Path, Page]:
    return {
        path: Page(path) for path in sorted(book.rglob("*.html")) if "_static" not in path.parts
    }


def test_every_internal_link_and_file_exists(pages: dict[Path, Page], book: Path) -> None:
    broken = []
    for path, page in pages.items():
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(book)} -> {link}")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].names
            ):
                broken.append(f"{path.relative_to(book)} -> {link} (no such place)")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [link for page in pages.values() for link in page.loaded if urlsplit(link).netloc] == []


def test_every_picture_has_words(pages: dict[Path, Page]) -> None:
    pictures = [picture for page in pages.values() for picture in page.pictures]
    assert len(pictures) > 3
    without = [
        source
        for source, alt in pictures
        if not alt or len(alt) < 10 or alt.endswith((".png", ".svg"))
    ]
    assert without == []


def test_no_page_is_heavy(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        pictures = [
            path.parent / unquote(source)
            for source, _ in page.pictures
            if not urlsplit(source).scheme
        ]
        size = path.stat().st_size + sum(picture.stat().st_size for picture in set(pictures))
        assert size < 3 * 2**20, f"{path.name} weighs {size / 2**20:.1f} MB; 3 MB are allowed."


def test_numbers_on_the_first_page_are_the_computed_ones(
    book: Path, values_of_pages: dict[str, Any]
) -> None:
    source = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    names = re.findall(r"\{\{ ([\w.]+) \}\}", source)
    assert {"ledger.agree", "seeds.median_after", "runtime.few"} <= set(names)
    numbers = [str(reduce(getitem, name.split("."), values_of_pages)) for name in names]
    shown = (book / "book" / "intro.html").read_text(encoding="utf-8")
    found = [unescape(text) for text in re.findall(r"<strong>([^<]*)</strong>", shown)]
    assert [number for number in numbers if number not in found] == []


# The library page names every public name, and every public module has a page -----------------------------------------


PAGE = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in frhsic_core.__all__ if not inspect.ismodule(getattr(frhsic_core, name))]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_documents(name: str) -> None:
    assert f":: frhsic_core.{name}\n" in PAGE
    assert inspect.getdoc(getattr(frhsic_core, name))


@pytest.mark.slow
def test_every_module_has_a_page_with_its_members(built_book: Path) -> None:
    root = Path(frhsic_core.__file__).parent
    files = [path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py")]
    names = [".".join(path.parts).removesuffix(".__init__") for path in files]
    modules = [name for name in names if "._" not in name]  # private modules have none
    pages = built_book / "book" / "generated"
    assert [name for name in modules if not (pages / f"{name}.html").is_file()] == []
    text = (pages / "frhsic_core.kernels.html").read_text(encoding="utf-8")
    assert 'id="frhsic_core.kernels.Gaussian"' in text
    assert "_modules/frhsic_core/kernels.html#Gaussian" in text
    text = (pages / "frhsic_core.auditing.html").read_text(encoding="utf-8")
    assert 'id="frhsic_core.auditing.Verdict"' in text  # of a private module
    text = (pages / "frhsic_core.learning.html").read_text(encoding="utf-8")
    assert 'id="frhsic_core.learning.Trainer"' not in text, "the library page has it"
