# SHIM: frhsic_core.data.cards -> frhsic_core.data.loading
"""Re-export the cards."""

from frhsic_core.data.loading import CARDS
from frhsic_core.data.recipes import Card

__all__ = ["CARDS", "Card"]
