"""Only what is new, unused and Fast DDS's own is removed."""

from __future__ import annotations

import mmap

from pytest_ldos.robot.stack.ros2.installed import SharedMemory


def test_shared_memory_of_a_killed_process_is_removed(tmp_path):
    (tmp_path / "fastrtps_old").touch()
    before = SharedMemory(tmp_path)
    for name in ("fastrtps_port7411", "sem.fastrtps_port7411_mutex", "fastdds_1234_el", "lttng-ust-wait-8"):
        (tmp_path / name).touch()
    before.remove_left_behind()
    assert {file.name for file in tmp_path.iterdir()} == {"fastrtps_old", "lttng-ust-wait-8"}


def test_shared_memory_in_use_is_kept(tmp_path):
    before = SharedMemory(tmp_path)
    (tmp_path / "fastrtps_open").touch()
    (tmp_path / "fastrtps_mapped").write_bytes(bytes(4096))
    with (tmp_path / "fastrtps_mapped").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    with (tmp_path / "fastrtps_open").open("rb"):
        before.remove_left_behind()
        assert {file.name for file in tmp_path.iterdir()} == {"fastrtps_open", "fastrtps_mapped"}
    mapped.close()
    before.remove_left_behind()
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_shared_memory(tmp_path):
    SharedMemory(tmp_path / "none").remove_left_behind()
