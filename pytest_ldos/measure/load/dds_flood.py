"""A flood of DDS messages alongside the stack: several publishers and a counting receiver."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.flood_proof import PACKAGE, FloodProof, build_proof, embedded_programs, ros_programs
from pytest_ldos.measure.load.flood_reports import Received, ReportStream, Sent
from pytest_ldos.measure.load.protocol import NOT_READ, Load, LoadSite, read_group
from pytest_ldos.measure.load.traffic_control import is_impaired
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.scenario.loads.flood import DdsFloodSpec, FloodDomain
from pytest_ldos.scenario.loads.spec import SchedulerGroup
from pytest_ldos.scenario.words import StackKind

_READY_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1


class RunningFlood:
    """See `RunningLoad`."""

    def __init__(
        self,
        spec: DdsFloodSpec,
        *,
        counter: ReportStream[Received] | None,
        publishers: Sequence[ReportStream[Sent]],
        group: ProcessGroup,
        site: LoadSite,
        changed: threading.Condition,
    ) -> None:
        self.spec = spec
        self._counter = counter
        self._publishers = publishers
        self._group = group
        self._site = site
        self._group_found = NOT_READ
        self._changed = changed
        self._failure = ""
        self._is_impaired = False
        self._final: FloodProof | None = None

    @property
    def _streams(self) -> Sequence[ReportStream[Received] | ReportStream[Sent]]:
        return [*self._publishers, *([self._counter] if self._counter else [])]

    @property
    def proof(self) -> FloodProof:
        return self._final or self._measured()

    def close(self) -> None:
        """Freezes the proof, so that the end of the processes is no failure."""
        self._note_impairment()
        self._final = self._measured()

    def _measured(self) -> FloodProof:
        with self._changed:
            self._failure = self._failure or self._what_failed()
            return build_proof(
                self.spec,
                counter=self._counter,
                publishers=self._publishers,
                failure=self._failure,
                is_impaired=self._is_impaired,
                group=self._group_found,
            )

    def _note_impairment(self) -> None:
        if self.spec.domain == FloodDomain.SAME:
            self._is_impaired = self._is_impaired or is_impaired()

    def _what_failed(self) -> str:
        ended = self._group.ended()
        if ended:
            return ended[0].describe_end()
        return next((fault for stream in self._streams if (fault := stream.find_fault())), "")

    def await_begin(self) -> None:
        """Waits until every publisher sends and every topic is received, then begins the measurement.

        Raises:
            LoadFailed: a publisher or topic remained silent.
        """
        self._note_impairment()
        deadline = time.monotonic() + _READY_TIMEOUT_S
        with self._changed:
            while not all(stream.has_begun for stream in self._streams):
                left_s = deadline - time.monotonic()
                ended = self._group.describe_ended()
                if left_s <= 0 or ended:
                    raise LoadFailed(
                        ended or f"the flood did not {self._aim} within {_READY_TIMEOUT_S:.0f} s",
                        remedy="look at the logs of the flood's processes",
                        details=self._group.last_words(),
                    )
                self._changed.wait(min(left_s, _POLL_S))
            for stream in self._streams:
                stream.mark()
        pids = [child.pid for child in self._group.children]
        self._group_found = read_group(self.spec.group, pids, self._site) or NOT_READ

    @property
    def _aim(self) -> str:
        return "arrive at its receiver" if self._counter else "begin"


@contextmanager
def run_dds_flood(spec: DdsFloodSpec, site: LoadSite) -> Iterator[RunningFlood]:
    """Floods the domain inside the ``with`` block.

    Raises:
        Unavailable: a program of the flood is not installed.
        LoadFailed: no message of some publisher arrived.
    """
    with ExitStack() as resources:
        domain = resources.enter_context(claim_domain()) if spec.domain == FloodDomain.OTHER else site.domain
        is_ros = site.kind is StackKind.ROS2
        if is_ros:
            programs = ros_programs(spec, domain=domain, environment=site.environment)
        else:
            programs = embedded_programs(spec, domain=domain)
        group = ProcessGroup(
            log_directory=site.log_directory,
            prefix=site.recorder.prefix,
            environment={**programs.environment, **site.recorder.environment},
            death_signal=signal.SIGINT if is_ros else signal.SIGKILL,
            own_session=spec.group == SchedulerGroup.OWN,
        )
        resources.callback(group.stop)
        changed = threading.Condition()
        counter = None
        if spec.readers:
            counter = ReportStream(group.start("flood_counter", programs.counter, talk=True), Received.parse, changed)
        publishers = [
            ReportStream(group.start(name, command, talk=True), Sent.parse, changed)
            for name, command in programs.publishers.items()
        ]
        flood = RunningFlood(spec, counter=counter, publishers=publishers, group=group, site=site, changed=changed)
        resources.callback(flood.close)
        flood.await_begin()
        yield flood


LOAD: Final = Load(run=run_dds_flood, package=PACKAGE, proof=FloodProof)
