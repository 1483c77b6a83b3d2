"""Whole workflows run by act, with GitHub's own actions, on this machine without containers.

What act does not have is not shown by it: permissions, concurrency, time-outs, environments, and what follows a job that
failed in a called workflow.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.builders.git import git
from tests.fakes.artifact_service import make_token
from tests.fakes.github_api import TOKEN

WORKFLOWS: Final = Path(__file__).parents[2] / ".github" / "workflows"
REPOSITORY: Final = "arm-makers/arm"
OURS: Final = "OWNER/pytest-ldos"
"""Name of this repository in the examples."""

FOLDER: Final = "WORKFLOW_ACTIONS"
"""Variable that names the folder of actions; nothing of them is part of this repository."""

ACT: Final = "github.com/nektos/act@v0.2.89"
_NAMES: Final = ("actions/checkout", "actions/upload-artifact", "actions/download-artifact")
_PINNED: Final = re.compile(r"uses: (actions/[\w-]+)@([0-9a-f]{40}) # v([\d.]+)")
_VARIABLES: Final = {"LDOS_PAGES": "true", "LDOS_MAINTAINERS": '["maintainer"]'}
"""The repository's variables."""

_LIMIT_S: Final = 300
_PATIENCE_S: Final = "5"


@dataclass(frozen=True)
class Action:
    """An action of GitHub's as workflows pin it."""

    name: str
    commit: str
    version: str

    @property
    def folder(self) -> Path:
        return Path(os.environ.get(FOLDER, "")) / self.name

    def fault(self) -> str:
        """The reason why it cannot be run; empty where it can."""
        try:
            version = json.loads((self.folder / "package.json").read_text("utf-8"))["version"]
        except (OSError, ValueError, KeyError) as error:
            return f"{FOLDER} holds no {self.name}: {error}"
        if version != self.version:
            return f"{self.folder} is version {version}, but {self.version} is pinned"
        return "" if (self.folder / "dist").is_dir() else f"{self.folder} has no dist: build it there"

    def install(self, target: Path) -> None:
        """Copies what a runner takes of it: not what it was built with."""
        target.mkdir(parents=True)
        for name in ("action.yml", "package.json"):
            shutil.copy(self.folder / name, target / name)
        shutil.copytree(self.folder / "dist", target / "dist")


def pinned_actions() -> list[Action]:
    """The actions that the engine runs, as our workflows name them."""
    texts = [file.read_text("utf-8") for file in sorted(WORKFLOWS.glob("*.yml"))]
    found = {Action(*each) for text in texts for each in _PINNED.findall(text)}
    return sorted((each for each in found if each.name in _NAMES), key=lambda each: each.name)


def missing() -> str:
    """The reason why no workflow can be run here; empty where they can."""
    if shutil.which("act") is None:
        return f"act is not on the path: go install {ACT}"
    if shutil.which("node") is None:
        return "node is not on the path: GitHub's actions are programs for it"
    if not os.environ.get(FOLDER):
        names = ", ".join(f"{each.name} {each.version}" for each in pinned_actions())
        return f"{FOLDER} names no folder with {names}"
    return next(filter(None, (each.fault() for each in pinned_actions())), "")


@dataclass(frozen=True)
class Event:
    """Start of a workflow.

    Attributes:
        ref: that the workflow is taken from.
        payload: GitHub's description of it.
    """

    name: str
    ref: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """End of a workflow.

    Attributes:
        results: of its jobs, by their ids; of several with one id, each.
        log: all that was printed.
    """

    status: int
    results: Mapping[str, list[str]]
    log: str


@dataclass(frozen=True)
class Engine:
    """The engine with a home of its own, and stand-ins for programs and for GitHub's servers.

    Attributes:
        home: of the engine.
        programs: found before those of this machine.
        origin: the repository that checkouts come from.
        api: address of GitHub's API.
        artifacts: address of its service for artifacts.
        tools: a checkout of ours, for projects that name it as `OURS`; none for ours itself.
        variables: of the repository, in addition to those that are always set.
    """

    home: Path
    programs: Path
    origin: Path
    api: str
    artifacts: str
    tools: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, workflow: str, checkout: Path, event: Event, *, labels: Sequence[str], job: str = "") -> Run:
        """Runs a workflow of a checkout, or one job of it, for an event at its commit."""
        file = self.home / "event.json"
        file.write_text(json.dumps(event.payload), "utf-8")
        command = [
            *("act", event.name, "--json", "--eventpath", str(file), "--workflows", f".github/workflows/{workflow}"),
            *("--no-cache-server", "--no-skip-checkout", "--action-cache-path", str(self.home / "cache")),
            *_options("--platform", dict.fromkeys(["ubuntu-24.04", "self-hosted", *labels], "-self-hosted")),
            *_options("--local-repository", {f"{a.name}@{a.commit}": self._installed(a) for a in pinned_actions()}),
            *_options("--local-repository", {f"{OURS}@{head_of(each)}": each for each in self.tools}),
            *_options("--env", {**self._servers(), "GITHUB_REF": event.ref, "GITHUB_RUN_ID": "1"}),
            *_options("--var", {**_VARIABLES, **self.variables, "LDOS_HOST_CLASSES": json.dumps(labels)}),
            *_options("--secret", {"GITHUB_TOKEN": TOKEN}),
            *(("--job", job) if job else ()),
        ]
        status, output = _run_kept(command, checkout, self._environment())
        return Run(status, _results(output), _messages(output))

    def _servers(self) -> dict[str, str]:
        results = {"ACTIONS_RESULTS_URL": self.artifacts, "ACTIONS_RUNTIME_TOKEN": make_token()}
        no_ros2 = {"LDOS_ROOT": str(self.home / "root")}
        return {**results, **no_ros2, "GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": REPOSITORY}

    def _installed(self, action: Action) -> Path:
        folder = self.home / "actions" / action.name
        if not folder.exists():
            action.install(folder)
        return folder

    def _environment(self) -> dict[str, str]:
        """Nothing of this process's but the path; repositories of GitHub's come from the origin."""
        settings = {f"url.{self.origin}.insteadOf": f"https://github.com/{REPOSITORY}", "protocol.file.allow": "always"}
        settings |= {f"url.{each}.insteadOf": f"https://github.com/{OURS}" for each in self.tools}
        keys = {f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(settings)}
        values = {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(settings.values())}
        own = {"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": str(self.home), "no_proxy": "*"}
        return {**own, **keys, **values, "GIT_CONFIG_COUNT": str(len(settings))}


def head_of(checkout: Path) -> str:
    """Commit that a checkout is at."""
    return git(checkout, "rev-parse", "HEAD").strip()


def _options(name: str, values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        yield from (name, f"{key}={value}")


def _run_kept(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Runs a command below a keeper: nothing that it starts outlives this call."""
    given, held = os.pipe()
    keeper = [sys.executable, "-m", "pytest_ldos.host.kept", secrets.token_hex(8), _PATIENCE_S]
    process = subprocess.Popen(
        [*keeper, *command], cwd=folder, env=environment, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    os.close(given)
    try:
        output, _ = process.communicate(timeout=_LIMIT_S)
    finally:
        os.close(held)
        process.wait()
    return process.returncode, output


def _results(output: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        entry = _entry(line)
        if "jobResult" in entry:
            found.setdefault(entry["jobID"], []).append(entry["jobResult"])
    return found


def _messages(output: str) -> str:
    """The output, for readers."""
    entries = ((_entry(line), line) for line in output.splitlines())
    return "\n".join(str(entry.get("msg", line)).rstrip() for entry, line in entries)


def _entry(line: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
