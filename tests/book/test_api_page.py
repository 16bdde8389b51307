"""The library page names every public name, and every public module has a page."""

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


@pytest.mark.slow
def test_every_module_has_a_page_with_its_members(built_book: Path) -> None:
    root = Path(frhsic_core.__file__).parent
    files = [path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py")]
    names = [".".join(path.parts).removesuffix(".__init__") for path in files]
    modules = [name for name in names if "._" not in name]  # private modules have none
    pages = built_book / "book" / "generated"
    assert [name for name in modules if not (pages / f"{name}.html").is_file()] == []
    text = (pages / "frhsic_core.kernels.html").read_text(encoding="utf-8")
    assert 'id="frhsic_core.kernels.Gaussian"' in text
    assert "_modules/frhsic_core/kernels.html#Gaussian" in text
