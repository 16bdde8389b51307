"""Guards the checked sentences of the chapter on HSIC and the expected MMD."""

from __future__ import annotations

from frhsic_core.paper.statements import search


def test_a_constant_smaller_by_a_tenth_is_refuted_many_times() -> None:
    bound = next(s for s in search.SEARCHED if "HSIC ≤ κ(E MMD)²" in s.claim)
    assert search.search(bound, scale=0.9).details["violations"] > 100
