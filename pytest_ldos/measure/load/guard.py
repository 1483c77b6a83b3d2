"""A guard alongside the stack: it measures the lateness of a path, and throttles publishers."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.measure.load.flood_reports import Guarded, ReportStream
from pytest_ldos.measure.load.guard_programs import NAME, PACKAGE, embedded_program, publishers_of, ros_program
from pytest_ldos.measure.load.guard_proof import GuardHistory, GuardProof, build_proof
from pytest_ldos.measure.load.protocol import Load, LoadSite
from pytest_ldos.measure.load.scheduler_group import NOT_READ, read_group
from pytest_ldos.scenario.loads.guard import GuardedTopic, GuardSpec, guarded_topic
from pytest_ldos.scenario.loads.spec import SchedulerGroup
from pytest_ldos.scenario.words import StackKind

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
        """Freezes the proof: a later end of the process is no failure."""
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
        """Returns when the guard has received a message of its path; measurement begins then.

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
    """Guards for as long as the context lasts; then the publishers may use their whole rate again.

    Raises:
        ConfigurationError: there is no publisher to throttle, or no such path, or its messages carry no stamp.
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
