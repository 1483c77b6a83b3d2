"""A guard process alongside the stack that measures the lateness of a path and throttles publishers."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, LoadFailed
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.measure.load.flood_proof import LONGEST_S, flood_nodes, ros_command
from pytest_ldos.measure.load.flood_reports import Guarded, ReportStream, stamp_reader
from pytest_ldos.measure.load.protocol import NOT_READ, GroupedProof, GroupReading, Load, LoadSite, read_group
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.scenario.loads.flood import DdsFloodSpec, FloodDomain, GuardedTopic, GuardSpec, guarded_topic
from pytest_ldos.scenario.loads.spec import SchedulerGroup
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


def embedded_program(spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite) -> GuardProgram:
    """Returns a Python process over Cyclone DDS.

    Raises:
        ConfigurationError: the topic's messages carry no stamp.
    """
    stamp_reader(watched.type)
    parameters = {"domain": site.domain, **_parameters(spec, watched), "publishers": list(publishers)}
    return GuardProgram([sys.executable, "-m", _MODULE, json.dumps(parameters)], bound_to_loopback())


def ros_program(spec: GuardSpec, watched: GuardedTopic, publishers: Sequence[str], site: LoadSite) -> GuardProgram:
    """Returns `ldos_guard`'s program over the stack's middleware.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    sourced = {**os.environ, **site.environment}
    find_ros_packages([PACKAGE], environment=sourced).demand()
    prefix = find_ros_package(PACKAGE, sourced)
    assert prefix is not None
    named: dict[str, object] = {"publishers": list(publishers)} if publishers else {}
    clock: dict[str, object] = {"use_sim_time": True} if site.has_simulated_clock else {}
    parameters = {**_parameters(spec, watched), **named, **clock}
    program = prefix / "lib" / PACKAGE / NAME
    return GuardProgram(ros_command(program, NAME, **parameters), site.environment)


def _parameters(spec: GuardSpec, watched: GuardedTopic) -> dict[str, object]:
    return {
        "topic": watched.topic,
        "type": watched.type,
        "deadline_ms": float(watched.deadline_ms),
        "silence_ms": float(spec.silence_ms),
        "window_ms": float(spec.window_ms),
        "late_share": float(spec.late_share),
        "least_share": float(spec.least_share),
        "decrease": float(spec.decrease),
        "calm_windows": spec.calm_windows,
        "increase": float(spec.increase),
        "parameter": spec.parameter,
        "report_period_s": _REPORT_PERIOD_S,
        "seconds": LONGEST_S,
    }


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
        return (
            f"guard of {self.topic}: {self.late} of {self.received} messages later than {self.deadline_ms:g} ms"
            f"{f', {self.silent_windows} silent windows' if self.silent_windows else ''}; {self._deeds}"
            f"{self._missing_words}"
        )

    @property
    def _missing_words(self) -> str:
        return f"; not obeyed by {', '.join(self.missing)}" if self.missing else ""

    @property
    def _deeds(self) -> str:
        if not self.decreases:
            return f"never throttled {_publishers(self.obedient)}"
        return (
            f"throttled {_publishers(self.obedient)} for {self.throttled_s:.1f} of {self.seconds:.1f} s, to "
            f"{100 * self.least:.0f} % at the least, {100 * self.share:.0f} % in the mean"
        )


def _publishers(count: int) -> str:
    return f"{count} publisher{'' if count == 1 else 's'}"


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
    return GuardProof(
        kind=spec.KIND,
        seconds=seconds,
        shortfall=failure or group.shortfall or _shortfall(watched, history, received, seconds),
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
        shares=_second_by_second(history, begin.mono_ns, end.mono_ns),
        decreases=end.decreases - begin.decreases,
        increases=end.increases - begin.increases,
        obedient=history.obedient,
        missing=history.missing,
    )


def _shortfall(watched: GuardedTopic, history: GuardHistory, received: int, seconds: float) -> str:
    if seconds > 0 and not received:
        return f"the guard heard nothing on {watched.topic}"
    if history.publishers and not history.obedient:
        return f"no publisher obeyed the guard ({'; '.join(history.missing)})"
    return ""


def _mean(stretches: Sequence[tuple[int, int, float]], otherwise: float) -> float:
    total_ns = sum(end_ns - begin_ns for begin_ns, end_ns, _ in stretches)
    if not total_ns:
        return otherwise
    return sum((end_ns - begin_ns) * share for begin_ns, end_ns, share in stretches) / total_ns


def _second_by_second(history: GuardHistory, begin_ns: int, end_ns: int) -> tuple[float, ...]:
    return tuple(
        round(_mean(history.shares(ns, min(ns + NS_PER_S, end_ns)), 1.0), 3) for ns in range(begin_ns, end_ns, NS_PER_S)
    )


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
            self._failure = self._failure or self._what_failed()
            return build_proof(
                self.spec,
                self._watched,
                self._history,
                first=self._stream.first,
                last=self._stream.last,
                failure=self._failure,
                group=self._group_found,
            )

    def _what_failed(self) -> str:
        if self._child.exit_code is not None:
            return self._child.describe_end()
        return self._stream.find_fault()

    def await_begin(self) -> None:
        """Waits until the guard has received a message of its path, then begins the measurement.

        Raises:
            LoadFailed: it does not start, or receives nothing.
        """
        with self._history.lock:
            self._await_report()
            deadline = time.monotonic() + _HEARING_TIMEOUT_S
            while not self._stream.has_begun and time.monotonic() < deadline and self._child.exit_code is None:
                self._history.lock.wait(_POLL_S)
            self._require_running()
            if not self._stream.has_begun:
                raise LoadFailed(
                    f"the guard heard nothing on {self._watched.topic} within {_HEARING_TIMEOUT_S:.0f} s",
                    remedy=f"guard a topic on which the stack sends {self._watched.type} all the time",
                )
            self._stream.mark()
            self._history.begin()
        self._group_found = read_group(self.spec.group, [self._child.pid], self._site) or NOT_READ

    def _await_report(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self._stream.last is None and time.monotonic() < deadline and self._child.exit_code is None:
            self._history.lock.wait(_POLL_S)
        self._require_running()
        if self._stream.last is None:
            words = self._child.last_lines()
            raise LoadFailed(f"the guard did not start within {_START_TIMEOUT_S:.0f} s", details=words)

    def _require_running(self) -> None:
        if self._child.exit_code is not None:
            raise LoadFailed(
                self._child.describe_end(), remedy="look at what it says", details=self._child.last_lines()
            )


@contextmanager
def run_guard(spec: GuardSpec, site: LoadSite) -> Iterator[RunningGuard]:
    """Guards a path inside the ``with`` block; afterwards publishers may use their whole rate again.

    Raises:
        ConfigurationError: there is no publisher to throttle or no such path, or its messages carry no stamp.
        Unavailable: the guard's program is not installed.
        LoadFailed: it does not start, or receives nothing of its path.
    """
    watched, publishers = guarded_topic(spec, site.paths), publishers_of(spec, site)
    is_ros = site.kind is StackKind.ROS2
    program = (ros_program if is_ros else embedded_program)(spec, watched, publishers, site)
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


LOAD: Final = Load(run=run_guard, package=PACKAGE, proof=GuardProof)
