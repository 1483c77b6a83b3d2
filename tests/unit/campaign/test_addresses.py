"""Any setting of a scenario by an address: as text or typed, refused with what would be right."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.cells import assign, canonical, known_addresses, value_at
from pytest_ldos.scenario.fields import in_unit_of
from pytest_ldos.scenario.loads import LOAD_SPECS, CpuLimitSpec, CpuLoadSpec, DdsFloodSpec, Reliability, SchedulerGroup
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import SeedMode, Simulation, StackKind

CALM = ScenarioSpec(name="baseline")
LOADED = ScenarioSpec(name="both", loads=(CpuLoadSpec(workers=3), DdsFloodSpec(rate_hz=10)))


@pytest.mark.parametrize(
    ("address", "value", "whole", "found"),
    [
        ("trials", "7", "trials", 7),
        ("trials", 7, "trials", 7),
        ("success_rate", "0.5", "success_rate", 0.5),
        ("seeds", "random", "seeds", SeedMode.RANDOM),
        ("goals", "reach", "goals", "reach"),
        ("rmw", "rmw_cyclonedds_cpp", "stack.ros2.rmw", "rmw_cyclonedds_cpp"),
        ("sim", "mock", "stack.ros2.sim", Simulation.MOCK),
        ("stack", "ros2", "stack.kind", StackKind.ROS2),
        ("stack.control_rate", "250Hz", "stack.control_rate_hz", 250.0),
        ("stack.control_rate_hz", 250, "stack.control_rate_hz", 250.0),
        ("stack.group", "arm", "stack.ros2.group", "arm"),
        ("stack.controllers", "one+two", "stack.ros2.controllers", ("one", "two")),
        ("stack.launch_arguments.speed", "2", "stack.ros2.launch_arguments.speed", "2"),
        ("stack.faults.planning_delay", "0.05s", "stack.faults.planning_delay_ms", 50.0),
        ("dds_flood.rate", "2kHz", "dds_flood.rate_hz", 2000.0),
        ("dds_flood.size", "64KiB", "dds_flood.size_bytes", 65536),
        ("dds_flood.reliability", "reliable", "dds_flood.reliability", Reliability.RELIABLE),
        ("dds_flood.depth", "100", "dds_flood.depth", 100),
        ("dds_flood.readers", "no", "dds_flood.readers", False),
        ("dds_flood.group", SchedulerGroup.OWN, "dds_flood.group", SchedulerGroup.OWN),
        ("cpu_limit.cpus", "2", "cpu_limit.cpus", 2),
        ("cpu_limit.cpus", "0-1", "cpu_limit.cpus", "0-1"),
        ("cpu_limit.quota", "50%", "cpu_limit.quota_percent", 50.0),
        ("cpu_load.percent", "30%", "cpu_load.percent", 30),
        ("memory_load.size", "1GB", "memory_load.size_mb", 1000),
        ("network_impairment.delay", "5", "network_impairment.delay_ms", 5.0),
    ],
)
def test_a_setting_is_found_and_changed(address, value, whole, found):
    changed = assign(CALM, address, value)
    assert canonical(address) == whole
    assert value_at(changed, whole) == found
    assert type(value_at(changed, whole)) is type(found)


def test_nothing_else_is_changed():
    changed = assign(LOADED, "dds_flood.rate", 20)
    assert changed == dataclasses.replace(LOADED, loads=(CpuLoadSpec(workers=3), DdsFloodSpec(rate_hz=20)))


def test_added_load_has_its_defaults_and_the_usual_order():
    changed = assign(assign(CALM, "dds_flood.rate", 5), "cpu_limit.cpus", 1)
    assert changed.loads == (CpuLimitSpec(cpus=1), DdsFloodSpec(rate_hz=5))
    assert value_at(CALM, "dds_flood.rate") is None


def test_setting_of_all_loads_is_changed_in_all():
    changed = assign(assign(LOADED, "cpu_limit.cpus", 1), "load.group", "own")
    assert [getattr(load, "group", None) for load in changed.loads] == [None, "own", "own"]


def test_every_known_address_leads_to_its_own_value():
    calm = assign_every_load(CALM)
    for address, default in known_addresses().items():
        assert canonical(address) == address
        if not address.startswith("load.") and not address.endswith(".NAME"):
            assert value_at(calm, address) == default
            assert assign(calm, address, default) == calm


def assign_every_load(spec):
    return dataclasses.replace(spec, loads=tuple(make() for make in LOAD_SPECS.values()))


@pytest.mark.parametrize(
    ("address", "value", "message", "remedy"),
    [
        ("trails", 1, "unknown address 'trails'", "did you mean 'trials'?"),
        ("dds_flod.rate", 1, "unknown address 'dds_flod.rate'", "did you mean 'dds_flood.rate'?"),
        ("rate", 1, "unknown address 'rate'", "'dds_flood.rate_hz'"),
        ("dds_flood", 1, "unknown address 'dds_flood'", "dds_flood."),
        ("dds_flood.rate_hz.x", 1, "unknown address 'dds_flood.rate_hz.x'", "did you mean 'dds_flood.rate_hz'?"),
        ("", 1, "unknown address ''", "addresses"),
        ("name", "x", "unknown address 'name'", "stack.stimuli.action.name"),
        ("loads", "x", "unknown address 'loads'", ""),
        ("stack.ros2.launch_arguments", "x", "unknown address", ""),
        ("load.colour", "x", "unknown address 'load.colour'", ""),
        ("load.group", "own", "load.group=own: scenario 'baseline' has no load", "dds_flood.group"),
        ("dds_flood.rate", "fast", "dds_flood.rate_hz=fast: rate_hz is 'fast'", "it must be a number"),
        ("dds_flood.rate", "-1", "dds_flood.rate_hz=-1: a flood at -1 Hz", ""),
        ("dds_flood.rate", "nan", "dds_flood.rate_hz=nan", ""),
        ("dds_flood.rate", "inf", "dds_flood.rate_hz=inf", ""),
        ("dds_flood.size", "2.5", "dds_flood.size_bytes=2.5", "a whole number"),
        ("dds_flood.size", "5Hz", "dds_flood.size_bytes=5Hz", "a whole number"),
        ("dds_flood.rate", True, "dds_flood.rate_hz=True", "it must be a number"),
        ("trials", "0", "trials=0: 0 trials measure nothing", "ask for at least one"),
        ("trials", [1, 2], "trials=", "a whole number"),
        ("stack", "rose", "stack.kind=rose", "one of auto, embedded, ros2"),
        ("stack.controllers", 5, "stack.ros2.controllers=5", "a list of texts"),
        ("cpu_limit.cpus", "0-", "cpu_limit.cpus=0-", ""),
    ],
)
def test_impossible_value_is_refused_with_address_and_value(address, value, message, remedy):
    with pytest.raises(ConfigurationError) as caught:
        assign(CALM, address, value)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("field", "text", "number"),
    [
        ("rate_hz", "1e3", 1000),
        ("rate_hz", " 0.1 kHz ", 100),
        ("delay_ms", "1.1s", 1100),
        ("planning_time_s", "2min", 120),
        ("size_bytes", "1MiB", 1 << 20),
        ("workers", "4", "4"),
        ("rate_hz", "kHz", "kHz"),
        ("rate_hz", "", ""),
    ],
)
def test_numbers_with_units(field, text, number):
    assert in_unit_of(field, text) == number
