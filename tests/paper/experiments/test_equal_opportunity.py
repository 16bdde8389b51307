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


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def data_of(job):
    source = (job.recipe.task.dataset, job.recipe.task.variant, job.recipe.task.options)
    return loaded(*source), splits_of(*source, job.splits, job.recipe.fractions, "cpu")


@pytest.fixture(scope="module")
def trained():
    job = experiment_for("equal_opportunity", "smoke").jobs[1]
    data, splits = data_of(job)
    lams, of_split, seeds = zip(*job.models, strict=True)
    trainer = Trainer(
        splits.x_train, splits.y_train, splits.s_train, penalty=make_penalty("frhsic", **dict(job.recipe.settings)),
        lam=list(lams), seeds=list(seeds), dataset=[job.splits.index(s) for s in of_split], epochs=3, device="cpu",
        protocol="reference",
    )  # fmt: skip
    return trainer.fit(), splits, data


def test_eo_measures_are_those_of_the_positive_rows_alone(trained, looped_gdp) -> None:
    stack, splits, data = trained
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
    batch = Batch(z, torch.zeros(1, m, dtype=torch.float64), s, y, None, torch.arange(m).unsqueeze(0))
    value = float(trainer.penalty(batch, refresh=True))
    distances = torch.pdist(z[0]), torch.pdist(s[0])
    unit = option in ("eo", "dp_unit")
    sigma_z, sigma_s = (1.0, 1.0) if unit else (float(v.median()) + 1e-5 for v in distances)
    kept = (y[0] == 1).numpy() if option.startswith("eo") else np.ones(m, bool)

    def gram(v: torch.Tensor, sigma: float) -> np.ndarray:
        w = v[0].numpy()[kept]
        return np.exp(-0.5 * ((w[:, None] - w[None]) ** 2).sum(-1) / sigma**2)

    n = int(kept.sum())
    centre = np.eye(n) - 1 / n
    assert value == pytest.approx(np.trace(gram(z, sigma_z) @ centre @ gram(s, sigma_s) @ centre) / n**2, rel=1e-4)


def test_a_batch_with_ten_positives_has_no_penalty_and_one_with_eleven_has() -> None:
    assert dict(equal_opportunity.OPTIONS["eo"])["minimum_rows"] == 11
    generator = torch.Generator().manual_seed(0)
    z, s = torch.randn(1, 30, 2, generator=generator), torch.rand(1, 30, 1, generator=generator)
    values = []
    for positives in (10, 11):
        y = (torch.arange(30) < positives).float().unsqueeze(0)
        trainer = Trainer(
            z[0], y[0], s[0, :, 0], lam=1.0, device="cpu", epochs=1, batch_size=30,
            penalty=make_penalty("frhsic", **dict(equal_opportunity.OPTIONS["eo"])),
        )  # fmt: skip
        batch = Batch(z, torch.zeros(1, 30), s, y, None, torch.arange(30).unsqueeze(0))
        values.append(float(trainer.penalty(batch, refresh=True)))
    assert values[0] == 0
    assert values[1] > 0


def test_each_attribute_is_measured_on_its_own_column(tmp_path, looped_gdp) -> None:
    job = experiment_for("multi_sensitive", "smoke").jobs[1]
    data, splits = data_of(job)
    trainer = Trainer(
        splits.x_train, splits.y_train, splits.s_train, lam=[1.0, 1.0], seeds=[0, 1], dataset=[0, 1], epochs=2,
        penalty=make_penalty("frhsic", **dict(job.recipe.settings)), device="cpu", protocol="reference",
    )  # fmt: skip
    stack = trainer.fit()
    found = equal_opportunity.measure_multi_sensitive(stack, splits, data)
    output = stack.output(splits.x_test).double().numpy()
    for a, name in enumerate(data.sensitive_names):
        s = splits.s_test[1].double().numpy()[:, a]
        by_hand = looped_gdp(output[1], s)
        assert float(found[f"gdp_reference_{name}"][1]) == pytest.approx(by_hand, rel=1e-5)


def test_there_are_no_rows_of_an_option_that_was_not_trained() -> None:
    rows = pd.DataFrame({"option": ["a", "b", "b", "unfair"], "lam": [1.0, 1.0, 2.0, 0.0], "split": 0, "gdp": range(4)})
    assert values_at(rows, "b", 2.0, "gdp").tolist() == [2.0]
    assert values_at(rows, "unfair", 2.0, "gdp").tolist() == [3.0]
    with pytest.raises(ValueError, match="options are a, b, unfair"):
        values_at(rows, "c", 1.0, "gdp")
