# ruff: noqa: F403
"""Learn representations that depend less on a continuous attribute.

Each of the two routes to independence has a package: :mod:`frhsic_core.joint` compares the joint distribution of (Z, S)
with the product of its marginals (HSIC and related measures), and :mod:`frhsic_core.conditional` averages a distance
between the conditional distributions and the marginal one (GDP, EIPM). :mod:`frhsic_core.laws` contains distributions
with exact answers, against which every estimator is checked.

Names are imported on first use, so that ``import frhsic_core`` is fast and drawing a figure does not import torch.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "bounds": ("Bounded", "eipm_bound", "gdp_bound", "hsic_bound"),
    "kernels": (
        "Categorical",
        "Distance",
        "Gaussian",
        "InverseMultiquadric",
        "Laplacian",
        "Linear",
        "MultiScale",
        "Product",
        "median_bandwidth",
    ),
    "joint": (
        "HSICLoss",
        "coco",
        "distance_correlation",
        "hsic",
        "hsic_test",
        "khgr",
        "mutual_information",
        "normalized_hsic",
    ),
    "conditional": ("eipm", "gdp", "gdp_curve"),
    "learning": ("FairClassifier", "FairEncoder", "FairRegressor"),
    "auditing": ("RepresentationAudit", "audit", "audit_representation"),
    "data": ("load_dataset",),
    "remedies": (
        "AdjustedClassifier",
        "AdjustedRegressor",
        "AttributeEraser",
        "KernelEraser",
        "ScoreAdjuster",
        "adjust_scores",
        "compare_remedies",
    ),
}
_MODULES = (
    "auditing",
    "conditional",
    "data",
    "joint",
    "kernels",
    "laws",
    "learning",
    "paper",
    "registry",
    "remedies",
)
_HOME = {name: f"{module}:{name}" for module, names in _EXPORTS.items() for name in names}
_HOME |= {module: f"{module}:" for module in _MODULES}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = pkgutil.resolve_name(f"{__name__}.{_HOME[name]}")
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:  # for type checkers and editors; at run time a name is imported on first use
    from frhsic_core.auditing import *
    from frhsic_core.bounds import *
    from frhsic_core.conditional import *
    from frhsic_core.data import *
    from frhsic_core.joint import *
    from frhsic_core.kernels import *
    from frhsic_core.learning import *
    from frhsic_core.remedies import *
