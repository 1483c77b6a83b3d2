"""``.ci/ros2-setup``: what it would do on which system; nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.colcon import add_package, find_colcon
from tests.builders.machine import add_program
from tests.builders.ros import add_packages, add_python, sourced

SCRIPT = Path(__file__).parents[3] / ".ci/ros2-setup"
RESOLUTE = 'ID=ubuntu\nVERSION_ID="26.04"\nVERSION_CODENAME=resolute\nPRETTY_NAME="Ubuntu 26.04 LTS"\n'
NOBLE = 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n'
BOOKWORM = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
ROS_PYTHON = ("launch", "launch_ros", "rclpy")
COLCON = find_colcon()

needs_colcon = pytest.mark.skipif(
    not (COLCON and all(map(shutil.which, ("cmake", "make", "c++")))), reason="colcon, CMake or a compiler is missing"
)


@pytest.fixture
def project(tmp_path):
    for name in ("ldos_bringup", "ldos_cost"):
        (tmp_path / "project/ros_ws/src" / name).mkdir(parents=True)
        (tmp_path / "project/ros_ws/src" / name / "package.xml").touch()
    for name in ("pyproject.toml", "CMakeLists.txt", "pytest_ldos"):
        (tmp_path / "project" / name).touch()
    return tmp_path / "project"


def setup(project, os_release, *arguments, dry_run=True, **variables):
    (project.parent / "os-release").write_text(os_release)
    options = [f"--os-release={project.parent / 'os-release'}", *(["--dry-run"] if dry_run else [])]
    command = ["sh", str(SCRIPT), *" ".join(options).replace("=", " ").split(), *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROS_", "AMENT_", "PYTHONPATH"))}
    return subprocess.run(command, cwd=project, env={**kept, **variables}, capture_output=True, text=True, check=False)


def test_ubuntu_gets_ros_from_its_repository(project, tmp_path):
    done = setup(project, NOBLE, "--ros-root", str(tmp_path / "none"), ".venv-ros2", "--", "pytest", "-m", "baseline")
    assert done.returncode == 0, done.stderr
    plan = done.stderr
    order = [
        "ros2-apt-source_1.1.0.noble_all.deb",
        "SHA256:35441f3092fd0577",
        "ros-jazzy-moveit ",
        f"sourcing {tmp_path}/none/jazzy/setup.sh",
        "building ldos_bringup ldos_cost",
        "would run: colcon",
        "-m venv --clear --system-site-packages .venv-ros2",
        "pip install --quiet --editable .[dev,ros2]",
        "would run: pytest -m baseline",
    ]
    places = [plan.index(words) for words in order]
    assert places == sorted(places)
    for name in ("ros2-controllers", "gz-ros2-control", "ros-gz", "rmw-cyclonedds-cpp", "generate-parameter-library"):
        assert f"ros-jazzy-{name}" in plan
    assert not (project / ".venv-ros2").exists()


def test_each_ubuntu_gets_its_own_distribution(project, tmp_path):
    done = setup(project, RESOLUTE, "--ros-root", str(tmp_path / "none"), ".venv-ros2")
    assert done.returncode == 0, done.stderr
    for words in ("ros-lyrical-moveit ", f"sourcing {tmp_path}/none/lyrical/setup.sh"):
        assert words in done.stderr
    assert "jazzy" not in done.stderr


def test_a_repository_without_a_known_checksum_is_set_up_by_the_user(project, tmp_path):
    root = tmp_path / "none"
    bin_ = add_program(tmp_path / "bin", "id", "echo 0")
    add_program(bin_, "apt-get", "echo apt-get $1 >&2")
    add_program(bin_, "dpkg-query", "exit 1")
    path = f"{bin_}:{os.environ['PATH']}"
    done = setup(project, RESOLUTE, "--ros-root", str(root), "v", dry_run=False, PATH=path, LDOS_ROOT=str(root))
    assert done.returncode == 1
    assert (
        "ROS 2's apt repository for Ubuntu 26.04 is not set up, and no checksum of its package is known" in done.stderr
    )
    assert "download" not in done.stderr
    (root / "etc/apt").mkdir(parents=True)
    (root / "etc/apt/sources.list").write_text("deb http://packages.ros.org/ros2/ubuntu resolute main\n")
    done = setup(project, RESOLUTE, "--ros-root", str(root), "v", PATH=path, LDOS_ROOT=str(root))
    assert "would refuse" not in done.stderr
    assert "apt-get install -y --no-install-recommends ros-lyrical-ros-base" in done.stderr


def test_on_other_systems_the_installed_distribution_is_used(project, tmp_path):
    (tmp_path / "ros/lyrical").mkdir(parents=True)
    (tmp_path / "ros/lyrical/setup.sh").write_text(f"AMENT_PREFIX_PATH={tmp_path}/ros/lyrical\n")
    done = setup(project, BOOKWORM, "--ros-root", str(tmp_path / "ros"), ".venv-ros2")
    assert done.returncode == 0, done.stderr
    assert f"sourcing {tmp_path}/ros/lyrical/setup.sh" in done.stderr


def test_a_plan_leaves_nothing_behind(project, tmp_path):
    (tmp_path / "tmp").mkdir()
    done = setup(project, NOBLE, "--ros-root", str(tmp_path / "none"), "v", TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "tmp") not in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_download_that_fails_leaves_nothing_behind(project, tmp_path):
    """Root of an Ubuntu without ROS's repository, whose downloads go through a proxy that is not there."""
    (tmp_path / "tmp").mkdir()
    unreachable = 'Acquire::https::Proxy "http://127.0.0.1:9"; Acquire::Retries "0";'
    (tmp_path / "apt.conf").write_text(f'{unreachable} Dir::Etc::main "/dev/null"; Dir::Etc::parts "/dev/null";\n')
    bin_ = add_program(tmp_path / "bin", "id", "echo 0")
    add_program(bin_, "apt-get", "echo apt-get >&2")
    add_program(bin_, "chmod", f"echo made $2 >&2; exec {shutil.which('chmod')} $@")
    for name in ("grep", "dpkg-query"):
        add_program(bin_, name, "exit 1")
    for name in ("sh", "rm", "mktemp"):
        (bin_ / name).symlink_to(shutil.which(name))
    variables = {"PATH": str(bin_), "TMPDIR": str(tmp_path / "tmp"), "APT_CONFIG": str(tmp_path / "apt.conf")}
    done = setup(project, NOBLE, "v", dry_run=False, **variables)
    assert done.returncode != 0
    assert f"made {tmp_path / 'tmp'}/" in done.stderr
    assert "sourcing" not in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ros_distro_variable_alone_is_not_a_sourced_ros(project, tmp_path):
    done = setup(project, NOBLE, "--ros-root", str(tmp_path / "none"), "v", ROS_DISTRO="jazzy")
    assert f"sourcing {tmp_path}/none/jazzy/setup.sh" in done.stderr


def test_missing_parts_are_reported_on_other_systems(project, tmp_path):
    done = setup(project, BOOKWORM, "--ros-root", str(tmp_path / "none"), ".venv-ros2")
    assert done.returncode == 1
    assert "ROS 2 jazzy is missing" in done.stderr
    assert "this is Debian GNU/Linux 12 (bookworm)" in done.stderr
    assert "source its setup script" in done.stderr
    assert "would run" not in done.stderr


def test_an_installed_ros_of_another_system_is_used_as_it_is(project, tmp_path):
    (tmp_path / "ros/jazzy").mkdir(parents=True)
    (tmp_path / "ros/jazzy/setup.sh").write_text(f"AMENT_PREFIX_PATH={tmp_path}/ros/jazzy; : $UNSET_VARIABLE\n")
    done = setup(project, BOOKWORM, "--ros-root", str(tmp_path / "ros"), ".venv-ros2")
    assert done.returncode == 0, done.stderr
    assert "is used as it is" in done.stderr
    assert "apt-get" not in done.stderr
    assert "would run: colcon" in done.stderr


@pytest.mark.parametrize("system", [NOBLE, BOOKWORM])
def test_nothing_is_installed_next_to_a_sourced_ros(project, tmp_path, system):
    prefix = add_packages(tmp_path / "built", ["rclcpp"])
    done = setup(project, system, ".venv-ros2", **sourced(prefix, distro="rolling"))
    assert done.returncode == 0, done.stderr
    assert f"using the ROS 2 that is sourced: rolling ({prefix})" in done.stderr
    assert "apt-get" not in done.stderr
    assert "building ldos_bringup ldos_cost" in done.stderr


def test_sourced_own_packages_are_not_built_again(project, tmp_path):
    prefix = add_packages(tmp_path / "built", ["ldos_cost"])
    assert "building ldos_bringup\n" in setup(project, BOOKWORM, "v", **sourced(prefix)).stderr
    add_packages(prefix, ["ldos_bringup"])
    done = setup(project, BOOKWORM, "v", **sourced(prefix))
    assert "the packages of ros_ws are in a sourced prefix" in done.stderr
    assert "colcon" not in done.stderr


def test_own_builds_are_rebuilt_even_if_sourced(project):
    own = add_packages(project / "ros_ws/install/ldos_cost", ["ldos_cost"])
    assert "building ldos_bringup ldos_cost" in setup(project, BOOKWORM, "v", **sourced(own)).stderr


def test_the_python_is_one_that_imports_ros(project, tmp_path):
    prefix = add_packages(tmp_path / "built", ["ldos_cost", "ldos_bringup"])
    done = setup(project, BOOKWORM, "v", dry_run=False, **sourced(prefix))
    assert done.returncode == 1
    assert "can import launch, launch_ros and rclpy" in done.stderr
    folder = add_python(prefix, ROS_PYTHON)
    plan = setup(project, BOOKWORM, "v", **sourced(prefix), PYTHONPATH=str(folder)).stderr
    assert "-m venv --clear --system-site-packages v" in plan


def test_new_environment_is_not_based_on_an_active_one(project, tmp_path):
    """It may be the one that is created again."""
    prefix = add_packages(tmp_path / "built", ["ldos_cost", "ldos_bringup"])
    active = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    plan = setup(project, BOOKWORM, "v", **sourced(prefix), PYTHONPATH=str(add_python(prefix, ROS_PYTHON)), PATH=active)
    assert f"making v of {os.path.realpath(sys._base_executable)}," in plan.stderr


@pytest.fixture
def ready(project, tmp_path):
    """Variables with which the virtual environment ``v`` is ready, and holds a program ``tool``."""
    prefix = add_packages(tmp_path / "built", ["rclcpp"])
    environment = {**sourced(prefix), "PYTHONPATH": str(add_python(prefix, ROS_PYTHON))}
    plan = setup(project, BOOKWORM, "v", **environment).stderr
    python = plan.split("making v of ")[1].split(",")[0]
    add_program(project / "v/bin", "tool", 'echo "$ROS_DISTRO: $*: ${LDOS_LEFT_OUT-}"; exit 7')
    (project / "v/.python").write_text(f"{python}\n")
    made_from = ["sh", str(SCRIPT.with_name("made-from")), str(SCRIPT)]
    (project / "v/.ready").write_text(
        subprocess.run(made_from, cwd=project, capture_output=True, text=True, check=True).stdout
    )
    return environment


def test_command_runs_in_the_prepared_environment(project, tmp_path, ready):
    """With a virtual environment that is ready already."""
    add_packages(tmp_path / "built", ["ldos_cost", "ldos_bringup"])
    (project / "pyproject.toml").write_text("[tool.ldos]\ntrials = 3\n")
    done = setup(project, BOOKWORM, "v", "--", "tool", "a b", "c", dry_run=False, **ready)
    assert (done.returncode, done.stdout) == (7, "jazzy: a b c: \n"), done.stderr


NO_CONFIG = "random_numbers"
"""A package that is nowhere here; as nlohmann_json is where its Debian package is not installed."""

WORKSPACE = {
    "ldos_tracepoints": {},
    "ldos_planner": {"depends": "ldos_tracepoints", "more": f"find_package({NO_CONFIG} REQUIRED)"},
    "ldos_cost": {"more": "install(FILES not_there DESTINATION lib)"},
    "ldos_panda_config": {"depends": "ldos_planner"},
    "ldos_bringup": {"depends": "ldos_panda_config"},
}
"""The planner lacks something, the costs cannot be installed, and the Panda's configuration names the planner."""


def build(project, environment, workspace, *arguments):
    shutil.rmtree(project / "ros_ws/src", ignore_errors=True)
    for name, parts in workspace.items():
        add_package(project / "ros_ws", name, **parts)
    path = f"{os.environ['PATH']}:{COLCON}"
    return setup(project, BOOKWORM, "v", *arguments, dry_run=False, **environment, PATH=path)


@pytest.mark.acceptance
@needs_colcon
def test_an_optional_package_that_cannot_be_built_is_left_out_with_its_reason(project, ready):
    stale = project / "ros_ws/install/ldos_planner/share/ldos_planner"
    stale.mkdir(parents=True)
    done = build(project, ready, WORKSPACE, "--", "tool")
    assert done.returncode == 7, done.stderr
    planner, costs = done.stdout.splitlines()[-1].removeprefix("jazzy: : ").split("; ")
    install = "rosdep install --from-paths ros_ws/src/ldos_planner --ignore-src"
    assert planner == f"ldos_planner: CMake does not find {NO_CONFIG} ({install})"
    assert costs.startswith("ldos_cost: its build failed, see ")
    assert "not_there" in (project / costs.rpartition(" ")[2]).read_text()
    assert "building ldos_bringup ldos_cost ldos_panda_config ldos_tracepoints\n" in done.stderr
    built = {each.name for each in (project / "ros_ws/install").iterdir() if each.is_dir()}
    assert built == {"ldos_tracepoints", "ldos_panda_config", "ldos_bringup"}


@needs_colcon
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (f"find_package({NO_CONFIG} REQUIRED)", f"CMake does not find {NO_CONFIG} (rosdep install "),
        ("install(FILES not_there DESTINATION lib)", "its build failed, see ros_ws/log/build_"),
    ],
)
def test_a_package_that_is_needed_and_cannot_be_built_is_named(project, ready, more, reason):
    """Missing requirements are found before anything is built."""
    done = build(project, ready, {**WORKSPACE, "ldos_goal_client": {"more": more}}, "--", "tool")
    assert (done.returncode, "jazzy: " in done.stdout) == (1, False)
    assert f"ldos_goal_client of ros_ws cannot be built: {reason}" in done.stderr
    assert (project / "ros_ws/build").exists() == ("find_package" not in more)


@needs_colcon
def test_test_only_dependencies_are_not_required(project, ready):
    more = f"if(BUILD_TESTING)\n  find_package({NO_CONFIG} REQUIRED)\nendif()"
    done = build(project, ready, {"ldos_bringup": {"more": more}}, "--", "tool")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (7, "jazzy: : "), done.stderr


def test_environment_from_other_inputs_is_recreated(project, tmp_path):
    prefix = add_packages(tmp_path / "built", ["ldos_cost", "ldos_bringup"])
    environment = {**sourced(prefix), "PYTHONPATH": str(add_python(prefix, ROS_PYTHON))}
    (project / "v").mkdir()
    (project / "v/.ready").write_text("another digest\n")
    assert "installing pytest-ldos into v" in setup(project, BOOKWORM, "v", **environment).stderr


def test_without_packages_or_colcon(project, tmp_path):
    prefix = add_packages(tmp_path / "built", ["rclcpp"])
    names = ("sh", "basename", "dirname", "id", "cat")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in names:
        (programs / name).symlink_to(shutil.which(name))
    done = setup(project, BOOKWORM, "v", dry_run=False, **sourced(prefix), PATH=str(programs))
    assert done.returncode == 1
    assert "colcon is missing" in done.stderr
    shutil.rmtree(project / "ros_ws/src")
    assert "holds no packages" in setup(project, BOOKWORM, "v", **sourced(prefix)).stderr


@pytest.mark.parametrize("arguments", [(), ("--dry",), ("--os-release",)])
def test_wrong_usage(project, arguments):
    command = ["sh", str(SCRIPT), *arguments]
    assert subprocess.run(command, cwd=project, capture_output=True, check=False).returncode != 0


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_no_complaints():
    subprocess.run(
        ["shellcheck", *(str(SCRIPT.with_name(name)) for name in ("ros2-setup", "setup", "made-from"))], check=True
    )


def test_packages_alone_can_be_requested(project):
    done = setup(project, NOBLE, "--packages-only")
    assert done.returncode == 0, done.stderr
    assert "ros-jazzy-moveit " in done.stderr
    assert "colcon --log-base" not in done.stderr
    assert "venv --clear" not in done.stderr


def test_packages_alone_are_those_of_ubuntu(project):
    refusal = "packages of ROS 2 jazzy are for Ubuntu 24.04; this is Debian GNU/Linux 12 (bookworm)\n"
    done = setup(project, BOOKWORM, "--packages-only", dry_run=False)
    assert (done.returncode, done.stderr) == (1, f"ros2-setup: {refusal}")
    tried = setup(project, BOOKWORM, "--packages-only")
    assert tried.returncode == 0
    assert tried.stderr.startswith(f"ros2-setup: would refuse: {refusal}")
    assert "would run: " in tried.stderr


def test_an_environment_alone_needs_a_ros_that_is_sourced_and_no_rights(project, tmp_path):
    """As the gate makes it: nothing is installed, and the workspace is left to the measurement."""
    place = tmp_path / "ros/jazzy/setup.sh"
    place.parent.mkdir(parents=True)
    place.touch()
    alone = ("--environment-only", "--ros-root", str(tmp_path / "ros"), ".venv-ros2")
    refused = setup(project, NOBLE, *alone, dry_run=False)
    assert (refused.returncode, "no ROS 2 is sourced" in refused.stderr) == (1, True)
    done = setup(project, NOBLE, *alone, ROS_DISTRO="jazzy", AMENT_PREFIX_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "pip install --quiet --editable .[dev,ros2]" in done.stderr
    assert not [words for words in ("apt-get", "colcon", "building") if words in done.stderr]
