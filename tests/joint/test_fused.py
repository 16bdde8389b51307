"""The fused GPU kernels against the dense computation in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from frhsic_core import Gaussian, InverseMultiquadric, hsic, normalized_hsic
from frhsic_core.joint.contraction import dependence
from frhsic_core.joint.engines import dense
from frhsic_core.joint.fused import can_fuse, fused_hsic

pytestmark = pytest.mark.cuda
FORMS = {"biased": {}, "unbiased": {"estimator": "unbiased"}}


def samples(n: int, d: int, p: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + d)
    s = torch.randn(n, p, generator=generator, dtype=torch.float64)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.7 * s[:, :1].sin()
    return z.to("cuda", torch.float32), s.to("cuda", torch.float32)


def with_gradient(function: Any, z: Tensor, s: Tensor, **options: Any) -> tuple[float, Tensor]:
    z = z.detach().requires_grad_()
    value = function(z, s, **options)
    return float(value.detach()), torch.autograd.grad(value, z)[0].double()


def require_close(z: Tensor, s: Tensor, function: Any = fused_hsic, **options: Any) -> None:
    """Compare value and gradient with those of whole matrices in float64."""
    weights = options.get("row_weights")
    found = with_gradient(function, z, s, **options)
    expected = with_gradient(
        dependence, z.double(), s.double(), **options | {"row_weights": weights}
    )
    assert found[0] == pytest.approx(expected[0], rel=5e-6)
    assert float((found[1] - expected[1]).norm() / expected[1].norm()) < 5e-5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("n", "d", "p"), [(501, 1, 1), (777, 7, 2), (1025, 50, 1), (640, 128, 3), (513, 250, 1)]
)
def test_value_and_gradient(n: int, d: int, p: int, form: str) -> None:
    z, s = samples(n, d, p)
    options = {"kernel_z": Gaussian(1.3 * d**0.5), "kernel_s": Gaussian(1.0), **FORMS[form]}
    require_close(z, s, **options)
    place = torch.arange(n, device="cuda") % 3
    weights = (place > 0).double() if form == "unbiased" else place.double() / place.sum()
    require_close(z, s, row_weights=weights, **options)


@pytest.mark.parametrize("form", FORMS)
def test_many_rows_have_no_offset(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frhsic_core.joint.fused._MANY_ROWS", 1000)
    monkeypatch.setattr("frhsic_core.joint.fused._ROWS_AT_ONCE", 512)
    require_close(
        *samples(3001, 5, 1), kernel_z=Gaussian(3.0), kernel_s=Gaussian(1.0), **FORMS[form]
    )


@pytest.mark.parametrize("factor", [1e-3, 1e-1, 10.0, 100.0])
def test_bandwidths_far_from_the_median(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a kernel leaves the range of float16 or of float32, blocks in float64 serve."""
    monkeypatch.setattr(dense, "DENSE_ROWS", 0)
    z, s = samples(900, 5, 1)
    options = {"kernel_z": Gaussian(3.0 * factor), "kernel_s": Gaussian(1.0 * factor)}
    expected = dependence(z.double(), s.double(), **options)
    assert float(hsic(z, s, **options)) == pytest.approx(float(expected), rel=2e-5)
    assert fused_hsic(z, s, **options) is None or factor == 1e-1


def test_what_takes_the_fused_kernels() -> None:
    z, s = samples(5000, 6, 1)
    both = {"kernel_z": Gaussian(3.0), "kernel_s": Gaussian(1.0)}
    assert can_fuse(z, s, *both.values())
    for other in (
        (z.double(), s.double(), *both.values()),
        (z, s, InverseMultiquadric(1.0), Gaussian(1.0)),
        (z, s, Gaussian(1.0), Gaussian(torch.tensor(1.0, requires_grad=True))),
        (z, s.clone().requires_grad_(), *both.values()),
        (z.repeat(1, 42), s, *both.values()),
    ):
        assert not can_fuse(*other)
    assert float(hsic(z, s, **both)) == pytest.approx(
        float(hsic(z.double(), s.double(), **both)), rel=1e-5
    )


def test_ties_constants_batches_and_strides() -> None:
    z, s = samples(4500, 3, 1)
    ties = hsic(z.round(), s.round())
    assert float(ties) == pytest.approx(
        float(hsic(z.round().double(), s.round().double())), rel=1e-5
    )
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
