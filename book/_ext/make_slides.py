"""Make slides from the chapters, for the built book or by ``python book/_ext/make_slides.py [NAME.ipynb ...]``.

After a title and the contents, a chapter gives a slide with its answer and, in its own order, one for each definition,
statement, figure and example by hand, and one for each text between the comments ``% slide: TITLE`` and
``% end of slide``, such as the symbols and the proof of a statement. Such a text may contain what a cell prints. A
slide shows the first sentence of a printed item, and one more of an item that starts with a sentence in bold. A page
without code gives slides, too, if it has such a text. The result is a page of plain HTML that needs no
network: arrow keys or Page Down go to the next slide, and printing gives one slide a page.
The folder ``figures`` beside it has every figure as a PNG, for slides of your own.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache, reduce
from html import escape, unescape
from operator import getitem
from pathlib import Path
from typing import Any

import nbformat
import yaml
from alt_text import plain
from count_words import ROLE, ROOT, chapters
from gallery import figures
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from offline_assets import copy_mathjax
from paper_boxes import paper_number, without_labels

STYLE = """
html { scroll-snap-type: y mandatory; font: 1.6rem/1.4 system-ui, sans-serif; color: #1b1b1b; }
body { margin: 0; }
section { box-sizing: border-box; height: 100vh; padding: 4vh 6vw; display: flex; flex-direction: column;
  justify-content: center; scroll-snap-align: start; overflow: auto; }
h1 { font-size: 1.5em; margin: 0 0 .6em; } h2 { font-size: 1.15em; margin: 0 0 .6em; }
img { width: 100%; max-height: 64vh; min-height: 0; object-fit: contain; align-self: center; }
.caption { font-size: .6em; margin: 0 4vw; } nav { font-size: .8em; } a { color: #0072b2; }
footer { font-size: .55em; color: #555; margin-top: auto; }
pre { font-size: .75em; } table { border-collapse: collapse; } th, td { text-align: left; padding: .3em 1em .3em 0; }
.statement { border-left: .3em solid #0072b2; padding-left: 1em; font-size: .8em; }
@media print { @page { size: 320mm 180mm; margin: 0; } section { break-after: page; height: 180mm; } }
"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style>
<script>MathJax = {{ tex: {{ macros: {macros} }} }};</script>
<script defer src="{mathjax}/tex-mml-chtml.js"></script></head><body>{slides}</body></html>
"""
ITEM = re.compile(
    r"(?m)^## (?P<section>.+)"
    r"|^(?P<fence>`{3,})\{(?:(?P<figure>figure)|prf:(?:definition|theorem|proposition|corollary|lemma))\} "
    r"(?P<title>.+)\n(?P<words>(?s:.*?))^(?P=fence)[ \t]*$"
    r"|^% slide: (?P<tagged>.+)\n(?P<told>(?s:.*?))^% end of slide$"
    r"|^\*\*(?P<example>By hand|With a pencil)\.\*\* (?P<lines>.+(?:\n\n(?:- |Let ).+(?:\n- .+)*)*)"
)
# After a colon the answer goes on with a list and a program.
ANSWER = re.compile(r"\*\*The answer first\.\*\* (.+(?:(?<=:)\n(?:\n(?:- .+(?:\n- .+)*|```\w+\n(?s:.*?)\n```)\n?)+)?)")
CHAPTER = re.compile(r'<section id="(\w+)"><h1>(.+)</h1>')
BOX = re.compile(r"(?m)^(`{3,})\{prf:\w+\} (.+)\n((?s:.*?))^\1$")
LABEL = re.compile(r"(?m)^:label: ([\w-]+)$|^\$\$ \((eq-[\w-]+)\)$")
PLACE = re.compile(r"(?m)^\(([\w-]+)\)=\n(?=(?:\([\w-]+\)=\n)*#+ (.+)$)")
LINK = re.compile(r"\{(?:(?:prf:)?ref|eq)\}`([\w-]+)`")
VALUE = re.compile(r"\{\{ *([\w.]+) *\}\}")
# Symbols on slides: a letter with its mark and its index. These have one meaning in the whole book.
COMMON = {*"ZSzsnijPExydeON", "rho", "k Z", "k S", "P Z", "P S", "P Z,S", "P Z|S", "P Z| S"}
GREEK = "alpha|beta|chi|delta|Delta|ell|eta|gamma|kappa|lambda|mu|nu|omega|phi|psi|rho|sigma|Sigma|tau|theta|xi|zeta"
GREEK += "|varepsilon|varphi"
MARK = "tilde|hat|bar|mathcal|widehat"
NAME = re.compile(
    rf"(?:\\({MARK}) ?)?(?:\\({GREEK})(?![a-zA-Z])|(?<![a-zA-Z])([a-zA-Z])(?![a-zA-Z]))"
    r"(?:_(?:(\w)|\\(ell)|\{([^{}]*)\}))?"
)
OTHER = re.compile(
    r"_\{\\text\{[^{}]*\}\}|\\(?:text|mathrm|operatorname|begin|end)\{[^{}]*\}"
    rf"|\\(?!(?:{MARK}|{GREEK})(?![a-zA-Z]))[a-zA-Z]+(?:_\w)?"
)
FORMULA = r"\\\((.+?)\\\)"
LET = re.compile(
    r"\b(?:[Ll]et|[Ww]rite|[Cc]hoose|[Tt]he|[Aa]n?|least|values|eigenvalues|eigenfunctions|functions)\b"
    rf"(?: \(?[a-z’*-]+\)?){{0,4}} {FORMULA}(?:(?:,|,? and) {FORMULA})?"
    rf"|{FORMULA}(?= (?:be|is|are|has|have|likewise|for)\b)|\({FORMULA}\)"
)
EVERY = re.compile(rf"\b(?:[Ee]very|[Ee]ach|[Aa]ny|[Aa]ll|some)\b(?: [a-z’-]+){{0,3}} {FORMULA}")
FIRST = re.compile(r"(?:\A|\n|&|,)\s*([^=<>]{1,40}?):?(?:=|\\sim)|\\(?:sup|sum|prod|max|min)_\{?(\w|\\ell)")
MARKDOWN = MarkdownIt("commonmark").enable("table").use(
    dollarmath_plugin, double_inline=True, renderer=lambda text, how: (r"\[{}\]" if how["display_mode"] else r"\({}\)")
    .format(escape(text)))  # fmt: skip


def html(text: str) -> str:
    r"""Return MyST as HTML, with the words of its roles and without the options of its directives.

    Examples
    --------
    >>> html("The {term}`head <Head>` maps $a<b$, see {prf:ref}`thm-4-5`.")
    '<p>The head maps <span class="math inline">\\(a&lt;b\\)</span>, see thm-4-5.</p>\n'
    """
    text = ROLE.sub(r"\1", text)
    text = re.sub(r"(?m)^(?::[\w-]+:.*|%.*|\([\w-]+\)=)\n", "", text)
    text = re.sub(r"(?m)^(\$\$) \([\w-]+\)$", r"\1", text)
    return MARKDOWN.render(text)


def pages() -> list[Path]:
    """Return the chapters, and the pages without code that have a text for a slide, in the order of the contents."""
    names = re.findall(r"file: ((?:notebooks|book)/[\w/]+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = [ROOT / (f"{name}.ipynb" if name.startswith("notebooks") else f"{name}.md") for name in names]
    return [path for path in paths if path.suffix == ".ipynb" or "\n% slide: " in path.read_text(encoding="utf-8")]


@cache
def labels() -> dict[str, str]:
    """Return what stands for a label: the number of a statement in the paper, or the title of a box or a section."""
    text = "\n".join(path.with_suffix(".md").read_text(encoding="utf-8") for path in chapters())
    return {label: f"“{title}”" for label, title in PLACE.findall(text)} | {
        first or second: paper_number(title) or f"“{without_labels(title)}”"
        for _, title, words in BOX.findall(text)
        for first, second in LABEL.findall(words)
    }


def slides_of(path: Path, values: dict[str, Any]) -> list[str]:
    """Return the slides of an executed notebook or a page, with the numbers that its prose takes from ``values``."""
    captions = {name: caption for name, caption, _ in figures(path)}
    prose = path.read_text(encoding="utf-8") if path.suffix == ".md" else ""
    for cell in nbformat.read(path, as_version=4).cells if path.suffix == ".ipynb" else []:
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        if cell.cell_type == "markdown":
            prose += f"{cell.source}\n\n"
        elif name in captions:
            prose += f"```{{figure}} {name}\n{captions[name]}\n```\n\n"
        else:  # printed items are short; any other line is a paragraph of its own
            printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
            printed = re.sub(r"(?m)^(- .+?\.) [A-Z\d].*$", r"\1", printed)
            prose += re.sub(r"(?m)^(?!- )", "\n", printed) + "\n\n"
    names = labels()
    prose = LINK.sub(lambda found: names.get(found[1], found[0]), re.sub(r" ?\{cite:\w+\}`[^`]*`", "", prose))
    prose = VALUE.sub(lambda found: str(reduce(getitem, found[1].split("."), values)), prose)
    prose = prose.replace("(see the fold)", "(see the next slide)")  # the fold is tagged, too
    title = re.search(r"(?m)^# (.+)$", prose)
    answer = ANSWER.search(prose)
    section = chapter = title[1] if title else path.stem
    slides = [f'<section id="{path.stem}">{html(f"# {chapter}")}{html(answer[1]) if answer else ""}</section>']
    for item in ITEM.finditer(prose):
        if item["section"]:
            section = item["section"]
            continue
        told = re.sub(r"(?m)^(- \*\*[^*]+\.\*\* .+?\.) .+$", r"\1", item["told"] or "")
        words = html(told or item["lines"] or item["words"])
        head = item["tagged"] or item["example"] or without_labels(item["title"])
        body = f'<div class="statement">{words}</div>'
        if item["figure"]:
            alt = escape(plain(ROLE.sub(r"\1", item["words"]).replace("$", "")), quote=True)
            image = f'<img alt="{alt}" src="figures/{item["title"]}.png">'
            head, body = section, f'{image}<div class="caption">{words}</div>'
        kind = "" if item["figure"] or item["tagged"] or item["example"] else ' class="box"'
        slides.append(f"<section{kind}>{html(f'## {head}')}{body}<footer>{escape(chapter)}</footer></section>")
    return slides


def symbols(formula: str) -> list[str]:
    r"""Return the symbols of a formula, in their order; all small letters and numbers are one index.

    Examples
    --------
    >>> symbols(r"\hat\lambda_m\le\norm{\Delta_\ell}^2\HSIC(Z,k_S)")
    ['hat lambda index', 'Delta index', 'Z', 'k S']
    """
    found = []
    for mark, greek, letter, *below in NAME.findall(OTHER.sub(" ", formula.replace(r"\mid", "|"))):
        index = re.sub(r"^(?:[a-z]{1,2}|\d+|ell)$", "index", "".join(below)).split("=")[0]
        found.append(f"{mark} {greek}{letter} {index}".strip())
    return found


def unexplained(slides: list[str]) -> dict[str, list[str]]:
    """Return the symbols on each slide with a statement that neither this slide nor one before it introduces.

    ``Let a be``, ``the function a`` and ``a=b`` introduce ``a``. Once ``a`` is known, so are ``a_Z`` and ``a_S``.
    """
    known, found = set(COMMON), {}
    for slide in slides:
        text = unescape(re.sub(r"<[^>]+>", "", slide))
        formulas = [one or other for one, other in re.findall(rf"(?s){FORMULA}|\\\[(.+?)\\\]", text)]
        let = [formula for groups in LET.findall(text) for formula in groups]
        known.update(name for formula in let for name in symbols(formula) + re.findall(r"_\{?(\w)\b", formula))
        first = EVERY.findall(text) + ["".join(pair) for formula in formulas for pair in FIRST.findall(formula)]
        known.update(name for formula in first for name in symbols(formula)[:1])
        used = {name for formula in formulas for name in symbols(formula)} - known
        left = sorted(name for name in used if re.sub(" [ZS]$", "", name) not in known)
        if left and 'class="box"' in slide:
            found[re.findall("<h2>(.+?)</h2>", slide)[0]] = left
    return found


def write(out: Path, paths: list[Path], values: dict[str, Any], *, mathjax: str) -> None:
    """Write the slides of the chapters into a folder; ``mathjax`` is the address of that folder from the page."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    macros = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"][0]
    authors = " and ".join(f"{author['given-names']} {author['family-names']}" for author in paper["authors"])
    slides = [slide for path in paths for slide in slides_of(path, values)]
    links = "\n".join(f"- [{words}](#{name})" for name, words in CHAPTER.findall("".join(slides)))
    first = html(f"# {config['title']}\n\nThe executable edition of *{paper['title']}* by {authors}")
    contents = f"<h1>Contents</h1><nav>{html(links)}</nav>"
    slides = [f"<section>{first}</section>", f"<section>{contents}</section>", *slides]
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, _, picture in (figure for path in paths for figure in figures(path)):
        (out / "figures" / f"{name}.png").write_bytes(picture)
    options = {"style": STYLE, "macros": json.dumps(macros), "mathjax": mathjax}
    page = PAGE.format(title=escape(config["title"]), slides="\n".join(slides), **options)
    (out / "index.html").write_text(page, encoding="utf-8")
    print(f"{len(slides)} slides: {out / 'index.html'}")


def _add_to_book(app: Any, exception: Exception | None) -> None:
    if not exception and app.builder.format == "html":
        write(Path(app.outdir) / "_static" / "slides", pages(), app.config.myst_substitutions, mathjax="../mathjax")


def setup(app: Any) -> dict[str, bool]:
    """Add the slides to the built book, beside its other files."""
    app.connect("build-finished", _add_to_book)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    from frhsic_core.paper.page_values import page_values

    target = ROOT / "_build" / "slides"
    copy_mathjax(target / "mathjax")
    write(target, [Path(name) for name in sys.argv[1:]] or pages(), page_values(), mathjax="mathjax")
