"""Checks of CPU settings, on fake ``/sys`` trees."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.doctor.changes import Status
from pytest_ldos.doctor.diagnose import check_governor, check_isolated_cpus, check_others, check_smt, check_turbo
from pytest_ldos.host.cpu import our_cpus, read_turbo
from pytest_ldos.host.interference import Interference, measure_briefly
from pytest_ldos.scenario.model import StackSpec
from tests.builders.busy import foreign_load, name_all_others
from tests.builders.machine import CPU, build_machine, values_set_by


def test_machine_with_steady_settings(tmp_path):
    machine = build_machine(tmp_path)
    checks = (check_governor, check_turbo, check_smt, check_isolated_cpus, check_others)
    assert {check(machine).status for check in checks} == {Status.OK}


def test_governor_that_follows_the_load_is_reported(tmp_path):
    machine = build_machine(tmp_path, {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"})
    finding = check_governor(machine)
    assert finding.status is Status.WARNING
    assert finding.text.startswith("powersave on 1 of 2 CPUs")
    assert finding.fix.description.startswith("set the governor of 1 CPUs to performance")
    assert values_set_by(finding.fix, machine) == {f"{CPU}/cpu1/cpufreq/scaling_governor": "performance"}


def test_missing_performance_governor_is_not_offered(tmp_path):
    files = {
        f"{CPU}/cpu0/cpufreq/scaling_governor": "schedutil",
        f"{CPU}/cpu0/cpufreq/scaling_available_governors": "schedutil userspace",
    }
    finding = check_governor(build_machine(tmp_path, files))
    assert finding.status is Status.WARNING
    assert finding.fix is None


@pytest.mark.parametrize(("no_turbo", "status"), [("0", Status.WARNING), ("1", Status.OK)])
def test_intels_turbo_switch_is_inverted(tmp_path, no_turbo, status):
    finding = check_turbo(build_machine(tmp_path, {f"{CPU}/intel_pstate/no_turbo": no_turbo}))
    assert finding.status is status


@pytest.mark.parametrize(("boost", "turbo"), [("0", "off"), ("1", "on"), ("?", "unknown")])
def test_generic_turbo_switch(tmp_path, boost, turbo):
    (tmp_path / CPU / "cpufreq").mkdir(parents=True)
    (tmp_path / CPU / "cpufreq/boost").write_text(boost)
    assert read_turbo(tmp_path) == turbo


def test_smt_with_and_without_a_switch(tmp_path):
    machine = build_machine(tmp_path, {f"{CPU}/smt/active": "1", f"{CPU}/smt/control": "on"})
    assert values_set_by(check_smt(machine).fix, machine) == {f"{CPU}/smt/control": "off"}
    forced = check_smt(build_machine(tmp_path, {f"{CPU}/smt/active": "1", f"{CPU}/smt/control": "notimplemented"}))
    assert (forced.status, forced.fix) == (Status.WARNING, None)


def test_a_virtual_machine_has_no_frequencies(tmp_path):
    machine = build_machine(tmp_path)
    for file in [*tmp_path.glob(f"{CPU}/cpu*/cpufreq/*"), tmp_path / CPU / "intel_pstate/no_turbo"]:
        file.unlink()
    assert "virtual machine" in check_governor(machine).text
    assert check_turbo(machine).status is Status.OK


def test_isolated_cpus_are_reported(tmp_path):
    assert "2-3" in check_isolated_cpus(build_machine(tmp_path, {f"{CPU}/isolated": "2-3"})).text


def test_a_foreign_load_is_named(tmp_path, monkeypatch):
    name_all_others(monkeypatch.setattr)
    with foreign_load(tmp_path) as name:
        finding = check_others(build_machine(tmp_path, interference=measure_briefly))
    assert finding.status is Status.WARNING
    assert "others used " in finding.text
    assert name in finding.text


def test_invisible_processes(tmp_path):
    machine = build_machine(tmp_path, interference=lambda: Interference(seconds=1.0, cpus=2))
    assert check_others(machine).text == "not to be seen here"


@pytest.mark.parametrize(
    ("isolated", "setting"), [("3", 'cpus = "isolated"'), ("2-3", "cpus = { move_group = 2, rest = 3 }"), ("", "")]
)
def test_the_setting_for_isolated_cpus_is_named(tmp_path, isolated, setting):
    finding = check_isolated_cpus(build_machine(tmp_path, {f"{CPU}/isolated": isolated}))
    assert setting in finding.remedy
    assert bool(finding.remedy) == bool(setting)


def test_cpus_of_the_stack_are_reported_or_refused(tmp_path):
    last = max(our_cpus())
    machine = build_machine(tmp_path, {f"{CPU}/isolated": f"{last}"})
    used = check_isolated_cpus(dataclasses.replace(machine, stack=StackSpec(cpus="isolated")))
    assert (used.status, used.text) == (Status.OK, f"{last}; the stack runs on CPUs {last}")
    lacking = check_isolated_cpus(dataclasses.replace(machine, stack=StackSpec(cpus="4000")))
    assert lacking.status is Status.ERROR
    assert "CPUs 4000 do not exist" in lacking.text
