"""A machine of the lab: booted, with a runner that ``lab/bootstrap`` installed. One at a time on a computer."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator

import pytest

from tests.lab.github import TOKEN, GitHub, allow_list
from tests.lab.machine import LabMachine, lab_machine
from tests.lab.root import CACHE, CHECKOUT, PLACE, SETTINGS, SUITE, copy_checkout, distribution_root, installed_layer

IS_STRICT = bool(os.environ.get("CI"))
_RUNNER = """RUNNER_SCOPE=orgs/acme
RUNNER_GROUP_ID=3
RUNNER_LABELS=ldos-lab
RUNNER_VERSION=2.336.0
RUNNER_SHA256={}
"""


@pytest.fixture(scope="session")
def computer() -> Iterator[None]:
    """This computer, if it can boot machines, and boots none for other tests."""
    if lacking := _lacking():
        reason = f"no machine can be booted here: {lacking}"
        (pytest.fail if IS_STRICT else pytest.skip)(reason)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def booted(computer, tmp_path_factory) -> Iterator[LabMachine]:
    """A machine with systemd as its first process, and nothing of ours on it."""
    with lab_machine(tmp_path_factory.mktemp("lab"), [installed_layer(), distribution_root()]) as machine:
        copy_checkout(machine.root)
        machine.boot()
        machine.forget_keys()
        yield machine


def _lacking() -> str:
    """The missing requirement on this computer, with a remedy; empty if there is none."""
    if os.geteuid() != 0:
        return "only root can (sudo make lab-test)"
    programs = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}
    missing = [package for program, package in programs.items() if shutil.which(program) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


@pytest.fixture(scope="session")
def github(booted) -> GitHub:
    stand_in = GitHub(booted)
    stand_in.start()
    return stand_in


@pytest.fixture(scope="session")
def lab(booted, github) -> LabMachine:
    """The machine after ``lab/bootstrap``."""
    settings = booted.root / "etc/ldos-lab"
    (settings / "lab.conf").write_text(SETTINGS + _RUNNER.format(github.digest))
    (settings / "runner-token").write_text(TOKEN)
    (settings / "runner-token").chmod(0o600)
    (settings / "runner.toml").write_text(allow_list())
    # The pause between two jobs spares GitHub, and here there is none.
    drop_in = booted.root / "etc/systemd/system/ldos-runner.service.d/pause.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nRestartSec=1\n")
    _bootstrap(booted)
    # Kernel modules cannot be had; that jobs may ask root's LTTng daemon, which comes with them, can.
    (settings / "lab.conf").write_text(
        (settings / "lab.conf").read_text().replace("KERNEL_TRACING=no", "KERNEL_TRACING=yes")
    )
    _bootstrap(booted, "--only", "runner")
    return booted


def _bootstrap(machine: LabMachine, *arguments: str) -> None:
    done = machine.run(f"/{PLACE}/lab/bootstrap", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr + machine.journal("--unit=ldos-runner")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what these tests do not reach, in the words of the lab's README."""
    text = (CHECKOUT / "lab/README.md").read_text()
    not_run = text.partition("## What was never run")[2].partition("\n## ")[0].strip()
    terminalreporter.section(f"not run by these tests (root: {SUITE})")
    terminalreporter.write_line(not_run)
