"""What is computed from stored rows: matched points, areas, paired tests, and the tables of every experiment.

:mod:`~frhsic_core.paper.experiments.tables.pareto` and :mod:`~frhsic_core.paper.experiments.tables.paired` hold the
calculations,
:mod:`~frhsic_core.paper.experiments.tables.main_table` the tables of the main sweep; the other modules are named after
the experiment whose rows they read, or after what they compare. Nothing here imports torch.
"""
