"""Tests of independence with HSIC: gamma, spectral, permutation and aggregated."""
