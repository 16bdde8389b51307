"""COCO and the singular values of the cross-covariance operator, against plain eigenvalue problems."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from frhsic_core.joint.coco import coco, cross_covariance_spectrum
from frhsic_core.joint.hsic import hsic
from frhsic_core.kernels import Distance, Gaussian, Laplacian, Linear

UNIT = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}


def sample(seed: int, n: int = 15, d: int = 2, batch: tuple[int, ...] = ()) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(*batch, n, d, generator=g, dtype=torch.float64)
    return z, torch.randn(*batch, n, 1, generator=g, dtype=torch.float64) + z[..., :1] ** 2


def brute_force(z: torch.Tensor, s: torch.Tensor, kernel_z, kernel_s) -> np.ndarray:
    n = len(z)
    h = np.eye(n) - np.ones((n, n)) / n
    product = h @ kernel_z(z).numpy() @ h @ kernel_s(s).numpy() @ h / n**2
    return np.sqrt(np.sort(np.linalg.eigvals(product).real.clip(0))[::-1])


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(1.0), Linear(), Distance()], ids=repr)
def test_equals_the_root_of_the_largest_eigenvalue(kernel) -> None:
    z, s = sample(0)
    reference = brute_force(z, s, kernel, kernel)
    assert coco(z, s, kernel_z=kernel, kernel_s=kernel).item() == pytest.approx(reference[0], rel=1e-10)
    spectrum = cross_covariance_spectrum(z, s, kernel_z=kernel, kernel_s=kernel)
    np.testing.assert_allclose(spectrum.numpy(), reference, atol=1e-7)  # roots of eigenvalues of size 1e-16


def test_linear_kernels_give_the_singular_values_of_the_cross_covariance_matrix() -> None:
    g = torch.Generator().manual_seed(1)
    z = torch.randn(40, 3, generator=g, dtype=torch.float64)
    s = torch.randn(40, 2, generator=g, dtype=torch.float64) + z[:, :2]
    covariance = np.cov(z.numpy().T, s.numpy().T, bias=True)[:3, 3:]
    spectrum = cross_covariance_spectrum(z, s, kernel_z=Linear(), kernel_s=Linear())
    np.testing.assert_allclose(spectrum[:2].numpy(), np.linalg.svd(covariance)[1], rtol=1e-12)
    assert spectrum[2:].abs().max() < 1e-12


def test_no_pair_of_unit_functions_has_a_larger_covariance() -> None:
    z, s = sample(2)
    value = coco(z, s, **UNIT)
    k, l = UNIT["kernel_z"](z), UNIT["kernel_s"](s)
    g = torch.Generator().manual_seed(3)
    a, b = torch.randn(2, 2000, 15, generator=g, dtype=torch.float64)
    f, h = a @ k, b @ l
    norms = ((f * a).sum(-1) * (h * b).sum(-1)).sqrt()
    covariance = ((f - f.mean(-1, keepdim=True)) * h).mean(-1).abs() / norms
    assert covariance.max() <= value


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=12))
def test_squares_sum_to_hsic_and_the_first_bounds_it(values) -> None:
    z = torch.tensor([[float(a)] for a, _ in values], dtype=torch.float64)
    s = torch.tensor([[float(b)] for _, b in values], dtype=torch.float64)
    spectrum = cross_covariance_spectrum(z, s)
    total = hsic(z, s).item()
    assert spectrum.shape == (len(values),)
    assert (spectrum[:-1] >= spectrum[1:]).all()
    assert spectrum.square().sum().item() == pytest.approx(total, abs=1e-12)
    assert coco(z, s).item() == spectrum[0].item()
    assert coco(z, s).item() == pytest.approx(coco(s, z).item(), abs=1e-9)


def test_batch_equals_loop() -> None:
    z, s = sample(4, batch=(2, 3))
    value = coco(z, s)
    assert value.shape == (2, 3)
    assert cross_covariance_spectrum(z, s).shape == (2, 3, 15)
    for i in range(2):
        for j in range(3):
            assert coco(z[i, j], s[i, j]).item() == pytest.approx(value[i, j].item(), rel=1e-12)
    assert coco(z, s[0, 0]).shape == (2, 3)
    assert coco(z.float(), s.float()).dtype == torch.float32


def test_gradient_with_repeated_rows() -> None:
    z, s = sample(5, n=8)
    z[3], z[5] = z[1], z[1]
    s = (3 * s).round() / 3
    z.requires_grad_()
    s.requires_grad_()
    assert gradcheck(lambda a, b: coco(a, b, **UNIT), (z, s))
    assert gradcheck(lambda a, b: cross_covariance_spectrum(a, b, **UNIT)[:2], (z, s))


def test_gradient_of_the_summed_squares_is_that_of_hsic() -> None:
    z, s = sample(6, n=20)
    z[4] = z[2]
    z.requires_grad_()
    (mine,) = torch.autograd.grad(cross_covariance_spectrum(z, s, **UNIT).square().sum(), z)
    (other,) = torch.autograd.grad(hsic(z, s, **UNIT), z)
    torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-12)


def test_a_constant_gives_zero_and_a_finite_gradient() -> None:
    ages = torch.tensor([30.0, 41, 41, 52, 60], dtype=torch.float64)
    constant = torch.full((5, 2), 0.3, dtype=torch.float64, requires_grad=True)
    for kernel in (None, Linear(), Distance()):
        value = coco(constant, ages, kernel_z=kernel)
        (gradient,) = torch.autograd.grad(value, constant)
        assert value.item() == 0
        assert torch.equal(gradient, torch.zeros_like(gradient))
        assert coco(ages, constant.detach(), kernel_s=kernel).item() == 0


def test_bad_input_is_named() -> None:
    z, s = sample(7)
    with pytest.raises(TypeError, match="kernel"):
        coco(z, s, kernel_z=1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"s has 14 rows but z has 15"):
        cross_covariance_spectrum(z, s[:14])
