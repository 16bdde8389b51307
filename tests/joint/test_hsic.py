"""HSIC against sums over 4-tuples and all pairings, several attributes, gradients at ties, input and messages.

The comparison of all forms and paths with their definition is in test_forms.py.
"""

from __future__ import annotations

import itertools
import math
from typing import cast

import numpy as np
import pytest
import torch

from frhsic_core import (
    Gaussian,
    HSICLoss,
    InverseMultiquadric,
    Laplacian,
    Linear,
    MultiScale,
    Product,
    hsic,
    median_bandwidth,
    normalized_hsic,
)
from frhsic_core.kernels import median_distance

KERNELS = {
    "gaussian": Gaussian(0.8),
    "multi_scale": MultiScale(0.8),
    "laplacian": Laplacian(0.8),
    "imq": InverseMultiquadric(0.8),
    "linear": Linear(),
}


def draw(generator: torch.Generator, n: int, d: int = 2, p: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    s = torch.randn(n, p, generator=generator, dtype=torch.float64) + z[:, :1]
    return z, s


def tuple_hsic(K: torch.Tensor, L: torch.Tensor) -> float:
    """U-statistic over all ordered 4-tuples of distinct indices: K_ij (L_ij + L_qr − 2 L_iq)."""
    n = K.shape[-1]
    total = sum(
        (K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q])).item() for i, j, q, r in itertools.permutations(range(n), 4)
    )
    return total / math.perm(n, 4)


@pytest.mark.parametrize("n", [4, 5, 8])
def test_unbiased_is_the_u_statistic_over_4_tuples(n: int, generator: torch.Generator) -> None:
    z, s = draw(generator, n)
    value = hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), estimator="unbiased")
    assert value.item() == pytest.approx(tuple_hsic(Gaussian(1.0)(z), Gaussian(1.0)(s)), rel=1e-10, abs=1e-14)


def test_several_attributes(generator: torch.Generator) -> None:
    z, s = draw(generator, 30, 2, 3)
    kernel = Product([Gaussian(median_bandwidth(s[:, a])) for a in range(3)])
    torch.testing.assert_close(hsic(z, s, kernel_s="product"), hsic(z, s, kernel_s=kernel))
    # Two fair coins and their exclusive or: each attribute alone is independent of Z, the pair determines it.
    coins = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)), dtype=torch.float64).repeat(10, 1)
    xor = (coins[:, 0] != coins[:, 1]).double()
    assert [hsic(xor, coins[:, a]).item() for a in range(2)] == pytest.approx([0.0, 0.0], abs=1e-15)
    assert hsic(xor, coins, kernel_s="product").item() > 0.005
    assert hsic(xor, coins).item() > 0.005


@pytest.mark.parametrize("form", ["biased", "unbiased", "normalized"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("case", ["repeated rows", "constant"])
def test_gradients_at_ties(form: str, name: str, case: str, generator: torch.Generator) -> None:
    """They are those of a smooth function, and finite at the kink of the ℓ₁ distance; that of a constant is zero."""
    z, s = draw(generator, 9)
    z[5:] = z[0]
    if case == "constant":
        z[:] = 1.0
    z.requires_grad_()

    def value(a: torch.Tensor) -> torch.Tensor:
        kernels = {"kernel_z": KERNELS[name], "kernel_s": Gaussian(1.0)}
        return normalized_hsic(a, s, **kernels) if form == "normalized" else hsic(a, s, estimator=form, **kernels)

    (gradient,) = torch.autograd.grad(value(z), z)
    assert gradient.isfinite().all()
    if case == "constant":
        assert gradient.abs().max() < 1e-12 or (name, form) == ("linear", "unbiased")
    elif name != "laplacian":
        assert torch.autograd.gradcheck(value, (z,))


def test_float32_is_close_to_float64(generator: torch.Generator) -> None:
    z, s = draw(generator, 256, 50)
    for estimator in ("biased", "unbiased"):
        exact = hsic(z, s, estimator=estimator)
        assert abs(hsic(z.float(), s.float(), estimator=estimator) - exact).item() < 1e-7  # of about 1e-3
    # Sums of millions of squares: float32 keeps 24 bits of each, and must not lose them one by one.
    z, s = draw(generator, 3000)
    k, l = (Gaussian(1.0)(x).numpy() for x in (z, s))
    k, l = (gram - gram.mean(0) - gram.mean(1, keepdims=True) + gram.mean() for gram in (k, l))
    expected = np.vdot(k, l) / np.sqrt(np.vdot(k, k) * np.vdot(l, l))
    found = normalized_hsic(z.float(), s.float(), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_loss(generator: torch.Generator) -> None:
    z, s = draw(generator, 20)
    torch.testing.assert_close(HSICLoss(3.0)(z, s), 3 * hsic(z, s))
    assert "lam=3" in repr(HSICLoss(3.0))
    with pytest.raises(ValueError, match="lam is -1"):
        HSICLoss(-1)
    with pytest.raises(TypeError, match=r"lam is 'auto'.*FairClassifier"):
        HSICLoss(cast(float, "auto"))
    with pytest.raises(ValueError, match="biased, unbiased, normalized"):
        HSICLoss(1, estimator="best")


def test_errors_say_what_to_do() -> None:
    z = np.zeros((5, 1))
    with pytest.raises(ValueError, match="estimator is 'best': choose one of biased, unbiased"):
        hsic(z, z, estimator="best")
    with pytest.raises(ValueError, match="mask keeps 2 rows: the unbiased estimator needs at least 4"):
        hsic(z, z, mask=[1, 1, 0, 0, 0], estimator="unbiased")
    with pytest.raises(ValueError, match="mask keeps no row"):
        hsic(z, z, mask=[0] * 5)
    with pytest.raises(TypeError, match="pass a kernel such as Gaussian"):
        hsic(z, z, kernel_z=1.0)


@pytest.mark.parametrize(
    ("name", "kind"), [("gaussian", Gaussian), ("laplacian", Laplacian), ("imq", InverseMultiquadric)]
)
def test_a_kernel_may_be_given_by_name(name: str, kind: type, generator: torch.Generator) -> None:
    z, s = draw(generator, 12)
    power = 1 if kind is Laplacian else 2
    kernels = [kind(median_distance(x, power=power)) for x in (z, s)]
    for statistic in (hsic, normalized_hsic):
        expected = statistic(z, s, kernel_z=kernels[0], kernel_s=kernels[1])
        torch.testing.assert_close(statistic(z, s, kernel_z=name, kernel_s=name), expected)
