"""Floods over real DDS, counted at their receiver."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.measure.load import dds_flood, flood_reports
from pytest_ldos.measure.load import protocol as programs
from pytest_ldos.measure.load.dds_flood import run_dds_flood
from pytest_ldos.measure.load.flood_reports import flood_programs
from pytest_ldos.measure.load.protocol import LoadSite, load_available, proof_to_dict
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.scenario.loads import DdsFloodSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind
from tests.builders.stressors import is_gone, owner_of, wait_until
from tests.fakes.rig import FakeRecorder

SWITCH = "/proc/sys/kernel/sched_autogroup_enabled"
MS = 1_000_000


@pytest.fixture
def site(tmp_path):
    with claim_domain() as domain:
        yield LoadSite(domain=domain, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)


def flooders(name: str = "flood_") -> list[psutil.Process]:
    ours = psutil.Process().children(recursive=True)
    return [process for process in ours if process.name().startswith(name)]


@contextmanager
def flooding(site: LoadSite, *, seconds: float, **arguments):
    """A flood that has run for some time."""
    with run_dds_flood(DdsFloodSpec(**arguments), site) as flood:
        wait_until(lambda: flood.proof.seconds > seconds)
        yield flood


@pytest.mark.measures_time
def test_received_rate_is_the_requested_one(site):
    with flooding(site, seconds=1.0, publishers=2, rate_hz=200, size_bytes=64) as flood:
        proof = flood.proof
    assert proof.requested_hz == 400
    assert proof.rate_hz == pytest.approx(400, rel=0.05)
    assert proof.received_hz == pytest.approx(400, rel=0.05)
    assert proof.sent_mb_s == pytest.approx(400 * 64e-6, rel=0.05)
    assert (proof.shortfall, proof.lost, proof.given_up) == ("", 0, 0)
    assert proof.received_share == 1
    assert 0 < proof.error_p50_us <= proof.error_p99_us <= proof.error_max_us < 1e6
    assert "msg/s sent, all received (2 publishers, 64 bytes); " in proof.describe()
    assert proof_to_dict(proof)["rate_hz"] == proof.rate_hz
    assert flooders() == []


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_bursts_and_shared_participants_keep_the_rate(site):
    arguments = {
        "publishers": 3,
        "rate_hz": 200,
        "burst": 20,
        "participants": 2,
        "reliability": "reliable",
        "depth": 50,
    }
    with flooding(site, seconds=1.0, **arguments) as flood:
        assert len(flooders("flood_publisher")) == 2
        proof = flood.proof
    assert proof.rate_hz == pytest.approx(600, rel=0.1)
    assert (proof.shortfall, proof.lost) == ("", 0)
    assert proof.describe().count("in bursts of 20, from 2 participants, reliable") == 1


def test_without_readers_sent_messages_are_counted(site):
    with flooding(site, seconds=0.5, publishers=2, rate_hz=200, readers=False) as flood:
        assert flooders("flood_counter") == []
        proof = flood.proof
    assert (proof.received_hz, proof.received_share) == (None, None)
    assert 0 < proof.rate_hz < 420
    assert "msg/s sent (2 publishers, 1024 bytes, no readers)" in proof.describe()


@pytest.mark.acceptance
def test_flood_on_another_domain(site):
    with flooding(site, seconds=0.3, publishers=1, rate_hz=200, domain="other") as flood:
        commands = [" ".join(process.cmdline()) for process in flooders()]
        assert "on another domain" in flood.proof.describe()
    assert len(commands) == 2
    assert not any(f'"domain": {site.domain},' in command for command in commands)


def test_unreached_rate_is_a_shortfall_with_its_value(site):
    """Messages that a publisher could not send are dropped, not postponed."""
    with flooding(site, seconds=1.0, publishers=1, rate_hz=1_000_000, size_bytes=16, readers=False) as flood:
        proof = flood.proof
    assert 0 < proof.rate_hz < 900_000
    found = f"the flood reached {proof.rate_hz:.0f} of 1000000 msg/s"
    assert proof.shortfall == f"{found}: its publishers sent no more in time"
    assert proof.given_up > 10_000


@pytest.mark.acceptance
def test_resumed_publisher_does_not_catch_up(site):
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=1000), site) as flood:
        publisher = flooders("flood_publisher")[0]
        publisher.send_signal(signal.SIGSTOP)
        time.sleep(0.6)  # messages missed during the stop are measured
        publisher.send_signal(signal.SIGCONT)
        wait_until(lambda: flood.proof.given_up)
        assert flood.proof.given_up >= 500
        assert "the flood reached" in flood.proof.shortfall


@pytest.mark.parametrize("name", ["flood_publisher", pytest.param("flood_counter", marks=pytest.mark.acceptance)])
def test_dead_process_is_a_shortfall(site, name):
    with run_dds_flood(DdsFloodSpec(publishers=2, rate_hz=200), site) as flood:
        flooders(name)[0].kill()
        wait_until(lambda: "SIGKILL" in flood.proof.shortfall)
    assert name in flood.proof.shortfall


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_hanging_counter_is_a_shortfall(site, monkeypatch):
    monkeypatch.setattr(flood_reports, "_LONGEST_SILENCE_S", 0.5)
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=200), site) as flood:
        counter = flooders("flood_counter")[0]
        counter.send_signal(signal.SIGSTOP)
        wait_until(lambda: "flood_counter has printed nothing" in flood.proof.shortfall)
        counter.send_signal(signal.SIGCONT)


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_stop_of_this_process_is_no_silence(site, monkeypatch):
    """Reports of the meantime are read before silence is judged; a held lock simulates the stop."""
    monkeypatch.setattr(flood_reports, "_LONGEST_SILENCE_S", 0.5)
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=200), site) as flood, flood._changed:
        wait_until(lambda: all(stream.silence_ns() > 600 * MS for stream in flood._streams))
        assert "printed nothing" not in flood.proof.shortfall


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_lost_messages_are_reported_and_no_shortfall(site):
    """A stopped counter misses messages, and counts them; the flood was applied nevertheless."""
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=8000, size_bytes=16), site) as flood:
        counter = flooders("flood_counter")[0]
        counter.send_signal(signal.SIGSTOP)
        before = flood.proof
        time.sleep(1.0)  # longer than its history and its socket's buffer can bridge
        counter.send_signal(signal.SIGCONT)
        wait_until(lambda: flood.proof.seconds > before.seconds + 1.0)
        proof = flood.proof
    assert proof.lost > 0
    assert (proof.shortfall, proof.rate_hz) == ("", pytest.approx(8000, rel=0.01))
    assert proof.received_share is not None
    assert 0 < proof.received_share < 1
    assert f"{100 * proof.received_share:.1f} % of them received, {proof.lost} lost (" in proof.describe()


@pytest.mark.acceptance
def test_flood_runs_in_the_requested_scheduler_group(site):
    """This process stands for the stack."""
    site_of_stack = dataclasses.replace(site, pids=lambda: [os.getpid()])
    ours, found = os.getsid(0), {}
    for group in ("stack", "own"):
        with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=200, group=group), site_of_stack) as flood:
            sessions = {os.getsid(process.pid) for process in flooders()}
            found[group] = flood.proof.group_found
        assert (sessions == {ours}) == (group == "stack")
        assert flood.proof.group == group
    if Path(SWITCH).is_file() and Path(SWITCH).read_text().strip() == "1":
        assert "as the stack" in found["stack"] or "control group" in found["stack"]
        assert "the stack in" in found["own"] or "control group" in found["own"]


def test_flood_without_reception_fails(site, monkeypatch):
    """The reader is on another domain, so that the publishers never begin."""

    def elsewhere(module: str, *, program: str, domain: int, **parameters: object) -> list[str]:
        domain += program == "flood_publisher"
        return command(module, program=program, domain=domain, **parameters)

    command = flood_reports.node_command
    monkeypatch.setattr(flood_reports, "node_command", elsewhere)
    monkeypatch.setattr(dds_flood, "_READY_TIMEOUT_S", 1.0)
    late = pytest.raises(LoadFailed, match="did not arrive at its receiver within 1 s")
    with late, run_dds_flood(DdsFloodSpec(publishers=1), site):
        pass
    assert flooders() == []


def test_flood_with_exiting_processes_fails(site, monkeypatch):
    monkeypatch.setattr(flood_reports, "_MODULE", "pytest_ldos.no_such_room")
    with pytest.raises(LoadFailed, match="ended with exit code 1") as caught, run_dds_flood(DdsFloodSpec(), site):
        pass
    assert "no_such_room" in str(caught.value)


@pytest.mark.acceptance
def test_slow_flood_ends_immediately(site):
    """Its publisher does not sleep until the next message."""
    with run_dds_flood(DdsFloodSpec(publishers=1, rate_hz=0.05), site) as flood:
        arrived = flood.proof
        began = time.monotonic()
    assert time.monotonic() - began < 19, "its next message is due after 20 s"
    assert arrived.requested_hz == 0.05


def test_flood_ends_with_its_owner(site):
    """Even if the owner is killed."""
    with owner_of(run_dds_flood(DdsFloodSpec(publishers=2, rate_hz=2000), site)) as owner:
        children = psutil.Process(owner).children(recursive=True)
        assert len(children) >= 3
        os.kill(owner, signal.SIGKILL)
        wait_until(lambda: all(is_gone(child.pid) for child in children))


# --- on ROS 2 ------------------------------------------------------------------------------


def test_ros_stack_is_flooded_over_its_middleware():
    spec = DdsFloodSpec(publishers=3, participants=2, rate_hz=2000, reliability="reliable", readers=False)
    programs = flood_programs(spec, domain=7, environment={"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"})
    assert programs.environment == {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", "ROS_DOMAIN_ID": "7"}
    assert list(programs.publishers) == ["flood_publisher_1", "flood_publisher_2"]
    _, _, module, settings = programs.publishers["flood_publisher_2"]
    assert module == "pytest_ldos.measure.load.ros_node"
    assert json.loads(settings) == {
        "program": "flood_publisher", "name": "flood_publisher_2", "topics": ["/flood_topic_3"], "domain": 7,
        "rate_hz": 2000.0, "burst": 1, "size_bytes": 1024, "depth": 1, "awaits_readers": False, "seconds": 1800.0,
        "reliable": True,
    }  # fmt: skip
    assert json.loads(programs.counter[-1])["topics"] == [f"/flood_topic_{number}" for number in (1, 2, 3)]


def test_embedded_flood_needs_the_embedded_packages(monkeypatch):
    embedded = StackSpec(kind=StackKind.EMBEDDED)
    assert load_available(DdsFloodSpec(), embedded).ok
    monkeypatch.setattr(programs, "_EMBEDDED_PARTS", ("no_such_dds",))
    assert "pip install 'pytest-ldos[embedded]'" in load_available(DdsFloodSpec(), embedded).remedy


# --- valid and invalid specs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "range_"),
    [
        ({"publishers": 0}, "between 1 and 32"),
        ({"publishers": 33}, "between 1 and 32"),
        ({"rate_hz": 0}, "between 0.01 and 1 000 000 Hz"),
        ({"rate_hz": 1e9}, "between 0.01 and 1 000 000 Hz"),
        ({"burst": 0}, "between 1 and 10 000"),
        ({"size_bytes": 15}, "between 16"),
        ({"size_bytes": 1 << 30}, r"and 1048576 \(1 MiB\)"),
        ({"depth": 0}, "between 1 and 100 000"),
        ({"participants": 5}, "5 participants for 4 publishers"),
    ],
)
def test_invalid_floods_are_refused(arguments, range_):
    with pytest.raises(ConfigurationError, match=range_):
        DdsFloodSpec(**arguments)


def test_rate_limit_allows_two_hundred_thousand():
    assert DdsFloodSpec(publishers=1, rate_hz=200_000).total_hz == 200_000
