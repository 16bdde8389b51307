"""Join the modules of the explorers into one script, so that pages also work when they are opened as files.

A browser loads modules from a server only. The modules use a small part of the language: imports of
names from other modules of the folder at the top, and exports in front of functions and constants.
Their top-level names must differ.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "_static" / "explorers"
MAIN = "main.js"
IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=function |const )", re.MULTILINE)
NAME = re.compile(r"^(?:export )?(?:function|const) (\w+)", re.MULTILINE)
D3 = "d3.v5.min.js"


def in_order(sources: dict[str, str], name: str = MAIN) -> list[str]:
    """Return the modules that a module needs, each after those that it needs itself, and then the module.

    Examples
    --------
    >>> in_order({"main.js": 'import { a } from "./a.js";', "a.js": "export const a = 1;"})
    ['a.js', 'main.js']
    """
    found: list[str] = []
    for _, other in IMPORT.findall(sources[name]):
        found += [one for one in in_order(sources, other) if one not in found]
    return [*found, name]


def exported(source: str) -> set[str]:
    """Return the names that a module exports."""
    return set(re.findall(r"^export (?:function|const) (\w+)", source, re.MULTILINE))


def bundle(sources: dict[str, str]) -> str:
    """Return one script with all modules, in an order in which each name is defined before it is used.

    Examples
    --------
    >>> print(bundle({"main.js": 'import { a } from "./a.js";\\nf(a);', "a.js": "export const a = 1;"}))
    (() => {
    "use strict";
    const a = 1;
    f(a);
    })();
    """
    parts = []
    owner: dict[str, str] = {}
    for name in in_order(sources):
        source = sources[name]
        for wanted, other in IMPORT.findall(source):
            missing = set(wanted.split(", ")) - exported(sources[other])
            if missing:
                raise ValueError(
                    f"{name} imports {', '.join(sorted(missing))}, which {other} does not export."
                )
        for top in NAME.findall(source):
            if top in owner:
                raise ValueError(f"{name} and {owner[top]} both define {top}: rename one of them.")
            owner[top] = name
        source = EXPORT.sub("", IMPORT.sub("", source)).strip()
        if re.search(r"^(?:import|export) ", source, re.MULTILINE):
            raise ValueError(f"{name} has an import or an export of another form.")
        parts.append(source)
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();"


def write(target: Path) -> None:
    """Write the script and D3, which the package mpld3 brings, into a folder."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js")}
    target.mkdir(parents=True, exist_ok=True)
    (target / "all.js").write_text(bundle(sources), encoding="utf-8")
    found = importlib.util.find_spec("mpld3")
    assert found is not None, "mpld3 is missing: run `make setup`"
    assert found.origin is not None
    shutil.copy2(Path(found.origin).parent / "js" / D3, target / D3)
