"""The repository in ``examples/ci/workspace``: whole by itself, and its script run with stand-ins for Python and pip."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.scenario.scenario_table import parse_base
from pytest_ldos.scenario.settings import read_toml
from tests.builders.git import git

ROOT = Path(__file__).parents[3]
CELL = ROOT / "examples" / "ci" / "workspace"
PACKAGE = CELL / "src" / "cell_bringup"


def test_nothing_of_this_repository_is_copied_into_it():
    ours = {
        (ROOT / name).read_bytes()
        for name in git(ROOT, "ls-files").split()
        if not (ROOT / name).is_relative_to(CELL) and (ROOT / name).is_file()
    }
    theirs = [file for file in CELL.rglob("*") if file.is_file()]
    assert len(theirs) > 10
    assert [file for file in theirs if file.read_bytes() in ours] == []


def test_settings_name_existing_parts():
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


def test_package_installs_the_launch_files_inputs():
    launch = (PACKAGE / "launch/cell.launch.py").read_text("utf-8")
    assert 'Path(__file__).parents[1] / "config"' in launch
    assert "install(DIRECTORY config launch DESTINATION" in (PACKAGE / "CMakeLists.txt").read_text("utf-8")


def test_its_workflow_measures_its_stack():
    request = yaml.safe_load((CELL / ".github/workflows/request.yml").read_text("utf-8"))
    given = request["jobs"]["ldos"]["with"]
    assert (given["stack"], given["scenarios"]) == ("ros2", "baseline")


def test_commands_of_its_readme_are_commands():
    text = (CELL / "README.md").read_text("utf-8")
    from tests.builders.command_line import run_ldos

    for command in ("measure", "ros-packages"):
        assert f"ldos {command}" in text
        assert run_ldos(command, "--help").returncode == 0
