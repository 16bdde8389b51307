"""Run the experiments of the paper and store their results.

:mod:`~frhsic_core.paper.runs.plan` describes what is run, :mod:`~frhsic_core.paper.runs.jobs` runs
one job, :mod:`~frhsic_core.paper.runs.runner` runs an experiment and resumes it, and
:mod:`~frhsic_core.paper.runs.store` keeps the rows. :mod:`frhsic_core.paper.stored` reads those of
the book, and the experiments are in :mod:`frhsic_core.paper.experiments`. Planning, storing and
reading never import torch.
"""
