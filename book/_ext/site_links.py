"""Everything that depends on the public address: links to report and edit, canonical links, a card, a map of the site.

The address is ``repository`` in ``_config.yml``. As long as it is empty, pages have no such link, and only the card's
words and picture are written. On GitHub the address of the site follows from that of the repository; elsewhere set
``html: baseurl``.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

PICTURE = "_static/needle.png"
GITHUB = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?$")
BUTTONS = {
    "binderhub_url": "https://mybinder.org",
    "colab_url": "https://colab.research.google.com",
    "notebook_interface": "jupyterlab",
}
# Pages that no search engine should list: the same words are on other pages.
UNLISTED = ("genindex", "search", "prf-prf", "py-modindex")


def site_of(repository: str) -> str:
    """Return the address of GitHub's pages of a repository, or nothing.

    Examples
    --------
    >>> site_of("https://github.com/someone/frhsic")
    'https://someone.github.io/frhsic/'
    >>> site_of("")
    ''
    """
    found = GITHUB.match(repository)
    if not found:
        return ""
    owner, name = found.groups()
    return f"https://{owner.lower()}.github.io/{name}/"


def source_of(page: str, suffix: str) -> str:
    """Return the file that a person edits: of a chapter its text, not the notebook with outputs."""
    return f"{page}.md" if suffix == ".ipynb" else f"{page}{suffix}"


def page_links(repository: str, branch: str, page: str, *, suffix: str, title: str) -> str:
    """Return the line at the end of a page with its two links; without an address there is none."""
    if not repository:
        return ""
    source = source_of(page, suffix)
    edit = f"{repository}/edit/{branch}/{quote(source)}"
    report = f"{repository}/issues/new?template=wrong_number.yml&page={quote(title)}"
    return (
        f'<p class="page-links"><a href="{escape(report)}">Report a wrong number</a> · '
        f'<a href="{escape(edit)}">Edit this page</a></p>'
    )


def card(title: str, site: str, name: str, to_root: str) -> str:
    """Return the words and the picture that a link to the page shows elsewhere."""
    picture = f"{site or to_root}{PICTURE}"
    facts = {"og:title": title, "og:type": "article", "og:image": picture, "og:site_name": name}
    tags = [f'<meta property="{key}" content="{escape(words)}"/>' for key, words in facts.items()]
    tags.append('<meta name="twitter:card" content="summary_large_image"/>')
    return "\n".join(tags)


def sitemap(site: str, pages: list[str]) -> str:
    """Return the map of the site, for search engines."""
    entries = "\n".join(f"<url><loc>{escape(site + page)}.html</loc></url>" for page in pages)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{entries}\n</urlset>\n'
    )


def _take_address(app: Any, config: Any) -> None:
    repository = config.html_theme_options.get("repository_url", "")
    if not config.html_baseurl:
        config.html_baseurl = site_of(repository)
    if repository:
        config.html_theme_options["launch_buttons"] = BUTTONS


def _add_to_page(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    title = re.sub(r"<[^>]+>", "", context.get("title") or app.config.html_title)
    to_root = "../" * pagename.count("/")
    tags = card(title, app.config.html_baseurl, app.config.html_title, to_root)
    context["metatags"] = f"{context.get('metatags', '')}\n{tags}"
    if doctree is not None:
        options = app.config.html_theme_options
        suffix = Path(app.env.doc2path(pagename)).suffix
        context["body"] += page_links(
            options.get("repository_url", ""),
            options.get("repository_branch", "main"),
            pagename,
            suffix=suffix,
            title=title,
        )


def _write_map(app: Any, exception: Exception | None) -> None:
    site = app.config.html_baseurl
    if not exception and site and app.builder.format == "html":
        pages = [page for page in sorted(app.env.found_docs) if page not in UNLISTED]
        Path(app.outdir, "sitemap.xml").write_text(sitemap(site, pages), encoding="utf-8")
        robots = f"User-agent: *\nAllow: /\nSitemap: {site}sitemap.xml\n"
        Path(app.outdir, "robots.txt").write_text(robots, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("config-inited", _take_address)
    app.connect("html-page-context", _add_to_page)
    app.connect("build-finished", _write_map)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
