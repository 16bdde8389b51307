"""Proposition C.1: against explicit operators, with both sides, and with broken versions caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from frhsic_core.kernels import Gaussian, Linear
from frhsic_core.paper.statements import khgr as theory
from frhsic_core.paper.statements.search import worst_excess


def test_linear_kernels_against_explicit_covariance_matrices(generator: torch.Generator) -> None:
    z = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    s = z[:, :2] + torch.randn(20, 2, generator=generator, dtype=torch.float64)
    ridge = (0.3, 0.05)
    found = theory.sandwich(z, s, ridge=ridge, kernel_z=Linear(), kernel_s=Linear())
    zc, sc = z - z.mean(0), s - s.mean(0)
    zz, ss, zs = zc.T @ zc / 20, sc.T @ sc / 20, zc.T @ sc / 20

    def inverse_root(matrix: torch.Tensor, eta: float) -> torch.Tensor:
        values, vectors = torch.linalg.eigh(matrix)
        return vectors @ torch.diag((values + eta).rsqrt()) @ vectors.T

    operator = inverse_root(zz, ridge[0]) @ zs @ inverse_root(ss, ridge[1])
    assert torch.allclose(found.squared, torch.linalg.matrix_norm(operator, 2) ** 2)
    assert torch.allclose(found.hsic, zs.square().sum())
    assert torch.allclose(found.coco_squared, torch.linalg.matrix_norm(zs, 2) ** 2)
    norms = [
        torch.linalg.matrix_norm(matrix, 2) + eta
        for matrix, eta in zip((zz, ss), ridge, strict=True)
    ]
    assert torch.allclose(found.norms, norms[0] * norms[1])
    assert found.ridges == ridge[0] * ridge[1]
    assert found.ranks >= 2  # rounding may add to the count, never take away


# Which member of the sandwich is changed by which factor, so that a step fails.
CHANGES = {
    "kHGR squared is at most HSIC over the product of the ridges": ("hsic", 0.99),
    "kHGR squared is at most COCO squared over the product of the ridges": ("coco_squared", 0.99),
    "kHGR squared is at least COCO squared over (norm + ridge)(norm + ridge)": (
        "coco_squared",
        1.2,
    ),
    "COCO squared is at least HSIC over the rank": ("coco_squared", 0.99),
    "kHGR is below one": ("squared", 1.01),
}


def worst_of(steps: dict[str, theory.Step]) -> dict[str, float]:
    """Return the largest excess of each step over random samples."""
    at_every_ridge = {name: theory.at_every_ridge(step) for name, step in steps.items()}
    return worst_excess(at_every_ridge, prepare=theory.every_ridge, instances=480, random_state=3)


def test_every_step_holds() -> None:
    for name, excess in worst_of(theory.STEPS).items():
        assert -1.0 < excess < 1e-12, name


@pytest.mark.parametrize("name", theory.STEPS)
def test_every_broken_version_is_caught(name: str) -> None:
    member, factor = CHANGES[name]

    def broken(found: theory.Sandwich) -> torch.Tensor:
        changed = replace(found, **{member: factor * getattr(found, member)})
        return theory.STEPS[name](changed)

    assert 1e-9 < worst_of({name: broken})[name] < float("inf")


def test_the_rank_bound_is_attained_by_equal_singular_values() -> None:
    """Distinct points far apart, Z = S: all r = n − 1 singular values are equal."""
    z = torch.arange(5, dtype=torch.float64).unsqueeze(-1)
    found = theory.sandwich(
        z, z, ridge=(0.1, 0.1), kernel_z=Gaussian(0.01), kernel_s=Gaussian(0.01)
    )
    assert found.ranks == 4
    assert theory.STEPS["COCO squared is at least HSIC over the rank"](found) == pytest.approx(
        0.0, abs=1e-14
    )
    assert found.hsic == pytest.approx(4 / 25)
