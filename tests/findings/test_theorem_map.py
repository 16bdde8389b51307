"""Guards the checked sentences of the chapter on the map of theorems."""

from __future__ import annotations

import json

import numpy as np
import pytest

from frhsic_core.paper.runs.stored import book_folder
from frhsic_core.paper.statements.overview import standings

RECORDS = json.loads(book_folder("claims", "verdicts.json").read_text(encoding="utf-8"))


def test_the_statements_that_need_a_further_condition() -> None:
    """The uniform bound, its three consequences and Lemma B.1, as in the text below the table and in the recap."""
    needy = {one.statement.number for one in standings(RECORDS) if one.verdict == "needs a further condition"}
    uniform = {"Theorem 5.1", "Corollary 5.2", "Proposition G.2", "Corollary G.3", "Remark G.4"}
    assert needy == uniform | {"Lemma B.1"}


def test_the_exercise_on_tied_ages() -> None:
    """The eigenvalues of the centered matrix, and the equation of the solution."""
    ages = np.repeat([0, 1, 2], [2, 3, 7])
    center = np.eye(12) - 1 / 12
    eigenvalues = np.linalg.eigvalsh(center @ (ages[:, None] == ages) @ center / 12)
    positive = eigenvalues[eigenvalues > 1e-12]
    assert positive[0] == pytest.approx(0.194, abs=5e-4)
    shares = np.array([2, 3, 7]) / 12
    for value in positive:
        assert (shares**2 / (shares - value)).sum() == pytest.approx(1, abs=1e-9)
