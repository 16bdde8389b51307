"""Make slides from the chapters, for the built book or by ``python book/_ext/make_slides.py``.

A chapter gives a slide with its opening (the text between ``% opening`` and ``% end of opening``)
and, in its own order, one for each definition, statement and figure, for each example (``% example:
TITLE``, ``% end of example``), and for each text between the comments ``% slide: TITLE`` and ``%
end of slide``, which may contain what a cell prints (the first sentence of a printed item). A long
text is cut into several slides. A page without code gives slides, too, if it has such a text. A
slide's name is the label of its box or figure, or its title. By this name ``book/slides.yml`` gives
a slide a title, a caption or a note of its own. For the talk and each week in ``book/teaching.md``
there is a page with the slides that the comments below its heading name. A page is plain HTML that
needs no network, and printing gives one slide a page. The folder ``figures`` has every figure as a
PNG.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache, reduce
from html import escape, unescape
from itertools import pairwise
from operator import getitem
from pathlib import Path
from string import Template
from typing import Any

import nbformat
import yaml
from alt_text import plain
from count_words import ROLE, ROOT, chapters, words
from gallery import figures, first_sentence
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from paper_boxes import paper_number

ITEM = re.compile(
    r"(?m)^(?P<fence>`{3,})"
    r"\{(?:(?P<figure>figure)|prf:(?:definition|theorem|proposition|corollary|lemma))\} "
    r"(?P<title>.+)\n(?P<words>(?s:.*?))^(?P=fence)[ \t]*$"
    r"|^% slide: (?P<tagged>.+)\n(?P<told>(?s:.*?))^% end of slide$"
    r"|^% example: (?P<example>.+)\n(?P<lines>(?s:.*?))^% end of example$"
)
OPENING = re.compile(r"(?m)^% opening\n((?s:.*?))^% end of opening$")
CHAPTER = re.compile(r'<section id="(\w+)"><h1>(.+?)(?: \(1 of \d\))?</h1>')
MOST = 140  # words on a slide
DECK = re.compile(
    r"(?m)^#+ (?P<title>.+)\n\n% slides: (?P<name>.+)\n(?P<parts>(?:% .+\n)+)\n"
    r"(?P<items>(?:- .+\n(?:\n*  .+\n)*)+)"
)
# With the lines that are indented below it.
POINT = re.compile(r"(?m)^- \*([^*]+)\.\* (.+(?:\n+  .+)*)$")
BOX = re.compile(r"(?m)^(`{3,})\{prf:\w+\} (.+)\n((?s:.*?))^\1$")
PART = re.compile(r"\{ref\}`([^`<]+) <((explorer|homework)-\w+)>`")  # of another page of the book
LABEL = re.compile(r"(?m)^:label: ([\w-]+)$|^\$\$ \((eq-[\w-]+)\)$")
OWN: dict[str, dict[str, str]] = yaml.safe_load(
    (ROOT / "book" / "slides.yml").read_text(encoding="utf-8")
)
PAPER = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"][0]
AUTHORS = " and ".join(
    f"{author['given-names']} {author['family-names']}" for author in PAPER["authors"]
)
EDITION = f"The executable edition of *{PAPER['title']}* by {AUTHORS}"
TITLE = re.compile(r"(?m)^# (.+)$")
PLACE = re.compile(r"(?m)^\(([\w-]+)\)=\n(?=(?:\([\w-]+\)=\n)*#+ (.+)$)")
LINK = re.compile(r"\{(?:(?:prf:)?ref|eq|chapter)\}`([\w-]+)`")
VALUE = re.compile(r"\{\{ *([\w.]+) *\}\}")
# Symbols on slides: a letter with its mark and its index. These have one meaning in the whole book.
COMMON = {*"ZSzsnijPExydeON", "rho", "k Z", "k S", "P Z", "P S", "P Z,S", "P Z|S", "P Z| S"}
GREEK = (
    "alpha|beta|chi|delta|Delta|ell|eta|gamma|kappa|lambda|mu|nu|omega|phi|psi|rho|sigma|Sigma|tau"
    "|theta|xi|zeta|varepsilon|varphi"
)
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
    r"\b(?:[Ll]et|[Ww]rite|[Cc]hoose|[Tt]he|[Aa]n?|least|values|eigenvalues|eigenfunctions"
    r"|functions|have)\b"
    rf"(?: \(?[a-z’*-]+\)?){{0,4}} {FORMULA}(?:(?:,|,? and) {FORMULA})?"
    rf"|{FORMULA}(?= (?:be|is|are|has|have|likewise|for)\b)|\({FORMULA}\)"
)
EVERY = re.compile(rf"\b(?:[Ee]very|[Ee]ach|[Aa]ny|[Aa]ll|some)\b(?: [a-z’-]+){{0,3}} {FORMULA}")
FIRST = re.compile(
    r"(?:\A|\n|&|,)\s*([^=<>]{1,40}?):?(?:=|\\sim)|\\(?:sup|sum|prod|max|min)_\{?(\w|\\ell)"
)


def _formula(text: str, how: dict[str, Any]) -> str:
    """Return a formula between the brackets that MathJax reads."""
    if how["display_mode"]:
        return rf"\[{escape(text)}\]"
    return rf"\({escape(text)}\)"


MARKDOWN = MarkdownIt("commonmark").enable("table")
MARKDOWN.use(dollarmath_plugin, double_inline=True, renderer=_formula)


def clean(text: str) -> str:
    """Return MyST as Markdown: words in place of roles; no labels, comments and options."""
    text = re.sub(r"(?m)^(?::[\w-]+:.*|%.*|\([\w-]+\)=)\n", "", ROLE.sub(r"\1", text))
    return re.sub(r"(?m)^(\$\$) \([\w-]+\)$", r"\1", text)


def html(text: str) -> str:
    r"""Return MyST as HTML.

    Examples
    --------
    >>> html("The {term}`head <Head>` maps $a<b$, see {prf:ref}`thm-4-5`.")
    '<p>The head maps <span class="math inline">\\(a&lt;b\\)</span>, see thm-4-5.</p>\n'
    """
    return MARKDOWN.render(clean(text))


def cut(text: str) -> list[str]:
    r"""Return MyST in as few parts of at most ``MOST`` words as possible.

    No part is much longer than the others. A part starts with a paragraph or an item, not with a
    formula or after a colon. A longer paragraph stays whole.

    Examples
    --------
    >>> [words(part) for part in cut("Three things:\n\n" + 3 * f"- {'word. ' * 50}\n")]
    [52, 100]
    """
    lines = clean(text).splitlines(keepends=True)
    starts = [0, *_starts_of_blocks(lines), len(lines)]
    blocks = ["".join(lines[start:end]) for start, end in pairwise(starts)]
    sizes = [words(block) for block in blocks]
    limits = range(max(sizes), max(MOST, *sizes) + 1)
    places = min((_places(sizes, limit) for limit in limits), key=len)
    return ["".join(blocks[start:end]) for start, end in pairwise(places)]


def _starts_of_blocks(lines: list[str]) -> list[int]:
    """Return the lines, after the first one, at which a part of a text may start."""
    found = set()
    for token in MARKDOWN.parse("".join(lines)):
        if not token.map or token.type == "math_block":
            continue
        deepest = 1 if token.type == "list_item_open" else 0
        start = token.map[0]
        before = "".join(lines[:start]).rstrip()
        ends_a_sentence = before[-1:] in ".!?)$`|"
        if token.level <= deepest and ends_a_sentence and not lines[start][0].islower():
            found.add(start)
    return sorted(found - {0})


def _places(sizes: list[int], limit: int) -> list[int]:
    """Return where parts of at most ``limit`` words start and end; the last are the longest."""
    found = [len(sizes)]
    size = 0
    for number in reversed(range(len(sizes))):
        if size and size + sizes[number] > limit:
            found.insert(0, number + 1)
            size = 0
        size += sizes[number]
    return [0, *found]


def deal(
    name: str, head: str, bodies: list[str], kind: str = "", footer: str = "", note: str = ""
) -> list[str]:
    """Return one slide for each body; the first has the name.

    If there are several, the heading has their number.
    """
    own = OWN.get(name, {})
    if "title" in own:
        marks, *_ = head.split()
        head = f"{marks} {own['title']}"
    last = f"<aside>{html(own.get('note', '') + note)}</aside><footer>{escape(footer)}</footer>"
    slides = []
    for number, body in enumerate(bodies, 1):
        count = f" ({number} of {len(bodies)})" if len(bodies) > 1 else ""
        place = f' id="{name}"' if number == 1 else ""
        slides.append(f"<section{place}{kind}>{html(head + count)}{body}{last}</section>")
    return slides


def pages() -> list[Path]:
    """Return the chapters, and the pages without code that have a text for a slide, in order."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    found = []
    for name in re.findall(r"file: ((?:notebooks|book)/[\w/]+)", contents):
        if name.startswith("notebooks"):
            found.append(ROOT / f"{name}.ipynb")
            continue
        page = ROOT / f"{name}.md"
        if "\n% slide: " in page.read_text(encoding="utf-8"):
            found.append(page)
    return found


@cache
def labels() -> dict[str, str]:
    """Return what stands for a label: the number of a statement in the paper, or a title."""
    found = {}
    whole = ""
    for path in chapters():
        text = path.with_suffix(".md").read_text(encoding="utf-8")
        whole += f"{text}\n"
        title = TITLE.search(text)
        if title:
            found[path.stem] = f"“{title[1]}”"
    for label, title_of_section in PLACE.findall(whole):
        found[label] = f"“{title_of_section}”"
    for _, title_of_box, inside in BOX.findall(whole):
        for of_directive, of_equation in LABEL.findall(inside):
            number = paper_number(title_of_box)
            found[of_directive or of_equation] = number or f"“{title_of_box}”"
    return found


def filled(text: str, values: dict[str, Any]) -> str:
    """Return a text with numbers for their names, titles for labels, and without citations."""
    text = re.sub(r",? ?\{cite:\w+\}`[^`]*`", "", text)
    text = LINK.sub(lambda found: labels().get(found[1], found[0]), text)
    return VALUE.sub(lambda found: str(reduce(getitem, found[1].split("."), values)), text)


def prose_of(path: Path) -> str:
    """Return the text of a page, or of a notebook with its figures and what it prints."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    captions = {name: caption for name, caption, _ in figures(path)}
    prose = ""
    for cell in nbformat.read(path, as_version=4).cells:
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        if cell.cell_type == "markdown":
            prose += f"{cell.source}\n\n"
        elif name in captions:
            prose += f"```{{figure}} {name}\n{captions[name]}\n```\n\n"
        else:
            prose += f"{printed_by(cell)}\n\n"
    return prose


def printed_by(cell: nbformat.NotebookNode) -> str:
    """Return what a cell prints: of an item the first sentence, any other line as a paragraph."""
    streams = [output.text for output in cell.outputs if output.output_type == "stream"]
    printed = re.sub(r"(?m)^(- .+?\.) [A-Z\d].*$", r"\1", "".join(streams))
    return re.sub(r"(?m)^(?!- )", "\n", printed)


def slides_of(path: Path, values: dict[str, Any]) -> list[str]:
    """Return the slides of an executed notebook or a page, with numbers from ``values``."""
    prose = filled(prose_of(path), values)
    title = TITLE.search(prose)
    chapter = title[1] if title else path.stem
    opening = OPENING.search(prose)
    first = cut(opening[1] if opening else "")
    slides = deal(path.stem, f"# {chapter}", [html(part) for part in first])
    names: Counter[str] = Counter()
    for item in ITEM.finditer(prose):
        head = item["tagged"] or item["example"] or item["title"]
        told = item["told"] or item["lines"] or item["words"]
        name = _name_of(item, head, told, path.stem)
        names[name] += 1
        if names[name] > 1:
            name = f"{name}-{names[name]}"
        kind = ""
        note = ""
        if item["figure"]:
            bodies = [_figure(head, told)]
            note = f"\n\n{told}"
        else:
            bodies = [f'<div class="statement">{html(part)}</div>' for part in cut(told)]
            if item["fence"]:
                kind = ' class="box"'
        slides += deal(name, f"## {head}", bodies, kind=kind, footer=chapter, note=note)
    return slides


def _name_of(item: re.Match[str], head: str, told: str, chapter: str) -> str:
    """Return the label of a box or a figure, or a name from its title."""
    label = re.search(r"(?m)^:label: (.+)$", told)
    name = label[1] if label else re.sub(r"\W+", "-", head.lower()).strip("-")
    if item["example"]:
        return f"{chapter}-{name}"
    return name


def _figure(name: str, caption: str) -> str:
    """Return a picture with its first sentence, or with a caption of its own."""
    alt = escape(plain(ROLE.sub(r"\1", caption).replace("$", "")), quote=True)
    words_below = html(OWN.get(name, {}).get("caption", first_sentence(caption)))
    return f'<img alt="{alt}" src="figures/{name}.png"><div class="caption">{words_below}</div>'


def decks(slides: list[str], values: dict[str, Any], book: str = "../html") -> dict[str, list[str]]:
    """Return the slides of the talk and of each week in ``book/teaching.md``, by name of the page.

    A comment has a session, minutes, a topic and names of slides, with a star if they are optional;
    with a capital letter they are items of the week or of the talk. The answer to a vote, in
    parentheses, has a slide of its own. ``book`` is the address of the book.
    """
    every_slide = "".join(slides)
    named = r'(?s)(?=<section id="([\w-]+)")(.+?)(?=<section id=|\Z)'
    known = {}
    for name, slide in re.findall(named, every_slide):
        known[name] = slide
        known[f"{name}*"] = slide.replace("<footer>", "<footer>Optional: ")

    def address(place: re.Match[str]) -> str:
        words_of_link, label, kind = place.groups()
        page = kind.replace("explorer", "explorers")
        return f"[{words_of_link}]({book}/book/{page}.html#{label})"

    text = filled((ROOT / "book" / "teaching.md").read_text(encoding="utf-8"), values)
    text = PART.sub(address, text)
    _, _, of_talk = text.partition("% slides: talk\n")
    found = {}
    for deck in DECK.finditer(text):
        points = POINT.findall(deck["items"])
        here = dict(known)
        for name, told in (*POINT.findall(of_talk), *points):
            bodies = [html(one) for one in re.split(r"\n\n  \((.+)\)$", told) if one]
            short = name.split()[-1].lower()
            here[name] = "".join(deal(short, f"## {name}", bodies))
        headings = re.findall("(?m)^## (.+)$", text[: deck.start("name")])
        course = headings[-1].replace(deck["title"], "")
        goal, told_of_goal = points[0]
        shown = deal(deck["name"], f"# {deck['title']}", [html(f"{course}\n\n{EDITION}")])
        shown += deal("goals", f"## {goal}", [html(told_of_goal)])
        found[deck["name"]] = shown + _sessions(deck, here)
    return found


def _sessions(deck: re.Match[str], known: dict[str, str]) -> list[str]:
    """Return the slides of the sessions of a deck: for each its plan, then those that it names."""
    rows = re.findall(r"% (.+?), (\S+), (.+?)(?:: (.+))?\n", deck["parts"])
    shown = []
    for session in dict.fromkeys(session for session, *_ in rows):
        own = [row for row in rows if row[0] == session]
        plan = "".join(f"- minutes {minutes}: {topic}\n" for _, minutes, topic, _ in own)
        title = session.capitalize()
        shown += deal(session.replace(" ", "-"), f"# {title}", [html(plan)])
        for _, minutes, topic, names in own:
            footer = f"<footer>{title}, {minutes}: {topic}. "
            for name in names.split(", ") if names else ():
                if name not in known:
                    raise ValueError(
                        f"book/teaching.md: no slide has the name {name} in {deck['name']}"
                    )
                shown.append(known[name].replace("<footer>", footer))
    return shown


def symbols(formula: str) -> list[str]:
    r"""Return the symbols of a formula, in order; all small letters and numbers are one index.

    Examples
    --------
    >>> symbols(r"\hat\lambda_m\le\norm{\Delta_\ell}^2\HSIC(Z,k_S)")
    ['hat lambda index', 'Delta index', 'Z', 'k S']
    """
    found = []
    for mark, greek, letter, *below in NAME.findall(OTHER.sub(" ", formula.replace(r"\mid", "|"))):
        index = re.sub(r"^(?:[a-z]{1,2}|\d+|ell)$", "index", "".join(below))
        index, _, _ = index.partition("=")
        found.append(f"{mark} {greek}{letter} {index}".strip())
    return found


def unexplained(slides: list[str]) -> dict[str, list[str]]:
    """Return the symbols that neither a slide with a statement nor one before it introduces.

    ``Let a be``, ``the function a`` and ``a=b`` introduce ``a``. Once ``a`` is known, so are
    ``a_Z`` and ``a_S``.
    """
    known = set(COMMON)
    found = {}
    for slide in slides:
        text = unescape(re.sub(r"<[^>]+>", "", slide))
        used = set()
        for in_line, displayed in re.findall(rf"(?s){FORMULA}|\\\[(.+?)\\\]", text):
            formula = in_line or displayed
            used |= set(symbols(formula))
            for left_side, bound in FIRST.findall(formula):
                known |= set(symbols(left_side + bound)[:1])
        for groups in LET.findall(text):
            for formula in groups:
                known |= {*symbols(formula), *re.findall(r"_\{?(\w)\b", formula)}
        for formula in EVERY.findall(text):
            known |= set(symbols(formula)[:1])
        left = [name for name in used - known if re.sub(" [ZS]$", "", name) not in known]
        if left and 'class="box"' in slide:
            title, *_ = re.findall("<h2>(.+?)</h2>", slide)
            found[title] = sorted(left)
    return found


def write(out: Path, values: dict[str, Any], *, mathjax: str, book: str = "../html") -> None:
    """Write the slides into a folder; ``mathjax`` and ``book`` are addresses from its pages."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    macros = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    slides: list[str] = []
    for path in pages():
        slides += slides_of(path, values)
    links = "\n".join(f"- [{title}](#{name})" for name, title in CHAPTER.findall("".join(slides)))
    first = html(f"# {config['title']}\n\n{EDITION}")
    whole = [
        f"<section>{first}</section>",
        f"<section><h1>Contents</h1><nav>{html(links)}</nav></section>",
        *slides,
    ]
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for path in pages():
        for name, _, picture in figures(path):
            (out / "figures" / f"{name}.png").write_bytes(picture)
    template = Template((ROOT / "book" / "_templates" / "slides.html").read_text(encoding="utf-8"))
    options = {"macros": json.dumps(macros), "mathjax": mathjax}
    every_deck = {"index": whole, **decks(slides, values, book)}
    for name, deck in every_deck.items():
        title, *_ = re.findall("<h1>(.+?)</h1>", deck[0])
        page = template.substitute(title=title, slides="\n".join(deck), **options)
        target = out / f"{name}.html"
        target.write_text(page, encoding="utf-8")
        print(f"{page.count('<section')} slides: {target}")


if __name__ == "__main__":
    from mathjax import copy_mathjax

    from frhsic_core.paper.page_values import page_values

    target = ROOT / "_build" / "slides"
    copy_mathjax(target / "mathjax")
    write(target, page_values(), mathjax="mathjax")
