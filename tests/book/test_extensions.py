"""The extensions that look things up while the book is built."""

from __future__ import annotations

import doctest
import io
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import zipfile
from html import unescape
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from docutils import nodes
from PIL import Image

from frhsic_core import Gaussian
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.stored import book_folder, recorded_certificates

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")

    def load(name: str) -> ModuleType:
        return __import__(name)

    return load


def test_a_picture_takes_its_caption_unless_it_has_words(extension) -> None:
    page = nodes.document(None, None)
    for given in ({}, {"alt": "Its own words"}):
        page += nodes.figure(
            "", nodes.image(uri="a.png", **given), nodes.caption("", "What  is shown.")
        )
    extension("alt_text")._describe(None, page, "a")
    assert [image["alt"] for image in page.findall(nodes.image)] == [
        "What is shown.",
        "Its own words",
    ]


def test_the_archive_has_what_chapters_read_and_no_solutions(
    extension, tmp_path: Path, monkeypatch
) -> None:
    assets = extension("offline_assets")
    assets.pack(ROOT, assets.CHAPTERS, tmp_path / "chapters.zip")
    shutil.unpack_archive(tmp_path / "chapters.zip", tmp_path)
    pages = [*(tmp_path / "chapters").rglob("*.ipynb"), *(tmp_path / "chapters").rglob("*.md")]
    texts = {
        path.relative_to(tmp_path / "chapters"): path.read_text(encoding="utf-8") for path in pages
    }
    assert {path: text for path, text in texts.items() if "{dropdown} Solution" in text} == {}
    homework, starters = (
        texts[Path("book/homework.md")],
        [path for path in texts if "homework" in path.parts],
    )
    assert not re.search(
        r"\{[a-z:]+\}`|`make |href=|repository is", homework + texts[Path("README.md")]
    )
    assert homework.count("**Coding task: ") == len(starters) == 5
    monkeypatch.chdir(tmp_path / "chapters" / "notebooks")
    monkeypatch.delenv("FRHSIC_BOOK", raising=False)
    for name in (
        "results/main.parquet",
        "claims/cells.csv",
        "proofs/statements.csv",
        "_static/credit_model.py",
    ):
        assert book_folder(name).samefile(tmp_path / "chapters" / "book" / name)


def test_every_claim_named_for_the_authors_is_on_record() -> None:
    """Every point names evidence that exists, and is short."""
    rows = recorded_certificates()
    text = (ROOT / "book" / "for_the_authors.md").read_text(encoding="utf-8")
    points = re.findall(r"(?m)^### (.+)\n((?:.*\n)+?)(?=^#|\Z)", text)
    assert len(points) > 20
    for title, body in points:
        paper, differs, evidence, asked, *_, last = body.strip().split("\n\n")
        assert paper.startswith("*In the paper:*"), title
        assert asked.startswith(("*Suggestion:*", "*Question:*")), title
        assert max(len(part.split()) for part in (differs, evidence)) <= 70, title
        assert last.startswith("*Shown by:*"), title
        claims = re.findall("“(.+?)”", last)
        assert [
            words for words in claims if not any(words in row["claim"] for row in rows)
        ] == [], title
        files = re.findall("`(.+?)`", last)
        assert claims or files, title
        assert [
            name
            for name in files
            if not (ROOT / name).is_file() and not (ROOT / f"{name}.md").is_file()
        ] == []


def test_own_runs_are_averaged_over_splits(extension) -> None:
    frame = pd.DataFrame(
        {
            "dataset": "crime", "variant": "reference", "task": "regression", "protocol": "reference", "option": "",
            "method": ["unfair", "unfair", "frhsic", "frhsic"], "lam": [0.0, 0.0, 1.0, 1.0], "split": [1, 2, 1, 2],
            "performance": [0.2, 0.4, 0.5, 0.7], "gdp_sample": [1.0, 3.0, 0.5, np.nan],
        }
    )  # fmt: skip
    data = extension("frontier_data").own_runs(frame)
    part = data["datasets"]["crime"]
    assert (part["higher"], part["perf_name"]) == (False, "mse")
    spread = round(0.1 * 2**0.5, 5)  # of two values that differ by 0.2
    unfair = {
        "lam": 0.0,
        "perf": 0.3,
        "gdp_sample": 2.0,
        "perf_sd": spread,
        "gdp_sample_sd": round(2**0.5, 5),
    }
    assert part["unfair"] == unfair
    chosen = {"lam": 1.0, "perf": 0.6, "gdp_sample": 0.5, "perf_sd": spread, "gdp_sample_sd": None}
    assert part["methods"] == {"frhsic": [chosen]}
    assert list(data["metrics"]) == ["gdp_sample"]


def test_data_cannot_end_the_script_element(extension, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "</script><script>alert(1)</script><!--"
    source = {"title": "runs", "metrics": {"gdp": "GDP"}, "datasets": {"d": {"methods": {"m": []}}}}
    data = {"sources": {"own": source}, "titles": {"d": hostile}, "names": {"m": hostile}}
    explorers = extension("explorers")
    monkeypatch.setattr(explorers, "frontier_data", lambda: data)
    inputs, extra = explorers.frontier_parts()
    written = re.fullmatch(r'(?s)<script type="application/json">([^<]*)</script>\n<table.*', extra)
    assert json.loads(written[1]) == data
    assert "<script" not in inputs


def test_a_box_has_the_paper_s_number_only(extension) -> None:
    boxes = extension("paper_boxes")
    assert boxes.paper_number("Theorem 4.5 of the paper") == "Theorem 4.5"
    assert boxes.paper_number("What holds") is None
    number, figure = (
        f'<span class="caption-number">{words} </span>' for words in ("Theorem 1.11", "Fig. 2")
    )
    page = {"body": f'<p class="admonition-title">{number}Theorem 4.5 of the paper</p><p>{figure}'}
    boxes._drop_numbers(None, "", "", page, None)
    assert page["body"] == f'<p class="admonition-title">Theorem 4.5 of the paper</p><p>{figure}'


@pytest.mark.parametrize(
    ("kind", "title", "shown"),
    [
        ("proposition", "Two ways to a small HSIC", "Proposition: Two ways to a small HSIC"),
        ("remark", "One identity", "One identity"),
        ("lemma", "Lemma B.2 of the paper", "Lemma B.2 of the paper"),
        ("definition", "The paper’s objective", "The paper’s objective"),
    ],
)
def test_a_box_of_ours_shows_its_kind(extension, kind: str, title: str, shown: str) -> None:
    box = nodes.container("", nodes.title("", title), classes=["proof", kind], realtype=kind)
    page = nodes.document(None, None)
    page += box
    extension("paper_boxes")._retitle(
        SimpleNamespace(env=SimpleNamespace(proof_list={}, docname="a")), page
    )
    assert box[0].astext() == shown


def test_no_label_of_the_paper_is_in_a_title() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.md"))
    titles = re.findall(r"(?m)^[`:]{3,}\{prf:\w+\} (.+)$", text)
    assert len(titles) > 30
    assert [title for title in titles if re.search(r"\w:\w|\s,", title)] == []


def test_punctuation_stays_with_its_formula(extension) -> None:
    rho, n = (
        rf'<span class="math notranslate nohighlight">\({name}\)</span>' for name in (r"\rho", "n")
    )
    found = extension("keep_together").join_punctuation(
        f"<p>correlation ({rho}), and {n} rows, the {n}-th</p>"
    )
    joined = [f'<span class="together">{part}</span>' for part in (f"({rho}),", f"{n}-")]
    assert found == f"<p>correlation {joined[0]} and {n} rows, the {joined[1]}th</p>"


def published(folder: Path, solutions: str) -> dict[str, str]:
    """Return every text file of a book of one chapter, built with or without solutions."""
    book, html = folder / "source", folder / "build" / "html"
    (book / "book").mkdir(parents=True, exist_ok=True)
    exercises = "# A chapter\n\n## Exercises\n\n1. (easy) Why?\n2. (hard) Why not?\n\n"
    answers = ":::::{dropdown} Solutions\n1. Because.\n2. For another reason.\n:::::\n\n## Recap\n"
    chapter = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(exercises + answers)])
    nbformat.write(chapter, book / "chapter.ipynb")
    (book / "index.md").write_text(
        "# Book\n\n```{toctree}\nchapter\nbook/solutions\nbook/homework\n```\n"
    )
    course = "# Homework\n\n(homework-1)=\n## Week 1\n\nHow?\n\n:::{dropdown} Solutions\nBecause of it.\n:::\n"
    (book / "book" / "homework.md").write_text(course)
    (book / "book" / "solutions.md").write_text(
        "(ch-solutions)=\n# Solutions to the exercises\n\nTry first.\n\n"
    )
    settings = {
        "extensions": ["myst_nb", "sphinx_design", "solutions"],
        "html_theme": "sphinx_book_theme",
    }
    settings |= {
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["colon_fence"],
        "html_sourcelink_suffix": "",
    }
    conf = [f"{name} = {value!r}" for name, value in settings.items()]
    (book / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT / 'book' / '_ext')!r}]\n" + "\n".join(conf)
    )
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        str(book),
        str(html),
        "-d",
        str(folder / "doctrees"),
    ]
    environment = os.environ | {"FRHSIC_SOLUTIONS": solutions}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    files = [file for file in html.rglob("*") if file.suffix in (".html", ".js", ".ipynb", ".md")]
    return {file.relative_to(html).as_posix(): file.read_text(encoding="utf-8") for file in files}


@pytest.mark.slow  # two small books are built
def test_a_course_gets_a_book_without_solutions(extension, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="yes or no"):
        extension("solutions").are_wanted("No solutions")  # a typing error publishes nothing
    with_solutions = published(tmp_path / "book", "yes")
    shown = {name for name, text in with_solutions.items() if "Because" in text or "becaus" in text}
    assert shown == {
        "book/solutions.html",
        "searchindex.js",
        "_sources/chapter.ipynb",
        "_sources/book/homework.md",
    }
    assert 'id="solution-chapter-2"' in with_solutions["book/solutions.html"]
    assert re.search(r"All solutions of this chapter(?s:.*)Recap", with_solutions["chapter.html"])
    extension("offline_assets").pack(
        tmp_path / "book" / "build" / "html", ("",), tmp_path / "course.zip"
    )
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        packed = {
            name.removeprefix("course/"): archive.read(name).decode("latin1")
            for name in archive.namelist()
        }
    for without in (packed, published(tmp_path / "course", "no")):
        assert {
            name for name, text in without.items() if "Because" in text and "_static" not in name
        } == set()
        kept = {
            "chapter.html": "Why?",
            "_sources/chapter.ipynb": "Why?",
            "book/homework.html": "How?",
        }
        kept["book/solutions.html"] = "has no solutions"
        assert {name for name, words in kept.items() if words not in without[name]} == set()
        assert not re.search(
            "olution-chapter|olutions-", without["chapter.html"] + without["book/homework.html"]
        )
    assert "becaus" not in without["searchindex.js"]


@pytest.mark.slow  # all figures
def test_a_picture_is_large_and_its_small_copy_light(extension, tmp_path: Path) -> None:
    gallery = extension("gallery")
    found = [
        (path.stem, *one)
        for path in (ROOT / "notebooks").glob("*.ipynb")
        for one in gallery.figures(path)
    ]
    assert (
        len({(stem, gallery.first_sentence(caption)) for stem, _, caption, _ in found})
        == len(found)
        > 40
    )
    for _, name, _, picture in found:
        gallery.shrink(picture, tmp_path / "small.png")
        assert name.startswith("fig-")
        assert 1000 < (tmp_path / "small.png").stat().st_size < len(picture) / 2
        with Image.open(tmp_path / "small.png") as small, Image.open(io.BytesIO(picture)) as large:
            assert (small.width, large.width > 1000) == (
                gallery.WIDTH,
                True,
            )  # twice its size on the page


@pytest.mark.parametrize(
    "name", ["commands", "gallery", "make_slides", "module_pages", "paper_boxes", "solutions"]
)
def test_the_examples_of_the_extensions_hold(extension, name: str) -> None:
    found = doctest.testmod(extension(name))
    assert (found.failed, found.attempted > 0) == (0, True)


def test_the_learning_goals_belong_to_the_sessions() -> None:
    text = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    pages = r"\{(?:chapter|doc)\}`(\w+)`"
    rows = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \|", text)
    sessions = {
        (int(number), topic): re.findall(pages, assigned) for number, topic, assigned in rows
    }
    goals = text.partition("### Learning goals")[2].partition("\n## ")[0]
    listed = re.findall(r"(?m)^(\d+)\. \*\*(.+?)\.\*\* (.+)\n((?: +- .+\n)+)", goals)
    assert {
        (int(number), topic): re.findall(pages, assigned) for number, topic, assigned, _ in listed
    } == sessions
    assert len(sessions) == 12
    assert {found.count("- ") for *_, found in listed} <= {2, 3}
    for *_, assigned, found in listed:
        chapters = [
            ROOT / "notebooks" / f"{name}.md"
            for name in re.findall(r"\{chapter\}`(\w+)`", assigned)
        ]
        words = "".join(path.read_text(encoding="utf-8") for path in chapters)
        assert all(
            f":label: {label}" in words for label in re.findall(r"\{prf:ref\}`([\w-]+)`", found)
        )


def test_the_solutions_of_the_homework_are_right() -> None:
    text = (ROOT / "book" / "homework.md").read_text(encoding="utf-8")
    scores, people = np.array([0.3, 0.7, 0.3, 0.7]), np.arange(4)
    gram = np.maximum(0, 1 - np.abs(people[:, None] - people) / 2)
    law = FiniteLaw(people, people, np.eye(4) / 4)
    hsic = law.hsic(np.outer(scores, scores), gram)
    center = np.eye(4) - 1 / 4
    values = np.linalg.eigvalsh(center @ gram @ center / 4)[:0:-1]
    assert hsic / values[0] < scores.var() < hsic / values[2]
    seasons = np.array([[1, 0.5, 0, 0.5], [0.5, 1, 0.5, 0], [0, 0.5, 1, 0.5], [0.5, 0, 0.5, 1]]) / 4
    assert (
        "is $\\frac12$ for $(1,1,1,1)$, $\\frac14$ for $(1,0,-1,0)$ and $(0,1,0,-1)$, and 0" in text
    )
    for value, direction in (
        (0.5, [1, 1, 1, 1]),
        (0.25, [1, 0, -1, 0]),
        (0.25, [0, 1, 0, -1]),
        (0, [1, -1, 1, -1]),
    ):
        assert seasons @ direction == pytest.approx(np.multiply(value, direction))
    corners = [
        np.abs(np.array(bits) - np.mean(bits)).mean()
        for bits in itertools.product((0, 1), repeat=3)
    ]
    assert "GDP is $\\frac49$" in text
    assert max(corners) == pytest.approx(4 / 9)
    quarter = FiniteLaw(
        [0, 1], [0, 1], [[0.1, 0.6], [0.15, 0.15]]
    )  # p = .6 and q = .2, so that d = .4
    hired, kernel_s = np.diag([0, 1]), np.array([[1, 0.3], [0.3, 1]])
    found = (
        quarter.expected_mmd(hired),
        quarter.expected_squared_mmd(hired),
        quarter.hsic(hired, kernel_s),
    )
    assert found == pytest.approx((3 / 8 * 0.4, 3 / 16 * 0.4**2, 9 / 128 * 0.7 * 0.4**2))
    assert all(
        part in text for part in ("\\frac38|d|$", "\\frac3{16}d^2$", "\\frac9{128}(1-c)\\,d^2$")
    )
    encodings = [sum(bits[:3]) == sum(bits[3:]) for bits in itertools.product((0, 1), repeat=6)]
    shown = [f"{hsic:.4f}", f"{hsic / values[0]:.4f}", f"{hsic / values[2]:.3f}", sum(encodings)]
    shown += [
        f"{math.sqrt(2 * math.log(20) / 1000):.3f}",
        f"{math.sqrt(math.log(2000) / math.log(20)):.2f}",
    ]
    # The course with practice: six people, and three age groups in two cases.
    assert FiniteLaw([0, 1], [0, 1], [[1 / 3, 1 / 6], [0, 1 / 2]]).hsic(
        np.eye(2), np.eye(2)
    ) == pytest.approx(1 / 9)
    for shares in ([0.2, 0.5, 0.8], [0.65, 0.2, 0.65]):
        law = FiniteLaw([0, 1], [0, 1, 2], np.stack([1 - np.array(shares), shares]) / 3)
        shown += [f"{law.expected_squared_mmd(hired):.3g}", f"{law.hsic(hired, gram[:3, :3]):.3g}"]
    assert [number for number in shown if f"={number}$".replace("0.", ".") not in text] == []

    age = np.arange(20, 70)
    gram = np.exp(-0.5 * ((age[:, None] - age) / 15) ** 2) / 50
    values = 1000 * np.linalg.eigvalsh(gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean())
    mean = 100 * abs(np.linalg.eigh(gram)[1][:, -3].mean()) * 50**0.5
    words = f"are $.{values[-1]:.0f}$ and $.{values[-2]:.0f}$", f"mean $\\pm.{mean:.0f}$"
    assert [each for each in words if each not in text] == []

    def share(waves: int, bandwidth: float) -> float:
        hired = 0.5 + 0.3 * np.sin(2 * np.pi * waves * (age - 19.5) / 50)
        law = FiniteLaw([0, 1], age, np.stack([1 - hired, hired]) / 50)
        return law.hsic(np.eye(2), Gaussian(bandwidth)) / law.expected_squared_mmd(np.eye(2))

    assert [share(waves, 15.0) < 0.01 for waves in range(1, 7)] == [False] * 3 + [True] * 3
    assert round(100 * share(4, 3.0)) == 5


def test_partial_points_add_up() -> None:
    text = (ROOT / "book" / "homework.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \d[^|]*\| (\d) \| (\d) \| (\d) \| (\d) \|$", text)
    for row, week in zip(rows, text.split("\n## ")[1:], strict=True):
        found = [
            str(sum(map(int, re.findall(r"(\d) for ", line))))
            for line in re.findall(r"\*Points:\* (.+)", week)
        ]
        assert found == list(row if "```python" in week else row[:3])


@pytest.mark.parametrize("week", [1, 2, 3, 4, 7])
@pytest.mark.slow
def test_a_coding_task_prints_what_the_page_shows(week: int, tmp_path: Path) -> None:
    """The solution fills the gaps of the starter, which is a program."""
    text = (ROOT / "book" / "homework.md").read_text(encoding="utf-8").split("\n## ")[week]
    starter, solution = re.findall(r"(?ms)^```python\n(.*?)^```$", text)
    compile(starter, "starter", "exec")
    kept = [line for line in starter.splitlines() if "..." not in line]
    assert [line for line in solution.splitlines() if line in kept] == kept
    options = {"cwd": tmp_path, "env": os.environ | {"MPLBACKEND": "Agg"}}
    found = subprocess.run(
        [sys.executable, "-c", solution], capture_output=True, text=True, check=True, **options
    )
    assert [found.stdout] == re.findall(r"(?ms)^```text\n(.*?)^```$", text)


class Anything(dict[str, "Anything"]):
    """Values of every name, since those of the book take long."""

    def __missing__(self, name: str) -> Anything:
        return self

    def __str__(self) -> str:
        return "7"


# What makes no sense away from its page.
ELSEWHERE = re.compile(
    r"(?i)\bfolds?\b|\b(?:this|next|last|previous) (?:section|chapter|page|cell|paragraph)\b|\bas before\b"
    r"|\b(?:first|next|last|previous) (?:figure|table|picture)\b|\b(?:above|below),|\b(?:as|see|is) (?:above|below)[).]"
    r"|\b(?:explained|figure|formula|list|matrix|mean|[a-z]+ [1-9][\d.]*|shown|table|text|theorem) (above|below)\b"
)


def test_slides_show_the_chapters_in_their_order(extension, tmp_path) -> None:
    make_slides = extension("make_slides")
    make_slides.write(tmp_path, Anything(), mathjax="mathjax")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    title, contents, *every = re.findall(r"(?s)<section.*?</section>", page)
    assert (
        len(
            {
                path.read_text(encoding="utf-8").split("</title>")[0]
                for path in tmp_path.glob("*.html")
            }
        )
        == 10
    )
    assert re.search(
        r"(?s)executable</h1>.*Continuous Sensitive Attributes</em> by Yijin Ni and Xiaoming Huo",
        title,
    )
    links = re.findall(r'href="#(\w+)">(.+?)</a>', contents)
    assert links == make_slides.CHAPTER.findall("".join(every))
    assert [name for name, _ in links] == [path.stem for path in make_slides.pages()]
    shown = [
        re.sub(r"(?s)<(h\d|footer|aside).*?</\1>|\\\[.*?\\\]|<[^>]*>", " ", slide)
        for slide in every
    ]
    shown = [unescape(re.sub(r"(?s)\\\(.*?\\\)", "x", words)) for words in shown]
    assert max(make_slides.words(words) for words in shown) <= make_slides.MOST
    wrong = (
        "see the first fold",
        "the matrix above",
        "the next section",
        "as shown below",
        "by Proposition 4.1 below",
    )
    assert [words for words in wrong if not ELSEWHERE.search(words)] == []
    assert [found[0] for words in shown if (found := ELSEWHERE.search(words))] == []
    assert [path.stem for path in make_slides.pages() if path.suffix == ".md"] == [
        "responsible_use"
    ]
    assert not [
        slide for slide in every if re.search(r":\s*(?:</\w+>\s*)*(?:<footer|$)", slide)
    ]  # nothing is cut off
    assert not [
        slide
        for slide in every
        if re.search(r"\{[a-z:]+\}`|\{\{|\$|:label:|src=.http|% opening", slide)
    ]
    labels = r">[^<]*\b(?:thm|prop|cor|lem|def|rem|eq|fig|ch)-\w[^<]*"
    assert not [found for slide in every for found in re.findall(labels, slide)]
    heads = (
        "Fifty young",
        "The idea of Theorem 3.2",
        "Theorem 3.2 of",
        "Theorem 3.2: the proof",
        "Definition 3.3",
    )
    assert re.search(
        'id="disintegration".*' + ".*".join(f"<h2>{head}" for head in heads), page, re.DOTALL
    )
    assert re.search(
        r'class="caption"><p>Orange[^<]+Blue[^<]+</p>\s*</div><aside>.*Orange.*Blue.*Left.*Right',
        page,
    )
    names, own = re.findall(r'<section id="([\w-]+)"', page), make_slides.OWN
    assert {name for name in own if name not in names} == {"vote", "claims", "holds"}
    assert [
        name
        for name in names
        if name[:4] == "fig-" and not {"title", "caption"} <= own[name].keys()
    ] == []


def test_each_week_has_its_slides_in_the_order_of_its_sessions(extension) -> None:
    make_slides = extension("make_slides")
    slides = [
        slide for path in make_slides.pages() for slide in make_slides.slides_of(path, Anything())
    ]
    decks = make_slides.decks(slides, Anything())
    with pytest.raises(ValueError, match="no slide has the name why_continuous in practice-week-1"):
        make_slides.decks([], Anything())
    text = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    assert list(decks) == re.findall(
        r'/slides/([\w-]+)\.html">The slides of th(?:is week|e talk)', text
    )
    assert [
        one
        for one in re.findall(r"index\.html#([\w-]+)", text)
        if f'id="{one}"' not in "".join(slides)
    ] == []
    assert len(decks) - 1 == text.count("*Optional reading.* {cite:t}") == 8
    for week, deck in zip(
        make_slides.DECK.finditer(text), map("".join, decks.values()), strict=True
    ):
        rows = re.findall(r"% (.+), (\d+)–(\d+), [^:\n]+:? ?(.*)", week["parts"].lower())
        ends = ["0", *(end for _, _, end, _ in rows)]
        assert {
            (before, row[1]) for before, row in zip(ends, rows, strict=False) if before != row[1]
        } <= {("90", "0")}
        assert ends[-1] == ("45" if week["name"] == "talk" else "90")
        listed = [
            name
            for part, _, _, names in rows
            for name in (part.replace(" ", "-"), *re.findall("[^,]+", names))
        ]
        names = [week["name"], "goals", *dict.fromkeys(listed)]
        found = re.findall(r'(?s)<section id="([\w-]+)"(.*?)(?=<section id|\Z)', deck)
        assert [n + "*" * (". Optional: " in slide) for n, slide in found] == [
            name.split()[-1] for name in names
        ]
        vote = r"(?s)Huo.*<h2>Vote \(1 of 2\)</h2>.*\?</p>\s*<ul>\s*<li>A: .*<h2>Vote \(2 of 2\).*<h2>Homework</h2>\s*"
        assert week["name"] == "talk" or re.search(
            vote + '<p><a href="../html/book/homework.html#homework-', deck
        )
        assert (
            make_slides.unexplained(
                [one for one in decks[week["name"]] if ". Optional: " not in one]
            )
            == {}
        )
    assert (
        sum("<aside></aside>" in slide for _, slide in found) == 5
    )  # of the talk: its title, the claims, three parts


def test_a_symbol_of_a_statement_is_introduced_before(extension) -> None:
    """Without the slides of symbols some are missing, so that the search is able to find them."""
    make_slides = extension("make_slides")
    chapters = [make_slides.slides_of(path, Anything()) for path in make_slides.chapters()]
    assert [found for slides in chapters if (found := make_slides.unexplained(slides))] == []
    fewer = [
        make_slides.unexplained([one for one in slides if "<h2>Symbols" not in one])
        for slides in chapters
    ]
    missing = {symbol for found in fewer for symbols in found.values() for symbol in symbols}
    assert missing >= {"Delta index", "P index", "mathcal G index", "nu S", "eta Z"}
