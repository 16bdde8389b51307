"""The conditional route: compare P(Z | S = s) with P(Z) for each s, and average over s.

GDP does so with the mean of one head, EIPM and the conditional MMD integral with all moments of a kernel. None of them
can condition on an exact value of S, so all use the smoothing weights of
:mod:`frhsic_core.conditional.smoothing`.
"""

from __future__ import annotations

from frhsic_core.conditional.eipm import conditional_mmd, eipm
from frhsic_core.conditional.gdp import demographic_parity, gdp
from frhsic_core.conditional.interval import GDPInterval, gdp_interval
from frhsic_core.conditional.smoothing import leave_one_out_weights, nadaraya_watson_weights, smoothing_bandwidth

__all__ = [
    "GDPInterval",
    "conditional_mmd",
    "demographic_parity",
    "eipm",
    "gdp",
    "gdp_interval",
    "leave_one_out_weights",
    "nadaraya_watson_weights",
    "smoothing_bandwidth",
]
