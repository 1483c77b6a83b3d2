"""CPU load with the real stress-ng."""

from __future__ import annotations

import os
import time

import psutil
import pytest

from pytest_ldos.errors import ConfigurationError, LoadFailed, Unavailable
from pytest_ldos.load import cpu_load
from pytest_ldos.load.cpu_load import attainable_percent, run_cpu_load, stress_ng_available
from pytest_ldos.load.protocol import LoadSite
from pytest_ldos.scenario.loads import CpuLoadSpec
from tests.fakes.rig import FakeRecorder

needs_stress_ng = pytest.mark.skipif(not stress_ng_available().ok, reason=stress_ng_available().reason or "available")


@pytest.fixture
def site(tmp_path):
    return LoadSite(domain=1, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)


def stressors() -> list[psutil.Process]:
    """Our own that run; one whose parent died is a zombie until the first process of the system reaps it."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if process.name().startswith("stress-ng") and process.status() != psutil.STATUS_ZOMBIE
    ]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


@needs_stress_ng
def test_the_proof_is_the_cpu_time_really_used(site):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=50), site) as load:
        wait_until(lambda: load.proof.seconds > 1.0)
        running = load.proof
    assert running.used_percent > 20
    assert load.proof.seconds >= running.seconds
    assert "1 workers × 50 %" in running.describe()
    assert stressors() == []


@needs_stress_ng
def test_a_stressor_that_dies_is_a_shortfall(site):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), site) as load:
        for process in stressors():
            process.kill()
        wait_until(lambda: "stress-ng was killed by SIGKILL" in load.proof.shortfall)
    assert load.proof.used_percent >= 0


@needs_stress_ng
def test_a_worker_that_dies_leaves_what_it_used(site):
    with run_cpu_load(CpuLoadSpec(workers=2, percent=50), site) as load:
        wait_until(lambda: load.proof.seconds > 0.5)
        used = load.proof.used_percent * load.proof.seconds
        worker = max(stressors(), key=lambda process: process.cpu_times().user)
        worker.kill()
        wait_until(lambda: worker.pid not in {process.pid for process in stressors()})
        assert load.proof.used_percent * load.proof.seconds >= 0.9 * used


@needs_stress_ng
def test_nothing_is_written_where_the_user_works(site, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), site):
        pass
    assert list(work.iterdir()) == []


def test_a_load_that_was_not_reached_is_a_shortfall(site):
    load = cpu_load.RunningCpuLoad(CpuLoadSpec(workers=1, percent=80), stressor=None)
    assert load._shortfall(79) == ""
    assert "used 10 % of a CPU, 80 % were possible" in load._shortfall(10)


def test_workers_cannot_have_more_cpus_than_there_are():
    assert attainable_percent(CpuLoadSpec(workers=1000, percent=100)) == 100 * os.cpu_count()


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"percent": 0}, {"percent": 101}])
def test_loads_that_make_no_sense(arguments):
    with pytest.raises(ConfigurationError):
        CpuLoadSpec(**arguments)


def test_without_stress_ng_the_remedy_is_named(site, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with (
        pytest.raises(Unavailable, match=r"stress-ng not found\n.*apt-get install stress-ng"),
        run_cpu_load(CpuLoadSpec(), site),
    ):
        pass


@needs_stress_ng
def test_a_stressor_that_does_not_start_says_why(site, monkeypatch):
    monkeypatch.setattr(cpu_load, "LONGEST_S", "soon")
    with pytest.raises(LoadFailed, match="did not begin to work"), run_cpu_load(CpuLoadSpec(workers=1), site):
        pass
    assert stressors() == []
