"""Everything about this one paper: its statements, experiments, runs, claims and figures.

Nothing outside this folder and :mod:`frhsic_core.cli` imports it. A practitioner needs the rest of the package only.
"""
