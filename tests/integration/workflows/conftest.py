"""GitHub as far as its workflows see it: events and an engine, artifacts, a repository, and the API on the loopback device."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.document import Document
from tests.builders.engine import REPOSITORY, Engine, Event, Run, missing
from tests.builders.git import git
from tests.builders.report_snapshots import fleet
from tests.builders.scratch import Scratch, make_scratch
from tests.builders.trials import FINGERPRINT, noisy_set
from tests.fakes import artifact_service, github_api
from tests.fakes.artifact_service import ArtifactService
from tests.fakes.github_api import FakeGitHub

HOME = f"https://github.com/{REPOSITORY}"
LABELS = ("ldos-lab-a", "ldos-lab-b")


@dataclass(frozen=True)
class World:
    """A repository, the engine that runs its workflows, and GitHub."""

    scratch: Scratch
    engine: Engine
    github: FakeGitHub
    artifacts: ArtifactService

    def measures(self, commit: str, *documents: Document) -> None:
        """Lets two machines of two classes measure it; the first that does leaves the first of two reports."""
        for number, document in enumerate(documents or fleet()[:2], 1):
            cpu = dataclasses.replace(FINGERPRINT, cpu_model=f"CPU {number}")
            trials = noisy_set(number, commit=commit[:12], n=12, session=f"session-{number}", fingerprint=cpu)
            self.scratch.measures(
                number,
                {
                    "results/result.json": json_text.render(document),
                    "results/report.html": "report",
                    f".ldos/runs/{number}/baseline/trials.json": encode_trials(trials),
                    str(BaselineKey.of(trials).file(Path(".ldos/baselines"))): encode_trials(trials),
                },
            )

    def merge_group(self, commit: str, *, repository: Mapping[str, Any] | None = None) -> Run:
        """The gate of a merge queue, for the pull request 7."""
        ref = f"refs/heads/gh-readonly-queue/main/pr-7-{self.scratch.head('main')}"
        group = {
            "head_sha": commit,
            "head_ref": ref,
            "base_sha": self.scratch.head("main"),
            "base_ref": "refs/heads/main",
        }
        payload = {"merge_group": group, "repository": _REPOSITORY if repository is None else repository}
        return self._run("gate.yml", commit, Event("merge_group", ref, payload))

    def push(self, commit: str, *, before: str) -> Run:
        """The gate of a push to the main branch."""
        ref = "refs/heads/main"
        payload = {"ref": ref, "before": before, "after": commit, "repository": _REPOSITORY}
        return self._run("gate.yml", commit, Event("push", ref, payload))

    def by_hand(self, workflow: str, commit: str, *, branch: str, job: str = "", **inputs: str) -> Run:
        """A start by hand, of a workflow as a branch has it."""
        ref = f"refs/heads/{branch}"
        payload = {"ref": ref, "inputs": inputs, "repository": _REPOSITORY}
        return self._run(workflow, commit, Event("workflow_dispatch", ref, payload), job=job)

    def by_the_clock(self, workflow: str, commit: str, *, job: str) -> Run:
        """A start by a schedule, whose event names no repository."""
        payload = {"schedule": "17 2 * * *"}
        return self._run(workflow, commit, Event("schedule", "refs/heads/main", payload), job=job)

    def after_gate(self, commit: str) -> Run:
        """What begins when a gate of the main branch has ended; but for GitHub's own action that publishes."""
        gate = {"name": "Gate", "head_branch": "main", "head_sha": commit, "conclusion": "success"}
        payload = {"action": "completed", "workflow_run": gate, "repository": _REPOSITORY}
        return self._run("pages.yml", commit, Event("workflow_run", "refs/heads/main", payload), job="make")

    def _run(self, workflow: str, commit: str, event: Event, *, job: str = "") -> Run:
        git(self.scratch.work, "checkout", "--quiet", "--detach", commit)
        return self.engine.run(workflow, self.scratch.work, event, labels=LABELS, job=job)


_REPOSITORY = {
    "full_name": REPOSITORY,
    "name": REPOSITORY.partition("/")[2],
    "default_branch": "main",
    "owner": {"login": REPOSITORY.partition("/")[0]},
}


@pytest.fixture
def world(tmp_path: Path):
    reason = missing()
    if reason:
        pytest.skip(reason)
    scratch = make_scratch(tmp_path / "scratch")
    home = tmp_path / "home"
    (home / ".config" / "act").mkdir(parents=True)
    (home / ".config" / "act" / "actrc").touch()
    with github_api.running(FakeGitHub()) as github, artifact_service.running(ArtifactService()) as artifacts:
        github.git.start("main", {"README.md": b"read me"})
        engine = Engine(home, scratch.programs, scratch.origin, api=github.url, artifacts=artifacts.url)
        yield World(scratch, engine, github, artifacts)
