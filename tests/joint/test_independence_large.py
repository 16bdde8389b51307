"""Tests of large samples: bins instead of rows, features instead of kernels, streamed sums, memory, and clusters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

from frhsic_core._arrays import as_draws
from frhsic_core.joint import hsic, hsic_test
from frhsic_core.joint.contraction import center
from frhsic_core.joint.engines import dense, streamed
from frhsic_core.joint.independence import fits, permutation
from frhsic_core.joint.independence.permutation import (
    JointFeatures,
    bin_statistics,
    bins_of,
    cells,
    random_orders,
)
from frhsic_core.kernels import Categorical, Distance, Gaussian, Linear, median_bandwidth

SIZES: list[int] = []
LARGE = ["gamma", "spectral", "permutation", "aggregated"]


def sample(seed: int, n: int, d: int = 1, slope: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    s = torch.randn(n, 1, generator=g, dtype=torch.float64)
    return torch.randn(n, d, generator=g, dtype=torch.float64) + slope * s, s


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat 60 rows as many, and hold few entries at a time."""
    monkeypatch.setattr(fits, "DENSE_ROWS", 50)
    monkeypatch.setattr(fits, "_ENTRIES", 700)
    monkeypatch.setattr(dense, "DENSE_ROWS", 50)
    monkeypatch.setattr(streamed, "CHUNK", 50)
    monkeypatch.setattr(permutation, "SMALL_ROWS", 50)
    monkeypatch.setattr(permutation, "CELLS", 50)
    monkeypatch.setattr(permutation, "BASE_ROWS", 40)
    monkeypatch.setattr(permutation, "_FEATURE_ROWS", 30)


@dataclass(frozen=True)
class Recorded:
    """A Gaussian kernel that records the size of every matrix that it makes."""

    bandwidth: float

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        gram = Gaussian(self.bandwidth)(x, y)
        SIZES.append(gram.numel())
        return gram


# Features ------------------------------------------------------------------------------------------------------------


def test_cells_hold_equal_numbers_of_rows_and_equal_values_stay_together() -> None:
    x, _ = sample(1, 6000)
    x[:500] = 0.25
    base, index = cells(x)
    assert len(base) <= permutation.CELLS
    assert (base.diff(dim=0) > 0).all()
    counts = torch.bincount(index)
    assert counts.max() >= 500 > 3 * 6000 / permutation.CELLS >= counts.topk(2).values[1]
    assert len(index[:500].unique()) == 1
    for cell in (0, 17, len(base) - 1):
        assert base[cell].item() == pytest.approx(x[index == cell].mean().item(), rel=1e-12)
    moved = torch.randperm(6000, generator=torch.Generator().manual_seed(0))
    again, other = cells(x[moved])
    torch.testing.assert_close(again, base)
    assert torch.equal(other, index[moved])


def test_few_values_are_their_own_cells_and_two_columns_have_none() -> None:
    x = (torch.arange(3000) % 70).double().unsqueeze(-1)
    constant = torch.full_like(x, 4.0)
    base, index = cells(torch.cat([constant, x], 1))
    assert torch.equal(base[index], torch.cat([constant, x], 1))
    assert cells(torch.cat([x, x * x % 7], 1)) is None
    assert cells(constant)[0].shape == (1, 1)


FEATURES = {
    "a column": (lambda x: x[:, :1], [Gaussian(2.0), Gaussian(0.4)], 1e-3),
    "ages": (lambda x: (9 * x[:, :1]).round(), [Gaussian(9.0), Gaussian(2.0)], 1e-3),
    "categories": (lambda x: x[:, :1].round(), [Categorical(), Categorical()], 1e-9),
    "very wide": (lambda x: x[:, :1], [Gaussian(1e4), Gaussian(2e3)], 1e-3),
    "two columns": (lambda x: x[:, :2], [Gaussian(3.0), Gaussian(1.5)], 2e-2),
    "linear": (lambda x: x[:, :3], [Linear(), Linear()], 1e-9),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_give_the_centered_gram_matrices(name: str) -> None:
    """The largest error of an entry, against the largest entry, after the values are put into cells."""
    change, kernels, error = FEATURES[name]
    x = change(sample(2, 1500, 3)[0])
    found = JointFeatures(kernels, x)
    if (own := cells(x)) is not None:
        assert (own[0][own[1]] - x).abs().mean() <= 0.01 * x.std()
        x = own[0][own[1]]
    every = torch.arange(len(x))
    joint = found(every)
    for w, kernel in enumerate(kernels):
        gram = kernel(x)
        gram = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
        values = found(every, w)
        torch.testing.assert_close(
            values, joint @ found.maps[w], rtol=1e-6, atol=1e-7 * float(values.abs().max())
        )
        values = values - values.mean(0)
        assert ((values @ values.mT - gram).abs().max() / gram.abs().max()).item() < error
    assert not found.constant.any()


# Bins ----------------------------------------------------------------------------------------------------------------


def whole_order(
    n: int, sets: list[torch.Tensor], orders: list[torch.Tensor], b: int
) -> torch.Tensor:
    order = torch.arange(n)
    for rows, moved in zip(sets, orders, strict=True):
        order[rows.flatten()] = rows[moved[b]].flatten()
    return order


@pytest.mark.parametrize("few_rows", [True, False])
@pytest.mark.parametrize("kind", ["rows", "clusters", "groups"])
def test_permuted_bins_are_a_loop_over_hsic(
    kind: str, few_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permutation, "_FEATURE_ROWS", 20)
    monkeypatch.setattr(
        permutation, "BINS", 32 if few_rows else 0
    )  # features of each window, or a common basis
    n = 83
    z, s = sample(1, n, 2, 0.3)
    labels = torch.cat(
        [
            torch.arange(20).repeat_interleave(3),
            20 + torch.arange(11).repeat_interleave(2),
            torch.ones(1) * 99,
        ]
    )
    groups = (
        [torch.arange(n)] if kind != "groups" else [torch.arange(0, n, 2), torch.arange(1, n, 2)]
    )
    strata = permutation.group_strata(
        groups, n, labels.numpy() if kind == "clusters" else None, like=z
    )
    factors = (1.0, 0.5)
    draws = as_draws(3, like=z)
    sets = bins_of(n, draws, strata, bins=5)
    orders = [random_orders(6, len(rows), draws, like=z) for rows in sets]
    sides = [
        JointFeatures([Gaussian(factor * sigma) for factor in factors], x, share=1e-13)
        for x, sigma in ((z, 1.0), (s, 0.7))
    ]
    by_value, pooled, constant = bin_statistics(*sides, groups, sets, orders)
    assert not constant.any()
    for b, (w, factor) in itertools.product(range(7), enumerate(factors)):
        order = whole_order(n, sets, orders, b)
        assert order.sort().values.equal(torch.arange(n))
        if (
            kind == "clusters"
        ):  # a cluster arrives whole: its rows come from one cluster of its size
            assert all(
                len(set(labels[order[labels == label]].tolist())) == 1 for label in labels.unique()
            )
        kernels = {"kernel_z": Gaussian(factor), "kernel_s": Gaussian(0.7 * factor)}
        moved = s[order]
        value = sum(len(rows) * hsic(z[rows], moved[rows], **kernels).item() for rows in groups)
        assert by_value[b, w].item() == pytest.approx(value, rel=1e-9)
        if kind != "groups":
            assert pooled[b, w].item() == pytest.approx(value, rel=1e-9)
        else:
            member = torch.eye(2, dtype=torch.float64)[torch.arange(n) % 2]
            center = torch.eye(n, dtype=torch.float64) - member @ (member / member.sum(0)).mT
            k, l = (
                center @ Gaussian(factor)(z) @ center,
                center @ Gaussian(0.7 * factor)(moved) @ center,
            )
            assert pooled[b, w].item() == pytest.approx((k * l).sum().item() / n, rel=1e-9)
    assert (whole_order(n, sets, orders, 0) == torch.arange(n)).all()
    assert any(
        (whole_order(n, sets, orders, b) != torch.arange(n)).double().mean() > 0.4
        for b in range(1, 7)
    )


def test_bins_are_random_and_nearly_all_rows_move() -> None:
    rows = [torch.arange(5003).unsqueeze(-1)]
    one = bins_of(5003, as_draws(0, like=rows[0]), rows)
    assert [tuple(part.shape) for part in one] == [(32, 156)]
    sets = bins_of(5003, as_draws(0, like=rows[0]), rows, bins=8)
    assert [tuple(part.shape) for part in sets] == [(8, 156)] * 4
    assert len(torch.cat([part.flatten() for part in sets]).unique()) == 4 * 8 * 156
    assert (sets[0][0].diff() < 0).any()


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", ["gamma", "spectral"])
@pytest.mark.parametrize("d", [1, 8])
def test_fits_are_those_of_whole_matrices(method: str, d: int) -> None:
    z, s = sample(4, 120, d, 0.2)
    streamed = hsic_test(z, s, method=method)
    # The shape of the spectral fit is that of 25 rows here; everything else is that of all rows.
    few = torch.linspace(0, 119, 25).round().long()
    kernels = [Gaussian(median_bandwidth(x)) for x in (z, s)]
    k, l = (center(kernel(x)) for kernel, x in zip(kernels, (z, s), strict=True))
    shapes = [
        fits.cubic_shape(center(kernel(x[few]))) for kernel, x in zip(kernels, (z, s), strict=True)
    ]
    grams = torch.stack([k, l])
    diagonals = grams.diagonal(dim1=-2, dim2=-1)
    sums = (
        diagonals.sum(-1),
        grams.square().sum((-2, -1)),
        diagonals.square().sum(-1),
        torch.stack(shapes),
    )
    squares = (k * l).square()
    whole = fits.PairSums(
        grams.amax((-2, -1)), *sums, (k * l).sum(), squares.sum() - squares.trace()
    )
    statistic = whole.product / 120
    pvalue, threshold = fits.fitted_gamma(statistic, *whole.fitted(method, 120.0), 0.05)
    assert streamed.statistic.item() == pytest.approx(statistic.item(), rel=1e-10)
    assert streamed.threshold.item() == pytest.approx(threshold.item(), rel=1e-9)
    assert streamed.pvalue.item() == pytest.approx(pvalue.item(), rel=1e-8)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", LARGE)
def test_no_matrix_of_all_pairs_is_ever_made(method: str) -> None:
    z, s = sample(6, 200, 2, 0.5)
    SIZES.clear()
    result = hsic_test(
        z, s, method=method, kernel_z=Recorded(1.0), kernel_s=Recorded(1.0), n_permutations=19
    )
    exact = hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)).item()
    assert result.hsic.item() == pytest.approx(exact, rel=1e-9)
    assert bool(result.reject)
    assert max(SIZES) <= 50 * 50


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", LARGE)
def test_large_samples_with_constants_and_batches(method: str) -> None:
    z, s = sample(7, 60, 2, 0.5)
    constant = torch.full_like(s, 0.3)
    for kernel in (None, Linear()):
        result = hsic_test(z, constant, method=method, kernel_s=kernel, n_permutations=19)
        assert (result.statistic.item(), result.pvalue.item(), result.threshold.item()) == (
            0.0,
            1.0,
            0.0,
        )
    stack = hsic_test(torch.stack([z, 2 * z]), s, method=method, n_permutations=19)
    assert stack.pvalue.shape == stack.statistic.shape == (2,)
    assert stack.hsic[0].item() == pytest.approx(stack.hsic[1].item(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # minutes on a busy machine
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("method", ["permutation", "aggregated"])
def test_permuted_bins_keep_the_level(
    method: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted rows, so that bins which are not random would be far from exchangeable."""
    monkeypatch.setattr(permutation, "_FEATURE_ROWS", 1000)
    monkeypatch.setattr(permutation, "BINS", 16)
    draws = 600
    g = torch.Generator().manual_seed(8)
    z, s = (
        torch.randn(2, draws, 51, columns, generator=g, dtype=torch.float64)
        .sort(-2)
        .values.unbind()
    )
    order = random_orders(draws, 51, as_draws(g, like=s), like=s)[1:].unsqueeze(-1)
    s = s.gather(1, order.expand(-1, -1, columns))
    rejected = int(hsic_test(z, s, method=method, n_permutations=19, random_state=g).reject.sum())
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= rejected <= high


@pytest.mark.parametrize("columns", [1, 2])
def test_the_kernel_on_s_is_the_same_for_each_permutation(columns: int) -> None:
    """Otherwise a permuted S would have another bandwidth or other landmarks, and the level would be approximate."""
    n = 1100
    s = sample(9, n, 2)[0][:, :columns]
    chosen, other = permutation.group_strata([torch.arange(n)], n, None, like=s)
    assert (len(chosen), len(other)) == (1000, 100)
    sets = bins_of(n, as_draws(1, like=s), [chosen, other])
    orders = [random_orders(3, len(rows), as_draws(2, like=s), like=s) for rows in sets]
    order = whole_order(n, sets, orders, 1)
    moved = s[order]
    assert not torch.equal(moved, s)
    sigma = median_bandwidth(s).item()
    assert median_bandwidth(moved).item() == sigma
    first, second = (partial(JointFeatures([Gaussian(sigma)], x), kernel=0) for x in (s, moved))
    grams = [found @ found.mT for found in (first(order), second(torch.arange(n)))]
    torch.testing.assert_close(*grams, rtol=0, atol=1e-6)


KINDS = {
    "numbers": lambda s: (s, None),
    "ages": lambda s: ((20 * s).round(), None),
    "two values": lambda s: ((s > 0).double(), None),
    "categories": lambda s: (s.round(), Categorical()),
    "heavy tails": lambda s: (s.sinh().sinh(), None),
    "two columns": lambda s: (torch.cat([s, s.flip(0)], 1), None),
    "distances": lambda s: (
        torch.cat([s, s.flip(0)], 1),
        Distance(),
    ),  # 512 landmarks leave out up to 3 %
}


@pytest.mark.parametrize(
    "name", [*list(KINDS)[:-1], pytest.param("distances", marks=pytest.mark.slow)]
)
def test_bins_and_features_give_the_pvalue_of_rows_and_kernels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two draws of 999 permutations of one statistic: p-values differ by chance alone.

    The critical value also depends on which rows share a bin.
    """
    z, s = sample(13, 1300, 1, 0.03)
    s, kernel_s = KINDS[name](s)
    options = {
        "method": "permutation",
        "kernel_s": kernel_s,
        "n_permutations": 999,
        "random_state": 3,
    }
    many = hsic_test(z, s, **options)
    with (
        monkeypatch.context() as few
    ):  # of the aggregated test only HSIC is compared, which is the exact one
        few.setattr(permutation, "LANDMARKS", 64)
        several = hsic_test(z, s, **options | {"method": "aggregated", "n_permutations": 99})
    monkeypatch.setattr(permutation, "SMALL_ROWS", 10**4)
    rows = hsic_test(z, s, **options)
    p = rows.pvalue.item()
    assert many.pvalue.item() == pytest.approx(p, abs=5 * (2 * p * (1 - p) / 999) ** 0.5 + 0.002)
    assert many.statistic.item() == pytest.approx(
        rows.statistic.item(), rel=0.03 if name == "distances" else 0.01
    )
    # Two relative standard errors for the kind with the widest null distribution, two values (a gamma of shape 0.86).
    # The 0.95 quantile q of 999 draws has the error sqrt(0.05 * 0.95 / 999) / (q f(q)) = 4.6 %, two quantiles 6.5 %.
    # Which rows share a bin adds at most 8.9 %, that of a chi-squared variable: with 32 bins of 31 rows the variance
    # over the orders has the relative variance 2 (2 * 32 + 31) / (31 * 32**2), and the squared mean has 2 / 32**2.
    assert many.threshold.item() == pytest.approx(rows.threshold.item(), rel=0.22)
    exact = hsic(z, s, kernel_s=kernel_s).item()
    assert [found.hsic.item() for found in (many, several)] == pytest.approx(
        [exact, exact], rel=1e-9
    )


@pytest.mark.parametrize("given", [None, "group"])
def test_the_exact_hsic_beyond_the_limit_of_all_pairs(
    given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thin matrices still give the exact value; other samples keep that of their features."""
    monkeypatch.setattr(permutation, "EXACT_ROWS", 600)
    n = 1600
    z, s = sample(15, n, 12, 0.3)
    groups = [torch.arange(n)] if given is None else [torch.arange(g, n, 2) for g in range(2)]
    kernels = {"kernel_z": Gaussian(2.0), "kernel_s": Gaussian(1.0)}
    errors = []
    for x in (z[:, :1], z):
        labels = None if given is None else torch.arange(n) % 2
        found = hsic_test(x, s, given=labels, method="permutation", n_permutations=1, **kernels)
        exact = sum(len(rows) / n * hsic(x[rows], s[rows], **kernels).item() for rows in groups)
        errors.append(abs(found.hsic.item() / exact - 1.0))
    assert errors[0] < 1e-9 < 1e-4 < errors[1] < 1.0


# Clusters ------------------------------------------------------------------------------------------------------------


def test_clusters_move_whole_among_clusters_of_their_size() -> None:
    labels = np.array(list("abacbdefeg"))  # a, b and e have two rows; c, d, f and g one
    like = torch.zeros(10)
    strata = permutation.group_strata([torch.arange(10)], 10, labels, like=like)
    assert sorted(tuple(rows.shape) for rows in strata) == [(3, 2), (4, 1)]
    pairs = {(0, 2), (1, 4), (6, 8)}
    orders = random_orders(200, 10, as_draws(0, like=like), strata, like=like)
    for order in orders:
        assert {(int(order[a]), int(order[b])) for a, b in pairs} == pairs
    assert len({tuple(order.tolist()) for order in orders}) > 70  # of 3!·4! = 144


@pytest.mark.slow
@pytest.mark.parametrize("method", ["permutation", "aggregated"])
def test_clusters_keep_the_level_where_single_rows_do_not(method: str) -> None:
    """Four records of each person: Z and S are independent, but each repeats within a person."""
    draws = 200
    g = torch.Generator().manual_seed(11)
    person_z, person_s = torch.randn(2, draws, 10, 1, 1, generator=g, dtype=torch.float64)
    noise = 0.3 * torch.randn(2, draws, 10, 4, 1, generator=g, dtype=torch.float64)
    z, s = (person_z + noise[0]).flatten(1, 2), (person_s + noise[1]).flatten(1, 2)
    people = torch.arange(10).repeat_interleave(4)
    options = {"method": method, "n_permutations": 19}
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= int(hsic_test(z, s, clusters=people, **options).reject.sum()) <= high
    assert int(hsic_test(z, s, **options).reject.sum()) > 3 * high


@pytest.mark.usefixtures("small_limits")
def test_clusters_of_a_large_sample() -> None:
    """Rows of one cluster may be among those that give the bandwidths or not: the cluster moves as a whole."""
    z, s = sample(16, 60, 1, 0.9)
    result = hsic_test(
        z, s, method="permutation", clusters=torch.arange(60) // 2, n_permutations=99
    )
    assert result.hsic.item() == pytest.approx(hsic(z, s).item(), rel=1e-9)
    assert bool(result.reject)
