"""The extensions that look things up while the book is built."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import nbformat
import numpy as np
import pandas as pd
import pytest
from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")

    def load(name: str) -> ModuleType:
        return __import__(name)

    return load


def test_values_are_walked_to_and_formatted(extension, tmp_path: Path) -> None:
    lookup = extension("live_values").lookup
    (tmp_path / "results.json").write_text(json.dumps({"adult": [{"gdp": 0.12345}]}), encoding="utf-8")
    assert lookup("results.json#adult.0.gdp|.2f", tmp_path) == "0.12"
    assert lookup("results.json#adult.1.gdp", tmp_path) is None
    assert lookup("absent.json#adult", tmp_path) is None
    assert lookup("no such name") is None


def test_verdicts_are_counted_by_certificate_and_by_statement(extension) -> None:
    def row(statement: str, verdict: str) -> dict[str, str]:
        return {"statement": statement, "verdict": verdict, "evidence": "exact"}

    rows = [row("A", "holds"), row("A", "fails as stated"), row("B", "holds"), row("B", "holds as corrected")]
    values = extension("live_values").certificate_values([*rows, row("C", "inconclusive")])
    assert values["certificates.total"] == "5"
    assert values["certificates.hold"] == "2"
    assert (values["statements.total"], values["statements.hold"], values["statements.fail"]) == ("3", "1", "1")
    assert extension("live_values").certificate_values([]) == {}


def test_a_chapter_is_counted(extension, tmp_path: Path) -> None:
    cells = [
        nbformat.v4.new_markdown_cell("word " * 400),
        nbformat.v4.new_code_cell("1"),
        nbformat.v4.new_code_cell(""),
    ]
    cells[1].execution_count = 1
    cells[1].outputs = [nbformat.v4.new_output("display_data", data={"image/png": ""})]
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    found = extension("chapter_facts").facts(path)
    assert (found.cells, found.executed, found.figures, found.errors, found.words) == (1, 1, 1, 0, 400)
    assert found.minutes == 5


def test_a_picture_takes_its_caption_else_its_heading(extension) -> None:
    words_for = extension("alt_text").words_for
    image = nodes.image(uri="a.png")
    nodes.figure("", image, nodes.caption("", "What  is shown."))
    assert words_for(image) == "What is shown."
    alone = nodes.image(uri="b.png")
    nodes.section("", nodes.title("", "A heading"), nodes.paragraph("", "", alone))
    assert "A heading" in words_for(alone)


def test_every_claim_named_for_the_authors_is_on_record(extension) -> None:
    rows = extension("live_values").verdict_rows()
    if not rows:
        pytest.skip("no verdicts are recorded yet")
    text = (ROOT / "book" / "for_the_authors.md").read_text(encoding="utf-8")
    wanted = [
        words.strip() for line in text.splitlines() if line.startswith(":claim:") for words in line[7:].split(";")
    ]
    assert len(wanted) > 10
    assert [words for words in wanted if not any(words in row["claim"] for row in rows)] == []
    files = [name for line in text.splitlines() if line.startswith(":file:") for name in line[6:].split()]
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_own_runs_are_averaged_over_splits(extension) -> None:
    frame = pd.DataFrame(
        {
            "dataset": "crime", "variant": "reference", "task": "regression", "protocol": "reference", "option": "",
            "method": ["unfair", "unfair", "frhsic", "frhsic"], "lam": [0.0, 0.0, 1.0, 1.0], "split": [1, 2, 1, 2],
            "performance": [0.2, 0.4, 0.5, 0.7], "gdp_sample": [1.0, 3.0, 0.5, np.nan],
        }
    )  # fmt: skip
    data = extension("frontier_data").summarise(frame)
    part = data["datasets"]["crime"]
    assert (part["higher"], part["perf_name"]) == (False, "mse")
    assert part["unfair"] == {"lam": 0.0, "perf": 0.3, "gdp_sample": 2.0}
    assert part["methods"] == {"frhsic": [{"lam": 1.0, "perf": 0.6, "gdp_sample": 0.5}]}
    assert list(data["metrics"]) == ["gdp_sample"]


def test_ranks_come_from_the_areas(extension) -> None:
    def point(lam: float, perf: float, dependence: float) -> dict[str, float]:
        return {"lam": lam, "perf": perf, "gdp_reference": dependence, "nonlinear_r2": 1.0 - dependence}

    low, high = [point(1.0, 0.8, 0.1), point(9.0, 0.7, 0.0)], [point(1.0, 0.8, 0.9), point(9.0, 0.7, 0.8)]
    methods = {"frhsic": low, "frem": high}
    part = {"higher": True, "unfair": point(0.0, 0.8, 0.5) | {"nonlinear_r2": 1.0}, "methods": methods}
    values = extension("live_values").run_values({"datasets": {"adult": part}})
    assert values == {"runs.datasets": "1", "runs.methods": "2", "runs.rank_gdp": "1.0", "runs.rank_probe": "2.0"}
    assert extension("live_values").run_values(None) == {}
