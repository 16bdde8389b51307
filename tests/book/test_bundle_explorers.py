"""The script of the explorers is made of modules, and what cannot be joined is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "book" / "_ext"))

import bundle_explorers

SOURCES = {
    path.name: path.read_text(encoding="utf-8") for path in bundle_explorers.FOLDER.glob("*.js")
}


def test_every_module_is_in_the_bundle_after_those_that_it_needs() -> None:
    order = bundle_explorers.in_order(SOURCES)
    assert set(order) == set(SOURCES)
    for name in order:
        needed = [other for _, other in bundle_explorers.IMPORT.findall(SOURCES[name])]
        assert all(order.index(other) < order.index(name) for other in needed)


def test_the_bundle_is_a_classic_script_with_d3_beside_it(tmp_path: Path) -> None:
    bundle_explorers.write(tmp_path)
    script = (tmp_path / "all.js").read_text(encoding="utf-8")
    assert not re.search(r"^(?:import|export) ", script, re.MULTILINE)
    assert "globalThis.frhsicFormulas" in script
    assert "d3js.org" in (tmp_path / bundle_explorers.D3).read_text(encoding="utf-8")[:200]


@pytest.mark.parametrize(
    ("main", "other", "message"),
    [
        ('import { b } from "./a.js";', "export const a = 1;", "main.js imports b, which a.js"),
        ('import { a } from "./a.js";\nconst a = 2;', "export const a = 1;", "both define a"),
        ('import * as a from "./a.js";', "export const a = 1;", "of another form"),
    ],
)
def test_what_cannot_be_joined_is_refused(main: str, other: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bundle_explorers.bundle({"main.js": main, "a.js": other})
