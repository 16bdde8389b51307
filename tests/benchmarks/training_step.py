"""Seconds of one training step on the CPU, one thread, against the Unfair step of the same run.

``python tests/benchmarks/training_step.py [--rounds 200]`` prints a table; targets in brackets.
Time is the thread's own (what other programs take does not count), the methods take turns, and the least over turns is
reported: a neighbour can only add.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from frhsic_core.learning import FREM, FRHSIC, Trainer, make_penalty
from frhsic_core.learning.penalties import Penalty

TARGETS = {
    "FRHSIC biased, fixed bandwidth": 1.7,
    "FRHSIC biased, 128 points every batch": 2.2,
    "FREM, 32 anchors": 2.2,
}


def cases() -> dict[str, Penalty]:
    """Return the penalties to time, by name."""
    return {
        "Unfair": make_penalty("unfair"),
        "FRHSIC biased, fixed bandwidth": FRHSIC(estimator="biased", scale=None, bandwidth=1.0),
        "FRHSIC biased, 128 points every batch": FRHSIC(estimator="biased", scale=None, bandwidth="every_batch"),
        "FREM, 32 anchors": FREM(anchors=32),
        "FRHSIC recommended": FRHSIC(),
        "FRHSIC recommended, on both": FRHSIC(on="both"),
        "FREM, all anchors": FREM(anchors=None),
        "Reg-GDP": make_penalty("reg_gdp"),
        "ADV (HGR)": make_penalty("adv"),
        "LAFTR": make_penalty("laftr"),
        "MMD binned": make_penalty("mmd_binned"),
        "dCor": make_penalty("dcor"),
    }


def measure(*, rounds: int = 200, steps: int = 2, n_features: int = 100, batch_size: int = 256) -> dict[str, float]:
    """Milliseconds of one step for each case: the least over ``rounds`` turns of ``steps`` steps."""
    generator = torch.Generator().manual_seed(0)
    n = batch_size * steps
    x, s = torch.rand(n, n_features, generator=generator), torch.rand(n, generator=generator)
    y = (torch.rand(n, generator=generator) < 0.5).float()
    trainers = {
        name: Trainer(x, y, s, penalty=penalty, lam=1.0, epochs=10**6, batch_size=batch_size, device="cpu")
        for name, penalty in cases().items()
    }
    spent: dict[str, list[float]] = {name: [] for name in trainers}
    for turn in range(rounds + 1):
        for name, trainer in trainers.items():
            begin = time.thread_time()
            for trainer.step in range(steps):
                policy = trainer.penalty.policy
                trainer._step(batch_size, policy is not None and policy.refreshes(turn, trainer.step))
            if turn:  # the first turn warms up
                spent[name].append((time.thread_time() - begin) / steps)
    return {name: 1e3 * min(values) for name, values in spent.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    torch.set_num_threads(1)
    times = measure(rounds=parser.parse_args().rounds)
    for name, value in times.items():
        ratio = value / times["Unfair"]
        target = f"  [at most {TARGETS[name]}]" if name in TARGETS else ""
        print(f"{name:40s} {value:7.3f} ms  {ratio:5.2f} x Unfair{target}")


if __name__ == "__main__":
    main()
