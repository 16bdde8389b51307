# SHIM: frhsic_core.learning.capture -> frhsic_core.learning.step
"""Old home of the captured step."""

from frhsic_core.learning.step import CapturedSteps as CapturedSteps
from frhsic_core.learning.step import CaptureWarning as CaptureWarning
