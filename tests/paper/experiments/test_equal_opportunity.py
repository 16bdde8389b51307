"""Equal opportunity and several attributes: what is measured against brute force, the penalties against the formula."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.learning import Trainer, make_penalty
from frhsic_core.learning.data import Batch
from frhsic_core.paper.experiments import equal_opportunity, experiment_for
from frhsic_core.paper.experiments.equal_opportunity import values_at
from frhsic_core.paper.runs.jobs import loaded, splits_of


def trained(table: str):
    """Return the second job of a table at its smallest size, trained for three epochs, with its splits and data."""
    job = experiment_for(table, "smoke").jobs[1]
    source = (job.recipe.task.dataset, job.recipe.task.variant, job.recipe.task.options)
    data, splits = loaded(*source), splits_of(*source, job.splits, job.recipe.fractions, "cpu")
    lams, of_split, seeds = zip(*job.models, strict=True)
    trainer = Trainer(
        splits.x_train, splits.y_train, splits.s_train, penalty=make_penalty("frhsic", **dict(job.recipe.settings)),
        lam=list(lams), seeds=list(seeds), dataset=[job.splits.index(s) for s in of_split], epochs=3, device="cpu",
        protocol="reference",
    )  # fmt: skip
    return trainer.fit(), splits, data


def test_eo_measures_are_those_of_the_positive_rows_alone(looped_gdp) -> None:
    stack, splits, data = trained("equal_opportunity")
    found = equal_opportunity.measure_equal_opportunity(stack, splits, data)
    output = stack.output(splits.x_test).double().numpy()
    for model, split in enumerate(stack.dataset):
        kept = splits.y_test[split].numpy() == 1
        s, f = splits.s_test[split].double().numpy()[kept], output[model][kept]
        assert float(found["eo_gdp_reference"][model]) == pytest.approx(looped_gdp(f, s), rel=1e-5)


@pytest.mark.parametrize("option", ["eo", "eo_medians", "dp", "dp_unit"])
def test_each_option_is_the_paper_s_formula_on_its_rows_with_its_bandwidths(option: str) -> None:
    generator = torch.Generator().manual_seed(0)
    m, d = 39, 3  # an odd number of pairs: one median, not two
    z = torch.randn(1, m, d, generator=generator, dtype=torch.float64)
    s = torch.rand(1, m, 1, generator=generator, dtype=torch.float64)
    y = (torch.rand(1, m, generator=generator) < 0.5).double()
    trainer = Trainer(
        z[0].float(), y[0], s[0, :, 0], lam=1.0, device="cpu", dtype=torch.float64, protocol="reference",
        penalty=make_penalty("frhsic", **dict(equal_opportunity.OPTIONS[option])), epochs=1, batch_size=m,
    )  # fmt: skip
    batch = Batch(
        z, torch.zeros(1, m, dtype=torch.float64), s, y, None, torch.arange(m).unsqueeze(0)
    )
    value = float(trainer.penalty(batch, refresh=True))
    distances = torch.pdist(z[0]), torch.pdist(s[0])
    unit = option in ("eo", "dp_unit")
    sigma_z, sigma_s = (1.0, 1.0) if unit else (float(v.median()) + 1e-5 for v in distances)
    kept = (y[0] == 1).numpy() if option.startswith("eo") else np.ones(m, bool)

    def gram(v: torch.Tensor, sigma: float) -> np.ndarray:
        w = v[0].numpy()[kept]
        return np.exp(-0.5 * ((w[:, None] - w[None]) ** 2).sum(-1) / sigma**2)

    # A batch with ten positives has no penalty: tests/learning/test_penalties.py has the rows that are enough.
    assert dict(equal_opportunity.OPTIONS[option]).get("minimum_rows") == (
        11 if option.startswith("eo") else None
    )
    n = int(kept.sum())
    centre = np.eye(n) - 1 / n
    assert value == pytest.approx(
        np.trace(gram(z, sigma_z) @ centre @ gram(s, sigma_s) @ centre) / n**2, rel=1e-4
    )


def test_each_attribute_is_measured_on_its_own_column(looped_gdp) -> None:
    stack, splits, data = trained("multi_sensitive")
    found = equal_opportunity.measure_multi_sensitive(stack, splits, data)
    output = stack.output(splits.x_test).double().numpy()
    for a, name in enumerate(data.sensitive_names):
        s = splits.s_test[stack.dataset[-1]].double().numpy()[:, a]
        by_hand = looped_gdp(output[-1], s)
        assert float(found[f"gdp_reference_{name}"][-1]) == pytest.approx(by_hand, rel=1e-5)


def test_there_are_no_rows_of_an_option_that_was_not_trained() -> None:
    rows = pd.DataFrame(
        {
            "option": ["a", "b", "b", "unfair"],
            "lam": [1.0, 1.0, 2.0, 0.0],
            "split": 0,
            "gdp": range(4),
        }
    )
    assert values_at(rows, "b", 2.0, "gdp").tolist() == [2.0]
    assert values_at(rows, "unfair", 2.0, "gdp").tolist() == [3.0]
    with pytest.raises(ValueError, match="options are a, b, unfair"):
        values_at(rows, "c", 1.0, "gdp")
