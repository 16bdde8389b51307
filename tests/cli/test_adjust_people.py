"""People with a score but without an attribute are treated by the rule that the command is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic_core.cli import command


def run(folder: Path, *options: str) -> tuple[Any, pd.DataFrame, Path]:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 400).astype(float)
    table = pd.DataFrame({"p": 1 / (1 + np.exp(-(age - 45) / 15 - rng.normal(size=400)))})
    table["age"] = age
    table.loc[:9, "age"] = np.nan
    source, out = folder / "s.csv", folder / "o.csv"
    table.to_csv(source, index=False)
    words = ["adjust", str(source), "--score", "p", "--sensitive", "age", "--out", str(out)]
    return CliRunner().invoke(command(), [*words, *options]), table, out


def test_by_default_their_cells_are_empty_and_a_sentence_says_so(tmp_path: Path) -> None:
    result, _, out = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "10 people have a score but not every attribute: they get no" in result.output
    assert pd.read_csv(out)["p_adjusted"].isna().to_numpy()[:10].all()


def test_they_can_keep_their_score(tmp_path: Path) -> None:
    result, table, out = run(tmp_path, "--missing", "leave")
    assert "10 people have a score but not every attribute: they keep" in result.output
    written = pd.read_csv(out)
    np.testing.assert_allclose(written["p_adjusted"][:10], table["p"][:10])
    assert written["p_adjusted"].notna().all()


def test_they_can_get_the_expected_score(tmp_path: Path) -> None:
    saved = tmp_path / "age.adjustment"
    result, _, out = run(tmp_path, "--missing", "expected", "--save", str(saved))
    assert "they get the adjusted score that is expected" in result.output
    first = pd.read_csv(out)["p_adjusted"]
    assert first.between(0, 1).all()
    result, _, out = run(tmp_path, "--missing", "expected", "--use", str(saved))
    np.testing.assert_allclose(pd.read_csv(out)["p_adjusted"], first)


@pytest.mark.parametrize(
    ("rule", "words"),
    [("refuse", "10 people have a score but"), ("drop", "missing is 'drop': choose one of empty")],
)
def test_they_can_be_refused(tmp_path: Path, rule: str, words: str) -> None:
    result, _, out = run(tmp_path, "--missing", rule)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert not out.exists()
