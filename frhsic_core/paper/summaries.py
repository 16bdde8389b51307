"""Summarize a dataset by aggregates that show no single row and leave out small cells.

The book's chapter on the data uses stored summaries, so that it can be built without the data.
``python -m frhsic_core.paper.summaries FOLDER`` writes them again from the local data.
"""

from __future__ import annotations

import json
import math
import sys
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from frhsic_core.atomic_files import write_atomically
from frhsic_core.data.dataset import Dataset
from frhsic_core.data.files import DataUnavailable
from frhsic_core.paper.datasets import VARIANTS, as_dict, load_variant, sources_of
from frhsic_core.registry import PAPER_DATASETS

SMALLEST_CELL = 20
DIGITS = 4


def summarize(dataset: Dataset) -> dict[str, Any]:
    r"""Return aggregates of a dataset as plain numbers, rounded to four digits.

    They include ties of S (the probability :math:`\sum_v p_v^2` that two rows share a value, and the largest
    :math:`p_v`), Y by bins of S, the mean gap :math:`\sum_b p_b |E[Y|b]-E[Y]|`, and the share of the variance of S
    that a linear map of X explains. A bin with fewer than 20 rows is None. Cost: one least-squares fit, O(n d²).

    Parameters
    ----------
    dataset : Dataset
        A dataset with one sensitive attribute.

    Returns
    -------
    dict
        Values that JSON can store.

    Examples
    --------
    >>> from frhsic_core.data import load_dataset
    >>> summary = summarize(load_dataset("synthetic"))
    >>> summary["n"], summary["s"]["distinct"], round(summary["x_explains_s"], 1)
    (5000, 5000, 0.5)
    """
    s, y = dataset.s, dataset.y
    if s.ndim != 1:
        raise ValueError(f"{dataset.name} has {s.shape[1]} sensitive attributes, but a summary needs exactly one.")
    values, counts = np.unique(s, return_counts=True)
    shares = counts / dataset.n
    largest = int(np.argmax(counts))
    edges = _edges(s)
    which = np.clip(np.searchsorted(edges, s, side="right") - 1, 0, len(edges) - 2)
    sizes = np.bincount(which, minlength=len(edges) - 1)
    sums = np.bincount(which, weights=y, minlength=len(edges) - 1)
    filled = sizes > 0
    gaps = np.abs(sums[filled] / sizes[filled] - y.mean())
    summary: dict[str, Any] = {
        "name": dataset.name,
        "variant": dataset.provenance.variant,
        "n": dataset.n,
        "d": dataset.d,
        "task": dataset.task,
        "sensitive": dataset.sensitive_name,
        "provenance": as_dict(dataset.provenance),
        "s": {
            "min": s.min(),
            "max": s.max(),
            "mean": s.mean(),
            "sd": s.std(),
            "quartiles": np.quantile(s, (0.25, 0.5, 0.75)).tolist(),
            "distinct": len(values),
            "tie_probability": float((shares**2).sum()),
            "largest_atom": {"value": values[largest], "share": shares[largest]},
            "share_at_max": shares[-1] if counts[-1] >= SMALLEST_CELL else None,
        },
        "y": {"mean": y.mean(), "sd": y.std()},
        "bins": {
            "edges": edges.tolist(),
            "counts": [int(size) if size >= SMALLEST_CELL else None for size in sizes],
            "y_mean": [
                total / size if size >= SMALLEST_CELL else None for total, size in zip(sums, sizes, strict=True)
            ],
        },
        "correlation": float(np.corrcoef(s, y)[0, 1]),
        "mean_gap": float((sizes[filled] / dataset.n) @ gaps),
        "x_explains_s": _linear_share(dataset.X, s),
        "weights": _weighting(dataset),
    }
    return _rounded(summary)


def _edges(s: np.ndarray) -> np.ndarray:
    """Return bins of five years for whole numbers, and twenty bins of equal width otherwise."""
    if np.array_equal(s, np.round(s)):
        return np.arange(5 * math.floor(s.min() / 5), s.max() + 5.5, 5.0)
    return np.linspace(s.min(), s.max(), 21)


def _linear_share(x: np.ndarray, s: np.ndarray) -> float:
    centred = x - x.mean(axis=0)
    scale = centred.std(axis=0)
    design = centred[:, scale > 0] / scale[scale > 0]
    target = s - s.mean()
    # The Gram matrix instead of the design is 100 times faster; dummies that sum to one only add a zero eigenvalue.
    fitted = design @ np.linalg.lstsq(design.T @ design, design.T @ target, rcond=1e-10)[0]
    return float(1.0 - ((target - fitted) ** 2).sum() / (target**2).sum())


def _weighting(dataset: Dataset) -> dict[str, float] | None:
    w = dataset.weights
    if w is None:
        return None
    return {
        "y_mean": float(w @ dataset.y / w.sum()),
        "s_mean": float(w @ dataset.s / w.sum()),
        "share_of_zero": float((w == 0).mean()),
        "effective_share": float(w.sum() ** 2 / (w @ w) / dataset.n),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), DIGITS)
    return value


def differences(stored: Any, live: Any, *, tolerance: float = 2e-4, where: str = "") -> list[str]:
    """Return one line for each place where two summaries differ by more than ``tolerance``."""
    if isinstance(stored, dict) and isinstance(live, dict):
        keys = sorted({*stored, *live})
        return [d for key in keys for d in differences(stored.get(key), live.get(key), where=f"{where}.{key}")]
    if isinstance(stored, list) and isinstance(live, list) and len(stored) == len(live):
        pairs = enumerate(zip(stored, live, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, where=f"{where}[{i}]")]
    if isinstance(stored, (int, float)) and isinstance(live, (int, float)):
        return [] if abs(stored - live) <= tolerance else [f"{where}: {stored} stored, {live} now"]
    return [] if stored == live else [f"{where}: {stored!r} stored, {live!r} now"]


def file_name(name: str, variant: str) -> str:
    """Return the name of a stored summary."""
    return f"{name}-{variant}.json"


def load_summary(name: str, variant: str, *, folder: Path) -> dict[str, Any]:
    """Return a stored summary."""
    return json.loads((folder / file_name(name, variant)).read_text(encoding="utf-8"))


def live_summary(name: str, variant: str) -> dict[str, Any] | None:
    """Return the summary of the local data, or None if they are missing.

    Nothing is downloaded. Where an official file gives other rows than the extract (ACS Income, MEPS), the extract is
    used, because the book's summaries belong to it.
    """
    kinds = {source.kind for source in sources_of(name, variant)}
    try:
        return summarize(
            load_variant(name, variant, download=False, source="extract" if "extract" in kinds else "auto")
        )
    except DataUnavailable:
        return None


def write_summaries(folder: Path) -> list[Path]:
    """Write the summaries of the datasets of the paper that are available locally; return the paths."""
    written = []
    for name in PAPER_DATASETS:
        for variant in VARIANTS:
            summary = live_summary(name, variant)
            if summary is not None:
                target = folder / file_name(name, variant)
                text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
                write_atomically(target, methodcaller("write", text.encode()))
                written.append(target)
    return written


if __name__ == "__main__":
    for path in write_summaries(Path(sys.argv[1])):
        print(path)
