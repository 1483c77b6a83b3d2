"""Versions of a ROS 2 workspace, built by the real colcon: caching and failures."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.find import VersionFinder
from pytest_ldos.campaign.versions.workspace import find_underlay
from pytest_ldos.host.availability import Availability, find_ros_package
from pytest_ldos.robot.stack.ros2 import installed
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.scenario_table import BaseSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind
from tests.builders.colcon import COMPILED, MAIN, add_launch_file, add_package, find_colcon
from tests.builders.debian import install_package
from tests.builders.repository import Repository
from tests.builders.ros import OTHER_PYTHON, add_packages, add_python

COLCON = find_colcon()
pytestmark = pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")
LAUNCH_FILE = "arm_bringup/arm.launch.py"


class Project:
    """A repository with a workspace, over an underlay without packages."""

    def __init__(self, path: Path) -> None:
        self.repository = Repository.create(path / "project")
        self.path = self.repository.path
        self.workspace = self.path / "ros_ws"
        self.underlay = add_packages(path / "underlay", ["arm_msgs"])
        self.store = self.path / ".ldos/bases"
        self.announced: list[str] = []
        (self.path / ".gitignore").write_text(".ldos\ninstall\n")
        add_launch_file(self.workspace, "arm_bringup", "arm.launch.py")
        add_package(self.workspace, "arm_planner", value=1)

    def versions(self, *, launch_file: str = LAUNCH_FILE, announce=None, **settings) -> VersionFinder:
        return VersionFinder(
            stack=StackSpec(ros2=Ros2Spec(launch_file=launch_file)),
            spec=BaseSpec(**{"workspace": ("ros_ws",), **settings}),
            root=self.path,
            folder=self.path,
            output=self.store.parent,
            announce=announce or self.announced.append,
        )

    def commit(self) -> str:
        return self.repository.commit()

    @property
    def builds(self) -> list[str]:
        """Announcements of started builds."""
        return [
            each for each in self.announced if "the first time takes minutes; log: " in each and each.startswith("buil")
        ]

    def prefixes(self) -> list[Path]:
        return sorted(self.store.glob("workspace-*/install"))


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    made = Project(tmp_path)
    for name in ("AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(made.underlay))
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + COLCON)
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setattr("pytest_ldos.campaign.versions.find.ros2_available", lambda *_: Availability(True))
    return made


def value_of(version, package="arm_planner") -> int:
    """A value installed by a package, as found in the sourced version."""
    prefix = find_ros_package(package, version.installation.environment)
    assert prefix is not None
    return int((prefix / f"share/{package}/value").read_text())


def test_a_revision_is_built_from_its_own_sources_over_the_same_underlay(project):
    old = project.commit()
    add_package(project.workspace, "arm_planner", value=2)
    project.commit()
    versions = project.versions()
    base, head = versions.base("HEAD~1"), versions.head()
    assert (value_of(base), value_of(head)) == (1, 2)
    assert base.name == f"base HEAD~1 ({old})"
    assert not head.is_same(base)
    assert base.packages == head.packages == {"arm_bringup", "arm_planner"}
    for version in (base, head):
        assert version.installation.environment["AMENT_PREFIX_PATH"].endswith(str(project.underlay))
    assert f"building {base.name}: package 1 of 2, arm_bringup" in project.announced
    assert f"building {base.name}: package 2 of 2, arm_planner" in project.announced
    assert not list(project.store.rglob("build-*")), "the files of a build take space and are not needed"


@pytest.mark.acceptance
def test_head_of_a_revision_is_built_from_it_not_the_checkout(project):
    old = project.commit()
    add_package(project.workspace, "arm_planner", value=2)
    new = project.commit()
    add_package(project.workspace, "arm_planner", value=3)
    versions = project.versions()
    head = versions.built(Role.HEAD, old)
    assert (head.role, head.name, head.commit, value_of(head)) == (Role.HEAD, f"head {old}", old, 1)
    assert value_of(versions.built(Role.HEAD, "HEAD")) == 2, "what is checked out has changes, which are no part of it"
    assert versions.built(Role.BASE, "HEAD~1").is_same(head)
    assert versions.built(Role.HEAD, "HEAD").commit == new
    assert len(project.builds) == 2
    with pytest.raises(ConfigurationError, match=r"--ldos-head ros_ws is a folder"):
        versions.built(Role.HEAD, "ros_ws")


@pytest.mark.acceptance
def test_equal_workspaces_are_built_once_and_are_one_version(project):
    project.commit()
    (project.path / "README").write_text("another commit, the same workspace")
    project.commit()
    versions = project.versions()
    base, head = versions.base("HEAD~1"), versions.head()
    assert base.commit != head.commit
    assert base.is_same(head)
    assert base.installation == head.installation
    assert len(project.builds) == 1
    again = project.versions()
    assert again.base("HEAD~1") == base
    assert len(project.builds) == 1, "it is kept"


@pytest.mark.acceptance
def test_head_with_changes_is_built_as_it_is_and_without_them_from_its_commit(project):
    commit = project.commit()
    add_package(project.workspace, "arm_planner", value=3)
    changed = project.versions().head()
    assert (changed.name, changed.commit, value_of(changed)) == (f"head ({commit}+)", f"{commit}+", 3)
    (project.workspace / "src/arm_planner/junk").write_text("not committed")
    project.repository.git("checkout", "--quiet", "--", "ros_ws/src/arm_planner/value")
    (project.workspace / "src/arm_planner/junk").unlink()
    clean = project.versions().head()
    assert value_of(clean) == 1
    assert clean.is_same(project.versions().base("HEAD"))


@pytest.mark.acceptance
def test_checkout_in_another_folder_is_built_unchanged(project, tmp_path):
    project.commit()
    other = tmp_path / "other"
    project.repository.git("worktree", "add", "--quiet", str(other))
    add_package(other / "ros_ws", "arm_planner", value=4)
    base = project.versions().base(str(other))
    assert value_of(base) == 4
    assert base.project == other
    assert base.installation != project.versions().head().installation


def test_an_install_prefix_is_sourced_as_it_is(project):
    project.commit()
    prefix = Path(project.versions().head().installation.environment["COLCON_PREFIX_PATH"])
    base = project.versions().base(str(prefix))
    assert base.packages is None
    assert value_of(base) == 1


@pytest.mark.acceptance
def test_several_workspaces_are_built_together(project):
    add_package(project.path / "parts", "arm_parts", value=7)
    project.commit()
    head = project.versions(workspace=("ros_ws", "parts")).head()
    assert head.packages == {"arm_bringup", "arm_planner", "arm_parts"}
    assert value_of(head, "arm_parts") == 7


@pytest.mark.acceptance
def test_packages_that_matter_are_built_with_what_they_need(project):
    add_package(project.workspace, "arm_unused")
    add_package(
        project.workspace,
        "arm_bringup",
        depends="arm_planner",
        more="install(DIRECTORY launch DESTINATION share/arm_bringup)",
    )
    project.commit()
    head = project.versions(packages_up_to=("arm_bringup",)).head()
    assert head.packages == {"arm_bringup", "arm_planner"}


@pytest.mark.acceptance
def test_setup_may_create_sources_and_an_environment(project):
    """Its output is part of the sources, and its environment is activated for the build and the stack."""
    project.commit()
    script = "echo 9 >ros_ws/src/arm_planner/value; mkdir -p .venv/bin; touch .venv/bin/python"
    versions = project.versions(setup=("sh", "-c", script))
    base = versions.base("HEAD")
    assert value_of(base) == 9
    assert base.installation.environment["PATH"].startswith(str(base.project / ".venv/bin"))
    assert base.is_same(versions.head())


# --- faults -----------------------------------------------------------------------------


def refused(project, revision="HEAD~1", **settings) -> str:
    with pytest.raises(PreparationFailed) as caught:
        project.versions(**settings).base(revision)
    return str(caught.value)


@pytest.mark.acceptance  # the plugin's test_built_workspaces has one that fails, too
def test_failed_build_names_the_package_and_the_end_of_its_log(project):
    folder = add_package(project.workspace, "arm_planner", more=COMPILED)
    (folder / "main.c").write_text("int main(void) { return not_declared; }\n")
    broken = project.commit()
    add_package(project.workspace, "arm_planner")
    project.commit()
    text = refused(project)
    assert f"base HEAD~1 ({broken}) cannot be built: package arm_planner failed" in text
    assert "not_declared" in text
    assert "/log; [tool.ldos.base] build and setup" in text
    (log,) = project.store.glob("workspace-*/log/latest_build/arm_planner/stderr.log")
    assert "not_declared" in log.read_text()
    assert not project.prefixes(), "what is left of it takes no room"
    refused(project)
    assert len(project.builds) == 2, "it is no base of another time"


def test_workspace_missing_from_the_base(project):
    project.repository.git("add", ".gitignore")
    project.repository.git("commit", "--quiet", "--message=empty")
    project.commit()
    assert "cannot be built: it has no workspace ros_ws" in refused(project)


@pytest.mark.acceptance
def test_a_workspace_without_a_package(project):
    (project.path / "empty").mkdir()
    (project.path / "empty/README").write_text("nothing")
    project.commit()
    assert "colcon finds no package in its workspace" in refused(project, "HEAD", workspace=("empty",))


def test_a_package_that_was_renamed_between_base_and_head(project):
    base = project.commit()
    project.repository.git("mv", "ros_ws/src/arm_planner", "ros_ws/src/arm_planning")
    add_package(project.workspace, "arm_planning")
    project.commit()
    text = refused(project, packages_up_to=("arm_bringup", "arm_planning"))
    assert f"base HEAD~1 ({base}) cannot be built: its workspace has no package arm_planning" in text
    assert "did you mean 'arm_planner'?" in text


@pytest.mark.acceptance
def test_a_launch_file_that_head_alone_has(project):
    project.commit()
    add_launch_file(project.workspace, "arm_bringup", "new.launch.py")
    project.commit()
    text = refused(project, launch_file="arm_bringup/new.launch.py")
    assert "base HEAD~1 (" in text
    assert "package arm_bringup has no launch file 'new.launch.py'" in text
    assert "compare with a stored baseline" in text
    assert project.versions(launch_file="arm_bringup/new.launch.py").head().installation.launch_file == ""


@pytest.mark.acceptance
def test_a_launch_file_named_by_its_path_is_the_versions_own(project):
    file = project.path / "cell.launch.py"
    project.commit()
    file.write_text("old")
    project.commit()
    file.write_text("new")
    project.commit()
    versions = project.versions(launch_file=str(file))
    base, head = versions.base("HEAD~1"), versions.head()
    assert Path(base.installation.launch_file).read_text() == "old"
    assert Path(head.installation.launch_file).read_text() == "new"
    assert not base.is_same(head), "the workspaces are equal, the launch files are not"
    assert "has no launch file cell.launch.py" in refused(project, "HEAD~2", launch_file=str(file))


def test_files_next_to_the_launch_file_are_not_built(project):
    shutil.rmtree(project.workspace)
    file = project.path / "cell.launch.py"
    file.write_text("old")
    project.commit()
    file.write_text("new")
    project.commit()
    versions = project.versions(launch_file=str(file), workspace=())
    base, head = versions.base("HEAD~1"), versions.head()
    assert Path(base.installation.launch_file).read_text() == "old"
    assert Path(head.installation.launch_file).read_text() == "new"
    assert project.builds == []
    assert (base.packages, head.packages) == (frozenset(), frozenset())


@pytest.mark.acceptance
def test_a_package_that_the_stack_needs_and_the_base_does_not_have(project, monkeypatch):
    monkeypatch.setattr(
        "pytest_ldos.campaign.versions.find.ros2_available",
        lambda stack, environment: Availability(False, "ROS package arm_control not found", "install it"),
    )
    project.commit()
    assert "cannot be started: ROS package arm_control not found" in refused(project, "HEAD")


@pytest.mark.acceptance
def test_an_underlay_that_changed_since_the_prefix_was_kept(project):
    """A file outside of packages; then another distribution."""
    project.commit()
    project.versions().head()
    (project.underlay / "lib").mkdir()
    (project.underlay / "lib/libarm_msgs.so").write_text("new")
    second = project.versions().head()
    assert len(project.builds) == 2
    assert f"again, because its underlay changed (files of {project.underlay} " in project.builds[1]
    assert project.versions().head() == second
    assert len(project.builds) == 2


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg is not installed")
def test_a_package_of_the_underlay_that_was_upgraded(project, tmp_path, monkeypatch):
    """By its version: the same file with another time stamp is the same underlay."""
    project.commit()
    library = project.underlay / "lib/libarm_msgs.so"
    install_package(tmp_path, monkeypatch, "ros-jazzy-arm-msgs", "1.0", library, content="same")
    first = project.versions().head()
    os.utime(library)
    assert project.versions().head() == first
    install_package(tmp_path, monkeypatch, "ros-jazzy-arm-msgs", "1.1", library, content="same")
    assert project.versions().head() != first
    assert "because its underlay changed (ros-jazzy-arm-msgs 1.0 → 1.1)" in project.builds[1]


@pytest.mark.acceptance
def test_an_underlay_of_another_distribution(project, monkeypatch):
    project.commit()
    project.versions().head()
    monkeypatch.setenv("ROS_DISTRO", "kilted")
    project.versions().head()
    assert "because its underlay changed (ROS_DISTRO jazzy → kilted)" in project.builds[1]


@pytest.mark.acceptance
def test_projects_own_install_is_no_underlay(project, monkeypatch):
    """Otherwise the sourced workspace would provide packages that the base lacks."""
    project.commit()
    first = project.versions().head()
    own = add_packages(project.workspace / "install/arm_old", ["arm_old"])
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{own}:{project.underlay}")
    monkeypatch.setenv("COLCON_PREFIX_PATH", str(own.parent))
    head = project.versions().head()
    assert len(project.builds) == 1
    assert find_ros_package("arm_old", head.installation.environment) is None
    assert first.installation.environment["AMENT_PREFIX_PATH"] == head.installation.environment["AMENT_PREFIX_PATH"]


@pytest.mark.acceptance
def test_workspaces_install_in_another_folder_is_no_underlay(project, tmp_path, monkeypatch):
    """Packages that the base lacks must not be found in it."""
    project.commit()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "share/colcon-core/packages").mkdir(parents=True)
    (elsewhere / "share/colcon-core/packages/arm_planner").touch()
    add_packages(elsewhere, ["arm_planner"])
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{elsewhere}:{project.underlay}")
    head = project.versions().head()
    assert str(elsewhere) not in head.installation.environment["AMENT_PREFIX_PATH"]


@pytest.mark.acceptance
def test_workspace_named_src_is_installed_next_to_it(project, monkeypatch):
    """The usual layout needs no settings."""
    project.repository.git("init", "--quiet")
    add_package(project.path, "arm_parts", value=6)
    project.commit()
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{add_packages(project.path / 'install', ['old'])}:{project.underlay}")
    head = project.versions(workspace=(), launch_file=str(project.path / ".gitignore")).head()
    assert head.packages == {"arm_parts"}
    assert find_ros_package("old", head.installation.environment) is None


def test_a_base_of_another_distribution(project, tmp_path, monkeypatch):
    """Its Python packages are for another Python version; the error names both distributions."""
    monkeypatch.setattr("pytest_ldos.campaign.versions.find.ros2_available", installed.ros2_available)
    project.commit()
    add_launch_file(project.workspace, "arm_bringup", "arm.launch.py")
    prefix = add_packages(tmp_path / "humble", ["arm_bringup"])
    (prefix / "share/arm_bringup").mkdir(parents=True)
    (prefix / "share/arm_bringup/arm.launch.py").touch()
    add_python(prefix, ["launch", "launch_ros", "rclpy"], version=OTHER_PYTHON)
    (prefix / "setup.bash").write_text(f"export AMENT_PREFIX_PATH='{prefix}' ROS_DISTRO=humble\n")
    text = refused(project, str(prefix))
    assert f"base {prefix} cannot be started: Python package launch is built for Python {OTHER_PYTHON}" in text
    assert "(it is of ROS 2 humble, head of jazzy)" in text


@pytest.mark.acceptance
def test_prefix_with_a_removed_package_is_rebuilt(project):
    project.commit()
    head = project.versions().head()
    prefix = find_ros_package("arm_planner", head.installation.environment)
    (prefix / "share/colcon-core/packages/arm_planner").unlink()
    assert project.versions().head() == head
    assert "unfinished or damaged" in " ".join(project.announced)
    assert value_of(head) == 1


@pytest.mark.acceptance
def test_links_to_sources_are_refused(project):
    """The settings refuse the option; here a package creates a link."""
    add_package(
        project.workspace,
        "arm_planner",
        more='install(CODE "file(CREATE_LINK ${CMAKE_SOURCE_DIR}/value ${CMAKE_INSTALL_PREFIX}/share/link SYMBOLIC)")',
    )
    project.commit()
    text = refused(project, "HEAD")
    assert "has a link to" in text
    assert "arm_planner/value, and would change with it" in text


@pytest.mark.acceptance
def test_user_defaults_of_colcon_are_ignored(project, tmp_path, monkeypatch):
    defaults = tmp_path / "defaults.yaml"
    defaults.write_text("build: {symlink-install: true, packages-select: [arm_planner]}\n")
    monkeypatch.setenv("COLCON_DEFAULTS_FILE", str(defaults))
    project.commit()
    assert project.versions().head().packages == {"arm_bringup", "arm_planner"}


@pytest.mark.acceptance
def test_sources_that_change_while_they_are_built(project):
    project.commit()
    file = project.workspace / "src/arm_planner/value"
    file.write_text("2")

    def announce(text):
        project.announced.append(text)
        if "package 1 of 2" in text:
            file.write_text("3")

    with pytest.raises(PreparationFailed, match="its sources changed while they were built"):
        project.versions(announce=announce).head()
    assert not project.prefixes()


@pytest.mark.acceptance
def test_compilers_behind_wrappers_are_identified(project, monkeypatch):
    def compiler(command: str) -> str:
        monkeypatch.setenv("CC", command)
        return find_underlay([], [], store=project.store).identity["tools"]["cc"]

    assert compiler("env cc") == compiler("cc") != ""
    assert compiler("no-such-compiler") == ""


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")
def test_ccache_works_across_checkouts(project, tmp_path, monkeypatch):
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    (add_package(project.workspace, "arm_planner", more=COMPILED) / "main.c").write_text(MAIN)
    project.commit()
    add_package(
        project.workspace, "arm_bringup", value=5, more="install(DIRECTORY launch DESTINATION share/arm_bringup)"
    )
    project.commit()
    versions = project.versions()
    versions.base("HEAD~1")
    versions.head()
    statistics = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=True).stdout
    counts = dict(line.split() for line in statistics.splitlines())
    assert int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]) >= 1
    assert len(project.prefixes()) == 2


def test_missing_colcon(project, monkeypatch, tmp_path):
    """Wherever else on the path it is installed, too."""
    folders = []
    for number, folder in enumerate(map(Path, os.environ["PATH"].split(os.pathsep))):
        folders.append(folder)
        if (folder / "colcon").exists():
            folders[-1] = tmp_path / f"programs-{number}"
            folders[-1].mkdir()
            for program in {*folder.iterdir()} - {folder / "colcon"}:
                (folders[-1] / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    project.commit()
    assert "colcon is not installed" in refused(project, "HEAD")


@pytest.mark.acceptance
def test_least_recently_used_builds_are_removed(project, monkeypatch):
    monkeypatch.setattr("pytest_ldos.campaign.versions.version.KEPT", 1)
    project.commit()
    add_package(project.workspace, "arm_planner", value=2)
    project.commit()
    versions = project.versions(packages_up_to=("arm_bringup",))
    versions.base("HEAD~1")
    versions.head()
    assert len(project.prefixes()) == 1
    assert any(each.startswith("removing the built workspace-") for each in project.announced)


def test_unknown_base_is_refused(project):
    project.commit()
    with pytest.raises(ConfigurationError, match="neither a folder nor a revision"):
        project.versions().base("mian")


def test_running_nodes_have_no_other_version(project):
    finder = dataclasses.replace(
        project.versions(), stack=StackSpec(kind=StackKind.RUNNING, stimulus=StimulusKind.WINDOW)
    )
    with pytest.raises(ConfigurationError, match="HEAD cannot be started: the stack runs already, as one version"):
        finder.find(Role.BASE, "HEAD")
