"""Every table and figure of the paper: sweeps of stacks, a store of results, and what is read from it.

:mod:`~frhsic_core.experiments.plan` says what is trained, :mod:`~frhsic_core.experiments.sweep` trains and evaluates it
stack by stack, and :mod:`~frhsic_core.experiments.store` keeps one row for each trained model. The experiments
themselves are in :mod:`~frhsic_core.experiments.catalogue`, what is computed from their rows in
:mod:`~frhsic_core.experiments.tables`, and every number of the paper beside ours in
:mod:`~frhsic_core.experiments.ledger`. Planning, storing and summarising never import torch.
"""
