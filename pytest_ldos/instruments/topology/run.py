"""One start of a topology, from the start of its processes to their end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import NS_PER_MS, seconds_to_ns
from pytest_ldos.base.writable import writing
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.topology.recorded import Recorded, ResourceSample
from pytest_ldos.instruments.topology.spec import Layer, TopologySpec
from pytest_ldos.robot.dds.domain import bound_to_loopback, claim_domain
from pytest_ldos.robot.stack.ros2.isolation import SharedMemory, isolated
from pytest_ldos.robot.topology.conversation import Conversation, ProcessEnded, encode_plan, read_samples, spread
from pytest_ldos.robot.topology.model import Topology
from pytest_ldos.scenario.model import Ros2Spec

ROS_PACKAGE: Final = "ldos_topology"
"""Package of the workspace `ros_ws`."""

_MODULE: Final = "pytest_ldos.robot.topology.embedded_process"
_HEAD_START_NS: Final = 200 * NS_PER_MS
_HEAD_START_OF_EACH_NS: Final = 20 * NS_PER_MS
"""Time for all processes to read the start time."""

_REPORT_LIMIT_S: Final = 10.0
_DRAIN_LIMIT_S: Final = 5.0
_END_LIMIT_S: Final = 2.0
_SAMPLES: Final = ".samples"


@dataclass(frozen=True)
class Patience:
    """Time limit for discovery of a topology's processes, which start slowly on few CPUs."""

    base_s: float = 30.0
    process_s: float = 3.0

    def limit_s(self, processes: int) -> float:
        return self.base_s + self.process_s * processes


USUAL: Final = Patience()


def run_topology(topology: Topology, spec: TopologySpec, *, patience: Patience = USUAL) -> Recorded:
    """Starts all processes, lets them send, and ends them.

    Every wait has a limit: if processes do not find each other, or end too early, the result has a `failure`.

    Raises:
        Unavailable: no domain is free, or the workspace is not sourced.
    """
    with claim_domain() as domain, temporary_folder("ldos-topology-") as folder:
        launched_ns = time.monotonic_ns()
        with _processes(topology, spec, domain, folder) as children, Conversation(children) as conversation:
            course = _Course(conversation, spec, patience)
            course.take()
        return course.recorded(launched_ns, folder)


@contextmanager
def _processes(topology: Topology, spec: TopologySpec, domain: int, folder: Path) -> Iterator[Sequence[Child]]:
    """Runs all processes of a start in the ``with`` block."""
    is_ros2 = spec.layer is Layer.ROS2
    shared_memory = SharedMemory()
    with ExitStack() as resources:
        environment: Mapping[str, str] = bound_to_loopback()
        if is_ros2:
            resources.callback(shared_memory.remove_left_behind)
            isolation = isolated(Ros2Spec(rmw=spec.rmw), domain=domain, log_directory=folder)
            environment = resources.enter_context(isolation).environment
        group = ProcessGroup(log_directory=folder, environment=environment)
        resources.callback(group.stop)
        for number, process in enumerate(spread(topology, spec.processes)):
            file = folder / f"{number}.json"
            plan = encode_plan(
                topology,
                process.nodes,
                samples=str(folder / f"{number}{_SAMPLES}"),
                sampling_ns=seconds_to_ns(spec.sampling),
                intra_process=spec.intra_process,
            )
            with writing(file):
                file.write_text(json.dumps(plan), "utf-8")
            group.start(process.name, _ros2_command(file) if is_ros2 else _embedded_command(file, domain), talk=True)
        yield group.children


def _embedded_command(plan: Path, domain: int) -> list[str]:
    return [sys.executable, "-m", _MODULE, json.dumps({"domain": domain, "plan": str(plan)})]


def _ros2_command(plan: Path) -> list[str]:
    find_ros_packages([ROS_PACKAGE]).demand()
    prefix = find_ros_package(ROS_PACKAGE)
    assert prefix is not None
    return [str(prefix / "lib" / ROS_PACKAGE / "topology_process"), str(plan)]


@dataclass
class _Course:
    """Course of a start while its processes run."""

    conversation: Conversation
    spec: TopologySpec
    patience: Patience
    start_ns: int = 0
    end_ns: int = 0
    ended_ns: int = 0
    failures: list[str] = field(default_factory=list)

    def take(self) -> None:
        try:
            if self._await_peers():
                self._send()
        except ProcessEnded as ended:
            self._note_end(ended)
        if self.start_ns:
            self._drain()

    def _await_peers(self) -> bool:
        late = self.conversation.await_all("matched", limit_s=self.patience.limit_s(len(self.conversation.reports)))
        if late:
            waiting = {name: report["for"] for name, report in self.conversation.reports_of("waiting") if name in late}
            named = ", ".join(each for ends in waiting.values() for each in ends[:3]) or ", ".join(late)
            self.failures.append(f"these did not meet their peers: {named}")
        return not late

    def _send(self) -> None:
        head_start_ns = _HEAD_START_NS + _HEAD_START_OF_EACH_NS * len(self.conversation.reports)
        self.start_ns = time.monotonic_ns() + head_start_ns
        self.end_ns = self.ended_ns = self.start_ns + seconds_to_ns(self.spec.seconds)
        self.conversation.tell({"start_ns": self.start_ns, "end_ns": self.end_ns})
        late = self.conversation.await_all("sent", limit_s=self.spec.seconds + _REPORT_LIMIT_S)
        if late:
            self.ended_ns = self.start_ns  # its messages are not valid
            self.failures.append(f"{', '.join(late)} did not come to an end")

    def _note_end(self, ended: ProcessEnded) -> None:
        if self.start_ns:
            self.ended_ns = min(self.end_ns, ended.at_ns)
            after = f"{(ended.at_ns - self.start_ns) / 1e9:.1f} s after messages began"
            self.failures.append(f"{ended.message} {after}")
        else:
            details = f": {ended.details}" if ended.details else ""
            self.failures.append(f"{ended.message} before messages began{details}")

    def _drain(self) -> None:
        """Makes all processes wait for messages in transit, and stops those that are still sending."""
        sent = {} if self.failures else {str(number): count for number, count in self._sent().items()}
        self.conversation.tell({"drain": sent})
        self.conversation.await_all("done", limit_s=_DRAIN_LIMIT_S, tolerant=True)
        self.conversation.await_end(limit_s=_END_LIMIT_S)

    def _sent(self) -> dict[int, int]:
        return {
            int(number): count
            for _, report in self.conversation.reports_of("sent")
            for number, count in report["counts"].items()
        }

    def recorded(self, launched_ns: int, folder: Path) -> Recorded:
        resources: dict[str, list[ResourceSample]] = {name: [] for name in self.conversation.reports}
        for name, report in self.conversation.reports_of("resources"):
            resources[name].append(ResourceSample(**{key: value for key, value in report.items() if key != "event"}))
        return Recorded(
            launched_ns=launched_ns,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            ended_ns=self.ended_ns,
            matched_ns={name: report["mono_ns"] for name, report in self.conversation.reports_of("matched")},
            sent=self._sent(),
            samples=read_samples(sorted(folder.glob(f"*{_SAMPLES}"))),
            resources={name: tuple(each) for name, each in resources.items()},
            failure="; ".join(self.failures),
        )
