"""How often each test of :mod:`~frhsic_core.paper.experiments.lambda_tests` rejects independent samples at 5 %.

The sizes are those of the paper's validation parts of Crime and COMPAS (299 and 925); Z has one dimension, as an
output has, or fifty, as the paper's representation has.
"""

from __future__ import annotations

from typing import Any

from frhsic_core.paper.runs.study import Study, units_of

__all__ = ["measure_unit", "plan"]

# Draws by sample size: a unit of the larger one takes a minute or two on a CPU.
DRAWS = {"smoke": {60: 40}, "text": {299: 200, 925: 200}, "full": {299: 600, 925: 200}}
DIMENSIONS = {60: (1, 8), 299: (1, 5, 50), 925: (1, 50)}
# The permutation test has its level by construction; a few draws of the smaller samples show it.
_PERMUTED_DRAWS, _PERMUTED_ROWS, _PERMUTATIONS = 200, 299, 99


def plan(preset: str) -> Study:
    """Independent normal Z and uniform S; ``smoke`` has small samples."""
    name = "lambda_levels_smoke" if preset == "smoke" else "lambda_levels"
    units = [
        unit for rows, draws in DRAWS[preset].items() for unit in units_of(n=rows, d=DIMENSIONS[rows], draws=draws)
    ]
    return Study(name, "lambda_levels", tuple(units))


def measure_unit(unit: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """One row for each test: how many of its ``draws`` it rejected, and its mean critical value."""
    import torch

    from frhsic_core.paper.experiments.lambda_tests import thresholds

    n, d, draws = unit["n"], unit["d"], unit["draws"]
    generator = torch.Generator().manual_seed(1000 * d + n)
    z = torch.randn(draws, n, d, generator=generator, dtype=torch.float64).to(device)
    s = torch.rand(draws, n, generator=generator, dtype=torch.float64).to(device)
    parts = dict.fromkeys(("released", "gamma", "spectral"), thresholds(z, s))
    if n <= _PERMUTED_ROWS:
        parts["permutation"] = thresholds(z[:_PERMUTED_DRAWS], s[:_PERMUTED_DRAWS], permutations=_PERMUTATIONS)
    return [
        {
            "test": test,
            "draws": len(part["statistic"]),
            "rejected": int((part["statistic"] > part[f"threshold_{test}"]).sum()),
            "threshold": float(part[f"threshold_{test}"].mean()),
            "statistic": float(part["statistic"].mean()),
        }
        for test, part in parts.items()
    ]
