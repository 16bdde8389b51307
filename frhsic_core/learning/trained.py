# SHIM: frhsic_core.learning.trained -> frhsic_core.learning.stack
"""Old home of the trained stack."""

from frhsic_core.learning.stack import TrainedStack as TrainedStack
