"""The audit of predictions: what it reads, what it measures, what it says, and what it refuses."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binomtest

from frhsic_core import audit, gdp_bound, gdp_curve
from frhsic_core.auditing import Audit, gdp_score
from frhsic_core.auditing._curves import largest_gap
from frhsic_core.auditing._statistics import residuals, sample_rows
from frhsic_core.auditing._templates import escape_markdown, fill_html, fill_markdown
from frhsic_core.auditing._words import at_most, number
from frhsic_core.inputs.columns import CATEGORIES, Column, as_column, read_columns


def people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    age = np.round(generator.uniform(20, 70, n))
    experience = np.clip(age - 20 + 6 * generator.normal(size=n), 0, None)
    p = 0.2 + 0.01 * experience + 0.05 * generator.random(n)
    table = pd.DataFrame(
        {"p": p, "age": age, "experience": experience, "y": (generator.random(n) < p).astype(int)}
    )
    return table.assign(
        sex=np.where(generator.random(n) < 0.5, "f", "m"), w=generator.uniform(0.5, 1.5, n)
    )


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def full(data: pd.DataFrame) -> Audit:
    given = {
        "y_true": data["y"],
        "control_features": data["experience"],
        "sample_weight": data["w"],
    }
    return audit(data["p"], sensitive_features=data[["age", "sex"]], **given)


def test_everything_is_measured(full: Audit, data: pd.DataFrame) -> None:
    age = full["age"]
    assert age.rows == 240
    of_labels = {"outcomes", "equal_opportunity", "label_0", "calibration"}
    assert set(age.curves) == {"gdp", "gdp_given"} | of_labels
    # The scores depend on age through experience only: given experience little is left.
    assert age.curves["gdp_given"].gdp < 0.2 * age.curve.gdp
    assert age.numbers["pvalue_given"].value > 0.01
    sex = full["sex"]
    assert sex.categories == ("f", "m")
    means = [np.average(part["p"], weights=part["w"]) for _, part in data.groupby("sex")]
    np.testing.assert_allclose(sex.curve.mean, means)
    assert sex.groups is None
    assert full.joint is not None
    assert full.joint.name == "age and sex"
    with pytest.raises(KeyError, match="no attribute"):
        full["height"]


def test_table_dict_and_markdown_agree(full: Audit) -> None:
    table = full.table().set_index(["attribute", "measure"])
    value = full.as_dict()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    first = value["attributes"][0]
    assert first["numbers"]["gdp"]["low"] == table.loc[("age", "gdp"), "low"]
    assert table.loc[("age", "gdp_given"), "value"] == first["curves"]["gdp_given"]["gdp"]
    assert table.loc[("age", "gdp"), "by_chance"] == full["age"].curve.floor
    assert f"| age | gdp | {number(first['numbers']['gdp']['value'])} |" in full.to_markdown()
    assert value["sentences"] == full.sentences
    assert "240 rows" in repr(full)
    # Of both attributes the curve, the outcomes, what experience leaves of it, both labels and the errors; of age
    # the groups too.
    assert full.to_html().count("<figure") == 12 + int(full["age"].groups.inside.max() > 0)


def test_the_same_numbers_from_every_kind_of_input(data: pd.DataFrame) -> None:
    columns = data["p"], data["age"]
    kinds = [
        columns,
        tuple(c.to_numpy() for c in columns),
        tuple(torch.tensor(c.to_numpy()) for c in columns),
    ]
    kinds.append((data["p"].tolist(), {"age": data["age"].tolist()}))
    # A Dask collection has a method that computes it.
    kinds.append(
        tuple(
            SimpleNamespace(compute=lambda part=part: part) for part in (data["p"], data[["age"]])
        )
    )
    found = [read_columns(*kind) for kind in kinds]
    for other in found[1:]:
        np.testing.assert_array_equal(other.score.values, found[0].score.values)
        np.testing.assert_array_equal(other.sensitive[0].values, found[0].sensitive[0].values)
    assert [columns.sensitive[0].name for columns in found] == [
        "age",
        "sensitive",
        "sensitive",
        "age",
        "age",
    ]


def test_missing_values_are_counted_and_compared(data: pd.DataFrame) -> None:
    holes = data.copy()
    holes.loc[:9, "age"] = np.nan
    holes.loc[10:14, "age"] = np.inf
    holes.loc[15, "p"] = np.nan
    found = audit(holes["p"], sensitive_features=holes["age"])
    assert found["age"].rows == 240 - 16
    entry = next(entry for entry in found.missing if entry.column == "age")
    assert entry.missing == 15
    assert entry.mean_missing == pytest.approx(holes["p"][:15].mean())
    assert "age is missing or infinite in 15 of 240 rows" in str(found)


def test_words_dates_and_ordered_categories_become_numbers() -> None:
    kinds = [f"k{k}" for k in range(CATEGORIES)]
    assert len(as_column(pd.Series(2 * kinds), name="a", categorical=True).categories) == CATEGORIES
    born = pd.Series(pd.to_datetime(["1970-01-01", "2000-01-01", None]))
    years = as_column(born, name="born", categorical=True)
    np.testing.assert_allclose(years.values[:2], [1970.0, 2000.0], atol=0.01)
    assert years.missing == 1
    degree = pd.Series(
        pd.Categorical(["high", "low", None], categories=["low", "high"], ordered=True)
    )
    np.testing.assert_array_equal(
        as_column(degree, name="d", categorical=True).values, [1.0, 0.0, np.nan]
    )
    assert as_column(pd.Series([True, False]), name="b", categorical=False).values.tolist() == [
        1.0,
        0.0,
    ]


def test_a_weighted_sample_has_the_weighted_mean() -> None:
    values = np.arange(2000.0)
    rows = sample_rows(2000, 2000, weight=values, random_state=1)
    assert len(set(rows)) == len(rows)
    assert values[rows].mean() == pytest.approx(np.average(values, weights=values), rel=0.03)
    assert len(sample_rows(5000, 100, weight=None, random_state=1)) == 100


def test_residuals_remove_numbers_and_categories() -> None:
    generator = np.random.default_rng(0)
    c = generator.normal(size=1500)
    kind = generator.integers(0, 3, 1500).astype(float)
    noise = 0.1 * generator.normal(size=1500)
    left = residuals(
        np.sin(c) + kind**2 + noise, [Column("c", c), Column("kind", kind, ("a", "b", "c"))]
    )
    assert np.corrcoef(left, noise)[0, 1] > 0.97


def test_residuals_are_cross_fitted() -> None:
    """The prediction for a row does not depend on the row's own score, but on the scores of other folds."""
    generator = np.random.default_rng(1)
    kind = Column("kind", generator.integers(0, 4, 100).astype(float), ("a", "b", "c", "d"))
    f, controls = generator.normal(size=100), [Column("c", generator.normal(size=100)), kind]
    predicted = f - residuals(f, controls)
    moved = []
    for row in range(10):
        changed = f.copy()
        changed[row] += 10.0
        moved.append(np.abs(changed - residuals(changed, controls) - predicted) > 1e-9)
    assert not np.diagonal(moved).any()
    assert (np.sum(moved, axis=1) == 80).all()  # the four folds of five that used the row


def test_gate(full: Audit) -> None:
    gap = full["age"].curve
    below, above = gap.gdp_high + 0.01, gap.gdp_low - 0.01
    statuses = {
        one.status for value in (below, above, gap.gdp) for one in full.check(f"gdp[age]={value}")
    }
    assert statuses == {0, 1, 3}
    assert [one.status for one in full.check(f"gdp[age]={0.5 * (gap.gdp_low + gap.gdp)}")] == [3]
    assert any(one.status for one in full.check(f"gdp[age]={below}", "calibration=0"))
    assert [verdict.attribute for verdict in full.check("gdp=0.45")] == ["age", "sex"]


def test_shrunken_scores_do_not_pass_a_gate_without_a_scale(data: pd.DataFrame) -> None:
    """Moved towards their median, the scores rank and select the same people."""
    p, t = data["p"], data["p"].median()
    both = [
        audit(t + share * (p - t), sensitive_features=data["age"], threshold=t)
        for share in (1.0, 0.25)
    ]
    before, after = (found.check("gdp=0.05", "gdp_over_sd=0.5", "impact_gap=0.2") for found in both)
    assert [one.status for one in (*before, *after)] == [1, 1, 1, 0, 1, 1]
    assert after[1].estimate == pytest.approx(before[1].estimate)
    with pytest.raises(ValueError, match="needs --threshold"):
        audit(p, sensitive_features=data["age"]).check("impact_gap=0.2")
    few = audit(p, sensitive_features=data["age"], threshold=p.nlargest(3).min())[
        "age"
    ].selected_groups
    exact = [
        binomtest(round(k * n), n).proportion_ci() for k, n in zip(few.means, few.rows, strict=True)
    ]
    assert few[["low", "high"]].to_numpy() == pytest.approx(np.array(exact))
    assert few["high"][few["means"] == 0].min() > 0
    same = audit(
        np.full(len(p), 0.4), sensitive_features=data["age"]
    )  # rounding errors over rounding errors
    assert same["age"].numbers["gdp_over_sd"].high < 1e-12


def test_the_metric_is_the_number_of_the_audit(full: Audit, data: pd.DataFrame) -> None:
    options = {"sensitive_features": data["age"], "sample_weight": data["w"]}
    assert gdp_score(None, data["p"], **options) == pytest.approx(full["age"].curve.gdp)
    options["sensitive_features"] = data["age"][3:].reindex(data.index)
    with pytest.raises(ValueError, match="no row has a prediction"):
        gdp_score(None, data["p"].where(data.index < 3), **options)


def test_inside_a_metric_frame(data: pd.DataFrame) -> None:
    """Of fairlearn: the numeric attribute is a sample parameter, the frame groups by the categorical one."""
    fairlearn = pytest.importorskip("fairlearn.metrics")
    options = {
        "sensitive_features": data["sex"],
        "sample_params": {"sensitive_features": data["age"]},
    }
    frame = fairlearn.MetricFrame(metrics=gdp_score, y_true=data["y"], y_pred=data["p"], **options)
    women = data["sex"] == "f"
    expected = gdp_score(None, data["p"][women], sensitive_features=data["age"][women])
    assert frame.by_group["f"] == pytest.approx(expected)


def test_text_of_the_data_is_escaped() -> None:
    escaped = "\\<img\\>\\|\\`x\\` \\*a\\*"
    assert escape_markdown("<img>|`x`\n*a*") == escaped
    empty = dict.fromkeys(("statuses", "attributes", "all_rows", "table"), ())
    card = fill_markdown(
        "card.md", title="<img>|`x`\n*a*", origin={"file": "a*b"}, marks={}, limits="", **empty
    )
    assert card.startswith(f"## {escaped}\n\n- **file**: a\\*b\n")
    page = fill_html("page.html", title='é<"\n\x00\x7f\ufffe\ud800')
    assert f"<title>é&lt;&#34;{5 * chr(0xFFFD)}</title>" in page


def test_labels_on_a_scale_are_no_classes(data: pd.DataFrame) -> None:
    """Three fractions, or many whole numbers, are real labels of scores from 0 to 1; predictions may be of any size."""
    p = data["p"]
    for values, labels in (
        (p, np.arange(240) % 3 / 2),
        (p, np.arange(240) % 30),
        (1e4 * p, 1.1e4 * p),
    ):
        found = audit(values, sensitive_features=data["age"], y_true=labels)
        assert "calibration" in found["age"].curves
        assert "equal_opportunity" not in found["age"].numbers
    assert "too low" in str(found)


def test_a_scorecard_has_no_calibration_but_everything_else(data: pd.DataFrame) -> None:
    """A label of 0 and 1 minus a score of 600 points says nothing; labels that are numbers are on the score's scale."""
    options = {"sensitive_features": data["age"], "y_true": data["y"]}
    card, plain = audit(300 + 550 * data["p"], **options), audit(data["p"], **options)
    assert set(plain["age"].curves) - set(card["age"].curves) == {"calibration"}
    assert card.gdp == pytest.approx(550 * plain.gdp)
    assert "Calibration is not measured" in str(card)
    assert (
        "calibration" in audit(1.1 * data["p"] - 0.05, **options)["age"].curves
    )  # as of a linear model
    with pytest.raises(ValueError, match=r"calibration of 'age' needs.*between 0 and 1"):
        card.check("calibration=1")
    assert (
        "calibration"
        in audit(300 + 550 * data["p"], **options | {"y_true": 600 + 9 * data["p"]})["age"].curves
    )


def test_a_dependence_without_a_certain_place_is_said() -> None:
    """A test that rejects and a band that contains a constant must not read as two opposite verdicts."""
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 70, 300)
    score = 0.5 + 0.08 * rng.normal(size=300) * (
        1 + 3 * (age > 45)
    )  # the spread depends on age, the mean does not
    said = audit(score, sensitive_features={"age": age}).sentences
    assert "depend on age, but no difference of the mean" in said[0]
    where = next(sentence for sentence in said if sentence.startswith("The gap is largest"))
    assert "This is not certain" in where


def test_where_the_gap_is_largest() -> None:
    s = np.repeat(np.arange(100.0), 20)
    f = np.where((s >= 60) & (s < 80), 1.0, 0.0) + 0.01 * np.random.default_rng(6).normal(size=2000)
    curve = gdp_curve(f, s)
    top, there = largest_gap(curve)
    assert 55 <= curve.s[there][0] <= 66
    assert 74 <= curve.s[there][-1] <= 84
    assert curve.gap[top] > 0.7
    # By hand: from the largest gap on to both sides while the gap is at least 80 % of it.
    first = last = top
    while curve.gap[first - 1] >= 0.8 * curve.gap[top]:
        first -= 1
    while curve.gap[last + 1] >= 0.8 * curve.gap[top]:
        last += 1
    assert there == slice(first, last + 1)


def test_intersections_of_categories_are_an_attribute() -> None:
    """The means of all combinations, as pandas groups them; with numbers there is only the joint test."""
    data = people(400).assign(town=["north", "south"] * 200)
    data["p"] += 0.2 * ((data["sex"] == "f") & (data["town"] == "north"))
    found = audit(data["p"], sensitive_features=data[["sex", "town"]])
    assert [attribute.name for attribute in found.attributes] == ["sex", "town", "sex × town"]
    expected = data.groupby(["sex", "town"])["p"].mean()
    crossed = found["sex × town"]
    assert crossed.categories == tuple(" × ".join(key) for key in expected.index)
    np.testing.assert_allclose(crossed.curve.mean, expected)
    assert crossed.gdp > max(found["sex"].gdp, found["town"].gdp)
    assert found.joint is None
    assert "f × north" in found.sentences[-2] + str(found)
    assert [
        a.name for a in audit(data["p"], sensitive_features=data[["age", "town"]]).attributes
    ] == ["age", "town"]


def test_the_guarantee_is_the_bound_of_the_values() -> None:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 60, 400)
    p = np.clip(0.5 + 0.004 * (age - 40) + 0.05 * rng.normal(size=400), 0.0, 1.0)
    found = audit(p, sensitive_features=age)
    bound = gdp_bound(p, sensitive_features=age)
    assert found.bound == bound
    assert any(
        f"at most {at_most(bound.bound, digits=2)}" in line and "40 values" in line
        for line in found.sentences
    )
    above, below = bound.bound + 1e-6, bound.bound - 1e-6
    passed, failed, never = found.check(f"gdp={above}", f"gdp={below}", "gdp=0.03", guaranteed=True)
    assert [verdict.outcome for verdict in (passed, failed)] == ["below", "inconclusive"]
    needed = bound.rows_needed(below)
    more = f"With {needed - 400:,} more people and the same estimates, {needed:,} rows in all"
    assert more in str(failed)
    assert "would be enough" not in str(passed)
    assert bound.rows_needed(0.03) is None
    assert (never.outcome, "No number of rows" in str(never)) == ("inconclusive", True)
    (far,) = found.check("gdp=0.02", guaranteed=True)
    assert far.outcome == "above"
    assert f"interval {number(far.low)} to {number(far.high)}. This holds" in str(far)
    held_out = "This holds only if these rows neither trained, adjusted nor chose the model."
    assert all(
        str(one).endswith(held_out) for one in (passed, failed, never, far, *found.check("gdp=0.1"))
    )
    own = audit(p, sensitive_features=age + rng.uniform(size=400))
    assert f"no useful guaranteed bound, only {at_most(own.bound.bound, digits=2)}" in str(own)
    (verdict,) = own.check("gdp=0.05", guaranteed=True)
    assert "No guarantee is possible: most people have a value of " in str(verdict)
    assert "use gdp_bound with groups and variation." in str(verdict)
    # The interval of GDP itself is below where nothing is guaranteed.
    assert [verdict.outcome for verdict in found.check(f"gdp={below}")] == ["below"]
    assert found.as_dict()["attributes"][0]["bound"]["bound"] == bound.bound
    row = found.table().set_index("measure").loc["gdp_bound"]
    assert row["value"] == bound.bound
    with pytest.raises(ValueError, match="for gdp only"):
        found.check("calibration=0.1", guaranteed=True)


@pytest.mark.parametrize("exponent", range(-7, 8))
def test_an_upper_bound_is_never_printed_too_small(exponent: int) -> None:
    """Rounded as usual, half of all bounds would be printed as less than what was proved."""
    rng = np.random.default_rng(exponent + 7)
    values = 10.0 ** (exponent + rng.uniform(size=200))
    printed = np.array([float(at_most(value).replace(",", "")) for value in values])
    usual = np.array([float(number(value).replace(",", "")) for value in values])
    assert (printed >= values).all()
    assert (usual < values).any()
    # Three digits, so the number is larger by at most one hundredth.
    assert (printed <= 1.0101 * values).all()
    assert [at_most(value) for value in (0.25, 0.0, 2.0)] == ["0.25", "0", "2"]


def test_without_known_limits_or_with_weights_nothing_is_guaranteed() -> None:
    rng = np.random.default_rng(6)
    age = rng.integers(20, 60, 300)
    p = rng.uniform(size=300)
    assert audit(10 * p, sensitive_features=age).bound is None
    assert audit(p, sensitive_features=age, sample_weight=1 + p).bound is None
    bins = pd.Series(pd.qcut(age, 4))
    assert audit(p, sensitive_features=bins).bound is None
    assert audit(p, sensitive_features=bins.astype(str)).bound is None
    assert (
        audit(p, sensitive_features=bins.cat.codes.map(list("abcd").__getitem__)).bound is not None
    )
    for scores, why in (
        (100 * p, "these are from .* divide them by 100"),
        (200 * p, r"these are from \S+ to \S+\.$"),
    ):
        with pytest.raises(
            ValueError, match=f"no guaranteed bound: it needs scores from 0 to 1, and {why}"
        ):
            audit(scores, sensitive_features=age).check("gdp=0.1", guaranteed=True)


def test_estimate_interval_and_bound_are_drawn_on_one_axis(data: pd.DataFrame) -> None:
    """The axis starts at zero; a place has one decimal, of several hundred."""
    audited = audit(data["p"], sensitive_features=data["age"].round())
    found = audited["age"]
    pattern = r'"interval wide" x1="(.*?)" x2="(.*?)".*?cx="(.*?)".*?"bound" points=".*? (.*?),'
    [places] = re.findall(pattern, audited.to_html())
    lengths = np.array(places, dtype=float) - 62
    expected = np.array(
        [found.curve.gdp_low, found.curve.gdp_high, found.curve.gdp, found.bound.bound]
    )
    np.testing.assert_allclose(lengths / lengths[-1], expected / found.bound.bound, atol=1e-3)
