"""On CUDA: the stack against separate runs, the captured step against the eager one. Skipped without a device."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor

from frhsic_core.learning import FRHSIC, METHODS, Trainer, make_penalty
from frhsic_core.learning.batches import random_order
from frhsic_core.learning.capture import CaptureWarning

pytestmark = [pytest.mark.cuda, pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")]
CASES = [(method, protocol) for method in METHODS for protocol in ("recommended", "text", "reference")]
CASES.append(("frhsic", "on both"))
N, BATCH = 1000, 256


def datasets() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(8)
    s = torch.rand(2, N, generator=generator)
    x = torch.randn(2, N, 20, generator=generator)
    x[..., 0] += 2 * s
    y = (torch.rand(2, N, generator=generator) < torch.sigmoid(x[..., 0] - 1 + x[..., 1])).float()
    return x, y, s


def train(x: Tensor, y: Tensor, s: Tensor, method: str, protocol: str, **settings: object) -> Trainer:
    penalty = FRHSIC(on="both") if protocol == "on both" else make_penalty(method, protocol=protocol)
    trainer = Trainer(x, y, s, penalty=penalty, epochs=5, batch_size=BATCH, device="cuda", **settings)
    trainer.fit()  # 20 steps
    return trainer


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_stack_equals_separate_runs(method: str, protocol: str) -> None:
    """Twenty captured float32 steps of a stack of 25 agree with lone eager runs to 1e-4."""
    x, y, s = datasets()
    lams = [[0.0, 0.5, 1.0, 5.0, 20.0][i % 5] for i in range(25)]
    seeds, which = [i // 5 for i in range(25)], [i % 2 for i in range(25)]
    together = train(x, y, s, method, protocol, lam=lams, seeds=seeds, dataset=which)
    for i in range(0, 25, 6):
        k = which[i]
        alone = train(x[k], y[k], s[k], method, protocol, lam=lams[i], seeds=seeds[i], capture=False)
        for a, b in zip(together.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a[i], b[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_captured_equals_eager(method: str, protocol: str) -> None:
    """The captured step is used (no warning) and does what the eager one does."""
    x, y, s = datasets()
    settings = {"lam": [0.0, 1.0, 5.0], "seeds": [1, 2, 3], "dataset": [0, 1, 0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, message=".*escaped its kernel.*")
        captured = train(x, y, s, method, protocol, capture=True, **settings)
    assert not captured._run.failed
    eager = train(x, y, s, method, protocol, capture=False, **settings)
    for a, b in zip(captured.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_cuda_equals_cpu() -> None:
    """Same seeds, same order, same weights at the start: float64 runs on both devices agree."""
    x, y, s = datasets()
    seeds = torch.tensor([3, 4])
    assert torch.equal(random_order(seeds, epoch=2, n=500), random_order(seeds.cuda(), epoch=2, n=500).cpu())
    kwargs = {"lam": 3.0, "seeds": [3, 4], "epochs": 5, "batch_size": BATCH, "dtype": torch.float64}
    there, here = (Trainer(x, y, s, device=device, **kwargs) for device in ("cuda", "cpu"))
    there.fit()
    here.fit()
    for a, b in zip(there.model.parameters(), here.model.parameters(), strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=0, atol=1e-9)


def test_resume_on_cuda(tmp_path: Path) -> None:
    """A checkpoint written on CUDA resumes there, captured, with the result of an uninterrupted run."""
    x, y, s = datasets()
    settings = {"lam": 3.0, "seeds": [3, 4], "epochs": 6, "batch_size": BATCH, "device": "cuda"}
    whole = Trainer(x, y, s, **settings)
    whole.fit()
    path = tmp_path / "run.pt"
    Trainer(x, y, s, **settings).fit(checkpoint=path, callback=lambda progress: progress.epoch == 3)
    resumed = Trainer(x, y, s, **settings)
    resumed.fit(checkpoint=path)
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_old_trainers_are_not_freed_inside_a_capture() -> None:
    """Trainers that died hold graphs in cycles; a collector that runs at every chance must not break a capture."""
    x, y, s = datasets()
    thresholds = gc.get_threshold()
    try:
        for seed in range(4):
            gc.disable()
            train(x[0], y[0], s[0], "frhsic", "text", lam=1.0, seeds=seed, capture=True)
            gc.enable()
            gc.set_threshold(1, 1, 1)
            with warnings.catch_warnings():
                warnings.simplefilter("error", CaptureWarning)
                train(x[0], y[0], s[0], "reg_gdp", "text", lam=1.0, seeds=seed, capture=True)
            gc.set_threshold(*thresholds)
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
