"""The conditional route: compare P(Z | S = s) with P(Z) for each s, and average over s.

GDP does so with the mean of one head, EIPM with all moments of a kernel. Neither can condition on an exact value of S,
so both smooth over S.
"""

from __future__ import annotations

from frhsic_core.conditional._curve import Curve
from frhsic_core.conditional._eipm import eipm
from frhsic_core.conditional._gdp import gdp, gdp_curve

__all__ = ["Curve", "eipm", "gdp", "gdp_curve"]
