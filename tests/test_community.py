"""What people need who report, contribute, cite or review: forms, rules, licenses and the article."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
KINDS = {"textarea", "input", "dropdown", "checkboxes", "markdown"}


def read(*names: str) -> str:
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_github_needs(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(form) == {"name", "description", "labels", "body"}
    identities = [field["id"] for field in form["body"]]
    assert len(set(identities)) == len(identities)
    for field in form["body"]:
        assert field["type"] in KINDS
        assert field["attributes"]["label"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_there_are_three_forms() -> None:
    assert {path.stem for path in FORMS} == {"bug", "remedy", "wrong_number"}


@pytest.mark.parametrize(
    "name", ["CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "PULL_REQUEST_TEMPLATE.md", "SECURITY.md"]
)
def test_the_rules_name_files_that_exist(name: str) -> None:
    text = read(".github", name)
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    files = re.findall(r"`((?:book|frhsic_core|\.ci)/[\w./]+|[A-Z]+\.md)`", text)
    assert [link for link in links if not (GITHUB / link).exists()] == []
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_text_and_code_have_their_licenses() -> None:
    """The same words in the repository, in the metadata and on each page."""
    assert read("LICENSE").startswith("MIT License")
    text = read("LICENSE-docs")
    assert text.startswith("Text and figures: CC BY 4.0. Code: MIT.")
    assert "Creative Commons Attribution 4.0 International Public License" in text
    assert "CC BY 4.0" in json.loads(read(".zenodo.json"))["notes"]
    assert "CC BY 4.0" in read("book", "citing.md")
    footer = yaml.safe_load(read("_config.yml"))["html"]["extra_footer"]
    assert "CC BY 4.0" in footer
    assert "MIT" in footer


def entries(*names: str) -> dict[str, str]:
    """Return the entries of a bibliography, without what distinguishes years such as 2005a."""
    found = re.split(r"^(?=@)", read(*names), flags=re.MULTILINE)
    keyed = {}
    for entry in found:
        if entry.strip():
            key = re.findall(r"@\w+\{([^,]+),", entry)[0]
            keyed[key] = re.sub(r"(\d{4})[ab]\b", r"\1", entry.strip())
    return keyed


def test_the_article_cites_what_its_bibliography_has() -> None:
    text = read("book", "joss", "paper.md")
    cited = set(re.findall(r"@(\w+)", text))
    own, shared = entries("book", "joss", "paper.bib"), entries("book", "references.bib")
    assert cited == set(own)
    for key in set(own) & set(shared):
        assert own[key] == shared[key], key
    head = yaml.safe_load(text.split("---")[1])
    assert set(head) == {"title", "tags", "authors", "affiliations", "date", "bibliography"}
    for section in ("Summary", "Statement of need", "State of the field", "References"):
        assert f"\n# {section}\n" in text
    # The journals ask for 250 to 1,000 words.
    assert 250 <= len(text.split()) <= 1000


def test_zenodo_knows_every_field() -> None:
    """Those of its schema (legacyrecord.json) that are used here, and their kinds."""
    kinds = dict.fromkeys(
        ("access_right", "description", "language", "license", "notes", "title", "version"), str
    )
    kinds |= dict.fromkeys(("creators", "keywords", "references"), list) | {"upload_type": str}
    record = json.loads(read(".zenodo.json"))
    assert {name: type(value) for name, value in record.items()} == kinds
    assert (record["upload_type"], record["access_right"]) == ("software", "open")
    assert all(set(person) <= {"name", "orcid", "affiliation"} for person in record["creators"])


def test_environments_in_the_browser_use_the_files_of_the_repository() -> None:
    """Binder installs by the pins, the container by `make setup`, and hooks by tools that exist."""
    words = read(".binder", "requirements.txt").split()
    assert (ROOT / ".binder" / words[words.index("--constraint") + 1]).is_file()
    assert ".[notebooks]" in words
    assert json.loads(read(".devcontainer", "devcontainer.json"))["postCreateCommand"] == (
        "make setup"
    )
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    [local] = [repository["hooks"] for repository in hooks if repository["repo"] == "local"]
    assert {hook["id"] for hook in local} == {"ruff", "ruff-format", "mypy", "notebooks"}
    for hook in local:
        files = [word for word in hook["entry"].split() if word.startswith("tests/")]
        assert all((ROOT / name).is_file() for name in files)
