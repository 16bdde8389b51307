"""The command ``frhsic audit``: exit codes, files, and hostile input."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from frhsic_core import ScoreAdjuster, adjust_scores, gdp_curve
from frhsic_core.auditing._sentences import size
from frhsic_core.cli import command

COLUMNS = ["--score", "p", "--sensitive", "age"]
SCRIPT = '<script>alert("x")</script>'


def table(n: int = 80, **columns: Any) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    age = np.round(generator.uniform(20, 70, n))
    score = 0.2 + 0.01 * (age - 20) + 0.02 * generator.random(n)
    frame = pd.DataFrame({"p": score, "age": age, "y": (generator.random(n) < score).astype(int)})
    return frame.assign(**columns)


def run(folder: Path, data: pd.DataFrame | None, *arguments: str) -> Any:
    path = folder / "data.csv"
    if data is not None:
        data.to_csv(path, index=False)
    # Before click 8.2 the runner mixes both streams into the output.
    return CliRunner().invoke(
        command(), ["audit", str(path), "--out", str(folder / "r.html"), *arguments]
    )


def texts(result: Any) -> str:
    return " ".join((result.output + getattr(result, "stderr", "")).split())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    data = table(300)
    data["<script>"] = np.where(data["p"] > 0.4, SCRIPT, '"onload=alert(1) \x00')
    data["control"] = data["age"] + np.random.default_rng(1).normal(size=300)
    data.loc[:4, "age"] = np.nan
    options = ["--sensitive", "<script>", "--label", "y", "--control", "control"]
    result = run(folder, data, *COLUMNS, *options, "--fail-above", "gdp=0.45")
    assert result.exit_code == 0, texts(result)
    return folder / "r.html"


def test_three_files_are_written(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    value = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
    assert value["format"] == 5
    assert [entry["name"] for entry in value["attributes"]] == ["age", "<script>"]
    assert {verdict["outcome"] for verdict in value["verdicts"]} == {"below"}
    left = [
        one for one in value["attributes"][0]["sentences"] if one.replace("'", "&#39;") not in page
    ]
    # The cards show the numbers of these two.
    assert [one.split(" is ")[0] for one in left] == [
        "The mean gap over all people",
        "The dependence",
    ]
    cards = page.partition('class="cards"')[2].partition("<figure")[0]
    numbers = re.findall(r"\d+\.\d+", left[0].partition(". ")[0] + left[1])
    assert len(numbers) >= 4
    assert all(number in cards for number in numbers)
    markdown = report.with_suffix(".md").read_text(encoding="utf-8")
    assert "✅" in markdown
    assert "<script>" not in markdown.replace("\\<script\\>", "")


class Tags(HTMLParser):
    """Collect the tags and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_the_page_escapes_everything_and_loads_nothing(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    reader = Tags()
    reader.feed(page)
    assert "script" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert {value for name, value in reader.attributes if name in ("src", "href")} == {"data:,"}
    assert "url(" not in page
    assert "@import" not in page
    assert "\x00" not in page
    assert "&lt;script&gt;" in page
    assert "Content-Security-Policy" in page


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_report_in_a_browser(browser: Any, report: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.base")
    options: Any = {
        "viewport": {"width": width, "height": 900},
        "color_scheme": scheme,
        "reduced_motion": "reduce",
    }
    trouble: list[str] = []
    page = browser.new_context(**options).new_page()
    page.on(
        "console", lambda message: trouble.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else trouble.append(request.url)
        ),
    )
    page.goto(report.as_uri())
    # The test's own scripts run past the page's policy, which forbids all scripts.
    page = browser.new_context(**options, bypass_csp=True).new_page()
    page.goto(report.as_uri())
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    page.evaluate(axe.AXE_FILE_PATH.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'], preload: false })")
    serious = [
        entry["id"] for entry in found["violations"] if entry["impact"] in ("serious", "critical")
    ]
    assert (trouble, wide, serious) == ([], 0, [])


def test_exit_codes(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    assert run(tmp_path, table(), *COLUMNS, "--fail-above", "gdp=0.3").exit_code == 0
    assert torch.get_num_threads() == 1  # the matrices are small
    value = json.loads((tmp_path / "r.json").read_text())["attributes"][0]["numbers"]["gdp"]
    assert run(tmp_path, None, *COLUMNS, "--fail-above", "gdp=0.01").exit_code == 1
    undecided = run(
        tmp_path, None, *COLUMNS, "--fail-above", f"gdp[age]={0.5 * (value['low'] + value['high'])}"
    )
    assert undecided.exit_code == 3
    assert "is not significantly different from the threshold" in texts(undecided)
    # 600 rows cannot guarantee what the interval is below.
    limit = f"gdp={value['high'] + 0.01}"
    assert run(tmp_path, None, *COLUMNS, "--fail-above", limit).exit_code == 0
    unsure = run(tmp_path, None, *COLUMNS, "--fail-above", limit, "--guaranteed")
    assert unsure.exit_code == 3
    assert "the guarantee would pass" in texts(unsure)
    assert run(tmp_path, None, *COLUMNS, "--fail-above", "gdp=0.45", "--guaranteed").exit_code == 0


def test_a_report_in_a_folder_and_in_the_way_of_one(tmp_path: Path) -> None:
    assert run(tmp_path, table(), *COLUMNS, "--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / "audit.html").exists()
    (tmp_path / "b.html").mkdir()
    (tmp_path / "b.html" / "audit.md").mkdir()
    result = run(tmp_path, None, *COLUMNS, "--out", str(tmp_path / "b.html"))
    assert result.exit_code == 2
    assert "audit.md could not be written (Is a directory)" in texts(result)
    assert [path.name for path in (tmp_path / "b.html").iterdir()] == ["audit.md"]


def test_an_unexpected_error_is_not_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("frhsic_core.auditing._measuring.Measuring.attribute", broken)
    result = run(tmp_path, table(), *COLUMNS)
    assert result.exit_code == 2
    assert "Please report it" in texts(result)


def test_a_sample_of_a_longer_file_is_stated(tmp_path: Path) -> None:
    result = run(tmp_path, table(150), *COLUMNS, "--max-rows", "100")
    assert result.exit_code == 0
    assert "The file has 150 rows; a random sample of 100" in texts(result)
    assert json.loads((tmp_path / "r.json").read_text())["rows"] == 100


def test_demo_and_provenance(tmp_path: Path) -> None:
    """The demo writes its table; the report names the file with its hash, the model, the date and the library."""
    out = tmp_path / "r.html"
    result = CliRunner().invoke(
        command(), ["audit", "--demo", "--model", "hiring 1.2", "--out", str(out)]
    )
    assert result.exit_code == 0, texts(result)
    source = tmp_path / "r_people.csv"
    assert f"frhsic audit {source} --score p" in texts(result)
    data = pd.read_csv(source)
    assert len(data) == 1000
    value = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    found = value["provenance"]
    assert (found["model"], found["sha256"]) == ("hiring 1.2", digest)
    assert found["size"] == f"{source.stat().st_size:,} bytes"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    for text in (
        out.read_text(encoding="utf-8"),
        out.with_suffix(".md").read_text(encoding="utf-8"),
    ):
        assert "hiring 1.2" in text
        assert digest in text
        assert found["library"] in text
    rates = (data["p"] >= 0.5).groupby(pd.qcut(data["age"], 4, labels=False)).mean()
    assert value["attributes"][0]["numbers"]["impact_ratio_groups"]["value"] == pytest.approx(
        rates.min() / rates.max()
    )
    assert 'class="verdict"' in out.read_text(encoding="utf-8")
    nothing = CliRunner().invoke(command(), ["audit"])
    assert (nothing.exit_code, "try it with --demo" in texts(nothing)) == (2, True)


# frhsic adjust --------------------------------------------------------------------------------------------------------


def adjust(path: Path, *arguments: str) -> Any:
    return CliRunner().invoke(command(), ["adjust", str(path), *COLUMNS, *arguments])


def test_adjust_fits_saves_and_applies(tmp_path: Path) -> None:
    data = table(300, code=[f"{k:04d}" for k in range(300)])
    data.loc[2, "age"] = np.nan
    source, out, saved = tmp_path / "s.csv", tmp_path / "new.csv", tmp_path / "age.adjustment"
    data.to_csv(source, index=False)
    result = adjust(source, "--out", str(out), "--save", str(saved))
    assert result.exit_code == 0, texts(result)
    assert "mean gap along age was" in texts(result)
    written = pd.read_csv(out, dtype={"code": str})
    assert list(written) == [*data, "p_adjusted"]
    assert (
        written["code"].tolist() == data["code"].tolist()
    )  # other columns stay as they are written
    assert written.index[written["p_adjusted"].isna()].tolist() == [2]
    known = written.dropna()
    expected = adjust_scores(known["p"], sensitive_features=known["age"])
    np.testing.assert_allclose(known["p_adjusted"], expected, rtol=1e-12)
    # On the rows that fit it, the adjustment looks too good: the gap is that of one half, adjusted by the other.
    second = np.random.default_rng(0).permutation(299) % 2 == 1
    fitted = ScoreAdjuster().fit(known["p"][~second], sensitive_features=known["age"][~second])
    other = known[second]
    left = gdp_curve(fitted.transform(other["p"], sensitive_features=other["age"]), other["age"])
    assert f"leaves {size(left)} in the other half" in texts(result)
    assert (
        f"--sensitive age --label LABEL --score p, and the same with --score {written.columns[-1]}."
        in texts(result)
    )
    page = out.with_suffix(".html").read_text(encoding="utf-8")
    assert page.count('class="curve') == 2
    one = tmp_path / "one.csv"
    data.iloc[5:6].to_csv(one, index=False)
    result = adjust(one, "--out", str(tmp_path / "o.csv"), "--use", str(saved))
    assert (result.exit_code, "Adjusting 1 score ..." in texts(result)) == (0, True), texts(result)
    assert pd.read_csv(tmp_path / "o.csv")["p_adjusted"][0] == pytest.approx(
        written["p_adjusted"][5], rel=1e-12
    )


def test_an_adjustment_of_few_rows_looks_too_good(tmp_path: Path) -> None:
    table(30).to_csv(tmp_path / "s.csv", index=False)
    result = adjust(tmp_path / "s.csv", "--out", str(tmp_path / "o.csv"))
    assert (result.exit_code, "these rows fitted the adjustment" in texts(result)) == (0, True)


@pytest.mark.filterwarnings("default")
def test_swapped_columns_are_a_warning(tmp_path: Path) -> None:
    """It is a sentence of the terminal, without the line of the code, and a note in the report."""
    words = "call audit(p, sensitive_features=age), or write --score p --sensitive age."
    result = run(tmp_path, table(), "--score", "age", "--sensitive", "p")
    assert result.exit_code == 0
    assert "Warning: Are the columns swapped?" in texts(result)
    assert "_measuring.py" not in texts(result)
    assert words in (tmp_path / "r.html").read_text(encoding="utf-8")
