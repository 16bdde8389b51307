"""The ledger: every claim has a query, no verdict is typed, and the rules judge as they say."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from frhsic_core.paper.claims import (
    KINDS,
    RELEVANT,
    VERDICTS,
    claims,
    counts,
    heading,
    headline,
    judge,
    ledger,
    settings,
)
from frhsic_core.paper.claims import verdicts as module
from frhsic_core.paper.claims.answers import (
    TAIL,
    Answer,
    Spread,
    mean_of_runs,
    queries,
    query,
    rows_of,
)
from frhsic_core.paper.claims.rules import RULES, half_unit, p_values, parsed, threshold
from frhsic_core.paper.claims.stored import FORMULAS
from frhsic_core.paper.claims.verdicts import Cuts, cuts_of, needed, open_with
from frhsic_core.paper.experiments.main import FIVE_RANGE, shared_noise
from frhsic_core.paper.stored import book_folder

QUERIES = queries()


def test_the_files_are_complete_and_hold_no_verdict() -> None:
    """Every line has a query that takes its arguments, every query is asked, and no cell contains a verdict."""
    found = claims()
    assert found["id"].is_unique
    assert set(found["kind"]) == set(KINDS)
    cells = found[found["source"] == "table"]
    assert cells["place"].nunique() == 7
    # The names of dataset, method and quantity are read from the claim.
    assert cells["claim"].str.split(", ").map(lambda parts: parts[2]).equals(cells["quantity"])
    for claim in found.to_dict("records"):
        assert claim["form"] in ("setting", "result", "statement"), claim["id"]
        assert claim["value"], claim["id"]
        assert claim["rule"] in RULES, claim["id"]
        inspect.signature(QUERIES[claim["query"]]).bind(**json.loads(claim["arguments"]))
        assert (claim["stored_rule"] in RULES) == (claim["stored_table"] != ""), claim["id"]
    assert not {"verdict", "ours", "stored", "note"} & set(found.columns)
    assert not found.isin(VERDICTS).any(axis=None)
    assert set(QUERIES) == set(found["query"])
    assert set(FORMULAS) <= set(found["stored_formula"])
    # A query gets arguments from the data, and never the printed value.
    assert not any(
        "printed" in inspect.signature(function).parameters for function in QUERIES.values()
    )
    # Equal questions have equal rules: a setting is the printed one or it is not.
    copied = found[
        (found["form"] == "setting") & ~found["query"].isin(["dataset_fact", "noise_spread"])
    ]
    assert set(copied["rule"]) == {"equal"}


def test_every_line_is_judged_and_counted_once(full_ledger: pd.DataFrame) -> None:
    assert full_ledger["id"].tolist() == claims()["id"].tolist()
    assert full_ledger["verdict"].isin(VERDICTS).all()
    assert (full_ledger["from stored runs"] != "none").equals(claims()["stored_table"] != "")
    unjudged = full_ledger["verdict"] == "cannot be judged"
    assert (full_ledger.loc[unjudged, "note"] != "").all(), "one that is not judged says why"
    # Where nothing was run there may be no chapter; where something was judged there is one.
    folder = book_folder().parent / "notebooks"
    assert all(
        (folder / f"{name}.md").is_file() for name in set(full_ledger.loc[~unjudged, "chapter"])
    )
    once = full_ledger[full_ledger["repeats"] == ""]
    found, top = counts(full_ledger), heading(full_ledger)
    for kind, verdicts in found.items():
        assert (
            verdicts
            == top[kind]
            == once.loc[once["kind"] == kind, "verdict"].value_counts().to_dict()
        )
    assert list(found) == list(KINDS)
    assert (top["claims"], top["cells"]) == (218, 271), "claims of the text, cells of the tables"
    assert sum(top["from stored runs"].values()) == len(full_ledger)
    assert (
        ledger(verdict="open")["id"].tolist()
        == full_ledger.loc[full_ledger["verdict"] == "open", "id"].tolist()
    )
    whole = headline(full_ledger)
    assert whole["judged"] == whole["agree"] + whole["disagree"] + whole["open"]
    assert whole["measured"] == whole["judged"] + whole["other_data"] + whole["not_judged"]
    of_theirs = once.loc[once["kind"] == "measured", "from stored runs"].tolist()
    assert (whole["stored_consistent"], whole["stored_not"]) == tuple(
        map(of_theirs.count, ("consistent", "not"))
    )


def test_the_rate_of_false_verdicts_is_that_of_the_procedure(full_ledger: pd.DataFrame) -> None:
    """Both stages from SciPy's adjusted p-values, on the lines that the rule names."""
    lines = full_ledger[
        (full_ledger["kind"] == "measured") & (full_ledger["repeats"] == "") & full_ledger["tested"]
    ]
    lines = lines[lines["verdict"] != "other data"]
    for column, verdict, cut in (
        ("p_differs", "disagrees", cuts_of("text").differs),
        ("p_agrees", "agrees", cuts_of("text").agrees),
    ):
        p = lines[column].fillna(1.0)
        adjusted = stats.false_discovery_control(p)
        assert cut == p[adjusted * (adjusted > 0.05 / 1.05).mean() <= 0.05 / 1.05].max()
        assert (lines.loc[lines["verdict"] == verdict, column] <= cut).all()
    # The first stage leaves one hypothesis of three, so that the second rejects it at three times the level.
    found = [
        threshold(np.array(p)) for p in ([0.01, 0.01, 0.06], [0.04, 0.05, 0.05], [0.04], [0.06], [])
    ]
    assert found == [0.06, -1.0, 0.04, -1.0, -1.0]


def test_the_texts_protocol_decides_and_the_codes_stands_beside(full_ledger: pd.DataFrame) -> None:
    """The second verdict never changes the first, not even where the first is open."""
    spreads = {"text": Spread(0.1, 0.2, 0.3), "reference": Spread(0.84, 0.85, 0.86)}
    answer = Answer({"text": 0.2, "reference": 0.85}, spreads, spreads, measure="gdp")
    assert judge(".85", answer, "within_spread", Cuts()).verdict == "disagrees"
    assert judge(".85", answer, "within_spread", Cuts(), "reference").verdict == "agrees"
    assert judge(".25", answer, "within_spread", Cuts()).verdict == "open"
    assert full_ledger.set_index("id").loc["C080", ["verdict", "by the code"]].tolist() == [
        "disagrees",
        "agrees",
    ]


def test_both_tests_by_hand() -> None:
    """Normal spreads: the print at .56 is 2.95 standard deviations of .02 away after rounding."""
    prints, means = Spread(0.46, 0.50, 0.54), Spread(0.48, 0.50, 0.52)
    differs, agrees = p_values(".56", "within_spread", "gdp", prints, means)
    assert differs == pytest.approx(math.erfc((0.06 - 0.0051) / 0.02 / math.sqrt(2)))
    assert agrees == pytest.approx(1 - math.erfc((0.06 - 0.05) / 0.01 / math.sqrt(2)) / 2)
    # A limit is tested on its own side, once.
    above, below = (p_values(one, "at_most", "naup", prints, means) for one in ("<=.45", "<=.56"))
    assert above[0] == pytest.approx(math.erfc(0.045 / 0.02 / math.sqrt(2)) / 2)
    assert (below[0], round(below[1], 6)) == (1.0, 0.0)
    # What differs for certain and matters to nobody agrees.
    near = Spread(0.4989, 0.4990, 0.4991)
    assert judge(
        ".50", Answer({"any": 0.499}, {"any": near}, {"any": near}), "within_spread", Cuts()
    )[0] == ("agrees")


def test_what_decides_an_open_line_is_what_it_says(full_ledger: pd.DataFrame) -> None:
    """With the number of splits that is named, the spread would just reach the margin, or just exclude the print."""
    answer = Answer(
        {"any": 0.5},
        {"any": Spread(0.3, 0.5, 0.7)},
        {"any": Spread(0.4, 0.5, 0.6)},
        measure="gdp",
        splits=25,
    )
    whose, count = needed(".52", answer, "within_spread", "any")
    assert whose == "ours"
    assert 0.1 * math.sqrt(25 / count) <= 0.05 - 0.02 < 0.1 * math.sqrt(25 / (count - 2))
    whose, count = needed(".60", answer, "within_spread", "any")
    assert whose == "the paper's"
    assert 0.2 * math.sqrt(5 / count) <= 0.10 - 0.005 < 0.2 * math.sqrt(5 / (count - 1))
    assert needed(".60", replace(answer, splits=0), "within_spread", "any") == (
        "",
        0,
    )  # a time has no splits
    far = replace(
        answer, means={"any": Spread(0.4, 0.52, 0.6)}, prints={"any": Spread(0.3, 0.6, 0.7)}
    )
    assert needed(".60", far, "within_spread", "any") == (
        "",
        0,
    )  # the paper's mean is expected at the print
    open_ones = full_ledger[full_ledger["tested"] & (full_ledger["verdict"] == "open")]
    assert open_ones["note"].str.startswith(("about ", "more splits would not")).all()


def test_noise_that_two_runs_on_one_split_share() -> None:
    """High where our rows are the authors' rows, none where they are not; by hand for one of them."""
    assert shared_noise("compas", "reference", "gdp_reference") > 0.9
    assert shared_noise("adult", "text", "gdp_reference") == 0.0
    rows = rows_of("main")
    rows = rows[
        (rows["dataset"] == "crime")
        & (rows["protocol"] == "reference")
        & (rows["variant"] == "reference")
    ]
    stored = pd.read_csv(book_folder("claims", "reference", "sweep.csv"))
    stored = stored[stored["dataset"] == "crime"].set_index(["method", "lambda"])["perf_mean"]
    found = []
    for key, part in rows.groupby(["method", "lam"]):
        runs = part.sort_values("split")["performance"].to_numpy(float)
        if key in stored.index:
            scale = math.sqrt(2 * runs.var(ddof=1) / 5 + 1e-12)
            found.append(max(abs(stored[key] - runs[:5].mean()) - 5e-5, 0) / scale)
    ratio = np.quantile(found, 0.9) / 1.645
    assert shared_noise("crime", "reference", "performance") == pytest.approx(1 - ratio**2)


def test_relevant_differences_are_stated_once_with_a_reason() -> None:
    assert all(len(one.reason) > 20 for one in RELEVANT.values())
    assert RELEVANT["gdp"].difference(0.8) == 0.05
    assert RELEVANT["gdp"].difference(-0.1) == pytest.approx(0.02)
    # The tolerances that the paper states are the ones used.
    lines = claims().set_index("id")["value"]
    assert RELEVANT["gdp"].absolute == float(lines["C057"])
    assert RELEVANT["performance"].share == pytest.approx(float(lines["C048"]) / 100)


def test_a_selection_keeps_an_accuracy_from_below_and_an_error_from_above() -> None:
    def kept(dataset: str, selected: float) -> bool:
        rows = pd.DataFrame(
            {"dataset": dataset, "repeat": 0, "lambda": [1.0, 10.0], "selected_lambda": 10.0}
        )
        return FORMULAS["selections_keep_performance"](rows.assign(perf=[0.5, selected]))[0]

    assert [kept("compas", value) for value in (0.6, 0.496, 0.494)] == [True, True, False]
    assert [kept("crime", value) for value in (0.4, 0.504, 0.506)] == [True, True, False]


def test_settings_are_those_of_the_stored_runs() -> None:
    """Settings of stacks against the stored json file, read by hand; grids and splits against the stored rows."""
    assert not any(
        word in inspect.getsource(settings)
        for word in ("paper.experiments", "experiment_for", "runs.plan")
    )
    ask, of_rows = QUERIES["stack_setting"], QUERIES["row_setting"]
    side = json.loads(book_folder("results", "main.json").read_text(encoding="utf-8"))
    rows = rows_of("main")
    for protocol in ("text", "reference"):
        own = [
            s
            for s in side["stacks"]
            if side["recipes"][s["recipe"]]["task"]["protocol"] == protocol
        ]
        frem = {
            s["penalty"]["smoothing"]
            for s in own
            if side["recipes"][s["recipe"]]["method"] == "frem"
        }
        assert {str(ask(formula="smoothing", rows="method == 'frem'").values[protocol])} == frem
        assert ask(form="{batch_size}, {epochs}").values[protocol] == "256, 200"
        assert ask(form="{train:g}/{test:g}").values[protocol] == "80/20"
        part = rows[(rows["protocol"] == protocol) & (rows["method"] == "frhsic")]
        assert (
            of_rows(experiment="main", formula="split.nunique()").values[protocol]
            == part["split"].nunique()
        )
        lams = of_rows(experiment="main", rows="method == 'frhsic'", formula="lam.unique()")
        assert lams.values[protocol] == pytest.approx(sorted(part["lam"].unique()))
    assert ask(formula="bins", rows="method in ['laftr', 'mmd_binned']").values["text"] == (
        10.0,
        4.0,
    )
    # A condition that holds in one protocol alone, and a setting that no penalty has.
    edges = ask(formula="bins", rows="method == 'mmd_binned' and edges == 'width'")
    assert edges.values == {"text": 10.0, "reference": None}
    assert "reference" in edges.note
    assert "no such setting" in ask(formula="policy", rows="method == 'reg_gdp'").why
    # Several values are never taken for the one that is printed.
    sizes = of_rows(experiment="cost", rows="part == 'epoch'", formula="n.unique()")
    assert max(sizes.values["any"]) == 20_000
    assert judge("20000", sizes, "equal", Cuts()).verdict == "disagrees"


def test_intervals_by_hand() -> None:
    rows = rows_of("main")
    values = (
        rows[
            (rows["dataset"] == "compas")
            & (rows["method"] == "unfair")
            & (rows["protocol"] == "reference")
        ]
        .sort_values("split")["performance"]
        .to_numpy(float)
    )
    answer = QUERIES["point"](dataset="compas", method="unfair", measure="performance", lam=0.0)
    # The means of five are close to normal, so that two standard deviations are close to the quantiles. What two runs
    # on one split share is no noise, and the scale is estimated from 25 splits.
    shared = shared_noise("compas", "reference", "performance")
    ours = (1 - shared) / (1 + shared) * 5 / 25
    exact = 2.11 * values.std(ddof=1) * math.sqrt((1 - shared**2) / 5 * (1 + ours))
    prints, means = answer.prints["reference"], answer.means["reference"]
    assert answer.values["reference"] == pytest.approx(values.mean())
    assert prints.middle == pytest.approx(
        values.mean() + shared * (values[:5].mean() - values.mean()), abs=1e-3
    )
    assert (prints.high - prints.low) / 2 == pytest.approx(exact, rel=0.1)
    assert (means.high - means.low) / 2 == pytest.approx(2.11 * values.std(ddof=1) / 5, rel=0.1)


def test_range_of_five_normal_draws() -> None:
    draws = np.random.default_rng(1).standard_normal((200_000, 5))
    assert np.ptp(draws, axis=1).mean() == pytest.approx(FIVE_RANGE, abs=0.01)


def test_certificates_say_what_breaks_and_what_holds() -> None:
    ask = partial(QUERIES["certificates"], statement="Remark B.3")
    answer = ask(contains=["distinct values: ", "tied values: the limit as"])
    assert answer.values["any"] == ("holds", "fails as stated")
    assert answer.note.index("fails as stated") < answer.note.index("holds: distinct values")
    assert "no certificate" in ask(contains=["nothing of the kind"]).why
    told = ask(contains=["distinct values: "], beside=["tied values: the li"])
    assert told.values["any"] == ("holds",)
    assert "beside it, not judged, fails as stated: tied values" in told.note
    assert ask(contains=["distinct values: "], beside=["nothing"]).why


@pytest.mark.parametrize(
    ("rule", "printed", "value", "prints", "expected"),
    [
        ("equal", "{0.1,1}", (0.1, 1.0), None, True),
        ("equal", "{0.1,1}", (0.1, 1.0, 2.0), None, False),
        ("equal", "4", (10, 4), None, False),
        ("equal", "50-1", "50-1", None, True),
        ("approximately", "6000", 6172, None, True),
        ("approximately", "13000", 13707, None, False),
        ("magnitude", "1e-7", 7.7e-7, None, False),
        ("magnitude", "1e-7", 3.0e-7, None, True),
        ("magnitude", "1e-9", 0.9e-10, None, False),
        ("within_spread", ".849", math.nan, None, False),
        ("at_most", "<=.004", 0.01, None, False),
        ("at_least", "several", 1.9, None, False),
        ("between", "2-3", 4.6, None, False),
        ("at_least", "0.01", (0.02, 0.004), None, False),
        ("rank", "1", 1.0, Spread(1.0, 1.0, 1.0), True),
        ("rank", "1", 1.0, None, True),
        ("rank", "1", 3.0, Spread(2.0, 3.0, 5.0), False),
        ("dash", "NA", 0.01, None, False),
        ("dash", "NA", 0.96, None, True),
        ("within_spread", ".849", 0.8485, None, True),
        ("within_spread", ".849", 0.8484, None, False),
        ("at_most", "<=.004", 0.0045, None, True),
        ("at_least", "several", 2.0, None, True),
        ("between", "2-3", 3.0, None, True),
        ("between", "2-3", 1.0, None, False),
        ("at_least", "0.01", (0.02, 0.01), None, True),
        ("approximately", "30000", None, None, False),
        ("order", "O(n^2)", (2.09,), None, True),
        ("order", "O(n^2)", (2.11,), None, False),
        ("true", "monotone", False, None, False),
        ("certified", "-1/2", ("holds",), None, True),
        ("certified", "-1/2", ("holds", "fails as stated"), None, False),
        ("order", "O(n^2) vs O(n^3)", (2.0, 2.95), None, True),
        ("order", "O(n_anchor*n^2)", (0.98, 2.0), None, True),
        ("order", "O(n^3)", (1.02,), None, False),
        ("order", "O(n^2)", (2.0, 2.0), None, False),
    ],
)
def test_rules(rule: str, printed: str, value: Any, prints: Spread | None, expected: bool) -> None:
    assert RULES[rule](printed, value, prints) is expected


@pytest.mark.parametrize(
    ("rule", "printed", "value", "ends"),
    [
        ("rank", "1", 3.0, (1.0, 5.0)),
        ("rank", "1", 1.0, (1.0, 2.0)),
        ("dash", "NA", 0.08, None),
        ("certified", "-1/2", ("inconclusive",), None),
        ("true", "all", "the splits leave it open", None),
    ],
)
def test_rules_that_both_answers_satisfy_decide_nothing(
    rule: str, printed: str, value: object, ends
) -> None:
    prints = {} if ends is None else {"any": Spread(ends[0], 2.0, ends[1])}
    verdict, why = judge(printed, Answer({"any": value}, prints), rule, Cuts())[:2]
    assert verdict == "open"
    assert why


def test_verdicts_without_a_test() -> None:
    values = {"text": 1.0, "reference": 2.0}
    for printed, verdict in (("1", "agrees"), ("2", "disagrees")):
        assert judge(printed, Answer(values), "equal", Cuts()).verdict == verdict
    assert judge("3", Answer({"any": None}), "equal", Cuts()).verdict == "disagrees"
    # A point that our runs do not have is no number to agree with.
    nothing = Spread(math.nan, math.nan, math.nan)
    empty = Answer({"text": math.nan}, {"text": nothing}, {"text": nothing}, measure="gdp")
    assert judge(".3", empty, "within_spread", Cuts()).verdict == "disagrees"
    for found in (("holds as corrected",), ("fails as stated", "holds as corrected")):
        assert judge("-2/5", Answer({"any": found}), "certified", Cuts())[:2] == (
            "holds as corrected",
            "",
        )
    assert (
        judge("-2/5", Answer({"any": ("fails as stated",)}), "certified", Cuts()).verdict
        == "disagrees"
    )
    assert judge("1", Answer(why="not run yet"), "equal", Cuts())[:2] == (
        "cannot be judged",
        "not run yet",
    )


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="choose one of agrees"):
        ledger(verdict="wrong")
    with pytest.raises(ValueError, match="two queries called 'point'"):
        query(QUERIES["point"])


def test_more_splits_of_ours_have_the_spreads_of_more_runs() -> None:
    """Student's intervals of a mean of eighteen runs from those of six, and exact means with unlimited ones."""
    values = np.array([1.0, 2.0, 4.0, 3.0, 7.0, 1.0])
    mean, prints, means = mean_of_runs(values, runs=3)
    answer = Answer({"any": mean}, {"any": prints}, {"any": means}, runs=3, splits=6)
    more = module._with_splits(answer, "any", 3.0)
    for spread, share in zip(more, (1 / 3 + 1 / 18, 1 / 18), strict=True):
        reach = stats.t.isf(TAIL, 17) * values.std(ddof=1) * math.sqrt(share)
        assert (spread.low, spread.high, spread.dof) == pytest.approx(
            (mean - reach, mean + reach, 17)
        )
    limit = module._with_splits(answer, "any", math.inf)
    assert limit[1].low == limit[1].high == mean
    assert limit[0].high == pytest.approx(mean + 2.0 * values.std(ddof=1) / math.sqrt(3))


def test_lines_that_more_splits_of_ours_leave_open(full_ledger: pd.DataFrame) -> None:
    """As many splits as there are give the ledger. Within the margin nothing stays open where there are splits."""
    lines = full_ledger[
        (full_ledger["kind"] == "measured") & (full_ledger["repeats"] == "") & full_ledger["tested"]
    ]
    assert open_with(1.0) == (lines["verdict"] == "open").sum()
    near = lines[(lines["verdict"] == "open") & (lines["whose"] == "ours") & (lines["splits"] > 0)]
    assert open_with(math.inf) <= open_with(1.0) - len(near)


def test_numbers_that_agree_notice_a_move(full_ledger: pd.DataFrame) -> None:
    """A print is moved by twice the difference that matters, or by a fifth; a bound may agree in one direction."""
    lines = full_ledger[full_ledger["kind"] == "measured"].set_index("id")
    moved = 0
    for claim in claims().to_dict("records"):
        number = parsed(claim["value"])
        if claim["id"] not in lines.index or not isinstance(number, float):
            continue
        line, rule = lines.loc[claim["id"]], claim["rule"]
        if line["verdict"] != "agrees" or not (
            line["tested"] or rule in ("magnitude", "approximately", "equal")
        ):
            continue  # a question of yes or no has no deviation
        step = max(
            2 * half_unit(claim["value"]),
            2 * line["margin"] if line["margin"] > 0 else 0.2 * abs(number),
        )
        places = (
            [number / 10, number * 10] if rule == "magnitude" else [number - step, number + step]
        )
        answer = module.answers()[claim["id"]]
        kept = [
            place
            for place in places
            if judge(repr(float(place)), answer, rule, cuts_of("text")).verdict == "agrees"
        ]
        assert len(kept) <= (rule in ("at_most", "at_least")), claim["id"]
        moved += 1
    assert moved > 20
