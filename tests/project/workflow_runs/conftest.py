"""GitHub as far as its workflows see it: events and an engine, artifacts, a repository, and the API on the loopback device."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.document import Document
from tests.builders.asking import REPOSITORY_OF_EVENTS as _REPOSITORY
from tests.builders.asking import after
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
SCENARIOS = ("baseline", "cpu_load", "msg_load", "cpu_limit")
"""Scenarios that are measured by default."""


@dataclass(frozen=True)
class World:
    """A repository, the engine that runs its workflows, and GitHub."""

    scratch: Scratch
    engine: Engine
    github: FakeGitHub
    artifacts: ArtifactService

    def measures(self, commit: str, *documents: Document, base: str = "", factor: float = 1.0) -> None:
        """Lets two machines of two classes measure it; the first that does leaves the first of two reports.

        What was prepared for another measurement is gone.

        Args:
            base: commit that it takes turns with; else that which the main branch is at.
            factor: of the time to plan, against the base's.
        """
        self.scratch.forget()
        for number, document in enumerate(documents or fleet()[:2], 1):
            cpu = dataclasses.replace(FINGERPRINT, cpu_model=f"CPU {number}")
            common: dict[str, Any] = {"session": f"session-{number}", "fingerprint": cpu}
            head = noisy_set(number, n=30, factors={"T1": factor}, commit=commit[:12], **common)
            base = base or self.scratch.head("main")
            other = noisy_set(number + 10, n=30, commit=base[:12], **common)
            files = {
                "results/result.json": json_text.render(document),
                "results/report.html": "report",
                str(BaselineKey.of(head).file(Path(".ldos/baselines"))): encode_trials(head),
            }
            for scenario in SCENARIOS:
                folder = f".ldos/runs/{number}/{scenario}"
                for name, trials in (("trials.json", head), ("base/trials.json", other)):
                    spec = dataclasses.replace(trials.spec, name=scenario)
                    files[f"{folder}/{name}"] = encode_trials(dataclasses.replace(trials, spec=spec))
            self.scratch.measures(number, files)

    def merge_group(self, commit: str, *, repository: Mapping[str, Any] = _REPOSITORY) -> Run:
        """The gate of a merge queue, for pull request 7, and its report."""
        base = self.scratch.head("main")
        self.github.open(7, self.scratch.head("topic"), base)
        branch = f"gh-readonly-queue/main/pr-7-{base}"
        ref = f"refs/heads/{branch}"
        group = {"head_sha": commit, "head_ref": ref, "base_sha": base, "base_ref": "refs/heads/main"}
        payload = {"merge_group": group, "repository": repository}
        return self._gate(commit, Event("merge_group", ref, payload), branch)

    def push(self, commit: str, *, before: str) -> Run:
        """The gate of a push to the main branch, and its report."""
        ref = "refs/heads/main"
        self.github.revisions[before[:12]] = before
        payload = {"ref": ref, "before": before, "after": commit, "repository": _REPOSITORY}
        return self._gate(commit, Event("push", ref, payload), "main")

    def _gate(self, commit: str, event: Event, branch: str) -> Run:
        """A run of the gate as the commit has it, then one of the default branch's that reads what it left."""
        gate = self._run("gate.yml", commit, event)
        self.keep_artifacts()
        conclusion = "success" if gate.status == 0 else "failure"
        payload = after(commit, branch, event.name, conclusion=conclusion)
        verdict = self.by_default("verdict.yml", Event("workflow_run", "refs/heads/main", payload))
        return Run(verdict.status, {**gate.results, **verdict.results}, gate.log + verdict.log)

    def keep_artifacts(self) -> None:
        """Makes the artifacts that were left until now those of another run."""
        self.github.artifacts = dict(self.artifacts.artifacts)
        self.artifacts.artifacts.clear()
        self.artifacts.blocks.clear()

    def asks(self, event: str, payload: Mapping[str, Any]) -> Run:
        """An event of a pull request, or of a comment below one."""
        return self.by_default("request.yml", Event(event, "refs/heads/main", payload))

    def by_default(self, workflow: str, event: Event) -> Run:
        """A workflow as the default branch has it."""
        return self._run(workflow, self.scratch.head("main"), event)

    def by_hand(self, workflow: str, commit: str, *, branch: str, job: str = "", **inputs: str) -> Run:
        """A start by hand, of a workflow as a branch has it."""
        ref = f"refs/heads/{branch}"
        payload = {"ref": ref, "inputs": inputs, "repository": _REPOSITORY}
        return self._run(workflow, commit, Event("workflow_dispatch", ref, payload), job=job)

    def by_the_clock(self, workflow: str, commit: str, *, job: str) -> Run:
        """A start by a schedule, whose event names no repository."""
        payload = {"schedule": "17 2 * * *"}
        return self._run(workflow, commit, Event("schedule", "refs/heads/main", payload), job=job)

    def after_verdict(self, commit: str) -> Run:
        """Workflows that start after a verdict, except GitHub's own publishing action."""
        payload = after(commit, "main", "workflow_run")
        return self._run("pages.yml", commit, Event("workflow_run", "refs/heads/main", payload), job="make")

    def notify(self) -> Run:
        """The workflow that keeps the issue about a regression, after a verdict or a night."""
        payload = after(self.scratch.head("main"), "main", "workflow_run")
        return self.by_default("regression.yml", Event("workflow_run", "refs/heads/main", payload))

    def _run(self, workflow: str, commit: str, event: Event, *, job: str = "") -> Run:
        git(self.scratch.work, "checkout", "--quiet", "--detach", commit)
        return self.engine.run(workflow, self.scratch.work, event, labels=LABELS, job=job)


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
