"""HSIC against sums over 4-tuples and all pairings, several attributes, and gradients at ties.

The comparison of all forms and paths with their definition is in test_forms.py. The table at the end has the messages
of all statistics of the joint distribution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from samples import correlated, normal, with_squares

from frhsic_core import (
    Gaussian,
    HSICLoss,
    InverseMultiquadric,
    Laplacian,
    Linear,
    MultiScale,
    Product,
    coco,
    distance_correlation,
    hsic,
    hsic_test,
    khgr,
    median_bandwidth,
    mutual_information,
    normalized_hsic,
)
from frhsic_core.joint import conditional_hsic
from frhsic_core.kernels import median_distance

KERNELS = {
    "gaussian": Gaussian(0.8),
    "multi_scale": MultiScale(0.8),
    "laplacian": Laplacian(0.8),
    "imq": InverseMultiquadric(0.8),
    "linear": Linear(),
}


def tuple_hsic(K: torch.Tensor, L: torch.Tensor) -> float:
    """U-statistic over all ordered 4-tuples of distinct indices: K_ij (L_ij + L_qr − 2 L_iq)."""
    n = K.shape[-1]
    total = sum(
        (K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q])).item()
        for i, j, q, r in itertools.permutations(range(n), 4)
    )
    return total / math.perm(n, 4)


@pytest.mark.parametrize("n", [4, 5, 8])
def test_unbiased_is_the_u_statistic_over_4_tuples(n: int) -> None:
    z, s = correlated(1, n, 0.7, 2)
    value = hsic(z, s, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0), estimator="unbiased")
    assert value.item() == pytest.approx(
        tuple_hsic(Gaussian(1.0)(z), Gaussian(1.0)(s)), rel=1e-10, abs=1e-14
    )


def test_several_attributes() -> None:
    z, s = with_squares(1, 30, 3, 3)
    kernel = Product([Gaussian(median_bandwidth(s[:, a])) for a in range(3)])
    torch.testing.assert_close(hsic(z, s, kernel_s="product"), hsic(z, s, kernel_s=kernel))
    # Two fair coins and their exclusive or: each attribute alone is independent of Z, the pair determines it.
    coins = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)), dtype=torch.float64).repeat(
        10, 1
    )
    xor = (coins[:, 0] != coins[:, 1]).double()
    assert [hsic(xor, coins[:, a]).item() for a in range(2)] == pytest.approx([0.0, 0.0], abs=1e-15)
    assert hsic(xor, coins, kernel_s="product").item() > 0.005
    assert hsic(xor, coins).item() > 0.005


@pytest.mark.parametrize("form", ["biased", "unbiased", "normalized"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("case", ["repeated rows", "constant"])
def test_gradients_at_ties(form: str, name: str, case: str) -> None:
    """They are those of a smooth function, and finite at the kink of the ℓ₁ distance; that of a constant is zero."""
    z, s = correlated(1, 9, 0.7, 2)
    z[5:] = z[0]
    if case == "constant":
        z[:] = 1.0
    z.requires_grad_()

    def value(a: torch.Tensor) -> torch.Tensor:
        kernels = {"kernel_z": KERNELS[name], "kernel_s": Gaussian(1.0)}
        return (
            normalized_hsic(a, s, **kernels)
            if form == "normalized"
            else hsic(a, s, estimator=form, **kernels)
        )

    (gradient,) = torch.autograd.grad(value(z), z)
    assert gradient.isfinite().all()
    if case == "constant":
        assert gradient.abs().max() < 1e-12 or (name, form) == ("linear", "unbiased")
    elif name != "laplacian":
        assert torch.autograd.gradcheck(value, (z,))


def test_float32_is_close_to_float64() -> None:
    z, s = correlated(1, 256, 0.7, 50)
    for estimator in ("biased", "unbiased"):
        exact = hsic(z, s, estimator=estimator)
        assert (
            abs(hsic(z.float(), s.float(), estimator=estimator) - exact).item() < 1e-7
        )  # of about 1e-3
    # Sums of millions of squares: float32 keeps 24 bits of each, and must not lose them one by one.
    z, s = correlated(1, 3000, 0.7, 2)
    k, l = (Gaussian(1.0)(x).numpy() for x in (z, s))
    k, l = (gram - gram.mean(0) - gram.mean(1, keepdims=True) + gram.mean() for gram in (k, l))
    expected = np.vdot(k, l) / np.sqrt(np.vdot(k, k) * np.vdot(l, l))
    found = normalized_hsic(z.float(), s.float(), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_loss() -> None:
    z, s = correlated(1, 20, 0.7, 2)
    torch.testing.assert_close(HSICLoss(3.0)(z, s), 3 * hsic(z, s))
    assert "lam=3" in repr(HSICLoss(3.0))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("gaussian", Gaussian), ("laplacian", Laplacian), ("imq", InverseMultiquadric)],
)
def test_a_kernel_may_be_given_by_name(name: str, kind: type) -> None:
    z, s = correlated(1, 12, 0.7, 2)
    power = 1 if kind is Laplacian else 2
    kernels = [kind(median_distance(x, power=power)) for x in (z, s)]
    for statistic in (hsic, normalized_hsic):
        expected = statistic(z, s, kernel_z=kernels[0], kernel_s=kernels[1])
        torch.testing.assert_close(statistic(z, s, kernel_z=name, kernel_s=name), expected)


SIX = np.arange(6.0)
PAIRS = [0, 0, 1, 1, 2, 2]
MISTAKES: list[tuple[Callable[..., Any], dict[str, Any], type[Exception], str]] = [
    (hsic, {"estimator": "best"}, ValueError, "estimator is 'best': choose one of biased, unbiased"),
    (hsic, {"mask": SIX < 2, "estimator": "unbiased"}, ValueError, "mask keeps 2 rows: .*needs at least 4"),
    (hsic, {"mask": SIX < 0}, ValueError, "mask keeps no row"),
    (hsic, {"kernel_z": 1.0}, TypeError, "pass a kernel such as Gaussian"),
    (lambda z, s: HSICLoss(-1), {}, ValueError, "lam is -1"),
    (lambda z, s: HSICLoss("auto"), {}, TypeError, r"lam is 'auto'.*FairClassifier"),
    (lambda z, s: HSICLoss(1, estimator="best"), {}, ValueError, "biased, unbiased, normalized"),
    (conditional_hsic, {"given": PAIRS, "estimator": "both"}, ValueError, "estimator"),
    (conditional_hsic, {"given": PAIRS[:4]}, ValueError, "given has 4 rows"),
    (hsic_test, {"method": "auto"}, ValueError, "method is 'auto'"),
    (hsic_test, {"alpha": 5}, ValueError, "alpha is 5: a level lies strictly between 0 and 1"),
    (hsic_test, {"method": "permutation", "n_permutations": 0}, ValueError, "n_permutations"),
    (lambda z, s: hsic_test(z[:3], s[:3], method="spectral"), {}, ValueError, "z has 3 rows: at least 4 are needed"),
    (hsic_test, {"clusters": PAIRS}, ValueError, "clusters needs permutations"),
    (hsic_test, {"clusters": PAIRS[:3], "method": "permutation"}, ValueError, "clusters has shape"),
    (hsic_test, {"clusters": [0, 0, 0, 1, 1, 2], "method": "permutation"}, ValueError, "nothing to exchange"),
    (hsic_test, {"clusters": PAIRS, "given": list("ababab")}, ValueError, "given varies"),
    (hsic_test, {"clusters": PAIRS, "given": SIX, "method": "aggregated"}, ValueError, "discrete given"),
    (hsic_test, {"given": ["a", None] * 3}, ValueError, "missing"),
    (hsic_test, {"given": [*SIX[:5], np.inf]}, ValueError, "infinite"),
    (hsic_test, {"given": ["a", "b"]}, ValueError, "given has 2 rows but z has 6"),
    (hsic_test, {"given": np.zeros((6, 0))}, ValueError, "no columns"),
    (hsic_test, {"given": list("abcdef")}, ValueError, "nothing can be compared"),
    (distance_correlation, {"estimator": "unbiased"}, ValueError, "has no root; pass squared=True"),
    (distance_correlation, {"estimator": "plain"}, ValueError, "estimator is 'plain': choose one of biased, unbiased"),
    (lambda z, s: distance_correlation(z[:3], s[:3], squared=True, estimator="unbiased"), {}, ValueError,
     "z has 3 rows: at least 4 are needed"),
    (mutual_information, {"k": 6}, ValueError, "k is 6 but there are 6 rows: k must lie between 1 and 5"),
    (mutual_information, {"k": 0}, ValueError, "k is 0 but there are 6 rows"),
    *((khgr, {"ridge": ridge}, ValueError, "must be positive; without regularisation the sample kHGR is one")
      for ridge in (0.0, -1.0, float("nan"), (0.1, 0.0))),
    (khgr, {"ridge": (1.0, 1.0, 1.0)}, ValueError, "ridge has 3 values: pass one positive number, or two"),
    (khgr, {}, TypeError, "ridge"),
    (coco, {"kernel_s": 1.0}, TypeError, r"kernel_s is 1\.0"),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "options", "error", "text"), MISTAKES)
def test_errors_say_what_to_do(
    statistic: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        statistic(SIX, SIX, **options)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "distance"])
@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_several_samples_share_an_attribute(kernel: str, estimator: str) -> None:
    """The value and the gradient of each sample are those that it has alone."""
    z, s = normal(1, 3, 15, 2).requires_grad_(), normal(2, 15, 1)
    values = hsic(z, s, kernel_z=kernel, estimator=estimator)
    (together,) = torch.autograd.grad(values.sum(), z)
    for i in range(3):
        value = hsic(z[i], s, kernel_z=kernel, estimator=estimator)
        torch.testing.assert_close(values[i], value)
        torch.testing.assert_close(together[i], torch.autograd.grad(value, z)[0][i])
