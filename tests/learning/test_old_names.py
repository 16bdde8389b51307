"""Names, pickles and checkpoints of version 0.1 still work."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from frhsic_core import learning
from frhsic_core.learning import FairEncoder, LambdaChoice, Trainer, estimators


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


def test_a_checkpoint_with_the_british_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    generator = torch.Generator().manual_seed(0)
    x, s = torch.rand(60, 2, generator=generator), torch.rand(60, generator=generator)
    settings = {"epochs": 4, "batch_size": 30, "widths": (4, 2), "device": "cpu"}
    whole = Trainer(x, (x[:, 0] > s).float(), s, **settings).fit()
    Trainer(x, (x[:, 0] > s).float(), s, **settings).fit(checkpoint=path, callback=lambda progress: progress.epoch == 2)
    state = torch.load(path, weights_only=True)
    state["optimiser"] = state.pop("optimizer")
    torch.save(state, path)
    resumed = Trainer(x, (x[:, 0] > s).float(), s, **settings).fit(checkpoint=path)
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)
