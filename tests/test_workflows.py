"""The workflows run pinned code with the least permissions, and publish from a tag only."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Only these jobs may do more than read the repository.
WRITING = {
    ("book.yml", "deploy"): {"pages": "write", "id-token": "write"},
    ("release.yml", "attest"): {"id-token": "write", "attestations": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "announce"): {"contents": "write"},
    ("release.yml", "pages"): {"pages": "write", "id-token": "write"},
    ("weekly.yml", "report"): {"issues": "write"},
}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text  # publishing uses OIDC
    uses = re.findall(r"^\s*(?:- )?uses: (.*)$", text, re.MULTILINE)
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


def test_a_release_is_tested_before_it_is_published() -> None:
    """Each job waits for the one before; nothing is published that was not built, tested and attested."""
    jobs = yaml.safe_load((WORKFLOWS[0].parent / "release.yml").read_text(encoding="utf-8"))["jobs"]
    order = ["build", "attest", "publish", "announce", "pages"]
    assert list(jobs) == order
    for before, name in itertools.pairwise(order):
        assert jobs[name]["needs"] == before
    commands = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert "bash .ci/run" in commands


def test_every_supported_python_and_system_is_tested() -> None:
    jobs = yaml.safe_load((WORKFLOWS[0].parent / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert jobs["linux"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    systems = jobs["systems"]["strategy"]["matrix"]
    assert systems["system"] == ["macos-latest", "windows-latest"]
    assert systems["python"] == [named[0], named[-1]]
    modes = jobs["wheel"]["strategy"]["matrix"]["versions"]
    script = (ROOT / ".ci" / "check-wheel").read_text(encoding="utf-8")
    assert modes == ["--newest", "--lowest", "--light"]
    assert all(mode in script for mode in modes)


def test_every_script_that_a_workflow_runs_exists() -> None:
    for path in WORKFLOWS:
        for name in re.findall(r"\.ci/[\w.-]*\w", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.name} runs {name}"


def test_the_lock_has_the_versions_that_were_tested() -> None:
    """Each pinned version has a checksum, except for PyTorch and what is no longer needed; no index is named."""
    lock = (ROOT / ".ci" / "lock.txt").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE))
    constraints = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", constraints, re.MULTILINE))
    versions = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    assert "torch" in versions
    assert "torch" not in locked
    for name, version in locked.items():
        assert versions.get(name.lower().replace("_", "-"), version) == version, name
    assert len(set(locked) & set(versions)) > 150
    names = {name.lower().replace("_", "-") for name in locked}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        needed += extra
    for requirement in needed:
        name = re.split(r"[\[<>=!;~ ]", requirement)[0].lower().replace("_", "-")
        assert name in {"torch", "frhsic-core"} or name in names, (
            f"run .ci/lock: {name} is not locked"
        )
    assert "://" not in lock
    entries = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)


def test_every_folder_that_a_workflow_tests_exists() -> None:
    for path in WORKFLOWS:
        for name in re.findall(r"\btests/[\w/.]*\w", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.name} tests {name}"
