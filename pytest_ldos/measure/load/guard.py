"""A guard process alongside the stack that measures the lateness of a path and throttles publishers."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.base.text import NS_PER_S, counted, percent
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.dds_flood import ReportedLoad
from pytest_ldos.measure.load.flood_reports import (
    LONGEST_S,
    ROS_MODULE,
    Guarded,
    flood_nodes,
    node_command,
    stamp_reader,
)
from pytest_ldos.measure.load.protocol import GroupedProof, GroupReading, Load, LoadSite, load_processes
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.scenario.loads import DdsFloodSpec, FloodDomain, GuardedTopic, GuardSpec, guarded_topic
from pytest_ldos.scenario.words import StackKind

NAME: Final = "guard"  # name of the node and of its process
_REPORT_PERIOD_S: Final = 0.1
_MODULE: Final = "pytest_ldos.measure.load.guard_node"


def publishers_of(spec: GuardSpec, site: LoadSite) -> tuple[str, ...]:
    """Names of the nodes to throttle; raises `ConfigurationError` if there are none, or on another domain."""
    if spec.publisher_names:
        return spec.publisher_names
    flood = next((each for each in site.loads if isinstance(each, DdsFloodSpec)), None)
    if flood is None and spec.least_share < 1:
        raise ConfigurationError(
            "the guard has no publisher to throttle: there is no flood",
            remedy='add dds_flood, or name the nodes: publishers = "/camera,/lidar" (least_share = 1 only watches)',
        )
    if flood is not None and flood.domain == FloodDomain.OTHER:
        raise ConfigurationError(
            "the guard cannot reach a flood on another DDS domain", remedy="leave the flood on the stack's own"
        )
    return () if flood is None else flood_nodes(flood)


def guard_program(
    spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite
) -> tuple[list[str], Mapping[str, str]]:
    """Command and variables of a process over Cyclone DDS or rclpy; raises `ConfigurationError` without stamps."""
    numbers = ("silence_ms", "window_ms", "late_share", "least_share", "decrease", "increase")
    parameters = {
        "program": NAME,
        "name": NAME,
        "domain": site.domain,
        "publishers": list(publishers),
        **{name: float(getattr(spec, name)) for name in numbers},
        "topic": watched.topic,
        "type": watched.type,
        "deadline_ms": float(watched.deadline_ms),
        "calm_windows": spec.calm_windows,
        "parameter": spec.parameter,
        "report_period_s": _REPORT_PERIOD_S,
        "seconds": LONGEST_S,
    }
    if site.kind is StackKind.ROS2:
        return node_command(ROS_MODULE, **parameters), site.environment
    stamp_reader(watched.type)
    return node_command(_MODULE, **parameters), bound_to_loopback()


@dataclass(frozen=True, kw_only=True)
class GuardProof(GroupedProof):
    """Proof of a guard.

    Attributes:
        topic: the topic watched.
        deadline_ms: deadline of its messages.
        received, late: messages on it, and those that missed the deadline.
        late_share: share of late messages, 0 to 1.
        silent_windows: windows with too long a silence.
        share: share of their rate allowed to publishers, mean over time, 0 to 1.
        least: smallest value of that share.
        throttled_s: time with a share below 1, s.
        shares: its mean in each second.
        decreases, increases: numbers of its changes.
        obedient: number of publishers that obeyed.
        missing: a text for each publisher that never obeyed.
    """

    topic: str
    deadline_ms: float
    received: int
    late: int
    late_share: float
    silent_windows: int
    share: float
    least: float
    throttled_s: float
    shares: tuple[float, ...]
    decreases: int
    increases: int
    obedient: int
    missing: tuple[str, ...]

    def describe(self) -> str:
        silence = f", {self.silent_windows} silent windows" if self.silent_windows else ""
        publishers = counted(self.obedient, "publisher")
        deeds = f"never throttled {publishers}"
        if self.decreases:
            deeds = (
                f"throttled {publishers} for {self.throttled_s:.1f} of {self.seconds:.1f} s, to "
                f"{percent(self.least, 0)} at the least, {percent(self.share, 0)} in the mean"
            )
        missing = f"; not obeyed by {', '.join(self.missing)}" if self.missing else ""
        return (
            f"guard of {self.topic}: {self.late} of {self.received} messages later than {self.deadline_ms:g} ms"
            f"{silence}; {deeds}{missing}"
        )


@dataclass
class GuardHistory:
    """Reports of a guard since its start."""

    publishers: Sequence[str]
    _shares: list[tuple[int, float]] = field(default_factory=list)
    _troubles: dict[str, str] = field(default_factory=dict)
    _obedient: set[str] = field(default_factory=set)

    def parse(self, report: Mapping[str, Any]) -> Guarded:
        """Adds a report."""
        guarded = Guarded.parse(report)
        self._shares.append((guarded.mono_ns, guarded.share))
        troubles = dict(each.split(": ", 1) for each in guarded.missing)
        self._troubles |= troubles
        self._obedient |= set(self.publishers) - set(troubles)
        return guarded

    def begin(self) -> None:
        """Begins the measurement; discards earlier reports of obedience, which the guard may not have verified."""
        self._troubles.clear()
        self._obedient.clear()

    @property
    def obedient(self) -> int:
        return len(self._obedient)

    @property
    def missing(self) -> tuple[str, ...]:
        """Publishers that never obeyed, with the last reason."""
        return tuple(f"{name}: {why}" for name, why in self._troubles.items() if name not in self._obedient)

    def shares(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, float]]:
        """Begin, end and share of each stretch of time: a report's share holds until the next report."""
        shares_with_end = pairwise([*self._shares, (end_ns, 1.0)])
        stretches = ((max(ns, begin_ns), min(end, end_ns), share) for (ns, share), (end, _) in shares_with_end)
        return [each for each in stretches if each[0] < each[1]]


def build_proof(
    spec: GuardSpec,
    watched: GuardedTopic,
    history: GuardHistory,
    *,
    first: Guarded | None,
    last: Guarded | None,
    failure: str,
    group: GroupReading,
) -> GuardProof:
    """Builds the proof; `failure` is the reason why the guard is incomplete, or empty."""
    begin = first or last or Guarded(0, 1.0, 0, 0, 0, 0, 0, ())
    end = last or begin
    stretches = history.shares(begin.mono_ns, end.mono_ns)
    seconds = (end.mono_ns - begin.mono_ns) / NS_PER_S
    received, late = end.received - begin.received, end.late - begin.late
    shortfall = ""
    if seconds > 0 and not received:
        shortfall = f"the guard heard nothing on {watched.topic}"
    elif history.publishers and not history.obedient:
        shortfall = f"no publisher obeyed the guard ({'; '.join(history.missing)})"
    seconds_ns = [(ns, min(ns + NS_PER_S, end.mono_ns)) for ns in range(begin.mono_ns, end.mono_ns, NS_PER_S)]
    return GuardProof(
        kind=spec.KIND,
        seconds=seconds,
        shortfall=failure or group.shortfall or shortfall,
        group=spec.group,
        group_found=group.found,
        topic=watched.topic,
        deadline_ms=watched.deadline_ms,
        received=received,
        late=late,
        late_share=late / received if received else 0.0,
        silent_windows=end.silent_windows - begin.silent_windows,
        share=_mean(stretches, begin.share),
        least=min((share for _, _, share in stretches), default=begin.share),
        throttled_s=sum(end_ns - begin_ns for begin_ns, end_ns, share in stretches if share < 1) / NS_PER_S,
        shares=tuple(round(_mean(history.shares(*each), 1.0), 3) for each in seconds_ns),
        decreases=end.decreases - begin.decreases,
        increases=end.increases - begin.increases,
        obedient=history.obedient,
        missing=history.missing,
    )


def _mean(stretches: Sequence[tuple[int, int, float]], otherwise: float) -> float:
    durations_ns = [end_ns - begin_ns for begin_ns, end_ns, _ in stretches]
    return fmean([share for _, _, share in stretches], durations_ns) if stretches else otherwise


_START_TIMEOUT_S: Final = 60.0
_HEARING_TIMEOUT_S: Final = 10.0


class RunningGuard(ReportedLoad[GuardSpec, GuardProof]):
    def __init__(self, spec: GuardSpec, site: LoadSite, group: ProcessGroup, command: Sequence[str]) -> None:
        super().__init__(spec, site, group, self._measured)
        self._watched = guarded_topic(spec, site.paths)
        self._history = GuardHistory(publishers_of(spec, site))
        self._stream = self._follow(NAME, command, self._history.parse)

    def _measured(self) -> GuardProof:
        with self._changed:
            return build_proof(
                self.spec,
                self._watched,
                self._history,
                first=self._stream.first,
                last=self._stream.last,
                failure=self._find_failure(),
                group=self._group_found,
            )

    def await_begin(self) -> None:
        """Begins the measurement at the first message of its path; raises `LoadFailed` if none comes."""
        child = self._stream.child
        with self._changed:
            has_started = self._await(lambda: self._stream.last is not None, _START_TIMEOUT_S)
            hears = has_started and self._await(lambda: self._stream.has_begun, _HEARING_TIMEOUT_S)
            if child.exit_code is not None:
                raise LoadFailed(child.describe_end(), remedy="look at what it says", details=child.last_lines())
            if not has_started:
                raise LoadFailed(f"the guard did not start within {_START_TIMEOUT_S:.0f} s", details=child.last_lines())
            if not hears:
                raise LoadFailed(
                    f"the guard heard nothing on {self._watched.topic} within {_HEARING_TIMEOUT_S:.0f} s",
                    remedy=f"guard a topic on which the stack sends {self._watched.type} all the time",
                )
            self._begin()
            self._history.begin()


@contextmanager
def run_guard(spec: GuardSpec, site: LoadSite) -> Iterator[RunningGuard]:
    """Guards a path inside the ``with`` block; see `run_load`. Afterwards publishers may use their whole rate again."""
    command, environment = guard_program(spec, guarded_topic(spec, site.paths), publishers_of(spec, site), site)
    with (
        load_processes(spec.group, site, environment=environment, death_signal=signal.SIGINT) as group,
        closing(RunningGuard(spec, site, group, command)) as guard,
    ):
        guard.await_begin()
        yield guard


LOADS: Final = {GuardSpec.KIND: Load(run=run_guard, has_nodes=True, proof=GuardProof)}
