"""Watch the gap of a model over its whole life, with one guarantee for all looks together.

:class:`Monitor` counts rows period by period, and :class:`History` is what it knows after each of them: an estimate,
an interval, a guarantee, and whether something has certainly changed. ``frhsic monitor`` is the command.
"""

from __future__ import annotations

from frhsic_core.monitoring.history import Change, History, Period
from frhsic_core.monitoring.monitor import Monitor, Settings

__all__ = ["Change", "History", "Monitor", "Period", "Settings"]
