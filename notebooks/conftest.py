"""Compare the figures of a notebook with the stored ones when nbval runs it; nbval itself compares only texts."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[1] / "tests" / "figure_check.py"
# Kernels draw figures at twice their size, as the stored ones are; nbval has no option for that.
SETTINGS = tempfile.TemporaryDirectory()
os.environ["IPYTHONDIR"] = SETTINGS.name
Path(SETTINGS.name, "profile_default").mkdir()
Path(SETTINGS.name, "profile_default", "ipython_kernel_config.py").write_text("c.InlineBackend.figure_format = 'retina'")


def figures(outputs: Iterable[Any]) -> list[str]:
    """Return the images among the outputs of a cell, in order."""
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", ())]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Fail a cell whose texts agree but whose figures do not."""
    result = yield
    if hasattr(item, "test_outputs") and item.options["check"]:
        stored, drawn = figures(item.cell.outputs), figures(item.test_outputs or ())
        if len(stored) != len(drawn):
            item.raise_cell_error(f"{len(drawn)} figures were drawn, but {len(stored)} are stored")
        if stored:
            specification = importlib.util.spec_from_file_location("figure_check", PATH)
            module = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(module)
            for number, pair in enumerate(zip(stored, drawn, strict=True), start=1):
                if why := module.difference(*pair):
                    advice = "If this is meant, run `make notebooks` and look at the new figure."
                    item.raise_cell_error(f"Figure {number} of the cell has changed: {why}. {advice}")
    return result
