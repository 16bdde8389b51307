"""Probability laws whose answers are known exactly: the oracles every estimator is held against.

:class:`GaussianPair` and :class:`GaussianVector` answer in closed form or by adaptive quadrature, :class:`FiniteLaw` in
finite sums, as Fractions where asked. The scalar formulas, for any type of number and so also for ball arithmetic, are
in :mod:`frhsic_core.laws.formulas` and :mod:`frhsic_core.laws.mercer`. Nothing here imports the estimators.
"""

from frhsic_core.laws.finite import FiniteLaw, FiniteMercer
from frhsic_core.laws.gaussian import GaussianPair
from frhsic_core.laws.gaussian_vector import GaussianVector
from frhsic_core.laws.heads import KernelHead, LinearHead
from frhsic_core.laws.joint_gaussian import JointGaussian
from frhsic_core.laws.mercer import MercerSystem
from frhsic_core.laws.spectrum import CentredSpectrum

__all__ = [
    "CentredSpectrum",
    "FiniteLaw",
    "FiniteMercer",
    "GaussianPair",
    "GaussianVector",
    "JointGaussian",
    "KernelHead",
    "LinearHead",
    "MercerSystem",
]
