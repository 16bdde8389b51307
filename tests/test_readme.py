"""What the README and the page *Use the library* tell people to type does what they say."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from frhsic_core.cli import command

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "book" / "guide.md").read_text(encoding="utf-8")
PAGES = {"README": README, "guide": GUIDE}
# Long ones, which have tests of their own: tests/cli/test_experiments.py, test_statements.py and tests/paper/claims.
LONG = ("frhsic run", "frhsic certify", "frhsic ledger", "frhsic tables", "frhsic status")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.+?)^```$", page, re.DOTALL | re.MULTILINE)


def lines(page: str) -> list[str]:
    """Return what a page lets people type in a terminal: whole blocks, and words of the text."""
    typed = "\n".join(blocks(page, "bash")).splitlines()
    prose = re.sub(r"^```.+?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    spoken = re.findall(r"`((?:make|frhsic|pip install) [^`]+)`", prose)
    found = [line.partition("#")[0].strip() for line in [*typed, *spoken]]
    return [line for line in found if line]


COMMANDS = sorted({line for page in PAGES.values() for line in lines(page)})
FRHSIC = [line for line in COMMANDS if line.startswith("frhsic ")]
# The second line of the adjustment uses what the first one saves.
NAMES = [line for line in FRHSIC if len(line.split()) == 2]  # a command that the text names
RUN = [line for line in FRHSIC if not line.startswith(LONG) and line not in NAMES]
RUN = [line for line in RUN if "--use" not in line]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files that the pages name into an empty folder, in which the code runs."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 400)
    score = np.clip(0.2 + 0.01 * (age - 20) + rng.normal(0, 0.1, 400), 0, 1)
    label = (rng.random(400) < score).astype(int)
    days = pd.date_range("2026-01-01", periods=400, freq="8h")
    people = pd.DataFrame({"p": score, "age": age, "y": label, "date": days, "person": range(400)})
    monkeypatch.chdir(tmp_path)
    for name in ("predictions.csv", "scores.csv", "tomorrow.csv"):
        people.to_csv(name, index=False)
    return tmp_path


def executed(code: str, **given: Any) -> tuple[dict[str, Any], str]:
    """Run a block of Python; return its names and what it prints."""
    names = dict(given)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "a block of a page", "exec"), names)
    return names, printed.getvalue()


def call(line: str) -> tuple[int, str]:
    """Run a command; return its exit status and what it prints."""
    done = CliRunner().invoke(command(), shlex.split(line)[1:])
    return done.exit_code, done.output


# Commands -------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    """About 900 words; what is longer belongs to a page of the book."""
    assert len(README.split()) <= 900


def test_every_command_is_of_a_known_kind() -> None:
    for line in COMMANDS:
        assert line.startswith(("make ", "frhsic ", "pip install ")), line


def test_every_target_of_make_exists() -> None:
    rules = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert {"book", "test"} <= targets <= set(rules)


def test_what_pip_installs_exists() -> None:
    """The repository, one of its extras, or the archive that the build of the book writes."""
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line in COMMANDS:
        if line.startswith("pip install "):
            what = shlex.split(line)[2]
            extra = re.fullmatch(r"\.(?:\[(\w+)\])?", what)
            assert what == "frhsic_core.zip" or extra, line
            if extra and extra.group(1):
                assert f"\n{extra.group(1)} = [" in extras, line


@pytest.mark.parametrize("line", RUN)
def test_a_command_runs(line: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    status, printed = call(line)
    assert status == 0, printed
    if "--out" in line:
        words = shlex.split(line)
        assert words[words.index("--out") + 1] in {path.name for path in folder.iterdir()} - before


def every_command() -> dict[str, Any]:
    """Return all commands; those of the paper join when the list is asked for."""
    group: Any = typer.main.get_command(command())
    group.list_commands(None)
    return group.commands


def test_a_named_command_exists() -> None:
    named = {line.split()[1] for line in NAMES}
    assert named <= set(every_command())


def test_an_adjustment_is_used_again(folder: Path) -> None:
    [again] = [line for line in FRHSIC if "--use" in line]
    [first] = [line for line in FRHSIC if "--save" in line]
    assert call(first)[0] == 0
    assert call(again)[0] == 0
    assert (folder / "tomorrow_adjusted.csv").is_file()


@pytest.mark.parametrize("line", [line for line in FRHSIC if line.startswith(LONG)])
def test_a_long_command_has_these_options(line: str) -> None:
    """Its words are understood; it is run elsewhere."""
    name, *words = shlex.split(line)[1:]
    every_command()[name].make_context(name, words)


def test_the_statuses_of_the_gate_are_those_of_the_page(folder: Path) -> None:
    """A pass is 0, a failure 1, a wrong call 2, and 3 if the data cannot decide."""
    line = "frhsic audit predictions.csv --score p --sensitive age --fail-above gdp={}"
    gdp = 0.126  # about the gap of these people
    limits = {"0.4": 0, "0.001": 1, "word": 2, str(gdp): 3}
    assert {limit: call(line.format(limit))[0] for limit in limits} == limits


# Python ---------------------------------------------------------------------------------------


def test_an_audit_is_five_lines(folder: Path) -> None:
    code = blocks(README, "python")[0]
    assert len(code.split("\n\n")[1].splitlines()) + 2 <= 5
    printed = executed(code)[1]
    assert "get lower scores than people with" in printed.splitlines()[0]
    assert "GDP" in printed.splitlines()[1]
    assert "chance" in printed.splitlines()[2]


def test_an_encoder_is_five_lines_and_keeps_the_age() -> None:
    """HSIC and the linear R² are small, and the nonlinear R² is not, as the README says."""
    code = blocks(README, "python")[1]
    assert len([line for line in code.splitlines() if line]) == 5
    names, printed = executed(code)
    assert "nonlinear_r2" in printed
    audit = names["audit_representation"]
    found = audit(names["encoder"].transform(names["people"].X), names["people"].s)
    assert found.normalized_hsic.max() < 0.03
    assert found.linear_r2 < 0.1
    assert found.nonlinear_r2 > 0.5


def test_the_measures_of_the_guide_run() -> None:
    [code] = [block for block in blocks(GUIDE, "python") if "HSICLoss" in block]
    names = executed(code)[0]
    assert names["penalty"](names["z"], names["s"]) > 0


@pytest.mark.slow  # it compares all remedies
def test_the_remedies_of_the_guide_run(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from frhsic_core import load_dataset

    people = load_dataset("people", n=400, random_state=0)
    [code] = [block for block in blocks(GUIDE, "python") if "compare_remedies" in block]
    X, X_new, y, age = people.X[:300], people.X[300:], people.y[:300], people.s[:300]
    names = executed(code, X=X, X_new=X_new, y=y, age=age)[0]
    assert names["model"].audit_ is not None


@pytest.mark.data
@pytest.mark.slow
def test_the_numbers_of_the_guide_on_adult() -> None:
    """Less dependence by four measures; the printed numbers are those of the page up to rounding."""
    [code] = [block for block in blocks(GUIDE, "python") if "adult" in block]
    printed = executed(code)[1]
    [claimed] = re.findall(r"^```\n(λ = .+?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    found = [
        [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        for line in printed.splitlines()
    ]
    said = [
        [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
        for line in claimed.splitlines()
    ]
    np.testing.assert_allclose(found, said, atol=0.02)
    before, after, _ = np.array(found)
    assert after[1] > before[1] - 0.01
    assert (after[2:] < 0.9 * before[2:]).all()


# The picture ----------------------------------------------------------------------------------


def test_the_picture_shows_the_stored_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import door_picture

    with Image.open(door_picture.PICTURE) as picture:
        assert picture.size == (1200, 630)
        drawn_from = picture.info["Description"]
    assert drawn_from == door_picture.digest(), "run: python book/_ext/door_picture.py"
    unpenalized, paper, whitened = door_picture.shown().values()
    # The README: in the middle cloud HSIC has fallen to a quarter, and the second model finds the age better.
    assert 0.2 < paper["normalized_hsic"] / unpenalized["normalized_hsic"] < 0.3
    assert paper["nonlinear_r2"] > unpenalized["nonlinear_r2"] + 0.1
    assert whitened["nonlinear_r2"] < 0.1


def test_every_file_that_the_readme_names_exists() -> None:
    names = re.findall(r"`((?:book|frhsic_core|notebooks|tests)/[\w./]*|[A-Z][\w.-]+)`", README)
    links = re.findall(r"\]\((?!http)([^)]+)\)", README)
    known = {name for name in [*names, *links] if (ROOT / name).exists()}
    objects = {"GDP"}
    assert set(names + links) - known - objects == set()
