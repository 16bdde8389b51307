"""Guards the checked sentences of the chapter on counterfactual parity."""

from __future__ import annotations

from frhsic_core.paper.statements.counterfactual import every_table


def test_every_table_of_the_small_models_is_checked() -> None:
    assert every_table(quick=True)[0].details["models"] == 2 * 3**6
