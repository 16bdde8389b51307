"""Rounding does not grow: the contract's equality of stacked and separate training in single precision, without a GPU.

On CUDA a stack and a lone run differ by the rounding of their matrix products. Here their weights differ by a relative
1e-7 at the start instead. What amplifies such a difference is Adam: it divides by the size of a gradient, and so makes
full steps of one that is nothing but rounding.
"""

from __future__ import annotations

import pytest
import torch
from samples import classified

from frhsic_core.learning import FRHSIC, Trainer, make_penalty
from frhsic_core.learning.penalties import Penalty

N, MODELS = 1000, 10
SAMPLE = classified(8, N, d=20, dtype=torch.float32)
CASES = {
    "adv text": ("text", lambda: make_penalty("adv", protocol="text")),
    "adv recommended": ("recommended", lambda: make_penalty("adv")),
    "frhsic recommended": ("recommended", FRHSIC),
}


def train(penalty: Penalty, protocol: str, *, perturbation: float) -> Trainer:
    """Twenty steps of ten models in single precision, λ up to 20."""
    trainer = Trainer(
        *SAMPLE, penalty=penalty, protocol=protocol, lam=[0.0, 0.5, 1.0, 5.0, 20.0] * 2, seeds=[0] * 5 + [1] * 5,
        epochs=5, device="cpu",
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.mul_(1 + perturbation * torch.randn(parameter.shape, generator=generator))
    trainer.fit()
    return trainer


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.EscapeWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_last_digit_stays_one(name: str) -> None:
    """1e-7 at the start is below 1e-4 after 20 steps, in the models and in an adversary.

    One model of ten is let off: SELU's derivative jumps at zero, and a row within a last digit of it
    may change sides. Nothing in a penalty causes or mends that, and Unfair has it, too.
    """
    protocol, make = CASES[name]
    here, there = (train(make(), protocol, perturbation=size) for size in (0.0, 1e-7))
    pairs = zip(
        [*here.model.parameters(), *here.penalty.parameters()],
        [*there.model.parameters(), *there.penalty.parameters()],
        strict=True,
    )
    apart = torch.stack([(a - b).abs().flatten(1).amax(1).double() for a, b in pairs]).amax(0)
    assert apart.max() > 0  # they did differ
    assert (apart < 1e-4).sum() >= MODELS - 1, apart


def test_an_adversary_does_not_move_where_it_has_no_gradient() -> None:
    """Standardising removes a shift of the two networks' outputs; their last biases stay where they began."""
    trainer = Trainer(*SAMPLE, penalty="adv", lam=1.0, epochs=1, device="cpu")
    before = [network.layers[-1].bias.clone() for network in (trainer.penalty.reader, trainer.penalty.witness)]
    weights = trainer.penalty.reader.layers[-1].weight.clone()
    trainer.fit()
    after = [network.layers[-1].bias for network in (trainer.penalty.reader, trainer.penalty.witness)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert not torch.equal(weights, trainer.penalty.reader.layers[-1].weight)
