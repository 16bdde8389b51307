"""Smoothing weights against loops and SciPy, and what they do where a quotient of kernels would be 0/0."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde

from frhsic_core._arrays import row_weights
from frhsic_core.conditional._smoothing import (
    counted_range,
    leave_one_out_at,
    resolve_bandwidth,
    weights_at,
)


def column(s):
    s = torch.as_tensor(s)
    return s.unsqueeze(-1) if s.ndim == 1 else s


def plain(at, s, *, bandwidth, mask=None, sample_weight=None):
    """Nadaraya–Watson weights of all rows of S."""
    at, s = column(at), column(s)
    q = row_weights(s, mask, sample_weight)
    return weights_at(at, s, resolve_bandwidth(bandwidth, s, q), q)


def leave_one_out(s, *, bandwidth, anchors=None, mask=None):
    s = column(s)
    q = row_weights(s, mask, None)
    return leave_one_out_at(anchors, s, resolve_bandwidth(bandwidth, s, q), q)[0]


def rule_of(s, rule="silverman", **options):
    s = column(s)
    return torch.as_tensor(
        resolve_bandwidth(
            rule, s, row_weights(s, options.get("mask"), options.get("sample_weight"))
        )
    )


def loop_weights(at, s, h, q, leave_out=None):
    """Nadaraya–Watson weights at one value, one row at a time; ``s`` is ``(n, p)``."""
    raw = [
        0.0
        if j == leave_out
        else q[j]
        * math.prod(
            math.exp(-0.5 * ((a - b) / b_h) ** 2) for a, b, b_h in zip(at, s[j], h, strict=True)
        )
        for j in range(len(s))
    ]
    return [r / sum(raw) for r in raw]


@pytest.mark.parametrize("p", [1, 2, 3])
def test_weights_equal_the_loop(generator, p):
    s = torch.randn(12, p, generator=generator, dtype=torch.float64)
    at = torch.randn(5, p, generator=generator, dtype=torch.float64)
    q = torch.rand(12, generator=generator, dtype=torch.float64)
    h = [0.4, 0.7, 1.1][:p]
    weights = plain(at, s, bandwidth=tuple(h), sample_weight=q)
    for i in range(5):
        expected = loop_weights(at[i].tolist(), s.tolist(), h, q.tolist())
        np.testing.assert_allclose(weights[i].numpy(), expected, rtol=1e-11, atol=1e-15)


def test_leave_one_out_equals_the_loop_for_all_rows_and_for_anchors(generator):
    s = torch.randn(10, 1, generator=generator, dtype=torch.float64)
    weights = leave_one_out(s, bandwidth=0.5)
    for i in range(10):
        expected = loop_weights(s[i].tolist(), s.tolist(), [0.5], [1.0] * 10, leave_out=i)
        np.testing.assert_allclose(weights[i].numpy(), expected, rtol=1e-12, atol=1e-300)
    anchors = torch.tensor([7, 2])
    torch.testing.assert_close(leave_one_out(s, bandwidth=0.5, anchors=anchors), weights[anchors])


def test_anchors_may_differ_between_batch_elements(generator):
    s = torch.randn(3, 10, 1, generator=generator, dtype=torch.float64)
    anchors = torch.tensor([[0, 1], [2, 3], [9, 4]])
    weights = leave_one_out(s, bandwidth=0.5, anchors=anchors)
    for b in range(3):
        torch.testing.assert_close(weights[b], leave_one_out(s[b], bandwidth=0.5)[anchors[b]])


@given(
    s=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12),
    at=st.floats(-1e12, 1e12),
    h=st.floats(1e-30, 1e6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_weights_are_always_a_probability(s, at, h, dtype):
    # A sample that consists of subnormal numbers is refused.
    s = torch.tensor([value if abs(value) > 1e-30 else 0.0 for value in s], dtype=dtype)
    for weights in (
        plain(torch.tensor([at], dtype=dtype), s, bandwidth=h),
        leave_one_out(s, bandwidth=h),
    ):
        assert bool((weights >= 0).all())
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_a_value_far_from_all_data_gets_the_nearest_row():
    weights = plain(torch.tensor([1e8, -1e8]).double(), torch.arange(3.0).double(), bandwidth=1e-3)
    torch.testing.assert_close(weights, torch.tensor([[0, 0, 1], [1, 0, 0]], dtype=torch.float64))


def test_a_mask_is_the_subset(generator):
    s = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    keep = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0, 1], dtype=torch.bool)
    weights = plain(s[:3], s, bandwidth=0.3, mask=keep)
    torch.testing.assert_close(weights[:, keep], plain(s[:3], s[keep], bandwidth=0.3))
    assert bool((weights[:, ~keep] == 0).all())
    torch.testing.assert_close(rule_of(s, mask=keep), rule_of(s[keep]), rtol=1e-12, atol=0.0)
    counts = torch.arange(9) % 4 + 1
    weighted = rule_of(s, mask=keep, sample_weight=counts)
    torch.testing.assert_close(
        weighted, rule_of(s[keep], sample_weight=counts[keep]), rtol=1e-9, atol=0.0
    )
    assert not torch.allclose(weighted, rule_of(s[keep]), rtol=1e-4)


def test_a_mask_that_keeps_one_row_leaves_no_row_to_weigh():
    weights = leave_one_out(torch.arange(3.0).double(), bandwidth=1.0, mask=[True, False, False])
    torch.testing.assert_close(weights[0], torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rule_of_silverman_is_that_of_scipy(generator, weighted):
    s = torch.randn(40, 1, generator=generator, dtype=torch.float64) * 3
    q = torch.rand(40, generator=generator, dtype=torch.float64) if weighted else None
    kde = gaussian_kde(s.T.numpy(), bw_method="silverman", weights=None if q is None else q.numpy())
    np.testing.assert_allclose(
        rule_of(s, sample_weight=q).numpy(), np.sqrt(np.diag(kde.covariance)), rtol=1e-12
    )


def test_the_rule_of_jiang_ignores_the_scale():
    s = np.arange(1000.0)
    assert rule_of(s, "jiang").item() == pytest.approx((3 * 1000 / 4) ** (-1 / 5), rel=1e-12)
    assert rule_of(1e3 * s, "jiang") == rule_of(s, "jiang")


def test_a_constant_attribute_has_a_bandwidth():
    assert rule_of(np.full(5, 3.0)).item() > 0
    assert rule_of(np.array([2.0])).item() > 0


def test_batches_are_loops_and_bandwidths_may_differ(generator):
    s = torch.randn(4, 8, 1, generator=generator, dtype=torch.float64)
    h = torch.tensor([0.1, 0.5, 1.0, 2.0], dtype=torch.float64)
    weights = leave_one_out(s, bandwidth=h)
    for b in range(4):
        torch.testing.assert_close(weights[b], leave_one_out(s[b], bandwidth=h[b].item()))


def test_the_range_is_that_of_the_rows_that_count() -> None:
    values, weights = (
        torch.tensor([5.0, 2.0, 3.0, -7.0, 9.0]),
        torch.tensor([0.0, 0.5, 0.25, 0.0, 0.0]),
    )
    assert [float(end) for end in counted_range(values, weights)] == [2.0, 3.0]
    assert [float(end) for end in counted_range(values, None)] == [-7.0, 9.0]
    assert [float(end) for end in counted_range(values, 0.0 * weights)] == [0.0, 0.0]
