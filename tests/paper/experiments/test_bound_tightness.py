"""Tightness of Theorem 4.7 on trained models, and the smallest eigenvalue against the bandwidth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from frhsic_core.kernels import Gaussian
from frhsic_core.paper.experiments import bound_tightness
from frhsic_core.paper.experiments.bound_tightness import (
    bound_curves,
    exact_matrix,
    float_eigenvalues,
    gap_of_heads,
    head_table,
    scaling_table,
    smallest_enclosed,
    tightness_table,
    with_bounds,
)
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.statements.parity_gap import compare_bounds


@pytest.fixture(scope="module")
def sample() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    s = torch.rand(160, generator=generator, dtype=torch.float64).mul(25).round() / 25
    noise = torch.randn(160, 2, generator=generator, dtype=torch.float64)
    return torch.stack([s + 0.3 * noise[:, 0], noise[:, 1]], dim=-1), s


def test_sides_of_the_theorem_for_one_sample(sample) -> None:
    z, s = sample
    found = gap_of_heads(z, z[:, 0], s, sigma_z=1.0)
    other = compare_bounds(z, s, anchors=z[:64], kernel_z=Gaussian(1.0))
    for name in ("left", "projected", "weighted", "hsic", "coco_squared", "best_hsic", "best_coco"):
        assert found[name] == pytest.approx(other[name], rel=1e-8), name
    assert found["kept_64"] == other["kept"]
    assert found["hsic"] / found["smallest_64"] == pytest.approx(other["printed"], rel=1e-6)
    assert found["projected"] < found["grouped"] < found["left"] < found["left_max"]
    bounds = [found["hsic"] / found[f"eigenvalue_{m}"] for m in range(1, int(found["kept_64"]) + 1)]
    assert found["informative_hsic"] == sum(bound < found["left"] for bound in bounds)
    assert found["informative_coco"] >= found["informative_hsic"]


def test_smoke_run_end_to_end(tmp_path) -> None:
    plan = bound_tightness.plan("smoke")
    store = ResultStore(tmp_path, plan.name)
    report = run_experiment(plan, store, device="cpu")
    assert not report.failed
    rows = store.read()
    assert len(rows) == 8
    found = with_bounds(rows, kernel="median")
    assert (found["projected"] <= found["right_64"]).all()
    assert (found["right_coco"] <= found["right_64"]).all()
    table = tightness_table(rows)
    assert table["violations"].sum() == 0
    assert set(table["splits"]) == {2}
    curves = bound_curves(rows)
    assert (curves["resolved"] <= curves["coco"] * (1 + 1e-5)).all()
    assert (head_table(rows).filter(like="gap") <= 1).all(axis=None)


def test_exact_matrix_has_the_positive_eigenvalues_of_the_whole() -> None:
    """Ties folded into weights: the same eigenvalues as the n × n matrix, where float64 can see them."""
    from flint import ctx

    values = [Fraction(k, 4) for k in (0, 0, 0, 1, 2, 2, 4)]
    before = ctx.prec
    ctx.prec = 200
    matrix = exact_matrix(values, Fraction(1, 2))
    ctx.prec = before
    small = np.array([[float(matrix[i, j]) for j in range(3)] for i in range(3)])
    whole = float_eigenvalues(values, 0.5, single=False)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(small))[::-1], whole[:3], rtol=1e-12)
    assert np.abs(whole[3:]).max() < 1e-15
    low, high = smallest_enclosed(matrix)
    assert low <= np.log10(whole[2]) + 1e-9
    assert high >= np.log10(whole[2]) - 1e-9


def test_enclosure_says_when_the_bits_do_not_suffice() -> None:
    from flint import ctx

    values = [Fraction(k, 39) for k in range(40)]
    before = ctx.prec
    try:
        ctx.prec = 64
        assert np.isnan(smallest_enclosed(exact_matrix(values, Fraction(3)))).any()
        ctx.prec = 1200
        low, high = smallest_enclosed(exact_matrix(values, Fraction(3)))
        assert -200 < low <= high < low + 0.01
    finally:
        ctx.prec = before


def test_scaling_smoke_and_the_theory_modules_enclosure(tmp_path) -> None:
    from frhsic_core.paper.statements.spectral import enclosed_eigenvalues

    study = bound_tightness.plan_bandwidth_scaling("smoke")
    store = ResultStore(tmp_path, study.name)
    assert not run_experiment(study, store, device="cpu").failed
    rows = store.read()
    exact = rows[rows["precision"] == "exact"].iloc[0]
    points = bound_tightness.rational_values("synthetic", "text", 12)
    smallest = enclosed_eigenvalues(points, Fraction(1))[-1]
    assert exact["log10_smallest"] == pytest.approx(float(smallest.log()) / np.log(10), abs=1e-3)
    spectrum = rows[rows["what"] == "spectrum"]
    assert spectrum["log10_exact"].iloc[-1] == pytest.approx(exact["log10_smallest"], abs=1e-3)
    assert len(scaling_table(rows)) == 1
