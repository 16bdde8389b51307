"""Theorem 4.7: against brute force, at equality, its sharper forms, and broken versions that the search must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
import torch
from torch import Tensor

from frhsic_core.joint import coco, hsic
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear
from frhsic_core.laws import GaussianPair
from frhsic_core.paper.statements import parity_gap
from frhsic_core.paper.statements.parity_gap import (
    STEPS,
    GapSpectrum,
    coco_excess,
    compare_bounds,
    division_free_excess,
    gap_spectrum,
    group_means,
    head_bound,
    identity_excess,
    jensen_excess,
    lower_bound_excess,
    order_excess,
    projection_excess,
    search_steps,
    trivial_gap,
    weighted_excess,
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
    "weighted spectrum with 99 percent of COCO": lambda f: weighted_excess(replace(f, coco=0.99 * f.coco)),
    "worst head with 99 percent of COCO": lambda f: coco_excess(replace(f, coco=0.99 * f.coco)),
    "COCO squared against 98 percent of HSIC": lambda f: order_excess(shrunk(f, 0.98)),
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


@pytest.fixture
def found(generator: torch.Generator) -> GapSpectrum:
    z, s = GaussianPair(0.6).sample(60, random_state=generator)
    return gap_spectrum(z, s, anchors=[[0.5], [-1.0]], coefficients=[1.0, -0.4], kernel_z=Gaussian(1.0))


def test_the_bounds_are_ordered(found: GapSpectrum) -> None:
    m = slice(0, 10)
    worst = found.squared_norm * found.worst_heads(10)
    assert (found.mean_squares[m] <= worst).all()
    assert (worst <= found.coco_bounds[m]).all()
    assert (found.coco_bounds[m] <= found.bounds[m]).all()
    assert (found.coco_bounds + found.remainders).min() >= found.gap.square().mean()


def test_weighted_gap_is_hsic_of_the_head_with_a_linear_kernel(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(30, random_state=generator)
    kernel = Gaussian(1.0)
    found = gap_spectrum(z, s, anchors=[[0.3]], coefficients=[2.0], kernel_z=kernel, kernel_s=kernel)
    values = 2.0 * kernel(z, torch.tensor([[0.3]], dtype=z.dtype))
    assert torch.allclose(found.weighted, hsic(values, s, kernel_z=Linear(), kernel_s=kernel))


def test_coco_is_attained_by_the_leading_singular_function(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(25, random_state=generator)
    kernel = Gaussian(1.0)
    n = len(z)
    h = torch.eye(n, dtype=z.dtype) - 1.0 / n
    k, l = h @ kernel(z) @ h, h @ kernel(s.unsqueeze(-1)) @ h
    # ‖Σ̂_SZ f‖² for f = Σ c_i φ(z_i): cᵀK̃L̃K̃c/n², over cᵀK̃c; the best c is the top eigenvector of L̃^½K̃L̃^½ mapped back.
    values, vectors = torch.linalg.eig(l @ k)
    top = vectors[:, values.real.argmax()].real
    found = gap_spectrum(z, s, anchors=z, coefficients=h @ top, kernel_z=kernel, kernel_s=kernel)
    assert torch.allclose(found.weighted, found.squared_norm * found.coco**2, rtol=1e-8)


def test_worst_head_is_reached_by_no_random_head_and_by_its_own_maximiser(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(15, random_state=generator)
    kernel = Gaussian(1.0)
    coefficients = torch.randn(500, 15, generator=generator, dtype=z.dtype)
    many = gap_spectrum(z.expand(500, 15, 1), s.expand(500, 15), anchors=z.expand(500, 15, 1),
                       coefficients=coefficients, kernel_z=kernel, kernel_s=kernel)  # fmt: skip
    assert (many.mean_squares[:, :3] <= many.squared_norm[:, None] * many.worst_heads(3) * (1 + 1e-12)).all()
    directions = many.vectors[0, :, :3]
    centered = kernel(z) - kernel(z).mean(0) - kernel(z).mean(1, keepdim=True) + kernel(z).mean()
    _, inner = torch.linalg.eigh(directions.T @ centered @ directions)
    best = gap_spectrum(z, s, anchors=z, coefficients=directions @ inner[:, -1], kernel_z=kernel, kernel_s=kernel)
    assert torch.allclose(best.mean_squares[2], best.squared_norm * best.worst_heads(3)[2], rtol=1e-10)


def test_one_anchor_is_one_head(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.6).sample(80, random_state=generator)
    kernel = Gaussian(1.0)
    row = compare_bounds(z, s, anchors=[[0.4]], kernel_z=kernel, kernel_s=kernel, cutoff=1e-3)
    found = gap_spectrum(z, s, anchors=[[0.4]], coefficients=[1.0], kernel_z=kernel, kernel_s=kernel)
    kept = int((found.eigenvalues > 1e-3 * found.eigenvalues[0]).sum())
    assert row["kept"] == kept
    assert row["printed"] == pytest.approx(found.bounds[kept - 1].item())
    assert row["left"] == pytest.approx(found.gap.square().mean().item())
    assert row["projected"] == pytest.approx(found.mean_squares[kept - 1].item())
    assert row["best_hsic"] == pytest.approx((found.bounds + found.remainders)[:kept].min().item())
    assert row["best_coco"] == pytest.approx((found.coco_bounds + found.remainders)[:kept].min().item())
    assert row["weighted"] == pytest.approx(found.weighted.item())


def test_order_on_independent_and_dependent_samples(generator: torch.Generator) -> None:
    for rho in (0.0, 0.9):
        z, s = GaussianPair(rho).sample(150, random_state=generator)
        row = compare_bounds(z, s)
        assert row["projected"] <= row["left"] <= row["best_coco"] <= row["best_hsic"]
        assert row["weighted"] <= row["coco_squared"] <= row["hsic"]


@pytest.mark.parametrize("head", [torch.sign, torch.sin, lambda z: z**3, torch.zeros_like])
@pytest.mark.parametrize("m", [1, 3])
def test_holds_for_any_head(head, m: int, generator: torch.Generator) -> None:
    z, s = GaussianPair(0.7).sample(80, random_state=generator)
    found = head_bound(head(z[:, 0]), z, s, m=m)
    assert found["left"] <= found["bound"] + 1e-15
    assert found["bound"] == pytest.approx((found["fit"] + found["remainder"]) ** 2)


def test_ridge_fit_against_a_linear_solve(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.7).sample(40, random_state=generator)
    kernel, ridge = Gaussian(1.0), 0.01
    found = head_bound(z[:, 0], z, s, m=1, kernel_z=kernel, kernel_s=kernel, ridges=torch.tensor([ridge]))
    gram, delta = kernel(z), z[:, 0] - z[:, 0].mean()
    coefficients = torch.linalg.solve(gram + 40 * ridge * torch.eye(40, dtype=z.dtype), delta)
    rest = delta - gram @ coefficients
    assert found["norm"] == pytest.approx((coefficients @ gram @ coefficients).sqrt().item())
    assert found["remainder"] == pytest.approx(rest.std(correction=0).item())


def test_a_head_in_the_rkhs_loses_little(generator: torch.Generator) -> None:
    z, s = GaussianPair(0.7).sample(60, random_state=generator)
    kernel = Gaussian(1.0)
    found = head_bound(kernel(z, z[:1])[:, 0], z, s, m=1, kernel_z=kernel, kernel_s=kernel)
    gram = kernel(s.unsqueeze(-1))
    centered = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    theorem = coco(z, s, kernel_z=kernel, kernel_s=kernel) ** 2 / (torch.linalg.eigvalsh(centered)[-1] / 60)
    # ‖f‖ = 1, but the fit is to f minus its mean, whose norm in the RKHS is finite and larger; shrinking pays for it.
    assert found["bound"] <= 1.5 * theorem.item()


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


@pytest.mark.parametrize("m", [1, 3])
def test_the_fit_is_paid_with_the_m_th_eigenvalue(m: int, generator: torch.Generator) -> None:
    z, s = GaussianPair(0.7).sample(50, random_state=generator)
    kernel = Gaussian(1.0)
    options = {"kernel_z": kernel, "kernel_s": kernel}
    found = head_bound(z[:, 0], z, s, m=m, ridges=torch.tensor([0.01]), **options)
    spectrum = gap_spectrum(z, s, anchors=z, coefficients=torch.ones(50), **options)
    expected = found["norm"] * coco(z, s, **options) / spectrum.eigenvalues[m - 1].sqrt()
    assert found["fit"] == pytest.approx(expected.item(), rel=1e-9)
    assert found["left"] == pytest.approx(
        ((spectrum.vectors[:, :m].T @ (z[:, 0] - z[:, 0].mean())).square().sum() / 50).item(), rel=1e-9
    )


def test_group_means_and_the_trivial_gap() -> None:
    means = group_means(torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0.0, 0.0, 1.0]))
    assert means.tolist() == [-2.0, -2.0, 4.0]
    assert trivial_gap(2.0) == 1.0  # half at 0 and half at 2: the variance is one
