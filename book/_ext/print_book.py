"""Print the book into one PDF: ``python book/_ext/print_book.py [--core] [_build/book.pdf]``.

The book is built as one HTML page, typeset by MathJax and printed by chromium, with the fonts, figures and formulas of
the screen. ``--core`` leaves out the audit of the paper and the reference.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARGIN = 16
SCALE = 0.78  # from the size for a screen to about ten points
# Folded answers and results are open on paper; folded code, which only draws, stays out (see the print rules). The long
# module references are for looking up on a screen.
OPEN = """(left_out) => {
  const folded = "article details:not(.hide), article details.hide.above-output";
  document.querySelectorAll(folded).forEach((part) => { part.open = true; });
  for (const name of left_out) document.getElementById(name)?.closest("section").remove();
}"""
# Labels of pages. The modules are left out of every print, and these parts of the print of the core.
MODULES = ["ch-api-modules"]
NOT_CORE = ["part-check", "part-appendix"]
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
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files without logging."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def build(output: Path) -> Path:
    """Build the book as a single page and return its folder, with the page at ``book.html``."""
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-q", "--builder", "singlehtml"]
    subprocess.run([*command, "--path-output", output, "."], cwd=ROOT, check=True)
    folder = output / "_build" / "singlehtml"
    # The builder writes the page one folder down and its addresses as if it lay here.
    shutil.copy2(folder / "book" / "intro.html", folder / "book.html")
    return folder


def print_page(folder: Path, target: Path, chromium: str, *, left_out: list[str]) -> None:
    """Print ``book.html`` without the named pages, once every formula is set."""
    from playwright.sync_api import sync_playwright

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(color_scheme="light")
        page.set_default_timeout(180_000)
        page.goto(f"http://127.0.0.1:{server.server_port}/book.html", wait_until="load")
        page.evaluate("async () => { await MathJax.startup.promise; }")
        page.evaluate(OPEN, left_out)
        page.emulate_media(media="print")
        room = round((210 - 2 * MARGIN) / 25.4 * 96 / SCALE)
        page.set_viewport_size({"width": room, "height": 1200})
        page.evaluate(FIT)
        margins = {"top": "18mm", "bottom": "18mm", "left": f"{MARGIN}mm", "right": f"{MARGIN}mm"}
        settings = {"format": "A4", "scale": SCALE, "print_background": True, "outline": True, "tagged": True}
        page.pdf(path=target, margin=margins, **settings)
        browser.close()
    server.shutdown()
    server.server_close()


def main() -> int:
    """Build and print the book."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "_build" / "book.pdf")
    parser.add_argument("--core", action="store_true", help="leave out the audit of the paper and the reference")
    arguments = parser.parse_args()
    target = arguments.target.resolve()
    chromium = next((found for name in NAMES if (found := shutil.which(name))), None)
    if chromium is None:
        raise SystemExit("Chromium is missing. Install it, or print the pages from any browser.")
    target.parent.mkdir(parents=True, exist_ok=True)
    left_out = NOT_CORE if arguments.core else MODULES
    print_page(build(target.parent / "print"), target, chromium, left_out=left_out)
    print(f"The book is printed: {target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
