"""Tests of large samples: bins instead of rows, streamed sums, memory, and clusters."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
import torch
from scipy import stats

from frhsic_core.joint import factors
from frhsic_core.joint.contraction import center
from frhsic_core.joint.hsic import hsic
from frhsic_core.joint.independence import decision, fits, hsic_test, permutation
from frhsic_core.joint.independence.permutation import FACTORS, Windows, bin_statistics, bins_of, random_orders
from frhsic_core.kernels import Categorical, Gaussian, Linear, median_bandwidth

SIZES: list[int] = []
LARGE = ["gamma", "spectral", "permutation", "aggregated"]


def sample(seed: int, n: int, d: int = 1, slope: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    s = torch.randn(n, 1, generator=g, dtype=torch.float64)
    return torch.randn(n, d, generator=g, dtype=torch.float64) + slope * s, s


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat 60 rows as many, and hold few entries at a time."""
    for module, name in ((decision, "DENSE_ROWS"), (decision, "THIN_ROWS"), (fits, "DENSE_ROWS")):
        monkeypatch.setattr(module, name, 50)
    for module in (decision, permutation):
        monkeypatch.setattr(module, "INDEXED_ROWS", 50)
    monkeypatch.setattr(permutation, "_ENTRIES", {"cpu": 700})
    monkeypatch.setattr(fits, "_SIZE", {"cpu": 17})


@dataclass(frozen=True)
class Recorded:
    """A Gaussian kernel that records the size of every matrix that it makes."""

    bandwidth: float

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        gram = Gaussian(self.bandwidth)(x, y)
        SIZES.append(gram.numel())
        return gram


def whole_order(groups: list[torch.Tensor], orders: list[torch.Tensor], b: int) -> torch.Tensor:
    order = torch.arange(sum(rows.numel() for rows in groups))
    for rows, moved in zip(groups, orders, strict=True):
        order[rows.flatten()] = rows[moved[b]].flatten()
    return order


@pytest.mark.parametrize("clustered", [False, True])
def test_permuted_bins_are_a_loop_over_hsic(clustered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutation, "_ENTRIES", {"cpu": 400})
    monkeypatch.setattr(permutation, "BINS", 3)
    monkeypatch.setattr(permutation, "GROUPS", 2)
    n = 83
    z, s = sample(1, n, 2, 0.3)
    labels = torch.cat(
        [torch.arange(20).repeat_interleave(3), 20 + torch.arange(11).repeat_interleave(2), torch.ones(1) * 99]
    )
    strata = decision._strata(labels, n) if clustered else None
    factors = (1.0, 0.5)
    found, constant = bin_statistics(
        z,
        s,
        Windows(Gaussian(1.0), factors),
        Windows(Gaussian(0.7), factors),
        6,
        torch.Generator().manual_seed(3),
        strata,
    )
    assert not constant.any()
    g = torch.Generator().manual_seed(3)
    groups = bins_of(n, g, strata)
    orders = [permutation.bin_orders(len(rows), 6, g) for rows in groups]
    assert torch.cat([rows.flatten() for rows in groups]).sort().values.equal(torch.arange(n))
    for b, (w, factor) in itertools.product(range(7), enumerate(factors)):
        order = whole_order(groups, orders, b)
        if clustered:  # a cluster arrives whole: its rows come from one cluster of its size
            assert all(len(set(labels[order[labels == label]].tolist())) == 1 for label in labels.unique())
        value = hsic(z, s[order], kernel_z=Gaussian(factor), kernel_s=Gaussian(0.7 * factor))
        assert found[b, w].item() == pytest.approx(n * value.item(), rel=1e-10)
    assert (whole_order(groups, orders, 0) == torch.arange(n)).all()
    assert any((whole_order(groups, orders, b) != torch.arange(n)).double().mean() > 0.4 for b in range(1, 7))


def test_bins_are_random_and_nearly_all_rows_move() -> None:
    groups = bins_of(5003, torch.Generator().manual_seed(0))
    assert [tuple(rows.shape) for rows in groups[:-1]] == [(8, 156)] * 4
    assert groups[-1].shape == (1, 5003 - 32 * 156)
    assert (groups[0][0].diff() < 0).any()


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", ["gamma", "spectral"])
@pytest.mark.parametrize("d", [1, 8])
def test_streamed_fits_equal_the_dense_ones(method: str, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = sample(4, 120, d, 0.2)
    streamed = hsic_test(z, s, method=method)
    monkeypatch.setattr(fits, "DENSE_ROWS", 4096)
    dense = hsic_test(z, s, method=method)
    exact = 1e-9 if method == "gamma" or d == 1 else 0.02
    for name in ("statistic", "threshold", "pvalue"):
        assert getattr(streamed, name).item() == pytest.approx(getattr(dense, name).item(), rel=exact)
    assert streamed.statistic.item() == pytest.approx(dense.statistic.item(), rel=1e-10)


@pytest.mark.parametrize(("d", "error"), [(1, 1e-9), (50, 2e-2)])
def test_the_trace_of_the_cube_has_the_stated_error(d: int, error: float) -> None:
    z, _ = sample(5, 500, d)
    gram = center(Gaussian(float(median_bandwidth(z)))(z))
    exact = torch.linalg.eigvalsh(gram).pow(3).sum().item()
    assert fits.cubic_trace(lambda v: gram @ v, z).item() == pytest.approx(exact, rel=error)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", LARGE)
def test_no_matrix_of_all_pairs_is_ever_made(method: str) -> None:
    z, s = sample(6, 200, 2, 0.5)
    SIZES.clear()
    result = hsic_test(z, s, method=method, kernel_z=Recorded(1.0), kernel_s=Recorded(1.0), n_permutations=19)
    assert result.hsic.item() == pytest.approx(
        hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)).item(), rel=1e-9
    )
    assert bool(result.reject)
    assert sum(SIZES) > 200**2 > 50 * max(SIZES)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", LARGE)
def test_large_samples_with_constants_and_batches(method: str) -> None:
    z, s = sample(7, 60, 2, 0.5)
    constant = torch.full_like(s, 0.3)
    for kernel in (None, Linear()):
        result = hsic_test(z, constant, method=method, kernel_s=kernel, n_permutations=19)
        assert (result.statistic.item(), result.pvalue.item(), result.threshold.item()) == (0.0, 1.0, 0.0)
    stack = hsic_test(torch.stack([z, 2 * z]), s, method=method, n_permutations=19)
    assert stack.pvalue.shape == stack.statistic.shape == (2,)
    assert stack.hsic[0].item() == pytest.approx(stack.hsic[1].item(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("method", ["permutation", "aggregated"])
def test_permuted_bins_keep_the_level(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows, so that bins which are not random would be far from exchangeable."""
    monkeypatch.setattr(permutation, "_ENTRIES", {"cpu": 2**16})
    monkeypatch.setattr(permutation, "GROUPS", 2)
    draws = 600
    g = torch.Generator().manual_seed(8)
    z, s = torch.randn(2, draws, 51, 1, generator=g, dtype=torch.float64).sort(-2).values.unbind()
    s = s.gather(1, random_orders((draws, 1, 51), g).squeeze(1).unsqueeze(-1))
    rejected = int(hsic_test(z, s, method=method, n_permutations=19, random_state=g).reject.sum())
    low, high = stats.binom.interval(0.99, draws, 0.05)
    assert low <= rejected <= high


def test_rows_of_the_default_bandwidth_change_places_among_themselves() -> None:
    """Otherwise a permuted S would have another bandwidth, and the level would only be approximate."""
    n = 1100
    _, s = sample(9, n)
    chosen, other = decision._median_strata(n)
    assert (len(chosen), len(other)) == (1000, 100)
    groups = bins_of(n, torch.Generator().manual_seed(1), [chosen, other])
    orders = [permutation.bin_orders(len(rows), 3, torch.Generator().manual_seed(2)) for rows in groups]
    moved = s[whole_order(groups, orders, 1)]
    assert not torch.equal(moved, s)
    assert median_bandwidth(moved).item() == median_bandwidth(s).item()


SMALL_RANK = {
    "numbers": lambda s: (s, None),
    "ages": lambda s: ((20 * s).round(), None),
    "two values": lambda s: ((s > 0).double(), None),
    "categories": lambda s: (s.round(), Categorical()),
    "heavy tails": lambda s: (s.sinh().sinh(), None),  # narrow windows have too large a rank
}


@pytest.mark.parametrize("method", LARGE)
@pytest.mark.parametrize("name", SMALL_RANK)
def test_thin_matrices_change_no_pvalue(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = sample(13, 1100, 1, 0.05)
    s, kernel_s = SMALL_RANK[name](s)
    options = {"kernel_s": kernel_s, "method": method, "n_permutations": 49, "random_state": 3}
    if method == "permutation" and name == "numbers":
        monkeypatch.setattr(decision, "DENSE_ROWS", 1024)  # bins
    thin = hsic_test(z, s, **options)
    monkeypatch.setattr(factors, "THIN_ROWS", 10**9)
    whole = hsic_test(z, s, **options)
    assert thin.pvalue.item() == pytest.approx(whole.pvalue.item(), rel=1e-8)
    for field in ("hsic", "statistic", "threshold"):
        assert getattr(thin, field).item() == pytest.approx(getattr(whole, field).item(), rel=1e-8)
    if method == "aggregated":
        torch.testing.assert_close(thin.factor_pvalues, whole.factor_pvalues)


def test_the_aggregated_test_of_more_than_a_thousand_rows() -> None:
    z, s = sample(10, 1100, 1, 0.15)
    result = hsic_test(z, s, method="aggregated", n_permutations=99)
    assert result.hsic.item() == pytest.approx(hsic(z, s).item(), rel=1e-9)
    assert bool(result.reject)
    assert result.factors == FACTORS
    assert not hsic_test(z - 0.15 * s, s, method="aggregated", n_permutations=99).reject


# Clusters ------------------------------------------------------------------------------------------------------------


def test_clusters_move_whole_among_clusters_of_their_size() -> None:
    labels = ["a", "b", "a", "c", "b", "d", "e", "f", "e", "g"]  # a, b and e have two rows; c, d, f and g one
    strata = decision._strata(labels, 10)
    assert sorted(tuple(rows.shape) for rows in strata) == [(3, 2), (4, 1)]
    pairs = {(0, 2), (1, 4), (6, 8)}
    orders = random_orders((1, 200, 10), torch.Generator().manual_seed(0), strata)[0]
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


def test_clusters_are_checked() -> None:
    z, s = sample(12, 6)
    with pytest.raises(ValueError, match="clusters needs permutations"):
        hsic_test(z, s, clusters=[0, 0, 1, 1, 2, 2])
    with pytest.raises(ValueError, match="clusters has shape"):
        hsic_test(z, s, clusters=[0, 0, 1], method="permutation")
    with pytest.raises(ValueError, match="nothing to exchange"):
        hsic_test(z, s, clusters=[0, 0, 0, 1, 1, 2], method="permutation")
