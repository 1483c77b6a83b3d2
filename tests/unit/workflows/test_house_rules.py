"""What every workflow here keeps to: pinned actions, no rights but those that are named, no foreign text in a command."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.workflows import read_workflows

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "examples" / "ci").rglob("*.yml")])
WORKFLOWS = read_workflows(ROOT)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
LOCAL = re.compile(r"\./\.github/workflows/[\w-]+\.yml")


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, workflow in WORKFLOWS.items():
        for name, job in workflow["jobs"].items():
            yield f"{path}, {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for where, job in jobs():
        yield from ((f"{where}, step {number}", step) for number, step in enumerate(job.get("steps", ()), 1))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_version(file):
    for line in file.read_text("utf-8").splitlines():
        found = re.match(r"\s*(?:- )?uses: (.+)", line)
        if found:
            used = found.group(1)
            assert PINNED.fullmatch(used) or LOCAL.fullmatch(used.split(" #")[0]), line


def test_no_workflow_has_rights_and_each_job_names_its_own():
    assert {path: each["permissions"] for path, each in WORKFLOWS.items() if each["permissions"] != {}} == {}
    for where, job in jobs():
        assert isinstance(job["permissions"], dict), where
        assert {name for name, right in job["permissions"].items() if right == "write"} <= {
            "attestations",
            "id-token",
            "pull-requests",
        }, where


def test_a_right_to_write_is_where_no_code_of_others_runs():
    """One job posts and one publishes; they install nothing and read only what a job without rights has made."""
    writing = [(where, job) for where, job in jobs() if "write" in job["permissions"].values() and "steps" in job]
    assert [where for where, _ in writing] == [
        ".github/workflows/report.yml, post",
        ".github/workflows/wheels.yml, publish",
    ]
    runs = [step["run"] for _, job in writing for step in job["steps"] if "run" in step]
    assert len(runs) == 1
    assert runs[0].startswith("python3 -I .ci/post_comment.py received/comment.md ")


def test_checked_out_code_gets_no_credentials():
    for where, step in steps():
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, where


def test_a_step_is_one_command_without_expressions():
    """Expressions reach a command through its environment."""
    for where, step in steps():
        run = step.get("run", "")
        assert "${{" not in run, where
        assert len(run.strip().splitlines()) <= 1, where
        assert not re.search(r"&&|\|\||;|`|\$\(", run), where


def test_every_job_ends():
    for where, job in jobs():
        assert "uses" in job or job["timeout-minutes"] <= 180, where


def test_no_secret_is_used():
    for file in FILES:
        assert "secrets." not in file.read_text("utf-8")
        assert "secrets: inherit" not in file.read_text("utf-8")


def test_scripts_that_are_named_exist():
    for where, step in steps():
        for script in re.findall(r"\.ci/[\w.-]+", step.get("run", "")):
            assert (ROOT / script).is_file(), (where, script)


def test_the_linters_have_nothing_to_say():
    """actionlint only where it is on the path: it is no Python package."""
    done = subprocess.run(["sh", ".ci/lint-workflows"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
