"""Chooses a stack's backend; only this module knows all of them. The backend for a topology is here, too."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.files import writing
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.availability import Availability, find_distro, find_modules
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.stack.embedded.backend import (
    EmbeddedBackend,
    NodesBackend,
    NodesStack,
    embedded_available,
    embedded_info,
    refuse_other_joints,
    tracepoints_available,
    versions_of,
)
from pytest_ldos.robot.stack.embedded.installed import installed_here
from pytest_ldos.robot.stack.goals import PANDA_GOALS, read_goals
from pytest_ldos.robot.stack.protocol import OURS, Installation, StackBackend, StackInfo
from pytest_ldos.robot.stack.ros2.backend import Ros2Backend
from pytest_ldos.robot.stack.ros2.installed import ros2_available, ros2_info
from pytest_ldos.robot.stack.ros2.running import RunningBackend
from pytest_ldos.robot.stack.ros2.stimuli import goals_of, plan_stimulus
from pytest_ldos.robot.stack.senders import WindowStimulus
from pytest_ldos.robot.topology.conversation import Conversation, ProcessEnded, Processes, encode_plan, spread
from pytest_ldos.robot.topology.model import Topology, read_topology
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind

_PARTS: Final = ("cyclonedds", "rosbags")
_MODULE: Final = "pytest_ldos.robot.topology.embedded_process"
_READY_S: Final = 30.0
_READY_OF_EACH_S: Final = 3.0
_HEAD_START_NS: Final = NS_PER_S // 5
_LONGEST_NS: Final = 24 * 3600 * NS_PER_S
_SAMPLING_NS: Final = 30 * NS_PER_S
"""Interval of the processes' self-reports, which are not read here; a pipe can hold those of hours."""


def topology_available() -> Availability:
    modules = find_modules(_PARTS, extra="embedded")
    return tracepoints_available(installed_here()) if modules.ok else modules


def topology_info(spec: StackSpec, installation: Installation = OURS) -> StackInfo:
    """Raises `ConfigurationError` if the file cannot be read, or is invalid."""
    topology = read_topology(spec.topology)
    return StackInfo(
        name=f"topology-{topology.name}",
        description=f"topology {topology.name} ({len(topology.nodes)} nodes, embedded layer)",
        rmw="cyclonedds",
        versions={**versions_of(installation), "topology": topology.digest},
    )


class TopologyBackend(NodesBackend):
    """See `StackBackend`. Each node is a separate process."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> NodesStack:
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
            self._run(process.name, _MODULE, {"domain": domain, "plan": str(file)}, talk=True)
        self._begin(topology)
        stack = NodesStack(domain, self._group, info=topology_info(self._spec, self._installation))
        stack.stimulus = WindowStimulus(self._spec.stimuli.window.seconds, self._group.describe_ended)
        return stack

    def _begin(self, topology: Topology) -> None:
        """Waits until all nodes have discovered each other, then starts their publishers."""
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


def resolve_kind(spec: StackSpec) -> StackKind:
    """Resolves `auto` to `ros2` for a user's launch file or if everything is installed, or else to `embedded`."""
    if spec.topology:
        return StackKind.EMBEDDED
    if spec.kind is not StackKind.AUTO:
        return StackKind.ROS2 if spec.kind is StackKind.RUNNING else spec.kind
    return StackKind.ROS2 if not spec.ros2.is_panda or ros2_available(spec).ok else StackKind.EMBEDDED


def demand_ros2(spec: StackSpec) -> StackSpec:
    """The same stack with `auto` resolved to `ros2`; raises `Unavailable` if that is not sourced."""
    if spec.kind is StackKind.EMBEDDED:
        return spec
    distro = find_distro()
    is_sourced = distro is not None and distro.is_sourced
    remedy = "source ROS 2, or name the stack without one: --ldos-stack=embedded"
    Availability(is_sourced, "a ROS 2 workspace is to be built, and no ROS 2 is sourced", remedy).demand()
    return dataclasses.replace(spec, kind=StackKind.ROS2)


def choose_backend(
    spec: StackSpec, *, recorder: Recorder, log_directory: Path, installation: Installation = OURS
) -> StackBackend:
    without_ros: Callable[..., StackBackend] = TopologyBackend if spec.topology else EmbeddedBackend
    of_ros: Callable[..., StackBackend] = RunningBackend if spec.ros2.is_running else Ros2Backend
    chosen = of_ros if resolve_kind(spec) is StackKind.ROS2 else without_ros
    return chosen(spec, recorder=recorder, log_directory=log_directory, installation=installation)


def stack_available(spec: StackSpec) -> Availability:
    if resolve_kind(spec) is StackKind.ROS2:
        return ros2_available(spec)
    return topology_available() if spec.topology else embedded_available()


def describe_stack(spec: StackSpec) -> StackInfo:
    if spec.topology:
        return topology_info(spec)
    return ros2_info(spec) if resolve_kind(spec) is StackKind.ROS2 else embedded_info(driver=spec.driver)


def require_goals(spec: StackSpec, name: str) -> None:
    """Raises `ConfigurationError` if the goal file is wrong, has no such set, or does not fit the robot."""
    if spec.topology or spec.stimulus is StimulusKind.WINDOW:
        return
    is_embedded = resolve_kind(spec) is StackKind.EMBEDDED
    if not spec.moves_arm:
        plan_stimulus(spec).book.cases(name)
        return
    book = (read_goals(Path(spec.goals)) if spec.goals else PANDA_GOALS) if is_embedded else goals_of(spec)
    for goal in (book.home, *book.goals(name)):
        if is_embedded:
            refuse_other_joints(goal)


def why_not_ros2(spec: StackSpec) -> str:
    """Returns why `auto` does not use the sourced ROS 2; empty if it does, or if none is sourced."""
    distro = find_distro()
    if distro is None or not distro.is_sourced or spec.kind is not StackKind.AUTO:
        return ""
    is_used = resolve_kind(spec) is StackKind.ROS2
    return "" if is_used else f"ROS 2 {distro.name} is sourced but not used: {ros2_available(spec).reason}"
