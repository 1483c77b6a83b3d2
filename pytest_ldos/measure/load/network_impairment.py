"""Network impairment of the stack's DDS domain (``tc netem`` on loopback), and probes that measure its effect.

Pairs of probes go to a port that no participant uses. The kernel stamps their arrival, so that delays in reading
them do not matter.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.stats.counts import shortfall_p
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.host.availability import Availability, chosen_rmw
from pytest_ldos.host.temporary import RunCommand, undone_at_end
from pytest_ldos.measure.load.protocol import Load, LoadProof, LoadSite, MeasuredLoad
from pytest_ldos.measure.load.traffic_control import (
    REMOVAL,
    NetemCounters,
    apply_commands,
    impairing_commands,
    read_counters,
    traffic_control_available,
)
from pytest_ldos.robot.dds.domain import ports_of
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.robot.stack.ros2.installed import ZENOH
from pytest_ldos.scenario.loads import NetworkImpairmentSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

REACHED_FRACTION: Final = 0.9  # smallest accepted fraction of the requested delay, and of the gaps due to the rate
_UNLIKELY: Final = 1e-3  # significance level at which the number of lost datagrams contradicts the requested loss
_MEASURABLE_GAP_NS: Final = 50_000
_SHARE_OF_RATE: Final = 0.1
_SHORTEST_INTERVAL_S: Final = 0.02
_LONGEST_INTERVAL_S: Final = 2.0
_PATIENCE_S: Final = 0.5
_BITS_A_MBIT: Final = 1e6
_FASTDDS: Final = frozenset({"rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp"})
_PROFILES: Final = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")

PAYLOAD_BYTES: Final = 200
WIRE_BITS: Final = 8 * (PAYLOAD_BYTES + 8 + 20 + 14)  # size of a queued probe, with UDP, IP and Ethernet headers
_NUMBER: Final = struct.Struct("<Q")
_STAMP: Final = struct.Struct("@qq")
_SO_TIMESTAMPNS: Final = 35
_READ_TIMEOUT_S: Final = 0.1


@dataclass(frozen=True)
class Crossing:
    """Results of the probes past their time limit."""

    sent: int
    lost: int
    delays_ns: tuple[int, ...]  # one-way delays of the received probes, in the order of sending
    gaps_ns: tuple[int, ...]  # time between the two probes of a pair, if both arrived


class NetworkProbe:
    """Sends a pair of probes every `interval_s`, and receives them, in two threads.

    After `patience_s`, a probe counts as lost. Raises `LoadFailed` if no port is free.
    """

    def __init__(self, ports: range, *, interval_s: float, patience_s: float) -> None:
        self._interval_s = interval_s
        self._patience_ns = int(patience_s * NS_PER_S)
        self._sink = _bind_unused(ports)
        self._source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._source.bind(("127.0.0.1", 0))
        self._sent: list[int] = []
        self._arrived: dict[int, int] = {}
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=work, name="network probe", daemon=True) for work in (self._send, self._take)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._sink.close()
        self._source.close()

    @property
    def datagrams(self) -> int:
        return len(self._sent)

    @property
    def crossing(self) -> Crossing:
        now_ns = time.time_ns()
        arrived = dict(self._arrived)
        sent = [stamp for stamp in list(self._sent) if now_ns - stamp > self._patience_ns]
        delays = {number: arrived[number] - stamp for number, stamp in enumerate(sent) if number in arrived}
        gaps = [arrived[number + 1] - arrived[number] for number in delays if number % 2 == 0 and number + 1 in delays]
        return Crossing(len(sent), len(sent) - len(delays), tuple(delays.values()), tuple(gaps))

    def _send(self) -> None:
        filling = bytes(PAYLOAD_BYTES - _NUMBER.size)
        address = self._sink.getsockname()
        while not self._stopping.wait(self._interval_s):
            for _ in range(2):
                number = len(self._sent)
                self._sent.append(time.time_ns())
                self._source.sendto(_NUMBER.pack(number) + filling, address)

    def _take(self) -> None:
        ours = self._source.getsockname()[1]
        while not self._stopping.is_set():
            try:
                data, ancillary, _, sender = self._sink.recvmsg(PAYLOAD_BYTES, socket.CMSG_SPACE(_STAMP.size))
            except TimeoutError:
                continue
            if sender[1] == ours and len(data) == PAYLOAD_BYTES:
                self._arrived[_NUMBER.unpack_from(data)[0]] = _stamp_of(ancillary)


def _bind_unused(ports: range) -> socket.socket:
    """Binds the last free port, because participants use the first ones."""
    for port in reversed(ports):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sink.bind(("127.0.0.1", port))
        except OSError:
            sink.close()
            continue
        sink.settimeout(_READ_TIMEOUT_S)
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        return sink
    raise LoadFailed(f"no UDP port from {ports[0]} to {ports[-1]} is free")


def _stamp_of(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The kernel's receive time of a datagram; without a stamp, the current time."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(data)
            return int(seconds) * NS_PER_S + int(nanoseconds)
    return time.time_ns()


@dataclass(frozen=True, kw_only=True)
class NetworkImpairmentProof(LoadProof):
    """Proof of a network impairment.

    Attributes:
        asked: description of the requested impairment.
        delay_p50_ms, delay_p99_ms: one-way delays of probes to a port of the domain.
        probes, probes_lost: numbers of probes, and of lost ones.
        gap_p50_us: interval between the arrivals of two probes sent together, due to the rate.
        packets: datagrams of the stack that entered the kernel's ``netem``.
        drops: datagrams that it dropped, including probes.
    """

    asked: str
    delay_p50_ms: float
    delay_p99_ms: float
    probes: int
    probes_lost: int
    gap_p50_us: float
    packets: int
    drops: int

    @property
    def loss_percent(self) -> float:
        return 100 * self.probes_lost / self.probes if self.probes else 0.0

    def describe(self) -> str:
        return (
            f"network impairment: {self.asked} asked; measured one way {self.delay_p50_ms:.1f} ms "
            f"(p99 {self.delay_p99_ms:.1f} ms), {self.loss_percent:.1f} % of {self.probes} probes lost; "
            f"{self.packets} datagrams of the stack came through it, netem dropped {self.drops} of all"
        )


def build_proof(
    spec: NetworkImpairmentSpec, crossing: Crossing, counters: NetemCounters | None, *, ours: int, seconds: float
) -> NetworkImpairmentProof:
    """Builds the proof; `ours` is the number of probes among the counted datagrams."""
    passed = counters or NetemCounters(0, 0)
    delays_ms = sorted(delay / NS_PER_MS for delay in crossing.delays_ns)
    gap_ns = statistics.median(crossing.gaps_ns) if crossing.gaps_ns else 0.0
    jitter = f" ± {spec.jitter_ms:g} ms" if spec.jitter_ms else ""
    asked = [f"{spec.delay_ms:g} ms{jitter}"] if spec.delay_ms else []
    asked += [f"{spec.loss_percent:g} % loss"] if spec.loss_percent else []
    asked += [f"{spec.rate_mbps:g} Mbit/s"] if spec.rate_mbps else []
    return NetworkImpairmentProof(
        kind=spec.KIND,
        seconds=seconds,
        shortfall=_shortfall(spec, crossing, counters, ours=ours),
        asked=", ".join(asked) or "nothing",
        delay_p50_ms=statistics.median(delays_ms) if delays_ms else 0.0,
        delay_p99_ms=delays_ms[int(0.99 * (len(delays_ms) - 1))] if delays_ms else 0.0,
        probes=crossing.sent,
        probes_lost=crossing.lost,
        gap_p50_us=gap_ns / 1000,
        packets=max(0, passed.entered - ours),
        drops=passed.drops,
    )


def _shortfall(spec: NetworkImpairmentSpec, crossing: Crossing, counters: NetemCounters | None, *, ours: int) -> str:
    if counters is None:
        return "somebody removed the impairment from loopback while it should last"
    if counters.entered <= ours:
        return "no datagram of the stack passed it: its messages do not take loopback's UDP ports"
    if spec.delay_ms and spec.loss_percent != 100:
        if not crossing.delays_ns:
            return "no probe arrived that would show the delay"
        median_ms = statistics.median(crossing.delays_ns) / NS_PER_MS
        if median_ms < REACHED_FRACTION * spec.delay_ms:
            return f"datagrams took {median_ms:.1f} ms, {spec.delay_ms:g} ms were asked for"
    if shortfall_p(successes=crossing.lost, trials=crossing.sent, expected_rate=spec.loss_percent / 100) < _UNLIKELY:
        return f"{crossing.lost} of {crossing.sent} probes were lost, {spec.loss_percent:g} % were asked for"
    return _rate_shortfall(spec, crossing)


def _rate_shortfall(spec: NetworkImpairmentSpec, crossing: Crossing) -> str:
    """Checks that the rate spreads datagrams sent together, unless jitter hides it or the gaps are too short."""
    if not spec.rate_mbps or spec.loss_percent == 100:
        return ""
    if not crossing.gaps_ns:
        return "no pair of probes arrived that would show the rate"
    due_ns = WIRE_BITS / (spec.rate_mbps * _BITS_A_MBIT) * NS_PER_S
    gap_ns = statistics.median(crossing.gaps_ns)
    if spec.jitter_ms or due_ns < _MEASURABLE_GAP_NS or gap_ns >= REACHED_FRACTION * due_ns:
        return ""
    found = f"datagrams followed each other in {gap_ns / 1000:.0f} µs"
    return f"{found}, {spec.rate_mbps:g} Mbit/s make that {due_ns / 1000:.0f} µs"


def network_impairment_available(spec: NetworkImpairmentSpec, stack: StackSpec) -> Availability:
    if resolve_kind(stack) is StackKind.ROS2:
        through_network = _goes_through_network({**os.environ, "RMW_IMPLEMENTATION": stack.ros2.rmw or chosen_rmw()})
        if not through_network.ok:
            return through_network
    return traffic_control_available()


def _goes_through_network(environment: Mapping[str, str]) -> Availability:
    """Reports if a ROS 2 stack's messages take DDS's UDP ports.

    Unless configured otherwise, Fast DDS uses shared memory within a machine. Zenoh uses TCP.
    """
    rmw = chosen_rmw(environment)
    if rmw == ZENOH:
        return Availability(
            False,
            f"{rmw} sends messages over TCP, and only the UDP ports of a DDS domain are impaired",
            "--ldos-rmw rmw_cyclonedds_cpp, or leave this load out",
        )
    is_told = environment.get("FASTDDS_BUILTIN_TRANSPORTS", "").split("?")[0] == "UDPv4"
    if rmw not in _FASTDDS or is_told or any(environment.get(name) for name in _PROFILES):
        return Availability(True)
    return Availability(
        False,
        f"{rmw} sends messages through shared memory, which no network impairment reaches",
        "--ldos-rmw rmw_cyclonedds_cpp, or FASTDDS_BUILTIN_TRANSPORTS=UDPv4 in the environment",
    )


@contextmanager
def run_network_impairment(
    spec: NetworkImpairmentSpec, site: LoadSite
) -> Iterator[MeasuredLoad[NetworkImpairmentSpec, NetworkImpairmentProof]]:
    """Impairs the network inside the ``with`` block; see `run_load`. It is undone even if this process is killed."""
    if site.kind is StackKind.ROS2:
        _goes_through_network({**os.environ, **site.environment}).demand()
    traffic_control_available().demand()
    ports = ports_of(site.domain)
    patience_s = (spec.delay_ms + spec.jitter_ms) * NS_PER_MS / NS_PER_S + _PATIENCE_S
    with undone_at_end(site.log_directory / "network_impairment.log") as undo:
        undo.register(RunCommand(REMOVAL))
        apply_commands(impairing_commands(spec, ports))
        with closing(NetworkProbe(ports, interval_s=_probe_interval_s(spec), patience_s=patience_s)) as probe:
            began_ns = time.monotonic_ns()

            def measure() -> NetworkImpairmentProof:
                seconds = (time.monotonic_ns() - began_ns) / NS_PER_S
                return build_proof(spec, probe.crossing, read_counters(), ours=probe.datagrams, seconds=seconds)

            with closing(MeasuredLoad(spec, measure)) as impairment:
                yield impairment


def _probe_interval_s(spec: NetworkImpairmentSpec) -> float:
    """Interval at which probes take at most a tenth of the rate, within limits."""
    if not spec.rate_mbps:
        return _SHORTEST_INTERVAL_S
    wanted_s = 2 * WIRE_BITS / (_SHARE_OF_RATE * spec.rate_mbps * _BITS_A_MBIT)
    return min(max(wanted_s, _SHORTEST_INTERVAL_S), _LONGEST_INTERVAL_S)


LOADS: Final = {
    NetworkImpairmentSpec.KIND: Load(
        run=run_network_impairment, available=network_impairment_available, proof=NetworkImpairmentProof
    )
}
