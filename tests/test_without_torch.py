"""An audit, an adjustment, the statistics, their tests and the bounds need no torch, and do not import it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Missing())
"""
SAMPLE = """
import numpy as np
import pandas as pd
import frhsic_core as fc

rng = np.random.default_rng(0)
age = rng.normal(40.0, 12.0, 400).round()
sex = np.where(rng.random(400) < 0.5, "f", "m")
z = rng.normal(size=(400, 3))
score = 1.0 / (1.0 + np.exp(-z[:, 0] - 0.03 * (age - 40.0)))
label = (rng.random(400) < score).astype(int)
people = pd.DataFrame({"age": age, "sex": sex})
"""


def without_torch(lines: str, *, blocked: bool = True) -> str:
    """Return what a script prints in which torch cannot be imported; or only is not, by itself."""
    script = (BLOCKED if blocked else "import sys\n") + SAMPLE + textwrap.dedent(lines)
    script += '\nassert "torch" not in sys.modules\nprint("done")\n'
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_statistics_and_tests() -> None:
    lines = """
        assert 0.0 < fc.hsic(score, age) < fc.hsic(age, age)
        assert 0.0 < fc.normalized_hsic(z, people) < 1.0
        assert 0.0 < fc.distance_correlation(score, age) < 1.0
        assert 0.0 < fc.khgr(score, age, ridge=0.1) < 1.0
        assert fc.mutual_information(score, age) > 0.0
        assert fc.eipm(z, age) > 0.0
        assert 0.0 < fc.gdp(score, age) < fc.gdp_curve(score, age).gdp_high
        assert fc.joint.conditional_hsic(score, age, sex) > 0.0
        for method in ("gamma", "spectral", "permutation", "aggregated"):
            for given in (None, sex, z[:, 1]):
                assert fc.hsic_test(score, age, method=method, given=given).pvalue < 0.05
        print(fc.gdp_bound(score, sensitive_features=age))
        kernels = {"kernel_z": fc.Gaussian(1.0), "kernel_s": fc.Gaussian(10.0)}
        print(fc.hsic_bound(score, age, **kernels))
    """
    assert "GDP" in without_torch(lines)
    assert "HSIC" in without_torch(lines, blocked=False)


def test_audit_and_adjust() -> None:
    lines = """
        report = fc.audit(score, sensitive_features=people, y_true=label)
        assert report["age"].pvalue < 0.05
        print(report)
        adjusted = fc.adjust_scores(score, sensitive_features=age)
        assert fc.gdp(adjusted, age) < fc.gdp(score, age)
        found = fc.audit_representation(z, age)
        assert found.nonlinear_r2 < 0.5
    """
    assert "age" in without_torch(lines)


def test_what_needs_torch_says_how_to_get_it() -> None:
    lines = """
        for name in ("HSICLoss", "FairClassifier", "FairEncoder"):
            try:
                getattr(fc, name)
            except ImportError as error:
                print(error)
    """
    said = without_torch(lines)
    assert said.count('pip install "frhsic-core[torch]"') == 3
