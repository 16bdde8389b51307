"""What a type checker knows about the public names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from frhsic_core._lazy import homes_in
from frhsic_core.learning import __all__ as names

ROOT = Path(__file__).resolve().parents[2]
REVEALED = {
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


@pytest.mark.slow  # mypy reads torch
def test_a_type_checker_knows_every_public_name(tmp_path: Path) -> None:
    lines = [f"from frhsic_core.learning import {', '.join(names)}", "import numpy as np"]
    lines.append("x = np.zeros((4, 2))")
    lines += [f"reveal_type({expression})" for expression in REVEALED]
    lines += [f"reveal_type({name})" for name in names]
    script = tmp_path / "uses.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True)
    assert ": error:" not in done.stdout, done.stdout
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == len(REVEALED) + len(names), done.stdout + done.stderr
    for expression, found in zip(REVEALED, revealed, strict=False):
        assert REVEALED[expression] in found, expression
    for name, found in zip(names, revealed[len(REVEALED) :], strict=True):
        assert found != "Any", name


def test_the_stub_names_every_module_in_full() -> None:
    homes = homes_in(ROOT / "frhsic_core" / "learning" / "__init__.pyi")
    assert all(module.startswith("frhsic_core.") for module in homes.values())
