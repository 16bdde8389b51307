"""The fused GPU kernels against the dense computation in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from frhsic_core import Gaussian, InverseMultiquadric, Laplacian, Linear, hsic, normalized_hsic
from frhsic_core.joint.fused import fused_hsic
from frhsic_core.joint.streaming import fused_form, streaming_hsic

pytestmark = pytest.mark.cuda
# Relative errors of the value and of the gradient. The gradient of S has fewer columns and cancels more.
TOLERANCE = {"tf32": (1e-4, 2e-3), "tf32x3": (5e-6, 5e-5), "float64": (1e-12, 1e-11)}
KERNELS = {"gaussian": Gaussian, "laplacian": Laplacian, "imq": InverseMultiquadric}


def samples(n: int, d: int, p: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + d)
    s = torch.randn(n, p, generator=generator, dtype=torch.float64)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.7 * s[:, :1].sin()
    return z.to("cuda", dtype), s.to("cuda", dtype)


def dense(z: Tensor, s: Tensor, form: str, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return value and gradients in float64, without the fused kernels."""
    z = z.double().detach().requires_grad_()
    s = s.double().detach().requires_grad_()
    value = normalized_hsic(z, s, **options) if form == "normalized" else hsic(z, s, estimator=form, **options)
    return value.detach(), *torch.autograd.grad(value, (z, s))


def fused(z: Tensor, s: Tensor, form: str, *, precision: str, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
    z = z.detach().requires_grad_()
    s = s.detach().requires_grad_()
    assert fused_form(z, s, options["kernel_z"], options["kernel_s"])
    value = fused_hsic(z, s, form=form, precision=precision, **options)
    return value.detach(), *torch.autograd.grad(value, (z, s))


def require_close(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], precision: str) -> None:
    value, gradient = TOLERANCE[precision]
    assert abs(float(found[0]) / float(expected[0]) - 1.0) < value
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        assert float((mine.double() - theirs).norm() / theirs.norm()) < gradient


@pytest.mark.parametrize(("n", "d", "p"), [(501, 1, 1), (777, 7, 2), (1025, 50, 1), (640, 128, 3)])
@pytest.mark.parametrize("form", ["biased", "unbiased", "normalized"])
@pytest.mark.parametrize(("kernel", "precision"), [("gaussian", "tf32x3"), ("imq", "tf32x3"), ("laplacian", "float64")])
def test_value_and_gradients(n: int, d: int, p: int, form: str, kernel: str, precision: str) -> None:
    z, s = samples(n, d, p, torch.float64 if precision == "float64" else torch.float32)
    options = {"kernel_z": KERNELS[kernel](1.3 * d**0.5), "kernel_s": KERNELS[kernel](1.0)}
    require_close(fused(z, s, form, precision=precision, **options), dense(z, s, form, **options), precision)


@pytest.mark.parametrize("precision", list(TOLERANCE))
def test_every_precision_keeps_its_error(precision: str) -> None:
    z, s = samples(1500, 20, 1, torch.float64 if precision == "float64" else torch.float32)
    options = {"kernel_z": Gaussian(5.0), "kernel_s": Gaussian(1.0)}
    require_close(fused(z, s, "biased", precision=precision, **options), dense(z, s, "biased", **options), precision)


@pytest.mark.parametrize("factor", [1e-3, 1e-1, 10.0, 100.0])
def test_bandwidths_far_from_the_median(factor: float) -> None:
    z, s = samples(900, 5, 1, torch.float32)
    options = {"kernel_z": Gaussian(3.0 * factor), "kernel_s": Gaussian(1.0 * factor)}
    value = fused(z, s, "biased", precision="tf32x3", **options)[0]
    assert float(value) == pytest.approx(float(dense(z, s, "biased", **options)[0]), rel=2e-5)


def test_weights_are_repetitions_and_a_mask_is_a_subset() -> None:
    z, s = samples(600, 4, 1, torch.float64)
    options = {"kernel_z": Gaussian(2.0), "kernel_s": Gaussian(1.0)}
    count = torch.arange(600, device="cuda") % 3
    repeated = dense(z.repeat_interleave(count, 0), s.repeat_interleave(count, 0), "biased", **options)[0]
    weights = count.double() / count.sum()
    assert float(streaming_hsic(z, s, row_weights=weights, **options)) == pytest.approx(float(repeated), rel=1e-12)
    kept = count > 0
    subset = dense(z[kept], s[kept], "unbiased", **options)
    z.requires_grad_()
    masked = streaming_hsic(z, s, estimator="unbiased", row_weights=kept.double(), **options)
    assert float(masked.detach()) == pytest.approx(float(subset[0]), rel=1e-11)
    (gradient,) = torch.autograd.grad(masked, z)
    torch.testing.assert_close(gradient[kept], subset[1], rtol=1e-9, atol=1e-14)
    assert not gradient[~kept].any()


def test_large_samples_take_the_fused_kernels_and_chunks_do_not() -> None:
    z, s = samples(5000, 6, 1, torch.float32)
    assert float(hsic(z, s)) == pytest.approx(float(hsic(z, s, chunk_size=1024)), rel=1e-5)
    assert float(normalized_hsic(z, s)) == pytest.approx(float(normalized_hsic(z, s, chunk_size=1024)), rel=1e-5)
    assert not fused_form(z, s, Linear(), Gaussian(1.0))
    with pytest.raises(ValueError, match="precision"):
        fused_hsic(z, s, precision="half", kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    with pytest.raises(ValueError, match="form"):
        streaming_hsic(z, s, estimator="nothing", kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))


def test_ties_constants_batches_and_strides() -> None:
    z, s = samples(4500, 3, 1, torch.float32)
    ties = hsic(z.round(), s.round())
    assert float(ties) == pytest.approx(float(hsic(z.round().double(), s.round().double())), rel=1e-5)
    assert float(hsic(torch.ones_like(z), s)) == 0.0
    # A tenth has no exact float: its mean differs from it, and what rounding leaves must not become a correlation.
    for value in (1.0, 0.1, 1e5 / 3):
        constant = torch.full_like(z, value, requires_grad=True)
        found = normalized_hsic(constant, s)
        assert float(found.detach()) == 0.0
        assert not torch.autograd.grad(found, constant)[0].any()
    stacked = hsic(torch.stack([z, 2.0 * z]), s)
    torch.testing.assert_close(stacked, torch.stack([hsic(z, s), hsic(2.0 * z, s)]))
    strided = torch.stack([z, z], dim=-1)[..., 0]
    torch.testing.assert_close(hsic(strided, s), hsic(z, s))
