"""The public names of the package: one list for the import at run time and for type checkers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import frhsic_core.learning
from frhsic_core._lazy import homes_in

STUB = Path(frhsic_core.learning.__file__).with_suffix(".pyi")
WITHOUT_TORCH = """
import builtins
real = builtins.__import__
def blocked(name, *args, **options):
    if name.partition(".")[0] == "torch":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, *args, **options)
builtins.__import__ = blocked
"""


def test_every_name_of_the_stub_loads_from_its_module() -> None:
    homes = homes_in(STUB)
    assert frhsic_core.learning.__all__ == sorted(homes)
    for name in homes:
        assert getattr(frhsic_core.learning, name) is not None
    assert set(homes) <= set(dir(frhsic_core.learning))
    with pytest.raises(AttributeError, match="no attribute 'Fair'"):
        _ = frhsic_core.learning.Fair


@pytest.mark.parametrize("name", ["FairClassifier", "Trainer", "FRHSIC", "select_lambda"])
def test_a_name_that_needs_torch_says_how_to_get_it(name: str) -> None:
    script = f"""{WITHOUT_TORCH}
import frhsic_core.learning
try:
    frhsic_core.learning.{name}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"frhsic_core.learning.{name} needs PyTorch" in done.stdout
    assert 'pip install "frhsic-core[torch]"' in done.stdout


def test_another_missing_module_is_reported_as_it_is() -> None:
    blocked = WITHOUT_TORCH.replace('"torch"', '"pandas"')
    script = f"{blocked}\nimport frhsic_core.learning\nfrhsic_core.learning.FairClassifier"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "No module named 'pandas'" in done.stderr
    assert "frhsic-core[torch]" not in done.stderr
