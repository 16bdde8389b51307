"""Guards the checked sentences of the chapter on the map of theorems."""

from __future__ import annotations

import json

import numpy as np

from frhsic_core.kernels import Categorical
from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements.overview import standings
from frhsic_core.paper.stored import book_folder

RECORDS = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))


def test_the_statements_that_need_a_further_condition() -> None:
    """The uniform bound, its three consequences and Lemma B.1, as in the text below the table and in the recap."""
    needy = {
        one.statement.number
        for one in standings(RECORDS)
        if one.verdict == "needs a further condition"
    }
    uniform = {"Theorem 5.1", "Corollary 5.2", "Proposition G.2", "Corollary G.3", "Remark G.4"}
    assert needy == uniform | {"Lemma B.1"}


def test_the_exercise_on_tied_ages(printed) -> None:
    """The smallest positive eigenvalue, and the other one."""
    ages = FiniteLaw([0], range(3), np.array([[2, 3, 7]]) / 12)
    largest, smallest = ages.mercer(Categorical(), centered=True).eigenvalues
    words = f"the eigenvalues 0, ${smallest:.3f}$ and ${largest:.3f}$".replace("0.", ".")
    assert words in printed.text("theorem_map")
