"""The table for setting up another revision's environment."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.scenario_table import BaseSpec
from pytest_ldos.scenario.settings import parse_table


def test_table_has_defaults():
    assert parse_table({}).base == BaseSpec(setup=(), python=".venv/bin/python")


def test_table_is_read():
    table = {"base": {"setup": ["make", "setup"], "python": "env/bin/python"}}
    assert parse_table(table).base == BaseSpec(setup=("make", "setup"), python="env/bin/python")


@pytest.mark.parametrize(("written", "read"), [("ros_ws", ("ros_ws",)), (["a", "b/c"], ("a", "b/c"))])
def test_workspaces(written, read):
    assert parse_table({"base": {"workspace": written}}).base.workspace == read


def test_default_workspace_is_src_or_the_project(tmp_path):
    spec = parse_table({}).base
    assert spec.workspaces(tmp_path) == (".",)
    (tmp_path / "src").mkdir()
    assert spec.workspaces(tmp_path) == ("src",)


def test_build_options_for_colcon_and_its_tools():
    command = ["nice", "colcon", "--log-level", "info", "build", "--mixin", "release"]
    spec = parse_table({"base": {"build": command, "packages_up_to": ["arm_bringup"]}}).base
    assert (spec.build, spec.packages_up_to) == (tuple(command), ("arm_bringup",))
    assert spec.build[spec.verb_at] == "build"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"base": {"build": "colcon build"}}, r"build is 'colcon build'(.|\n)*list of its words"),
        ({"base": {"build": ["make"]}}, "which does not call colcon build"),
        ({"base": {"build": ["build", "colcon"]}}, "which does not call colcon build"),
        (
            {"base": {"build": ["colcon", "build", "--symlink-install"]}},
            r"must not have --symlink-install(.|\n)*would change what is installed as soon as these change",
        ),
        ({"base": {"build": ["colcon", "build", "--install-base=x"]}}, "must not have --install-base=x"),
        ({"base": {"build": ["colcon", "build", "--packages-up-to", "x"]}}, "packages_up_to names the packages"),
        ({"base": {"workspace": 3}}, r"workspace is 3(.|\n)*name one folder"),
        ({"base": {"workspace": ""}}, "is not below the project"),
        ({"base": {"workspace": "../ws"}}, "is not below the project"),
        ({"base": {"workspace": "/ws"}}, "is not below the project"),
        ({"base": {"packages_up_to": "arm"}}, "packages_up_to is 'arm'"),
        ({"base": "main"}, r"base is 'main'(.|\n)*write it as a table"),
        ({"base": {"setpu": []}}, "did you mean 'setup'"),
        ({"base": {"setup": "make"}}, r"setup is 'make'(.|\n)*list of its words"),
        ({"base": {"setup": ["make", 3]}}, "list of its words"),
        ({"base": {"python": 3}}, "python is 3"),
        ({"base": {"python": ""}}, "python is empty"),
    ],
)
def test_errors_are_reported(table, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_table(table)
