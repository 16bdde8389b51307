"""Probability laws with exact answers: the oracles with which every estimator is compared.

:class:`GaussianPair` answers in closed form or by adaptive quadrature, :class:`FiniteLaw` in finite
sums, as Fractions where asked. The scalar formulas, for any type of number and so also for ball
arithmetic, are in :mod:`frhsic_core.laws.formulas` and ``laws._mercer``. Nothing here imports the
estimators.
"""

from frhsic_core.laws._finite import FiniteLaw, FiniteMercer
from frhsic_core.laws._gaussian import GaussianPair
from frhsic_core.laws._mercer import CenteredSpectrum, MercerSystem

__all__ = [
    "CenteredSpectrum",
    "FiniteLaw",
    "FiniteMercer",
    "GaussianPair",
    "MercerSystem",
]
