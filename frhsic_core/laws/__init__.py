"""Probability laws whose answers are known exactly: the oracles every estimator is held against."""

from frhsic_core.laws.gaussian import GaussianPair, JointGaussian

__all__ = ["GaussianPair", "JointGaussian"]
