"""Learn representations that depend less on a continuous attribute.

Each of the two routes to independence has a package: :mod:`frhsic_core.joint` compares the joint
distribution of (Z, S) with the product of its marginals (HSIC and related measures), and
:mod:`frhsic_core.conditional` averages a distance between the conditional distributions and the
marginal one (GDP, EIPM). :mod:`frhsic_core.laws` contains distributions with exact answers, against
which every estimator is checked.

Names are imported on first use, so that ``import frhsic_core`` is fast and drawing a figure does
not import torch. The stub beside this file lists them, for type checkers too.
"""

from frhsic_core._lazy import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
