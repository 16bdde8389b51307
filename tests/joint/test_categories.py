"""Text is read as codes of categories, which have no order and no distance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from frhsic_core import HSICLoss, hsic, hsic_test, normalized_hsic
from frhsic_core.kernels import KERNELS, Categorical, Gaussian, Linear, Product

WORDS = np.array(["a", "b", "c", "d"])[np.arange(40) % 4]
TABLE = pd.DataFrame({"age": np.arange(40.0), "word": WORDS})
NUMERIC = [*(name for name in KERNELS if name != "categorical"), Gaussian(1.0), Linear()]


@pytest.mark.parametrize("statistic", [hsic, normalized_hsic, hsic_test, HSICLoss()])
@pytest.mark.parametrize("kernel", NUMERIC, ids=str)
def test_a_kernel_of_numbers_does_not_take_categories(statistic, kernel) -> None:
    """Codes are numbered by appearance: the result would depend on the order of the rows."""
    z = np.arange(40.0)
    options = {"kernel_s": kernel}
    if isinstance(statistic, HSICLoss):
        statistic, options = HSICLoss(kernel_s=kernel), {}
    with pytest.raises(TypeError, match=r"kernel_s is .* categories.*Categorical\(\)"):
        statistic(z, WORDS, **options)
    with pytest.raises(TypeError, match=r"column 1 has categories.*'product'"):
        statistic(z, TABLE, **options)


@pytest.mark.parametrize("kernel", ["categorical", None, "product", Categorical()])
def test_kernels_of_categories_do_not_depend_on_the_order_of_rows(kernel) -> None:
    z = np.sin(np.arange(40.0))
    order = np.random.default_rng(0).permutation(40)
    moved = hsic(z[order], WORDS[order], kernel_s=kernel)
    assert hsic(z, WORDS, kernel_s=kernel) == pytest.approx(moved, rel=1e-12)


def test_a_product_reads_codes_only_with_a_kernel_of_categories() -> None:
    z = np.arange(40.0)
    assert hsic(z, TABLE, kernel_s=Product([Gaussian(9.0), Categorical()])) > 0
    with pytest.raises(TypeError, match="column 1 has categories"):
        hsic(z, TABLE, kernel_s=Product([Gaussian(9.0), Gaussian(1.0)]))
