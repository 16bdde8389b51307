# SHIM: frhsic_core.learning.networks -> frhsic_core.learning.stack
"""Old home of the networks."""

from frhsic_core.learning.stack import ACTIVATIONS as ACTIVATIONS
from frhsic_core.learning.stack import ModelStack as ModelStack
from frhsic_core.learning.stack import StackedLinear as StackedLinear
from frhsic_core.learning.stack import StackedMLP as StackedMLP
from frhsic_core.learning.stack import seeded_generators as seeded_generators
