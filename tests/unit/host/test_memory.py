"""Available memory, of the machine and within control groups."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_ldos.host import cgroup as memory


@pytest.fixture
def groups(tmp_path, monkeypatch):
    own = tmp_path / "groups" / "outer" / "inner"
    own.mkdir(parents=True)
    (tmp_path / "cgroup").write_text("1:cpu:/x\n0::/outer/inner\n")
    monkeypatch.setattr(memory, "_OURS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    return own


def limit(folder, most, used, cached=0):
    for name, text in (("max", most), ("current", used), ("stat", f"anon 1\ninactive_file {cached}")):
        (folder / f"memory.{name}").write_text(f"{text}\n")


def test_without_limits_the_machines_memory_is_available(groups):
    limit(groups, "max", 5)
    assert memory.available_bytes() == 1000


def test_tightest_group_limits_without_its_cache(groups):
    limit(groups, 900, 300)
    assert memory.available_bytes() == 600
    limit(groups.parent, 500, 400, cached=50)
    assert memory.available_bytes() == 150


def test_group_over_its_limit_has_no_memory(groups):
    limit(groups, 100, 300)
    assert memory.available_bytes() == 0


def test_a_machine_without_control_groups(groups, tmp_path):
    limit(groups, 1, 1)
    (tmp_path / "cgroup").unlink()
    assert memory.available_bytes() == 1000
