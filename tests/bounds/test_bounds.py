"""The bounds of GDP and HSIC: the formulas recomputed by loops, coverage on exact laws, and worst cases of one row."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.bounds import DependenceBound, eipm_bound, gdp_bound, hsic_bound
from frhsic_core.bounds.hsic import pair_variance
from frhsic_core.bounds.result import rounded_down, rounded_up
from frhsic_core.joint.factors import thin_pair
from frhsic_core.kernels import Categorical, Gaussian, Linear, Product
from frhsic_core.laws import FiniteLaw, GaussianPair


def sampled_gdp(f: np.ndarray, groups: np.ndarray) -> float:
    return sum(
        np.mean(groups == g) * abs(f[groups == g].mean() - f.mean()) for g in set(groups.tolist())
    )


def worst_moment(variance: float, square: float) -> float:
    """Return the largest second moment of the product with a sign, by a search over P(ε = 1)."""
    p = np.linspace(0.0, 0.5, 200_001)
    part = np.minimum(variance, p * square)
    return float((4 * ((1 - p) ** 2 * part + p**2 * (variance - part))).max())


def by_hand(f: np.ndarray, groups: np.ndarray, delta: float) -> tuple[float, str]:
    """Return the bound term by term as in the proof, and which of the two it is."""
    n, value, mean = len(f), sampled_gdp(f, groups), sum(f) / len(f)
    one, two, three, four = (share * delta for share in (0.8, 0.06, 0.07, 0.07))
    mean_of_scores = math.sqrt(math.log(2 / three) / (2 * n))
    mean_of_signs = 2 * math.sqrt(math.log(2 / four) / (2 * n))
    small = mean_of_scores * mean_of_signs
    level = math.log(1 / one)
    largest = 2 * (5 * math.sqrt(5) - 11)
    difference = math.sqrt(2 * math.log(1 / delta) / n)
    if math.sqrt(2 * largest * level / n) + 2 * level / (3 * n) + small >= difference:
        return min(n / (n - 1) * value + difference, 0.5), "difference"
    square = min(1, max(mean, 1 - mean) + mean_of_scores) ** 2
    part = square * math.log(1 / two) / (2 * n)
    sampled = sum((x - mean) ** 2 for x in f) / n
    deviation = math.sqrt(part) + math.sqrt(sampled + mean_of_scores**2 + part)
    moment = worst_moment(min(deviation**2, square, 0.25), square)
    bernstein = math.sqrt(2 * min(moment, largest) * level / n)
    bernstein += 2 * math.sqrt(square) * level / (3 * n)
    return min(value + bernstein + small, 0.5), "variance"


@pytest.mark.parametrize(("n", "spread"), [(60, 0.1), (300, 1.0), (5000, 0.2), (5000, 1.0)])
def test_the_bound_is_the_formula(n: int, spread: float) -> None:
    rng = np.random.default_rng(n)
    f = 0.5 + spread * (rng.uniform(size=n) - 0.5)
    s = rng.integers(0, 7, n)
    for delta in (0.05, 0.001):
        found = gdp_bound(f, sensitive_features=s, delta=delta)
        assert found.estimate == pytest.approx(sampled_gdp(f, s), rel=1e-12)
        expected, method = by_hand(f, s, delta)
        assert found.method == method
        # The grid of shares misses a kink by at most one step, 2.5e-6, and slopes are below 4.
        assert found.bound == pytest.approx(expected, rel=1e-5)


def test_the_choice_of_the_method_does_not_look_at_the_scores() -> None:
    """If it did, it would cost a part of δ. With few rows it is McDiarmid's, with many Bernstein's."""
    rng = np.random.default_rng(0)
    chosen = {}
    for n in (60, 4000):
        s = rng.integers(0, 3, n)
        narrow = gdp_bound(0.5 + 0.01 * rng.uniform(size=n), sensitive_features=s)
        wide = gdp_bound(rng.integers(0, 2, n), sensitive_features=s)
        assert narrow.method == wide.method
        chosen[n] = wide.method
    assert chosen == {60: "difference", 4000: "variance"}


@pytest.mark.parametrize("groups", [2, 20, 1000])
@pytest.mark.parametrize("n", [100, 1000])
def test_the_bound_covers_gdp(n: int, groups: int) -> None:
    """Beta scores whose mean depends on the group; GDP is a sum over groups. 300 samples, none of them missed."""
    rng = np.random.default_rng(groups)
    mass = rng.dirichlet(np.ones(groups))
    for effect in (0.0, 0.3):
        mean = 0.4 + effect * rng.uniform(-1, 1, groups)
        truth = float((mass * abs(mean - mass @ mean)).sum())
        missed = 0
        for _ in range(300):
            s = rng.choice(groups, n, p=mass)
            f = rng.beta(20 * mean[s], 20 * (1 - mean[s]))
            missed += gdp_bound(f, sensitive_features=s).bound < truth
        assert missed == 0


def test_the_estimate_alone_would_not_cover() -> None:
    """The coverage above could come out differently: n/(n−1) times the sample's GDP misses often."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(300):
        s = rng.integers(0, 2, 1000)
        f = rng.beta(8 + 4 * s, 8)
        found = gdp_bound(f, sensitive_features=s)
        missed += found.bound - found.slack < abs(12 / 20 - 8 / 16) / 2
    assert missed > 75


def test_bins_with_bounded_variation_cover_gdp_of_a_continuous_attribute() -> None:
    """S is uniform and the mean score is s/2 + 1/4, so GDP is 1/8 and the variation is 1/2."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        s = rng.uniform(size=2000)
        f = rng.beta(10 * (s / 2 + 0.25), 10 * (0.75 - s / 2))
        edges = np.arange(0.05, 0.99, 0.05)
        found = gdp_bound(f, sensitive_features=s, groups=edges, variation=0.5)
        bins = gdp_bound(f, sensitive_features=s, groups=edges)
        assert found.bound >= 1 / 8
        # The largest of 20 masses of 1/20 is estimated from above; the remainder is the other share of δ.
        assert 0.5 * 0.05 * 0.5 < found.bound - bins.bound < 0.5 * 0.08 * 0.5 + 0.01
    assert "total variation" in " ".join(found.assumptions)


def test_an_empty_last_bin_counts_among_the_masses() -> None:
    f = np.linspace(0.1, 0.9, 50)
    found = gdp_bound(f, sensitive_features=np.linspace(0, 1, 50), groups=[0.5, 2.0], variation=1.0)
    assert found.bound <= 0.5


def test_scores_in_other_units_give_the_bound_in_these_units() -> None:
    rng = np.random.default_rng(3)
    f, s = rng.uniform(size=400), rng.integers(0, 5, 400)
    plain = gdp_bound(f, sensitive_features=s)
    scaled = gdp_bound(300 + 550 * f, sensitive_features=s, bounds=(300, 850))
    assert scaled.bound == pytest.approx(550 * plain.bound)
    assert scaled.rows_needed(550 * 0.06) == plain.rows_needed(0.06)


def test_candidates_share_delta() -> None:
    rng = np.random.default_rng(4)
    f, s = rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    many = gdp_bound(f, sensitive_features=s, candidates=100)
    alone = gdp_bound(f, sensitive_features=s, delta=0.05 / 100)
    assert many.bound == alone.bound > gdp_bound(f, sensitive_features=s).bound


def test_rows_needed_are_enough_and_one_less_is_not() -> None:
    """Repeat the rows: the estimate stays, and the bound at the promised number is the threshold."""
    f, s = np.tile([0.2, 0.4, 0.9], 200), np.repeat([0, 1, 2], 200)
    found = gdp_bound(f, sensitive_features=s)
    needed = found.rows_needed(0.02)
    times = -(-needed // 600)
    more = gdp_bound(np.tile(f, times), sensitive_features=np.tile(s, times))
    assert more.estimate == pytest.approx(found.estimate)
    assert found.bound > 0.02 >= more.bound
    assert found.projection.bound(needed) <= 0.02 < found.projection.bound(needed - 1)
    assert found.more_rows(0.02) == needed - 600
    assert found.more_rows(0.4) == 0
    assert found.rows_needed(0.0) is None


def projections() -> dict[str, DependenceBound]:
    """One bound of each kind, for samples of 600 rows."""
    rng = np.random.default_rng(5)
    s = rng.integers(0, 5, 600)
    f = rng.beta(3, 3 + s % 2)
    y, z = rng.integers(0, 2, 600), rng.normal(size=(600, 2))
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    bins = {"groups": [0.5, 2.5], "variation": 0.05}
    return {
        "gdp": gdp_bound(f, sensitive_features=s),
        "gdp, variation": gdp_bound(f, sensitive_features=s, **bins),
        "gdp, anytime": gdp_bound(f, sensitive_features=s, anytime=True),
        "odds": gdp_bound(f, sensitive_features=s, y_true=y, criterion="equalized_odds"),
        "hsic": hsic_bound(z, s, **kernels),
        "hsic, variance": hsic_bound(z, s, method="variance", **kernels),
        "hsic, anytime": hsic_bound(z, s, anytime=True, **kernels),
        "eipm": eipm_bound(z, sensitive_features=s, kernel_z=Gaussian(1.0)),
        "eipm, anytime": eipm_bound(z, sensitive_features=s, kernel_z=Gaussian(1.0), anytime=True),
    }


@pytest.mark.parametrize("name", list(projections()))
def test_a_projected_bound_falls_so_that_a_search_finds_the_rows(name: str) -> None:
    """Every n up to 400, and the neighborhoods of many more: the search assumes this order."""
    found = projections()[name]
    starts = [2**k for k in range(9, 24)]
    numbers = [*range(2, 400), *(n + k for n in starts for k in range(4))]
    bounds = [found.projection.bound(n) for n in numbers]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(bounds))
    assert found.projection.bound(found.n) == pytest.approx(found.bound, rel=1e-12)
    threshold = 0.5 * (found.bound + found.projection.bound(10**9))
    needed = found.rows_needed(threshold)
    assert found.projection.bound(needed) <= threshold < found.projection.bound(needed - 1)


def test_more_rows_help_a_bound_with_variation() -> None:
    """The masses of the bins become known: a threshold below today's remainder can be reached."""
    rng = np.random.default_rng(6)
    s = rng.uniform(size=200)
    f = 0.5 + 0.001 * rng.uniform(size=200)
    edges = np.arange(0.05, 0.99, 0.05)
    found = gdp_bound(f, sensitive_features=s, groups=edges, variation=0.5)
    assert found.floor > 0.04
    assert found.rows_needed(0.04) is not None
    share = np.bincount(np.searchsorted(edges, s), minlength=20).max() / 200
    assert found.rows_needed(found.estimate + 0.25 * share - 1e-9) is None


@pytest.mark.parametrize("n", [50, 400])
def test_the_bound_covers_hsic(n: int) -> None:
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(0.7)}
    for rho in (0.0, 0.6):
        law = GaussianPair(rho)
        truth = float(law.hsic(*kernels.values()))
        z, s = law.sample(n, batch=(100,), random_state=n)
        for a, b in zip(z, s, strict=True):
            found = hsic_bound(a, b, **kernels)
            assert truth <= found.bound
            root = n / (n - 1) * math.sqrt(found.estimate) + math.sqrt(3 * math.log(1 / 0.05) / n)
            assert found.bound == pytest.approx(min(root**2, 0.25))


def test_the_variance_version_of_the_bound_for_hsic() -> None:
    """Compare it with the theorem, pair by pair, and with the truth; candidates share δ."""
    kernel_z, kernel_s, law = Gaussian(1.0), Gaussian(0.7), GaussianPair(0.3)
    z, s = law.sample(61, random_state=5)
    pairs = list(itertools.combinations(range(61), 2))
    gauss = [
        [math.exp(-float((x[i] - x[j]) ** 2) / (2 * b * b)) for i, j in pairs]
        for x, b in ((z, 1.0), (s, 0.7))
    ]
    v = np.mean([(1 - k) * (1 - l) for k, l in zip(*gauss, strict=True)])
    for candidates in (1, 7):
        found = hsic_bound(
            z, s, kernel_z=kernel_z, kernel_s=kernel_s, candidates=candidates, method="variance"
        )
        q = math.log(2 * candidates / 0.05) / 30
        root = 61 / 60 * math.sqrt(found.estimate) + 4 / 3 * q + math.sqrt(2 * v * q + q * q)
        assert found.bound == pytest.approx(min(root**2, 0.25))
        assert found.slack == pytest.approx(root - math.sqrt(found.estimate))
        assert law.hsic(kernel_z, kernel_s) <= found.bound


@pytest.mark.parametrize(
    ("kernel", "columns"), [(Gaussian(0.7), 1), (Categorical(), 1), (Gaussian(2.0), 30)]
)
def test_the_variance_of_pairs_is_their_mean_where_features_are_few_and_where_not(
    kernel, columns: int
) -> None:
    """1,000 rows of one column have thin Gram matrices, and 30 columns have none. The reference is the whole matrix."""
    z = torch.randn(1000, columns, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    s = (z[:, :1] + 0.5).round() if isinstance(kernel, Categorical) else z[:, :1].sin()
    assert (thin_pair(z, s, Gaussian(0.7), kernel) is None) == (columns == 30)
    pairs = (1 - Gaussian(0.7)(z, z)) * (1 - kernel(s, s))
    expected = float(pairs.sum()) / (1000 * 999)
    # Thin Gram matrices have a relative error below 1e-10.
    assert pair_variance(z, s, Gaussian(0.7), kernel) == pytest.approx(expected, rel=1e-10)


def test_the_bound_covers_hsic_of_categories() -> None:
    law = FiniteLaw.random(3, 4, random_state=0)
    z, s = law.sample(300, batch=(50,), random_state=1)
    kernel = Categorical()
    truth = float(law.hsic(kernel, kernel))
    for a, b in zip(z, s, strict=True):
        assert truth <= hsic_bound(a, b, kernel_z=kernel, kernel_s=kernel).bound


def test_a_bound_is_printed_rounded_up() -> None:
    """Zero is no bound that anybody has proved, and .12341 is not at most .1234."""
    rng = np.random.default_rng(9)
    for value in [*rng.uniform(size=300), 0.00004, 0.12341, 0.25, 1.0]:
        assert float(rounded_up(value)) >= value > float(rounded_up(value)) - 1.0001e-4
        assert float(rounded_down(value)) <= value < float(rounded_down(value)) + 1.0001e-4
    z, s = np.repeat([0.0, 1.0], 500_000), np.tile([0.0, 1.0], 500_000)
    found = hsic_bound(z, s, kernel_z=Categorical(), kernel_s=Categorical())
    assert 0.0 < found.bound < 0.00005
    assert "at most 0.0001" in str(found)


HALVES = pd.Series([0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"y_pred": [0.1, 1.2]}, ValueError, "bounds="),
        ({"y_pred": [0.1, np.nan]}, ValueError, "NaN"),
        ({"y_pred": [0.5], "sensitive_features": [1]}, ValueError, "at least 2"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"candidates": 0}, ValueError, "candidates"),
        ({"variation": 1.0}, ValueError, "groups"),
        ({"groups": [1.0], "variation": -1.0}, ValueError, "variation"),
        ({"groups": [2.0, 1.0]}, ValueError, "rising order"),
        ({"bounds": (1.0, 0.0)}, ValueError, "bounds"),
        ({"sensitive_features": [1, 2, 3]}, ValueError, "3 rows"),
        ({"sensitive_features": [1, np.nan]}, ValueError, "1 NaN or infinite values"),
        ({"sensitive_features": ["a", None]}, ValueError, "missing values"),
        ({"sensitive_features": [[1, 2], [3, 4]]}, ValueError, "one column"),
        (
            {"y_pred": HALVES, "sensitive_features": HALVES[::-1]},
            ValueError,
            r"y_pred and sens.*first rows: 0 and 2",
        ),
        ({"groups": 10}, TypeError, "fixed before the rows are seen"),
        ({"sensitive_features": pd.qcut([1, 2], 2)}, TypeError, "inner edges as groups="),
        (
            {"sensitive_features": pd.Series(pd.cut([1.0, 2.0, np.nan, 4.0], 2))},
            TypeError,
            "inner edges as groups=",
        ),
        ({"sample_weight": [1, 1]}, TypeError, "gdp_bound takes no sample_weight: .*counts once"),
        ({"clusters": [1, 1]}, TypeError, "gdp_bound takes no clusters: .*one row of each cluster"),
        (
            {"z": [1, 2], "sample_weight": [1, 1]},
            TypeError,
            "hsic_bound takes no sample_weight: .*counts once",
        ),
        (
            {"z": [1, 2], "clusters": [1, 1]},
            TypeError,
            "hsic_bound takes no clusters: .*one row of each cluster",
        ),
        ({"z": [1, 2], "kernel_z": Linear()}, TypeError, "kernel_z"),
        ({"z": [1, 2], "kernel_z": None}, TypeError, "kernel_z"),
        ({"z": [1, 2], "kernel_z": Product([Linear()])}, TypeError, "kernel_z"),
        ({"z": [1, 2], "method": "both"}, ValueError, "method"),
        ({"z": [1, 2], "delta": 2.0}, ValueError, "delta"),
        ({"z": [1]}, ValueError, "at least 2"),
        ({"z": torch.zeros(2, 4, 1)}, ValueError, "single sample"),
    ],
)
def test_what_is_not_allowed_is_said(options: dict, error: type[Exception], word: str) -> None:
    """GDP of scores, or HSIC where there is a ``z``."""
    if "z" in options:
        given = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0), "s": options["z"]} | options
    else:
        given = {"y_pred": [0.2, 0.4], "sensitive_features": [1, 2]} | options
    with pytest.raises(error, match=word):
        (hsic_bound if "z" in options else gdp_bound)(**given)


def test_words_are_groups_and_frames_and_tensors_are_read() -> None:
    f = [0.2, 0.4, 0.3, 0.9]
    words = gdp_bound(pd.Series(f), sensitive_features=pd.Series(["a", "b", "a", "b"]))
    codes = gdp_bound(
        torch.tensor(f, dtype=torch.float64), sensitive_features=torch.tensor([0, 1, 0, 1])
    )
    assert words.bound == codes.bound == float(words)
    assert str(words).startswith(
        "With 95 % confidence GDP over the 2 values of the attribute is at most 0.5"
    )
