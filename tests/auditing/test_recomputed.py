"""Every number of a report, recomputed by code that shares nothing with the library, on several tables."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from frhsic_core import audit, gdp, gdp_curve
from frhsic_core.auditing._curves import largest_gap, rise
from frhsic_core.auditing._pictures import curve_svg
from frhsic_core.auditing._words import number, percent, rounded, with_interval

NAMES = ("ages", "incomes", "five values", "weighted", "many values")


def table(name: str) -> pd.DataFrame:
    generator = np.random.default_rng(NAMES.index(name))
    n = 250  # every value has a bin of its own
    s = {
        "incomes": np.exp(generator.normal(10, 1, n)).round(2),
        "five values": generator.integers(1, 6, n).astype(float),
        "many values": generator.normal(size=n),
    }.get(name, np.round(generator.gamma(6, 5, n) + 17))
    rank = stats.rankdata(s) / n
    p = np.clip(0.3 + 0.3 * np.sin(3 * rank) * rank + 0.15 * generator.normal(size=n), 0.01, 0.99)
    weight = generator.uniform(0.2, 3.0, n) if name == "weighted" else np.ones(n)
    return pd.DataFrame({"p": p, "s": s, "y": (generator.random(n) < p).astype(int), "w": weight})


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest):
    data = table(request.param)
    weight = data["w"] if request.param == "weighted" else None
    given = {"sensitive_features": data["s"], "y_true": data["y"], "sample_weight": weight}
    return data, audit(data["p"], **given, threshold=0.4)


def curve_by_hand(
    f: np.ndarray, s: np.ndarray, w: np.ndarray, bandwidth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the local quadratic fit at every distinct value, one weighted least squares problem at a time."""
    values = np.unique(s)
    mass = np.array([w[s == v].sum() for v in values])
    means = np.array([np.average(f[s == v], weights=w[s == v]) for v in values])
    if bandwidth == 0.0:
        return mass, means
    rows = np.array([w[s == v].sum() ** 2 / (w[s == v] ** 2).sum() for v in values])
    low, middle, high = np.quantile(s, [0.1, 0.5, 0.9])
    t = np.arcsinh((values - middle) / (high - low))
    below = np.cumsum(mass) / mass.sum() - 0.5 * mass / mass.sum()
    central = np.interp(0.95, below, t) - np.interp(0.05, below, t)
    needed = min(max(30, 0.02 * rows.sum()), 0.5 * rows.sum())
    fitted = []
    for k in range(len(values)):
        distance = np.abs(t - t[k])
        order = np.argsort(distance, kind="stable")
        held, count = 0.0, 0
        while count < len(order) and held + rows[order[count]] < needed:
            held += rows[order[count]]
            count += 1
        reach = 1.1 * distance[order[min(max(count, 6), len(order) - 1)]]
        width = max(bandwidth * central, reach)
        root = np.sqrt(np.maximum(0.0, 1 - (distance / width) ** 2) * mass)
        design = np.vander((t - t[k]) / width, 3)
        fitted.append(np.linalg.lstsq(root[:, None] * design, root * means, rcond=None)[0][-1])
    return mass, np.array(fitted)


def check_curve(
    curve, f: np.ndarray, s: np.ndarray, w: np.ndarray, center: float | None = None
) -> None:
    mass, fitted = curve_by_hand(f, s, w, curve.bandwidth)
    share = mass / mass.sum()
    middle = np.average(f, weights=w) if center is None else center
    np.testing.assert_allclose(curve.s, np.unique(s))
    np.testing.assert_allclose(curve.mean, fitted, atol=2e-6)
    assert curve.center == pytest.approx(middle)
    assert curve.gdp == pytest.approx(share @ np.abs(fitted - middle), abs=2e-6)
    assert curve.gdp_low <= curve.gdp <= curve.gdp_high
    assert curve.rows.tolist() == [(s == v).sum() for v in np.unique(s)]
    assert curve.n == len(f)


def test_the_curves_and_gdp(case) -> None:
    data, found = case
    f, s, w, y = (data[name].to_numpy(float) for name in ("p", "s", "w", "y"))
    attribute = found["s"]
    check_curve(attribute.curve, f, s, w)
    check_curve(attribute.curves["equal_opportunity"], f[y == 1], s[y == 1], w[y == 1])
    check_curve(attribute.curves["label_0"], f[y == 0], s[y == 0], w[y == 0])
    check_curve(attribute.curves["calibration"], y - f, s, w, center=0.0)
    odds = [attribute.curves[key].gdp for key in ("equal_opportunity", "label_0")]
    assert attribute.numbers["equalized_odds"].value == max(odds)


def test_the_groups_are_those_of_pandas(case) -> None:
    data, found = case
    groups = found["s"].groups
    if (data["w"] == 1).all():
        codes = pd.qcut(data["s"], 4, labels=False, duplicates="drop")
    else:
        order = data.sort_values("s")
        edges = [
            order["s"][(order["w"].cumsum() >= order["w"].sum() * k / 4)].iloc[0]
            for k in range(1, 4)
        ]
        edges = [edge for edge in edges if edge > data["s"].min()]
        codes = data["s"].map(lambda value: sum(value > edge for edge in sorted(set(edges))))
    parts = [part for _, part in data.groupby(codes.to_numpy())]
    np.testing.assert_allclose(
        groups.means, [np.average(part["p"], weights=part["w"]) for part in parts]
    )
    assert groups.rows.tolist() == [len(part) for part in parts]
    assert groups.start.tolist() == [part["s"].min() for part in parts]
    assert groups.end.tolist() == [part["s"].max() for part in parts]
    if (data["w"] == 1).all():
        for k, part in enumerate(parts):
            low, high = stats.t.interval(
                0.95, len(part) - 1, part["p"].mean(), stats.sem(part["p"])
            )
            assert (groups.low[k], groups.high[k]) == (pytest.approx(low), pytest.approx(high))
    page = re.sub(r"<[^>]+>", " ", found.to_html())
    for k in range(len(groups)):
        shown = f"{groups.rows[k]:,.0f} {number(groups.means[k])} {number(groups.low[k])} to {number(groups.high[k])}"
        assert shown in " ".join(page.split())
    sentence = next((said for said in found.sentences if said.startswith("A table with")), None)
    assert (
        sentence is None
        or f"largest difference of {rounded(float(np.ptp(groups.means.to_numpy())))} between"
        in sentence
    )


def test_the_picture_shows_everything_at_its_place(case) -> None:
    """The upper panel has 564 x 278 pixels from (62, 16) on, with a margin of 6 % above and below; one decimal."""
    _, found = case
    attribute = found["s"]
    curve, groups, inside = attribute.curve, attribute.groups, attribute.curve.inside
    low, high = curve.low[inside].min(), curve.high[inside].max()
    margin = 0.06 * (high - low)
    count = len(curve.s)
    first, last = curve.s[inside][[0, -1]] if curve.smooth else (-0.6, count - 0.4)

    def places(s: np.ndarray, values: np.ndarray) -> np.ndarray:
        heights = 16 + 278 * (high + margin - values) / (high - low + 2 * margin)
        return np.column_stack([62 + 564 * (s - first) / (last - first), heights])

    root = ElementTree.fromstring(
        curve_svg(attribute, curve, label="mean", groups=groups if curve.smooth else None)
    )
    drawn = {
        kind: [tag.attrib for tag in root.iter() if tag.get("class") == kind]
        for kind in ("group", "point")
    }
    assert not [tag for tag in root.iter() if "rotate" in tag.get("transform", "")]
    if curve.smooth:
        points = [
            point.split(",") for point in root.find(".//*[@class='curve']").get("points").split()
        ]
        expected = places(curve.s, curve.mean)[inside]
        far = np.abs(np.array(points, float)[:, None] - expected).max(-1).min(1)
        assert (len(far), far.max() < 0.051) == (min(160, len(expected)), True)
        np.testing.assert_allclose(np.array(points, float)[[0, -1]], expected[[0, -1]], atol=0.051)
        starts, ends = (
            places(np.clip(groups[name], first, last), groups.means) for name in ("start", "end")
        )
        written = np.array(
            [[line[name] for name in ("x1", "y1", "x2", "y2")] for line in drawn["group"]], float
        )
        np.testing.assert_allclose(written, np.hstack([starts, ends]), atol=0.051)
        return
    written = np.array([[point["cx"], point["cy"]] for point in drawn["point"]], float)
    np.testing.assert_allclose(written, places(np.arange(count), curve.mean), atol=0.051)
    bars = [tag.attrib for tag in root.iter() if tag.tag == "rect"]
    sides = places(np.arange(count) - 0.35, curve.mean)[:, 0]
    np.testing.assert_allclose([float(bar["x"]) for bar in bars], sides, atol=0.051)
    heights = 58 * curve.share / curve.share.max()
    np.testing.assert_allclose([float(bar["height"]) for bar in bars], heights, atol=0.051)


def test_what_is_said_about_people(case) -> None:
    """The people around the largest gap."""
    data, found = case
    curve = found["s"].curve
    said = next((said for said in found.sentences if said.startswith("The gap is largest")), None)
    if said is not None:
        bins = curve.s[largest_gap(curve)[1]]
        there = data["s"].between(bins[0] - 1e-9, bins[-1] + 1e-9)
        share = data["w"][there].sum() / data["w"].sum()
        assert f"{there.sum():,} people ({percent(share)})" in said


def test_the_chance_level_is_that_of_shuffled_scores() -> None:
    data = table("ages")
    found = audit(data["p"], sensitive_features=data["s"])
    generator = np.random.default_rng(0)
    noise = (
        data["p"].to_numpy()
        - pd.Series(found.curve.mean, index=found.curve.s)[data["s"]].to_numpy()
    )
    shuffled = [gdp(generator.permutation(noise), data["s"]) for _ in range(200)]
    assert found.floor == pytest.approx(np.mean(shuffled), rel=0.25)


def test_the_effect_sizes(case) -> None:
    data, found = case
    if (data["w"] != 1).any():
        return  # a weighted audit measures them on a random part of the rows
    f, s = data["p"].to_numpy(), data["s"].to_numpy()
    a, b = (squareform(pdist(x[:, None])) for x in (f, s))
    centered = [x - x.mean(0) - x.mean(1)[:, None] + x.mean() for x in (a, b)]
    covariance, *own = [
        (x * y).mean()
        for x, y in ((centered[0], centered[1]), (centered[0],) * 2, (centered[1],) * 2)
    ]
    effects = found["s"].numbers
    assert effects["distance_correlation"].value == pytest.approx(
        np.sqrt(covariance / np.sqrt(own[0] * own[1]))
    )
    grams = []
    for distances in (a, b):
        off = np.sort(distances[np.triu_indices(len(f), 1)])
        sigma = off[(len(off) - 1) // 2] or off.mean()
        gram = np.exp(-0.5 * (distances / sigma) ** 2)
        grams.append(gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean())
    value = (grams[0] * grams[1]).sum() / np.sqrt((grams[0] ** 2).sum() * (grams[1] ** 2).sum())
    assert effects["normalized_hsic"].value == pytest.approx(value, rel=1e-6)
    assert effects["normalized_hsic"].floor == pytest.approx(
        np.trace(grams[0])
        * np.trace(grams[1])
        / 249
        / np.sqrt((grams[0] ** 2).sum() * (grams[1] ** 2).sum())
    )


def test_what_the_threshold_decides(case) -> None:
    data, found = case
    f, s, w, y = (data[name].to_numpy(float) for name in ("p", "s", "w", "y"))
    chosen = (f >= 0.4).astype(float)
    groups, curves = found["s"].selected_groups, found["s"].curves
    along, by_group = (found["s"].numbers[name] for name in ("impact_ratio", "impact_ratio_groups"))
    selected = curves["selected"]
    check_curve(selected, chosen, s, w)
    check_curve(curves["true_positives"], chosen[y == 1], s[y == 1], w[y == 1])
    check_curve(curves["false_positives"], chosen[y == 0], s[y == 0], w[y == 0])
    ends = list(zip(groups.start, groups.end, strict=True))
    parts = [(s >= a) & (s <= b) for a, b in ends]
    assert sum(part.sum() for part in parts) == len(s)
    rates = [np.average(chosen[part], weights=w[part]) for part in parts]
    np.testing.assert_allclose(groups.means, rates)
    assert by_group.value == pytest.approx(min(rates) / max(rates))
    ends = [groups.low.min() / groups.high.max(), min(groups.high.min() / groups.low.max(), 1.0)]
    assert [by_group.low, by_group.high] == pytest.approx(np.maximum(ends, 0.0))
    gap = found.check("impact_gap=0.2")[0]
    assert (gap.estimate, gap.low, gap.high) == pytest.approx(
        (1 - by_group.value, 1 - by_group.high, 1 - by_group.low)
    )
    k, j = int(np.argmin(rates)), int(np.argmax(rates))
    verdict = (
        "below"
        if by_group.high < 0.8
        else "not below"
        if by_group.low >= 0.8
        else "not clearly below or above"
    )
    said = next(said for said in found.sentences if said.startswith("At the threshold 0.4"))
    ratio = with_interval(rates[k] / rates[j], by_group.low, by_group.high, "95%")
    assert f"{ratio}, {verdict} four fifths" in said
    # Along the attribute: the two values between which the difference is most certain.
    inside = selected.inside
    low = np.flatnonzero(inside)[np.argmin(selected.high[inside])]
    high = np.flatnonzero(inside)[np.argmax(selected.low[inside])]
    mean = selected.mean
    assert along.value == pytest.approx(min(max(mean[low], 0.0) / mean[high], 1.0))
    assert along.value <= along.high <= 1.0
    page = " ".join(re.sub(r"<[^>]+>", " ", found.to_html()).split())
    for rate in rates:
        assert f"{rate:.0%} {rounded(rate / max(rates))}" in page


def test_how_good_the_scores_are(case) -> None:
    data, found = case
    f, w, y = (data[name].to_numpy(float) for name in ("p", "w", "y"))
    chosen = f >= 0.4
    pairs = (f[y == 1][:, None] > f[y == 0]) + 0.5 * (f[y == 1][:, None] == f[y == 0])
    weights = w[y == 1][:, None] * w[y == 0]
    expected = {
        "rows": 250,
        "labeled_rows": 250,
        "mean_score": np.average(f, weights=w),
        "selection_rate": np.average(chosen, weights=w),
        "mean_label": np.average(y, weights=w),
        "auc": (pairs * weights).sum() / weights.sum(),
        "accuracy": np.average(chosen == y, weights=w),
    }
    assert found.performance == pytest.approx(expected)
    said = next(said for said in found.sentences if said.startswith("The AUC"))
    for name in ("auc", "accuracy", "mean_score", "mean_label"):
        assert rounded(expected[name]) in said


def test_is_this_much(case) -> None:
    """The gap against chance, against the spread of the scores, and between two people."""
    data, found = case
    curve = found.curve
    text = str(found)
    if not (curve.is_flat and found.pvalue > 0.05):
        assert f"The mean gap is {rounded(found.gdp / found.floor)} times" in text
    mean = np.average(data["p"], weights=data["w"])
    share = found.gdp / np.sqrt(np.average((data["p"] - mean) ** 2, weights=data["w"]))
    assert found["s"].numbers["gdp_over_sd"].value == pytest.approx(share)
    assert f"It is {share:.0%} of the standard deviation" in text


PEOPLE = (
    r"People with {0} (\S+) get lower (?:scores|predictions) than people with {0} (\S+), "
    r"by (\S+) \(95% interval (\S+) to (\S+)\) on average"
)


def test_the_headline_is_about_two_people(case) -> None:
    """Both lie inside of the band, and no pair of round values has a difference that is more certain."""
    _, found = case
    curve = found.curve
    said = re.match(PEOPLE.format("s"), found.sentences[0])
    if said is None:
        assert "No dependence" in found.sentences[0] or "no difference" in found.sentences[0]
        return
    first, last = (float(said[k].replace(",", "")) for k in (1, 2))
    low, mean, high = (
        np.interp([first, last], curve.s, y) for y in (curve.low, curve.mean, curve.high)
    )
    expected = with_interval(mean[1] - mean[0], low[1] - high[0], high[1] - low[0], "95%")
    assert expected == f"{said[3]} (95% interval {said[4]} to {said[5]})"
    assert curve.s[curve.inside][0] <= min(first, last)
    assert max(first, last) <= curve.s[curve.inside][-1]


def test_the_interval_between_two_people_covers_the_truth() -> None:
    """In 100 samples with a known curve, and at most twice as wide as the spread of the estimates asks for."""
    generator = np.random.default_rng(3)
    s = np.repeat(np.arange(20.0, 70.0), 8)
    truth = 0.5 + 0.2 * np.sin(s / 15)
    found = []
    for _ in range(100):
        scores = truth + 0.15 * generator.normal(size=len(s))
        pair = rise(gdp_curve(scores, s), 25.0, 60.0)
        found.append((pair.size, pair.low, pair.high))
    change, low, high = np.array(found).T
    true = 0.2 * (np.sin(4.0) - np.sin(25.0 / 15))
    assert ((low <= true) & (true <= high)).sum() >= 95
    assert 1.0 < np.mean(high - low) / (2 * 1.96 * change.std()) < 2.5
    # The curve falls: the older get lower scores.
    said = audit(scores, sensitive_features=s).sentences[0]
    older, younger, size, low, high = map(
        float, re.match(PEOPLE.format("sensitive"), said).groups()
    )
    assert younger < older
    assert 0 < low < size < high
