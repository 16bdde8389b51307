"""Theorem 4.7: against brute force, at equality, and broken versions that the search must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.statements import parity_gap
from frhsic_core.paper.statements.concentration import with_one_row_replaced
from frhsic_core.paper.statements.parity_gap import (
    GapSpectrum,
    division_free_excess,
    gap_spectrum,
    group_gdp,
    identity_excess,
    lower_bound_excess,
    projection_excess,
    search_steps,
)


def test_batches_equal_single_samples(generator: torch.Generator) -> None:
    z = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(3, 5, 1, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    together = gap_spectrum(
        z, s, anchors=z, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel
    )
    for i in range(3):
        alone = gap_spectrum(
            z[i], s[i], anchors=z[i], coefficients=coefficients[i], kernel_z=kernel, kernel_s=kernel
        )
        assert torch.allclose(together.mean_squares[i], alone.mean_squares)
        assert torch.allclose(together.energies[i], alone.energies)


def shrunk(found: GapSpectrum, factor: float) -> GapSpectrum:
    return replace(found, hsic=factor * found.hsic)


def leading_eigenvalue(found: GapSpectrum) -> Tensor:
    right = found.squared_norm * found.hsic
    excess = found.eigenvalues[..., :1] * found.mean_squares - right.unsqueeze(-1)
    return torch.where(found.counts, excess, -torch.inf) / found.scale.unsqueeze(-1)


def unprojected(found: GapSpectrum) -> Tensor:
    last = found.eigenvalues.gather(-1, (found.rank.clamp_min(1) - 1).unsqueeze(-1)).squeeze(-1)
    excess = last * found.gap.square().mean(-1) - found.squared_norm * found.hsic
    return torch.where(found.rank > 0, excess, -torch.inf) / found.scale


BROKEN: dict[str, Callable[[GapSpectrum], Tensor]] = {
    "identity with a lost term": lambda f: (
        f.hsic - (f.eigenvalues * f.energies)[..., 1:].sum(-1) / f.rows
    ).abs(),
    "lower bound with 99 percent of HSIC": lambda f: lower_bound_excess(shrunk(f, 0.99)),
    "projection bound with 99 percent of the norm": lambda f: projection_excess(
        replace(f, squared_norm=0.99 * f.squared_norm)
    ),
    "bound with 99 percent of HSIC": lambda f: division_free_excess(shrunk(f, 0.99)),
    "bound with the largest eigenvalue for every m": leading_eigenvalue,
    "bound without the projection at m = r": unprojected,
    "HSIC divided by n(n-1) in the identity": lambda f: identity_excess(
        shrunk(f, f.rows / (f.rows - 1))
    ),
}


@pytest.fixture(scope="module")
def searched() -> dict[str, float]:
    return search_steps(BROKEN, instances=1200, random_state=5)


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_version_is_caught(name: str, searched: dict[str, float]) -> None:
    assert searched[name] > 1e-6


def test_the_steps_written_out_with_projections(generator: torch.Generator) -> None:
    """A step that is too weak breaks nothing, so its sides are computed again from explicit projections."""
    n = 7
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    anchors = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    weights = torch.randn(3, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    found = gap_spectrum(
        z, s, anchors=anchors, coefficients=weights, kernel_z=kernel, kernel_s=kernel
    )
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    k, l = h @ kernel(z) @ h, h @ kernel(s) @ h
    value, norm = (k * l).sum() / n**2, weights @ kernel(anchors) @ weights
    delta = h @ (kernel(z, anchors) @ weights)
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(l / n))
    assert found.counts.tolist() == [True] * (n - 1) + [False]
    torch.testing.assert_close(found.gap, delta)
    torch.testing.assert_close(found.hsic, value)
    for m in range(1, n):
        projection = vectors[:, :m] @ vectors[:, :m].T
        trace, square = (projection @ k @ projection).trace(), (projection @ delta).square().mean()
        expected = {
            lower_bound_excess: values[m - 1] * trace / n - value,
            projection_excess: (square - norm * trace / n) / found.scale,
            division_free_excess: (values[m - 1] * square - norm * value) / found.scale,
        }
        for step, excess in expected.items():
            torch.testing.assert_close(step(found)[m - 1], excess, rtol=1e-7, atol=1e-13)


def test_without_a_book_there_are_no_stored_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_book(*parts: str) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(parity_gap, "authors_file", no_book)
    assert parity_gap.non_vacuity() == []


def row_by_row(f: np.ndarray, groups: np.ndarray) -> float:
    """n/(n − 1)·GDP_n from the means of the groups."""
    n = len(f)
    return (
        n
        / (n - 1)
        * sum(np.mean(groups == g) * abs(f[groups == g].mean() - f.mean()) for g in set(groups))
    )


def test_gdp_of_tables_and_of_rows() -> None:
    rng = np.random.default_rng(0)
    f, groups = rng.integers(0, 2, (20, 9)).astype(float), rng.integers(0, 3, (20, 9))
    for one, members in zip(f, groups, strict=True):
        table = [np.mean((members == g) & (one == score)) for score in (0, 1) for g in range(3)]
        assert 9 / 8 * group_gdp(np.array(table)) == pytest.approx(
            row_by_row(one, members), abs=1e-12
        )
        both = with_one_row_replaced(
            torch.tensor(one)[:, None], torch.eye(3, dtype=torch.float64)[members]
        )
        for covariance, part in zip(both, (slice(0, 8), slice(1, 9)), strict=True):
            assert covariance.abs().sum() == pytest.approx(
                8 * row_by_row(one[part], members[part]), abs=1e-12
            )


def test_a_bound_for_gdp_with_too_small_a_slack_or_mean_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = parity_gap.group_gdp
    monkeypatch.setattr(
        parity_gap, "group_gdp", lambda table: right(table) * (0.9 if table.ndim == 2 else 1.0)
    )
    assert {parity_gap.gdp_of_groups(quick=True)[i].verdict for i in (1, 3)} == {"fails as stated"}
    monkeypatch.setattr(parity_gap.math, "log", lambda _: 0.0)
    assert {parity_gap.gdp_of_groups(quick=True)[i].verdict for i in (2, 4)} == {"fails as stated"}


def test_rows_of_a_hidden_function_differ_from_independent_ones_only_in_a_shared_cell() -> None:
    """Two rows share one of six cells with probability 1/6, and then their scores agree instead of half of the time."""
    distance, reached = parity_gap.no_free_lunch()
    assert distance.middle == pytest.approx(1 / 6 * 1 / 2)
    assert reached.upper > 0.999


def test_a_bound_without_an_assumption_that_is_below_one_half_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = parity_gap.gdp_bound
    monkeypatch.setattr(
        parity_gap,
        "gdp_bound",
        lambda *args, **options: replace(right(*args, **options), bound=0.49),
    )
    assert parity_gap.no_free_lunch()[1].verdict == "fails as stated"


@pytest.mark.parametrize(("factor", "broken"), [(0.97, True), (1.0, False), (1.03, True)])
def test_another_remainder_of_bins_is_caught(
    monkeypatch: pytest.MonkeyPatch, factor: float, broken: bool
) -> None:
    right = np.diff
    monkeypatch.setattr(
        parity_gap.np, "diff", lambda *args, **options: factor * right(*args, **options)
    )
    assert (parity_gap.bounded_variation(quick=True)[0].verdict == "fails as stated") == broken
