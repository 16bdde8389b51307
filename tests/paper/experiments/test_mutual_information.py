"""Mutual information by nearest neighbours: what a scale does to it, its principal components, and the experiment."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from frhsic_core.joint.information import mutual_information
from frhsic_core.paper.experiments.mutual_information import (
    information_gap,
    measure,
    principal_components,
)

K = 5


def draw(models: int, n: int, d: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(models, n, d, generator=generator, dtype=torch.float64)
    s = (
        z[..., 0]
        + 0.5 * z[..., -1].square()
        + torch.randn(models, n, generator=generator, dtype=torch.float64)
    )
    return z, s


def test_a_large_scale_of_z_makes_the_raw_estimates_constants() -> None:
    z, s = draw(2, 400, 3)
    truth = mutual_information(z, s, k=K)
    assert (truth > 0.15).all()
    strict, closed = (
        mutual_information(1e6 * z, s, k=K, standardize=False, closed=form)
        for form in (False, True)
    )
    # Every neighbour is then chosen by z alone: n_z = k - 1 (or k, closed) and n_s = n - 1, whatever the law.
    assert strict.abs().max().item() < 1e-12
    assert (closed + 1 / K).abs().max().item() < 1e-12
    assert torch.allclose(mutual_information(1e6 * z, s, k=K), truth, atol=1e-9)


@pytest.mark.parametrize("scales", [(9.0, 1.0, 0.1), (1.0,) * 3, (5.0, 0.01, 0.01)])
def test_principal_components_are_those_of_scikit_learn(scales: tuple[float, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(12, 12, generator=generator, dtype=torch.float64))[0]
    spread = torch.tensor([*scales, *([0.05] * 9)], dtype=torch.float64)
    z = (torch.randn(1, 300, 12, generator=generator, dtype=torch.float64) * spread) @ turn + 3.0
    found = principal_components(z)
    reference = PCA().fit(z[0].numpy())
    wanted = min(
        5, max(2, int(np.searchsorted(np.cumsum(reference.explained_variance_ratio_), 0.95)) + 1)
    )
    theirs = reference.transform(z[0].numpy())[:, :wanted]
    assert np.allclose(np.abs(found[0, :, :wanted].numpy()), np.abs(theirs), atol=1e-8)
    assert (found[0] != 0).any(0).tolist() == [True] * wanted + [False] * (5 - wanted)


def test_the_columns_of_one_model_are_the_estimates_of_its_views() -> None:
    z, s = draw(2, 150, 4)
    splits = SimpleNamespace(x_train="train", x_test="test", s_train=s[:, :100], s_test=s[:, 100:])
    parts = {"train": z[:, :100], "test": z[:, 100:]}
    trained = SimpleNamespace(dataset=[1, 0], encode=lambda part: parts[part][[1, 0]])
    found = measure(trained, splits, None)
    for i, of in enumerate((1, 0)):
        new, attribute = z[of, 100:], s[of, 100:]
        fit = LinearRegression().fit(z[of, :100].numpy(), s[of, :100].numpy())
        guess = torch.from_numpy(fit.predict(new.numpy()))[:, None]
        assert found["mi_probe"][i] == pytest.approx(
            float(mutual_information(guess, attribute, k=K)), abs=1e-3
        )
        components = principal_components(new[None])
        assert found["scale"][i] == pytest.approx(
            float(components[0, :, 0].std() / attribute.std())
        )
        closed = mutual_information(
            components[0], attribute, k=K, standardize=False, closed=True
        ).item()
        assert found["mi_reference"][i] == pytest.approx(max(closed, 0.0))
    parts["test"] = torch.where(torch.arange(2)[:, None, None] == 0, torch.nan, parts["test"])
    assert np.isnan(measure(trained, splits, None)["mi_probe"]).tolist() == [False, True]


def test_a_gap_at_the_matched_points_is_paired_over_splits() -> None:
    base = {
        "dataset": "adult",
        "variant": "reference",
        "protocol": "reference",
        "task": "classification",
        "option": "",
    }
    lines = []
    for split in (42, 43, 44):
        lines.append(
            {
                **base,
                "method": "unfair",
                "lam": 0.0,
                "split": split,
                "performance": 0.8,
                "gdp_reference": 0.7,
            }
        )
        for method, shift in (("frhsic", 0.0), ("reg_gdp", 0.1)):
            for lam, accuracy, gdp in ((1.0, 0.8, 0.5), (10.0, 0.5, 0.0)):
                value = (
                    0.01 * split + shift + (lam == 10.0 and method == "frhsic")
                )  # seen at the wrong λ
                line = {
                    "method": method,
                    "lam": lam,
                    "split": split,
                    "performance": accuracy,
                    "gdp_reference": gdp,
                }
                lines.append({**base, **line, "mi_probe": value})
    rows = pd.DataFrame(lines)
    gap = information_gap(rows, "mi_probe").iloc[0]
    assert gap["gap"] == pytest.approx(-0.1)
    assert gap["lower in"] == 3
    assert gap["high"] - gap["low"] == pytest.approx(0.0, abs=1e-9)
