"""`ldos latency` over rclcpp and both middlewares, really measured."""

from __future__ import annotations

import os
import signal
import threading

import psutil
import pytest

from pytest_ldos.host.availability import find_ros_packages, rmw_installed
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.latency.instrument import measure_round
from pytest_ldos.instruments.latency.pair import Pair, RoundFailed, rclcpp_commands
from pytest_ldos.instruments.latency.programs import ROS_PACKAGE, Site, find_all
from pytest_ldos.instruments.latency.spec import LatencySpec, Program, cases_of, setups_of
from pytest_ldos.robot.dds.domain import claim_domain

ABLE = find_ros_packages([ROS_PACKAGE])
pytestmark = pytest.mark.skipif(not ABLE.ok, reason=f"{ABLE.reason} → {ABLE.remedy}")
SHORT = {"sizes": "64KiB", "seconds": 0.3, "ddsperf": False}
EVERY = [
    (Program.RCLCPP_CYCLONE, "one_process"),
    (Program.RCLCPP_CYCLONE, "loopback"),
    (Program.RCLCPP_FASTDDS, "one_process"),
    (Program.RCLCPP_FASTDDS, "loopback"),
    (Program.RCLCPP_FASTDDS, "shared_memory"),
]


def arrange(folder, program, **settings):
    able = rmw_installed(program.rmw)
    if not able.ok:
        pytest.skip(f"{able.reason} → {able.remedy}")
    spec = LatencySpec(**{**SHORT, **settings})
    return cases_of(setups_of(spec), [program])[0], Site(spec=spec, programs=find_all(spec), folder=folder)


@pytest.mark.parametrize(("program", "transport"), EVERY)
def test_a_round_has_every_percentile_both_ways(tmp_path, program, transport):
    case, site = arrange(tmp_path, program, transports=transport)
    found = measure_round(case, site, block=0)
    assert found.failure == ""
    assert found.round_trip.count > 50
    assert found.there.mean + found.back.mean == pytest.approx(found.round_trip.mean)
    assert found.there.low > 0
    assert found.back.low > 0


@pytest.mark.parametrize("program", [Program.RCLCPP_CYCLONE, Program.RCLCPP_FASTDDS])
def test_undiscovered_or_lost_sides_end_the_round(tmp_path, program):
    case, site = arrange(tmp_path, program, transports="loopback", match_timeout_s=1.0, seconds=30, patience_ms=100)
    for is_started, printed in ((False, "did not find each other within 1 s"), (True, "pong was killed by SIGKILL")):
        with claim_domain() as domain:
            commands = rclcpp_commands(case, site, domain=domain, folder=tmp_path)
            group = ProcessGroup(log_directory=tmp_path, environment=commands.environment)
            try:
                pair = Pair(commands, group)
                if is_started:
                    pair.start_pong()
                    threading.Timer(1.5, os.kill, (pair.pong.pid, signal.SIGKILL)).start()
                with pytest.raises(RoundFailed, match=printed):
                    pair.ask()
            finally:
                group.stop()
    assert not psutil.Process().children(recursive=True)
