"""Settings every test shares: one thread, repeatable property-based search, clean skips."""

from __future__ import annotations

import os

# Before torch is imported: on a small machine the default thread count makes small tensors up to ninety times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and say why."""
    without_cuda = pytest.mark.skip(reason="no CUDA device")
    without_data = pytest.mark.skip(reason="FRHSIC_DATA is not set")
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(without_cuda)
        if item.get_closest_marker("data") and not os.environ.get("FRHSIC_DATA"):
            item.add_marker(without_data)


@pytest.fixture
def generator() -> torch.Generator:
    """Return a generator with a fixed seed, fresh for each test."""
    return torch.Generator().manual_seed(20260101)
