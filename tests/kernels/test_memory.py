"""A large sample is computed block by block, or refused with the number of rows that fit and advice."""

from __future__ import annotations

import sys

import pytest
import torch

import frhsic_core as fc
from frhsic_core import arrays
from frhsic_core.arrays import free_memory, require_memory
from frhsic_core.joint import conditional_hsic


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that 1.6 MB are free: two matrices of 316 rows in float64."""
    monkeypatch.setattr(arrays, "_SMALL", 0)
    monkeypatch.setattr(arrays, "free_memory", lambda device: 1.6e6)


@pytest.mark.usefixtures("little")
def test_the_limit_is_the_number_of_rows_that_fit() -> None:
    like = torch.zeros(1, dtype=torch.float64)
    require_memory(like, 316, copies=2, advice="")
    with pytest.raises(MemoryError, match=r"317 rows need .* about 316 rows fit. Do this.") as caught:
        require_memory(like, 317, copies=2, advice="Do this.")
    assert "0 GiB" in str(caught.value)
    require_memory(like.float(), 440, copies=2, advice="")
    with pytest.raises(MemoryError, match="about 158 rows fit"):
        require_memory(like, 200, copies=2, batch=4, advice="")
    with pytest.raises(MemoryError, match="about 10,000 rows fit"):
        require_memory(like, 20_000, width=10, copies=2, advice="")


def test_free_memory_is_known_here_and_small_calls_do_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**20 < free_memory(torch.device("cpu")) < 2**60  # bytes, not kilobytes
    monkeypatch.setattr(arrays, "free_memory", lambda device: 2.0**29)
    small, like = 2**26, torch.zeros(1, dtype=torch.float64)
    assert [arrays.fits_memory(like, n) for n in (small, small + 1)] == [True, False]
    assert [arrays.fits_memory(like.float(), n) for n in (2 * small, 2 * small + 1)] == [True, False]


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda z, s: fc.khgr(z, s, ridge=0.1), "khgr needs whole matrices"),
        (fc.coco, "coco needs whole matrices"),
        (lambda z, s: conditional_hsic(z, s, s), "mini-batch"),
        (lambda z, s: conditional_hsic(z[:130].expand(2, 130, 2), s[:130], s[:130]), "mini-batch"),
        (fc.eipm, "anchors"),
        (lambda z, s: fc.median_bandwidth(z, max_points=None), "max_points"),
    ],
)
def test_what_does_not_fit_says_what_to_do(call, advice: str) -> None:
    z = torch.randn(600, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.raises(MemoryError, match=f"rows fit.*{advice}"):
        call(z, z[:, 0])


def test_what_is_advised_fits_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limits of a small machine the advised calls work, and equal the dense ones with their gradients."""
    z = torch.randn(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    s = (z[:, 0] ** 2).detach()
    kernels = {"kernel_z": fc.Gaussian(1.0), "kernel_s": fc.Gaussian(0.5)}
    smoothing = {"kernel_z": fc.Gaussian(1.0), "bandwidth": 0.4}
    calls = {
        "hsic": lambda: fc.hsic(z, s, **kernels),
        "normalized_hsic": lambda: fc.normalized_hsic(z, s, **kernels),
        "distances": lambda: fc.hsic(z, s, kernel_z="distance", kernel_s="distance"),
        "distance_correlation": lambda: fc.distance_correlation(z, s),
        "distance_correlation, unbiased": lambda: fc.distance_correlation(z, s, squared=True, estimator="unbiased"),
        "eipm": lambda: fc.eipm(z, s, anchors=8, **smoothing),
    }
    dense = {name: call() for name, call in calls.items()}
    for module in ("joint.hsic", "conditional._eipm"):
        monkeypatch.setattr(sys.modules[f"frhsic_core.{module}"], "DENSE_ROWS", 5)
    monkeypatch.setattr(sys.modules["frhsic_core.joint.hsic"], "CHUNK", 64)
    monkeypatch.setattr(sys.modules["frhsic_core.conditional._eipm"], "_BLOCK", 64**2)
    monkeypatch.setattr(arrays, "_SMALL", 0)
    monkeypatch.setattr(arrays, "free_memory", lambda device: 200 * 10 * 8 * 6)
    for name, call in calls.items():
        value = call()
        torch.testing.assert_close(value, dense[name], rtol=1e-10, atol=1e-14, msg=name)
        gradients = [torch.autograd.grad(result, z)[0] for result in (value, dense[name])]
        torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-13, msg=name)
