# SHIM: frhsic_core.learning.validation -> frhsic_core.learning.selection
"""Old home of the validation table."""

from frhsic_core.learning.selection import pooled_table as pooled_table
from frhsic_core.learning.selection import validation_table as validation_table
