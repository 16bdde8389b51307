"""``frhsic monitor``: rows count once, the state resumes and refuses, the gate reacts, and the page says it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic_core._atomic_files import claim
from frhsic_core.cli import command
from frhsic_core.monitoring import Monitor, Settings
from frhsic_core.monitoring.monitor import row_hashes
from frhsic_core.monitoring.periods import period_names

OPTIONS = {
    "--model": "credit 3",
    "--score": "p",
    "--sensitive": "age",
    "--date": "date",
    "--edges": "30,40,50,60",
    "--planned-rows": "24000",
}


def month_of(month: int, *, gap: float, rows: int = 800, seed: int = 0) -> pd.DataFrame:
    """Return the scores of a month; the mean score rises by ``gap`` from 20 to 70."""
    rng = np.random.default_rng([seed, month])
    age = rng.integers(20, 70, rows)
    p = np.clip(0.4 + gap * (age - 45) / 50 + 0.15 * rng.standard_normal(rows), 0, 1)
    day = rng.integers(1, 29, rows)
    date = [f"{2024 + month // 12}-{month % 12 + 1:02d}-{d:02d}" for d in day]
    return pd.DataFrame({"date": date, "age": age, "p": p, "id": rows * month + np.arange(rows)})


def look(folder: Path, *arguments: str, data: str = "scores", **changed: str) -> Any:
    options = OPTIONS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    words = [word for pair in options.items() for word in pair if pair[1]]
    files = ["--state", str(folder / "state.json"), "--out", str(folder / "page.html")]
    return CliRunner().invoke(
        command(), ["monitor", str(folder / data), *words, *files, *arguments]
    )


def texts(result: Any) -> str:
    return " ".join((result.output + getattr(result, "stderr", "")).split())


def write(folder: Path, month: int, table: pd.DataFrame) -> None:
    (folder / "scores").mkdir(exist_ok=True)
    table.to_csv(folder / "scores" / f"{month:02d}.csv", index=False)


def content(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "state.json").read_text())


def test_the_gate_reacts_to_a_change_in_month_15(tmp_path: Path) -> None:
    """Each month one more file and one look: at first undecided, then passed, two months later failed."""
    statuses = []
    for month in range(18):
        write(tmp_path, month, month_of(month, gap=0.0 if month < 14 else 0.5))
        result = look(tmp_path, "--fail-above", "0.05")
        statuses.append(result.exit_code)
    assert statuses[0] == 3
    assert statuses[4:14] == [0] * 10
    assert set(statuses[16:]) <= {1, 3}
    assert statuses[-1] == 1
    assert "Changed since 2025-03" in texts(result)
    page = (tmp_path / "page.html").read_text()
    assert "changed</text>" in page
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", page)  # self-contained
    assert page.count("<svg") == 3


def test_looks_month_by_month_and_one_look_at_all_count_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for month in range(4):
        table = month_of(month, gap=0.2)
        write(tmp_path, month, table)
        write(tmp_path / "b", month, table)
        assert look(tmp_path).exit_code == 0
    assert look(tmp_path / "b").exit_code == 0
    slowly, at_once = content(tmp_path), content(tmp_path / "b")
    assert [batch["period"] for batch in slowly["batches"]] == [
        batch["period"] for batch in at_once["batches"]
    ]
    assert slowly["batches"] == at_once["batches"]
    before = slowly
    assert "were counted before" in texts(look(tmp_path))
    assert content(tmp_path)["batches"] == before["batches"]


def test_a_table_that_grows_is_counted_once(tmp_path: Path) -> None:
    for months in (2, 3):
        parts = [month_of(month, gap=0.1) for month in range(months)]
        pd.concat(parts).to_csv(tmp_path / "scores.csv", index=False)
        result = look(tmp_path, data="scores.csv")
        assert result.exit_code == 0, texts(result)
    assert "1,600 rows had been counted before" in texts(result)
    assert sum(batch["rows"] for batch in content(tmp_path)["batches"]) == 2400


def test_overlapping_files_are_noticed(tmp_path: Path) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    assert look(tmp_path).exit_code == 0
    both = pd.concat([month_of(0, gap=0.1).iloc[300:], month_of(1, gap=0.1)])
    write(tmp_path, 1, both)
    result = look(tmp_path)
    assert "500 rows had been counted before" in texts(result)
    assert sum(batch["rows"] for batch in content(tmp_path)["batches"]) == 1600


def test_equal_rows_of_different_people_need_a_name(tmp_path: Path) -> None:
    """Hard decisions and ages repeat, so an overlap cannot be told from two people: an error says what to do."""
    for month in range(2):
        table = month_of(month, gap=0.1)
        table["p"] = (table["p"] > 0.4).astype(int)
        table["date"] = f"2024-0{month + 1}-01"
        write(tmp_path, month, table)
    assert look(tmp_path).exit_code == 0  # the dates differ: nothing seems to overlap
    again = pd.read_csv(tmp_path / "scores" / "01.csv").iloc[:-10]
    write(tmp_path, 2, again)
    result = look(tmp_path)
    assert result.exit_code == 2
    assert "pass --id" in texts(result)
    named = tmp_path / "named"
    named.mkdir()
    for month in range(2):
        write(named, month, pd.read_csv(tmp_path / "scores" / f"{month:02d}.csv"))
    write(named, 2, again)
    result = look(named, id="id")
    assert result.exit_code == 0, texts(result)
    assert "790 rows had been counted before" in texts(result)


def test_late_rows_count_where_they_came(tmp_path: Path) -> None:
    for month in (0, 1):
        write(tmp_path, month, month_of(month, gap=0.1))
    look(tmp_path)
    write(tmp_path, 2, month_of(0, gap=0.1, rows=50, seed=1))
    result = look(tmp_path)
    assert "50 rows came late" in texts(result)
    assert [batch["period"] for batch in content(tmp_path)["batches"]][-1] == "2024-02"


def test_each_file_is_a_period_without_dates(tmp_path: Path) -> None:
    for month in range(3):
        write(tmp_path, month, month_of(month, gap=0.1))
    assert look(tmp_path, date="").exit_code == 0
    assert {batch["period"] for batch in content(tmp_path)["batches"]} == {"00", "01", "02"}


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"model": "credit 4"}, "begun with model = 'credit 3'"),
        ({"sensitive": "id"}, "begun with sensitive"),
        ({"planned_rows": "100"}, "begun with planned_rows"),
        ({"edges": "30,50"}, "begun with edges"),
        ({"delta": "0.1"}, "begun with delta"),
        ({"every": "week"}, "begun with every"),
    ],
)
def test_another_model_or_plan_is_refused(
    tmp_path: Path, changed: dict[str, str], word: str
) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    look(tmp_path)
    before = (tmp_path / "state.json").read_bytes()
    result = look(tmp_path, **changed)
    assert result.exit_code == 2
    assert word in texts(result)
    assert (tmp_path / "state.json").read_bytes() == before


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda text: text.replace('"rows": 400', '"rows": 401', 1), "was changed"),
        (lambda text: text[: len(text) // 2], "no state of frhsic monitor"),
        (lambda _: "{}", "no state of frhsic monitor"),
        (lambda _: "[1]", "no state of frhsic monitor"),
        (lambda text: text.replace('"format": 1', '"format": 7', 1), "another version"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path: Path, damage: Any, word: str) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    look(tmp_path)
    path = tmp_path / "state.json"
    path.write_text(damage(path.read_text()))
    result = look(tmp_path)
    assert result.exit_code == 2
    assert word in texts(result)


def test_an_error_in_a_later_file_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    look(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    write(tmp_path, 1, month_of(1, gap=0.1))
    write(tmp_path, 2, month_of(2, gap=0.1).assign(p=3.0))
    result = look(tmp_path)
    assert result.exit_code == 2
    assert "outside of 0 to 1" in texts(result)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


def test_two_commands_at_once_do_not_lose_rows(tmp_path: Path) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    with claim(tmp_path / ".state.json.lock") as held:
        assert held
        result = look(tmp_path)
    assert result.exit_code == 2
    assert "is in use" in texts(result)
    assert look(tmp_path).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--fail-above", "0.5"], "can never fail"),
        (["--every", "hour"], "every"),
        (["--edges", "50,30"], "rising order"),
        (["--edges", "a"], "write numbers"),
        (["--lowest", "1", "--highest", "0"], "smallest"),
        (["--date", "age"], "write dates as"),
        (["--sensitive", "sex"], "no column 'sex'"),
        (["--model", " "], "model is empty"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, arguments: list[str], word: str) -> None:
    write(tmp_path, 0, month_of(0, gap=0.1))
    result = look(tmp_path, *arguments)
    assert result.exit_code == 2
    assert word in texts(result)
    assert not (tmp_path / "state.json").exists()


def test_rows_without_a_score_or_an_attribute_do_not_count(tmp_path: Path) -> None:
    table = month_of(0, gap=0.1)
    table.loc[:9, "p"] = np.nan
    table["age"] = table["age"].astype(float)
    table.loc[5:19, "age"] = np.nan
    write(tmp_path, 0, table)
    result = look(tmp_path)
    assert "20 rows have no score or no attribute" in texts(result)
    assert sum(batch["rows"] for batch in content(tmp_path)["batches"]) == 780


def test_words_are_groups_and_markup_is_text(tmp_path: Path) -> None:
    table = month_of(0, gap=0.1).rename(columns={"age": "<b>sex"})
    table["<b>sex"] = np.where(table["<b>sex"] > 40, "<i>f", "m")
    write(tmp_path, 0, table)
    result = look(tmp_path, sensitive="<b>sex", edges="", model="<script>")
    assert result.exit_code == 0, texts(result)
    assert set(content(tmp_path)["batches"][0]["counts"]) == {"<i>f", "m"}
    page = (tmp_path / "page.html").read_text()
    assert "<script>" not in page
    assert "<b>sex" not in page


@pytest.mark.parametrize(
    ("dates", "every", "names"),
    [
        ([202501, 202512], "month", ["2025-01", "2025-12"]),
        ([20250131, 20251231], "quarter", ["2025-Q1", "2025-Q4"]),
        (["2025-01-31T23:00:00", "2025-02-01"], "day", ["2025-01-31", "2025-02-01"]),
        (["2024-12-30", "2025-01-05"], "week", ["2025-W01", "2025-W01"]),
        ([2024, 2025], "year", ["2024", "2025"]),
    ],
)
def test_dates_are_periods(dates: list[Any], every: str, names: list[str]) -> None:
    assert period_names(pd.Series(dates), every, name="date").tolist() == names


def test_what_is_no_date_is_refused() -> None:
    for dates in ([1.5, 2.5], [1, 20250101], ["soon", "2025-01-01"], [20251301, 20250101]):
        with pytest.raises(ValueError, match="write"):
            period_names(pd.Series(dates), "month", name="date")


def test_a_row_has_one_hash_however_its_numbers_are_stored() -> None:
    whole = row_hashes([pd.Series([34, 35]), pd.Series(["a", "b"])])
    floats = row_hashes([pd.Series([34.0, 35.0]), pd.Series(["a", "b"])])
    assert (whole == floats).all()
    assert len(set(whole.tolist())) == 2
    big = 2**53
    assert len(set(row_hashes([pd.Series([big, big + 1])]).tolist())) == 2


def test_a_period_that_is_over_is_closed_and_kinds_do_not_mix() -> None:
    monitor = Monitor(Settings("m"))
    monitor.add([0.1, 0.2], [1, 2], period="a")
    monitor.add([0.1, 0.2], [1, 2], period="b")
    with pytest.raises(ValueError, match="is over"):
        monitor.add([0.1], [1], period="a")
    with pytest.raises(ValueError, match="words in some periods"):
        monitor.add([0.1, 0.2], ["x", "y"], period="b")
    with pytest.raises(ValueError, match="no row was counted"):
        Monitor(Settings("m")).history()


@pytest.mark.data
def test_24_months_of_a_real_table_with_a_change_in_month_15() -> None:
    """Half of Adult trains, and the other half comes month by month, a thousand people each.

    For 14 months an adjustment makes the mean score the same at every age. In month 15 somebody leaves it out.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from frhsic_core import ScoreAdjuster
    from frhsic_core.data import load_dataset

    data = load_dataset("adult")
    order = np.random.default_rng(0).permutation(data.n)
    train, test = np.array_split(order, 2)
    scale = StandardScaler().fit(data.X[train])
    model = LogisticRegression(max_iter=500).fit(scale.transform(data.X[train]), data.y[train])
    scores = model.predict_proba(scale.transform(data.X))[:, 1]
    age = np.ravel(data.s)
    adjuster = ScoreAdjuster().fit(scores[train], sensitive_features=age[train])
    adjusted = np.clip(adjuster.transform(scores, sensitive_features=age), 0.0, 1.0)
    edges = tuple(float(edge) for edge in np.quantile(age[train], [0.2, 0.4, 0.6, 0.8]))
    monitor = Monitor(Settings("adult 1", planned_rows=len(test), edges=edges))
    statuses = []
    for month, rows in enumerate(np.array_split(test, 24)):
        shown = adjusted if month < 14 else scores
        monitor.add(shown[rows], age[rows], period=f"{month + 1:02d}")
        statuses.append(monitor.history().status(0.05))
    history = monitor.history()
    assert statuses[5:14] == [0] * 9
    assert history.changes[0].since == "15"
    assert history.changes[0].noticed == "18"  # three months with a thousand people each
    assert statuses[17:] == [3, 3, 3, 3, 1, 1, 1]
