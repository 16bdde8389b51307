"""The audit against scikit-learn, the library's own statistics and brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from frhsic_core import Gaussian, distance_correlation, gdp, median_bandwidth, normalized_hsic
from frhsic_core.learning import make_penalty
from frhsic_core.learning.audit import audit_representation
from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.penalties.whitening import RIDGE, whiten
from frhsic_core.learning.probes import RIDGES, linear_features, probe_r2, random_features


def sample(n: int = 300, d: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    s = 0.5 * z[:, :1] + 0.3 * z[:, 1:2] ** 2 + torch.randn(n, 1, generator=generator, dtype=torch.float64)
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
        best = max(best, 1 - ((s.numpy().ravel() - predicted) ** 2).sum() / ((s - s.mean()) ** 2).sum().item())
    assert probe_r2(x.unsqueeze(0), s.unsqueeze(0)).item() == pytest.approx(best, abs=1e-6)


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


def test_the_floor_is_the_mean_over_permutations() -> None:
    z, s = sample(60)
    audit = audit_representation(z, s)
    generator = torch.Generator().manual_seed(1)
    shuffled = torch.stack([s[torch.randperm(60, generator=generator)] for _ in range(2000)])
    values = normalized_hsic(z.expand(2000, -1, -1), shuffled, kernel_z=Gaussian(median_bandwidth(z)))
    error = values.std().item() / 2000**0.5
    assert abs(values.mean().item() - audit.floor[1].item()) < 4 * error


def test_a_stack_is_each_model_by_itself() -> None:
    pairs = [sample(seed=seed) for seed in range(5)]
    z, s = torch.stack([z for z, _ in pairs]), torch.stack([s for _, s in pairs])
    stack = audit_representation(z, s, predictions=z[..., 0], chunk=2)
    for i in range(5):
        alone = audit_representation(z[i], s[i], predictions=z[i, :, 0])
        for name, value in alone.as_dict().items():
            assert stack.as_dict()[name][i] == pytest.approx(value, rel=1e-6, abs=1e-9)
    shared = audit_representation(z, s[0])
    assert shared.nonlinear_r2.shape == (5,)
    assert shared.linear_r2[0].item() == pytest.approx(stack.linear_r2[0].item(), rel=1e-6)
    assert "nonlinear_r2" in str(stack)


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


def test_what_is_not_linear_is_seen_by_the_other_probe() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(1000, 3, generator=generator, dtype=torch.float64)
    s = z[:, 0] ** 2
    audit = audit_representation(z, s)
    assert audit.linear_r2 < 0.05
    assert audit.nonlinear_r2 > 0.8


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
    scaled = audit_representation(1e6 * z + 3, s)
    assert scaled.normalized_hsic[1].item() == pytest.approx(audit.normalized_hsic[1].item(), rel=1e-6)
    assert scaled.linear_r2.item() == pytest.approx(audit.linear_r2.item(), abs=1e-6)


def test_the_floor_and_the_attribute_are_told() -> None:
    """What an HSIC is to be read against, and which of several attributes a maximum belongs to."""
    z, s = sample()
    both = pd.DataFrame({"noise": np.random.default_rng(0).normal(size=300), "age": s.flatten().numpy()})
    audit = audit_representation(z, both, predictions=z[:, 0])
    values = audit.as_dict()
    assert values["floor_1"] == pytest.approx(audit.floor[1].item())
    assert audit.attributes == ("noise", "age")
    for name in ("linear_r2", "nonlinear_r2", "gdp"):
        assert values[name] == values[f"{name}[age]"] > values[f"{name}[noise]"]
    alone = audit_representation(z, both[["age"]], predictions=z[:, 0]).as_dict()
    assert values["gdp[age]"] == pytest.approx(alone["gdp"])
    assert values["linear_r2[age]"] == pytest.approx(alone["linear_r2"])
    assert "gdp[age]" not in alone
    assert all(name in str(audit) for name in ("floor_0.5", "nonlinear_r2[noise]"))


def test_a_constant_attribute_and_rows_in_another_order_are_refused() -> None:
    z, s = sample()
    with pytest.raises(ValueError, match=r"s is constant \(column 0\): nothing can depend on it"):
        audit_representation(z, torch.ones(300))
    with pytest.raises(ValueError, match=r"s is constant \(column age\)"):
        audit_representation(z, pd.DataFrame({"bmi": s.flatten(), "age": 30.0}))
    frame, age = pd.DataFrame(z.numpy()), pd.Series(s.flatten().numpy(), name="age")
    with pytest.raises(ValueError, match="z and s have the same row labels in another order"):
        audit_representation(frame, age.sort_values())
    with pytest.raises(ValueError, match="s and predictions have the same row labels in another order"):
        audit_representation(z, age, predictions=frame[0].sort_values())


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="s has 99 rows but z has 100"):
        audit_representation(torch.zeros(100, 2), torch.zeros(99))
    with pytest.raises(ValueError, match="at least 10 are needed"):
        audit_representation(torch.zeros(6, 2), torch.zeros(6))
    with pytest.raises(ValueError, match="folds is 30 for 40 rows"):
        probe_r2(torch.zeros(1, 40, 2), torch.zeros(1, 40, 1), folds=30)
    z = torch.randn(2, 30, 3, generator=torch.Generator().manual_seed(0))
    assert random_features(z, features=10).shape == (2, 30, 13)


# Whitening, the penalty's answer to the thin direction ---------------------------------------------------------------


def test_whitening_against_numpy_and_under_linear_maps() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2, 500, 3, generator=generator, dtype=torch.float64)
    white = whiten(z)
    for i in range(2):
        covariance = np.cov(z[i].numpy().T, bias=True)
        factor = np.linalg.cholesky(covariance + (RIDGE * np.trace(covariance) + 1e-8) * np.eye(3))
        expected = np.linalg.solve(factor, (z[i] - z[i].mean(0)).numpy().T).T
        np.testing.assert_allclose(white[i].numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(np.cov(white[i].numpy().T, bias=True), np.eye(3), atol=1e-3)  # the ridge
    mixing = torch.tensor([[1.0, 0.5, 0.0], [0.2, 1.0, 0.0], [0.0, 0.3, 2.0]], dtype=torch.float64)
    before, after = torch.cdist(white, white), torch.cdist(whiten(z @ mixing), whiten(z @ mixing))
    torch.testing.assert_close(before, after, atol=1e-2, rtol=1e-2)
    weights = torch.full((2, 500), 1 / 500, dtype=torch.float64)
    torch.testing.assert_close(whiten(z, weights), white)
    doubled, halves = torch.cat([z, z[:, :1]], dim=1), torch.full((2, 501), 1 / 501, dtype=torch.float64)
    heavier = torch.full((2, 500), 1 / 501, dtype=torch.float64)
    heavier[:, 0] *= 2
    torch.testing.assert_close(whiten(doubled, halves)[:, :500], whiten(z, heavier))


def test_whitening_survives_repeated_rows_and_a_dead_direction() -> None:
    z = torch.tensor([[1.0, 0.0]] * 3 + [[2.0, 0.0]] * 3, dtype=torch.float64).unsqueeze(0).requires_grad_()
    whiten(z).square().sum().backward()
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())
    assert bool(whiten(torch.ones(1, 5, 2)).isfinite().all())


def test_the_whitened_penalty_sees_the_thin_direction() -> None:
    generator = torch.Generator().manual_seed(0)
    s, u = torch.randn(2, 1, 256, 1, generator=generator, dtype=torch.float64)
    z = torch.cat([u + 0.02 * s, u - 0.02 * s], dim=-1)
    data = TrainingData.from_arrays(z[0], (u[0, :, 0] > 0).double(), s[0], dtype=torch.float64)
    rows = torch.arange(256).unsqueeze(0)
    batch = Batch(z, u[..., 0], s, data.y, None, rows)
    value = {}
    for scale in ("standardise", "whiten"):
        penalty = make_penalty("frhsic", scale=scale)
        penalty.setup(data, dataset=torch.zeros(1, dtype=torch.int64), generators=[generator], representation=2)
        value[scale] = penalty(batch, refresh=True).item()
    assert value["standardise"] < 0.05
    assert value["whiten"] > 0.3
