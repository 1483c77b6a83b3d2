"""Groups with a quota, in fake folders and, if permitted, in the kernel's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from pytest_ldos.host import cgroup
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cgroup import NAME, CgroupPlace, QuotaGroup, Throttling, find_home, find_place
from pytest_ldos.host.temporary import RemoveCgroup, Undo, UndoAction, undone_at_end
from tests.builders.stressors import wait_until

V2 = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = "31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n32 1 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
BUSY = "while True: pass"


class Machine:
    """Folders below `root` that imitate the kernel's.

    The kernel creates a group's files in version 2; here `QuotaGroup`'s writing does.
    """

    def __init__(self, root, mountinfo: str, own: str) -> None:
        self.root = root
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mountinfo").write_text(mountinfo)
        (root / "proc/self/cgroup").write_text(own)

    def group(self, path: str, *, procs: str = "", controllers: str = "cpu memory", on: str = "", root: bool = False):
        folder = self.root / "sys/fs/cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text(procs)
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").write_text(on)
        if not root:
            (folder / "cgroup.type").write_text("domain")
        return folder


@pytest.fixture
def unwritable(monkeypatch):
    """Folders without write permission, even for root."""
    folders = set()
    access = os.access
    monkeypatch.setattr(
        cgroup.os,
        "access",
        lambda path, mode: not any(path.is_relative_to(each) for each in folders) and access(path, mode),
    )
    return folders


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path, V2, "0::/user.slice/app.slice/run.scope")
    machine.group("", on="cpu", root=True)
    machine.group("user.slice", on="cpu")
    machine.group("user.slice/app.slice", on="cpu")
    machine.group("user.slice/app.slice/run.scope", procs="42")
    return machine


def test_nearest_ancestor_with_the_controller_is_found(machine):
    found = find_place(machine.root)
    assert found == CgroupPlace(machine.root / "sys/fs/cgroup/user.slice/app.slice", 2)
    assert find_home("self", machine.root) == machine.root / "sys/fs/cgroup/user.slice/app.slice/run.scope"


def test_controller_is_enabled_for_a_group_without_processes(machine):
    folder = machine.group("user.slice/app.slice", on="")
    assert find_place(machine.root) == CgroupPlace(folder, 2, switch_on=True)


def test_a_group_with_processes_cannot_have_children_with_controllers(machine):
    machine.group("user.slice/app.slice", on="", procs="43")
    assert find_place(machine.root) == CgroupPlace(machine.root / "sys/fs/cgroup/user.slice", 2)


def test_root_group_may_have_processes(machine):
    machine.group("user.slice/app.slice", on="", procs="43")
    machine.group("user.slice", on="", procs="44")
    folder = machine.group("", on="", procs="1", root=True)
    assert find_place(machine.root) == CgroupPlace(folder, 2, switch_on=True)


def test_container_root_with_processes_is_refused(machine):
    for path in ("", "user.slice", "user.slice/app.slice"):
        machine.group(path, on="", procs="43")
    found = find_place(machine.root)
    assert isinstance(found, Availability)
    assert "no control group with the CPU controller may be made" in found.reason


def test_missing_permission_has_a_remedy(machine, unwritable):
    unwritable.add(machine.root / "sys/fs/cgroup")
    found = find_place(machine.root)
    assert isinstance(found, Availability)
    assert not found.ok
    assert "systemd-run --user --scope" in found.remedy


def test_missing_controller_is_reported(machine):
    for path in ("", "user.slice", "user.slice/app.slice", "user.slice/app.slice/run.scope"):
        machine.group(path, controllers="memory", root=not path)
    assert "CPU controller is not available" in find_place(machine.root).reason


def test_missing_control_groups_are_reported(tmp_path):
    assert "not mounted" in find_place(Machine(tmp_path, "1 0 8:1 / / rw - ext4 /dev/vda rw", "").root).reason


def test_version_1_is_used_if_it_has_the_controller(tmp_path, unwritable):
    machine = Machine(tmp_path, HYBRID, "5:cpu,cpuacct:/robots\n0::/robots")
    folder = machine.group("cpu/robots")
    assert "CONFIG_CFS_BANDWIDTH" in find_place(machine.root).reason
    (folder / "cpu.cfs_quota_us").write_text("-1")
    assert find_place(machine.root) == CgroupPlace(folder, 1)
    unwritable.add(folder)
    assert "as root" in find_place(machine.root).remedy


def test_mount_of_a_subtree(tmp_path):
    shown = HYBRID.replace("0:27 / ", "0:27 /docker/7 ")
    machine = Machine(tmp_path, shown, "5:cpu,cpuacct:/docker/7/inner")
    assert find_home("self", machine.root) == tmp_path / "sys/fs/cgroup/cpu/inner"


class RecordingUndo(Undo):
    """Records registered actions only."""

    def __init__(self) -> None:
        self.actions: list[UndoAction] = []

    def register(self, action) -> None:
        self.actions.append(action)


def test_files_written_in_version_2(machine, monkeypatch):
    folder = machine.group("user.slice/app.slice", on="")
    undo = RecordingUndo()
    group = QuotaGroup(find_place(machine.root), 150, undo, machine.root)
    assert (folder / "cgroup.subtree_control").read_text() == "+cpu"
    assert group.folder.parent == folder
    assert group.folder.name.startswith(NAME)
    assert (group.folder / "cpu.max").read_text() == "150000 100000"
    assert group.read_percent() == 150
    assert [type(action).__name__ for action in undo.actions] == ["WriteSetting", "RemoveCgroup"]
    assert undo.actions[1] == RemoveCgroup(str(group.folder), str(folder / "run.scope"))
    (machine.root / "proc/42").mkdir()
    (machine.root / "proc/42/cgroup").write_text("0::/user.slice/app.slice/run.scope")
    group.take_in([42])
    assert group.members() == [42]
    (folder / "run.scope/cgroup.procs").write_text("")
    group.send_home()
    assert (folder / "run.scope/cgroup.procs").read_text() == "42"
    shutil.rmtree(folder / "run.scope")
    group.send_home()
    assert group.members() == [42]


def test_counters_of_version_2(machine):
    group = QuotaGroup(find_place(machine.root), 50, RecordingUndo(), machine.root)
    (group.folder / "cpu.stat").write_text("usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n")
    assert group.read_throttling() == Throttling(10, 4, 0.25)
    assert Throttling(12, 5, 0.5).since(group.read_throttling()) == Throttling(2, 1, 0.25)
    (group.folder / "cpu.max").write_text("max 100000")
    assert group.read_percent() == float("inf")


def real_place() -> CgroupPlace:
    found = find_place()
    if isinstance(found, Availability):
        pytest.skip(f"no quota here: {found.reason}")
    return found


@pytest.mark.alone
def test_real_quota_is_enforced_and_removed(tmp_path):
    place = real_place()
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        home = find_home(busy.pid)
        with undone_at_end(tmp_path / "undo.log") as undo:
            group = QuotaGroup(place, 4, undo)
            group.take_in([busy.pid])
            assert group.read_percent() == 4
            assert group.members() == [busy.pid]
            before = group.read_throttling()
            wait_until(lambda: group.read_throttling().since(before).throttled >= 3)
            assert busy.poll() is None
            group.send_home()
            assert find_home(busy.pid) == home
        assert not group.folder.exists()
    finally:
        busy.kill()
        busy.wait()
