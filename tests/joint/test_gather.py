"""HSICLoss(gather=True): two processes together do what one does on the global batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from frhsic_core.joint import HSICLoss
from frhsic_core.joint.hsic import gather_rows

SIZES = (17, 12)  # unequal, as a last batch can be
CASES = (
    {"estimator": "biased"},
    {"estimator": "unbiased"},
    {"estimator": "normalized"},
    {"estimator": "biased", "masked": True},
    {"estimator": "biased", "weighted": True},
)


def _sample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    n = sum(SIZES)
    x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
    s = x[:, 0] + 0.5 * torch.randn(n, generator=generator, dtype=torch.float64)
    return x, s, torch.rand(n, generator=generator) < 0.7, torch.rand(n, generator=generator, dtype=torch.float64)


def _model() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 6), nn.SELU(), nn.Linear(6, 3)).double()


def _loss(model: nn.Module, rows: slice, case: dict, *, gather: bool) -> torch.Tensor:
    x, s, mask, weight = (part[rows] for part in _sample())
    penalty = HSICLoss(lam=3.0, estimator=case["estimator"], gather=gather)
    chosen = {"mask": mask if case.get("masked") else None, "sample_weight": weight if case.get("weighted") else None}
    return penalty(model(x), s, **chosen)


def _work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows = slice(sum(SIZES[:rank]), sum(SIZES[: rank + 1]))
    results = []
    for case in CASES:
        model = nn.parallel.DistributedDataParallel(_model())
        loss = _loss(model, rows, case, gather=True)
        loss.backward()
        results.append((loss.detach(), [parameter.grad for parameter in model.parameters()]))
    if rank == 1:
        torch.save(results, Path(folder) / "results.pt")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    """Loss and gradients under DistributedDataParallel equal those of one process on all rows, to 1e-6."""
    command = [sys.executable, __file__]
    workers = [subprocess.Popen([*command, str(rank), str(tmp_path)], stderr=subprocess.PIPE) for rank in range(2)]
    for worker in workers:
        _, error = worker.communicate(timeout=120)
        assert worker.returncode == 0, error.decode()
    results = torch.load(tmp_path / "results.pt", weights_only=True)
    for case, (loss, gradients) in zip(CASES, results, strict=True):
        model = _model()
        expected = _loss(model, slice(None), case, gather=False)
        expected.backward()
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-6, atol=1e-12)
        for mine, parameter in zip(gradients, model.parameters(), strict=True):
            torch.testing.assert_close(mine, parameter.grad, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("estimator", ["biased", "normalized"])
def test_one_process_gathers_nothing(estimator: str) -> None:
    """Without a process group gather=True changes nothing."""
    torch.testing.assert_close(
        _loss(_model(), slice(None), {"estimator": estimator}, gather=True),
        _loss(_model(), slice(None), {"estimator": estimator}, gather=False),
    )
    x, s, *_ = _sample()
    losses = [HSICLoss(1.0, estimator=estimator, gather=gather)(x[:, 0], s) for gather in (True, False)]
    torch.testing.assert_close(*losses)  # a vector is one column
    assert gather_rows(x) is x


if __name__ == "__main__":
    _work(int(sys.argv[1]), sys.argv[2])
