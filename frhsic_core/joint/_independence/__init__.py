"""Tests of independence with HSIC: gamma, spectral, permutation and aggregated."""

from frhsic_core.joint._independence.decision import IndependenceTest, hsic_test

__all__ = ["IndependenceTest", "hsic_test"]
