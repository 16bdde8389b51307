"""The audit against scikit-learn, the library's own statistics and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from frhsic_core import (
    Gaussian,
    audit_representation,
    distance_correlation,
    gdp,
    median_bandwidth,
    normalized_hsic,
)
from frhsic_core.auditing._representation import (
    RIDGES,
    _kernel_statistics,
    linear_features,
    probe_r2,
    random_features,
)


def sample(n: int = 300, d: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    s = (
        0.5 * z[:, :1]
        + 0.3 * z[:, 1:2] ** 2
        + torch.randn(n, 1, generator=generator, dtype=torch.float64)
    )
    return z, s


def test_the_probe_is_a_cross_fitted_ridge() -> None:
    z, s = sample()
    x = linear_features(z)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    fold = np.empty(300, dtype=int)
    for number, rows in enumerate(order.chunk(5)):
        fold[rows.numpy()] = number
    design = np.column_stack([np.ones(300), x.numpy()])
    size = (design**2).sum(0).mean()
    best = -np.inf
    for strength in RIDGES:
        ridge = Ridge(alpha=strength * size)
        predicted = cross_val_predict(ridge, x.numpy(), s.numpy().ravel(), cv=PredefinedSplit(fold))
        best = max(
            best,
            1 - ((s.numpy().ravel() - predicted) ** 2).sum() / ((s - s.mean()) ** 2).sum().item(),
        )
    assert probe_r2(x.unsqueeze(0), s.unsqueeze(0)).item() == pytest.approx(best, abs=1e-6)
    # Without noise the smallest of the ridges is the best.
    assert probe_r2(x.unsqueeze(0), 3.0 * z[None, :, :1]).item() == pytest.approx(1.0, abs=1e-9)


def test_the_numbers_are_those_of_the_library() -> None:
    z, s = sample()
    probability = torch.sigmoid(z[:, 0])
    audit = audit_representation(z, s, predictions=probability)
    sigma = median_bandwidth(z)
    for i, factor in enumerate((0.5, 1.0, 2.0)):
        expected = normalized_hsic(z, s, kernel_z=Gaussian(factor * sigma))
        assert audit.normalized_hsic[i].item() == pytest.approx(expected.item(), rel=1e-9)
    expected = distance_correlation(z, s, squared=True, estimator="unbiased")
    assert audit.distance_correlation.item() == pytest.approx(expected.item(), rel=1e-9)
    assert audit.gdp is not None
    assert audit.gdp.item() == pytest.approx(gdp(probability, s).item(), rel=1e-9)
    assert audit_representation(z, s).gdp is None
    plain = audit_representation(z.numpy(), s.numpy(), predictions=probability.numpy())
    assert isinstance(plain.gdp, float)
    assert plain.as_dict() == pytest.approx(audit.as_dict(), rel=1e-9)


def test_the_floor_is_the_mean_over_all_permutations_of_six_rows() -> None:
    z, s = sample(6)
    orders = torch.tensor(list(itertools.permutations(range(6))))
    floors = _kernel_statistics(z[None], s[None])[1][0]
    for factor, floor in zip((0.5, 1.0, 2.0), floors, strict=True):
        kernel = Gaussian(factor * median_bandwidth(z))
        values = normalized_hsic(z.expand(720, -1, -1), s[orders], kernel_z=kernel)
        assert floor.item() == pytest.approx(values.mean().item(), rel=1e-10)


def test_the_kernel_statistics_use_evenly_spaced_rows() -> None:
    z, s = sample(100)
    order = s.flatten().argsort()  # sorted: the first rows are another sample
    z, s = z[order], s[order]
    audit = audit_representation(z, s, max_rows=20)
    kept = torch.linspace(0, 99, 20).round().long()
    alone = audit_representation(z[kept], s[kept])
    assert audit.rows == 20
    torch.testing.assert_close(audit.normalized_hsic, alone.normalized_hsic)
    torch.testing.assert_close(audit.distance_correlation, alone.distance_correlation)


def test_a_stack_is_each_model_by_itself() -> None:
    pairs = [sample(seed=seed) for seed in range(5)]
    z, s = torch.stack([z for z, _ in pairs]), torch.stack([s for _, s in pairs])
    stack = audit_representation(z, s, predictions=z[..., :1], chunk_size=2)
    for i in range(5):
        alone = audit_representation(z[i], s[i], predictions=z[i, :, 0])
        for name, value in alone.as_dict().items():
            assert stack.as_dict()[name][i] == pytest.approx(value, rel=1e-6, abs=1e-9)
    shared = audit_representation(z, s[0])
    assert shared.nonlinear_r2.shape == (5,)
    assert shared.linear_r2[0].item() == pytest.approx(stack.linear_r2[0].item(), rel=1e-6)


def test_a_probe_finds_what_hides_in_a_direction_of_low_variance() -> None:
    """Normalised HSIC at the median bandwidth does not see it: the reason why the audit has probes."""
    generator = torch.Generator().manual_seed(0)
    s = torch.rand(1000, 1, generator=generator, dtype=torch.float64)
    z = torch.randn(1000, 8, generator=generator, dtype=torch.float64)
    z[:, :1] = 0.03 * s
    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))[0]
    audit = audit_representation(z @ rotation, s)
    assert audit.linear_r2 > 0.99
    assert audit.nonlinear_r2 > 0.8
    assert audit.normalized_hsic[1] < 2 * audit.floor[1]


def test_independence_and_constants() -> None:
    generator = torch.Generator().manual_seed(0)
    z, s = (torch.randn(1000, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    audit = audit_representation(z, s)
    assert abs(audit.distance_correlation) < 0.02
    assert audit.linear_r2 < 0.02
    assert audit.nonlinear_r2 < 0.02
    assert (audit.normalized_hsic < 2 * audit.floor).all()
    constant = audit_representation(torch.ones(100, 3), s[:100])
    assert constant.normalized_hsic.tolist() == [0.0, 0.0, 0.0]
    assert abs(constant.linear_r2) < 0.1


def test_of_several_attributes_the_largest_numbers_are_reported() -> None:
    z, s = sample()
    both = pd.DataFrame(
        {"noise": np.random.default_rng(0).normal(size=300), "age": s.flatten().numpy()}
    )
    audit = audit_representation(z, both, predictions=z[:, 0]).as_dict()
    alone = [audit_representation(z, both[[name]], predictions=z[:, 0]).as_dict() for name in both]
    for name in ("linear_r2", "nonlinear_r2", "gdp"):
        assert alone[1][name] > alone[0][name]
        assert audit[name] == pytest.approx(alone[1][name])


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="s has 99 rows but z has 100"):
        audit_representation(torch.zeros(100, 2), torch.zeros(99))
    rows = pd.Series(np.arange(100.0))
    with pytest.raises(ValueError, match="s and predictions"):
        audit_representation(np.zeros((100, 2)), rows, predictions=rows[::-1])
    z = torch.randn(2, 30, 3, generator=torch.Generator().manual_seed(0))
    assert random_features(z, features=10).shape == (2, 30, 13)
