"""No penalty: the model the paper calls Unfair."""

from __future__ import annotations

from frhsic_core.learning.penalties.base import Penalty

__all__ = ["Unfair"]


class Unfair(Penalty):
    """Task loss alone, whatever λ is; S is not needed."""

    key = "unfair"
    needs_attribute = False
