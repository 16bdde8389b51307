"""FRHSIC and the methods it is compared with, as penalties with one interface."""

from frhsic_core.joint.contraction import whiten
from frhsic_core.learning.penalties.adversarial import ADV, LAFTR
from frhsic_core.learning.penalties.base import KernelPenalty, Penalty, Unfair
from frhsic_core.learning.penalties.dcor import DCor
from frhsic_core.learning.penalties.frem import FREM
from frhsic_core.learning.penalties.frhsic import FRHSIC
from frhsic_core.learning.penalties.mmd_binned import MMDBinned
from frhsic_core.learning.penalties.reg_gdp import RegGDP

__all__ = [
    "ADV", "FREM", "FRHSIC", "LAFTR", "DCor", "KernelPenalty", "MMDBinned", "Penalty", "RegGDP", "Unfair", "whiten",
]  # fmt: skip
