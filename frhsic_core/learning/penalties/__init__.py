"""FRHSIC and its rivals: one file each, one protocol."""

from frhsic_core.learning.penalties.adv import ADV
from frhsic_core.learning.penalties.base import KernelPenalty, Penalty
from frhsic_core.learning.penalties.dcor import DCor
from frhsic_core.learning.penalties.frem import FREM
from frhsic_core.learning.penalties.frhsic import FRHSIC
from frhsic_core.learning.penalties.laftr import LAFTR
from frhsic_core.learning.penalties.mmd_binned import MMDBinned
from frhsic_core.learning.penalties.none import Unfair
from frhsic_core.learning.penalties.reg_gdp import RegGDP

__all__ = ["ADV", "FREM", "FRHSIC", "LAFTR", "DCor", "KernelPenalty", "MMDBinned", "Penalty", "RegGDP", "Unfair"]
