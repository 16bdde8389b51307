"""Set formulas and names in printed tables as a reader writes them: λ for lambda, ACS Income for acs_income.

Cells print plain text, and keys of the library where a user needs them. On a page both get their common form; the
notebooks keep what was printed. Text inside ``<code>`` stays. Words of stored records get American spelling.

```` ```{formal-theorems} ```` shows the list of formal proofs in three columns, so that it fits the page.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.directives.patches import CSVTable

from frhsic_core.registry import DATASETS, MEASURES, METHODS

GREEK = {"lambda": "λ", "rho": "ρ", "sigma": "σ", "delta": "δ", "mu": "μ"}
TITLES = {key: row.title for key, row in DATASETS.items()}
TITLES |= {key: row.label for key, row in METHODS.items() if key != "dcor"}  # dcor is a library as well
# Other measures have the name of a function that a user calls.
TITLES |= {key: row.label for key, row in MEASURES.items() if key.startswith(("gdp_", "linear_", "nonlinear_"))}
# A key that is also a word (adult, crime) is replaced only where keys fill the cell.
UNUSUAL = {key: title for key, title in TITLES.items() if "_" in key}
SUBSCRIPT = re.compile(r"(?<![\w.])([A-Za-zα-ω]\u0302?)_(?:[({]([^)}]+)[)}]|(\w|out|anchor))(?!\w)")
# A fraction needs brackets in the exponent, unless it is negative: n^-1/2 is a rate, and n^2/3 is a third of n².
POWER = re.compile(r"(?<=\w)\^(?:\(([^)]+)\)|([-−]\d+/\d+|[-−]?\d+(?:\.\d+)?|\w))(?![\w.]*\d)")
WORD = re.compile(r"(?<![\w])(" + "|".join(GREEK) + r")(?=_|\b)(?![a-z])")
# Stored records keep the words of their time.
BRITISH = {
    re.compile(
        r"(?i)\b((?:un)?(?:normal|standard|regular|penal|local|optim|util|minim|maxim)i)s(?=e[ds]?\b|ing\b|ation)"
    ): r"\1z",
    re.compile(r"(?i)\b((?:un)?cent)red\b"): r"\1ered",
    re.compile(r"(?i)\b(neighb|behavi|col)our"): r"\1or",
}
KEY = re.compile(r"(?<![\w:.])(" + "|".join(sorted(UNUSUAL, key=len, reverse=True)) + r")(?![\w:.])")
PREFIX = re.compile(r"(?<!\w)(" + "|".join(METHODS) + r"):(?=\w)")


def readable(text: str) -> str:
    """Return the text of a cell in the form that a reader expects, as HTML.

    Examples
    --------
    >>> readable("lambda_(m+1) &lt;= n^(-1/5)")
    'λ<sub>m+1</sub> ≤ n<sup>−1/5</sup>'
    >>> readable("centred and normalised, at the rate n^-1/2")
    'centered and normalized, at the rate n<sup>−1/2</sup>'
    >>> readable("frhsic:estimator unbiased"), readable("acs_income"), readable("reg_gdp, compas")
    ('FRHSIC: estimator unbiased', 'ACS Income', 'Reg-GDP, COMPAS')
    """
    keys = text.strip().split(", ")
    if all(key in TITLES for key in keys):
        return ", ".join(TITLES[key] for key in keys)
    for british, american in BRITISH.items():
        text = british.sub(american, text)
    text = PREFIX.sub(lambda match: f"{METHODS[match[1]].label}: ", text)
    text = KEY.sub(lambda match: UNUSUAL[match[1]], text)
    text = WORD.sub(lambda match: GREEK[match[1]], text.replace("&lt;=", "≤").replace("&gt;=", "≥"))
    text = SUBSCRIPT.sub(lambda match: f"{match[1]}<sub>{match[2] or match[3]}</sub>", text)
    return POWER.sub(lambda match: f"<sup>{(match[1] or match[2]).replace('-', '−')}</sup>", text)


def readable_nodes(text: str) -> list[nodes.Node]:
    """Return plain text in the form of :func:`readable`, as nodes of a page."""
    # After “ a straight quote would be taken for a closing one.
    text = re.sub(r"(?<!\w)'([^']+)'(?!\w)", r"‘\1’", text)
    kinds = {"sub": nodes.subscript, "sup": nodes.superscript}
    pieces = re.split(r"<(sub|sup)>(.*?)</\1>", readable(escape(text, quote=False)))
    found: list[nodes.Node] = []
    for before, kind, inside in zip(pieces[::3], [*pieces[1::3], ""], [*pieces[2::3], ""], strict=True):
        found.append(nodes.Text(unescape(before)))
        if kind:
            found.append(kinds[kind](inside, unescape(inside)))
    return found


def readable_table(html: str) -> str:
    """Apply :func:`readable` to the text between the tags of tables."""
    pieces = re.split(r"(?s)(<style.*?</style>|<code.*?</code>|<caption.*?</caption>|<[^>]*>)", html)
    return "".join(piece if piece.startswith("<") else readable(piece) for piece in pieces)


def _rewrite(app: Any, doctree: nodes.document, docname: str) -> None:
    for raw in list(doctree.findall(nodes.raw)):
        text = raw.astext()
        if raw.get("format") == "html" and "<table" in text and "explorer" not in text[:400]:
            raw[:] = [nodes.Text(readable_table(text))]


class FormalTheorems(CSVTable):
    """Show ``book/proofs/statements.csv``: where a theorem is, what it says and what it assumes."""

    def parse_csv_data_into_rows(self, csv_data: Any, dialect: Any, source: str) -> tuple[list[Any], int]:
        """Return a row for each theorem; its file and its name share a cell, where a line can break between them."""
        (header, *rows), _ = super().parse_csv_data_into_rows(csv_data, dialect, source)
        names = [cell[3][0] for cell in header]
        file, theorem, proved, assumptions = map(names.index, ("file", "theorem", "proved", "assumptions"))

        def cell(text: str) -> tuple[int, int, int, StringList]:
            return 0, 0, 0, StringList([text], source=source)

        places = [cell(f"{row[file][3][0]}.v: {row[theorem][3][0]}") for row in rows]
        shown = [[place, row[proved], row[assumptions]] for place, row in zip(places, rows, strict=True)]
        return [[cell("file and theorem"), header[proved], header[assumptions]], *shown], 3


def setup(app: Any) -> dict[str, bool]:
    """Rewrite once outputs have become nodes."""
    app.add_directive("formal-theorems", FormalTheorems)
    app.connect("doctree-resolved", _rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
