"""The ``frhsic data`` commands and the cards."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from typer.testing import CliRunner

from frhsic_core.cli.paper import data as app
from frhsic_core.data._loading import RECIPES
from frhsic_core.paper.datasets import VARIANTS, sources_of
from frhsic_core.registry import PAPER_DATASETS

ROOT = Path(__file__).parents[2]
STORED = ROOT / "book" / "data_summaries"
CASES = [(name, variant) for name in PAPER_DATASETS for variant in VARIANTS]
run = CliRunner().invoke


def test_fetch_names_a_wrong_file_and_list_calls_it_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("requests.get", refuse)
    path = RECIPES["crime"].sources[0].file.under(tmp_path)
    path.parent.mkdir()
    path.write_text("half of it")
    monkeypatch.setenv("FRHSIC_DATA", str(tmp_path))
    broken = run(app, ["fetch", "crime"])
    assert broken.exit_code == 1
    assert broken.output.count("not available") == 2
    assert "is not the published file" in broken.output
    assert "missing: frhsic data fetch crime" in run(app, ["list"]).output
    assert path.exists()


def test_a_file_that_cannot_be_read_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = RECIPES["crime"].sources[0].file.under(tmp_path)
    path.parent.mkdir()
    path.write_text("secret")
    monkeypatch.setenv("FRHSIC_DATA", str(tmp_path))

    def forbid(*_: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("frhsic_core.data._files.sha256_of", forbid)
    assert "not readable: Permission denied" in run(app, ["list"]).output
    result = run(app, ["fetch", "crime"])
    assert (result.exit_code, result.output.count("Permission denied")) == (1, 2)


@pytest.mark.data
def test_real_files_are_verified() -> None:
    result = run(app, ["fetch", "compas", "crime"])
    assert result.exit_code == 0, result.output
    assert result.output.count("sha256") >= 4
    assert run(app, ["list"]).output.count("verified, in") >= 4


def refuse(*_: object, **__: object) -> None:
    raise requests.ConnectionError


def test_an_unknown_name_is_an_error() -> None:
    for command in ("card", "fetch"):
        result = run(app, [command, "adlut"])
        assert result.exit_code == 2
        assert (
            "dataset is 'adlut' (did you mean 'adult'?): choose one of adult, acs_income"
            in result.output
        )


def test_no_raw_file_of_a_dataset_is_in_the_repository() -> None:
    raw_names = {
        Path(source.file.name).name
        for name in RECIPES
        for v in VARIANTS
        for source in sources_of(name, v)
    }
    places = [ROOT / part for part in ("book", "notebooks", "frhsic_core", "tests")]
    found = [path for place in places for path in place.rglob("*") if path.name in raw_names]
    assert found == []
    assert sorted(path.name for path in STORED.iterdir()) == sorted(
        "{}-{}.json".format(*case) for case in CASES
    )
