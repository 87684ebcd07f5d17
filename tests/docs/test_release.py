"""What a release is made of says the same everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import fenchel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _oldest() -> dict[str, str]:
    """Versions of the constraints file by name."""
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_one_version() -> None:
    """In the package, in its metadata, to cite, and in the changelog."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fenchel.__version__}\n" in cited
    assert PROJECT["version"] == fenchel.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", changes, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert versions[1] == fenchel.__version__
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions[1:])


def test_oldest_versions_are_those_that_are_allowed() -> None:
    """Each dependency of users is in the constraints, at its lower bound or a fix of that."""
    oldest = _oldest()
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["cli"], *extras["plot"], *extras["io"]]
    needed += extras["tables"]
    for requirement in needed:
        match = re.match(r"([\w-]+)>=([\d.]+)", requirement)
        if match is None:
            assert requirement.startswith("fenchel[")
            continue
        name, bound = match.groups()
        assert oldest[name] == bound or oldest[name].startswith(f"{bound}."), name


def test_workflows_run_what_the_project_runs() -> None:
    """Commands of the workflows are targets of the Makefile, or files; the files are YAML."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    found = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        steps = [step for job in jobs.values() for step in job["steps"]]
        found |= {step["run"] for step in steps if "run" in step}
    made = {command.split()[1] for command in found if command.startswith("make ")}
    assert made == {"docs", "lowest", "package", "slow"}
    assert made <= targets
    assert ".ci/run" in found
    assert (ROOT / ".ci" / "run").exists()
