"""Every command of every workflow, run here: in a copy of the repository, with fakes for what installs or measures.

What cannot be run so is named, with the reason. Left out as a whole is ``wheels.yml``, whose scripts have nothing to do
but build for minutes. None of it was run by GitHub.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ldos.baseline.key import BaselineKey
from pytest_ldos.report import json_text
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.trial.artifacts import write_atomically
from pytest_ldos.trial.codec import encode_trials
from tests.builders.report_snapshots import FOLDER, hostile
from tests.builders.trials import noisy_set
from tests.builders.workflow_steps import Step, steps_of
from tests.builders.workflows import read_workflows
from tests.fakes.github_api import TOKEN, FakeGitHub, running

ROOT = Path(__file__).parents[3]
STEPS = {(step.where, step.run): step for step in steps_of(read_workflows(ROOT)) if step.where[0] != "wheels.yml"}
LABELS = '["ldos-lab"]'

NOT_RUN = {
    ("check.yml", "Check workflows and scripts, with actionlint too"): "builds actionlint from the network; "
    "test_house_rules runs the same script with the one that is installed",
}
"""Steps that are not run here, and why."""

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

    def values(self) -> dict[str, str]:
        """Of all expressions that steps use."""
        run = "https://github.com/arm-makers/arm/actions/runs/1"
        return {
            "github.repository": "arm-makers/arm",
            "github.run_id": "1",
            "github.server_url": "https://github.com",
            "github.token": TOKEN,
            "inputs.base": "HEAD~1",
            "inputs.commit": self.commit,
            "inputs.host-class": "ldos-lab",
            "inputs.host-classes": LABELS,
            "inputs.max-trials": "30",
            "inputs.record": "true",
            "inputs.scenarios": "baseline cpu_load",
            "inputs.script": ".ci/measure",
            "inputs.sha": self.commit,
            "inputs.trials": "10",
            "matrix.host-class": "ldos-lab",
            "matrix.target": "bench",
            "matrix.what": "sweep",
            "steps.page.outputs.artifact-url": f"{run}/artifacts/2",
            "steps.traces.outputs.artifact-url": f"{run}/artifacts/3",
            "vars.LDOS_HOST_CLASSES": "",
        }

    def run(self, step: Step, **values: str) -> subprocess.CompletedProcess[str]:
        script = self.programs / "step"
        script.write_text(step.run, "utf-8")
        own = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "CALLS": str(self.programs / "calls"),
            "GITHUB_API_URL": self.github.url,
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
            [step.shell, "-e", script],
            cwd=self.checkout,
            env={**own, **step.fill({**self.values(), **values})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def git(folder: Path, *arguments: str) -> str:
    setting = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *setting, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


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
    for name, text in PROGRAMS.items():
        install(programs / name, text)
    for name in ("python", "ldos"):
        install(checkout / ".venv" / "bin" / name, PROGRAMS[name])
    for name in ("ros2-setup", "wheels"):
        if (checkout / ".ci" / name).is_file():
            install(checkout / ".ci" / name, INSTALLS)
    git(checkout, "init", "--quiet", "--initial-branch=main")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "first")
    git(checkout, "commit", "--quiet", "--allow-empty", "-m", "second")
    with running(FakeGitHub()) as github:
        github.git.start("main", {"README.md": b"read me"})
        yield Machine(checkout, programs, github, git(checkout, "rev-parse", "HEAD").strip())


def leave(machine: Machine, name: str, content: str) -> None:
    write_atomically(machine.checkout / name, content)


def leave_result(machine: Machine) -> None:
    leave(machine, "received/ldos-lab/result.json", json_text.render(hostile()))


def leave_comment(machine: Machine) -> None:
    leave(machine, "received/comment.md", (FOLDER / "hostile.comment.md").read_text("utf-8"))
    machine.github.pulls.append({"number": 3, "state": "open"})


def leave_baselines(machine: Machine) -> None:
    trials = noisy_set(1, commit=machine.commit[:12])
    file = BaselineKey.of(trials).file(Path("received/ldos-lab"))
    leave(machine, str(file), encode_trials(trials))


def leave_proposal(machine: Machine) -> None:
    leave(machine, "received/pull_request.md", "<!-- pytest-ldos baselines -->\ntext\n")
    leave(machine, "received/baselines/embedded/epyc/baseline.json", "{}")


def leave_trials(machine: Machine) -> None:
    trials = noisy_set(1, commit=machine.commit[:12])
    leave(machine, "received/ldos-lab/1/baseline/trials.json", encode_trials(trials))
    (machine.checkout / "history" / "rows").mkdir(parents=True)


def leave_history(machine: Machine) -> None:
    leave(machine, "received/made-from", "\n")
    leave(machine, "received/rows/embedded/epyc/baseline/merged-runs.parquet", "PAR1PAR1")


def leave_measurement(machine: Machine) -> None:
    leave(machine, "results/result.json", "{}")


BEFORE: dict[str, Callable[[Machine], None]] = {
    "Check and render": leave_result,
    "Comment on the pull request": leave_comment,
    "Check, and hold against the old ones": leave_baselines,
    "Open a pull request": leave_proposal,
    "Check and merge": leave_trials,
    "Keep": leave_history,
    "Pack for other machines": leave_measurement,
}
"""What steps and jobs before it have left."""

AFTER: dict[str, Callable[[Machine], object]] = {
    "Check the labels": lambda machine: (machine.programs / "output").read_text("utf-8") == f"labels={LABELS}\n",
    "Check and render": lambda machine: (machine.checkout / "comment.md").is_file(),
    "Comment on the pull request": lambda machine: len(machine.github.comments) == 1,
    "Check, and hold against the old ones": lambda machine: (machine.checkout / "proposal/pull_request.md").is_file(),
    "Open a pull request": lambda machine: machine.github.pulls[0]["head"]["ref"] == f"baselines/{machine.commit}",
    "Check and merge": lambda machine: [*(machine.checkout / "history/rows").rglob("merged-runs.parquet")],
    "Keep": lambda machine: "ldos-history" in machine.github.git.branches,
    "Read the history": lambda machine: (machine.checkout / "history" / "made-from").is_file(),
    "Start": lambda machine: (
        machine.github.started == [("explore.yml", {"ref": "main", "inputs": {"sha": machine.commit}})]
    ),
    "Pack for other machines": lambda machine: (machine.checkout / "results/packed/result/ldos-lab").is_dir(),
    "Measure": lambda machine: (machine.checkout / "results").is_dir(),
}
"""What has to be there when it has run; of the others, calls of programs."""


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda step: f"{step.where[0]}-{step.where[1]}")
def test_a_step_does_what_it_is_for(machine, step):
    if step.where in NOT_RUN:
        assert NOT_RUN[step.where]
        return
    BEFORE.get(step.where[1], lambda _: None)(machine)
    done = machine.run(step)
    assert done.returncode == 0, done.stdout + done.stderr
    effect = AFTER.get(step.where[1])
    assert effect(machine) if effect is not None else machine.calls, "it did nothing that can be seen"
    assert_options_exist(machine)


def assert_options_exist(machine: Machine) -> None:
    """Of the plugin, in what pytest was called with."""
    known = {option.flag for option in OPTIONS.values()}
    for call in machine.calls:
        named = {word.partition("=")[0] for word in call.split() if word.startswith("--ldos-")}
        assert named <= known, call


def test_every_table_here_is_about_steps_that_there_are():
    names = {step.where[1] for step in STEPS.values()}
    assert {*BEFORE} | {*AFTER} <= names
    assert NOT_RUN.keys() <= {step.where for step in STEPS.values()}


@pytest.mark.parametrize("what", ["sweep", "breaking", "history"])
def test_what_a_night_explores_is_what_the_command_knows(machine, what):
    """Its options are those of the real command."""
    step = next(step for step in STEPS.values() if step.where == ("explore.yml", "Measure"))
    done = machine.run(step, **{"matrix.what": what})
    assert done.returncode == 0, done.stderr
    (call,) = machine.calls
    assert_options_exist(machine)
    if call.startswith("ldos "):
        import typer

        from pytest_ldos.cli.main import app

        _, name, *arguments = call.split()
        typer.main.get_command(app).commands[name].make_context(name, arguments)  # type: ignore[attr-defined]


def test_targets_that_a_matrix_names_exist(machine):
    """Of the nightly workflow."""
    workflow = read_workflows(ROOT)[".github/workflows/nightly.yml"]
    step = next(step for step in STEPS.values() if step.where == ("nightly.yml", "Run"))
    for target in workflow["jobs"]["long"]["strategy"]["matrix"]["target"]:
        assert machine.run(step, **{"matrix.target": target}).returncode == 0
    assert machine.run(step, **{"matrix.target": "nothing"}).returncode != 0


HOSTILE = ["$(touch owned)`touch owned`; touch owned\ntouch owned", "'; touch owned; '\"; touch owned; \""]
FOREIGN = (
    *("inputs.commit", "inputs.base", "inputs.scenarios", "inputs.trials", "inputs.host-class", "inputs.sha"),
    *("matrix.host-class", "matrix.what", "matrix.target"),
)
READ_BY_A_SHELL = [
    (step, expression)
    for step in STEPS.values()
    if step.run.startswith("sh ") or '"$' in step.run
    for expression in FOREIGN
    if any(f"${{{{ {expression} }}}}" in text for text in step.environment.values())
]


@pytest.mark.parametrize("text", HOSTILE, ids=["commands", "quotes"])
def test_no_value_becomes_a_command(machine, text):
    """Whatever an event or a variable says, in every step whose shell reads it."""
    assert len(READ_BY_A_SHELL) >= 10
    for step, expression in READ_BY_A_SHELL:
        machine.run(step, **{expression: text})
        assert not [*machine.checkout.rglob("owned")], (step.where, expression)


def test_what_machines_left_goes_all_the_way(machine):
    """From a measurement to the comment, through every step between them."""
    chosen = {step.where: step for step in STEPS.values()}
    for where in (("measure.yml", "Measure"), ("measure.yml", "Pack for other machines")):
        done = machine.run(chosen[where], **{"inputs.record": "false"})
        assert done.returncode == 0, done.stderr
    packed = machine.checkout / "results/packed/result"
    (packed / "ldos-lab/result.json").write_text(json_text.render(hostile()), "utf-8")
    shutil.copytree(packed, machine.checkout / "received")  # as one job sends it and another takes it
    assert machine.run(chosen["report.yml", "Check and render"]).returncode == 0
    shutil.copy(machine.checkout / "comment.md", machine.checkout / "received/comment.md")
    machine.github.pulls.append({"number": 3, "state": "open"})
    assert machine.run(chosen["report.yml", "Comment on the pull request"]).returncode == 0
    (comment,) = machine.github.comments
    assert comment["body"] == (FOLDER / "hostile.comment.md").read_text("utf-8")
    assert json.loads((packed / "ldos-lab/result.json").read_text("utf-8"))["kind"]
