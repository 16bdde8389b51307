"""Tightness of Theorem 4.7 on trained models, and the smallest eigenvalue against the bandwidth."""

from __future__ import annotations

import math

import pytest
import torch

from frhsic_core.kernels import Gaussian, median_bandwidth
from frhsic_core.paper.experiments import bound_tightness
from frhsic_core.paper.experiments.bound_tightness import (
    bound_curves,
    gap_of_heads,
    scaling_table,
    tightness_table,
    with_bounds,
)
from frhsic_core.paper.runs.runner import run_experiment
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.statements.parity_gap import gap_spectrum


@pytest.fixture(scope="module")
def sample() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    s = torch.rand(160, generator=generator, dtype=torch.float64).mul(25).round() / 25
    noise = torch.randn(160, 2, generator=generator, dtype=torch.float64)
    return torch.stack([s + 0.3 * noise[:, 0], noise[:, 1]], dim=-1), s


def test_sides_of_the_theorem_for_one_sample(sample) -> None:
    """Each side is computed again, with explicit projections, for every anchor alone."""
    z, s = sample
    found = gap_of_heads(z, s, sigma_z=1.0)
    n = len(s)
    h = torch.eye(n, dtype=z.dtype) - 1.0 / n
    kernel = Gaussian(median_bandwidth(s[:, None]))
    values, vectors = (part.flip(-1) for part in torch.linalg.eigh(h @ kernel(s[:, None]) @ h / n))
    kept = int((values > 1e-6 * values[0]).sum())
    deltas = h @ Gaussian(1.0)(z, z[:64])
    projected = vectors[:, :kept].T @ deltas
    assert found["kept_64"] == kept
    assert found["left"] == pytest.approx(deltas.square().mean().item(), rel=1e-10)
    assert found["projected"] == pytest.approx((projected.square().sum(0) / n).mean().item(), rel=1e-8)
    assert found["hsic"] == pytest.approx((Gaussian(1.0)(z) @ h @ kernel(s[:, None]) @ h).trace().item() / n**2)
    assert found["projected"] < found["grouped"] < found["left"] < found["left_max"]
    bounds = [found["hsic"] / found[f"eigenvalue_{m}"] for m in range(1, kept + 1)]
    assert found["informative_hsic"] == sum(bound < found["left"] for bound in bounds)
    totals = torch.tensor(bounds)[:, None] + deltas.square().mean(0) - projected.square().cumsum(0) / n
    assert found["best_hsic"] == pytest.approx(totals.amin(0).mean().item(), rel=1e-6)


def test_smoke_run_end_to_end(tmp_path) -> None:
    plan = bound_tightness.plan("smoke")
    store = ResultStore(tmp_path, plan.name)
    report = run_experiment(plan, store, device="cpu")
    assert not report.failed
    rows = store.read()
    assert len(rows) == 8
    found = with_bounds(rows, kernel="median")
    assert (found["projected"] <= found["right_64"]).all()
    table = tightness_table(rows)
    assert table["violations"].sum() == 0
    assert set(table["splits"]) == {2}
    curves = bound_curves(rows)
    assert (curves["resolved"] <= curves["theorem"] * (1 + 1e-5)).all()


def test_bits_are_added_until_the_eigenvalues_are_isolated(monkeypatch) -> None:
    monkeypatch.setitem(bound_tightness.BITS, 3.0, 60)
    unit = {"what": "smallest", "dataset": "synthetic", "variant": "text", "n": 14, "sigma": 3.0}
    exact = bound_tightness.measure_unit_bandwidth_scaling(unit, "cpu")[-1]
    assert exact["bits"] > 60
    assert exact["log10_smallest"] <= exact["log10_smallest_upper"] < exact["log10_smallest"] + 1e-3


def test_a_smoke_run_of_the_scaling(tmp_path) -> None:
    study = bound_tightness.plan_bandwidth_scaling("smoke")
    store = ResultStore(tmp_path, study.name)
    assert not run_experiment(study, store, device="cpu").failed
    rows = store.read()
    exact = rows[rows["precision"] == "exact"].iloc[0]
    assert exact["kept"] == 11
    spectrum = rows[rows["what"] == "spectrum"]
    assert spectrum["log10_exact"].iloc[-1] == pytest.approx(exact["log10_smallest"], abs=1e-3)
    assert len(scaling_table(rows)) == 1


def test_the_papers_bound_has_the_eigenvalue_of_all_rows(sample) -> None:
    z, s = sample
    f = z[:, 0].sigmoid()
    found = bound_tightness.paper_bound(f.numpy(), s.numpy(), delta=0.05)
    kernels = {"kernel_z": Gaussian(median_bandwidth(f[:, None])), "kernel_s": Gaussian(median_bandwidth(s[:, None]))}
    spectrum = gap_spectrum(f[:, None], s, anchors=[[0.0]], coefficients=[1.0], **kernels)
    assert found["eigenvalue"] == pytest.approx(spectrum.eigenvalues[0].item(), rel=1e-10)
    assert found["hsic"] == pytest.approx(spectrum.hsic.item(), rel=1e-8)
    margin = 8 * math.sqrt(2 * math.log(40) / 160) + 4 / 160
    assert found["paper"] == pytest.approx(math.sqrt((found["hsic"] + margin) / found["eigenvalue"]))


def test_a_smoke_run_of_the_held_out_bounds(tmp_path) -> None:
    study = bound_tightness.plan_held_out_bounds("smoke")
    store = ResultStore(tmp_path, study.name)
    assert not run_experiment(study, store, device="cpu").failed
    (row,) = store.read().to_dict("records")
    assert row["low"] <= row["smoothed"] <= row["high"]
    assert row["estimate"] < row["bound"] < row["paper"]
