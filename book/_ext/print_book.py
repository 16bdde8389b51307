"""Print the book into one PDF: ``python book/_ext/print_book.py [_build/book.pdf]``.

The book is built as one HTML page, typeset by MathJax and printed by chromium, with the fonts,
figures and formulas of the screen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARGIN = 16
SCALE = 0.78  # from the size for a screen to about ten points
# Folded answers and results are open on paper; folded code, which only draws, stays out (see the
# print rules). The long module references are for looking up on a screen.
OPEN = """async () => {
  await MathJax.startup.promise;
  const folded = "article details:not(.hide), article details.hide.above-output";
  document.querySelectorAll(folded).forEach((part) => { part.open = true; });
  document.getElementById("ch-api-modules")?.closest("section").remove();
}"""
# Tables and formulas that are wider than the paper are made smaller, since paper does not scroll.
FIT = """() => {
  const room = document.querySelector("article section p").closest("section").clientWidth;
  document.querySelectorAll(".table-sort").forEach((button) => button.replaceWith(...button.childNodes));
  for (const box of document.querySelectorAll("article table, article div.math > mjx-container")) {
    const part = box.matches("table") ? box : box.firstElementChild;
    const width = Math.max(part.scrollWidth, part.getBoundingClientRect().width);
    if (width > room) box.style.zoom = Math.max(0.45, 0.99 * room / width);
  }
}"""


def build(output: Path) -> Path:
    """Build the book as a single page and return the page."""
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        "-q",
        "--builder",
        "singlehtml",
    ]
    subprocess.run([*command, "--path-output", output, "."], cwd=ROOT, check=True)
    folder = output / "_build" / "singlehtml"
    # The builder writes the page one folder down and its addresses as if it lay here.
    return Path(shutil.copy2(folder / "book" / "intro.html", folder / "book.html"))


def print_page(source: Path, target: Path, chromium: str) -> None:
    """Print a page without the modules, once every formula is set."""
    from playwright.sync_api import sync_playwright

    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(color_scheme="light")
        page.set_default_timeout(180_000)
        page.goto(source.as_uri(), wait_until="load")
        page.evaluate(OPEN)
        page.emulate_media(media="print")
        room = round((210 - 2 * MARGIN) / 25.4 * 96 / SCALE)
        page.set_viewport_size({"width": room, "height": 1200})
        page.evaluate(FIT)
        margins = {"top": "18mm", "bottom": "18mm", "left": f"{MARGIN}mm", "right": f"{MARGIN}mm"}
        settings = {
            "format": "A4",
            "scale": SCALE,
            "print_background": True,
            "outline": True,
            "tagged": True,
        }
        page.pdf(path=target, margin=margins, **settings)
        browser.close()


def main() -> None:
    """Build and print the book."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "_build" / "book.pdf").resolve()
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        raise SystemExit("Chromium is missing. Install it, or print the pages from any browser.")
    target.parent.mkdir(parents=True, exist_ok=True)
    print_page(build(target.parent / "print"), target, chromium)
    print(f"The book is printed: {target}")


if __name__ == "__main__":
    main()
