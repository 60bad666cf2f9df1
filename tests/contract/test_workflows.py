"""The workflows test what the project promises, and start only what is fixed and what exists."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path for path in (ROOT / ".github/workflows").glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def workflow(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))
    return content


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in WORKFLOWS:
        for job in workflow(name)["jobs"].values():
            yield from ((name, step) for step in job["steps"])


def test_each_system_is_tested_with_each_python() -> None:
    jobs = workflow("ci.yml")["jobs"]
    systems = {
        job["runs-on"].partition("-")[0]: job["strategy"]["matrix"]["python"]
        for job in jobs.values()
        if "strategy" in job
    }
    assert systems == dict.fromkeys(("ubuntu", "macos", "windows"), PYTHONS)


def test_each_action_is_one_commit_with_its_version() -> None:
    """A tag can be moved to other code; the job that publishes would run it."""
    loose = [
        f"{name}: {line.strip()}"
        for name, path in WORKFLOWS.items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line and not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)
    ]
    assert loose == []


def test_only_the_jobs_that_publish_may_write() -> None:
    may_write = set()
    for name in WORKFLOWS:
        content = workflow(name)
        assert content["permissions"] == {"contents": "read"}
        for job_name, job in content["jobs"].items():
            if "write" in job.get("permissions", {}).values():
                may_write.add((name, job_name))
    jobs = ("attest", "publish", "github-release")
    assert may_write == {("release.yml", job) for job in jobs}


def test_nothing_is_published_by_hand_or_before_the_checks() -> None:
    jobs = workflow("release.yml")["jobs"]
    for name in ("publish", "github-release"):
        assert jobs[name]["if"] == "github.event_name == 'push'"
    needed = [jobs[name]["needs"] for name in ("github-release", "publish", "attest")]
    assert needed == ["publish", "attest", "build"]
    commands = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    for command in ("tests/release.py check", ".ci/run", "tests/packages.sh"):
        assert command in commands


def test_the_files_that_steps_run_exist() -> None:
    pattern = r"(?<![\w/.-])((?:\.ci|tests|integrations)/[\w/.-]+)"
    named = {
        (name, path) for name, step in steps() for path in re.findall(pattern, step.get("run", ""))
    }
    assert {"tests/run", ".ci/run", "tests/wheel.py"} <= {path for _, path in named}
    assert [each for each in named if not (ROOT / each[1]).exists()] == []
