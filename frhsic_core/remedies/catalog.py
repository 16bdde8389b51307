"""The list of remedies that a comparison knows; a new one is a new line."""

from __future__ import annotations

from frhsic_core.remedies.encoder import TrainedEncoder
from frhsic_core.remedies.kernel_eraser import KernelEraser
from frhsic_core.remedies.leace import AttributeEraser
from frhsic_core.remedies.remedy import Adjusted, Erased, Plain, Remedy

# The baseline of remedies that need S to predict is a model that sees S and is not changed.
WITHOUT_S = Plain("none", "no remedy")
WITH_S = Plain("none_with_s", "no remedy, S is a feature", needs_s=True)

_LISTED: tuple[Remedy, ...] = (
    WITHOUT_S,
    WITH_S,
    Erased("leace", "LEACE on S", eraser=AttributeEraser("linear")),
    Erased("leace_spline", "LEACE on splines of S", eraser=AttributeEraser("spline")),
    Erased("kernel_eraser", "kernel eraser", eraser=KernelEraser("spline")),
    Adjusted("project", "scores, projected", method="project", needs_s=False),
    TrainedEncoder("encoder", "trained encoder (FRHSIC)"),
    Adjusted("adjust_mean", "scores, mean adjusted", method="mean", needs_s=True),
    Adjusted("adjust_rank", "scores, ranks adjusted", method="rank", needs_s=True),
)
REMEDIES: dict[str, Remedy] = {remedy.key: remedy for remedy in _LISTED}


def plain_of(remedy: Remedy) -> Plain:
    """Return the model without a remedy that sees what this remedy sees."""
    if remedy.needs_s:
        return WITH_S
    return WITHOUT_S


def is_plain(key: str) -> bool:
    """Return whether a key is that of a model without a remedy."""
    return REMEDIES[key].is_plain
