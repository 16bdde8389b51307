"""What the executed notebooks print has names in words, and no keys of stored results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import nbformat
import pytest

from frhsic_core.paper.display import KERNEL_NAMES
from frhsic_core.registry import METHODS

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# A key in any text, and what betrays a working copy.
KEY = re.compile(r"(?<![\w.])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w.(])|\b\w+=\w+;|-dirty\b")
# A cell of a table that starts with a key which is an ordinary word in a sentence.
KEYS = {*METHODS, *KERNEL_NAMES, "acc", "naup", "gdp", "cauchy", "lognormal", "law"}
CELL = re.compile(r"(?:" + "|".join(sorted(KEYS, key=len, reverse=True)) + r")(?![\w-]).*")
# Here the reader meets the library itself: what its functions return, arguments that a user types, names of modules.
SHOWN = {
    # The frame of an audit.
    "audit_your_model": {
        "by_chance",
        "distance_correlation",
        "equal_opportunity",
        "equalized_odds",
        "gdp",
        "max_gap",
    }
    | {
        "gdp_bound",
        "gdp_given",
        "gdp_over_sd",
        "linear_r2",
        "nonlinear_r2",
        "normalized_hsic",
        "pvalue_given",
    }
    | {"pvalue_given_label", "test_score", "habit_1", "habit_2"},
    # Also the paper's own 50-50-n_out, and the label of its figure.
    "ledger": {"reg_gdp", "within_spread", "n_out", "lambda_selection"},
    "theorem_map": {
        path.stem for path in (ROOT / "frhsic_core" / "paper" / "statements").glob("*.py")
    },
    "watch_frhsic": {"test_score", "habit_1", "habit_2"},
    "never_saw_your_age": {"test_score", "habit_1", "habit_2"},
    "which_remedy": {
        "adjust_scores",
        "adjusted_score",
        "audit_adjusted",
        "audit_original",
        "frhsic_core",
    },
}


def texts(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of text of all outputs as a page shows them, each with whether it is a cell of a table."""
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                html = re.sub(r"(?s)<(style|script|code|svg).*?</\1>", "", data["text/html"])
                for piece in re.split(
                    r"</?(?:td|th|tr|div|p|br|small|caption|table)\b[^>]*>", html
                ):
                    yield unescape(re.sub(r"<[^>]+>", "", piece)).strip(), True
            elif "image/png" not in data:
                yield output.get("text") or data.get("text/plain", ""), False


def keys(pieces: Iterator[tuple[str, bool]]) -> list[str]:
    """Return the keys that readers see."""
    found = []
    for text, is_cell in pieces:
        found += KEY.findall(text)
        found += CELL.findall(text) if is_cell and CELL.match(text) else []
    return sorted(set(found))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_shows_a_key(path: Path) -> None:
    found = keys(texts(path))
    assert set(found) - SHOWN.get(path.stem, set()) == set(), (
        "Map the key to words where it is printed."
    )


@pytest.mark.parametrize(
    ("text", "is_cell", "found"),
    [
        ("code: 0.2.0+aa (bb-dirty)", False, ["-dirty"]),
        ("hsic_biased    stored mean 0.1", False, ["hsic_biased"]),
        ("kz=gaussian;ks=imq;λ=5", True, ["ks=imq;", "kz=gaussian;"]),
        ("frhsic standardised", True, ["frhsic standardised"]),
        ("lognormal", True, ["lognormal"]),
        ("run frhsic certify; gamma fit of the law", False, []),
        ("FRHSIC, bandwidth of every batch", True, []),
        ("see frhsic_core.joint.hsic(z, s)", False, []),
    ],
)
def test_the_search_for_keys_can_fail(text: str, is_cell: bool, found: list[str]) -> None:
    assert keys(iter([(text, is_cell)])) == found
