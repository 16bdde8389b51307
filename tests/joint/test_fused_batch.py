"""The fused kernels of a training step against the dense computation in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from frhsic_core.joint.contraction import (
    Frame,
    center,
    correlation,
    gram_term,
    inner_product,
    output_term,
    own_product,
)
from frhsic_core.joint.fused import (
    can_fuse_batch,
    fused_batch_median,
    fused_batch_term,
    fused_output_term,
)
from frhsic_core.kernels import Gaussian, batch_median
from frhsic_core.learning import FRHSIC
from frhsic_core.learning.data import Batch, TrainingData

FORMS = [("normalized", 1.0), ("biased", 0.5)]
SIGMA_S = math.sqrt(math.log2(math.e))  # the kernel on S is 2^(−|s − s'|²/2)


def relative(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def samples(models: int, n: int, d: int, p: int, device: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + d)
    z = torch.randn(models, n, d, generator=generator)
    s = torch.rand(models, n, p, generator=generator) + 0.3 * z[..., :1]
    return z.to(device), (2.0 * SIGMA_S * (s - s.mean(-2, keepdim=True))).to(device)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("n", "d", "p"), [(100, 5, 1), (64, 50, 2), (130, 4, 1), (256, 50, 1), (1000, 122, 3)]
)
@pytest.mark.parametrize(("form", "factor"), FORMS)
@pytest.mark.parametrize("scaled", [True, False])
def test_value_and_gradient(n: int, d: int, p: int, form: str, factor: float, scaled: bool) -> None:
    z, rows = samples(3, n, d, p, "cuda")
    sigma = torch.full((3,), math.sqrt(2.0 * d), device="cuda")
    assert can_fuse_batch(z)
    exact = z.double().requires_grad_()
    weights = center(Gaussian(SIGMA_S)(rows.double()))
    own = own_product(weights, weights)
    function = correlation(weights, own) if form == "normalized" else inner_product(weights)
    expected = gram_term(exact, Gaussian(sigma.double()), function, factor=factor)
    frame = Frame(z.requires_grad_(), z.detach(), (lambda gradient: gradient) if scaled else None)
    found, own_s = fused_batch_term(
        frame, rows, sigma, normalized=form == "normalized", factor=factor
    )
    assert relative(found.value, expected.value) < 5e-6
    assert relative(found.gradient, expected.gradient) < 2e-5
    assert form != "normalized" or relative(own_s, own) < 5e-6


@pytest.mark.cuda
@pytest.mark.parametrize(("form", "factor"), [("normalized", 0.5), ("biased", 0.5)])
def test_a_score_and_a_linear_kernel(form: str, factor: float) -> None:
    z, rows = samples(3, 200, 2, 1, "cuda")
    weights = center(Gaussian(SIGMA_S)(rows.double()))
    own = own_product(weights, weights)
    exact = z[..., 0].double().requires_grad_()
    expected = output_term(exact, weights, own if form == "normalized" else None, factor=factor)
    output = z[..., 0].clone().requires_grad_()
    normalized = form == "normalized"
    found = fused_output_term(output, rows, own.float(), normalized=normalized, factor=factor)
    assert relative(found.value, expected.value) < 1e-6
    assert relative(found.gradient, expected.gradient) < 2e-6


@pytest.mark.cuda
def test_constant_and_distant_rows_are_finite() -> None:
    _, rows = samples(2, 80, 3, 1, "cuda")
    one = torch.ones(2, device="cuda")
    for z in (
        torch.full((2, 80, 3), 0.1, device="cuda"),
        1e6 * torch.randn(2, 80, 3, device="cuda"),
    ):
        found, _ = fused_batch_term(Frame(z, z, None), rows, one, normalized=True, factor=1.0)
        assert bool(found.value.isfinite().all())
        assert bool(found.gradient.isfinite().all())
    constant = torch.full((2, 80, 3), 0.1, device="cuda")
    found, _ = fused_batch_term(
        Frame(constant, constant, None), rows, one, normalized=True, factor=1.0
    )
    assert not found.value.any()


@pytest.mark.cuda
@pytest.mark.parametrize(("n", "d"), [(256, 50), (100, 3), (5, 2), (2, 1)])
def test_median(n: int, d: int) -> None:
    z = torch.randn(3, n, d, generator=torch.Generator().manual_seed(n)).cuda()
    z[1:] = torch.stack([z[1].round(), torch.full_like(z[2], 0.1)])
    expected = batch_median(z, 128)
    for rate, old, mixed in (
        (1.0, 5.0, expected),
        (0.1, 0.0, expected),
        (0.1, 5.0, 4.5 + 0.1 * expected),
    ):
        found = fused_batch_median(z, torch.full_like(expected, old), max_points=128, rate=rate)
        torch.testing.assert_close(found, mixed, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("points", [None, 128, 7])
def test_median_from_known_exponents(points: int | None) -> None:
    z = torch.randn(2, 60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    exponents = -0.5 * torch.cdist(z, z).square()
    expected = batch_median(z, points)
    torch.testing.assert_close(
        batch_median(z, points, exponents=exponents), expected, rtol=1e-9, atol=0.0
    )


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("scale", ["whiten", "standardize", None, "minmax"])
@pytest.mark.parametrize("on", ["representation", "both"])
@pytest.mark.parametrize("estimator", ["normalized", "biased"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_penalty_has_its_own_gradient(
    device: str, scale: str | None, on: str, estimator: str, weighted: bool
):
    """Against central differences of the same penalty in float64 on the CPU, along a random direction."""
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(2, 90, 4, generator=generator, dtype=torch.float64)
    s = torch.rand(2, 90, 1, generator=generator, dtype=torch.float64) + 0.3 * z[..., :1]
    weights = torch.rand(2, 90, generator=generator, dtype=torch.float64) if weighted else None
    direction = torch.randn(2, 90, 4, generator=generator, dtype=torch.float64)

    def penalty(dtype: torch.dtype, device: str) -> tuple[FRHSIC, Tensor]:
        data = TrainingData.from_arrays(
            z.to(device, dtype), (s[..., 0] > 0.5).to(device, dtype), s.to(device, dtype), dtype=dtype,
            sample_weight=None if weights is None else weights.to(device, dtype), device=device,
        )  # fmt: skip
        made = FRHSIC(scale=scale, on=on, estimator=estimator, bandwidth=2.0, bandwidth_s=0.5)
        which = torch.arange(2, device=device)
        made.setup(data, dataset=which, generators=[generator, generator], representation=4)
        made.sigma_z.fill_(2.0)
        return made.to(device), data.s

    def value(made: FRHSIC, at: Tensor) -> Tensor:
        kept = None if weights is None else weights.to(at)
        rows = torch.arange(180, device=at.device).view(2, 90)
        return made(Batch(at, at.sum(-1), s.to(at), torch.ones_like(at[..., 0]), kept, rows)).sum()

    exact, _ = penalty(torch.float64, "cpu")
    step = 1e-5
    expected = (value(exact, z + step * direction) - value(exact, z - step * direction)) / (
        2 * step
    )
    dtype = torch.float64 if device == "cpu" else torch.float32
    made, _ = penalty(dtype, device)
    at = z.to(device, dtype).requires_grad_()
    (gradient,) = torch.autograd.grad(value(made, at), at)
    found = float((gradient.double().cpu() * direction).sum())
    assert found == pytest.approx(float(expected.detach()), rel=1e-6 if device == "cpu" else 1e-3)
