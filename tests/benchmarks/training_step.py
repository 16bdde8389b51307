"""Milliseconds of one training step on the CPU with one thread, and the ratio to the Unfair step of the same run.

``python tests/benchmarks/training_step.py [--rounds 200]`` prints a table with targets in brackets. The time is that of
the thread, so other programs do not count, and the methods take turns. The ratio is the median over turns of the
method's time to that of the Unfair step in the same turn, because other load slows both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from frhsic_core.learning import FREM, FRHSIC, Trainer, make_penalty
from frhsic_core.learning.data import random_order
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
        "FRHSIC standardized": FRHSIC(scale="standardize"),
        "FRHSIC recommended": FRHSIC(),
        "FRHSIC recommended, on both": FRHSIC(on="both"),
        "FREM, all anchors": FREM(anchors=None),
        "Reg-GDP": make_penalty("reg_gdp"),
        "ADV (HGR)": make_penalty("adv"),
        "LAFTR": make_penalty("laftr"),
        "MMD binned": make_penalty("mmd_binned"),
        "dCor": make_penalty("dcor"),
    }


def measure(
    *, rounds: int = 200, steps: int = 2, n_features: int = 100, batch_size: int = 256, only: tuple[str, ...] = ()
) -> dict[str, tuple[float, float]]:
    """Return milliseconds of a step, and its ratio to the Unfair step, for each case (medians over turns)."""
    generator = torch.Generator().manual_seed(0)
    n = batch_size * steps
    x, s = torch.rand(n, n_features, generator=generator), torch.rand(n, generator=generator)
    y = (torch.rand(n, generator=generator) < 0.5).float()
    trainers = {
        name: Trainer(x, y, s, penalty=penalty, lam=1.0, epochs=10**6, batch_size=batch_size, device="cpu")
        for name, penalty in cases().items()
        if not only or name in only
    }
    for trainer in trainers.values():  # without an order every mini-batch would be the first sample, repeated
        trainer.step.begin_epoch(random_order(torch.tensor(trainer.seeds), epoch=0, n=n))
    spent: dict[str, list[float]] = {name: [] for name in trainers}
    for turn in range(rounds + 1):
        for name, trainer in trainers.items():
            begin = time.thread_time()
            for number in range(steps):
                trainer.step(number, epoch=turn)
            if turn:  # the first turn warms up
                spent[name].append((time.thread_time() - begin) / steps)
    ratios = {name: [a / b for a, b in zip(values, spent["Unfair"], strict=True)] for name, values in spent.items()}
    return {name: (1e3 * statistics.median(spent[name]), statistics.median(ratios[name])) for name in spent}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--targets", action="store_true", help="only the cases that have a target")
    args = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    times = measure(rounds=args.rounds, only=("Unfair", *TARGETS) if args.targets else ())
    print(f"medians of {args.rounds} turns; load of the machine {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    for name, (value, ratio) in times.items():
        target = f"  [at most {TARGETS[name]}]" if name in TARGETS else ""
        print(f"{name:40s} {value:7.3f} ms  {ratio:5.2f} x Unfair{target}")


if __name__ == "__main__":
    main()
