"""Every table and figure of the paper: sweeps of stacks, a store of results, and what is read from it.

:mod:`~frhsic_core.experiments.plan` says what is trained, :mod:`~frhsic_core.experiments.sweep` trains and evaluates it
stack by stack, :mod:`~frhsic_core.experiments.store` keeps one row for each trained model, and
:mod:`~frhsic_core.experiments.pareto` and :mod:`~frhsic_core.experiments.tables` summarise rows. Planning, storing and
summarising never import torch.
"""
