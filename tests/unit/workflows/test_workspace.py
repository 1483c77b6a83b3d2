"""The repository in ``examples/ci/workspace``: whole by itself, and its script run with stand-ins for Python and pip."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.scenario.base import parse_base
from pytest_ldos.scenario.settings import read_toml
from tests.builders.git import git
from tests.unit.workflows.conftest import install

ROOT = Path(__file__).parents[3]
CELL = ROOT / "examples" / "ci" / "workspace"
PACKAGE = CELL / "src" / "cell_bringup"

PYTHON = """#!/bin/sh
echo "python3 $*" >>"$CALLS"
[ "$1 $2" != '-m venv' ] || { mkdir -p .venv/bin && cp "$0" .venv/bin/python; }
[ "$3" != install ] || cp "${0%/*}/../../../programs/ldos" .venv/bin/ldos
"""
LDOS = """#!/bin/sh
echo "ldos $*" >>"$CALLS"
exit 10
"""


def test_nothing_of_this_repository_is_copied_into_it():
    ours = {
        (ROOT / name).read_bytes()
        for name in git(ROOT, "ls-files").split()
        if not (ROOT / name).is_relative_to(CELL) and (ROOT / name).is_file()
    }
    theirs = [file for file in CELL.rglob("*") if file.is_file()]
    assert len(theirs) > 10
    assert [file for file in theirs if file.read_bytes() in ours] == []


def test_its_settings_name_what_it_has():
    table = tomllib.loads((CELL / "pyproject.toml").read_text("utf-8"))["tool"]["ldos"]
    base = read_toml(CELL, None).base
    assert base == parse_base(table["base"])
    workspace = Workspace(CELL, base.workspaces(CELL))
    assert workspace.packages() == set(base.packages_up_to) == {"cell_bringup"}
    package, _, file = table["stack"]["launch_file"].partition("/")
    assert (CELL / "src" / package / "launch" / file).is_file()
    controllers = yaml.safe_load((PACKAGE / "config/controllers.yaml").read_text("utf-8"))
    known = controllers["/cell/controller_manager"]["ros__parameters"]
    assert set(table["stack"]["controllers"]) <= set(known)
    assert (CELL / table["stack"]["goals"]).is_file()


def test_its_package_installs_what_its_launch_file_reads():
    launch = (PACKAGE / "launch/cell.launch.py").read_text("utf-8")
    assert 'Path(__file__).parents[1] / "config"' in launch
    assert "install(DIRECTORY config launch DESTINATION" in (PACKAGE / "CMakeLists.txt").read_text("utf-8")


@pytest.fixture
def machine(tmp_path):
    checkout, programs = tmp_path / "cell", tmp_path / "programs"
    shutil.copytree(CELL, checkout)
    for name, text in (("python3", PYTHON), ("ldos", LDOS)):
        install(programs / name, text)

    def call(*arguments: str) -> tuple[int, list[str]]:
        log = tmp_path / "calls"
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(log)}
        done = subprocess.run(["sh", "./measure", *arguments], cwd=checkout, env=environment, timeout=60, check=False)
        return done.returncode, log.read_text("utf-8").splitlines()

    return call


def test_its_script_makes_the_environment_once_and_ends_as_the_gate_does(machine):
    code, calls = machine()
    assert code == 10
    assert calls[0] == "python3 -m venv --system-site-packages .venv"
    assert calls[1:] == ["python3 -m pip install --quiet pytest-ldos[ros2,report]", "ldos measure"]
    assert machine("pack")[1][len(calls) :] == ["ldos measure pack"]


def test_its_workflow_calls_that_script():
    gate = yaml.safe_load((CELL / ".github/workflows/gate.yml").read_text("utf-8"))
    given = gate["jobs"]["measure"]["with"]
    assert (CELL / given["script"]).is_file()
    assert given["stack"] == "ros2"


def test_commands_of_its_readme_are_commands():
    text = (CELL / "README.md").read_text("utf-8")
    from tests.builders.command_line import run_ldos

    for command in ("measure", "ros-packages"):
        assert f"ldos {command}" in text
        assert run_ldos(command, "--help").returncode == 0
