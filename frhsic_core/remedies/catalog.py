"""The list of remedies that a comparison knows; a new one is a new line."""

from __future__ import annotations

from frhsic_core.remedies.adjusted import Adjusted
from frhsic_core.remedies.convex_path import LEACE_SPLINE, WITHOUT_TWO, ConvexPath
from frhsic_core.remedies.discrimination_free import DiscriminationFree
from frhsic_core.remedies.encoder import TrainedEncoder
from frhsic_core.remedies.erased import Erased
from frhsic_core.remedies.kernel_eraser import KernelEraser
from frhsic_core.remedies.leace import AttributeEraser
from frhsic_core.remedies.plain import WITH_S, WITHOUT_S
from frhsic_core.remedies.remedy import Remedy

_LISTED: tuple[Remedy, ...] = (
    WITHOUT_S,
    WITH_S,
    ConvexPath("path", "convex path"),
    ConvexPath("path_with_s", "convex path with S", needs_s=True),
    WITHOUT_TWO,
    Erased("leace", "LEACE on S", eraser=AttributeEraser("linear")),
    LEACE_SPLINE,
    Adjusted("adjust_mean", "scores, mean adjusted", method="mean", needs_s=True),
    Adjusted("adjust_rank", "scores, ranks adjusted", method="rank", needs_s=True),
    # It averages S out of a model, and its predictions still depend on S as much as X does.
    DiscriminationFree("price", "discrimination-free price", by_default=False),
    # The convex path has the same guesses of S from X, with weights for them.
    Adjusted("project", "scores, projected", method="project", needs_s=False, by_default=False),
    # Boosting behind 100 random features is slow, and seldom better than the linear erasers.
    Erased("kernel_eraser", "kernel eraser", eraser=KernelEraser("spline"), by_default=False),
    # It takes minutes, and PyTorch.
    TrainedEncoder("encoder", "trained encoder (FRHSIC)", by_default=False),
)
REMEDIES: dict[str, Remedy] = {remedy.key: remedy for remedy in _LISTED}


def is_plain(key: str) -> bool:
    """Return whether a key is that of a model without a remedy."""
    return REMEDIES[key].is_plain
