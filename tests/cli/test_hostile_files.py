"""A hundred hostile files: the numbers of the true table, or one clear sentence and exit status 2.

The true table is written here, as numbers and without a reader. Each file holds it in another form,
or is broken in one way. ``frhsic audit`` and ``frhsic adjust`` read every file.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from frhsic_core import adjust_scores, audit
from frhsic_core.cli import command

csv.field_size_limit(1_000_000)
N = 30
AGE = 20 + np.arange(N) * 7 % 53
P = np.round(0.2 + 0.009 * (AGE - 20) + 0.03 * np.sin(np.arange(N)), 4)
UNKNOWN = (3, 8, 21)  # rows whose attribute some files lack
FAITHS = ("None", "Christian", "Muslim")
FAITH = tuple(FAITHS[k % 3] for k in range(N))
BIRTH = tuple(f"{2000 - age}-0{1 + k % 9}-1{k % 9}" for k, age in enumerate(AGE))


# The truth ------------------------------------------------------------------------------------


def with_missing(values: Any) -> np.ndarray:
    """Return an attribute without the unknown values."""
    known = np.asarray(values, dtype=object)
    known[list(UNKNOWN)] = None
    return known


def years(dates: tuple[str, ...]) -> np.ndarray:
    """Return dates as years, by counting days."""
    days = [(np.datetime64(date) - np.datetime64("1970-01-01")).astype(int) for date in dates]
    return 1970.0 + np.array(days) / 365.2425


FLOAT_MISSING = AGE.astype(float)
FLOAT_MISSING[list(UNKNOWN)] = np.nan
TRUTH = {
    "ages": AGE,
    "some ages": FLOAT_MISSING,
    "faiths": np.array(FAITH, dtype=object),
    "some faiths": with_missing(FAITH),
    "yes or no": (AGE > 40).astype(float),
    "three answers": np.array(["True", "False", "maybe"], dtype=object)[AGE % 3],
    "birth": years(BIRTH),
}


@cache
def true_audit(truth: str) -> dict[str, Any]:
    """Return the numbers of the audit of the true table."""
    frame = pd.DataFrame({"age": TRUTH[truth]})
    found = audit(pd.Series(P, name="p"), sensitive_features=frame).as_dict()
    return found["attributes"][0]["numbers"]


@cache
def true_adjustment(truth: str) -> np.ndarray:
    """Return the adjusted scores of the true table, NaN where the attribute is unknown."""
    attribute = pd.Series(TRUTH[truth])
    known = attribute.notna().to_numpy()
    scores = np.full(N, np.nan)
    frame = pd.DataFrame({"age": attribute[known].to_list()})
    scores[known] = adjust_scores(P[known], sensitive_features=frame)
    return scores


# Files ----------------------------------------------------------------------------------------

Rows = list[list[str]]


def rows(age: Any = AGE, p: Any = P, **more: Any) -> Rows:
    """Return the cells of the true table, with a header and more columns at the end."""
    columns = {"id": [f"P{k:03d}" for k in range(N)], "p": p, "age": age} | more
    lines = [[str(cell) for cell in line] for line in zip(*columns.values(), strict=True)]
    return [list(columns), *lines]


def text(cells: Rows | None = None, delimiter: str = ",", end: str = "\n", last: str = "") -> bytes:
    """Return cells as a file; ``last`` stands at the end of every line of data."""
    header, *lines = rows() if cells is None else cells
    written = [delimiter.join(line) + last for line in lines]
    return (end.join([delimiter.join(header), *written]) + end).encode()


def blank(values: Any, word: str = "") -> list[str]:
    """Return values as words, the unknown ones as one given word."""
    return [word if k in UNKNOWN else str(value) for k, value in enumerate(values)]


def each(form: str, values: Any = AGE) -> list[str]:
    """Return values in a form such as ``{}%``."""
    return [form.format(value) for value in values]


@dataclass(frozen=True)
class Case:
    """One file, and the truth that it holds or a part of the error.

    ``content`` are the bytes of the file, or a function that writes it and returns its path.
    """

    name: str
    content: bytes | Callable[[Path], Path]
    truth: str = ""
    error: str = ""
    file: str = "t.csv"
    delimiter: str = ","
    said: str = ""

    def write(self, folder: Path) -> Path:
        if callable(self.content):
            return self.content(folder)
        (folder / self.file).write_bytes(self.content)
        return folder / self.file


def good(name: str, content: Any, truth: str = "ages", **more: Any) -> Case:
    return Case(name, content, truth=truth, **more)


def bad(name: str, content: Any, error: str, **more: Any) -> Case:
    return Case(name, content, error=error, **more)


def zipped(count: int) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for k in range(count):
            archive.writestr(f"{k}.csv", text())
    return whole.getvalue()


def quoted(form: str) -> bytes:
    return text([[form.format(cell) for cell in line] for line in rows()])


def with_line(place: int, line: bytes) -> bytes:
    lines = text().split(b"\n")
    return b"\n".join([*lines[:place], line, *lines[place:]])


def header(line: str) -> bytes:
    """Return the file with another first line."""
    return line.encode() + text()[len("id,p,age") :]


SHAPES = [
    good("plain", text()),
    good("semicolons", text(delimiter=";"), delimiter=";"),
    good("tabs", text(delimiter="\t"), delimiter="\t", file="t.tsv"),
    good("bars", text(delimiter="|"), delimiter="|"),
    good("an unknown ending", text(), file="t.data"),
    good("line ends of Windows", text(end="\r\n")),
    good("line ends of old Macs", text(end="\r")),
    good("a byte-order mark", b"\xef\xbb\xbf" + text()),
    good("gzip", gzip.compress(text()), file="t.csv.gz"),
    good("bzip2", bz2.compress(text()), file="t.csv.bz2"),
    good("xz", lzma.compress(text()), file="t.csv.xz"),
    good("zip", zipped(1), file="t.csv.zip"),
    good("a comma at the end of data", text(last=",")),
    good("a semicolon at the end of data", text(delimiter=";", last=";"), delimiter=";"),
    good("a comma at the end of all lines", text().replace(b"\n", b",\n")),
    good("a blank first line", b"\n" + text()),
    good("three blank first lines", b"\r\n\r\n  \r\n" + text(end="\r\n")),
    good("a blank line inside", with_line(5, b"")),
    good("no end of the last line", text().rstrip()),
    good("spaces after commas", quoted(" {}")),
    good("spaces around numbers", text(rows(each(" {} "), each("  {}", P)))),
    good("quotes around everything", quoted('"{}"')),
    good("quotes after spaces", quoted(' "{}"')),
    good("commas in quotes", text(rows(note=['"a, b"'] * N))),
    good("line breaks in quotes", text(rows(note=['"a\nb"'] * N))),
    good("quotes in quotes", text(rows(note=['"say ""a"", b"'] * N))),
    good("an empty cell in quotes", text(rows(note=['""'] * N))),
    good("a line break in a name", text(rows(**{'"two\nlines"': ["x"] * N}))),
]
NAMES = [
    good("two other columns with one name", text([[*line, line[0]] for line in rows()])),
    good("an index without a name", text([["", *rows()[0]], *[["7", *r] for r in rows()[1:]]])),
    good("another column of dates", text(rows(day=["31.12.1980"] * N))),
    good("another column with NA", text(rows(other=blank(AGE, "NA")))),
    good("another column of all kinds", text(rows(other=["1", "x", ""] * (N // 3)))),
    good("escape sequences in another column", text(rows(other=["\x1b[2K\x1b[1A"] * N))),
    good("a formula as a name", text(rows(**{"=cmd()": AGE}))),
    good("a name in another script", text(rows(**{"größe 身長": AGE}))),
    good("a name with markup", text(rows(**{"[bold]<b>": AGE}))),
    good("five hundred columns", text(rows(**{f"x{k}": [k] * N for k in range(500)}))),
    good("a cell of 200,000 letters", text(rows(note=["x" * 200_000] * 1 + ["y"] * (N - 1)))),
    good("spaces in the name of the file", text(), file="my file.csv"),
    good("a shell command as the name of the file", text(), file="$(touch x) `y`.csv"),
    good("quotes in the name of the file", text(), file='it\'s "t".csv'),
    good("another script in the name of the file", text(), file="größe 身長.csv"),
]
NUMBERS = [
    good("ages with a point", text(rows(each("{}.0")))),
    good("leading zeros", text(rows(each("0{}")))),
    good("plus signs", text(rows(each("+{}")))),
    good("exponents", text(rows(p=each("{:.3e}", P)))),
    good("no zero before the point", text(rows(p=[str(p)[1:] for p in P]))),
    bad("a decimal comma", text(rows(p=[str(p).replace(".", ",") for p in P]), ";"), "'p'"),
    bad("percent signs", text(rows(p=each("{} %", P))), "'p' has numbers that are written as text"),
    bad("currencies", text(rows(each("€{}"))), "'age' has numbers that are written as text"),
    bad("units", text(rows(each("{} years"))), "'age' has numbers that are written as text"),
    bad("an open group", text(rows([*AGE[:-1], "60+"])), "such as '60+'"),
    bad("quotes inside cells", text(rows(each("'{}'"))), "'age' has numbers inside quotes"),
    bad("formulas of Excel", text(rows(each('"=""{}"""'))), "'age' has numbers inside quotes"),
    bad("hexadecimal ages", text(rows(each("{:#x}"))), "'age' has numbers as a program"),
    bad("separators of Python", text(rows(each("1_0{}"))), "such as 1_0"),
    bad("letters among ages", text(rows([*AGE[:-1], "old"])), "'age' mixes numbers and words"),
    bad("digits in words", text(rows([*AGE[:-1], "I"])), "'age' mixes numbers and words"),
    bad("complex numbers", text(rows(p=each("{}+1j", P))), "'p' has"),
    bad("words as scores", text(rows(p=["high", "low"] * (N // 2))), "'p' has words"),
    bad("a huge score", text(rows(p=[*P[:-1], "1e200"])), "'p' has the value 1e+200"),
    bad("an identifier", text(rows([f"K{k}" for k in range(N)])), "Is it an identifier?"),
    bad("no age at all", text(rows([""] * N)), "'age' has no value"),
]
INCOMES = [str(k * 40) if k < 25 else f"{k // 25}.{k % 25 * 40:03d}" for k in range(1, N + 1)]
ROUND = [str(k * 40) if k < 25 else f"{k // 25}.000" for k in range(1, N + 1)]
LARGE = [f"{1 + k}.{k * 37 % 1000:03d}" for k in range(N)]
MILLIONS = [f"1.2{k}0.000" for k in range(10)] * 3
COMMAS = [f'"1,{k + 100}"' for k in range(N)]
THOUSANDS = [
    bad("German thousands", text(rows(INCOMES), ";"), "seem to separate thousands"),
    bad("German thousands and commas", text(rows(INCOMES)), "seem to separate thousands"),
    bad("round German thousands", text(rows(ROUND), ";"), "seem to separate thousands"),
    bad("German millions", text(rows(MILLIONS), ";"), "'age' has numbers that are written as text"),
    bad("English thousands", text(rows(COMMAS)), "'age' has numbers that are written as text"),
    bad("Swiss thousands", text(rows(each("1'0{}"))), "'age' has numbers that are written as text"),
]
DATES = [
    good("dates", text(rows(BIRTH)), "birth"),
    good("dates with times", text(rows(each("{} 00:00:00", BIRTH))), "birth"),
    bad("German dates", text(rows([f"{1 + k % 28}.12.1980" for k in range(N)])), "has dates"),
    bad("American dates", text(rows([f"12/{1 + k % 28}/1980" for k in range(N)])), "has dates"),
    bad("dates with slashes", text(rows([f"1980/12/{1 + k % 28}" for k in range(N)])), "has dates"),
    bad("a day that does not exist", text(rows([*BIRTH[:-1], "1980-02-31"])), "'1980-02-31'"),
]
READ_AS_MISSING = "that was read as a missing value"
MISSING = [
    good("empty ages", text(rows(blank(AGE))), "some ages"),
    good("ages of spaces", text(rows(blank(AGE, "  "))), "some ages"),
    good("short lines", text([line[: 3 - (k - 1 in UNKNOWN)] for k, line in enumerate(rows())]),
         "some ages"),
    good("infinite ages", text(rows(blank(AGE, "inf"))), "some ages"),
    *[
        good(f"{word} among ages", text(rows(blank(AGE, word))), "some ages", said=READ_AS_MISSING)
        for word in ("NA", "null", "None", "n/a", "NaN", "nan", "#N/A", "NULL", "<NA>")
    ],
    bad("a question mark among ages", text(rows(blank(AGE, "?"))), "such as '?'"),
    bad("a code of words among ages", text(rows(blank(AGE, "unknown"))), "such as 'unknown'"),
]  # fmt: skip


def faiths(word: str) -> list[str]:
    """Return the faiths with another word for "None"."""
    return [word if faith == "None" else faith for faith in FAITH]


WORDS = [
    *[
        good(f"the faith {word}", text(rows(faiths(word))), "faiths")
        for word in ("None", "NA", "null", "n/a", "NaN", "nan", "No religion", " None ")
    ],
    good("empty faiths", text(rows(blank(FAITH))), "some faiths"),
    good("True and False", text(rows(AGE > 40)), "yes or no"),
    good("TRUE and FALSE", text(rows([str(a > 40).upper() for a in AGE])), "yes or no"),
    good("three answers", text(rows(TRUTH["three answers"])), "three answers"),
    good(
        "three answers in capitals",
        text(
            rows([str(word).upper().replace("MAYBE", "maybe") for word in TRUTH["three answers"]])
        ),
        "three answers",
    ),
    bad("digits of another script", text(rows(each("٢{}", AGE % 3))), "'age'"),
]
BROKEN = [
    bad("nothing", b"", "it is empty"),
    bad("a line break", b"\n", "it is empty"),
    bad("only a header", b"id,p,age\n", "no rows"),
    bad("no header", text(rows()[1:]), "has no column 'p'"),
    bad("another name", header("id,p,Age"), "did you mean 'Age'?"),
    bad("two ages", header("age,p,age"), "has 2 columns named 'age'"),
    bad("UTF-16", text().decode().encode("utf-16"), "is not written in UTF-8"),
    bad("UTF-16 without a mark", text().decode().encode("utf-16-le"), "null bytes"),
    bad("Latin letters", text(rows(note=["é"] * N)).replace("é".encode(), b"\xe9"), "UTF-8"),
    bad("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not written in UTF-8"),
    bad("Excel", b"PK\x03\x04", "has the format of Excel", file="t.xlsx"),
    bad("JSON", b"[]", "has the format of JSON", file="t.json"),
    bad("two files in one archive", zipped(2), "has 2 files", file="t.csv.zip"),
    bad("half of a gzip file", gzip.compress(text())[:60], "could not be read", file="t.csv.gz"),
    bad("text called gzip", text(), "could not be read", file="t.csv.gz"),
    bad("one line with more cells", with_line(9, b"P,1,2,3"), "more cells in a row"),
    bad("a first line with more cells", with_line(1, b"P,1,2,3,4,5"), "more cells in a row"),
    bad("a comma in a number", with_line(9, b"P1,0,5,62"), "more cells in a row"),
    bad("an open quote in the header", header('id,p,"age'), "is never closed"),
    bad("an open quote in the data", with_line(9, b'"P,1,2'), "never closed"),
    bad("one column", b"p\n0.5\n", "has no column 'age'"),
    bad("spaces as delimiters", text(delimiter=" "), "has no column 'p'"),
    bad("a missing file", lambda folder: folder / "no.csv", "does not exist"),
    bad("an empty device", lambda folder: Path("/dev/null"), "is a device"),
    bad("an endless device", lambda folder: Path("/dev/zero"), "is a device"),
]
CSV = [*SHAPES, *NAMES, *NUMBERS, *THOUSANDS, *DATES, *MISSING, *WORDS, *BROKEN]


# Parquet --------------------------------------------------------------------------------------


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"P{k:03d}" for k in range(N)], "p": P, "age": AGE} | more)


def parquet(table: Any, name: str = "t.parquet") -> Callable[[Path], Path]:
    """Return a function that writes a frame, or a table of pyarrow, as one file."""

    def write(folder: Path) -> Path:
        if isinstance(table, pd.DataFrame):
            table.to_parquet(folder / name)
        else:
            pq.write_table(table, folder / name)
        return folder / name

    return write


def folder_of(*tables: Any, also: str = "") -> Callable[[Path], Path]:
    """Return a function that writes tables as the files of one folder."""

    def write(folder: Path) -> Path:
        whole = folder / "tables"
        whole.mkdir()
        for k, table in enumerate(tables):
            parquet(table, f"{k}.parquet")(whole)
        if also:
            (whole / also).write_text("id,p,age\n")
        return whole

    return write


def arrow(**columns: Any) -> pa.Table:
    return pa.table({"id": [f"P{k:03d}" for k in range(N)], "p": P, "age": AGE} | columns)


HALVES = (frame()[:11], frame()[11:])
DECIMALS = [Decimal(str(p)) for p in P]
PARQUET = [
    good("parquet", parquet(frame())),
    good("a named index", parquet(frame().set_index("id"))),
    good("the age as the index", parquet(frame().set_index("age"))),
    good("an index in another order", parquet(frame().set_index(AGE[::-1]))),
    good("small numbers", parquet(frame(age=AGE.astype("int8")))),
    good("nullable numbers", parquet(frame(age=pd.array(with_missing(AGE), "Int64"))), "some ages"),
    good("numbers as words", parquet(frame(age=each("{}")))),
    good("decimals", parquet(arrow(p=DECIMALS))),
    good("words", parquet(frame(age=FAITH)), "faiths"),
    good("words without some", parquet(frame(age=with_missing(FAITH))), "some faiths"),
    good("a dictionary of words", parquet(frame(age=pd.Categorical(FAITH))), "faiths"),
    good("truth values", parquet(frame(age=AGE > 40)), "yes or no"),
    good("dates of parquet", parquet(frame(age=pd.to_datetime(list(BIRTH)))), "birth"),
    good("lists in another column", parquet(arrow(other=[[1, 2]] * N))),
    good("parquet that is called CSV", parquet(frame(), "t.csv")),
    good("a folder", folder_of(*HALVES)),
    good("a folder with an empty file", folder_of(*HALVES, frame()[:0])),
    good("a folder with a mark", folder_of(*HALVES, also="_SUCCESS")),
    bad("lists", parquet(arrow(p=[[p, 1 - p] for p in P])), "'p' has cells of the kind list"),
    bad("pairs", parquet(arrow(age=[{"a": 1}] * N)), "'age' has cells of the kind struct"),
    bad("bytes", parquet(arrow(age=[b"x"] * N)), "'age' has cells of the kind binary"),
    bad("no rows", parquet(frame()[:0]), "no rows"),
    bad("half of a file", b"PAR1" + bytes(50), "could not be read as parquet", file="t.parquet"),
    bad("CSV that is called parquet", text(), "could not be read as parquet", file="t.parquet"),
    bad("an empty folder", folder_of(), "is a folder without parquet files"),
    bad("a folder of CSV", folder_of(also="t.csv"), "could not be read as parquet"),
    bad(
        "a folder in which one file has no age",
        folder_of(HALVES[0], HALVES[1].drop(columns="age")),
        "1.parquet has no column 'age'",
    ),
    bad(
        "a folder in which the kinds differ",
        folder_of(HALVES[0], HALVES[1].assign(age="old")),
        "could not be read as parquet",
    ),
]


# Links and pipes ------------------------------------------------------------------------------


def link(folder: Path) -> Path:
    (folder / "real.csv").write_bytes(text())
    (folder / "t.csv").symlink_to("real.csv")
    return folder / "t.csv"


def pipe(content: bytes) -> Callable[[Path], Path]:
    """Return a function that makes a pipe into which a thread writes."""

    def make(folder: Path) -> Path:
        os.mkfifo(folder / "t.pipe")

        path = folder / "t.pipe"
        Thread(target=path.write_bytes, args=(content,), daemon=True).start()
        return path

    return make


def as_parquet() -> bytes:
    whole = io.BytesIO()
    frame().to_parquet(whole)
    return whole.getvalue()


SPECIAL = [
    good("a link", link),
    good("a pipe", pipe(text())),
    good("a pipe of gzip", pipe(gzip.compress(text()))),
    good("a pipe of parquet", pipe(as_parquet())),
]


# The commands ---------------------------------------------------------------------------------

COLUMNS = ["--score", "p", "--sensitive", "age"]
CASES = [*CSV, *PARQUET, *SPECIAL]


def call(*words: object) -> tuple[int, str]:
    """Run the command; return its exit status and everything that it prints."""
    result = CliRunner().invoke(command(), [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join((result.output + result.stderr).split())


def test_there_are_a_hundred_files() -> None:
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.filterwarnings("default")  # the command prints warnings
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_true_numbers_or_a_clear_sentence(case: Case, tmp_path: Path) -> None:
    report, table = tmp_path / "r.html", tmp_path / "adjusted.csv"
    for name in ("first", "second"):  # a pipe can be read only once
        (tmp_path / name).mkdir()
    audited = call("audit", case.write(tmp_path / "first"), *COLUMNS, "--out", report)
    adjusted = call("adjust", case.write(tmp_path / "second"), *COLUMNS, "--out", table)
    for status, printed in (audited, adjusted):
        assert "Traceback" not in printed
        assert "Please report it" not in printed
        assert "\x1b" not in printed
        assert case.said in printed
        assert status == (2 if case.error else 0), printed
        assert case.error in printed
    if case.error:
        assert not report.exists()
        assert not table.exists()
        return
    found = json.loads(report.with_suffix(".json").read_text())
    assert found["rows"] == N
    assert flat(found["attributes"][0]["numbers"]) == pytest.approx(
        flat(true_audit(case.truth)), rel=1e-9, abs=1e-12
    )
    new = adjusted_scores(table, case.delimiter)
    np.testing.assert_allclose(new, true_adjustment(case.truth), rtol=1e-9)


def flat(numbers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the parts of all measures in one dict, without those that are not known."""
    found = {}
    for measure, parts in numbers.items():
        for name, value in parts.items():
            if value is not None:
                found[f"{measure} {name}"] = value
    return found


def adjusted_scores(path: Path, delimiter: str) -> np.ndarray:
    """Return the last column of the table that was written."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        names, *lines = csv.reader(file, delimiter=delimiter)
    assert names[-1] == "p_adjusted"
    return np.array([float(line[-1] or "nan") for line in lines])


KEPT = [
    case for case in [*SHAPES, *NAMES] if case.truth and not case.file.endswith(("z", "2", "p"))
]


@pytest.mark.parametrize("case", KEPT, ids=[case.name for case in KEPT])
def test_adjust_keeps_every_other_cell(case: Case, tmp_path: Path) -> None:
    """Python's own reader finds the cells of the file in the table that was written."""
    path, table = case.write(tmp_path), tmp_path / "adjusted.csv"
    assert call("adjust", path, *COLUMNS, "--out", table)[0] == 0
    before = cells_of(path, case.delimiter)
    after = cells_of(table, case.delimiter)
    width = len(before[0])
    assert [line[:width] for line in after] == [line[:width] for line in before]
    assert {len(line) for line in after} == {width + 1}


def cells_of(path: Path, delimiter: str) -> list[list[str]]:
    """Return the cells of the lines that are not blank, without spaces around them."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file, delimiter=delimiter, skipinitialspace=True))
    return [[cell.strip() for cell in line] for line in lines if "".join(line).strip()]
