"""Calculations that several experiments share: Pareto summaries, paired tests, features of Gaussian kernels."""
