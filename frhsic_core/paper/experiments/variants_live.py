"""Two variants on the synthetic law, small enough for a laptop: what the chapter on variants trains again live."""

from __future__ import annotations

from frhsic_core.paper.experiments.presets import SPLITS
from frhsic_core.paper.experiments.variants import VARIANTS, sweep_of
from frhsic_core.paper.runs.plan import Experiment, Task

__all__ = ["SHOWN", "plan"]

SHOWN = ("frhsic:estimator biased", "frhsic:where representation")


def plan(preset: str) -> Experiment:
    """Return the experiment: the head term's effect at one λ, 25 splits of 2,000 rows, forty epochs."""
    chosen = tuple(v for v in VARIANTS if v.name in SHOWN)
    task = Task("synthetic", "text", "reference", (("n", 2000),))
    if preset == "smoke":
        return sweep_of(chosen, "variants_live_smoke", (task,), (10.0,), (42, 43), epochs=2)
    return sweep_of(chosen, "variants_live", (task,), (10.0,), SPLITS["full"], epochs=40)
