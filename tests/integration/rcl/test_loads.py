"""Floods and guards of a ROS 2 stack on real rclpy."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.measure.load.dds_flood import run_dds_flood
from pytest_ldos.measure.load.flood_reports import read_stamp, stamp_place
from pytest_ldos.measure.load.guard import run_guard
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.scenario.loads import DdsFloodSpec, GuardSpec
from pytest_ldos.scenario.words import StackKind
from tests.builders.stressors import wait_until
from tests.fakes.rig import FakeRecorder

STATES = {"topic": "/joint_states", "deadline_ms": 5000.0, "silence_ms": 10_000.0}


@pytest.fixture
def site(graph):
    return LoadSite(
        domain=int(graph.environment["ROS_DOMAIN_ID"]),
        recorder=FakeRecorder(graph.folder / "trace"),
        log_directory=graph.folder,
        kind=StackKind.ROS2,
        environment=graph.environment,
    )


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_flood_is_sent_and_counted(site):
    with run_dds_flood(DdsFloodSpec(publishers=3, participants=2, rate_hz=100, size_bytes=64), site) as flood:
        wait_until(lambda: flood.proof.seconds > 2)
        proof = flood.proof
    assert (proof.shortfall, proof.received_share, proof.lost) == ("", 1, 0)
    assert proof.rate_hz == pytest.approx(300, rel=0.05)
    assert proof.error_max_us > 0


def test_flood_begins_without_readers(site):
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=50, readers=False), site) as flood:
        wait_until(lambda: flood.proof.rate_hz > 0)


@pytest.mark.parametrize(("age_s", "is_late"), [pytest.param(0.0, False, marks=pytest.mark.acceptance), (60.0, True)])
def test_guard_throttles_a_flood_while_states_are_late(graph, site, age_s, is_late):
    flood_spec = DdsFloodSpec(publishers=1, rate_hz=100)
    both = dataclasses.replace(site, loads=[flood_spec])
    graph.start("arm", age_s)
    with run_dds_flood(flood_spec, both) as flood, run_guard(GuardSpec(**STATES), both) as guard:
        wait_until(lambda: guard.proof.received > 100 and guard.proof.obedient)
        if is_late:
            wait_until(lambda: guard.proof.share < 0.5 and flood.proof.allowed_hz < 90)
            assert guard.proof.late_share == 1
    assert bool(guard.proof.decreases) == is_late, guard.proof.describe()


@pytest.mark.acceptance
def test_reliable_flood_is_named_as_disobedient(graph, site):
    flood_spec = DdsFloodSpec(publishers=1, rate_hz=50, reliability="reliable")
    both = dataclasses.replace(site, loads=[flood_spec])
    graph.start("arm", 60.0)
    with run_dds_flood(flood_spec, both), run_guard(GuardSpec(**STATES), both) as guard:
        wait_until(lambda: "a reliable publisher is not throttled" in str(guard.proof.missing))


@pytest.mark.acceptance
def test_guard_releases_publishers_at_its_end(graph, site):
    flood_spec = DdsFloodSpec(publishers=1, rate_hz=100)
    both = dataclasses.replace(site, loads=[flood_spec])
    graph.start("arm", 60.0)
    with run_dds_flood(flood_spec, both) as flood:
        with run_guard(GuardSpec(**STATES), both):
            wait_until(lambda: flood.proof.allowed_hz < 90)
        before = flood.proof
        wait_until(lambda: flood.proof.seconds > before.seconds + 2)
        after = flood.proof
    sent = (after.rate_hz * after.seconds - before.rate_hz * before.seconds) / (after.seconds - before.seconds)
    assert sent > 50


@pytest.fixture
def types(rcl, monkeypatch):
    """The Python classes of messages, which need no middleware."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(rcl)])


def test_stamps_are_read_from_encoded_messages(types):
    stamp = (3).to_bytes(4, "little") + (5).to_bytes(4, "little")
    head, one = b"\0\1\0\0", (1).to_bytes(4, "little")
    place = stamp_place("sensor_msgs/msg/JointState")
    assert read_stamp(place, head + stamp) == 3 * NS_PER_S + 5
    assert read_stamp(place, head + bytes(8)) is None
    assert read_stamp(place, head) is None
    listed = place + 4  # after the length of a list
    assert read_stamp(listed, head + one + stamp) == 3 * NS_PER_S + 5
    assert read_stamp(listed, head + bytes(4) + stamp) is None


def test_type_without_a_stamp_is_refused(types):
    with pytest.raises(ConfigurationError, match=r"std_msgs/msg/String carry no header\.stamp"):
        stamp_place("std_msgs/msg/String")
