"""Loads compete in the requested group, or a shortfall is reported."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pytest_ldos.host.cpu import SchedulingGroup, is_grouped_by_session
from pytest_ldos.measure.load.protocol import NO_STACK_PROCESS, OFF, judge_group, read_group
from pytest_ldos.measure.load.stress_loads import run_cpu_load
from pytest_ldos.scenario.loads import CpuLoadSpec, SchedulerGroup
from tests.builders.needs import needs_stress_ng
from tests.builders.stressors import running, wait_until

OWN, STACK = SchedulerGroup.OWN, SchedulerGroup.STACK
needs_autogroup = pytest.mark.skipif(not is_grouped_by_session(), reason="sched_autogroup is off")


def at(autogroup: str, cgroup: str = "", *, by_session: bool = True) -> frozenset[SchedulingGroup]:
    return frozenset([SchedulingGroup(autogroup, cgroup, by_session)])


@needs_stress_ng
@needs_autogroup
@pytest.mark.parametrize("group", ["own", "stack"])
def test_workers_are_in_the_kernels_group(site, group):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10, group=group), site) as load:
        wait_until(lambda: load.proof.shortfall == "")
        proof = load.proof
        (worker,) = running("stress-ng-")
        assert (os.getsid(worker.pid) == os.getsid(0)) == (group == STACK)
    assert proof.group == group
    assert ("as the stack" in proof.group_found) == (group == STACK)
    assert running() == []


@needs_stress_ng
@needs_autogroup
def test_group_is_unknown_without_a_stack(site):
    with run_cpu_load(CpuLoadSpec(workers=1, percent=10), replace(site, pids=list)) as load:
        assert NO_STACK_PROCESS in load.proof.group_found


@pytest.mark.parametrize(
    ("asked", "load", "stack", "found", "shortfall"),
    [
        (STACK, at("/autogroup-1"), at("/autogroup-1"), "/autogroup-1, as the stack", ""),
        ("stack", at("/autogroup-1"), at("/autogroup-1"), "/autogroup-1, as the stack", ""),
        (STACK, at("/autogroup-2"), at("/autogroup-1"), "the stack in /autogroup-1", "not in the stack's"),
        (OWN, at("/autogroup-2"), at("/autogroup-1"), "/autogroup-2, the stack in /autogroup-1", ""),
        (OWN, at("/autogroup-1"), at("/autogroup-1"), "/autogroup-1", "shares the stack's"),
        (OWN, at("/autogroup-1", by_session=False), at("/autogroup-1", by_session=False), OFF, ""),
        (OWN, at("/autogroup-2", "/a"), at("/autogroup-1", "/a"), "sessions make no difference in it", ""),
        (STACK, at("/autogroup-1"), at("/autogroup-1", "/quota"), "these groups, not sessions", ""),
    ],
)
def test_description_of_groups(asked, load, stack, found, shortfall):
    reading = judge_group(asked, load, stack)
    assert found in reading.found
    assert bool(reading.shortfall) == bool(shortfall)
    assert shortfall in reading.shortfall


def test_ended_process_has_no_group(site):
    assert read_group(STACK, [], site) is None
