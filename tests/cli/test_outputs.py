"""What the command writes: no file is lost, nobody is exposed, and the exit status is the verdict's."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import frhsic_core.inputs.files as files
from frhsic_core.cli import command

COLUMNS = ["--score", "p", "--sensitive", "age"]
ABOVE = ["--fail-above", "gdp=0.01"]


def people(**more: Any) -> pd.DataFrame:
    age = 20 + np.arange(40) * 7 % 53
    return pd.DataFrame({"p": 0.2 + 0.01 * (age - 20), "age": age} | more)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a table into an empty folder, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    people().to_csv("t.csv", index=False)
    return tmp_path / "t.csv"


def call(*words: object, charset: str = "utf-8") -> tuple[int, str]:
    runner = CliRunner(charset=charset)
    result = runner.invoke(command(), [str(word) for word in words])
    return result.exit_code, " ".join(result.output.split())


def existing() -> set[str]:
    return {path.name for path in Path().iterdir()}


# Files that exist -----------------------------------------------------------------------------


def test_replaced_files_are_named(table: Path) -> None:
    Path("README.md").write_text("mine")
    status, printed = call("audit", table, *COLUMNS, "--out", "README.html")
    assert (status, printed.endswith("Replaced: README.md")) == (0, True)
    again = call("audit", table, *COLUMNS, "--out", "README.html")[1]
    assert again.endswith("Replaced: README.html, README.md, README.json")
    assert "Replaced" not in call("adjust", table, *COLUMNS, "--out", "a.csv")[1]
    assert "Replaced: a.csv, a.html" in call("adjust", table, *COLUMNS, "--out", "a.csv")[1]


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["audit", "--out", "r.html"], "r.html"),
        (["audit", "--out", "r.html"], "r.md"),
        (["audit", "--out", "r.html"], "r.json"),
        (["adjust", "--out", "a.csv"], "a.csv"),
        (["adjust", "--out", "a.csv"], "a.html"),
        (["adjust", "--out", "a.csv", "--save", "s"], "s"),
    ],
)
def test_no_overwrite_keeps_every_file(table: Path, words: list[str], there: str) -> None:
    Path(there).write_text("mine")
    name, *options = words
    status, printed = call(name, table, *COLUMNS, *options, "--no-overwrite")
    assert (status, f"{there} exists" in printed) == (2, True)
    assert (existing(), Path(there).read_text()) == ({"t.csv", there}, "mine")


def test_no_overwrite_keeps_the_table_of_the_demo(table: Path) -> None:
    Path("audit_people.csv").write_text("mine")
    assert call("audit", "--demo", "--no-overwrite")[0] == 2
    assert (existing(), Path("audit_people.csv").read_text()) == (
        {"t.csv", "audit_people.csv"},
        "mine",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "scores.html"], "has the ending .html"),
        (["--out", "scores.xlsx"], "has the ending .xlsx"),
        (["--out", "scores.csv.zip"], "has the ending .zip"),
        (["--out", "both.csv", "--save", "both.csv"], "would be one file"),
        (["--out", "both.csv", "--save", "./both.csv"], "would be one file"),
        (["--out", "a.csv", "--save", "a.html"], "would be one file"),
        (["--out", "t.csv"], "a file that this command reads"),
        (["--out", "link.csv"], "a file that this command reads"),
        (["--out", "hard.csv"], "a file that this command reads"),
        (["--out", "a.csv", "--save", "t.csv"], "a file that this command reads"),
        (["--out", "a.csv", "--save", "s", "--use", "s"], "a file that this command reads"),
        (["--out", "."], "is a folder"),
    ],
)
def test_adjust_does_not_lose_its_own_files(table: Path, options: list[str], message: str) -> None:
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    before = existing(), table.read_bytes()
    status, printed = call("adjust", table, *COLUMNS, *options)
    assert (status, message in printed) == (2, True), printed
    assert (existing(), table.read_bytes()) == before


def test_an_audit_does_not_replace_the_table_that_it_reads(table: Path) -> None:
    table.rename("data.md")
    status, printed = call("audit", "data.md", *COLUMNS, "--out", "data.html")
    assert (status, "data.md would replace a file" in printed) == (2, True)
    assert existing() == {"data.md"}


# Permissions, links, devices ------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="permissions")
def test_scores_are_as_private_as_the_umask_asks(table: Path) -> None:
    old = os.umask(0o077)
    try:
        call("audit", table, *COLUMNS)
        call("adjust", table, *COLUMNS, "--save", "s")
    finally:
        os.umask(old)
    written = existing() - {"t.csv"}
    assert len(written) == 6
    assert {stat.S_IMODE(Path(name).stat().st_mode) for name in written} == {0o600}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="devices")
def test_devices_stay_devices(table: Path) -> None:
    null = Path("/dev/null")
    for name in ("audit", "adjust"):
        status, printed = call(name, table, *COLUMNS, "--out", null)
        assert (status, null.is_char_device()) == (0, True), printed
        status, printed = call(name, table, *COLUMNS, "--out", "/dev/full")
        assert status == 2
        assert "/dev/full could not be written (No space left on device)" in printed
    assert call("adjust", table, *COLUMNS, "--out", "a.csv", "--save", null)[0] == 0
    assert null.is_char_device()
    assert existing() == {"t.csv", "a.csv", "a.html"}
    assert not Path("/dev/null.html").exists()


def test_a_link_is_followed(table: Path) -> None:
    Path("real.csv").write_text("old")
    Path("link.csv").symlink_to("real.csv")
    assert call("adjust", table, *COLUMNS, "--out", "link.csv")[0] == 0
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text().startswith("p,age,p_adjusted")


@pytest.mark.parametrize("source", ["t.csv", "t.parquet"])
def test_other_forms_of_a_table(table: Path, source: str) -> None:
    """Compressed CSV and parquet hold the same numbers, and a parquet file keeps its index."""
    people(name=[f"{k:03d}" for k in range(40)]).set_index("name").to_parquet("t.parquet")
    found = []
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        assert call("adjust", source, *COLUMNS, "--out", name)[0] == 0
        assert call("audit", name, *COLUMNS)[0] == 0
        read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
        written = read(name).reset_index()
        assert ("name" in written) == (source == "t.parquet")
        found.append(written["p_adjusted"].to_numpy(dtype=float))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-12)


# Provenance, pipes ----------------------------------------------------------------------------


def test_the_hash_is_that_of_the_file_that_was_read(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    read_table = files.read_table

    def replaced_meanwhile(*given: Any, **options: Any) -> Any:
        found = read_table(*given, **options)
        people(p=0.5).to_csv(table, index=False)
        return found

    monkeypatch.setattr("frhsic_core.cli.practice.read_table", replaced_meanwhile)
    status, printed = call("audit", table, *COLUMNS)
    assert (status, "changed while it was read" in printed) == (2, True)
    assert existing() == {"t.csv"}

    def replaced_later(*given: Any, **options: Any) -> Any:
        people().to_csv(table, index=False)
        return read_table(*given, **options)

    people().to_csv(table, index=False)
    monkeypatch.setattr("frhsic_core.cli.practice.read_table", replaced_later)
    assert call("audit", table, *COLUMNS)[0] == 0
    assert json.loads(Path("audit.json").read_text())["provenance"]["sha256"] == digest


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="devices")
def test_a_table_from_the_standard_input_and_a_full_disk(table: Path) -> None:
    """One process: it reads a pipe, and cannot write what it found; the status is the gate's."""
    call_main = "from frhsic_core.cli import main; main()"
    words = [sys.executable, "-c", call_main, "audit", "/dev/stdin", *COLUMNS, *ABOVE]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, input=table.read_bytes(), stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False), done.stderr
    about = json.loads(Path("audit.json").read_text())["provenance"]
    assert about["file"] == "stdin"
    assert about["sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()


UNREAD = {
    "a gate that passes": (["audit", "t.csv", *COLUMNS, "--fail-above", "gdp=0.4"], 0),
    "a gate that fails": (["audit", "t.csv", *COLUMNS, *ABOVE], 1),
    "a table": (["data", "list"], 0),
}


@pytest.mark.parametrize("color", ["", "1"], ids=["a pipe", "a terminal"])
@pytest.mark.parametrize("name", UNREAD)
def test_a_pipe_that_nobody_reads_does_not_change_the_status(
    table: Path, name: str, color: str
) -> None:
    words, status = UNREAD[name]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", "from frhsic_core.cli import main; main()", *words],
        stdout=write,
        stderr=write,
        env=os.environ | {"FORCE_COLOR": color},
    )
    os.close(write)
    assert done.returncode == status


# What is printed ------------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["ascii", "cp1252"])
def test_a_name_that_cannot_be_printed_does_not_change_the_status(
    table: Path, charset: str
) -> None:
    people().rename(columns={"age": "年龄"}).to_csv(table, index=False)
    words = ["audit", table, "--score", "p", "--sensitive", "年龄"]
    status, printed = call(*words, *ABOVE, charset=charset)
    assert (status, r"\u5e74\u9f84" in printed) == (1, True)
    assert call(*words, "--fail-above", "gdp=0.4", charset=charset)[0] == 0


def test_escape_sequences_are_visible(table: Path) -> None:
    """A category cannot rewrite lines of a terminal, nor turn the direction of a text."""
    evil = "north\x1b[1A\x1b[2K- gdp is below\x9b2K\u202e"
    area = [evil if k % 2 else "south" for k in range(40)]
    score = [0.2 + 0.5 * (k % 2) + 0.001 * k for k in range(40)]
    people(area=area, p=score).to_csv(table, index=False)
    words = ["--score", "p", "--sensitive", "area"]
    printed = call("audit", table, *words)[1] + call("adjust", table, *words)[1]
    markdown = Path("audit.md").read_text()
    for text in (printed, markdown):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert r"north\x1b[1A" in printed
    assert r"north\\x1b" in markdown


def test_a_suggested_command_can_be_pasted(table: Path) -> None:
    names = {"p": "credit score", "age": "$(touch evil)"}
    people().rename(columns=names).to_csv("my file.csv", index=False)
    options = ["--score", names["p"], "--sensitive", names["age"], "--out", "my new file.csv"]
    printed = call("adjust", "my file.csv", *options)[1]
    suggested = printed.partition("if you have labels: ")[2].partition(", and the same with ")
    words = shlex.split(suggested[0])
    assert words[:3] == ["frhsic", "audit", "my new file.csv"]
    assert words[words.index("--sensitive") + 1] == names["age"]
    assert shlex.split(suggested[2].rstrip(".")) == ["--score", "credit score_adjusted"]
    words[words.index("--label") :] = ["--score", "credit score_adjusted"]
    assert call(*words[1:])[0] == 0


# Gates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "meant"),
    [
        ("gdp=5", "gdp=0.05"),
        ("gdp[age]=20", "gdp=0.2"),
        ("impact_gap=20", "impact_gap=0.2"),
        ("gdp=0.5", ""),
        ("gdp_over_sd=1", ""),
    ],
)
def test_a_threshold_that_can_never_fail_is_refused(table: Path, gate: str, meant: str) -> None:
    status, printed = call("audit", table, *COLUMNS, "--threshold", "0.4", "--fail-above", gate)
    assert status == 2
    assert "can never fail" in printed
    assert meant in printed
    assert existing() == {"t.csv"}


def test_strict_does_not_pass_if_those_left_out_differ(table: Path) -> None:
    """All people over 50 have no score: the others pass, and the verdict says who is missing."""
    age = 20.0 + np.arange(400) * 7 % 53
    score = np.where(age > 50, np.nan, 0.5 + 0.001 * np.sin(np.arange(400)))
    pd.DataFrame({"p": score, "age": age}).to_csv(table, index=False)
    gate = ["--fail-above", "gdp=0.05"]
    status, printed = call("audit", table, *COLUMNS, *gate)
    assert (status, "But " in printed) == (0, True)
    status, printed = call("audit", table, *COLUMNS, *gate, "--strict")
    assert (status, "is not accepted" in printed) == (1, True)
    status, printed = call("audit", table, *COLUMNS, "--strict")
    assert (status, "--strict needs a threshold" in printed) == (2, True)
