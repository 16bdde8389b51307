"""How to cite: the same names, title and version everywhere, and no address of a person."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml

import frhsic_core

ROOT = Path(__file__).resolve().parents[2]
PAPER = "A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes"


def _read(*names: str) -> str:
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


def test_the_paper_and_its_authors_are_named() -> None:
    citation, page, entries = (
        _read("CITATION.cff"),
        _read("book", "citing.md"),
        _read("book", "references.bib"),
    )
    for text in (page, entries):
        assert "author = {Ni, Yijin and Huo, Xiaoming}" in text
        assert PAPER in text
    people = re.findall(r"family-names: (\w+)\n\s+given-names: (\w+)", citation)
    assert people == [("Ni", "Yijin"), ("Huo", "Xiaoming")]
    assert citation.count(PAPER) == 2
    rivals = ("kong2025fair", "grari2019fairness", "madras2018learning", "deka2023mmd")
    assert [
        name for name in rivals if f"{{cite:p}}`{name}`" not in _read("book", "notation.md")
    ] == []
    for text in (
        citation,
        page,
        entries,
        _read("book", "for_the_authors.md"),
        _read("book", "intro.md"),
    ):
        assert not re.search(r"[\w.]+@[\w.]+\.\w", text), "no e-mail addresses"


def test_the_version_is_the_package_s() -> None:
    version = frhsic_core.__version__
    project = tomllib.loads(_read("pyproject.toml"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "frhsic_core.__version__"
    }
    assert f"\nversion: {version}\n" in _read("CITATION.cff")
    assert f"version = {{{version}}}" in _read("book", "citing.md")
    assert json.loads(_read(".zenodo.json"))["version"] == version
    assert yaml.safe_load(_read(".ci", "conda", "recipe.yaml"))["context"]["version"] == version


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    recipe = yaml.safe_load(_read(".ci", "conda", "recipe.yaml"))
    needed = [
        line.replace(">=", " >=").replace("torch ", "pytorch ") for line in project["dependencies"]
    ]
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *needed]
    assert project["requires-python"] == f">={recipe['context']['python_min']}"
    command = project["scripts"]["frhsic"]
    assert recipe["build"]["python"]["entry_points"] == [f"frhsic = {command}"]


def test_every_file_names_the_same_work_and_address() -> None:
    archive, citation = json.loads(_read(".zenodo.json")), yaml.safe_load(_read("CITATION.cff"))
    same = {"title": "title", "license": "license", "keywords": "keywords", "creators": "authors"}
    assert {name: archive[name] for name in same} == {
        name: citation[key] for name, key in same.items()
    }
    assert PAPER in archive["references"][0]
    address = yaml.safe_load(_read("_config.yml"))["repository"]["url"]
    assert citation.get("repository-code", "") == address
    assert (
        tomllib.loads(_read("pyproject.toml"))["project"].get("urls", {}).get("Repository", "")
        == address
    )
