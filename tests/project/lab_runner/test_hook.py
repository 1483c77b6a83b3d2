"""The hook as root installs it and as the runner starts it: a refused job has no step that runs."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders.runner import ALLOW_LIST, dispatch, fork_pull_request, push

INSTALL = Path(__file__).parents[3] / "lab" / "runner" / "install"
ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="an allow-list must be root's")

WORKER = """
bash -e "$HOOK" --configuration "$ALLOW_LIST"
echo "hook ended with $?"
echo "a step with if: always() ran"
"""
"""Runs a job with a step that always runs, like the runner's worker."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["sh", INSTALL, root], check=True, capture_output=True)
    return root


def hurried(installed: Path) -> Path:
    """The hook without the pause in which the worker sends the output, because there is no worker here."""
    hook = installed / "usr/local/lib/ldos-lab/job-started.sh"
    copy = hook.with_name("hurried.sh")
    text = hook.read_text("utf-8")
    assert "sleep 2" in text
    copy.write_text(text.replace("sleep 2", "sleep 0"), "utf-8")
    return copy


@pytest.fixture
def worker(tmp_path, installed, lock):
    """Starts a process of the worker's name that runs a hook, then a step."""
    file = tmp_path / "runner.toml"
    file.write_text(ALLOW_LIST.replace("LOCK", lock), "utf-8")
    hook = hurried(installed)

    def start(started, *, name: str = "/opt/runner/bin/Runner.Worker", **changes: str) -> subprocess.Popen[str]:
        return begin(name, {**started.environment(tmp_path), "HOOK": str(hook), "ALLOW_LIST": str(file), **changes})

    return start


def begin(name: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [name, "-c", WORKER],
        executable="/bin/bash",
        env={"PATH": "/usr/bin:/bin", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output.splitlines(), errors


def test_installed_files(installed):
    library = installed / "usr/local/lib/ldos-lab"
    assert sorted(file.name for file in library.iterdir() if file.stem != "hurried") == [
        "job-started.pyz",
        "job-started.sh",
    ]
    names = zipfile.ZipFile(library / "job-started.pyz").namelist()
    assert "lab/runner/main.py" in names
    assert "__main__.py" in names
    assert (installed / "etc/ldos-lab/runner.toml").stat().st_mode & 0o777 == 0o644


def test_required_variables_are_those_of_the_service(tmp_path):
    done = subprocess.run(["sh", INSTALL, tmp_path], check=True, capture_output=True, text=True)
    reported = [line.replace(str(tmp_path), "") for line in done.stdout.splitlines() if line.startswith("Environment=")]
    service = INSTALL.with_name("ldos-job@.service").read_text("utf-8").splitlines()
    assert reported == [line for line in service if line.startswith("Environment=ACTIONS_RUNNER_")]
    assert len(reported) == 3


def test_hook_needs_only_python():
    """Root can read and review everything that is installed."""
    for file in INSTALL.parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert {str(name).partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "lab"}, file


def test_existing_allow_list_is_kept(installed):
    file = installed / "etc/ldos-lab/runner.toml"
    file.write_text("mine", "utf-8")
    subprocess.run(["sh", INSTALL, installed], check=True, capture_output=True)
    assert file.read_text("utf-8") == "mine"


@ONLY_ROOT
def test_an_allowed_job_runs(worker):
    status, lines, errors = ended(worker(dispatch()))
    assert (status, errors) == (0, "")
    assert lines == ["hook ended with 0", "a step with if: always() ran"]


@ONLY_ROOT
def test_no_step_of_a_refused_job_runs(worker, installed):
    """With the hook as it is installed, unchanged."""
    hook = installed / "usr/local/lib/ldos-lab/job-started.sh"
    status, lines, _ = ended(worker(fork_pull_request(), HOOK=str(hook)))
    assert status == -signal.SIGKILL
    reason = "GITHUB_HEAD_REF is set: this job belongs to a pull request"
    assert lines == [f"::error title=Refused by the lab machine::{reason}"]


@ONLY_ROOT
def test_a_reason_is_one_line_and_no_command(worker):
    """Names chosen by unknown users (a branch, a workflow) reach the log of the run."""
    name = "arm-makers/arm/x.yml@refs/heads/%0A::set-output##[error]'x"
    status, lines, _ = ended(worker(push().changed(GITHUB_WORKFLOW_REF=name)))
    assert status == -signal.SIGKILL
    assert len(lines) == 1
    assert lines[0].count("::") == 2
    assert "##[" not in lines[0]
    assert "%0A" not in lines[0]


@ONLY_ROOT
def test_variables_of_a_workflow_change_nothing(worker, tmp_path):
    """The runner does not pass them to a hook; if it did, Python would not listen."""
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(0)", "utf-8")
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 0\n", "utf-8")
    (tmp_path / "python3").chmod(0o755)
    poison = {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "x", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    status, lines, _ = ended(worker(fork_pull_request(), **poison))
    assert status == -signal.SIGKILL
    assert "pull request" in lines[0]


@pytest.mark.parametrize("break_", ["interpreter", "program", "allow-list"])
def test_a_hook_that_cannot_decide_refuses(worker, installed, tmp_path, break_):
    hook = tmp_path / "job-started.sh"
    text = hurried(installed).read_text("utf-8")
    hook.write_text(text.replace("/usr/bin/python3", "/nowhere/python3") if break_ == "interpreter" else text, "utf-8")
    if break_ == "allow-list":
        (tmp_path / "job-started.pyz").write_bytes((installed / "usr/local/lib/ldos-lab/job-started.pyz").read_bytes())
    status, lines, _ = ended(worker(push(), HOOK=str(hook), ALLOW_LIST="/nowhere/runner.toml"))
    assert status == -signal.SIGKILL
    assert not [line for line in lines if "ran" in line]


@ONLY_ROOT
def test_a_job_that_is_cancelled_while_it_is_checked(worker, tmp_path, lock):
    """The runner interrupts the hook, terminates it 7.5 s later, and then runs the steps that run always."""
    file = tmp_path / "patient.toml"
    text = ALLOW_LIST.replace("LOCK", lock).replace("max_busy = 1.0", "max_busy = 1e-9\nsettle_s = 60")
    file.write_text(text, "utf-8")
    process = worker(push(), ALLOW_LIST=str(file))
    hook = await_child(process.pid)
    await_child(hook)
    os.kill(hook, signal.SIGINT)
    try:
        process.wait(timeout=7.5)
    except subprocess.TimeoutExpired:  # bash loses a signal that comes as it begins to wait
        os.kill(hook, signal.SIGTERM)
    status, lines, _ = ended(process)
    assert (status, lines) == (-signal.SIGKILL, [])


def await_child(pid: int) -> int:
    """The first child of a process, once it has one that runs its own program."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in map(int, children.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"-e" in command or b"-I" in command:
                return child
        time.sleep(0.01)
    raise AssertionError("no child")


@ONLY_ROOT
def test_refusal_ends_a_worker_of_any_name(worker):
    status, lines, _ = ended(worker(fork_pull_request(), name="dotnet"))
    assert (status, len(lines)) == (-signal.SIGKILL, 1)


@ONLY_ROOT
def test_manual_call_does_not_end_the_shell(worker):
    status, lines, errors = ended(worker(fork_pull_request().changed(GITHUB_ACTIONS=None), name="bash"))
    assert status == 0
    assert lines[1:] == ["hook ended with 1", "a step with if: always() ran"]
    assert "not started by the runner's worker" in errors
