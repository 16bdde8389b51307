"""Summarize a dataset by aggregates that show no single row.

The book uses stored summaries, so that it can be built without the data.
``python -m frhsic_core.paper.summaries FOLDER`` writes them again from the local data.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from frhsic_core.data._files import DataUnavailable
from frhsic_core.data._recipes import Dataset
from frhsic_core.paper.datasets import VARIANTS, as_dict, load_variant, sources_of
from frhsic_core.registry import PAPER_DATASETS


def summarize(dataset: Dataset) -> dict[str, Any]:
    """Return aggregates of a dataset with one sensitive attribute as plain numbers.

    They are rounded to four digits.

    Examples
    --------
    >>> from frhsic_core.data import load_dataset
    >>> summary = summarize(load_dataset("synthetic"))
    >>> summary["n"], summary["s"]["distinct"]
    (5000, 5000)
    """
    s = dataset.s
    y = dataset.y
    correlation = np.corrcoef(s, y)[0, 1]

    def rounded(value: Any) -> float:
        return round(float(value), 4)

    return {
        "name": dataset.name,
        "variant": dataset.provenance.variant,
        "n": dataset.n,
        "d": dataset.d,
        "task": dataset.task,
        "sensitive": dataset.sensitive_name,
        "provenance": as_dict(dataset.provenance),
        "s": {
            "min": rounded(s.min()),
            "max": rounded(s.max()),
            "mean": rounded(s.mean()),
            "sd": rounded(s.std()),
            "distinct": len(np.unique(s)),
        },
        "y": {"mean": rounded(y.mean()), "sd": rounded(y.std())},
        "correlation": rounded(correlation),
    }


def load_summary(name: str, variant: str, *, folder: Path) -> dict[str, Any]:
    """Return a stored summary."""
    return json.loads((folder / f"{name}-{variant}.json").read_text(encoding="utf-8"))


def live_summary(name: str, variant: str) -> dict[str, Any] | None:
    """Return the summary of the local data, or None if they are missing.

    Nothing is downloaded. Where an official file gives other rows than the extract (ACS Income,
    MEPS), the extract is used, because the book's summaries belong to it.
    """
    kinds = {source.kind for source in sources_of(name, variant)}
    source = "extract" if "extract" in kinds else "auto"
    try:
        return summarize(load_variant(name, variant, download=False, source=source))
    except DataUnavailable:
        return None


def write_summaries(folder: Path) -> None:
    """Write the summaries of all variants whose data are here."""
    for name in PAPER_DATASETS:
        for variant in VARIANTS:
            found = live_summary(name, variant)
            if found is not None:
                text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
                (folder / f"{name}-{variant}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_summaries(Path(sys.argv[1]))
