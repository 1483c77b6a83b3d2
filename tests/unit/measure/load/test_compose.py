"""Combined loads: each is fully applied, and all are removed at any end."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cgroup import NAME, find_place
from pytest_ldos.host.cpu import our_cpus, read_affinities
from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.measure.load.protocol import apply_loads, in_order
from pytest_ldos.scenario.loads import (
    CacheLoadSpec,
    CpuLimitSpec,
    CpuLoadSpec,
    IoLoadSpec,
    LoadSpec,
    MemoryLoadSpec,
)
from tests.builders.needs import needs_stress_ng
from tests.builders.stressors import is_gone, running, wait_until

MARK = "PYTEST_LDOS_TEST_MARK"

OWNER = """
import json, sys, time
from pathlib import Path
from pytest_ldos.host.cpu import with_descendants
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.protocol import apply_loads
from pytest_ldos.measure.load.protocol import LoadSite
from tests.fakes.rig import FakeRecorder
from tests.unit.measure.load.test_compose import everything
logs = Path(sys.argv[1])
stack = ProcessGroup(log_directory=logs).start("stack", ["sleep", "600"])
site = LoadSite(domain=1, recorder=FakeRecorder(logs / "trace"), log_directory=logs, pids=lambda: [stack.pid])
with apply_loads(everything(), site) as loads:
    print(json.dumps([load.spec.KIND for load in loads]), flush=True)
    time.sleep(600)
"""


def quota() -> float:
    return 0.0 if isinstance(find_place(), Availability) else 50.0


def everything() -> list[LoadSpec]:
    specs: list[LoadSpec] = [
        CpuLoadSpec(workers=1, percent=20),
        MemoryLoadSpec(workers=1, size_mb=20),
        CacheLoadSpec(workers=1),
        IoLoadSpec(workers=1, size_mb=2),
        CpuLimitSpec(cpus=1, quota_percent=quota()),
    ]
    return in_order(specs)


def left_folders(logs: Path) -> list[str]:
    return [each.name for each in logs.iterdir() if each.is_dir() and each.name != "trace"]


def left_cgroups(pid: int) -> list[Path]:
    place = find_place()
    return [] if isinstance(place, Availability) else list(place.folder.glob(f"{NAME}{pid}-*"))


def test_limits_come_first():
    kinds = [spec.KIND for spec in in_order([CpuLoadSpec(), CpuLimitSpec(), IoLoadSpec()])]
    assert kinds == ["cpu_limit", "io_load", "cpu_load"]


@pytest.fixture
def stack():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@needs_stress_ng
@pytest.mark.alone
def test_all_loads_are_applied_together(site, stack, tmp_path):
    site_of_stack = site.__class__(**{**vars(site), "pids": lambda: [stack.pid]})
    specs = [
        CpuLoadSpec(workers=1, percent=30),
        CpuLimitSpec(cpus=1, quota_percent=quota()),
        MemoryLoadSpec(workers=1, size_mb=20),
        CacheLoadSpec(workers=1),
    ]
    with apply_loads(specs, site_of_stack) as loads:
        wait_until(lambda: all(load.proof.seconds > 1 for load in loads))
        wait_until(lambda: not any(load.proof.shortfall for load in loads))
        assert [load.spec.KIND for load in loads] == ["cpu_limit", "memory_load", "cache_load", "cpu_load"]
        assert [load.proof.kind for load in loads] == [load.spec.KIND for load in loads]
    assert {load.proof.shortfall for load in loads} == {""}
    assert set(read_affinities([stack.pid]).values()) == {our_cpus()}
    assert running() == []
    assert left_folders(tmp_path) == []
    assert left_cgroups(os.getpid()) == []


@needs_stress_ng
def test_failed_load_ends_the_earlier_ones(site, tmp_path):
    specs = [MemoryLoadSpec(workers=1, size_mb=20), IoLoadSpec(workers=1024, size_mb=1_000_000)]
    with pytest.raises(LoadFailed, match="MB are free"), apply_loads(specs, site):
        pass
    assert running() == []
    assert left_folders(tmp_path) == []


@needs_stress_ng
@pytest.mark.alone
def test_loads_end_with_a_killed_owner(tmp_path):
    mark = secrets.token_hex(8)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
        process_group=0,
    )
    try:
        applied = json.loads(owner.stdout.readline())
        assert applied == [spec.KIND for spec in everything()]
        # stress-ng's workers overwrite their environment.
        tree = psutil.Process(owner.pid).children(recursive=True)
        assert sum(each.name().startswith("stress-ng-") for each in tree) >= 4
        assert left_folders(tmp_path)
        assert bool(left_cgroups(owner.pid)) == bool(quota())
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    wait_until(lambda: pids_with({MARK: mark}) == [] and all(is_gone(each.pid) for each in tree))
    assert left_cgroups(owner.pid) == []
    assert left_folders(tmp_path) == []
