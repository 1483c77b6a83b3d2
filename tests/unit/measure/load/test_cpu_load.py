"""CPU load with the real stress-ng."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed, Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import describe_cpus, kept_off, our_cpus
from pytest_ldos.measure.load import stress_loads, stress_ng
from pytest_ldos.measure.load.protocol import NOT_READ, load_available, proof_to_dict
from pytest_ldos.measure.load.stress_loads import cpu_load_available, cpu_methods, lacking_effort, run_cpu_load
from pytest_ldos.measure.load.stress_ng import Stress
from pytest_ldos.scenario.loads import CpuLoadSpec
from pytest_ldos.scenario.model import StackSpec
from tests.builders.needs import needs_stress_ng
from tests.builders.stressors import running, wait_until

needs_two_cpus = pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU leaves none to be reserved")


@needs_stress_ng
def test_proof_is_the_used_cpu_time(site):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=50), site) as load:
        wait_until(lambda: load.proof.seconds > 1.0 and load.proof.used_percent + load.proof.waited_percent > 20)
        measured = load.proof
    assert measured.used_percent > 0
    assert load.proof.seconds >= measured.seconds
    assert "1 workers × 50 %" in measured.describe()
    assert f"on CPUs {describe_cpus(our_cpus())}" in measured.describe()
    assert running() == []
    assert proof_to_dict(load.proof)["method"] == "matrixprod"


@needs_stress_ng
def test_dead_stressor_is_a_shortfall(site):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), site) as load:
        for process in running():
            process.kill()
        wait_until(lambda: "stress-ng-cpu_load was killed by SIGKILL" in load.proof.shortfall)
    assert load.proof.used_percent >= 0


@needs_stress_ng
def test_dead_worker_counts_and_is_a_shortfall(site):
    with run_cpu_load(CpuLoadSpec(workers=2, percent=50), site) as load:
        wait_until(lambda: load.proof.seconds > 0.5 and not load.proof.shortfall)
        before = load.proof
        worker = max(running(), key=lambda process: process.cpu_times().user)
        worker.kill()
        wait_until(lambda: worker.pid not in {process.pid for process in running()})
        wait_until(lambda: "1 of 2 workers of stress-ng are left" in load.proof.shortfall)
        assert load.proof.used_percent * load.proof.seconds >= before.used_percent * before.seconds


@needs_stress_ng
@needs_two_cpus
def test_workers_leave_the_reserved_cpus_to_the_stack(site):
    first, *others = sorted(our_cpus())
    with run_cpu_load(CpuLoadSpec(workers=2, percent=10, reserved=f"{first}-{first}"), site) as load:
        assert load.proof.cpus == describe_cpus(others)
        workers = running("stress-ng-")
        assert len(workers) == 2
        assert {frozenset(process.cpu_affinity()) for process in workers} == {frozenset(others)}
        wait_until(lambda: load.proof.shortfall == "")
        os.sched_setaffinity(workers[0].pid, {first})
        assert f"pid {workers[0].pid}) may run on CPUs {first}, not only" in load.proof.shortfall


@needs_stress_ng
def test_invalid_reserved_cpus_are_refused():
    with pytest.raises(ConfigurationError, match="leaves none for its workers"):
        load_available(CpuLoadSpec(reserved=len(our_cpus())), StackSpec())
    with pytest.raises(ConfigurationError, match=f"'4000'; this process may use {len(our_cpus())}: "):
        load_available(CpuLoadSpec(reserved="4000"), StackSpec())


@needs_stress_ng
def test_methods_are_those_of_stress_ng(site):
    assert {"all", "matrixprod", "fft"} <= set(cpu_methods())
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10, method="fft"), site) as load:
        assert "fft" in load.proof.describe()
    with pytest.raises(ConfigurationError, match=r"no CPU method 'matrixprud'\n.*did you mean 'matrixprod'"):
        load_available(CpuLoadSpec(method="matrixprud"), StackSpec())


@needs_stress_ng
def test_no_temporary_files_are_left(site, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), site):
        pass
    assert list(work.iterdir()) == []
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["work"]


def stress(*, used: float, waited: float) -> Stress:
    return Stress(1.0, used, waited, 0, (), NOT_READ, "")


def test_unreached_load_is_a_shortfall():
    assert lacking_effort(stress(used=64, waited=0), 80) == ""
    assert "used 10 % of a CPU and waited 0 % for one; 80 %" in lacking_effort(stress(used=10, waited=0), 80)


def test_time_waiting_for_a_cpu_counts_as_load():
    assert lacking_effort(stress(used=30, waited=50), 80) == ""
    assert lacking_effort(stress(used=0, waited=80), 80)


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"percent": 0}, {"percent": 101}, {"reserved": "0-"}])
def test_invalid_loads_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        CpuLoadSpec(**arguments)


def test_without_stress_ng_the_remedy_is_named(site, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with (
        pytest.raises(Unavailable, match=r"stress-ng, taskset not found\n.*apt-get install stress-ng"),
        run_cpu_load(CpuLoadSpec(), site),
    ):
        pass


def test_missing_list_of_methods_is_accepted(monkeypatch):
    monkeypatch.setattr(stress_loads, "stress_ng_available", lambda: Availability(True))
    monkeypatch.setattr(stress_loads, "cpu_methods", lambda: ())
    assert cpu_load_available(CpuLoadSpec(method="a new one"), StackSpec()).ok


@needs_stress_ng
def test_failed_start_has_a_reason(site, monkeypatch):
    monkeypatch.setattr(stress_ng, "LONGEST_S", "soon")
    with pytest.raises(LoadFailed, match="did not begin to work"), run_cpu_load(CpuLoadSpec(workers=1), site):
        pass
    assert running() == []


@needs_stress_ng
def test_load_beyond_its_time_limit_is_a_shortfall(site, monkeypatch):
    monkeypatch.setattr(stress_ng, "LONGEST_S", 1)
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), site) as load:
        wait_until(lambda: "ended with exit code 0 while it was measured" in load.proof.shortfall)


def test_slow_version_check_is_accepted(tmp_path, monkeypatch):
    program = tmp_path / "stress-ng"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(stress_loads, "_ASK_LIMIT_S", 0.1)
    assert cpu_methods.__wrapped__() == ()


@needs_stress_ng
@needs_two_cpus
def test_workers_leave_the_stack_its_own_cpus(site):
    *others, last = sorted(our_cpus())
    site = replace(site, stack=StackSpec(cpus=f"{last}"))
    with kept_off(frozenset([last])), run_cpu_load(CpuLoadSpec(workers=1, percent=10, reserved=1), site) as load:
        assert load.proof.cpus == describe_cpus(others)
        assert {frozenset(process.cpu_affinity()) for process in running("stress-ng-")} == {frozenset(others)}
