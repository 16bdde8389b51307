"""What a scikit-learn user types first does what is expected, or the error names the right call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import frhsic_core as fc
from frhsic_core.auditing import gdp_score

GENERATOR = np.random.default_rng(0)
N = 300
AGE = GENERATOR.integers(20, 60, N).astype(float)
LABEL = GENERATOR.integers(0, 2, N)
SCORE = np.clip(0.5 + 0.004 * (AGE - 40) + 0.1 * GENERATOR.normal(size=N), 0, 1)
TENSORS = torch.as_tensor(SCORE), torch.as_tensor(AGE)

WORK: dict[str, tuple[Callable[[], Any], type]] = {
    "a statistic of arrays": (lambda: fc.hsic(SCORE, AGE), float),
    "of a series": (lambda: fc.distance_correlation(pd.Series(SCORE), pd.Series(AGE)), float),
    "of lists": (lambda: fc.gdp(SCORE.tolist(), AGE.tolist()), float),
    "of tensors": (lambda: fc.hsic(*TENSORS), torch.Tensor),
    "of words": (lambda: fc.normalized_hsic(SCORE, np.where(AGE > 40, "old", "young")), float),
    "kernels by name": (lambda: fc.hsic(SCORE, AGE, kernel_z="gaussian", kernel_s="laplacian"), float),
    "a whole number as a seed": (lambda: fc.hsic_test(SCORE, AGE, random_state=0).pvalue, float),
    "a generator": (lambda: fc.hsic_test(SCORE, AGE, random_state=np.random.default_rng(0)).pvalue, float),
    "a metric": (lambda: gdp_score(LABEL, SCORE, sensitive_features=AGE), float),
    "the audit's number": (lambda: fc.audit(SCORE, sensitive_features=AGE, y_true=LABEL).gdp, float),
    "a bound as a number": (lambda: float(fc.gdp_bound(SCORE, sensitive_features=AGE)), float),
}
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "the attribute by position": (lambda: fc.audit(SCORE, AGE), TypeError, "audit(y_pred, sensitive_features=age"),
    "fairlearn's name": (lambda: fc.gdp(LABEL, SCORE, sensitive_features=AGE), TypeError, "gdp_score(y_true, y_pred"),
    "another word for a seed": (lambda: fc.hsic_test(SCORE, AGE, seed=0), TypeError, "write random_state"),
    "another word for alpha": (lambda: fc.hsic_test(SCORE, AGE, level=0.1), TypeError, "write alpha"),
    "another word for weights": (lambda: fc.hsic(SCORE, AGE, weights=AGE), TypeError, "write sample_weight"),
    "scikit-learn's name of a kernel": (lambda: fc.hsic(SCORE, AGE, kernel_z="rbf"), ValueError, "gaussian"),
    "ages of other people": (lambda: fc.hsic(SCORE, AGE[:-1]), ValueError, "299"),
    "a missing age": (lambda: fc.gdp(SCORE, np.where(AGE > 58, np.nan, AGE)), ValueError, "NaN"),
}


@pytest.mark.parametrize("name", WORK)
def test_what_is_expected(name: str) -> None:
    call, kind = WORK[name]
    found = call()
    assert isinstance(found, kind)
    assert 0.0 < float(found) < 1.0


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_names_the_right_call(name: str) -> None:
    call, error, words = ERRORS[name]
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
