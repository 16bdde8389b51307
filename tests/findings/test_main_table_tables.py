"""What the chapter ``main_table`` states about the stored results of its tables."""

from __future__ import annotations

from frhsic_core.paper.runs.stored import stored_rows


def test_the_stored_live_experiment_is_whole() -> None:
    from frhsic_core.paper.experiments.presets import experiment_for

    rows = stored_rows("live")
    assert len(rows) == len(experiment_for("live").keys()) == 75
    assert rows["performance"].between(0.5, 0.8).all()
    assert stored_rows("never_run").empty
