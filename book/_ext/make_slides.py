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
    r"(?m)^(?P<fence>`{3,})\{(?:(?P<figure>figure)|prf:(?:definition|theorem|proposition|corollary|lemma))\} "
    r"(?P<title>.+)\n(?P<words>(?s:.*?))^(?P=fence)[ \t]*$"
    r"|^% slide: (?P<tagged>.+)\n(?P<told>(?s:.*?))^% end of slide$"
    r"|^% example: (?P<example>.+)\n(?P<lines>(?s:.*?))^% end of example$"
)
OPENING = re.compile(r"(?m)^% opening\n((?s:.*?))^% end of opening$")
CHAPTER = re.compile(r'<section id="(\w+)"><h1>(.+?)(?: \(1 of \d\))?</h1>')
MOST = 140  # words on a slide
DECK = re.compile(
    r"(?m)^#+ (?P<title>.+)\n\n% slides: (?P<name>.+)\n(?P<parts>(?:% .+\n)+)\n(?P<items>(?:- .+\n(?:\n*  .+\n)*)+)"
)
POINT = re.compile(
    r"(?m)^- \*([^*]+)\.\* (.+(?:\n+  .+)*)$"
)  # with the lines that are indented below it
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
    r"\b(?:[Ll]et|[Ww]rite|[Cc]hoose|[Tt]he|[Aa]n?|least|values|eigenvalues|eigenfunctions|functions|have)\b"
    rf"(?: \(?[a-z’*-]+\)?){{0,4}} {FORMULA}(?:(?:,|,? and) {FORMULA})?"
    rf"|{FORMULA}(?= (?:be|is|are|has|have|likewise|for)\b)|\({FORMULA}\)"
)
EVERY = re.compile(rf"\b(?:[Ee]very|[Ee]ach|[Aa]ny|[Aa]ll|some)\b(?: [a-z’-]+){{0,3}} {FORMULA}")
FIRST = re.compile(
    r"(?:\A|\n|&|,)\s*([^=<>]{1,40}?):?(?:=|\\sim)|\\(?:sup|sum|prod|max|min)_\{?(\w|\\ell)"
)
MARKDOWN = MarkdownIt("commonmark").enable("table").use(
    dollarmath_plugin, double_inline=True, renderer=lambda text, how: (r"\[{}\]" if how["display_mode"] else r"\({}\)")
    .format(escape(text)))  # fmt: skip


def clean(text: str) -> str:
    """Return MyST as Markdown, with the words of its roles and without labels, comments and options of directives."""
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
    r"""Return MyST in as few parts of at most ``MOST`` words as possible, none much longer than the others.

    A part starts with a paragraph or an item, not with a formula or after a colon. A longer
    paragraph stays whole.

    Examples
    --------
    >>> [words(part) for part in cut("Three things:\n\n" + 3 * f"- {'word. ' * 50}\n")]
    [52, 100]
    """
    lines = clean(text).splitlines(keepends=True)
    starts = {0}
    for token in MARKDOWN.parse("".join(lines)):
        if (
            token.map
            and token.type != "math_block"
            and token.level <= (token.type == "list_item_open")
        ):
            before = "".join(lines[: token.map[0]]).rstrip()
            starts |= (
                {token.map[0]}
                if before[-1:] in ".!?)$`|" and not lines[token.map[0]][0].islower()
                else set()
            )
    blocks = ["".join(lines[start:end]) for start, end in pairwise([*sorted(starts), len(lines)])]
    sizes = [words(block) for block in blocks]

    def places(limit: int) -> list[int]:
        found, size = (
            [len(blocks)],
            0,
        )  # where parts start and end, the last ones as long as possible
        for number in reversed(range(len(blocks))):
            if size and size + sizes[number] > limit:
                found, size = [number + 1, *found], 0
            size += sizes[number]
        return [0, *found]

    limits = range(max(sizes), max(MOST, *sizes) + 1)
    return [
        "".join(blocks[start:end]) for start, end in pairwise(min(map(places, limits), key=len))
    ]


def deal(
    name: str, head: str, bodies: list[str], kind: str = "", footer: str = "", note: str = ""
) -> list[str]:
    """Return one slide for each body, with its number in the heading if there are several; the first has the name."""
    slides, own = [], OWN.get(name, {})
    head = f"{head.split()[0]} {own['title']}" if "title" in own else head
    last = f"<aside>{html(own.get('note', '') + note)}</aside><footer>{escape(footer)}</footer>"
    for number, body in enumerate(bodies, 1):
        count = f" ({number} of {len(bodies)})" if len(bodies) > 1 else ""
        place = f' id="{name}"' if number == 1 else ""
        slides.append(f"<section{place}{kind}>{html(head + count)}{body}{last}</section>")
    return slides


def pages() -> list[Path]:
    """Return the chapters, and the pages without code that have a text for a slide, in the order of the contents."""
    names = re.findall(
        r"file: ((?:notebooks|book)/[\w/]+)", (ROOT / "_toc.yml").read_text(encoding="utf-8")
    )
    paths = [
        ROOT / (f"{name}.ipynb" if name.startswith("notebooks") else f"{name}.md") for name in names
    ]
    return [
        path
        for path in paths
        if path.suffix == ".ipynb" or "\n% slide: " in path.read_text(encoding="utf-8")
    ]


@cache
def labels() -> dict[str, str]:
    """Return what stands for a label: the number of a statement in the paper, or the title of a box or a section."""
    texts = {path.stem: path.with_suffix(".md").read_text(encoding="utf-8") for path in chapters()}
    text = "\n".join(texts.values())
    titles = {
        stem: f"“{title[1]}”" for stem, text in texts.items() if (title := TITLE.search(text))
    }
    return titles | {label: f"“{title}”" for label, title in PLACE.findall(text)} | {
        first or second: paper_number(title) or f"“{title}”"
        for _, title, inside in BOX.findall(text)
        for first, second in LABEL.findall(inside)
    }  # fmt: skip


def filled(text: str, values: dict[str, Any]) -> str:
    """Return a text with numbers in place of their names and titles in place of labels, and without citations."""
    text = re.sub(r",? ?\{cite:\w+\}`[^`]*`", "", text)
    text = LINK.sub(lambda found: labels().get(found[1], found[0]), text)
    return VALUE.sub(lambda found: str(reduce(getitem, found[1].split("."), values)), text)


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
            printed = "".join(
                output.text for output in cell.outputs if output.output_type == "stream"
            )
            printed = re.sub(r"(?m)^(- .+?\.) [A-Z\d].*$", r"\1", printed)
            prose += re.sub(r"(?m)^(?!- )", "\n", printed) + "\n\n"
    prose = filled(prose, values)
    title, opening = TITLE.search(prose), OPENING.search(prose)
    chapter = title[1] if title else path.stem
    slides = deal(
        path.stem, f"# {chapter}", [html(part) for part in cut(opening[1] if opening else "")]
    )
    names: Counter[str] = Counter()
    for item in ITEM.finditer(prose):
        head = item["tagged"] or item["example"] or item["title"]
        told = item["told"] or item["lines"] or item["words"]
        bodies = [f'<div class="statement">{html(part)}</div>' for part in cut(told)]
        if item["figure"]:
            alt = escape(plain(ROLE.sub(r"\1", told).replace("$", "")), quote=True)
            caption = html(OWN.get(head, {}).get("caption", first_sentence(told)))
            bodies = [
                f'<img alt="{alt}" src="figures/{head}.png"><div class="caption">{caption}</div>'
            ]
        label = re.search(r"(?m)^:label: (.+)$", told)
        name = label[1] if label else re.sub(r"\W+", "-", head.lower()).strip("-")
        name = f"{path.stem}-{name}" if item["example"] else name
        names[name] += 1
        name += f"-{names[name]}" if names[name] > 1 else ""
        kind = ' class="box"' if item["fence"] and not item["figure"] else ""
        slides += deal(
            name, f"## {head}", bodies, kind, chapter, f"\n\n{told}" if item["figure"] else ""
        )
    return slides


def decks(slides: list[str], values: dict[str, Any], book: str = "../html") -> dict[str, list[str]]:
    """Return the slides of the talk and of each week in ``book/teaching.md``, by the name of the page.

    A comment has a session, minutes, a topic and names of slides, with a star if they are optional;
    with a capital letter they are items of the week or of the talk. The answer to a vote, in
    parentheses, has a slide of its own. ``book`` is the address of the book.
    """
    known = dict(
        re.findall(r'(?s)(?=<section id="([\w-]+)")(.+?)(?=<section id=|\Z)', "".join(slides))
    )
    known |= {
        f"{name}*": slide.replace("<footer>", "<footer>Optional: ") for name, slide in known.items()
    }
    text = filled((ROOT / "book" / "teaching.md").read_text(encoding="utf-8"), values)
    text = PART.sub(
        lambda to: f"[{to[1]}]({book}/book/{to[3].replace('explorer', 'explorers')}.html#{to[2]})",
        text,
    )
    found = {}
    for deck in DECK.finditer(text):
        points = POINT.findall(deck["items"])
        here = dict(known)
        for name, told in [*POINT.findall(text.partition("% slides: talk\n")[2]), *points]:
            bodies = [html(one) for one in re.split(r"\n\n  \((.+)\)$", told) if one]
            here[name] = "".join(deal(name.split()[-1].lower(), f"## {name}", bodies))
        course = re.findall("(?m)^## (.+)$", text[: deck.start("name")])[-1].replace(
            deck["title"], ""
        )
        shown = deal(deck["name"], f"# {deck['title']}", [html(f"{course}\n\n{EDITION}")])
        shown += deal("goals", f"## {points[0][0]}", [html(points[0][1])])
        rows = re.findall(r"% (.+?), (\S+), (.+?)(?:: (.+))?\n", deck["parts"])
        for part in dict.fromkeys(row[0] for row in rows):
            plan = "".join(f"- minutes {row[1]}: {row[2]}\n" for row in rows if row[0] == part)
            shown += deal(part.replace(" ", "-"), f"# {part.capitalize()}", [html(plan)])
            for _, minutes, topic, names in [row for row in rows if row[0] == part]:
                for name in filter(None, names.split(", ")):
                    if name not in here:
                        raise ValueError(
                            f"book/teaching.md: no slide has the name {name} in {deck['name']}"
                        )
                    shown.append(
                        here[name].replace(
                            "<footer>", f"<footer>{part.capitalize()}, {minutes}: {topic}. "
                        )
                    )
        found[deck["name"]] = shown
    return found


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

    ``Let a be``, ``the function a`` and ``a=b`` introduce ``a``. Once ``a`` is known, so are
    ``a_Z`` and ``a_S``.
    """
    known, found = set(COMMON), {}
    for slide in slides:
        text = unescape(re.sub(r"<[^>]+>", "", slide))
        formulas = [
            one or other for one, other in re.findall(rf"(?s){FORMULA}|\\\[(.+?)\\\]", text)
        ]
        let = [formula for groups in LET.findall(text) for formula in groups]
        known.update(
            name
            for formula in let
            for name in symbols(formula) + re.findall(r"_\{?(\w)\b", formula)
        )
        first = EVERY.findall(text) + [
            "".join(pair) for formula in formulas for pair in FIRST.findall(formula)
        ]
        known.update(name for formula in first for name in symbols(formula)[:1])
        used = {name for formula in formulas for name in symbols(formula)} - known
        left = sorted(name for name in used if re.sub(" [ZS]$", "", name) not in known)
        if left and 'class="box"' in slide:
            found[re.findall("<h2>(.+?)</h2>", slide)[0]] = left
    return found


def write(out: Path, values: dict[str, Any], *, mathjax: str, book: str = "../html") -> None:
    """Write the slides of the chapters into a folder; ``mathjax`` and ``book`` are addresses from its pages."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    macros = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    slides = [slide for path in pages() for slide in slides_of(path, values)]
    links = "\n".join(f"- [{title}](#{name})" for name, title in CHAPTER.findall("".join(slides)))
    first = html(f"# {config['title']}\n\n{EDITION}")
    whole = [
        f"<section>{first}</section>",
        f"<section><h1>Contents</h1><nav>{html(links)}</nav></section>",
        *slides,
    ]
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, _, picture in (figure for path in pages() for figure in figures(path)):
        (out / "figures" / f"{name}.png").write_bytes(picture)
    template = Template((ROOT / "book" / "_templates" / "slides.html").read_text(encoding="utf-8"))
    options = {"macros": json.dumps(macros), "mathjax": mathjax}
    for name, deck in ({"index": whole} | decks(slides, values, book)).items():
        page = template.substitute(
            title=re.findall("<h1>(.+?)</h1>", deck[0])[0], slides="\n".join(deck), **options
        )
        (out / f"{name}.html").write_text(page, encoding="utf-8")
        print(f"{page.count('<section')} slides: {out / f'{name}.html'}")


if __name__ == "__main__":
    from mathjax import copy_mathjax

    from frhsic_core.paper.page_values import page_values

    target = ROOT / "_build" / "slides"
    copy_mathjax(target / "mathjax")
    write(target, page_values(), mathjax="mathjax")
