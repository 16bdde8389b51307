"""The keys of stored rows do not change: a changed key would train stored models again."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import frhsic_core
from frhsic_core.paper.experiments.presets import experiment_for
from frhsic_core.paper.runs.plan import STORED_SPELLING, Recipe, Task
from frhsic_core.paper.runs.provenance import code_version
from frhsic_core.paper.runs.store import ResultStore
from frhsic_core.paper.runs.stored import book_folder

# For each experiment whose rows are stored, in each preset: the number of keys and a hash of them, written before
# settings were renamed.
STORED = json.loads(Path(__file__).with_name("stored_keys.json").read_text())


def fingerprint(keys: set) -> list:
    """Return the number of keys and sixteen hexadecimal digits that identify them."""
    text = json.dumps(sorted(keys), default=list)
    return [len(keys), hashlib.sha256(text.encode()).hexdigest()[:16]]


@pytest.mark.parametrize("name", STORED)
def test_keys_are_those_of_stored_rows(name: str) -> None:
    experiment, preset = name.split()
    assert fingerprint(experiment_for(experiment, preset).keys()) == STORED[name], (
        f"{name} has other keys than its stored rows. If a setting was renamed, add it to STORED_SPELLING."
    )


def test_a_new_spelling_is_the_stored_recipe() -> None:
    recipe = Recipe(Task("compas", "text", "text"), "frhsic")
    for new, old in STORED_SPELLING.items():
        assert replace(recipe, settings=(new,)).key == replace(recipe, settings=(old,)).key != recipe.key
        assert replace(recipe, settings=(new,)).key == Recipe(recipe.task, "frhsic", settings=(old,)).key


@pytest.mark.parametrize("name", ["main", "variants", "variants_best", "transfer", "multi_sensitive"])
def test_stored_recipes_have_their_keys(name: str) -> None:
    recipes = ResultStore(book_folder("results"), name).provenance()["recipes"]
    for key, stored in recipes.items():
        task = {**stored["task"], "options": _pairs(stored["task"]["options"])}
        pairs = {field: _pairs(stored[field]) for field in ("settings", "network") if field in stored}
        fields = {**stored, **pairs, "task": Task(**task), "fractions": tuple(stored["fractions"])}
        assert Recipe(**fields).key == key


def _pairs(values: list) -> tuple:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in values)


def test_the_code_version_is_that_of_the_sources_which_decide_the_numbers(tmp_path, monkeypatch) -> None:
    copy = tmp_path / "frhsic_core"
    shutil.copytree(Path(frhsic_core.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    versions = [code_version.__wrapped__().split()[0]]
    monkeypatch.setattr(frhsic_core, "__file__", str(copy / "__init__.py"))
    for name in ("cli/terminal.py", "joint/hsic.py", "paper/runs/metrics.py"):
        versions.append(code_version.__wrapped__().split()[0])
        with (copy / name).open("a") as file:
            file.write("# changed\n")
    versions.append(code_version.__wrapped__().split()[0])
    assert versions[0] == versions[1] == versions[2], "a copy, or a change of what is printed, is no new version"
    assert len(set(versions)) == 3
