"""Time of an epoch with a penalty on one CPU thread, divided by that of an epoch without one, beside the targets.

``python tests/benchmarks/training_step.py [--rounds 3]`` measures units of the experiment ``cost``. The cases take
turns and the ratio is the median over rounds, because other load slows all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics

from frhsic_core.paper.experiments import cost

BASE = ("unfair", "library")
TARGETS = {
    ("frhsic", "library"): 1.7,
    ("frhsic", "library, bandwidth of every batch"): 2.2,
    ("frem", "library, 32 anchors"): 2.2,
}


def seconds(method: str, form: str, n: int) -> float:
    """Return the median seconds of some epochs."""
    unit = {"part": "epoch", "device": "cpu", "mode": "eager", "method": method, "form": form, "n": n}
    return statistics.median(row["seconds"] for row in cost.measure_unit(unit, "cpu"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=20_000)
    given = parser.parse_args()
    rounds = [{case: seconds(*case, given.samples) for case in (BASE, *TARGETS)} for _ in range(given.rounds)]
    print(f"medians of {given.rounds} rounds; load of the machine {os.getloadavg()[0]:.1f}")
    for case, target in TARGETS.items():
        ratio = statistics.median(times[case] / times[BASE] for times in rounds)
        print(f"{', '.join(case):45s} {ratio:5.2f} x no penalty  [at most {target}]")
