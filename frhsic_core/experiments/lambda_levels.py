"""How often each test of :mod:`frhsic_core.experiments.lambda_tests` rejects independent samples at nominal 5 %.

The sizes are those of the paper's validation parts of Crime and COMPAS (299 and 925); Z has one dimension, as an
output has, or fifty, as the paper's representation has.
"""

from __future__ import annotations

from typing import Any

from frhsic_core.experiments.study import Study, units_of

__all__ = ["measure_unit", "plan"]

DRAWS = {"smoke": 40, "text": 200, "full": 2000}
_PERMUTATIONS = 199


def plan(preset: str) -> Study:
    """Independent normal Z and uniform S; ``smoke`` has small samples."""
    rows, dimensions = ((60,), (1, 8)) if preset == "smoke" else ((299, 925), (1, 5, 50))
    name = "lambda_levels_smoke" if preset == "smoke" else "lambda_levels"
    return Study(name, "lambda_levels", units_of(n=rows, d=dimensions, draws=DRAWS[preset]))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """One row for each test: how many of the ``draws`` it rejected, and its mean critical value."""
    import torch

    from frhsic_core.experiments.lambda_tests import TESTS, thresholds

    n, d, draws = unit["n"], unit["d"], unit["draws"]
    generator = torch.Generator().manual_seed(1000 * d + n)
    z = torch.randn(draws, n, d, generator=generator, dtype=torch.float64).to(device)
    s = torch.rand(draws, n, generator=generator, dtype=torch.float64).to(device)
    found = thresholds(z, s, permutations=_PERMUTATIONS)
    statistic = found["statistic"]
    return [
        {
            "test": test,
            "rejected": int((statistic > found[f"threshold_{test}"]).sum()),
            "threshold": float(found[f"threshold_{test}"].mean()),
            "statistic": float(statistic.mean()),
        }
        for test in TESTS
    ]
