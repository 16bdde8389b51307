"""COCO and kernel HGR against plain and generalized eigenvalue problems, and the inequality of Proposition C.1."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import with_squares
from torch.autograd import gradcheck

from frhsic_core.joint import coco, hsic, khgr
from frhsic_core.kernels import Distance, Gaussian, InverseMultiquadric, Laplacian, Linear

UNIT = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}


def generalised_eigenproblem(k: np.ndarray, l: np.ndarray, ridge_z: float, ridge_s: float) -> float:
    """Maximise αᵀKHLβ/n subject to ‖f‖²-regularised unit variances; coefficients on all n kernel functions."""
    n = len(k)
    h = np.eye(n) - np.ones((n, n)) / n
    k, l = h @ k @ h, h @ l @ h
    cross = k @ l / n
    variance_z, variance_s = k @ k / n + ridge_z * k, l @ l / n + ridge_s * l
    zero = np.zeros((n, n))
    left = np.block([[zero, cross], [cross.T, zero]])
    right = np.block([[variance_z, zero], [zero, variance_s]])
    # The constraint matrix is singular along functions that vanish on the sample; a tiny multiple of I removes them.
    return float(scipy.linalg.eigh(left, right + 1e-12 * np.eye(2 * n), eigvals_only=True)[-1])


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(1.0), Linear(), Distance()], ids=repr)
def test_coco_is_the_root_of_the_largest_eigenvalue(kernel) -> None:
    z, s = with_squares(0, n=15, d=2)
    h = np.eye(15) - np.ones((15, 15)) / 15
    product = h @ kernel(z).numpy() @ h @ kernel(s).numpy() @ h / 15**2
    found = coco(z, s, kernel_z=kernel, kernel_s=kernel)
    assert found.item() == pytest.approx(np.linalg.eigvals(product).real.max() ** 0.5, rel=1e-10)


@pytest.mark.parametrize("ridge", [(0.1, 0.1), (0.01, 0.3), (1.0, 0.02)])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), InverseMultiquadric(0.5)], ids=repr)
def test_equals_the_generalised_eigenproblem(kernel, ridge: tuple[float, float]) -> None:
    z, s = with_squares(0, n=12, d=2)
    reference = generalised_eigenproblem(kernel(z).numpy(), kernel(s).numpy(), *ridge)
    value = khgr(z, s, ridge=ridge, kernel_z=kernel, kernel_s=kernel)
    assert value.item() == pytest.approx(reference, abs=1e-7)


@given(
    values=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=10),
    ridge_z=st.floats(1e-4, 10),
    ridge_s=st.floats(1e-4, 10),
    kernel=st.sampled_from([Gaussian(0.5), Gaussian(3.0), Linear(), Distance()]),
)
def test_proposition_c1_holds_for_every_sample_and_kernel(values, ridge_z, ridge_s, kernel) -> None:
    z = torch.tensor([[float(a)] for a, _ in values], dtype=torch.float64)
    s = torch.tensor([[float(b)] for _, b in values], dtype=torch.float64)
    kernels = {"kernel_z": kernel, "kernel_s": kernel}
    value = khgr(z, s, ridge=(ridge_z, ridge_s), **kernels).item()
    largest = coco(z, s, **kernels).item() ** 2
    assert 0 <= value < 1
    assert value**2 <= largest / (ridge_z * ridge_s) + 1e-12
    assert largest <= hsic(z, s, **kernels).item() + 1e-12
    assert coco(s, z, **kernels).item() ** 2 == pytest.approx(largest, abs=1e-9)


def test_limits_of_the_ridge() -> None:
    z, s = with_squares(3, n=12, d=2)
    independent = torch.randn(
        12, 1, generator=torch.Generator().manual_seed(4), dtype=torch.float64
    )
    assert 0.999 < khgr(z, independent, ridge=1e-9, **UNIT) < 1  # one for every sample without ties
    ratio = khgr(z, s, ridge=1e6, **UNIT) * 1e6 / coco(z, s, **UNIT)
    assert ratio.item() == pytest.approx(1.0, abs=1e-5)


BOTH = pytest.mark.parametrize(
    "norm", [coco, partial(khgr, ridge=(0.1, 0.02))], ids=["coco", "khgr"]
)


@BOTH
def test_batch_equals_loop(norm) -> None:
    z, s = with_squares(5, n=12, d=2, batch=(2, 3))
    value = norm(z, s)
    assert value.shape == norm(z, s[0, 0]).shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert norm(z[i, j], s[i, j]).item() == pytest.approx(value[i, j].item(), rel=1e-11)
    assert norm(z.float(), s.float()).dtype == torch.float32


@BOTH
def test_gradient_with_repeated_rows(norm) -> None:
    z, s = with_squares(6, n=8, d=2)
    z[3], z[5] = z[1], z[1]
    s = s.round()
    z.requires_grad_()
    s.requires_grad_()
    assert gradcheck(lambda a, b: norm(a, b, **UNIT), (z, s))


@BOTH
def test_a_constant_gives_zero_and_a_finite_gradient(norm) -> None:
    ages = torch.tensor([30.0, 41, 41, 52, 60], dtype=torch.float64)
    constant = torch.full((5, 2), 0.3, dtype=torch.float64, requires_grad=True)
    for kernel in (None, Linear(), Distance()):
        value = norm(constant, ages, kernel_z=kernel)
        (gradient,) = torch.autograd.grad(value, constant)
        assert value.item() == 0
        assert torch.equal(gradient, torch.zeros_like(gradient))
        assert norm(ages, constant.detach(), kernel_s=kernel).item() == 0
