"""Theorem 4.7: against brute force, at equality, and broken versions that the search must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
import torch
from torch import Tensor

from frhsic_core.joint import hsic
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear
from frhsic_core.paper.statements import parity_gap
from frhsic_core.paper.statements.parity_gap import (
    STEPS,
    GapSpectrum,
    division_free_excess,
    gap_spectrum,
    group_means,
    identity_excess,
    jensen_excess,
    lower_bound_excess,
    projection_excess,
    search_steps,
    trivial_gap,
)
from frhsic_core.paper.statements.search import Worst


def test_spectrum_against_explicit_matrices(generator: torch.Generator) -> None:
    n = 7
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    anchors = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(3, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.3)
    found = gap_spectrum(z, s, anchors=anchors, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    k, l = kernel(z), kernel(s)
    head = kernel(z, anchors) @ coefficients
    values = torch.linalg.eigvalsh(h @ l @ h / n).flip(0)
    assert torch.allclose(found.eigenvalues, values, atol=1e-14)
    assert torch.allclose(found.gap, h @ head)
    assert torch.allclose(found.hsic, torch.trace(k @ h @ l @ h) / n**2)
    assert torch.allclose(found.squared_norm, coefficients @ kernel(anchors) @ coefficients)
    assert found.rank == n - 1
    for m in (1, 3, n - 1):
        basis = found.vectors[:, :m]
        projected = basis @ basis.T @ h @ head
        assert torch.allclose(found.projected(m), projected)
        assert torch.allclose(found.mean_squares[m - 1], projected.square().mean())
        assert torch.allclose(found.parity_gap(m), projected.abs().mean())
        assert torch.allclose(found.bounds[m - 1], found.squared_norm * found.hsic / values[m - 1])
    assert torch.isinf(found.bounds[-1])


def test_batches_equal_single_samples(generator: torch.Generator) -> None:
    z = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(3, 5, 1, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    together = gap_spectrum(z, s, anchors=z, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    for i in range(3):
        alone = gap_spectrum(z[i], s[i], anchors=z[i], coefficients=coefficients[i], kernel_z=kernel, kernel_s=kernel)
        assert torch.allclose(together.mean_squares[i], alone.mean_squares)
        assert torch.allclose(together.bounds[i], alone.bounds)


def test_bound_is_attained_by_the_witness_head_when_s_is_binary(generator: torch.Generator) -> None:
    s = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    z = s.unsqueeze(-1) + 0.5 * torch.randn(5, 1, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    first = gap_spectrum(z, s, anchors=z, coefficients=torch.ones(5), kernel_z=kernel, kernel_s=kernel)
    found = gap_spectrum(z, s, anchors=z, coefficients=first.vectors[:, 0], kernel_z=kernel, kernel_s=kernel)
    assert found.rank == 1
    assert torch.allclose(found.mean_squares[0], found.bounds[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", [Laplacian(0.7), InverseMultiquadric(1.0), Linear()])
def test_holds_for_other_kernels(kernel: object, generator: torch.Generator) -> None:
    z = torch.randn(20, 12, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(20, 12, 1, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(20, 12, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, s, anchors=z, coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)
    for step in STEPS.values():
        assert step(found).max() < 1e-12


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


class Smaller(GapSpectrum):
    def parity_gap(self, m: Tensor | int) -> Tensor:
        return 0.99 * super().parity_gap(m)


BROKEN: dict[str, Callable[[GapSpectrum], Tensor]] = {
    "identity with a lost term": lambda f: (f.hsic - (f.eigenvalues * f.energies)[..., 1:].sum(-1) / f.rows).abs(),
    "lower bound with 99 percent of HSIC": lambda f: lower_bound_excess(shrunk(f, 0.99)),
    "projection bound with 99 percent of the norm": lambda f: projection_excess(
        replace(f, squared_norm=0.99 * f.squared_norm)
    ),
    "Jensen with 99 percent of the gap": lambda f: jensen_excess(Smaller(**vars(f))),
    "bound with 99 percent of HSIC": lambda f: division_free_excess(shrunk(f, 0.99)),
    "bound with the largest eigenvalue for every m": leading_eigenvalue,
    "bound without the projection at m = r": unprojected,
    "HSIC divided by n(n-1) in the identity": lambda f: identity_excess(shrunk(f, f.rows / (f.rows - 1))),
}


@pytest.fixture(scope="module")
def searched() -> dict[str, Worst]:
    return search_steps(BROKEN, instances=1200, random_state=5)


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_version_is_caught(name: str, searched: dict[str, Worst]) -> None:
    assert searched[name].excess > 1e-6


def test_hsic_is_the_librarys(generator: torch.Generator) -> None:
    z = torch.randn(9, 1, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, z[:, 0], anchors=z, coefficients=torch.ones(9))
    assert found.hsic == hsic(z, z[:, 0])


def test_the_steps_written_out_with_projections(generator: torch.Generator) -> None:
    """A step that is too weak breaks nothing, so its sides are computed again from explicit projections."""
    n = 7
    z = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    s = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    weights = torch.randn(n, generator=generator, dtype=torch.float64)
    kernel = Gaussian(1.0)
    found = gap_spectrum(z, s, anchors=z, coefficients=weights, kernel_z=kernel, kernel_s=kernel)
    h = torch.eye(n, dtype=torch.float64) - 1.0 / n
    k, l = h @ kernel(z) @ h, h @ kernel(s) @ h
    value, norm = (k * l).sum() / n**2, weights @ kernel(z) @ weights
    delta = h @ (kernel(z) @ weights)
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(l / n))
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


def test_group_means_against_pandas(generator: torch.Generator) -> None:
    values = torch.randn(40, generator=generator, dtype=torch.float64)
    s = torch.randint(5, (40, 1), generator=generator).double()
    frame = pd.DataFrame({"v": values.numpy(), "s": s[:, 0].numpy()})
    expected = frame.groupby("s")["v"].transform("mean") - frame["v"].mean()
    assert torch.allclose(group_means(values, s), torch.tensor(expected.to_list(), dtype=values.dtype))


def test_projection_gives_back_the_gap_without_ties(generator: torch.Generator) -> None:
    s = torch.arange(6, dtype=torch.float64)
    z = torch.randn(6, 1, generator=generator, dtype=torch.float64)
    found = gap_spectrum(z, s, anchors=z, coefficients=torch.ones(6), kernel_s=Gaussian(1.0))
    assert found.rank == 5
    assert torch.allclose(found.projected(5), found.gap, atol=1e-12)


def test_the_trivial_bound_is_reached() -> None:
    values = torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert (values - values.mean()).square().mean().item() == trivial_gap()


def test_the_stored_bounds_are_those_of_the_book(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = pd.read_csv(parity_gap.book_folder("claims", "authors", "bound_tightness.csv"))["rhs_bound"]
    _, certificate, _ = parity_gap.non_vacuity(quick=True)
    assert "stored runs" in certificate.claim
    assert certificate.middle == stored.min()
    assert certificate.details["source"].endswith("11 to 17,329 on Adult, .76 to 3,309 on Crime")

    def no_book(*parts: str) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(parity_gap, "book_folder", no_book)
    assert [c.verdict for c in parity_gap.non_vacuity(quick=True)] == ["fails as stated", "holds as corrected"]


def test_group_means_and_the_trivial_gap() -> None:
    means = group_means(torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0.0, 0.0, 1.0]))
    assert means.tolist() == [-2.0, -2.0, 4.0]
    assert trivial_gap(2.0) == 1.0  # half at 0 and half at 2: the variance is one
