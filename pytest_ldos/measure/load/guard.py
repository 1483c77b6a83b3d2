"""A guard process alongside the stack that measures the lateness of a path and throttles publishers."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.base.text import NS_PER_S, counted
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.measure.load.flood_reports import (
    LONGEST_S,
    Guarded,
    ReportStream,
    flood_nodes,
    programs_folder,
    ros_command,
    stamp_reader,
)
from pytest_ldos.measure.load.protocol import NOT_READ, GroupedProof, GroupReading, Load, LoadSite, read_group
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.scenario.loads import DdsFloodSpec, FloodDomain, GuardedTopic, GuardSpec, SchedulerGroup, guarded_topic
from pytest_ldos.scenario.words import StackKind

PACKAGE: Final = "ldos_guard"
"""Package of the ROS workspace."""

NAME: Final = "guard"
"""Name of the node and of its process."""

_REPORT_PERIOD_S: Final = 0.1
_MODULE: Final = "pytest_ldos.measure.load.guard_node"


@dataclass(frozen=True)
class GuardProgram:
    """A command with its environment variables."""

    command: Sequence[str]
    environment: Mapping[str, str]


def publishers_of(spec: GuardSpec, site: LoadSite) -> tuple[str, ...]:
    """Returns the names of the nodes to throttle: from the settings, or else those of the flood at the site.

    Raises:
        ConfigurationError: there are none, or they are on another domain.
    """
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


def guard_program(spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite) -> GuardProgram:
    """Returns a Python process over Cyclone DDS, or `ldos_guard`'s program over the middleware of a ROS 2 stack.

    Raises:
        ConfigurationError: the topic's messages carry no stamp.
        Unavailable: the workspace is not sourced.
    """
    numbers = ("silence_ms", "window_ms", "late_share", "least_share", "decrease", "increase")
    parameters: dict[str, object] = {
        **{name: float(getattr(spec, name)) for name in numbers},
        "topic": watched.topic,
        "type": watched.type,
        "deadline_ms": float(watched.deadline_ms),
        "calm_windows": spec.calm_windows,
        "parameter": spec.parameter,
        "report_period_s": _REPORT_PERIOD_S,
        "seconds": LONGEST_S,
    }
    if site.kind is not StackKind.ROS2:
        stamp_reader(watched.type)
        parameters |= {"domain": site.domain, "publishers": list(publishers)}
        return GuardProgram([sys.executable, "-m", _MODULE, json.dumps(parameters)], bound_to_loopback())
    parameters |= {"publishers": list(publishers)} if publishers else {}
    parameters |= {"use_sim_time": True} if site.has_simulated_clock else {}
    program = programs_folder(PACKAGE, site.environment) / NAME
    return GuardProgram(ros_command(program, NAME, **parameters), site.environment)


@dataclass(frozen=True, kw_only=True)
class GuardProof(GroupedProof):
    """See `GroupedProof`.

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
                f"{100 * self.least:.0f} % at the least, {100 * self.share:.0f} % in the mean"
            )
        missing = f"; not obeyed by {', '.join(self.missing)}" if self.missing else ""
        return (
            f"guard of {self.topic}: {self.late} of {self.received} messages later than {self.deadline_ms:g} ms"
            f"{silence}; {deeds}{missing}"
        )


@dataclass
class GuardHistory:
    """Reports of a guard since its start, as needed for a proof.

    Attributes:
        lock: must be held while reading or adding.
    """

    publishers: Sequence[str]
    lock: threading.Condition
    _shares: list[tuple[int, float]] = field(default_factory=list)
    _troubles: dict[str, str] = field(default_factory=dict)
    _obedient: set[str] = field(default_factory=set)

    def parse(self, report: Mapping[str, Any]) -> Guarded:
        """Parses a report and adds it to the history."""
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
        """Number of publishers that ever obeyed."""
        return len(self._obedient)

    @property
    def missing(self) -> tuple[str, ...]:
        """Publishers that never obeyed, with the last reason."""
        return tuple(f"{name}: {why}" for name, why in self._troubles.items() if name not in self._obedient)

    def shares(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, float]]:
        """Returns the share over time: a report's share holds until the next report."""
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
    """Builds the proof from the reports between the first and the last.

    Args:
        failure: reason why the guard is incomplete; empty if it is complete.
    """
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
    total_ns = sum(end_ns - begin_ns for begin_ns, end_ns, _ in stretches)
    if not total_ns:
        return otherwise
    return sum((end_ns - begin_ns) * share for begin_ns, end_ns, share in stretches) / total_ns


_START_TIMEOUT_S: Final = 60.0
_HEARING_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.1


class RunningGuard:
    """See `RunningLoad`."""

    def __init__(
        self, spec: GuardSpec, watched: GuardedTopic, history: GuardHistory, child: Child, site: LoadSite
    ) -> None:
        self.spec = spec
        self._watched = watched
        self._history = history
        self._child = child
        self._site = site
        self._stream: ReportStream[Guarded] = ReportStream(child, history.parse, history.lock)
        self._group_found = NOT_READ
        self._failure = ""
        self._final: GuardProof | None = None

    @property
    def proof(self) -> GuardProof:
        return self._final or self._measured()

    def close(self) -> None:
        """Freezes the proof, so that the end of the process is no failure."""
        self._final = self._measured()

    def _measured(self) -> GuardProof:
        with self._history.lock:
            if not self._failure:
                has_ended = self._child.exit_code is not None
                self._failure = self._child.describe_end() if has_ended else self._stream.find_fault()
            return build_proof(
                self.spec,
                self._watched,
                self._history,
                first=self._stream.first,
                last=self._stream.last,
                failure=self._failure,
                group=self._group_found,
            )

    def await_begin(self) -> None:
        """Begins the measurement at the first message of its path; raises `LoadFailed` if none comes."""
        with self._history.lock:
            if not self._await(lambda: self._stream.last is not None, _START_TIMEOUT_S):
                words = self._child.last_lines()
                raise LoadFailed(f"the guard did not start within {_START_TIMEOUT_S:.0f} s", details=words)
            if not self._await(lambda: self._stream.has_begun, _HEARING_TIMEOUT_S):
                raise LoadFailed(
                    f"the guard heard nothing on {self._watched.topic} within {_HEARING_TIMEOUT_S:.0f} s",
                    remedy=f"guard a topic on which the stack sends {self._watched.type} all the time",
                )
            self._stream.mark()
            self._history.begin()
        self._group_found = read_group(self.spec.group, [self._child.pid], self._site) or NOT_READ

    def _await(self, is_done: Callable[[], bool], limit_s: float) -> bool:
        """Waits for reports; raises `LoadFailed` if the guard ends."""
        deadline = time.monotonic() + limit_s
        while not is_done() and time.monotonic() < deadline and self._child.exit_code is None:
            self._history.lock.wait(_POLL_S)
        if self._child.exit_code is not None:
            words = self._child.last_lines()
            raise LoadFailed(self._child.describe_end(), remedy="look at what it says", details=words)
        return is_done()


@contextmanager
def run_guard(spec: GuardSpec, site: LoadSite) -> Iterator[RunningGuard]:
    """Guards a path inside the ``with`` block; see `run_load`. Afterwards publishers may use their whole rate again."""
    watched, publishers = guarded_topic(spec, site.paths), publishers_of(spec, site)
    program = guard_program(spec, watched, publishers, site)
    with ExitStack() as resources:
        group = ProcessGroup(
            log_directory=site.log_directory,
            prefix=site.recorder.prefix,
            environment={**program.environment, **site.recorder.environment},
            death_signal=signal.SIGINT,
            own_session=spec.group == SchedulerGroup.OWN,
        )
        resources.callback(group.stop)
        child = group.start(NAME, program.command, talk=True)
        guard = RunningGuard(spec, watched, GuardHistory(publishers, threading.Condition()), child, site)
        guard.await_begin()
        resources.callback(guard.close)
        yield guard


LOADS: Final = {GuardSpec.KIND: Load(run=run_guard, package=PACKAGE, proof=GuardProof)}
