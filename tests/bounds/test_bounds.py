"""The bounds of GDP and HSIC: the formulas recomputed by loops, coverage on exact laws, and worst cases of one row."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.bounds import gdp_bound, hsic_bound
from frhsic_core.bounds.hsic import pair_variance
from frhsic_core.joint._factors import thin_pair
from frhsic_core.kernels import Categorical, Gaussian, Linear, Product
from frhsic_core.laws import FiniteLaw, GaussianPair


def sampled_gdp(f: np.ndarray, groups: np.ndarray) -> float:
    return sum(
        np.mean(groups == g) * abs(f[groups == g].mean() - f.mean()) for g in set(groups.tolist())
    )


def by_hand(f: np.ndarray, groups: np.ndarray, delta: float) -> float:
    """Both bounds at δ/2, term by term as in the proofs."""
    n, value = len(f), sampled_gdp(f, groups)
    difference = n / (n - 1) * value + math.sqrt(2 * math.log(2 / delta) / n)
    one, two, three, four = (share * delta / 2 for share in (0.7, 0.1, 0.1, 0.1))
    variance = sum((x - f.mean()) ** 2 for x in f) / (n - 1)
    deviation = math.sqrt(variance) + math.sqrt(2 * math.log(1 / two) / (n - 1))
    mean_of_scores = math.sqrt(math.log(2 / three) / (2 * n))
    mean_of_signs = 2 * math.sqrt(math.log(2 / four) / (2 * n))
    bernstein = (
        math.sqrt(2 * min(1, 4 * deviation**2) * math.log(1 / one) / n)
        + 2 / 3 * math.log(1 / one) / n
    )
    return min(difference, value + bernstein + mean_of_scores * mean_of_signs, 0.5)


@pytest.mark.parametrize(("n", "spread"), [(60, 0.1), (300, 1.0), (5000, 0.2), (5000, 1.0)])
def test_the_bound_is_the_formula(n: int, spread: float) -> None:
    rng = np.random.default_rng(n)
    f = 0.5 + spread * (rng.uniform(size=n) - 0.5)
    s = rng.integers(0, 7, n)
    for delta in (0.05, 0.001):
        found = gdp_bound(f, sensitive_features=s, delta=delta)
        assert found.estimate == pytest.approx(sampled_gdp(f, s), rel=1e-12)
        assert found.bound == pytest.approx(by_hand(f, s, delta), rel=1e-12)


def test_each_method_is_the_smaller_one_somewhere() -> None:
    rng = np.random.default_rng(0)
    s = rng.integers(0, 3, 4000)
    assert gdp_bound(0.5 + 0.1 * rng.uniform(size=4000), sensitive_features=s).method == "variance"
    assert gdp_bound(rng.integers(0, 2, 4000), sensitive_features=s).method == "difference"


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


def test_candidates_cost_the_logarithm_of_their_number() -> None:
    rng = np.random.default_rng(4)
    f, s = rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    one, many = (gdp_bound(f, sensitive_features=s, candidates=k) for k in (1, 100))
    assert one.method == many.method == "difference"
    expected = math.sqrt(2 * math.log(200 / 0.05) / 500) - math.sqrt(2 * math.log(2 / 0.05) / 500)
    assert many.bound - one.bound == pytest.approx(expected)


def test_rows_needed_are_enough() -> None:
    """Repeat the rows: the estimate stays, and the bound at the promised number is below the threshold."""
    f, s = np.tile([0.2, 0.4, 0.9], 200), np.repeat([0, 1, 2], 200)
    found = gdp_bound(f, sensitive_features=s)
    times = -(-found.rows_needed(0.02) // 600)
    more = gdp_bound(np.tile(f, times), sensitive_features=np.tile(s, times))
    assert more.estimate == pytest.approx(found.estimate)
    assert found.bound > 0.02 >= more.bound
    assert found.rows_needed(0.0) is None


def test_rows_needed_for_hsic_follow_from_the_roots() -> None:
    """√HSIC_n stays and the slack falls like 1/√n, so n(slack/(√threshold − √HSIC_n))² rows are enough."""
    z, s = GaussianPair(0.5).sample(400, random_state=3)
    found = hsic_bound(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    left = math.sqrt(0.03) - math.sqrt(found.estimate)
    assert found.rows_needed(0.03) == math.ceil(400 * (found.slack / left) ** 2)
    assert found.rows_needed(found.estimate) is None
    assert found.rows_needed(-1.0) is None


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
        ({"sensitive_features": [1, np.nan]}, ValueError, "missing values"),
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
