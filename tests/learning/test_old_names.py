"""Names, pickles and checkpoints of version 0.1 still work."""

from __future__ import annotations

import pickle

import pytest

from frhsic_core import learning
from frhsic_core.learning import FairEncoder, LambdaChoice, estimators


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (learning, "Residualiser", "Residualizer"),
        (learning, "UnpenalisedWarning", "UnpenalizedWarning"),
        (estimators, "UnpenalisedWarning", "UnpenalizedWarning"),
    ],
)
def test_an_old_name_warns_and_is_the_new_one(module: object, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=new) as told:
        found = getattr(module, old)
    assert found is getattr(module, new)
    assert told[0].filename == __file__


def test_the_audit_is_still_found_where_it_was() -> None:
    import frhsic_core

    with pytest.warns(DeprecationWarning, match=r"frhsic_core\.audit"):
        assert learning.audit_representation is frhsic_core.audit_representation


def test_an_old_parameter_warns() -> None:
    with pytest.warns(DeprecationWarning, match="centers"):
        assert learning.Residualizer("kernel", centres=7).centers == 7


@pytest.mark.parametrize(("module", "found"), [("choice", LambdaChoice), ("fair_encoder", FairEncoder)])
def test_a_pickle_finds_classes_that_have_moved(module: str, found: type) -> None:
    reference = f"cfrhsic_core.learning.{module}\n{found.__name__}\n."
    assert pickle.loads(reference.encode()) is found
