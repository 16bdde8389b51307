"""The built book in a real browser: one chromium, every page, nothing from the network."""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
# What looks the same on every page or has thousands of pieces: some pages, rows and entries stand for all. From the
# others the pieces are removed, since axe walks the whole page whatever it is told to leave out.
REPEATED = [
    ".highlight pre > *", "mjx-container > *", ".bd-sidebar-primary nav", "tbody tr:nth-child(n+7)",
    "dl.py ~ dl.py ~ dl.py", "dt.sig > *", ".genindextable ~ .genindextable",
]  # fmt: skip
REMOVE = "(repeated) => repeated.forEach((name) => document.querySelectorAll(name).forEach((node) => node.remove()))"
STANDING_FOR_ALL = ("book/intro.html", "notebooks/disintegration.html")
# With preload axe asks for the imports of style sheets at wrong addresses.
AXE = """(options) => axe.run(document, { ...options, resultTypes: ['violations'], preload: false })"""
SAMPLE = 10  # generated pages of each kind that are opened; all of them take minutes
AXE_RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "rules": {"color-contrast": {"enabled": False}},  # CONTRAST looks at it
}
# Contrast is slow to measure. It depends on the color of a text and on what lies behind it; large text needs less.
# Texts that agree in these are of one kind, and a kind that has passed is not measured again, on this page or a later
# one. Up to three texts of a kind are measured, since axe passes over some, such as a text that is switched off.
CONTRAST = """async (passed) => {
  const known = new Set(passed), grounds = new Map(), kinds = new Map();
  const nothing = "rgba(0, 0, 0, 0),none,1,none,normal,static";
  const ground = (node) => {
    if (!node) return "";
    if (!grounds.has(node)) {
      const style = getComputedStyle(node);
      const own = ["backgroundColor", "backgroundImage", "opacity", "filter", "mixBlendMode", "position"]
        .map((name) => style[name]).join();
      grounds.set(node, ground(node.parentElement) + (own === nothing ? "" : `|${own}`));
    }
    return grounds.get(node);
  };
  document.querySelectorAll("body *").forEach((node) => {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.nodeValue.trim());
    if (!text && !node.matches("input, select, textarea")) return;
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    const away = box.width < 2 || box.height < 2 || box.right <= 0 || box.bottom + scrollY <= 0;
    if (away || !node.checkVisibility({ visibilityProperty: true })) return;
    const large = Math.ceil(parseFloat(style.fontSize) * 72) / 96 >= (style.fontWeight >= 700 ? 14 : 18);
    const kind = `${style.color},${large},${style.textShadow}${ground(node)}`;
    if (known.has(kind)) return;
    if (!kinds.has(kind)) kinds.set(kind, []);
    if (kinds.get(kind).length < 3) kinds.get(kind).push(node);
  });
  if (!kinds.size) return { violations: [], passed: [] };
  const options = { runOnly: { type: "rule", values: ["color-contrast"] }, resultTypes: ["violations", "passes"] };
  const measured = [...kinds.values()].flat();
  const found = await axe.run({ include: measured }, { ...options, elementRef: true, preload: false });
  const fine = new Set(found.passes.flatMap((result) => result.nodes.map((node) => node.element)));
  return {
    violations: found.violations.map(({ id, impact, nodes }) =>
      ({ id, impact, nodes: nodes.map(({ target }) => ({ target })) })),
    passed: [...kinds].filter(([, nodes]) => nodes.some((node) => fine.has(node))).map(([kind]) => kind),
  };
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(built_book: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=built_book)
    )
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


MATHS = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const math = document.querySelectorAll(".math").length;
  const set = document.querySelectorAll(".math mjx-container").length;
  const wrong = document.querySelectorAll("mjx-merror, .math [data-mjx-error]").length;
  const isRed = (node) => getComputedStyle(node).color === "rgb(255, 0, 0)";
  const red = [...document.querySelectorAll("mjx-mtext, mjx-mi")].filter(isRed).length;
  return { math, set, wrong, red };
}"""
WIDE = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return [];
  const scrolls = (node) => node && node !== document.body &&
    (getComputedStyle(node).overflowX !== "visible" || scrolls(node.parentElement));
  const wide = [...document.querySelectorAll("body *")].filter((node) => {
    const box = node.getBoundingClientRect();
    return box.right > room + 1 && box.width > 0 && !scrolls(node);
  });
  const edge = (node) => Math.round(node.getBoundingClientRect().right);
  const names = wide.slice(0, 5).map((node) => `${node.tagName}.${node.className} ${edge(node)}`);
  return [`page ${document.documentElement.scrollWidth}`, ...names];
}"""

# Columns as they are seen: cells of one column share their left and right edges, and so their side. Lines of code wrap,
# a table that has to scroll fades out at its side and takes the keyboard, formulas fit or scroll in their box, and
# short keys in tables stay whole.
LAYOUT = """() => {
  const trouble = [];
  document.querySelectorAll(".bd-article .cell_output table").forEach((table) => {
    const columns = {};
    table.querySelectorAll("tbody tr > *").forEach((cell) => {
      const box = cell.getBoundingClientRect();
      if (!box.width || cell.colSpan > 1 || !cell.textContent.trim()) return;
      (columns[`${Math.round(box.left)} ${Math.round(box.right)}`] ||= new Set()).add(getComputedStyle(cell).textAlign);
    });
    const mixed = Object.values(columns).filter((sides) => sides.size > 1).length;
    if (mixed) trouble.push(`${mixed} ragged columns: ${table.textContent.trim().slice(0, 40)}`);
  });
  document.querySelectorAll(".bd-article table").forEach((table) => {
    if (table.closest(".explorer") || table.scrollWidth <= table.clientWidth + 1) return;
    const fades = parseFloat(getComputedStyle(table).getPropertyValue("--fade")) > 0;
    if (!fades || table.tabIndex !== 0) trouble.push(`scrolls unseen: ${table.textContent.trim().slice(0, 40)}`);
  });
  document.querySelectorAll(".bd-article pre").forEach((code) => {
    if (code.scrollWidth <= code.clientWidth + 1) return;
    trouble.push(`runs off the edge: ${code.textContent.trim().slice(0, 40)}`);
  });
  document.querySelectorAll("div.math > mjx-container").forEach((box) => {
    const scrolls = box.tabIndex === 0 && ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
    if (box.scrollWidth > box.clientWidth + 2 && !scrolls) trouble.push(`cut: ${box.textContent.slice(0, 40)}`);
  });
  document.querySelectorAll("span.math").forEach((span) => {
    const formula = span.querySelector("mjx-math"), room = span.parentElement.clientWidth;
    const wide = formula && room > 0 && formula.getBoundingClientRect().width > room + 2;
    if (wide && getComputedStyle(span).overflowX !== "auto") trouble.push(`cut: ${span.textContent.slice(0, 40)}`);
  });
  document.querySelectorAll(".bd-article :is(td, th) code").forEach((key) => {
    const short = !/\\s/.test(key.textContent) && key.textContent.length < 20;
    if (short && key.getClientRects().length > 1) trouble.push(`broken: ${key.textContent}`);
  });
  return trouble;
}"""


OPEN = "document.querySelectorAll('.bd-article details').forEach((box) => { box.open = true; })"


def serious(axe_result: dict[str, Any]) -> list[str]:
    """Violations that keep someone from reading, with the first place of each."""
    return [
        f"{violation['id']} at {violation['nodes'][0]['target']} ({len(violation['nodes'])})"
        for violation in axe_result["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def pale(page: Any, passed: list[str]) -> list[str]:
    """Return the texts with too little contrast, and add the kinds of text that pass."""
    found = page.evaluate(CONTRAST, passed)
    passed += found["passed"]
    return serious(found)


def left_behind(request: Any) -> bool:
    """Whether a request was given up because the test went on to the next page: the icon comes after the page."""
    return request.failure == "net::ERR_ABORTED" and request.url.endswith("favicon.svg")


def evenly(names: list[str], count: int) -> list[str]:
    """Return at most ``count`` of the names, from the first to the last in equal steps."""
    if len(names) <= count:
        return names
    return [names[round(k * (len(names) - 1) / (count - 1))] for k in range(count)]


def layout_trouble(page: Any) -> list[str]:
    """Return what is wrong with the layout once it has settled.

    A fade follows the frame after a change of size, and a busy machine draws that frame late. What is still wrong after
    three seconds is a fault.
    """
    for _ in range(30):
        trouble: list[str] = page.evaluate(LAYOUT)
        if not trouble:
            break
        page.wait_for_timeout(100)
    return trouble


def test_every_page(page: Any, address: str, built_book: Path) -> None:
    """Check that every page that someone wrote is whole, offline and accessible.

    No request leaves, none fails, nothing is logged as an error, formulas are set, columns line up, code stays in its
    box, phones need no sideways scroll, and axe finds nothing serious in light or dark. Of the generated pages, which
    are several hundred, the first two of modules and the first source listing are checked in the same way. Ten more of
    either kind, evenly spaced in the order of their names, are only opened, on a phone; the others are not opened.
    """
    from axe_playwright_python.base import AXE_FILE_PATH

    axe = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
    trouble: list[str] = []
    here = ""
    inside = (address, "data:", "blob:")
    page.on(
        "request",
        lambda r: None if r.url.startswith(inside) else trouble.append(f"{here}: asks for {r.url}"),
    )
    page.on(
        "requestfailed",
        lambda r: None if left_behind(r) else trouble.append(f"{here}: failed {r.url} {r.failure}"),
    )
    page.on(
        "response",
        lambda r: trouble.append(f"{here}: {r.status} {r.url}") if r.status >= 400 else None,
    )
    page.on(
        "console",
        lambda m: trouble.append(f"{here}: console {m.text}") if m.type == "error" else None,
    )
    page.on("pageerror", lambda e: trouble.append(f"{here}: {e}"))
    paths = [
        path.relative_to(built_book)
        for path in built_book.rglob("*.html")
        if "_static" not in path.parts
    ]
    names = sorted(map(str, paths))
    names.remove("index.html")  # only a redirection to the first page
    listings = [name for name in names if name.startswith("_modules/")]
    modules = [name for name in names if name.startswith("book/generated/")]
    repeated = [*listings[1:], *modules[2:]]
    opened = [*evenly(listings[1:], SAMPLE), *evenly(modules[2:], SAMPLE)]
    assert len(names) > 10
    formulas = 0
    light: list[str] = []
    dark: list[str] = []
    # Source listings share one template, pages of modules another: the first stand for all.
    for here in [name for name in names if name not in repeated]:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{address}/{here}", wait_until="load")
        maths = page.evaluate(MATHS)
        formulas += maths["set"]
        if maths["wrong"] or maths["red"] or maths["math"] != maths["set"]:
            trouble.append(f"{here}: formulas {maths}")
        trouble += [f"{here}: {line}" for line in layout_trouble(page)]
        page.set_viewport_size({"width": 390, "height": 844})
        trouble += [f"{here}: wide: {line}" for line in page.evaluate(WIDE)]
        trouble += [f"{here}: phone: {line}" for line in layout_trouble(page)]
        page.set_viewport_size({"width": 1280, "height": 900})
        if here not in (listings[0], *STANDING_FOR_ALL):
            page.evaluate(REMOVE, REPEATED)
        page.evaluate(axe)
        found = [*serious(page.evaluate(AXE, AXE_RULES)), *pale(page, light)]
        page.evaluate(
            "document.documentElement.dataset.theme = document.documentElement.dataset.mode = 'dark'"
        )
        trouble += [f"{here}: {line}" for line in found] + [
            f"{here}: dark: {line}" for line in pale(page, dark)
        ]
    page.set_viewport_size({"width": 390, "height": 844})
    for here in opened:
        page.goto(f"{address}/{here}", wait_until="load")
        trouble += [f"{here}: wide: {line}" for line in page.evaluate(WIDE)]
    assert formulas > 20
    assert trouble == [], "\n" + "\n".join(trouble)


def test_tables_and_slides_fit_a_desk_and_text_is_on_cards_on_a_phone(
    page: Any, address: str
) -> None:
    """A table that is a little too wide is set smaller, down to 11 px; on a phone a table of text becomes cards."""
    found = """() => [...document.querySelectorAll(".bd-article table")].map((table) => [
      table.textContent.trim().slice(0, 40), table.scrollWidth - table.clientWidth, table.clientWidth,
      parseFloat(getComputedStyle(table).fontSize), table.matches(".card-table")])"""
    widths = {
        "notebooks/results": 1400,
        "notebooks/theorem_map": 1400,
        "notebooks/ledger": 1280,
        "book/teaching": 390,
    }
    for name, width in widths.items():
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{address}/{name}.html", wait_until="load")
        page.evaluate(OPEN)
        page.wait_for_timeout(300)
        tables = [table for table in page.evaluate(found) if table[2] > 0]
        assert [table[0] for table in tables if table[1] > 1] == [], name
        assert min(table[3] for table in tables) > 11
        assert any(table[4] for table in tables) == (width == 390), name
        assert layout_trouble(page) == [], name
    # Words in figures are no smaller than on half a desk: the figure scrolls in its own box.
    page.goto(f"{address}/notebooks/results.html", wait_until="load")
    box = page.locator("#fig-forest a.image-reference")
    assert box.locator("img").bounding_box()["width"] > 500 > box.bounding_box()["width"]
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{address}/_static/slides/index.html", wait_until="load")
    page.evaluate(MATHS)
    over = "(all) => all.filter((s) => s.scrollHeight > s.clientHeight || s.scrollWidth > s.clientWidth).length"
    assert page.locator("section").evaluate_all(over) == 0
    page.keyboard.press("ArrowRight")
    page.wait_for_function("Math.round(scrollY / innerHeight) === 1")
    page.keyboard.press("n")
    assert page.locator("#fig-four-ages aside").is_visible()


def test_boxes_that_start_to_scroll_take_the_keyboard(page: Any, address: str) -> None:
    """A box that starts to scroll after the page was loaded, with the window or without it, is noticed."""
    wrong = """() => {
      const scrolls = (box) => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      return [...document.querySelectorAll(".bd-article table, .bd-article pre")]
        .filter((box) => box.tabIndex !== 0 && scrolls(box)).map((box) => box.textContent.trim().slice(0, 40)); }"""
    width = "(width) => { document.querySelector('.bd-article').style.maxWidth = width; }"
    for name in ("watch_frhsic", "ledger"):
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{address}/notebooks/{name}.html", wait_until="load")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.wait_for_timeout(200)
        assert page.evaluate(wrong) == [], name
        page.goto(f"{address}/notebooks/{name}.html", wait_until="load")
        page.evaluate(OPEN)
        page.wait_for_timeout(200)
        assert page.evaluate(wrong) == [], name
        page.evaluate(width, "300px")
        page.wait_for_timeout(200)
        assert page.evaluate(wrong) == [], name
        assert page.locator(".bd-article table[tabindex]").count() > 0


@pytest.mark.parametrize("width", [1280, 390])
def test_wrapped_code_is_copied_as_it_was_written(page: Any, address: str, width: int) -> None:
    """The copy button and a selection by hand give the lines of the notebook, wherever they wrap on the page."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{address}/notebooks/watch_frhsic.html", wait_until="load")
    notebook = json.loads((ROOT / "notebooks" / "watch_frhsic.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    wanted = next(source for source in sources if "stacks = {" in source)
    block = page.locator(".cell_input div.highlight", has_text="stacks = {").first
    lines = block.locator("pre").evaluate(
        "pre => pre.clientHeight / parseFloat(getComputedStyle(pre).lineHeight)"
    )
    written = len(wanted.rstrip().split("\n"))
    assert lines > (written + 2 if width == 1280 else 2 * written)  # it does wrap, most on a phone
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_timeout(100)
    assert page.evaluate("navigator.clipboard.readText()").rstrip() == wanted.rstrip()
    by_hand = block.locator("pre").evaluate(
        "pre => { getSelection().selectAllChildren(pre); return `${getSelection()}`; }"
    )
    assert by_hand.rstrip() == wanted.rstrip()


def test_figures_link_to_their_full_size(page: Any, address: str) -> None:
    """By a tap and by the keyboard: on a phone the picture is larger than in its column, and Back leads back."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/notebooks/results.html", wait_until="load")
    picture = page.locator("a.image-reference img").first
    assert len(picture.get_attribute("alt")) > 10
    small = page.locator("a.image-reference").first.bounding_box()["width"]
    picture.click()
    page.wait_for_url("**/_images/*")
    assert page.locator("img").evaluate("i => i.naturalWidth") > 2 * small
    page.go_back(wait_until="load")
    page.locator("a.image-reference").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/_images/*")


@pytest.mark.parametrize("query", ["Theorem 4.7", "thm 4.7", "4.7"])
def test_search_finds_a_statement_by_its_number_first(page: Any, address: str, query: str) -> None:
    page.goto(f"{address}/search.html?q={query.replace(' ', '+')}")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    first = page.locator("#search-results li a").first
    assert "Theorem 4.7" in first.text_content()
    assert "parity_gap.html#" in first.get_attribute("href")
    page.wait_for_selector("#search-results li p.context", timeout=20_000)
    assert "\\" not in page.locator("#search-results li p.context").first.text_content()


def test_exercises_lead_to_their_solutions_and_back(page: Any, address: str) -> None:
    page.goto(f"{address}/notebooks/parity_gap.html", wait_until="load")
    assert (
        page.locator(".bd-article summary", has_text=re.compile(r"^\s*Solutions\s*$")).count() == 0
    )
    exercise = page.locator("#exercise-parity_gap-2")
    exercise.locator(".exercise-link a").click()
    page.wait_for_url("**/solutions.html#solution-parity_gap-2")
    page.locator("#solution-parity_gap-2 .exercise-link a").click()
    page.wait_for_url("**/parity_gap.html#exercise-parity_gap-2")


def test_the_gallery_leads_to_every_figure(page: Any, address: str) -> None:
    page.goto(f"{address}/book/gallery.html", wait_until="load")
    links = page.locator(".gallery a")
    assert links.count() > 40
    assert page.evaluate(
        "[...document.querySelectorAll('.gallery img')].every((i) => i.naturalWidth > 200)"
    )
    links.first.click()
    page.wait_for_url("**/notebooks/*.html#fig-*")
    assert page.evaluate("document.querySelector(location.hash) !== null")
    page.go_back(wait_until="load")
    large = page.locator(".gallery a.download").first.get_attribute("href")
    assert page.request.get(f"{address}/book/{large}").body()[1:4] == b"PNG"


def test_rows_of_the_ledger_are_cards_on_a_phone(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/notebooks/ledger.html", wait_until="load")
    tall = page.evaluate(
        """() => [...document.querySelectorAll("table.card-table tbody tr")].filter((row) => row.offsetHeight > 0)
          .map((row) => [...row.cells].reduce((left, cell) => left - cell.offsetHeight, row.offsetHeight))"""
    )
    assert len(tall) > 24
    assert max(tall) < 30  # nothing but the border and the padding is empty
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator("table.can-be-cards thead:visible").count() > 0


def test_long_tables_are_searched_and_sorted(page: Any, address: str, built_book: Path) -> None:
    assert (built_book / "notebooks" / "theorem_map.html").is_file()
    page.goto(f"{address}/notebooks/theorem_map.html", wait_until="load")
    page.evaluate(OPEN)
    field = page.locator(".table-search input").first
    table = page.locator(".table-search + table").first
    every = table.locator("tbody tr:visible").count()
    field.fill("Theorem 4.5")
    assert 0 < table.locator("tbody tr:visible").count() < every
    assert all(
        "Theorem 4.5" in text for text in table.locator("tbody tr:visible").all_text_contents()
    )
    field.fill("")
    column = table.locator("thead button").first
    column.click()
    rising = table.locator("tbody tr :nth-child(1)").first.text_content()
    column.click()
    assert table.locator("tbody tr :nth-child(1)").first.text_content() != rising


def explorer(page: Any, address: str, name: str) -> Any:
    page.goto(f"{address}/{'notebooks/results' if name == 'frontier' else 'book/explorers'}.html")
    root = page.locator(f".explorer[data-explorer={name}]")
    root.locator("svg").first.scroll_into_view_if_needed()
    return root


def value(root: Any, name: str) -> str:
    return root.locator(f"[data-value={name}]").first.text_content()


@pytest.mark.parametrize(
    ("name", "moved"),
    [("waves", "hsic"), ("samples", "root"), ("promise", "divided"), ("trap", "penalty")],
)
def test_explorers_answer_click_keyboard_and_drag(
    page: Any, address: str, name: str, moved: str
) -> None:
    root = explorer(page, address, name)
    before = value(root, moved)
    root.locator("button").first.click()
    page.wait_for_timeout(100)
    clicked = value(root, moved)
    if name != "trap":  # its first button is where it starts
        assert clicked != before
    slider = root.locator("input").first
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(100)
    assert value(root, moved) != clicked
    chart = root.locator("svg").last if name == "waves" else root.locator("svg").first
    watched = {"trap": "ratio", "waves": "m", "samples": "n", "promise": "n"}[name]
    control = root.locator(f"input[name={watched}]")
    start = control.input_value()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.85, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_timeout(100)
    assert float(control.input_value()) > float(start)


def test_the_trap_closes_on_both_sides(page: Any, address: str) -> None:
    root = explorer(page, address, "trap")
    shares = []
    for button in ("median bandwidth", "Z blown up", "Z squeezed"):
        root.get_by_role("button", name=button).click()
        page.wait_for_timeout(100)
        shares.append(float(value(root, "share").split()[0]))
    assert shares[0] == 100.0
    assert max(shares[1:]) < 5.0


def test_explorers_start_again_and_can_be_linked_to(page: Any, address: str) -> None:
    root = explorer(page, address, "waves")
    before = value(root, "hsic")
    assert (
        before == "0.0215"
    )  # of the bandwidth 15 that the slider shows, as in the check of the chapter
    root.get_by_role("button", name="fast waves", exact=True).click()
    page.wait_for_timeout(100)
    fast = value(root, "hsic")
    assert fast != before
    page.goto(page.url)  # the address holds the setting
    assert "waves.waves=6" in page.url
    page.wait_for_timeout(100)
    assert value(root, "hsic") == fast
    root.get_by_role("button", name="fast waves, narrow kernel").click()
    root.get_by_role(
        "button", name="fast waves", exact=True
    ).click()  # a preset does not add to the one before
    page.wait_for_timeout(100)
    assert value(root, "hsic") == fast
    root.get_by_role("button", name="start again").click()
    page.wait_for_timeout(100)
    assert value(root, "hsic") == before
    assert "?" not in page.url


def thickness(dots: Any) -> float:
    """Return the largest spread of a cloud over its smallest."""
    places = dots.evaluate_all("a => a.map(c => [c.cx.baseVal.value, c.cy.baseVal.value])")
    assert len(places) > 250
    spreads = np.linalg.svd(places - np.mean(places, 0))[1]
    return float(spreads[0] / spreads[1])


def test_the_needle_shows_the_stored_numbers(page: Any, address: str) -> None:
    from frhsic_core.paper.experiments.running_example import PENALTIES, gauges
    from frhsic_core.paper.stored import stored_rows

    measured = gauges(stored_rows("running_example"))
    root = explorer(page, address, "needle")
    assert "the mean score rises with age" in value(root, "sentence")
    for form, (_, lams) in PENALTIES.items():
        root.locator("select[name=form]").select_option(form)
        for step, lam in enumerate(lams):
            root.locator("input[name=step]").fill(str(step))
            page.wait_for_timeout(60)
            assert root.locator("output").first.text_content() == f"{lam:g}"
            shown = root.locator("svg").nth(2).locator("text.number").all_text_contents()
            wanted = measured.loc[(form, lam), ["normalized_hsic", "nonlinear_r2", "accuracy"]]
            assert [float(text) for text in shown] == pytest.approx(wanted.tolist(), abs=0.0056)


def test_the_needle_widens_and_its_lesson_changes(page: Any, address: str) -> None:
    """In true proportions the people are on a line; stretched they fill the picture, sorted by age."""
    root = explorer(page, address, "needle")
    root.get_by_role("button", name="λ = 10").click()
    page.wait_for_timeout(1500)
    assert "Look closer" in value(root, "sentence")
    dots = root.locator("svg").nth(1).locator("circle")
    assert thickness(dots) > 5
    root.get_by_role("button", name="look closer").click()
    page.wait_for_timeout(2000)
    assert thickness(dots) < 1.5
    assert root.locator("input[name=step]").input_value() == "3"  # the button keeps the slider
    assert "the colors come apart" in value(root, "sentence")
    root.locator("select[name=form]").select_option("recommended")
    page.wait_for_timeout(100)
    assert "come apart" not in value(root, "sentence")


def test_the_statistics_of_drawn_points_are_those_of_the_library(page: Any, address: str) -> None:
    from frhsic_core import distance_correlation, normalized_hsic

    root = explorer(page, address, "scatter")
    for shape in ("line", "circle", "cloud"):
        root.get_by_role("button", name=shape).click()
        page.wait_for_timeout(100)
        points = np.array(root.evaluate("r => r.points"))
        s, z = points[:, 0], points[:, 1]
        shown = root.evaluate("r => r.measured")
        groups = [z[np.argsort(s, kind="stable")][12 * g : 12 * g + 12].mean() for g in range(10)]
        assert shown["|correlation|"] == pytest.approx(abs(np.corrcoef(z, s)[0, 1]))
        assert shown["distance correlation"] == pytest.approx(float(distance_correlation(z, s)))
        assert shown["√ normalized HSIC"] ** 2 == pytest.approx(float(normalized_hsic(z, s)))
        name = "gap between ten groups of S, in standard deviations"
        assert shown[name] == pytest.approx((max(groups) - min(groups)) / z.std())
        number = root.locator("svg").nth(1).locator("text.number").nth(2)
        assert float(number.text_content()) == pytest.approx(shown[name], abs=0.006)
        line = root.evaluate("r => r.measured['|correlation|'] > 0.5")
        assert line == (shape == "line")
        assert ("on the whole Z rises with S" in value(root, "sentence")) == line
    count = root.locator("circle").count()
    box = root.locator("svg").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 20)
    page.wait_for_timeout(100)
    assert root.locator("circle").count() == count + 1
    root.locator("circle").first.click()
    page.wait_for_timeout(100)
    assert root.locator("circle").count() == count


def test_points_are_drawn_by_trail_finger_and_keyboard(
    page: Any, address: str, browser: Any
) -> None:
    root = explorer(page, address, "scatter")
    root.get_by_role("button", name="empty sheet").click()
    page.wait_for_timeout(100)
    assert root.locator("circle").count() == 0
    sheet = root.locator("svg").first
    box = sheet.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 220, box["y"] + 180, steps=12)
    page.mouse.up()
    page.wait_for_timeout(100)
    drawn = root.locator("circle").count()
    assert drawn >= 6
    assert root.evaluate("r => r.measured['|correlation|']") > 0.95  # a trail along a line
    sheet.focus()
    for key in ("ArrowRight", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert root.locator("circle").count() == drawn + 1
    assert root.evaluate("r => r.points.at(-1)") == pytest.approx([0.05, 0.05])
    page.keyboard.press("Delete")
    page.wait_for_timeout(100)
    assert root.locator("circle").count() == drawn
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    phone = explorer(context.new_page(), address, "scatter")
    phone.get_by_role("button", name="empty sheet").tap()
    phone.locator("svg").first.tap(position={"x": 150, "y": 100})
    phone.page.wait_for_timeout(100)
    assert phone.locator("circle").count() == 1
    phone.locator("svg").first.tap(
        position={"x": 155, "y": 104}
    )  # a finger need not hit the middle
    phone.page.wait_for_timeout(100)
    assert phone.locator("circle").count() == 0
    context.close()


def test_a_measure_that_is_zero_without_a_penalty_gives_no_ranks(page: Any, address: str) -> None:
    root = explorer(page, address, "frontier")
    for name, key in (("source", "authors"), ("dataset", "compas"), ("metric", "mi")):
        root.locator(f"select[name={name}]").select_option(key)
        page.wait_for_timeout(100)
    assert "cannot be ranked" in value(root, "note")
    assert root.locator("svg").first.evaluate("s => !s.innerHTML.includes('NaN')")


def test_explorers_are_printed_without_their_inputs(page: Any, address: str) -> None:
    root = explorer(page, address, "waves")
    page.emulate_media(media="print")
    assert root.locator("svg path.line").first.is_visible()
    assert not root.locator(".inputs").is_visible()
    assert not root.locator(".buttons").is_visible()


def test_frontier_ranks_change_with_the_grid(page: Any, address: str, built_book: Path) -> None:
    assert "data-explorer" in (built_book / "notebooks" / "results.html").read_text(
        encoding="utf-8"
    )
    root = explorer(page, address, "frontier")
    from frhsic_core.paper.experiments.comparison import naup

    root.locator("select[name=source]").select_option("authors")
    page.wait_for_timeout(100)
    data = root.evaluate("r => r.data.sources.authors")
    for key, part in data["datasets"].items():
        root.locator("select[name=dataset]").select_option(key)
        page.wait_for_timeout(100)
        methods = list(part["methods"])
        shared = sorted(
            set.intersection(*({p["lam"] for p in part["methods"][name]} for name in methods))
        )
        grid = [{p["lam"]: p for p in part["methods"][name]} for name in methods]
        performance = np.array([[points[lam]["perf"] for lam in shared] for points in grid])
        dependence = np.array([[points[lam]["gdp"] for lam in shared] for points in grid])
        unfair = part["unfair"]
        areas = naup(performance, dependence, unfair["perf"], unfair["gdp"], higher=part["higher"])
        shown = [float(text) for text in root.locator("tbody td:nth-child(3)").all_text_contents()]
        assert shown == pytest.approx(sorted(areas, reverse=True), abs=6e-4)
    before = root.locator("tbody").text_content()
    root.locator("select[name=metric]").select_option("mi_sk")
    page.wait_for_timeout(100)
    assert root.locator("tbody").text_content() != before


def formula(page: Any, call: str) -> Any:
    return json.loads(page.evaluate(f"JSON.stringify(frhsicFormulas.{call})"))


def test_the_formulas_of_the_pictures_are_those_of_the_library(page: Any, address: str) -> None:
    from frhsic_core import Gaussian
    from frhsic_core.laws import GaussianPair

    page.goto(f"{address}/book/explorers.html")
    for rho, sigma_z, sigma_s in itertools.product(
        (0.0, 0.05, 0.5, 0.95), (0.32, 1.0, 5.0), (0.32, 1.0, 5.0)
    ):
        law, kernel_z, kernel_s = GaussianPair(rho), Gaussian(sigma_z), Gaussian(sigma_s)
        above, below = (
            GaussianPair(rho + shift).hsic(kernel_z, kernel_s) for shift in (1e-4, -1e-4)
        )
        shown = formula(page, f"hsic({rho}, {sigma_z}, {sigma_s})")
        np.testing.assert_allclose(shown, law.hsic(kernel_z, kernel_s), rtol=1e-9, atol=1e-13)
        floor = law.null_mean(kernel_z, kernel_s, n=64) / 64
        np.testing.assert_allclose(
            formula(page, f"floor({sigma_z}, {sigma_s}, 64)"), floor, rtol=1e-9, atol=1e-13
        )
        slope = formula(page, f"hsicSlope({rho}, {sigma_z}, {sigma_s})")
        np.testing.assert_allclose(slope, (above - below) / 2e-4, rtol=1e-5, atol=1e-9)


def test_the_pictures_of_the_theory_have_the_exact_numbers(page: Any, address: str) -> None:
    """The two groups, the waves over age, the four people and the sizes of samples, against laws and bounds."""
    from frhsic_core import Gaussian, hsic_bound
    from frhsic_core.laws import FiniteLaw, GaussianPair
    from frhsic_core.paper.statements.concentration import proved_bound, uniform_bound

    page.goto(f"{address}/book/explorers.html")
    for share, young, old, alike in itertools.product(
        (0.1, 0.5), (0.6, 0.9), (0.4, 0.6), (0.0, 0.5, 1.0)
    ):
        table = [[share * (1 - young), (1 - share) * (1 - old)], [share * young, (1 - share) * old]]
        law, kernel_z, kernel_s = (
            FiniteLaw([0, 1], [0, 1], table),
            [[0, 0], [0, 1]],
            [[1, alike], [alike, 1]],
        )
        found = formula(page, f"twoGroups({share}, {young}, {old}, {alike})")
        assert found["meanOfSup"] == pytest.approx(law.expected_mmd(kernel_z), abs=1e-12)
        assert found["rootHsic"] ** 2 == pytest.approx(law.hsic(kernel_z, kernel_s), abs=1e-12)
        assert found["supOfMean"] == pytest.approx(0, abs=1e-12)

    age = np.arange(20, 70)
    for waves, bandwidth in itertools.product((1, 3, 8), (4.0, 15.0)):
        hired = 0.5 + 0.3 * np.sin(2 * np.pi * waves * (age - 19.5) / 50)
        law, kernel_s = (
            FiniteLaw([0, 1], age, np.stack([1 - hired, hired]) / 50),
            Gaussian(bandwidth),
        )
        found = formula(page, f"hiringWaves({waves}, {bandwidth})")
        np.testing.assert_allclose(found["hsic"], law.hsic(np.eye(2), kernel_s), rtol=1e-9)
        np.testing.assert_allclose(found["squared"], law.expected_squared_mmd(np.eye(2)), rtol=1e-9)
        np.testing.assert_allclose(found["lambda"][:6], law.mercer(kernel_s)[0][:6], rtol=1e-9)
        tails = [law.spectral_tail(np.eye(2), kernel_s, m=m) for m in range(1, 7)]
        np.testing.assert_allclose(found["tail"][:6], tails, rtol=1e-7, atol=1e-12)

    people = np.arange(4)
    gram = np.maximum(0, 1 - np.abs(people[:, None] - people) / 2)
    for scores in ([0.2, 0.4, 0.6, 0.8], [0.3, 0.7, 0.3, 0.7], [0.9, 0.1, 0.35, 0.5]):
        found = formula(page, f"fourPeople({scores})")
        law = FiniteLaw(scores if len(set(scores)) == 4 else people, people, np.eye(4) / 4)
        center = np.eye(4) - 1 / 4
        values, vectors = np.linalg.eigh(center @ gram @ center / 4)
        delta = np.array(scores) - np.mean(scores)
        along = np.cumsum((vectors.T @ delta)[:0:-1] ** 2) / 4
        assert found["hsic"] == pytest.approx(law.hsic(np.outer(scores, scores), gram), abs=1e-12)
        np.testing.assert_allclose(found["square"], along, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found["bound"], found["hsic"] / values[:0:-1], rtol=1e-9)
        sides = np.array([found["absolute"], found["square"], found["bound"]])
        assert (np.diff(sides, axis=0) > -1e-12).all()  # the inequality

    z, s = GaussianPair(0.6).sample(500, random_state=0)
    for candidates, delta in itertools.product((1, 200), (0.05, 0.5)):
        kernel = Gaussian(1.0)
        wanted = hsic_bound(
            z, s, kernel_z=kernel, kernel_s=kernel, delta=delta, candidates=candidates
        )
        found = formula(page, f"sampleBounds({wanted.estimate}, 500, {candidates}, {delta})")
        assert min(found["root"], 0.25) == pytest.approx(wanted.bound, rel=1e-9)
        for name, bound in (("printed", uniform_bound), ("proved", proved_bound)):
            size = bound(500, complexity=0.0, delta=delta / candidates)
            assert found[name] - wanted.estimate == pytest.approx(size, rel=1e-9)
