"""Seconds of ``FairClassifier().fit`` on 5,000 samples, in the default environment and with ``OMP_NUM_THREADS=1``.

``python tests/benchmarks/fit_threads.py [--rounds 3] [--epochs 20]`` starts a process for each fit, with both
environments in turns, and prints the ratio of the medians. The library chooses the number of threads, so the default
environment may take at most 1.2 times as long; the exit status is 1 if it takes longer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

LIMIT = 1.2
ROWS = 5000
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


SET_UP = f"""
import numpy as np
from frhsic_core import FairClassifier
rng = np.random.default_rng(0)
s = rng.uniform(20, 70, size={ROWS})
X = np.column_stack([s / 25 + 0.5 * rng.normal(size={ROWS}), rng.normal(size=({ROWS}, 19))])
y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size={ROWS}) > 2
"""


def timed(one_thread: bool, epochs: int | str) -> float:
    """Return the seconds of one fit in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    if one_thread:
        environment["OMP_NUM_THREADS"] = "1"
    fit = f"FairClassifier(epochs={epochs!r}, random_state=0, device='cpu').fit(X, y, sensitive_features=s)"
    command = [sys.executable, "-W", "ignore", "-m", "timeit", "-n", "1", "-r", "1", "-u", "sec", "-s", SET_UP, fit]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-4])


def main() -> int:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="fits in each environment")
    parser.add_argument("--epochs", default="auto", help="epochs of a fit; 'auto' is the default of the estimator")
    args = parser.parse_args()
    epochs = args.epochs if args.epochs == "auto" else int(args.epochs)
    seconds: dict[str, list[float]] = {"default": [], "OMP_NUM_THREADS=1": []}
    for turn in range(args.rounds):
        for name in seconds:
            seconds[name].append(timed(name != "default", epochs))
            print(f"round {turn + 1}: {name:18s} {seconds[name][-1]:7.2f} s", flush=True)
    ratio = statistics.median(seconds["default"]) / statistics.median(seconds["OMP_NUM_THREADS=1"])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: ratio {ratio:.2f} (at most {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
