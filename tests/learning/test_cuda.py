"""On CUDA: the stack against separate runs, the captured step against the eager one. Skipped without a device."""

from __future__ import annotations

import gc
import warnings
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from samples import classified
from torch import Tensor

from frhsic_core.learning import METHODS, Trainer, make_penalty
from frhsic_core.learning.data import random_order
from frhsic_core.learning.stack import StackedLinear
from frhsic_core.learning.step import CaptureWarning, Step

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning"),
]
CASES = [
    (method, protocol) for method in METHODS for protocol in ("recommended", "text", "reference")
]
N, BATCH = 1000, 256
datasets = partial(classified, 8, 2, N, d=20, dtype=torch.float32)


def train(
    x: Tensor, y: Tensor, s: Tensor, method: str, protocol: str, **settings: object
) -> Trainer:
    penalty = make_penalty(method, protocol=protocol)
    trainer = Trainer(
        x, y, s, penalty=penalty, batch_size=BATCH, device="cuda", **{"epochs": 5, **settings}
    )
    trainer.fit()  # 20 steps unless there are more epochs
    return trainer


LAMS, SEEDS, WHICH = (
    [[0.0, 0.5, 1.0, 5.0, 20.0][i % 5] for i in range(25)],
    [i // 5 for i in range(25)],
    [0, 1] * 12 + [0],
)


def stack_of_25(method: str, protocol: str, **settings: object) -> Trainer:
    return train(*datasets(), method, protocol, lam=LAMS, seeds=SEEDS, dataset=WHICH, **settings)


def lone_run(i: int, method: str, protocol: str, *, copies: int = 1, **settings: object) -> Trainer:
    x, y, s = (part[WHICH[i]] for part in datasets())
    return train(
        x, y, s, method, protocol, lam=[LAMS[i]] * copies, seeds=[SEEDS[i]] * copies, **settings
    )


def distance(stack: Trainer, lone: Trainer, i: int) -> float:
    pairs = zip(stack.model.parameters(), lone.model.parameters(), strict=True)
    return max((a[i] - b[0]).abs().max().item() for a, b in pairs)


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_a_penalty_beside_the_task_changes_nothing(
    method: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The penalty has a stream of its own; without it, one after the other, all numbers are the same."""
    beside = lone_run(3, method, protocol, capture=False)
    monkeypatch.setattr(Step, "_beside", lambda step: nullcontext())
    after = lone_run(3, method, protocol, capture=False)
    assert distance(beside, after, 0) == 0.0
    assert all(
        torch.equal(beside.history[name], after.history[name])
        for name in ("loss", "penalty", "metric")
    )


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_stack_equals_separate_runs(method: str, protocol: str) -> None:
    """Twenty captured float32 steps of a stack of 25 agree with lone eager runs to 1e-4.

    cuBLAS multiplies one matrix by another kernel than twenty-five, so that the two differ in their
    last digits, by some 1e-8. SELU's derivative jumps at zero: a row within such a digit of it may
    lie on one side in the stack and on the other alone, and Adam makes a visible step of that. One
    model of the five may be further off than 1e-4, and only if it is seen that this is what
    happened to it.
    """
    together = stack_of_25(method, protocol)
    far = [
        (i, gap)
        for i in range(0, 25, 6)
        if (gap := distance(together, lone_run(i, method, protocol, capture=False), i)) > 1e-4
    ]
    assert len(far) <= 1, far
    for i, gap in far:
        assert gap < 5e-4
        stack, lone = (Recorded() for _ in range(2))
        with stack:
            stack_of_25(method, protocol, capture=False)
        with lone:
            lone_run(i, method, protocol, capture=False)
        assert_parted_at_a_kink(stack, lone, i)


class Recorded:
    """Records, step by step, the parameters and the signs of what enters each activation of a trainer's networks."""

    def __init__(self) -> None:
        self.signs: list[list[Tensor]] = []
        self.parameters: list[list[Tensor]] = []

    def __enter__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        step, forward = Step.__call__, StackedLinear.forward
        here: list[Tensor] = []

        def recorded_forward(layer: StackedLinear, x: Tensor) -> Tensor:
            out = forward(layer, x)
            here.append((out.detach() > 0).cpu())
            return out

        def recorded_step(this: Step, number: int, *, epoch: int) -> None:
            here.clear()
            step(this, number, epoch=epoch)
            self.signs.append(list(here))
            self.parameters.append([p.detach().cpu().clone() for p in this.model.parameters()])

        self._patch.setattr(StackedLinear, "forward", recorded_forward)
        self._patch.setattr(Step, "__call__", recorded_step)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def assert_parted_at_a_kink(stack: Recorded, lone: Recorded, i: int) -> None:
    """Until one step the runs agree to 1e-6; in that step a row has changed sides at an activation."""
    assert len(stack.signs) == len(lone.signs) == 20
    gaps = [
        max((a[i] - b[0]).abs().max().item() for a, b in zip(*pair, strict=True))
        for pair in zip(stack.parameters, lone.parameters, strict=True)
    ]
    parted = next(step for step, gap in enumerate(gaps) if gap > 1e-6)
    flips = sum(
        int((a[i] != b[0]).sum())
        for a, b in zip(stack.signs[parted], lone.signs[parted], strict=True)
    )
    assert 1 <= flips <= 3, (parted, flips, gaps)


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_stack_equals_separate_runs_in_double_precision(method: str, protocol: str) -> None:
    """Fifty-two captured float64 steps of a stack of 25 agree with lone eager runs to 1e-9, without an exception."""
    settings = {"dtype": torch.float64, "epochs": 13}
    together = stack_of_25(method, protocol, **settings)
    for i in (0, 18, 24):
        assert (
            distance(together, lone_run(i, method, protocol, capture=False, **settings), i) < 1e-9
        )


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_a_model_does_not_depend_on_its_neighbours(method: str, protocol: str) -> None:
    """In float32 a model among 24 others and the same model among 24 copies of itself agree bit for bit."""
    together = stack_of_25(method, protocol)
    assert distance(together, lone_run(18, method, protocol, copies=25), 18) == 0.0


@pytest.mark.parametrize(("method", "protocol"), CASES)
def test_captured_equals_eager(method: str, protocol: str) -> None:
    """The captured step is used (no warning) and does what the eager one does."""
    x, y, s = datasets()
    settings = {"lam": [0.0, 1.0, 5.0], "seeds": [1, 2, 3], "dataset": [0, 1, 0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=UserWarning, message=".*escaped its kernel.*")
        captured = train(x, y, s, method, protocol, capture=True, **settings)
    assert not captured.step.capture_failed
    eager = train(x, y, s, method, protocol, capture=False, **settings)
    for a, b in zip(captured.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_cuda_equals_cpu() -> None:
    """Same seeds, same order, same weights at the start: float64 runs on both devices agree."""
    x, y, s = datasets()
    seeds = torch.tensor([3, 4])
    assert torch.equal(
        random_order(seeds, epoch=2, n=500), random_order(seeds.cuda(), epoch=2, n=500).cpu()
    )
    kwargs = {"lam": 3.0, "seeds": [3, 4], "epochs": 5, "batch_size": BATCH, "dtype": torch.float64}
    there, here = (Trainer(x, y, s, device=device, **kwargs) for device in ("cuda", "cpu"))
    there.fit()
    here.fit()
    for a, b in zip(there.model.parameters(), here.model.parameters(), strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=0, atol=1e-9)


def test_resume_on_cuda() -> None:
    """A captured training that is stopped resumes with the result of an uninterrupted run."""
    x, y, s = datasets()
    settings = {"lam": 3.0, "seeds": [3, 4], "epochs": 6, "batch_size": BATCH, "device": "cuda"}
    whole = Trainer(x, y, s, **settings)
    whole.fit()
    resumed = Trainer(x, y, s, **settings)
    resumed.fit(callback=lambda progress: progress.epoch == 3)
    resumed.fit()
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
