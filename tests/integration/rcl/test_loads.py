"""Floods of a ROS 2 stack on real rclpy."""

from __future__ import annotations

import pytest

from pytest_ldos.measure.load.dds_flood import run_dds_flood
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.scenario.loads import DdsFloodSpec
from pytest_ldos.scenario.words import StackKind
from tests.builders.stressors import wait_until
from tests.fakes.rig import FakeRecorder


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
