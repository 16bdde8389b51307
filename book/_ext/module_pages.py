"""Every module of a package, documented from its docstrings: ```` ```{modules} frhsic_core.paper.runs ````.

Modules are found when the book is built, so that a new one needs no line here. A module without ``__all__`` is private.
Names imported from elsewhere are documented where they are defined.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective


def public_modules(package: str) -> list[str]:
    """Return the modules of a package that say what is public, by reading them, not by importing them."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"{package!r} is not a package: give the name of one, such as frhsic_core.paper.runs.")
    found = []
    for path in sorted(Path(spec.submodule_search_locations[0]).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            getattr(target, "id", "") for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
        }
        if path.stem != "__init__" and "__all__" in names:
            found.append(f"{package}.{path.stem}")
    return found


class Modules(SphinxDirective):
    """Sections, one for each public module."""

    required_arguments = 1
    option_spec = {"only": directives.unchanged, "except": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the documentation of each module under a small heading."""
        self.env.note_reread()  # modules come and go without this page
        only, without = (self.options.get(name, "").split() for name in ("only", "except"))
        found: list[nodes.Node] = []
        for module in public_modules(self.arguments[0]):
            name = module.rpartition(".")[2]
            if any(name.startswith(start) for start in without) or (only and not any(name.startswith(s) for s in only)):
                continue
            found.append(nodes.rubric("", "", nodes.literal("", name)))
            lines = [f".. automodule:: {module}", "   :members:", ""]
            found += self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]), allow_section_headings=False)
        return found


def keep_bars(lines: list[str]) -> None:
    """Escape bars outside of code and formulas: in a docstring \\|d\\| is an absolute value, never a substitution.

    Examples
    --------
    >>> lines = ["ranks of |d|, ``a | b``"]
    >>> keep_bars(lines)
    >>> print(lines[0])
    ranks of \\|d\\|, ``a | b``
    """
    for number, line in enumerate(lines):
        if "|" in line and ".. math::" not in line:
            pieces = re.split(r"(``.*?``|`[^`]*`)", line)
            lines[number] = "".join(p if p.startswith("`") else re.sub(r"(?<!\\)\|", r"\\|", p) for p in pieces)


def _escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if not any(line.lstrip().startswith((".. math::", "+-", "| ")) for line in lines):
        keep_bars(lines)


def _mend_back_links(app: Any, exception: Exception | None) -> None:
    """Lead each "[docs]" of a source listing to its place: viewcode assumes one public home for a whole module."""
    if exception or app.builder.format != "html":
        return
    root = Path(app.outdir)
    places: dict[Path, set[str]] = {}

    def mended(listing: Path, match: re.Match[str]) -> str:
        page = (listing.parent / match["page"]).resolve()
        if page not in places:
            places[page] = set(re.findall(r'id="([\w.]+)"', page.read_text(encoding="utf-8")))
        if match["place"] in places[page]:
            return match[0]
        name = match["place"].rpartition(".")[2]
        homes = sorted(place for place in places[page] if place.endswith(f".{name}"))
        return match[0].replace(match["place"], homes[0]) if homes else match[0]

    for listing in (root / "_modules").rglob("*.html"):
        text = listing.read_text(encoding="utf-8")
        link = r'viewcode-back" href="(?P<page>[^"#]+)#(?P<place>[\w.]+)"'
        new = re.sub(link, lambda match, listing=listing: mended(listing, match), text)
        if new != text:
            listing.write_text(new, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive, the escape and the links back."""
    app.connect("build-finished", _mend_back_links)
    app.connect("autodoc-process-docstring", _escape, priority=900)
    app.add_directive("modules", Modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
