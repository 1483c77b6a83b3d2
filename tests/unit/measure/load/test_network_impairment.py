"""Network impairment: on this kernel if possible, and with a stateful fake `tc`."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from itertools import islice

import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed, Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load import network_impairment, traffic_control
from pytest_ldos.measure.load.network_impairment import (
    WIRE_BITS,
    Crossing,
    NetworkProbe,
    build_proof,
    network_impairment_available,
    run_network_impairment,
)
from pytest_ldos.measure.load.protocol import LoadSite, proof_to_dict
from pytest_ldos.measure.load.traffic_control import (
    NETEM,
    ROOT,
    NetemCounters,
    impairing_commands,
    mask_blocks,
    traffic_control_available,
)
from pytest_ldos.robot.dds.domain import claim_domain, ports_of
from pytest_ldos.scenario.loads import NetworkImpairmentSpec
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StackKind
from tests.builders.stressors import owner_of, wait_until
from tests.fakes.rig import FakeRecorder
from tests.fakes.tc import DEFAULT, FakeTc

MS = 1_000_000
EMBEDDED = StackSpec(kind=StackKind.EMBEDDED)
MANY = NetemCounters(10_000, 0)


@pytest.fixture
def site(tmp_path):
    with claim_domain() as domain:
        yield LoadSite(domain=domain, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)


@pytest.fixture
def tc(tmp_path, monkeypatch) -> FakeTc:
    """The fake `tc` on the path, with a suitable kernel and permission."""
    fake = FakeTc(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(traffic_control, "_kernel_parts", lambda: [Availability(True)])
    monkeypatch.setattr(traffic_control, "has_capability", lambda number: True)
    return fake


# --- selected traffic ------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [0, 1, 5, 42, 101])
def test_masks_match_exactly_the_domains_ports(domain):
    blocks = list(mask_blocks(ports_of(domain)))
    matched = [port for port in range(1 << 16) if any(port & mask == first for first, mask in blocks)]
    assert matched == list(ports_of(domain))
    assert len(blocks) <= 14


@pytest.mark.parametrize(
    ("ports", "blocks"),
    [
        (range(1 << 16), [(0, 0)]),
        (range(1 << 10), [(0, 0xFC00)]),
        (range(3), [(0, 0xFFFE), (2, 0xFFFF)]),
        (range(0), []),
    ],
)
def test_a_range_may_begin_at_port_0(ports, blocks):
    assert list(islice(mask_blocks(ports), 3)) == blocks


def test_only_datagrams_to_the_domain_take_the_second_band():
    spec = NetworkImpairmentSpec(delay_ms=20, jitter_ms=2.5, loss_percent=0.5, rate_mbps=1.5)
    prio, netem, *filters = impairing_commands(spec, ports_of(5))
    assert " ".join(prio) == f"qdisc add dev lo root handle {ROOT} prio bands 2 priomap" + " 0" * 16
    assert " ".join(netem[netem.index("netem") :]) == "netem limit 100000 delay 20000us 2500us loss 0.5% rate 1500kbit"
    assert netem[netem.index("parent") + 1] == f"{ROOT}2"
    for words in filters:
        assert "match ip protocol 17 0xff match ip dport" in " ".join(words)
        assert words[-2:] == ["flowid", f"{ROOT}2"]


# --- availability ---------------------------------------------------------------


@pytest.mark.skipif(shutil.which("tc") is None, reason="tc is not installed")
def test_kernel_reports_missing_modules():
    """Real: `tc` is tried in a network namespace, and lo is unchanged."""
    before = subprocess.run(["tc", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True).stdout
    tried = subprocess.run(
        ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unshare" in tried.stderr:
        pytest.skip(f"no network namespaces here: {tried.stderr.strip()}")
    answer = next(iter(traffic_control._kernel_parts()))
    assert answer.ok == (tried.returncode == 0)
    if not answer.ok:
        assert "this kernel has no sch_netem (tc says: Error: " in answer.reason
        assert "modprobe sch_netem" in answer.remedy
    after = subprocess.run(["tc", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True).stdout
    assert after == before


def test_unavailability_is_reported_before_any_change(site):
    """Real, if this machine lacks a requirement."""
    answer = network_impairment_available(NetworkImpairmentSpec(delay_ms=5), EMBEDDED)
    if answer.ok:
        pytest.skip("this machine can impair its network")
    with pytest.raises(Unavailable) as caught, run_network_impairment(NetworkImpairmentSpec(delay_ms=5), site):
        pass
    assert caught.value.message == answer.reason
    assert caught.value.remedy == answer.remedy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a permission to give up")
def test_missing_permission_is_reported():
    """Real: a process without CAP_NET_ADMIN."""
    code = "from pytest_ldos.measure.load.traffic_control import *; print(traffic_control_available())"
    command = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "no permission to change the network (CAP_NET_ADMIN)" in printed
    assert "--cap-add NET_ADMIN" in printed


def test_broken_tc_means_no_impairment(tc, monkeypatch):
    """A flood without any impairment also checks this."""
    assert not traffic_control.is_impaired()
    tc.change(qdiscs=[{"kind": "netem", "handle": NETEM}])
    assert traffic_control.is_impaired()
    (tc.folder / "tc").write_text("#!/bin/sh\necho 'Cannot open netlink socket' >&2\nexit 1\n")
    assert not traffic_control.is_impaired()
    monkeypatch.setattr(traffic_control, "_find_tc", lambda: None)
    assert not traffic_control.is_impaired()


def test_missing_tc_is_reported(monkeypatch):
    monkeypatch.setattr(traffic_control, "_find_tc", lambda: None)
    answer = traffic_control_available()
    assert (answer.ok, answer.reason, answer.remedy) == (False, "tc not found", "sudo apt-get install iproute2")


@pytest.mark.parametrize("part", ["netem", "prio", "u32"])
def test_each_missing_kernel_module_has_a_reason(part, monkeypatch):
    """A kernel that refuses one module."""

    def refuse(commands):
        return "Error: it is unknown." if any(part in command for command in commands) else ""

    monkeypatch.setattr(traffic_control, "_refusal_elsewhere", refuse)
    answer = next(each for each in traffic_control._kernel_parts() if not each.ok)
    assert part in answer.reason.split("(")[0]
    assert f"modprobe {answer.reason.split()[4]}" in answer.remedy


def test_foreign_qdiscs_are_not_changed(tc, site):
    tc.change(qdiscs=[{"kind": "fq_codel", "handle": "8001:"}])
    refused = pytest.raises(Unavailable, match="has traffic control that is not ours to change: fq_codel 8001:")
    with refused, run_network_impairment(NetworkImpairmentSpec(delay_ms=5), site):
        pass
    assert not any("add" in call or "del" in call for call in tc.calls)


ROS2 = StackSpec(kind=StackKind.ROS2, ros2=Ros2Spec(rmw="rmw_fastrtps_cpp"))


@pytest.mark.parametrize(
    ("stack", "environment", "refused"),
    [
        (ROS2, {}, True),
        (StackSpec(kind=StackKind.ROS2), {}, True),
        (StackSpec(kind=StackKind.ROS2), {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, False),
        (ROS2, {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}, False),
        (ROS2, {"FASTDDS_BUILTIN_TRANSPORTS": "SHM"}, True),
        (ROS2, {"FASTRTPS_DEFAULT_PROFILES_FILE": "mine.xml"}, False),
        (EMBEDDED, {}, False),
    ],
)
def test_shared_memory_does_not_cross_the_network(tc, monkeypatch, stack, environment, refused):
    for name in ("RMW_IMPLEMENTATION", "FASTDDS_BUILTIN_TRANSPORTS", "FASTRTPS_DEFAULT_PROFILES_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    answer = network_impairment_available(NetworkImpairmentSpec(delay_ms=5), stack)
    assert answer.ok != refused
    if refused:
        assert "shared memory" in answer.reason
        assert "rmw_cyclonedds_cpp" in answer.remedy


def test_zenoh_sends_over_tcp(tc):
    zenoh = StackSpec(kind=StackKind.ROS2, ros2=Ros2Spec(rmw="rmw_zenoh_cpp"))
    answer = network_impairment_available(NetworkImpairmentSpec(delay_ms=5), zenoh)
    assert not answer.ok
    assert "rmw_zenoh_cpp sends messages over TCP" in answer.reason


def test_fast_dds_stack_is_refused_without_changes(tc, site):
    site_of_stack = dataclasses.replace(
        site, kind=StackKind.ROS2, environment={"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}
    )
    with (
        pytest.raises(Unavailable, match="shared memory"),
        run_network_impairment(NetworkImpairmentSpec(), site_of_stack),
    ):
        pass
    assert tc.calls == []


# --- measurement --------------------------------------------------------------------


@pytest.mark.measures_time
def test_impairment_ends_with_its_context_and_is_verified(tc, site):
    """This tc only pretends to delay: the probes show no delay."""
    with run_network_impairment(NetworkImpairmentSpec(delay_ms=30), site) as impairment:
        assert [qdisc["handle"] for qdisc in tc.qdiscs] == [ROOT, NETEM]
        assert len(tc.filters) == len(list(mask_blocks(ports_of(site.domain))))
        wait_until(lambda: impairment.proof.probes > 10)
        assert impairment.spec.delay_ms == 30
    proof = impairment.proof
    assert proof.delay_p50_ms < 10
    assert proof.probes_lost == 0
    assert proof.shortfall == f"datagrams took {proof.delay_p50_ms:.1f} ms, 30 ms were asked for"
    assert "30 ms asked; measured one way" in proof.describe()
    assert proof_to_dict(proof)["probes"] == proof.probes
    assert tc.qdiscs == DEFAULT


def test_refused_impairment_is_undone(tc, site):
    tc.change(refuses="u32")
    refused = pytest.raises(LoadFailed, match=r"tc refused: Error: \\x1b\[31mSpecified qdisc kind is unknown")
    with refused, run_network_impairment(NetworkImpairmentSpec(delay_ms=5), site):
        pass
    assert tc.qdiscs == DEFAULT


def test_dead_stack_is_not_reported_as_removal(tc, site):
    with pytest.raises(KeyError), run_network_impairment(NetworkImpairmentSpec(loss_percent=1), site) as impairment:
        raise KeyError("the stack is gone")
    assert tc.qdiscs == DEFAULT
    assert impairment.proof.shortfall == ""


def test_removed_impairment_is_a_shortfall(tc, site):
    with run_network_impairment(NetworkImpairmentSpec(delay_ms=5), site) as impairment:
        tc.change(qdiscs=DEFAULT)
        assert "somebody removed" in impairment.proof.shortfall


def test_impairment_is_undone_if_its_owner_is_killed(tc, site):
    with owner_of(run_network_impairment(NetworkImpairmentSpec(delay_ms=5), site)) as owner:
        assert tc.qdiscs != DEFAULT
        os.kill(owner, signal.SIGKILL)
        wait_until(lambda: tc.qdiscs == DEFAULT)


def test_removal_ignores_foreign_qdiscs(tc):
    foreign = [{"kind": "netem", "handle": "8001:"}]
    tc.change(qdiscs=foreign)
    traffic_control.remove_impairment()
    assert tc.qdiscs == foreign


@pytest.mark.measures_time
def test_probes_cross_loopback_without_delay():
    """Real datagrams, stamped by the kernel."""
    with claim_domain() as domain, closing(NetworkProbe(ports_of(domain), interval_s=0.005, patience_s=0.1)) as probe:
        wait_until(lambda: probe.crossing.sent >= 40)
        crossing = probe.crossing
    assert crossing.lost == 0
    assert len(crossing.delays_ns) == crossing.sent
    assert abs(len(crossing.gaps_ns) - crossing.sent // 2) <= 1
    assert 0 < sorted(crossing.delays_ns)[crossing.sent // 2] < 10 * MS


def crossing(*, delay_ms: float = 0.1, lost: int = 0, sent: int = 1000, gap_us: float = 10) -> Crossing:
    arrived = sent - lost
    return Crossing(sent, lost, (int(delay_ms * MS),) * arrived, (int(gap_us * 1000),) * (arrived // 2))


@pytest.mark.parametrize(
    ("asked", "found", "shortfall"),
    [
        ({"delay_ms": 20}, {"delay_ms": 20.3}, ""),
        ({"delay_ms": 20}, {"delay_ms": 17}, "datagrams took 17.0 ms, 20 ms were asked for"),
        ({"delay_ms": 20}, {"sent": 0}, "no probe arrived that would show the delay"),
        ({"loss_percent": 5}, {"lost": 45}, ""),
        ({"loss_percent": 5}, {"lost": 20}, "20 of 1000 probes were lost, 5 % were asked for"),
        ({"loss_percent": 100, "delay_ms": 5}, {"lost": 1000}, ""),
        ({"loss_percent": 0.01}, {"lost": 0}, ""),  # a thousand probes do not show it
        ({"rate_mbps": 1}, {"gap_us": WIRE_BITS}, ""),
        (
            {"rate_mbps": 1},
            {"gap_us": 12},
            f"datagrams followed each other in 12 µs, 1 Mbit/s make that {WIRE_BITS} µs",
        ),
        ({"rate_mbps": 1000}, {"gap_us": 1}, ""),  # too short to be measured
        ({"rate_mbps": 1}, {"lost": 1000}, "no pair of probes arrived that would show the rate"),
        ({"rate_mbps": 1}, {"sent": 1}, "no pair of probes arrived that would show the rate"),
        (
            {"rate_mbps": 1, "jitter_ms": 5, "delay_ms": 9},
            {"delay_ms": 9, "sent": 1},
            "no pair of probes arrived that would show the rate",
        ),
        ({"rate_mbps": 1000, "loss_percent": 50}, {"lost": 1000}, "no pair of probes arrived that would show the rate"),
        ({"rate_mbps": 1, "loss_percent": 100}, {"lost": 1000}, ""),
    ],
)
def test_unreached_impairment_is_a_shortfall(asked, found, shortfall):
    proof = build_proof(NetworkImpairmentSpec(**asked), crossing(**found), MANY, ours=2000, seconds=10)
    assert proof.shortfall == shortfall


def test_messages_on_another_route_are_reported():
    spec = NetworkImpairmentSpec(delay_ms=5)
    counters = NetemCounters(packets=1990, drops=0, waiting=10)
    proof = build_proof(spec, crossing(delay_ms=5), counters, ours=2000, seconds=10)
    assert "no datagram of the stack passed it" in proof.shortfall


@pytest.mark.parametrize("rate_mbps", [0, 0.01, 1, 100_000])
def test_probes_leave_most_of_the_rate_to_the_stack(rate_mbps):
    interval_s = network_impairment._probe_interval_s(NetworkImpairmentSpec(rate_mbps=rate_mbps))
    assert 0.02 <= interval_s <= 2
    if rate_mbps >= 1:
        assert 2 * WIRE_BITS / interval_s <= 0.2e6 * rate_mbps


@pytest.mark.parametrize(
    "arguments",
    [{"delay_ms": -1}, {"delay_ms": 1e6}, {"jitter_ms": 1}, {"loss_percent": 101}, {"rate_mbps": 1e9}],
)
def test_invalid_impairments_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        NetworkImpairmentSpec(**arguments)
