"""A machine that runs what workflows and recipes run: a copy of the repository, fakes of programs, and a GitHub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders.git import git
from tests.builders.workflow_steps import Step
from tests.fakes.github_api import TOKEN, FakeGitHub, running

ROOT = Path(__file__).parents[3]
LABELS = '["ldos-lab"]'
RUN = "https://github.com/arm-makers/arm/actions/runs/1"

FAKE = """#!/bin/sh
printf '%s' "${0##*/}" >>"$CALLS"
printf ' %s' "$@" >>"$CALLS"
echo >>"$CALLS"
"""
PROGRAMS = {
    "apt-get": FAKE,
    "chown": FAKE,
    "colcon": FAKE,
    "ldos": FAKE,
    "useradd": FAKE,
    # The recipe is not made, but found: a target that is not there is an error.
    "make": FAKE + 'exec /usr/bin/make -n "$@" >/dev/null\n',
    # The user is not another one; the command is run.
    "runuser": FAKE + 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n',
    # Our own programs are run; a measurement leaves what the next steps look for.
    "python": FAKE
    + f"""case $1 in
  .ci/*) exec {sys.executable} "$@" ;;
esac
mkdir -p .ldos/runs/1/baseline results
echo '{{}}' >results/result.json
echo '{{}}' >.ldos/runs/1/baseline/trials.json
mkdir -p .ldos/baselines/embedded/epyc
echo '{{}}' >.ldos/baselines/embedded/epyc/baseline.json
""",
}
INSTALLS = FAKE + 'while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; [ $# -eq 0 ] || { shift; exec "$@"; }\n'
"""In the place of scripts that install for minutes: what comes after ``--`` is run."""


@dataclass
class Machine:
    """A runner's: a checkout, programs, and GitHub."""

    checkout: Path
    programs: Path
    github: FakeGitHub
    commit: str

    @property
    def calls(self) -> list[str]:
        log = self.programs / "calls"
        return log.read_text("utf-8").splitlines() if log.exists() else []

    @property
    def base(self) -> str:
        return git(self.checkout, "rev-parse", "HEAD~1").strip()

    def values(self) -> dict[str, str]:
        """Values of all expressions that steps use."""
        return {
            "github.ref_name": "v1.2.3",
            "github.repository": "arm-makers/arm",
            "github.run_id": "1",
            "github.server_url": "https://github.com",
            "github.token": TOKEN,
            "inputs.base": self.base,
            "inputs.commit": self.commit,
            "inputs.host-class": "ldos-lab",
            "inputs.host-classes": LABELS,
            "inputs.max-trials": "30",
            "inputs.record": "true",
            "inputs.scenarios": "baseline cpu_load",
            "inputs.sha": self.commit,
            "inputs.stack": "embedded",
            "inputs.trials": "10",
            "matrix.host-class": "ldos-lab",
            "matrix.target": "bench",
            "matrix.what": "sweep",
            "steps.page.outputs.artifact-url": f"{RUN}/artifacts/2",
            "steps.traces.outputs.artifact-url": f"{RUN}/artifacts/3",
            "vars.LDOS_HOST_CLASSES": "",
            "github.event.repository.default_branch": "main",
            "github.event.workflow_run.head_branch": "main",
            "github.event.workflow_run.head_sha": self.commit,
            "github.event.workflow_run.id": "2",
            "inputs.measured && format('{0}/{1}', github.workspace, inputs.measured)": "",
            "inputs.minutes": "",
            "inputs.part": "",
            "github.event_name != 'workflow_dispatch' && inputs.stack || ''": "",
            "inputs.pull-request": "3",
            "inputs.ref": "main",
            "inputs.result": "success",
            "inputs.run": "",
            "inputs.run || github.run_id": "1",
            "inputs.scenarios || 'baseline cpu_load msg_load cpu_limit'": "baseline cpu_load",
            "vars.LDOS_MAINTAINERS": '["maintainer"]',
        }

    def run(self, step: Step, **values: str) -> subprocess.CompletedProcess[str]:
        """A step of a workflow, with other values of expressions."""
        return self.call(step.run, step.fill({**self.values(), **values}), shell=step.shell)

    def call(self, script: str, environment: Mapping[str, str], *, shell: str) -> subprocess.CompletedProcess[str]:
        """A script, as CI systems do: from a file, to its first failure."""
        file = self.programs / "script"
        file.write_text(script, "utf-8")
        own = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "CALLS": str(self.programs / "calls"),
            "LDOS_ROOT": str(self.programs / "root"),  # what this machine has in /opt/ros is not theirs
            "GITHUB_ACTION_PATH": str(self.checkout),
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": "workflow_dispatch",
            "GITHUB_EVENT_PATH": str(self.programs / "event.json"),
            "GITHUB_OUTPUT": str(self.programs / "output"),
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_REF_NAME": "main",
            "GITHUB_REPOSITORY": "arm-makers/arm",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": self.commit,
            "GITHUB_STEP_SUMMARY": str(self.programs / "summary"),
            "no_proxy": "*",
        }
        return subprocess.run(
            [shell, "-e", file],
            cwd=self.checkout,
            env={**own, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def install(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    checkout, programs = tmp_path / "checkout", tmp_path / "programs"
    shutil.copytree(ROOT / ".ci", checkout / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for script in ("pytest_ldos/cli/measure_commit.py", "tests/integration/rcl/tracetools.c"):
        install(checkout / script, (ROOT / script).read_text("utf-8"))
    for name, text in PROGRAMS.items():
        install(programs / name, text)
    for name in ("python", "ldos"):
        install(checkout / ".venv" / "bin" / name, PROGRAMS[name])
    for name in ("ros2-setup", "wheels", "rcl"):
        if (checkout / ".ci" / name).is_file():
            install(checkout / ".ci" / name, INSTALLS)
    git(checkout, "init", "--quiet", "--initial-branch=main")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "first")
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "second")
    with running(FakeGitHub()) as github:
        github.git.start("main", {"README.md": b"read me"})
        yield Machine(checkout, programs, github, git(checkout, "rev-parse", "HEAD").strip())
