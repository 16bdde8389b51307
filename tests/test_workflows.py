"""The workflows run pinned code with the least permissions, and publish from a tag only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

WORKFLOWS = sorted((Path(__file__).resolve().parents[1] / ".github" / "workflows").glob("*.yml"))
# Only these jobs may do more than read the repository.
WRITING = {
    ("book.yml", "deploy"): {"pages": "write", "id-token": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text  # publishing uses OIDC
    uses = re.findall(r"^\s*(?:- )?uses: (.*)$", text, re.MULTILINE)
    assert uses
    for line in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_has_one_version() -> None:
    uses = re.findall(
        r"uses: ([\w./-]+)@(.*)", "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    )
    assert len({name for name, _ in uses}) == len(set(uses))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_permissions_are_the_least_and_no_expression_reaches_a_shell(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == WRITING.get((path.name, name), {"contents": "read"})
        # There a ``${{ }}`` would let a branch name or a title be executed.
        assert not any("${{" in step.get("run", "") for step in job["steps"])


def test_publishing_needs_a_tag() -> None:
    [path] = [path for path in WORKFLOWS if "pypi-publish" in path.read_text(encoding="utf-8")]
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true
    assert workflow["jobs"]["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
