"""The explorer "Your own file" gives the numbers of the library, in a real browser, and says what it cannot read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic_core import gdp, gdp_bound

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "book" / "_ext"))

import bundle_explorers
import explorers

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
CLOSE = 1e-9
RNG = np.random.default_rng(0)
YEARS = RNG.integers(20, 70, 1000)
EXACT = RNG.uniform(20.0, 70.0, 1000)
INCOME = RNG.gamma(2.0, 20_000.0, 5000).round(2)


def squeezed(values: np.ndarray) -> np.ndarray:
    return np.clip(values, 0.0, 1.0)


def with_gaps(values: np.ndarray) -> np.ndarray:
    found = values.astype(float)
    found[::7] = np.nan
    return found


# Scores, ages, and how the file is written.
TABLES: dict[str, tuple[np.ndarray, np.ndarray, dict[str, str]]] = {
    "rising": (1.0 / (1.0 + np.exp(-(EXACT - 45.0) / 10.0)), EXACT, {}),
    "whole years": (squeezed(0.5 + 0.01 * (YEARS - 45) + 0.2 * RNG.normal(size=1000)), YEARS, {}),
    "five values": (RNG.uniform(size=500), RNG.integers(0, 5, 500), {}),
    "coins": ((RNG.uniform(size=3000) < 0.3).astype(float), RNG.integers(18, 91, 3000), {}),
    "income": (squeezed(INCOME / 2e5), INCOME, {}),
    "a wave": (0.5 + 0.4 * np.sin(YEARS / 3.0), YEARS, {}),
    "missing ages": (RNG.uniform(size=1000), with_gaps(YEARS), {}),
    "missing scores": (with_gaps(RNG.uniform(size=1000)), YEARS, {}),
    "decimal commas": (
        RNG.uniform(size=300).round(3),
        RNG.uniform(20.0, 60.0, 300).round(2),
        {"sep": ";", "decimal": ","},
    ),
    "few": (RNG.uniform(size=25), RNG.uniform(20.0, 60.0, 25), {"sep": "\t"}),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page with nothing but the explorer, opened as a file and not from a server."""
    folder = tmp_path_factory.mktemp("own_file")
    bundle_explorers.write(folder)
    scripts = '<script src="d3.v5.min.js"></script><script src="all.js"></script>'
    page = (
        f'<!doctype html><meta charset="utf-8"><title>Own file</title>{explorers.OWN_FILE}{scripts}'
    )
    (folder / "page.html").write_text(page, encoding="utf-8")
    return (folder / "page.html").as_uri()


@pytest.fixture
def own_file(browser: Any, alone: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(alone)
    yield page.locator(".explorer[data-explorer=own_file]")
    context.close()


def opened(root: Any, path: Path) -> dict[str, Any]:
    """Choose a file, and return what the explorer computed."""
    root.locator("input[type=file]").set_input_files(str(path))
    root.page.wait_for_function(
        "root => root.file !== undefined", arg=root.element_handle(), timeout=60_000
    )
    root.page.wait_for_timeout(200)
    return root.evaluate(
        "r => r.found && ({gdp: r.found.curve.gdp, bound: r.found.bound?.bound, left: r.found.left})"
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_are_those_of_the_library(own_file: Any, tmp_path: Path, name: str) -> None:
    scores, ages, written = TABLES[name]
    table = pd.DataFrame({"id": np.arange(len(scores)), "p": scores, "age": ages})
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False, **written)
    found = opened(own_file, path)
    known = table.dropna()
    p, age = known["p"].to_numpy(), known["age"].to_numpy()
    assert found["left"] == len(table) - len(known)
    assert found["gdp"] == pytest.approx(gdp(p, age), abs=CLOSE)
    # Where most people have an age of their own, the guarantee is one for whole years.
    many = len(np.unique(age)) > len(age) / 3
    groups = np.floor(age + 0.5) if many else age
    assert found["bound"] == pytest.approx(gdp_bound(p, sensitive_features=groups).bound, abs=CLOSE)
    assert own_file.locator("svg path.line").count() == 1
    assert (
        own_file.locator("code").text_content()
        == "frhsic audit table.csv --score p --sensitive age"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p,age\n" + "0.5,old\n" * 30, 'age has "old", which is no number'),
        ("p,age\n0.5,30\n", "Only 1 rows have both numbers"),
        ("p,age\n", "no rows below its header"),
        ("p,age\n" + "1,234,56\n" * 30, "more cells than the header"),
        ('p,age\n"0.5,30\n' + "0.5,30\n" * 30, "A quotation mark is opened"),
    ],
)
def test_what_it_cannot_read_is_said(own_file: Any, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    assert opened(own_file, path) is None
    assert said in own_file.locator("[data-value=sentence]").text_content()


def test_a_hundred_thousand_rows_and_scores_in_points(own_file: Any, tmp_path: Path) -> None:
    """Points have a curve but no guarantee. Names with a space are quoted in the command."""
    rng = np.random.default_rng(1)
    age = rng.integers(18, 95, 100_000)
    table = pd.DataFrame({"credit score": 300 + 2 * age + rng.normal(0, 50, 100_000), "age": age})
    path = tmp_path / "many rows.csv"
    table.to_csv(path, index=False)
    own_file.locator("input[type=file]").set_input_files(str(path))
    deadline = time.monotonic() + 120
    found = None
    while found is None and time.monotonic() < deadline:
        own_file.page.wait_for_timeout(250)
        found = own_file.evaluate("r => r.found && r.found.curve.gdp")
    expected = gdp(table["credit score"].to_numpy(), age)
    assert found == pytest.approx(expected, rel=CLOSE)
    sentence = own_file.locator("[data-value=sentence]").text_content()
    assert "A guarantee needs scores between 0 and 1" in sentence
    command = own_file.locator("code").text_content()
    assert command == "frhsic audit 'many rows.csv' --score 'credit score' --sensitive age"
