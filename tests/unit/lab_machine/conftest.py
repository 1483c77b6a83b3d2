"""Machines for ``lab/``: a bare one, and one with a runner."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.builders.lab import SECRET, LabMachine, build_lab_machine, configure_runner, pack_runner


@pytest.fixture
def machine(tmp_path):
    return build_lab_machine(tmp_path)


@pytest.fixture(scope="session")
def installed_once(tmp_path_factory):
    machine = build_lab_machine(tmp_path_factory.mktemp("installed"))
    run_script = 'echo "$ACTIONS_RUNNER_INPUT_JITCONFIG" >"$FAKES/ran"; pwd >>"$FAKES/ran"'
    configure_runner(machine, pack_runner(machine, run_script))
    machine.write("etc/ldos-lab/runner-token", f"{SECRET}\n", 0o600)
    for phase in ("machine", "runner"):
        done = machine.bootstrap("--only", phase)
        assert done.returncode == 0, done.stderr
    machine.know("answer", json.dumps({"runner": {"id": 23}, "encoded_jit_config": "eyJhIjoi/+Q=="}))
    machine.know("status", "201")
    machine.know("calls")
    return machine


@pytest.fixture
def installed(installed_once, tmp_path):
    """A machine on which the runner is installed, and has not had a job yet."""
    shutil.copytree(installed_once.root.parent, tmp_path, symlinks=True, dirs_exist_ok=True)
    return LabMachine(tmp_path / "root", tmp_path / "fakes")
