"""The project that ``ldos init`` makes, on a fake stack."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.builders.ros import add_packages, add_python

EXAMPLE = Path(__file__).parents[2] / "examples/first_project"


@pytest.fixture
def first(project):
    (project.path / "test_scenario.py").unlink()
    for name in ("pyproject.toml", "test_arm.py"):
        shutil.copy(EXAMPLE / name, project.path / name)
    return project


def test_first_run_is_the_baseline_of_the_second(run, first):
    assert run("-m", "baseline", "-p", "no:cacheprovider").ret == 0
    second = run("-m", "baseline", "-p", "no:cacheprovider", stack="noisy(2)")
    second.stdout.fnmatch_lines(["baseline: passed; 10 of 10 trials succeeded*"])


def test_scenario_declared_in_settings_has_a_test(run, first):
    result = run("-m", "busy_cell", "--collect-only", "-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["test_arm.py::test_reach_in_a_busy_cell"])


OF_ROS = {
    "launch_testing": "def pytest_addhooks(pluginmanager):\n    import specs\n    pluginmanager.add_hookspecs(specs)\n",
    "launch_ros": "def pytest_launch_collect(module):\n    pass\n",
    "launch_pytest": "import pytest\n\n@pytest.fixture\ndef launch_context():\n    return 7\n",
    "specs": "def pytest_launch_collect(module):\n    pass\n",
}
"""pytest plugins as ROS 2 has them: the second implements a hook of the first."""


@pytest.fixture
def sourced(first, monkeypatch):
    """Sources a ROS 2 with these plugins, some in another form; the project has a test for launch_pytest."""

    def source(**other: str) -> None:
        prefix = add_packages(first.path / "ros", ["launch"])
        modules = add_python(prefix, [])
        modules.mkdir(parents=True)
        for name, text in {**OF_ROS, **other}.items():
            (modules / f"{name}.py").write_text(text, "utf-8")
            information = modules / f"{name}-1.egg-info"
            information.mkdir()
            (information / "PKG-INFO").write_text(f"Metadata-Version: 1.0\nName: {name}\nVersion: 1\n", "utf-8")
            if name != "specs":
                (information / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n", "utf-8")
        monkeypatch.setenv("PYTHONPATH", f"{modules}:{os.environ['PYTHONPATH']}")
        monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))

    first.makepyfile(test_launch="def test_launch(launch_context):\n    assert launch_context == 7\n")
    first.makepyfile(test_other="def test_other():\n    pass\n")
    # As pytest 8 does when it looks for fixtures.
    first.makeconftest(
        "def pytest_configure(config):\n    [hash(each) for each in config.pluginmanager.get_plugins()]\n"
    )
    return source


NEEDS_MORE = "import a_package_that_is_missing\n"


def test_loadable_plugins_of_ros_are_loaded(first, sourced):
    sourced()
    result = first.runpytest_subprocess("test_launch.py", timeout=300)
    result.assert_outcomes(passed=1)
    (plugins,) = (line for line in result.outlines if line.startswith("plugins: "))
    assert {"launch_testing-1", "launch_ros-1"} <= set(plugins.removeprefix("plugins: ").split(", "))
    result.stdout.no_fnmatch_line("*not loaded*")


@pytest.mark.parametrize(
    ("other", "left_out", "reason"),
    [
        (dict.fromkeys(("launch_testing", "launch_pytest"), NEEDS_MORE), "launch_testing, launch_ros, launch_pytest",
         "No module named 'a_package_that_is_missing'"),
        ({"launch_testing": "def pytest_pycollect_makemodule(no_such_argument):\n    pass\n"}, "launch_testing, launch_ros",
         "Argument(s) {'no_such_argument'} are declared in the hookimpl but can not be found in the hookspec"),
    ],
    ids=["package missing", "pytest too new"],
)  # fmt: skip
def test_unloadable_plugins_of_ros_are_left_out(first, sourced, other, left_out, reason):
    sourced(**other)
    named = "test_other.py" if "launch_pytest" in left_out else "test_launch.py"
    result = first.runpytest_subprocess(named, timeout=300)
    result.assert_outcomes(passed=1)
    assert f"ldos: ROS 2's {left_out} not loaded: {reason} → pip install 'pytest-ldos[ros2]'" in result.outlines
    without = first.runpytest_subprocess(named, "--override-ini=addopts=", timeout=300)
    assert without.ret not in {0, 5}, "such a plugin ends pytest otherwise"
