"""The bounds of tables of counts are those of the library, and the study can find a bound that is too small."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic_core.bounds import eipm_bound, gdp_bound, hsic_bound
from frhsic_core.kernels import Categorical
from frhsic_core.paper.experiments import promises


@pytest.mark.parametrize("name", promises.LAWS)
@pytest.mark.parametrize("n", [50, 400])
def test_bounds_of_tables_are_those_of_rows(name: str, n: int) -> None:
    chosen = promises.law(name)
    counts = np.random.default_rng(n).multinomial(n, chosen.table.ravel())
    scores, groups = (index.ravel() for index in np.indices(chosen.table.shape))
    f = np.repeat(chosen.scores[scores], counts)
    z, s = np.repeat(scores, counts), np.repeat(groups, counts)
    table = counts.reshape(1, *chosen.table.shape) / n
    found = promises.bounds_of(table, chosen.scores, n, 0.05)
    tuned = {"anytime": True, "planned_rows": promises.PLANNED}
    kernels = {"kernel_z": Categorical(), "kernel_s": Categorical()}
    columns = torch.tensor(z).reshape(-1, 1).double(), torch.tensor(s).reshape(-1, 1).double()
    expected = {
        "gdp": gdp_bound(f, sensitive_features=s).bound,
        "gdp, all sizes": gdp_bound(f, sensitive_features=s, **tuned).bound,
        "hsic": hsic_bound(*columns, **kernels).bound ** 0.5,
        "hsic, variance": hsic_bound(*columns, method="variance", **kernels).bound ** 0.5,
        "hsic, all sizes": hsic_bound(*columns, **kernels, **tuned).bound ** 0.5,
        "eipm": eipm_bound(columns[0], sensitive_features=s, kernel_z=Categorical()).bound,
        "eipm, all sizes": eipm_bound(
            columns[0], sensitive_features=s, kernel_z=Categorical(), **tuned
        ).bound,
    }
    assert set(found) == set(expected)
    for key, bound in expected.items():
        # The library adds EIPM_n/(n − 1) where it uses McDiarmid's inequality, and so do the tables.
        assert float(found[key][0]) == pytest.approx(bound, rel=1e-6), key


def test_the_filter_of_a_path_leaves_no_miss_out() -> None:
    """All samples of a path at one time, with and without the part that decides which are computed."""
    chosen = promises.law("fair coin, dependent")
    n, delta = 2000, 0.2
    tables = np.random.default_rng(0).multinomial(n, chosen.table.ravel(), size=3000)
    tables = tables.reshape(-1, 2, 2) / n
    tables[:50] = [[0.25, 0.25], [0.25, 0.25]]
    shifted = promises.Law(np.array([[0.32, 0.18], [0.18, 0.32]]), chosen.scores)
    found = promises._too_small(tables, shifted, n, delta)
    bounds = promises.bounds_of(tables, chosen.scores, n, delta)
    short = bounds["gdp, all sizes"] < shifted.gdp
    assert 0 < short.sum() < 3000
    assert (found["gdp, all sizes"] == short).all()
    assert (found["gdp, every look as if alone"] == (bounds["gdp"] < shifted.gdp)).all()


def test_a_bound_that_is_too_small_breaks_the_table() -> None:
    rows = pd.DataFrame(
        {
            "bound": ["good", "bad"],
            "delta": 0.05,
            "covered": [9480, 9400],
            "draws": 10_000,
        }
    )
    found = promises.coverage_table(rows).set_index("bound")
    assert found["broken"].to_dict() == {"good": 0, "bad": 1}
