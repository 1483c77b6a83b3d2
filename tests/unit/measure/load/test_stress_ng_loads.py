"""Memory, cache and I/O loads with the real stress-ng, and their proofs."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.host.counters import Event
from pytest_ldos.measure.load import stress_loads
from pytest_ldos.measure.load.protocol import NOT_READ, load_available
from pytest_ldos.measure.load.stress_loads import (
    CacheLoadProof,
    prove_memory_load,
    run_cache_load,
    run_io_load,
    run_memory_load,
)
from pytest_ldos.measure.load.stress_ng import Stress
from pytest_ldos.scenario.loads import CacheLoadSpec, IoLoadSpec, MemoryLoadSpec
from pytest_ldos.scenario.model import StackSpec
from tests.builders.needs import needs_stress_ng
from tests.builders.stressors import is_in_memory, running, wait_until


@needs_stress_ng
def test_memory_is_held_and_worked_in(site, tmp_path):
    with run_memory_load(MemoryLoadSpec(workers=2, size_mb=40), site) as load:
        wait_until(lambda: load.proof.seconds > 0.5 and not load.proof.shortfall)
        held = sum(process.memory_info().rss for process in running("stress-ng-vm")) / 1e6
        proof = load.proof
    assert proof.shortfall == ""
    assert 76 <= proof.resident_mb <= held
    assert proof.used_percent > 0
    assert "2 workers × 40 MB asked" in proof.describe()
    assert running() == []
    assert [each for each in tmp_path.iterdir() if each.is_dir()] == []


@needs_stress_ng
def test_memory_of_the_worker_itself_does_not_count(site):
    """It is several times as much as this load."""
    with run_memory_load(MemoryLoadSpec(workers=1, size_mb=1), site) as load:
        assert 0.95 <= load.proof.resident_mb < 1.5


@needs_stress_ng
def test_killed_memory_worker_is_replaced_or_reported(site):
    with run_memory_load(MemoryLoadSpec(workers=1, size_mb=20), site) as load:
        (worker,) = [process for process in running("stress-ng-vm") if not process.children()]
        keeper = worker.parent()
        worker.kill()
        wait_until(lambda: {each.pid for each in running("stress-ng-vm")} - {worker.pid, keeper.pid})
        keeper.kill()
        wait_until(lambda: load.proof.shortfall)
        assert "0 of 1 workers" in load.proof.shortfall or "ended with" in load.proof.shortfall


def test_unheld_or_untouched_memory_is_a_shortfall():
    def shortfall(held_mb: int, used_percent: float) -> str:
        stress = Stress(1.0, used_percent, 0.0, held_mb * 10**6, (), NOT_READ, "")
        return prove_memory_load(MemoryLoadSpec(workers=2, size_mb=50), stress).shortfall

    assert shortfall(100, 50) == ""
    assert shortfall(60, 50) == "the workers held 60 of 100 MB"
    assert "did not touch" in shortfall(100, 0)


def test_too_much_memory_is_refused():
    answer = load_available(MemoryLoadSpec(workers=1000, size_mb=1_000_000), StackSpec())
    assert not answer.ok
    assert "asks for 1000 × 1000000 MB" in answer.reason
    assert answer.remedy == "ask for less"


@needs_stress_ng
def test_cache_misses_are_counted_or_the_reason_is_given(site):
    with run_cache_load(CacheLoadSpec(workers=1), site) as load:
        wait_until(lambda: load.proof.seconds > 0.5 and load.proof.used_percent > 0)
    assert (load.proof.misses is None) == bool(load.proof.uncounted)
    assert "cache misses" in load.proof.describe()


@needs_stress_ng
def test_only_the_workers_events_are_counted(site, monkeypatch):
    """Uses an event of every machine instead of cache misses."""
    monkeypatch.setattr(stress_loads, "COUNTED", Event.PAGE_FAULTS)
    with suppress(KeyError), run_cache_load(CacheLoadSpec(workers=1), site) as load:
        if load.proof.uncounted:
            pytest.skip(f"page faults cannot be counted: {load.proof.uncounted}")
        wait_until(lambda: load.proof.misses)
        raise KeyError("the stack is gone")
    counted = load.proof.misses
    assert counted > 0
    assert load.proof.misses == counted


def test_misses_are_shown_in_millions():
    proof = CacheLoadProof(
        kind="cache_load", seconds=1, shortfall="", group="stack", group_found="/", workers=1, used_percent=99,
        waited_percent=0, misses=2_500_000, uncounted="",
    )  # fmt: skip
    assert "2.5 million cache misses" in proof.describe()


@needs_stress_ng
def test_written_bytes_are_measured_per_worker(site, tmp_path):
    if is_in_memory(tmp_path):
        pytest.skip(f"{tmp_path} is in memory")
    with run_io_load(IoLoadSpec(workers=2, size_mb=4), site) as load:
        wait_until(lambda: load.proof.written_mb > 8 and not load.proof.shortfall)
    assert load.proof.applied == load.proof.rate_mbps > 0
    assert "2 workers" in load.proof.describe()
    assert [each for each in tmp_path.iterdir() if each.is_dir()] == []


@needs_stress_ng
def test_tmpfs_is_refused(site):
    shared_memory = Path("/dev/shm")
    if not is_in_memory(shared_memory):
        pytest.skip("/dev/shm is no tmpfs here")
    with tempfile.TemporaryDirectory(dir=shared_memory) as folder:
        elsewhere = replace(site, log_directory=Path(folder))
        with run_io_load(IoLoadSpec(workers=1, size_mb=2), elsewhere) as load:
            wait_until(lambda: load.proof.seconds > 0.3)
        assert "0 of 1 workers wrote to storage; is /dev/shm" in load.proof.shortfall


def test_too_large_files_are_refused(site):
    with (
        pytest.raises(LoadFailed, match=r"io_load writes 1024 files of 1000000 MB, \d+ MB are free"),
        run_io_load(IoLoadSpec(workers=1024, size_mb=1_000_000), site),
    ):
        pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: MemoryLoadSpec(size_mb=0),
        lambda: MemoryLoadSpec(workers=0),
        lambda: CacheLoadSpec(workers=0),
        lambda: IoLoadSpec(size_mb=0),
    ],
)
def test_invalid_loads_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()
