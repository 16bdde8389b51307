"""What a type checker knows about the public names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import frhsic_core
import frhsic_core.learning
from frhsic_core._lazy import homes_in

ROOT = Path(__file__).resolve().parents[1]
OF_LEARNING = {
    "FairClassifier(1.0)": "frhsic_core.learning.estimators.fair.FairClassifier",
    "FairEncoder(lam='auto')": "frhsic_core.learning.estimators.fair.FairEncoder",
    "FairRegressor()": "frhsic_core.learning.estimators.fair.FairRegressor",
    "FairClassifier().fit(x, x)": "frhsic_core.learning.estimators.fair.FairClassifier",
    "FairClassifier().predict_proba(x)": "numpy.ndarray",
    "FRHSIC(estimator='biased')": "frhsic_core.learning.penalties.frhsic.FRHSIC",
    "make_penalty('frhsic')": "frhsic_core.learning.penalties.base.Penalty",
    "Trainer(x, x, x).fit()": "frhsic_core.learning.stack.TrainedStack",
    "Trainer(x, x, x).fit().encode(x)": "torch._tensor.Tensor",
    "LambdaSelection().lams": "Sequence[",
    "select_lambda(x).choice": "frhsic_core.learning.rules.LambdaChoice",
}
OF_THE_ROOT = {
    "FairClassifier(1.0).fit(x, x)": "frhsic_core.learning.estimators.fair.FairClassifier",
    "HSICLoss(1.0)": "HSICLoss",
    "Gaussian(1.0)": "frhsic_core.kernels.Gaussian",
    "hsic_test(x, x)": "IndependenceTest",
    "gdp_bound(x, sensitive_features=x)": "DependenceBound",
    "gdp_score(x, x, sensitive_features=x)": "float",
    "audit(x, sensitive_features=x)": "Audit",
    "audit_representation(x, x)": "RepresentationAudit",
    "load_dataset('adult')": "Dataset",
    "AttributeEraser()": "AttributeEraser",
    "compare_remedies(x, x, sensitive_features=x)": "RemedyComparison",
    "laws.GaussianPair(0.5).rho": "float",
    "learning.FRHSIC()": "frhsic_core.learning.penalties.frhsic.FRHSIC",
}
PACKAGES = {
    "frhsic_core": (frhsic_core.__all__, OF_THE_ROOT),
    "frhsic_core.learning": (frhsic_core.learning.__all__, OF_LEARNING),
}


@pytest.mark.slow  # mypy reads torch
@pytest.mark.parametrize("package", PACKAGES)
def test_a_type_checker_knows_every_public_name(package: str, tmp_path: Path) -> None:
    names, revealed_types = PACKAGES[package]
    lines = [f"from {package} import {', '.join(names)}", "import numpy as np"]
    lines.append("x = np.zeros((4, 2))")
    lines += [f"reveal_type({expression})" for expression in revealed_types]
    lines += [f"reveal_type({name})" for name in names]
    script = tmp_path / "uses.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True)
    assert ": error:" not in done.stdout, done.stdout
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == len(revealed_types) + len(names), done.stdout + done.stderr
    for expression, found in zip(revealed_types, revealed, strict=False):
        assert revealed_types[expression] in found, f"{expression} is {found}"
    for name, found in zip(names, revealed[len(revealed_types) :], strict=True):
        assert found != "Any", name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_stub_names_every_module_in_full(package: str) -> None:
    homes = homes_in(ROOT.joinpath(*package.split("."), "__init__.pyi"))
    assert sorted(homes) == PACKAGES[package][0]
    for name, module in homes.items():
        assert module == "frhsic_core" or module.startswith("frhsic_core."), name
