"""Space for the tracer's buffers is checked before recording."""

from __future__ import annotations

import os

import pytest

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.record.lttng import possible_cpus, require_room_for_buffers


@pytest.mark.parametrize(("text", "count"), [("0\n", 1), ("0-3\n", 4), ("0,2-5\n", 6), ("0-1,7\n", 8)])
def test_cpus_are_counted_up_to_the_highest(tmp_path, text, count):
    file = tmp_path / "possible"
    file.write_text(text)
    assert possible_cpus(file) == count


def test_without_sysfs_present_cpus_are_counted(tmp_path):
    """In a chroot without ``/sys``, LTTng counts in the same way."""
    assert possible_cpus(tmp_path / "possible") == os.sysconf("SC_NPROCESSORS_CONF")


def test_too_little_space_is_reported(tmp_path):
    file = tmp_path / "possible"
    file.write_text("0-999999\n")
    with pytest.raises(NotWritten, match=r"do not fit into .* are needed, and .* are free\n.*remount,size=1G"):
        require_room_for_buffers("1M", 16, place=tmp_path, cpus=file)


def test_missing_shared_memory_is_reported(tmp_path):
    place = tmp_path / "shm"
    with pytest.raises(NotWritten, match=rf"there is no {place}.*\n.*mount -t tmpfs tmpfs {place}"):
        require_room_for_buffers("1M", 16, place=place)
