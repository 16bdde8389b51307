"""No penalty: the model the paper calls Unfair."""

from __future__ import annotations

from torch import Tensor

from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import Penalty
from frhsic_core.learning.penalties.gram import Pull

__all__ = ["Unfair"]


class Unfair(Penalty):
    """Task loss alone, whatever λ is; S is not needed."""

    key = "unfair"
    needs_attribute = False

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[Pull | Tensor]:
        """Return no summands."""
        return []
