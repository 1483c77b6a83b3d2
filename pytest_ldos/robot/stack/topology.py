"""The backend for a topology: runs its nodes of the embedded layer during the measurement."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.base.writable import writing
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.domain import bound_to_loopback, claim_domain
from pytest_ldos.robot.stack.embedded.installed import installed_here, installed_in
from pytest_ldos.robot.stack.embedded.tracepoints import tracepoints_available
from pytest_ldos.robot.stack.protocol import OURS, Installation, StackInfo
from pytest_ldos.robot.stack.stimulus.protocol import Stimulus
from pytest_ldos.robot.stack.stimulus.senders import WindowStimulus
from pytest_ldos.robot.topology.conversation import Conversation, ProcessEnded, Processes, encode_plan, spread
from pytest_ldos.robot.topology.model import Topology
from pytest_ldos.robot.topology.read import read_topology
from pytest_ldos.scenario.model import StackSpec

_PARTS: Final = ("cyclonedds", "rosbags")
_MODULE: Final = "pytest_ldos.robot.topology.embedded_process"
_READY_S: Final = 30.0
_READY_OF_EACH_S: Final = 3.0
_HEAD_START_NS: Final = NS_PER_S // 5
_LONGEST_NS: Final = 24 * 3600 * NS_PER_S
_SAMPLING_NS: Final = 30 * NS_PER_S
"""Interval of the processes' self-reports, which are not read here; a pipe can hold those of hours."""


def topology_available() -> Availability:
    """Availability of everything that a topology needs, including tracepoints."""
    modules = find_modules(_PARTS, extra="embedded")
    return tracepoints_available(installed_here()) if modules.ok else modules


def topology_info(spec: StackSpec, installation: Installation = OURS) -> StackInfo:
    """Describes the stack without starting it.

    Raises:
        ConfigurationError: the file cannot be read, or is invalid.
    """
    topology = read_topology(spec.topology)
    found = installed_here() if installation.is_ours else installed_in(installation.interpreter)
    versions = {} if isinstance(found, str) else found.versions
    return StackInfo(
        name=f"topology-{topology.name}",
        description=f"topology {topology.name} ({len(topology.nodes)} nodes, embedded layer)",
        rmw="cyclonedds",
        versions={**versions, "topology": topology.digest},
    )


class TopologyBackend:
    """See `StackBackend`. Each node is a separate process; `recorder` records them."""

    def __init__(
        self, spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
    ) -> None:
        self._spec = spec
        self._logs = log_directory
        self._installation = installation
        self._resources = ExitStack()
        self._group = ProcessGroup(
            log_directory=log_directory,
            prefix=recorder.prefix,
            environment={**recorder.environment, **bound_to_loopback()},
        )

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> TopologyStack:
        topology_available().demand()
        topology = read_topology(self._spec.topology)
        domain = self._resources.enter_context(claim_domain())
        for number, process in enumerate(spread(topology, Processes.NODE)):
            plan = encode_plan(
                topology,
                process.nodes,
                samples=os.devnull,  # latencies come from the trace
                sampling_ns=_SAMPLING_NS,
                intra_process=False,
            )
            file = self._logs / f"{number}.json"
            with writing(file):
                file.write_text(json.dumps(plan), "utf-8")
            arguments = ("-m", _MODULE, json.dumps({"domain": domain, "plan": str(file)}))
            self._group.start(process.name, [*self._installation.interpreter, *arguments], talk=True)
        self._begin(topology)
        return TopologyStack(self._spec, domain, self._group, info=topology_info(self._spec, self._installation))

    def _begin(self, topology: Topology) -> None:
        """Waits until all nodes have discovered each other, then starts their publishers.

        Raises:
            BringUpFailed: discovery was incomplete, or a process ended.
        """
        conversation = self._resources.enter_context(Conversation(self._group.children))
        try:
            late = conversation.await_all("matched", limit_s=_READY_S + _READY_OF_EACH_S * len(topology.nodes))
        except ProcessEnded as ended:
            raise self._failed(ended.message) from None
        if late:
            raise self._failed(f"these did not meet their peers: {', '.join(late)}")
        begin_ns = time.monotonic_ns() + _HEAD_START_NS
        conversation.tell({"start_ns": begin_ns, "end_ns": begin_ns + _LONGEST_NS})

    def _failed(self, reason: str) -> BringUpFailed:
        return BringUpFailed(
            f"the topology did not start: {reason}",
            details=self._group.last_words(),
            remedy="look at the logs above, and at the load of this machine",
        )

    def stop(self) -> None:
        self._group.stop()
        self._resources.close()


class TopologyStack:
    """See `RunningStack`."""

    def __init__(self, spec: StackSpec, domain: int, group: ProcessGroup, *, info: StackInfo) -> None:
        self.info = info
        self.domain = domain
        self.environment: Mapping[str, str] = {}
        self._children: Sequence[Child] = tuple(group.children)
        self.stimulus: Stimulus = WindowStimulus(spec.stimuli.window.seconds, group.describe_ended)

    def pids(self) -> list[int]:
        return [child.pid for child in self._children]

    def processes(self) -> dict[int, str]:
        return {child.pid: child.name for child in self._children if child.exit_code is None}

    def all_processes(self) -> dict[int, str]:
        return {child.pid: child.name for child in self._children}

    def loop_statistics(self) -> Mapping[str, Moments]:
        return {}

    def settle(self) -> None:
        """Does nothing: the processes themselves report when they are ready."""
