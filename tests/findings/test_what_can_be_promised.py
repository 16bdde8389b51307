"""Guards the checked sentences of the chapter on what can be promised."""

from __future__ import annotations

import math

import numpy as np
from samples import stored

from frhsic_core.bounds.gdp import always_slack
from frhsic_core.paper.experiments.levels_and_coverage import bound_table
from frhsic_core.paper.experiments.promises import LAWS, coverage_table
from frhsic_core.paper.statements.concentration import uniform_bound
from frhsic_core.paper.statements.limits import least_median, slacks
from frhsic_core.paper.stored import book_folder, stored_rows

held = stored("held_out_bounds")


def test_in_all_five_tables_the_papers_bound_is_off_the_scale_and_ours_is_of_the_order_of_the_estimate(
    held,
) -> None:
    assert len(held) == 5
    assert ((held["paper"] > 0.5) & (held["bound"] < 0.25) & (held["high"] < held["bound"])).all()
    assert (held["bound"] < 2.5 * held["estimate"]).all()


def test_the_papers_bound_is_informative_after_a_hundred_thousand_rows(held) -> None:
    eigenvalue = held.set_index("dataset")["eigenvalue"]["adult"]
    sizes = [math.sqrt(uniform_bound(n, complexity=0.0) / eigenvalue) for n in (100_000, 150_000)]
    assert sizes[0] > 0.5 > sizes[1]


def test_the_bounds_missed_once_in_all_samples() -> None:
    """The bound with the second moment is close enough to be missed: once in 27,200 samples."""
    rows = stored_rows("bound_coverage")
    missed = rows["draws"] - rows["covered"]
    assert missed.sum() == 1
    assert rows.loc[missed > 0, "measure"].to_list() == ["gdp"]
    assert rows.loc[rows["measure"] == "gdp", "draws"].sum() == 27_200
    found = bound_table(rows).set_index(["measure", "n"])
    assert (found["alone"] < 0.75).all()
    small, large = (found.xs(n, level="n")["ratio"] for n in (100, 100_000))
    assert small.filter(like="gdp").between(3, 6).all()
    assert large.filter(like="gdp").between(1, 1.2).all()
    assert large["hsic"] > 2
    last = (rows["measure"] == "hsic, variance") & (rows["n"] == 100_000)
    assert set(rows.loc[~last, "draws"]) == {400}
    assert set(rows.loc[last, "draws"]) == {60}
    assert tuple(found.index[-1]) == ("hsic, variance", 100_000)  # "the last row below"


def test_the_variance_makes_the_bound_of_hsic_smaller_but_for_small_samples_of_the_gaussian_pair() -> (
    None
):
    bounds = stored_rows("bound_coverage").pivot_table(
        index=["law", "n"], columns="measure", values="bound"
    )
    smaller = (bounds["hsic, variance"] < bounds["hsic"])[bounds["hsic"].notna()].unstack("n")
    assert smaller.shape == (7, 4)
    assert smaller[[1000, 10_000, 100_000]].all(axis=None)
    assert set(smaller.index[~smaller[100]]) == {"Gaussian pair, 0", "Gaussian pair, 0.5"}


def test_the_note_for_the_authors_has_these_numbers(held) -> None:
    text = book_folder("for_the_authors.md").read_text(encoding="utf-8")
    both, one = math.log(2 / 0.05), math.log(1 / 0.05)

    def informative(root: float, linear: float) -> int:
        return next(n for n in range(12, 10**6) if root * math.sqrt(both / n) + linear / n < 0.25)

    terms = {
        "printed": (8 * math.sqrt(2), 4),
        "proved": (2 * math.sqrt(2), 2),
        "with A": (math.sqrt(3), 2),
    }
    sizes = [
        f"{root * math.sqrt(both / 1e4) + linear / 1e4:.4f}".lstrip("0")
        for root, linear in terms.values()
    ]
    first = [f"{informative(*term):,}" for term in terms.values()]
    assert f"| {' | '.join(sizes)} |" in text
    assert f"| {' | '.join(first)} |" in text
    assert f"{3 * one / 1e4:.4f}".lstrip("0") in text
    assert f"slack is {math.sqrt(2 * one / 1e4):.4f}".replace("0.", ".") in text
    ratio = held["bound"] / held["estimate"]
    assert f"between {ratio.min():.1f} and {ratio.max():.1f} times" in text


def test_the_second_moment_makes_the_bound_smaller_in_every_population() -> None:
    """The bound of the theorem, from the mean estimate; at its largest value, 1/2, both agree."""
    rows = stored_rows("bound_coverage").query("measure == 'gdp'")
    n = rows["n"]
    simple = n / (n - 1) * rows["estimate"] + np.sqrt(2 * math.log(20) / n)
    ratio = rows["bound"] / simple.clip(upper=0.5)
    assert ratio.max() <= 1.0001
    assert ratio[n >= 1000].max() < 0.999


def test_what_looking_costs_and_how_near_the_limit_is() -> None:
    """Twice: the price of all looks, and the distance from the limit at a thousand and a million people."""
    half = 10_000
    price = float(always_slack(0.5, 0.5, half, 0.05, rows=half)) * math.sqrt(half)
    assert 1.1 < price / slacks(half, 0.25)["now"] < 1.25
    middle = 0.6745 / 2
    for n, ratio in ((1000, 1.6), (10**6, 1.4)):
        found = (middle + slacks(n, 0.25)["now"]) / (least_median(n) * math.sqrt(n))
        assert round(found, 1) == ratio
    saved = 1 - least_median(half) * math.sqrt(half) / (middle + slacks(half, 0.25)["now"])
    assert 0.29 < saved < 0.35


def test_the_bootstrap_misses_in_three_cases_of_five() -> None:
    assert round(0.99**50, 2) == 0.61
    assert middle_of_bootstrap() > least_median(10**6) * 1e3


def middle_of_bootstrap() -> float:
    """Return √n times the upper end of the bootstrap at the median of GDP_n, two fair coins."""
    return 0.6745 / 2 + 1.645 / 2


def test_at_the_worst_corners_every_bound_keeps_its_promise() -> None:
    """No coverage is below 1 − δ beyond the error of 10,000 samples, and repeated looks break what holds once."""
    once, paths = stored_rows("promises"), stored_rows("promises_in_time")
    assert set(once["law"]) == set(LAWS) == set(paths["law"])
    assert set(once["draws"]) == {10_000}
    many = paths["law"].str.startswith("200")
    assert set(paths.loc[~many, "draws"]) == {10_000}
    assert set(paths.loc[many, "draws"]) == {1000}
    found = coverage_table(once)
    assert found["broken"].sum() == 0
    assert len(found) == 21
    in_time = coverage_table(paths).set_index(["bound", "delta"])
    kept = in_time[[name.endswith("all sizes") for name, _ in in_time.index]]
    assert len(kept) == 9
    assert (kept["broken"] == 0).all()
    coverage = in_time["coverage"]
    for delta in (0.01, 0.05, 0.2):
        alone = 1 - coverage["gdp, every look as if alone", delta]
        assert 3 <= alone / (1 - coverage["gdp, all sizes", delta]) < 5
        assert alone < delta
