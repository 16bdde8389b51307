"""Guards the checked sentences of the chapter on how much data HSIC needs."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from frhsic_core import hsic_bound
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.experiments import convergence
from frhsic_core.paper.statements.concentration import proved_bound, uniform_bound
from frhsic_core.paper.statements.rates import KERNEL, LAW, rmse_slope
from frhsic_core.paper.stored import stored_rows

PRINTED = {"hsic": -0.46, "eipm": -0.44}
LARGEST = 20_000


@pytest.fixture(scope="module")
def studies() -> pd.DataFrame:
    rows = stored_rows("convergence")
    return rows[rows["part"] == "printed"]


@pytest.fixture(scope="module")
def exact() -> pd.DataFrame:
    rows = stored_rows("convergence")
    return rows[rows["part"] == "exact"]


@pytest.mark.parametrize(("name", "slope"), [*PRINTED.items(), ("eipm", -0.5), ("eipm", -0.4)])
def test_the_printed_slopes_and_others_are_ordinary_results_of_such_a_study(
    studies, name: str, slope: float
) -> None:
    low, high = studies[f"slope_{name}"].quantile([0.025, 0.975])
    assert low < slope < high


def test_the_largest_size_is_that_of_the_papers_proxy(exact) -> None:
    assert exact["n"].max() == convergence.PROXY_N == LARGEST


def test_eipm_at_the_papers_bandwidth_converges_to_half_of_the_truth(exact) -> None:
    """The certificates of Corollary 5.3 have the rates off the null, of HSIC and of EIPM at each bandwidth."""
    means = exact.groupby("n")["eipm_1"].mean() / LAW.expected_mmd(KERNEL)
    assert means[LARGEST] == pytest.approx(0.5, abs=0.02)


@pytest.fixture(scope="module")
def rules() -> pd.DataFrame:
    rows = stored_rows("convergence")
    return rows[rows["part"] == "bandwidth"]


@pytest.mark.parametrize(("name", "rate"), [("eipm_n", -0.4), ("eipm_third", -1 / 3)])
def test_at_independence_the_faster_rule_is_the_slower_one(
    rules: pd.DataFrame, name: str, rate: float
) -> None:
    null = rules[rules["rho"] == 0.0].pivot(index="n", columns="replicate", values=name)
    slope, _ = rmse_slope(null.index.to_numpy(float), null.to_numpy())
    assert slope == pytest.approx(rate, abs=0.05)


def test_the_sizes_from_which_a_bound_says_something() -> None:
    for bound, n in ((uniform_bound, 7_587), (proved_bound, 193)):
        assert bound(n, complexity=0.0) < 1 / 4 <= bound(n - 1, complexity=0.0)
    for bound, sizes in (
        (uniform_bound, (6_250_000, 6_150_000)),
        (proved_bound, (1_100_000, 1_000_000)),
    ):
        low, high = (bound(n, complexity=math.sqrt(50 / n)) for n in sizes)
        assert low < 1 / 4 < high


def test_the_solved_exercise_on_two_hundred_encoders(printed) -> None:
    chosen, fixed = ((0.01 + math.sqrt(3 * math.log(k / 0.05) / 10_000)) ** 2 for k in (200, 1))
    for bound in (chosen, fixed):
        assert f"HSIC is at most about ${bound:.4f}$".replace("0.", ".") in printed.text(
            "uniform_concentration"
        )


def test_at_independence_ten_thousand_people_give_a_bound_near_a_thousandth() -> None:
    """With the variance it is less than half; with a hundred people the variance helps little."""
    for n, simple, variance in ((10_000, 0.0011, 0.0004), (100, 0.1109, 0.1033)):
        rows = GaussianPair(0.0).sample(n, random_state=7)
        found = [
            hsic_bound(*rows, kernel_z=KERNEL, kernel_s=KERNEL, method=name).bound
            for name in ("difference", "variance")
        ]
        assert [round(bound, 4) for bound in found] == [simple, variance]


def test_the_chosen_one_of_two_hundred_equal_encoders_looks_better_than_it_is() -> None:
    """The construction of the first figure: every encoder has correlation .6 with S, and so the same HSIC."""
    law, rng = GaussianPair(0.6), np.random.default_rng(0)
    x = rng.standard_normal((200_000, 21))
    s = 0.6 * math.sqrt(2) * x[:, 0] + math.sqrt(1 - 0.72) * rng.standard_normal(200_000)
    v = rng.standard_normal(20)
    z = (x[:, 0] + x[:, 1:] @ (v / np.linalg.norm(v))) / math.sqrt(2)
    assert np.corrcoef(z, s)[0, 1] == pytest.approx(0.6, abs=0.01)
    assert z.var() == pytest.approx(1.0, abs=0.02)
    assert law.hsic(KERNEL, KERNEL) == pytest.approx(0.0166, abs=1e-4)


def test_the_lucky_encoder_shows_half_of_the_truth(printed) -> None:
    """The opening names the truth, the smallest and the largest HSIC of the figure's 200 encoders."""
    source = printed.text("uniform_concentration")
    cell = source.partition("name: fig-chosen-encoder")[2].partition("---\n")[2]
    drawn: dict[str, object] = {}
    exec(cell.partition("figure, axis")[0], drawn)
    once = np.asarray(drawn["once"])
    opening = source.partition("% opening")[2].partition("% end of opening")[0]
    named = [float(number) for number in re.findall(r"\$(\.\d+)\$", opening)]
    assert named == pytest.approx([drawn["truth"], once.min(), once.max()], abs=5e-4)
    assert 0.45 < once.min() / float(drawn["truth"]) < 0.6
