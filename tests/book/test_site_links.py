"""Links to report and edit, canonical addresses, the card and the map of the site: all from one address."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/Someone/frhsic"


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import site_links

    return site_links


def app_of(repository: str, folder: Path) -> Any:
    """Return what the hooks use of Sphinx, for a repository at this address."""
    options = {"repository_url": repository, "repository_branch": "main"}
    config = SimpleNamespace(html_theme_options=options, html_baseurl="", html_title="The book")
    pages = {"book/intro": "book/intro.md", "notebooks/a": "notebooks/a.ipynb"}
    env = SimpleNamespace(doc2path=pages.__getitem__, found_docs={*pages, "genindex"})
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(config=config, env=env, builder=builder, outdir=str(folder))


def written(links: ModuleType, repository: str, folder: Path) -> tuple[Any, dict[str, str]]:
    """Let the hooks write a page; return Sphinx and the context of the page."""
    app = app_of(repository, folder)
    links._take_address(app, app.config)
    context = {"title": "A <i>chapter</i>", "body": "<p>Words.</p>"}
    links._add_to_page(app, "notebooks/a", "page.html", context, object())
    links._write_map(app, None)
    return app, context


def test_every_link_follows_from_one_address(links: ModuleType, tmp_path: Path) -> None:
    app, context = written(links, REPOSITORY, tmp_path)
    assert app.config.html_baseurl == "https://someone.github.io/frhsic/"
    assert set(app.config.html_theme_options["launch_buttons"]) >= {"binderhub_url", "colab_url"}
    report, edit = re.findall('href="(.+?)"', context["body"])
    assert report.startswith(f"{REPOSITORY}/issues/new?template=wrong_number.yml&amp;page=A%20chap")
    assert edit == f"{REPOSITORY}/edit/main/notebooks/a.md"  # not the notebook with outputs
    assert "https://someone.github.io/frhsic/_static/needle.png" in context["metatags"]
    tree = ElementTree.parse(tmp_path / "sitemap.xml")
    listed = [place.text for place in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    assert listed == [
        "https://someone.github.io/frhsic/book/intro.html",
        "https://someone.github.io/frhsic/notebooks/a.html",
    ]
    assert "sitemap.xml" in (tmp_path / "robots.txt").read_text(encoding="utf-8")


def test_without_an_address_there_is_no_dead_link(links: ModuleType, tmp_path: Path) -> None:
    app, context = written(links, "", tmp_path)
    assert context["body"] == "<p>Words.</p>"
    assert app.config.html_baseurl == ""
    assert "launch_buttons" not in app.config.html_theme_options
    assert 'content="../_static/needle.png"' in context["metatags"]
    assert list(tmp_path.iterdir()) == []


def test_the_report_fills_the_form(links: ModuleType) -> None:
    """The link names a form of the repository, and a field of this form."""
    line = links.page_links(REPOSITORY, "main", "book/intro", suffix=".md", title="T")
    template = re.findall(r"template=([\w.]+)", line)[0]
    form = ROOT / ".github" / "ISSUE_TEMPLATE" / template
    fields = yaml.safe_load(form.read_text(encoding="utf-8"))["body"]
    assert "page" in {field["id"] for field in fields}


def test_the_picture_of_the_card_is_on_the_site(links: ModuleType) -> None:
    assert (ROOT / "book" / links.PICTURE).is_file()


@pytest.mark.parametrize(
    "words", ["four-fifths", "disparate impact", "gender", "proxy", "insurance", "exposure"]
)
def test_the_search_finds_a_call_by_a_word_of_practice(words: str, book: Path) -> None:
    """The index of the built book leads from these words to the page *Use the library*."""
    index = (book / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    [number] = [i for i, name in enumerate(found["docnames"]) if name == "book/guide"]
    for word in re.findall(r"\w+", words):
        hits = []
        for term, pages in found["terms"].items():
            if term.startswith(word.lower()[:4]):
                hits += pages if isinstance(pages, list) else [pages]
        assert number in hits, word
