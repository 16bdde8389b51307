"""The explorer "promise" says the numbers of the library; Node runs its formulas, so no browser is needed."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from frhsic_core.bounds import gdp_bound
from frhsic_core.bounds.gdp import always_slack
from frhsic_core.paper.statements.limits import least_constant, least_of_groups

FORMULAS = Path(__file__).resolve().parents[2] / "book/_static/explorers/formulas.js"
CASES = list(itertools.product((50, 90, 1000, 10_000, 10**6), (2, 20), (1, 24), (0.05, 0.2)))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    if shutil.which("node") is None:
        pytest.skip("needs Node")
    folder = tmp_path_factory.mktemp("node")
    (folder / "formulas.mjs").write_text(FORMULAS.read_text(encoding="utf-8"))
    calls = ",".join(f"formulas.promised({', '.join(map(str, case))})" for case in CASES)
    script = f'import {{ formulas }} from "./formulas.mjs"; console.log(JSON.stringify([{calls}]))'
    (folder / "run.mjs").write_text(script)
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_the_guarantees_are_those_of_the_library(shown: list[dict[str, float]]) -> None:
    for (n, groups, looks, delta), found in zip(CASES, shown, strict=True):
        gap = 0.5 * math.sqrt(2 / math.pi * (groups - 1) / n)
        assert found["estimate"] == pytest.approx(min(gap, 0.5), rel=1e-12)
        # Half of the rows are ones, and the bound depends on the scores through n, mean and deviation.
        half = np.tile([0.0, 1.0], n // 2)
        same = gdp_bound(half, sensitive_features=np.zeros(n), delta=delta)
        shared = gdp_bound(half, sensitive_features=np.zeros(n), delta=delta / looks)
        for name, bound in (("once", same), ("divided", shared)):
            slack = bound.slack + (gap / (n - 1) if bound.method == "difference" else 0.0)
            assert found[name] == pytest.approx(min(gap + slack, 0.5), rel=1e-9)
        slack = float(always_slack(0.5, half.std(ddof=1), n, delta, rows=10_000))
        assert found["always"] == pytest.approx(min(gap + slack, 0.5), rel=1e-9)


def test_the_limit_is_that_of_the_chapter(shown: list[dict[str, float]]) -> None:
    assert least_constant() - 1e-4 < 1.1527 <= least_constant()
    for (n, groups, _, delta), found in zip(CASES, shown, strict=True):
        if delta == 0.05:
            limit = min(0.5, least_of_groups(groups) / math.sqrt(n))
            assert limit * (1 - 1e-4) < found["limit"] <= limit
            assert found["limit"] < found["once"]
