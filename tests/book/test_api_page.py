"""The library page names every public name."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import frhsic_core

PAGE = (Path(__file__).resolve().parents[2] / "book" / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in frhsic_core.__all__ if not inspect.ismodule(getattr(frhsic_core, name))]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_documents(name: str) -> None:
    assert f":: frhsic_core.{name}\n" in PAGE
    assert inspect.getdoc(getattr(frhsic_core, name))
