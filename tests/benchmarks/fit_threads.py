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
import time

LIMIT = 1.2
ROWS = 5000
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def fit(epochs: int | str) -> float:
    """Return the seconds of one fit on the CPU in this process."""
    import numpy as np

    from frhsic_core import FairClassifier

    rng = np.random.default_rng(0)
    s = rng.uniform(20, 70, size=ROWS)
    X = np.column_stack([s / 25 + 0.5 * rng.normal(size=ROWS), rng.normal(size=(ROWS, 19))])
    y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=ROWS) > 2
    model = FairClassifier(epochs=epochs, random_state=0, device="cpu")
    begin = time.perf_counter()
    model.fit(X, y, sensitive_features=s)
    return time.perf_counter() - begin


def timed(one_thread: bool, epochs: str) -> float:
    """Return the seconds of one fit in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    if one_thread:
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-W", "ignore", __file__, "--fit", "--epochs", epochs]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> int:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="fits in each environment")
    parser.add_argument("--epochs", default="auto", help="epochs of a fit; 'auto' is the default of the estimator")
    parser.add_argument("--fit", action="store_true", help="time one fit in this process and print the seconds")
    args = parser.parse_args()
    if args.fit:
        print(fit(args.epochs if args.epochs == "auto" else int(args.epochs)))
        return 0
    seconds: dict[str, list[float]] = {"default": [], "OMP_NUM_THREADS=1": []}
    for turn in range(args.rounds):
        for name in seconds:
            seconds[name].append(timed(name != "default", args.epochs))
            print(f"round {turn + 1}: {name:18s} {seconds[name][-1]:7.2f} s", flush=True)
    ratio = statistics.median(seconds["default"]) / statistics.median(seconds["OMP_NUM_THREADS=1"])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: ratio {ratio:.2f} (at most {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
