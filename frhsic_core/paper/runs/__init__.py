"""Every table and figure of the paper: sweeps of stacks, a store of results, and what is read from it.

:mod:`~frhsic_core.paper.runs.plan` says what is trained, :mod:`~frhsic_core.paper.runs.sweep` trains and evaluates it
stack by stack, and :mod:`~frhsic_core.paper.runs.store` keeps one row for each trained model. The experiments
themselves are in :mod:`~frhsic_core.paper.experiments`, what is computed from their rows in
:mod:`~frhsic_core.paper.experiments.tables`, and every number of the paper beside ours in
:mod:`~frhsic_core.paper.claims`. Planning, storing and summarising never import torch.
"""
