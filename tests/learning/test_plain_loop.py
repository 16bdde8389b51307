"""The stack against a plain PyTorch loop: one model, nn.Linear, autograd, penalties written from their definitions.

Other forms of the penalties are compared with the library's statistics in test_penalties.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from samples import classified
from torch import Tensor, nn
from torch.nn import functional as F

from frhsic_core.learning import FRHSIC, MMDBinned, Trainer, make_penalty
from frhsic_core.learning.data import random_order
from frhsic_core.learning.penalties import Penalty

N, D, BATCH, STEPS = 150, 4, 32, 50


# The definitions, as slowly as they read ----------------------------------------------------------


def squared(z: Tensor) -> Tensor:
    return (z.unsqueeze(0) - z.unsqueeze(1)).square().sum(-1)


def gaussian(z: Tensor, sigma: float) -> Tensor:
    return torch.exp(-squared(z) / (2 * sigma**2))


def lower_median(z: Tensor) -> float:
    return torch.pdist(z.detach()).median().item()  # torch.median is the lower one


def trace_hsic(k: Tensor, l: Tensor) -> Tensor:
    n = len(k)
    h = torch.eye(n, dtype=k.dtype) - 1 / n
    return torch.trace(k @ h @ l @ h) / n**2


class State:
    """What a penalty of the plain loop may look at besides the batch."""

    def __init__(self, s: Tensor, width: int) -> None:
        self.all_s, self.width, self.sigma, self.epoch, self.step = s, width, 0.0, 0, 0


def frhsic_reference(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    if state.epoch % 20 == 0:
        state.sigma = lower_median(z) + 1e-5
    sigma_s = lower_median(state.all_s[:1000, None]) + 1e-5
    return trace_hsic(gaussian(z, state.sigma), gaussian(s[:, None], sigma_s))


def _fixed_s(s: Tensor) -> Tensor:
    return gaussian(s[:, None], 0.3)


def whitened(z: Tensor) -> Tensor:
    z = z - z.mean(0)
    covariance = z.T @ z / len(z)
    ridge = (2e-6 * covariance.trace() + 1e-8) * torch.eye(z.shape[1], dtype=z.dtype)
    return torch.linalg.solve(torch.linalg.cholesky(covariance + ridge), z.T).T


def _averaged(z: Tensor, state: State) -> float:
    state.sigma = 0.9 * state.sigma + 0.1 * half_median(z) if state.sigma else half_median(z)
    return state.sigma


def frhsic_recommended(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    z = whitened(z)
    l = _fixed_s(s)
    return trace_hsic(gaussian(z, _averaged(z, state)), l) + trace_hsic(out[:, None] * out[None], l)


def half_median(z: Tensor) -> float:
    half = len(z) // 2
    return torch.cdist(z[:half].detach(), z[half : 2 * half].detach()).flatten().median().item()


def frem(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    k, n, total = gaussian(z, 1.0), len(z), torch.zeros((), dtype=z.dtype)
    anchors = min(n, 32)
    for i in range(anchors):
        weight = torch.exp(-((s - s[i]) ** 2) / (2 * 0.5**2))
        weight[i] = 0
        v = weight / weight.sum() - 1 / n
        squared_mmd = v @ k @ v
        total = total + squared_mmd / (squared_mmd + 1e-10).sqrt()
    return total / anchors


def reg_gdp(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    total = torch.zeros((), dtype=z.dtype)
    for point in torch.linspace(0, 1, 30, dtype=z.dtype) * (s.max() - s.min()) + s.min():
        weight = torch.exp(-((s - point) ** 2) / (2 * 0.2**2))
        total = total + ((weight * out).sum() / weight.sum() - out.mean()).abs()
    return total / 30


def mmd_kernel(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    cuts = torch.quantile(state.all_s, torch.tensor([0.25, 0.5, 0.75], dtype=z.dtype))
    bins = [z[torch.bucketize(s, cuts) == b] for b in range(4)]
    bins = [b for b in bins if len(b) >= 2]
    terms = []
    for a, b in itertools.combinations(bins, 2):
        k = gaussian(torch.cat([a, b]), 1.5)
        m = len(a)
        terms.append(k[:m, :m].mean() + k[m:, m:].mean() - 2 * k[:m, m:].mean())
    return torch.stack(terms).mean()


def mmd_means(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    cuts = torch.quantile(state.all_s, torch.arange(1, 10, dtype=z.dtype) / 10)
    bins = [z[torch.bucketize(s, cuts) == b] for b in range(10)]
    return sum(((b.mean(0) - z.mean(0)) ** 2).sum() for b in bins if len(b) >= 2)


def _distances(z: Tensor) -> Tensor:
    eye = torch.eye(len(z), dtype=z.dtype)
    return (squared(z) + eye).sqrt() * (1 - eye)


def dcov_squared(z: Tensor, out: Tensor, s: Tensor, state: State) -> Tensor:
    def centred(d: Tensor) -> Tensor:
        return d - d.mean(0) - d.mean(1, keepdim=True) + d.mean()

    return (centred(_distances(z)) * centred(_distances(s[:, None]))).mean()


DEFINITIONS: dict[str, tuple[Penalty, Callable[[Tensor, Tensor, Tensor, State], Tensor]]] = {
    "unfair": (make_penalty("unfair"), lambda z, out, s, state: torch.zeros((), dtype=z.dtype)),
    "frhsic reference": (make_penalty("frhsic", protocol="reference"), frhsic_reference),
    "frhsic recommended": (FRHSIC(bandwidth_s=0.3), frhsic_recommended),
    "frem": (make_penalty("frem", protocol="reference"), frem),
    "reg_gdp": (make_penalty("reg_gdp", protocol="reference"), reg_gdp),
    "mmd_binned kernel": (MMDBinned(bandwidth=1.5), mmd_kernel),
    "mmd_binned reference": (make_penalty("mmd_binned", protocol="reference"), mmd_means),
    "dcor reference": (make_penalty("dcor", protocol="reference"), dcov_squared),
}


def plain_loop(
    x: Tensor,
    y: Tensor,
    s: Tensor,
    *,
    lam: float,
    seed: int,
    steps: int,
    definition: Callable | None,
    adversary: str = "",
) -> list[Tensor]:
    """Train one model the way a script would; return encoder, head and (if any) adversary parameters."""
    # nn.Linear draws in float32 unless told otherwise; the stack draws in its own dtype.
    torch.manual_seed(seed)
    encoder = nn.Sequential(
        nn.Linear(D, 8, dtype=torch.float64), nn.SELU(), nn.Linear(8, 6, dtype=torch.float64)
    )
    head = nn.Linear(6, 1, dtype=torch.float64)
    out_width = {"": 0, "mse": 1, "hgr": 1, "laftr": 4}[adversary]
    reader = witness = nn.Sequential()
    if adversary:
        reader = nn.Sequential(
            nn.Linear(6, 50, dtype=torch.float64),
            nn.SELU(),
            nn.Linear(50, out_width, dtype=torch.float64),
        )
    if adversary == "hgr":
        witness = nn.Sequential(
            nn.Linear(1, 50, dtype=torch.float64), nn.SELU(), nn.Linear(50, 1, dtype=torch.float64)
        )
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    adversary_parameters = [*reader.parameters(), *witness.parameters()]
    adversary_optimiser = torch.optim.Adam(adversary_parameters, lr=1e-3) if adversary else None
    state = State(s, 6)
    cuts = torch.quantile(s, torch.tensor([0.25, 0.5, 0.75], dtype=s.dtype))

    def game(z: Tensor, s: Tensor) -> Tensor:  # what the encoder pays
        if adversary == "mse":
            return -((reader(z).squeeze(-1) - s) ** 2).mean()
        if adversary == "laftr":
            return -F.cross_entropy(reader(z), torch.bucketize(s, cuts))
        f, g = reader(z).squeeze(-1), witness(s[:, None]).squeeze(-1)
        f, g = ((v - v.mean()) / (v.var(unbiased=False) + 1e-8).sqrt() for v in (f, g))
        return (f * g).mean()

    done = 0
    for epoch in itertools.count():
        order = random_order(torch.tensor([seed]), epoch=epoch, n=N)[0]
        for step, rows in enumerate(order.split(BATCH)):
            state.epoch, state.step = epoch, step
            z = encoder(x[rows])
            out = head(z).squeeze(-1)
            if adversary_optimiser is not None:
                adversary_optimiser.zero_grad()
                (-game(z.detach(), s[rows])).backward()
                adversary_optimiser.step()
                penalty = game(z, s[rows])
            else:
                assert definition is not None
                penalty = definition(z, out, s[rows], state)
            optimiser.zero_grad()
            (F.binary_cross_entropy_with_logits(out, y[rows]) + lam * penalty).backward()
            optimiser.step()
            done += 1
            if done == steps:
                return [
                    p.detach()
                    for p in (*encoder.parameters(), *head.parameters(), *adversary_parameters)
                ]
    raise AssertionError


def stacked(
    x: Tensor, y: Tensor, s: Tensor, penalty: Penalty, *, lam: list[float], seeds: list[int]
) -> Trainer:
    trainer = Trainer(
        x, y, s, penalty=penalty, lam=lam, seeds=seeds, protocol="reference", epochs=math.ceil(STEPS / 5),
        batch_size=BATCH, widths=(8, 6), device="cpu", dtype=torch.float64,
    )  # fmt: skip
    assert trainer.epochs * trainer.step.steps_per_epoch == STEPS
    trainer.fit()
    return trainer


def assert_equal(trainer: Trainer, i: int, expected: list[Tensor]) -> None:
    mine = [*trainer.model.named_parameters(), *trainer.penalty.named_parameters()]
    for (name, stack), lone in zip(mine, expected, strict=True):
        hgr = getattr(trainer.penalty, "adversary", "") == "hgr"
        if hgr and name.startswith(("reader", "witness")) and name.endswith("bias"):
            continue  # standardising removes a shift: its gradient is rounding, which Adam scales up
        value = stack[i].detach()
        value = value[0] if lone.ndim == 1 else value.T
        torch.testing.assert_close(value, lone, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")
@pytest.mark.parametrize("name", DEFINITIONS)
def test_stack_equals_plain_loop(name: str) -> None:
    """Fifty steps in float64, short last batches included: parameters agree to 1e-9 with the definition's own loop."""
    x, y, s = classified(0, N, d=D)
    penalty, definition = DEFINITIONS[name]
    trainer = stacked(x, y, s, penalty, lam=[0.7, 5.0], seeds=[3, 4])
    for i, (lam, seed) in enumerate([(0.7, 3), (5.0, 4)]):
        expected = plain_loop(x, y, s, lam=lam, seed=seed, steps=STEPS, definition=definition)
        assert_equal(trainer, i, expected)


@pytest.mark.parametrize(
    ("method", "adversary"), [("adv", "mse"), ("adv", "hgr"), ("laftr", "laftr")]
)
def test_adversaries_equal_plain_loop(method: str, adversary: str) -> None:
    """One adversary step, then one encoder step, also for the adversary's own parameters."""
    x, y, s = classified(0, N, d=D)
    penalty = make_penalty(method, **({"adversary": adversary} if method == "adv" else {}))
    trainer = stacked(x, y, s, penalty, lam=[0.7, 2.0], seeds=[3, 4])
    for i, (lam, seed) in enumerate([(0.7, 3), (2.0, 4)]):
        expected = plain_loop(
            x, y, s, lam=lam, seed=seed, steps=STEPS, definition=None, adversary=adversary
        )
        assert_equal(trainer, i, expected)
