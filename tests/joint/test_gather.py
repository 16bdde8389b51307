"""The recipe for several processes: two of them together do what one does on the global batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from frhsic_core.joint import HSICLoss

ROWS = 15  # of each process
FORMS = ("biased", "unbiased", "normalized")


def _sample(rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2 * ROWS, 4, generator=generator, dtype=torch.float64)
    return x[rows], (
        x[:, 0] + 0.5 * torch.randn(2 * ROWS, generator=generator, dtype=torch.float64)
    )[rows]


def _model() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 6), nn.SELU(), nn.Linear(6, 3)).double()


def _work(rank: int, folder: str) -> None:
    from torch.distributed.nn.functional import all_gather

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    results = []
    for form in FORMS:
        model = nn.parallel.DistributedDataParallel(_model())
        x, s = _sample(slice(rank * ROWS, (rank + 1) * ROWS))
        loss = HSICLoss(lam=3.0, estimator=form)(
            torch.cat(all_gather(model(x))), torch.cat(all_gather(s))
        )
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
    workers = [
        subprocess.Popen([*command, str(rank), str(tmp_path)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for worker in workers:
        _, error = worker.communicate(timeout=120)
        assert worker.returncode == 0, error.decode()
    results = torch.load(tmp_path / "results.pt", weights_only=True)
    for form, (loss, gradients) in zip(FORMS, results, strict=True):
        model = _model()
        x, s = _sample(slice(None))
        expected = HSICLoss(lam=3.0, estimator=form)(model(x), s)
        expected.backward()
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-6, atol=1e-12)
        for mine, parameter in zip(gradients, model.parameters(), strict=True):
            torch.testing.assert_close(mine, parameter.grad, rtol=1e-6, atol=1e-12)


if __name__ == "__main__":
    _work(int(sys.argv[1]), sys.argv[2])
