"""Machines for ``lab/``: a bare one, and one with a runner."""

from __future__ import annotations

import shutil

import pytest

from tests.builders.lab import SECRET, LabMachine, build_lab_machine, configure_runner, pack_runner, registration


@pytest.fixture
def machine(tmp_path):
    return build_lab_machine(tmp_path)


@pytest.fixture(scope="session")
def installed_once(tmp_path_factory):
    machine = build_lab_machine(tmp_path_factory.mktemp("installed"))
    configure_runner(machine, pack_runner(machine))
    machine.write("etc/ldos-lab/runner-token", f"{SECRET}\n", 0o600)
    for phase in ("machine", "runner"):
        done = machine.bootstrap("--only", phase)
        assert done.returncode == 0, done.stderr
    machine.know("answer", registration(runner='{"AgentName": "lab"}', credentials="{}", credentials_rsaparams="{}"))
    machine.know("status", "201")
    machine.know("calls")
    return machine


@pytest.fixture
def installed(installed_once, tmp_path):
    """A machine on which the runner is installed, and has not had a job yet."""
    shutil.copytree(installed_once.root.parent, tmp_path, symlinks=True, dirs_exist_ok=True)
    return LabMachine(tmp_path / "root", tmp_path / "fakes")
