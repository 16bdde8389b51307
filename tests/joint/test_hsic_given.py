"""HSIC given a third variable: brute-force references, gradients, and what is zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from samples import normal

from frhsic_core import Gaussian, hsic, normalized_hsic
from frhsic_core.joint import conditional_hsic
from frhsic_core.joint.given import RIDGE, group_operator, smooth_operator

KERNELS = {"kernel_z": Gaussian(1.2), "kernel_s": Gaussian(0.7)}
LABELS = torch.tensor([0, 1, 2] * 5 + [0, 0, 1])
NAMES = [f"group {label}" for label in LABELS.tolist()]  # whole numbers would be numbers
Z, S = normal(1, 18, 2), normal(2, 18, 1)


def test_what_depends_on_the_label_alone_is_zero() -> None:
    constant = LABELS.double()
    for form in ("biased", "normalized"):
        assert conditional_hsic(constant, S, NAMES, estimator=form).item() == pytest.approx(
            0.0, abs=1e-12
        )
    assert hsic(constant, LABELS.double()).item() > 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_a_continuous_variable_gives_ridge_residuals(weighted: bool) -> None:
    """The operator against matrices: residuals of a weighted ridge regression, from its normal equations."""
    features, local = normal(4, 9, 3), Gaussian(1.0)(normal(5, 9, 1))
    p = normal(6, 9).abs() if weighted else torch.ones(9, dtype=torch.float64)
    p = p / p.sum()
    k, l = Gaussian(1.0)(normal(7, 9, 2)), Gaussian(1.0)(normal(8, 9, 1))
    f = (features - p @ features).numpy()
    w = np.diag(p.numpy())
    smoother = f @ np.linalg.inv(f.T @ w @ f + RIDGE * np.eye(3)) @ f.T @ w
    residual = np.eye(9) - np.outer(np.ones(9), p) - smoother
    left, right = residual @ k.numpy() @ residual.T, residual @ l.numpy() @ residual.T
    expected = np.einsum("ij,ij,ij,i,j", left, right, local.numpy(), p.numpy(), p.numpy())
    operator = smooth_operator(features, local, p if weighted else None)
    assert (k * operator(l)).sum().item() == pytest.approx(expected)
    assert (l * operator(k)).sum().item() == pytest.approx(expected)


def test_a_common_cause_is_taken_out() -> None:
    """Z and S follow C; given C they are independent, and dependent where S has a part of Z's own noise."""
    c, e = normal(9, 300), normal(10, 300)
    z, s = c + 0.3 * e, c + 0.3 * normal(11, 300)
    plain = normalized_hsic(z, s)
    given = conditional_hsic(z, s, c, estimator="normalized")
    own = conditional_hsic(z, c + 0.3 * e, c, estimator="normalized")
    assert given < 0.1 < 0.5 < plain
    assert own > 0.9


@pytest.mark.parametrize("form", ["biased", "normalized"])
@pytest.mark.parametrize("given", ["labels", "numbers", "both"])
def test_gradient(form: str, given: str) -> None:
    number = normal(12, 18)
    table = pd.DataFrame({"label": LABELS.numpy() % 2, "number": number.numpy()})
    c = {"labels": NAMES, "numbers": number, "both": table}[given]
    z = Z.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: conditional_hsic(x, S, c, estimator=form, **KERNELS), (z,)
    )


def test_batches_are_loops() -> None:
    z, s = normal(13, 3, 18, 2), normal(14, 3, 18, 1)
    for c in (NAMES, normal(15, 18)):
        together = conditional_hsic(z, s, c, estimator="normalized", **KERNELS)
        alone = [
            conditional_hsic(z[i], s[i], c, estimator="normalized", **KERNELS) for i in range(3)
        ]
        torch.testing.assert_close(together, torch.stack(alone))


def test_small_groups_do_not_count() -> None:
    gram_z, gram_s = Gaussian(1.0)(Z), Gaussian(1.0)(S)
    codes = torch.tensor([0] * 15 + [1] * 3)
    alone = (gram_z[:15, :15] * group_operator(codes[:15])(gram_s[:15, :15])).sum()
    found = (gram_z * group_operator(codes, minimum_rows=4)(gram_s)).sum()
    assert found.item() == pytest.approx(15 / 18 * alone.item())
