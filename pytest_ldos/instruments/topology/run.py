"""Settings of ``ldos topology``, and one start from the start of its processes to their end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.base.files import writing
from pytest_ldos.base.text import NS_PER_MS, seconds_to_ns
from pytest_ldos.host.availability import ros_program
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import Kind, environment_on, leaving_no_memory
from pytest_ldos.instruments.study import setting
from pytest_ldos.instruments.topology.edges import Limits, Recorded, ResourceSample
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.topology.conversation import (
    Conversation,
    ProcessEnded,
    Processes,
    encode_plan,
    read_samples,
    spread,
)
from pytest_ldos.robot.topology.model import Topology
from pytest_ldos.scenario.fields import described

LONGEST_S: Final = 3600.0
MOST_ROUNDS: Final = 1000
SHORTEST_ROUND_S: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class TopologySpec:
    """A topology, its duration, and limits of lateness."""

    file: str = field(
        metadata=described(
            "JSON, or the name of one of ours: pick_cell (10 nodes), packing_hall (20).", is_argument=True
        )
    )
    seconds: float = setting(10.0, "Seconds that messages are sent, in each start.", "--time", "-t", default=60.0)
    starts: int = setting(1, "Starts of all processes.")
    rounds: int = setting(10, "Parts of equal length of each start; each gives the numbers that are gated.")
    processes: Processes = setting(Processes.ONE, "One for all nodes, or one a node.")
    layer: Kind = setting(Kind.EMBEDDED, "Our node layer over Cyclone DDS, or rclcpp.")
    rmw: str = setting("", "Middleware of rclcpp. [default: that of the environment]")
    intra_process: bool = setting(False, "rclcpp hands messages over within a process.", "--ipc/--no-ipc")
    sampling: float = setting(0.5, "Seconds between two looks at CPU time and memory.")
    late_percentage: float = setting(
        20.0, "A message is late above this share of its period in %, or above late-absolute if that is less."
    )
    late_absolute: float = setting(
        5000.0, "A message is late above this time in µs, or above late-percentage if that is less."
    )
    too_late_percentage: float = setting(
        100.0, "It is too late above this share of its period in %, or above too-late-absolute if that is less."
    )
    too_late_absolute: float = setting(
        50_000.0, "It is too late above this time in µs, or above too-late-percentage if that is less."
    )
    target: str = setting("", "Performance to be reached: JSON with limits.", is_path=True)
    log: str = setting("", "Folder for latency_all.txt, latency_total.txt, resources.txt and events.txt.", is_path=True)

    def __post_init__(self) -> None:
        require(bool(self.file), "no topology is named", remedy="give a file, or the name of one of ours")
        seconds, to_an_hour = f"{self.seconds:g} seconds", f"ask for {SHORTEST_ROUND_S} s to an hour"
        require(SHORTEST_ROUND_S <= self.seconds <= LONGEST_S, f"{seconds} cannot be measured", remedy=to_an_hour)
        require(1 <= self.starts <= 100, f"{self.starts} starts cannot be made", remedy="ask for 1 to 100")
        rounds, most = f"{self.rounds} rounds", f"ask for 1 to {MOST_ROUNDS}"
        require(1 <= self.rounds <= MOST_ROUNDS, f"{rounds} cannot be cut", remedy=most)
        short = f"{seconds} cut into {rounds} give less than {SHORTEST_ROUND_S} s to each"
        fewer = f"ask for more seconds, or for {int(self.seconds / SHORTEST_ROUND_S)} rounds at most"
        require(self.seconds / self.rounds >= SHORTEST_ROUND_S, short, remedy=fewer)
        sampling = f"sampling is {self.sampling} s"
        require(0.05 <= self.sampling <= 60, sampling, remedy="it must lie between 0.05 and 60 s")
        rare = f"{sampling}, more than the {self.seconds} seconds of a start"
        require(self.sampling <= self.seconds, rare, remedy="look more often, or ask for more seconds")
        for name in ("late_percentage", "late_absolute", "too_late_percentage", "too_late_absolute"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name} is {value}", remedy="it must be above 0")
        if self.layer is Kind.EMBEDDED:
            remedy = "ask for layer ros2"
            require(not self.intra_process, "the embedded layer has no intra-process way", remedy=remedy)
            require(not self.rmw, "the embedded layer is Cyclone DDS, whatever rmw says", remedy=remedy)

    @property
    def limits(self) -> Limits:
        return Limits(
            late_percentage=self.late_percentage,
            late_absolute_us=self.late_absolute,
            too_late_percentage=self.too_late_percentage,
            too_late_absolute_us=self.too_late_absolute,
        )


ROS_PACKAGE: Final = "ldos_topology"

_MODULE: Final = "pytest_ldos.robot.topology.embedded_process"
_HEAD_START_NS: Final = 200 * NS_PER_MS
_HEAD_START_OF_EACH_NS: Final = 20 * NS_PER_MS  # time for all processes to read the start time
_MATCH_LIMIT_S: Final = 30.0
_MATCH_LIMIT_OF_EACH_S: Final = 3.0
_REPORT_LIMIT_S: Final = 10.0
_DRAIN_LIMIT_S: Final = 5.0
_END_LIMIT_S: Final = 2.0
_SAMPLES: Final = ".samples"


def run_topology(topology: Topology, spec: TopologySpec, *, match_limit_s: float = 0.0) -> Recorded:
    """Starts all processes, lets them send, and ends them; raises `Unavailable` without a free domain or workspace.

    Every wait has a limit: if processes do not find each other, or end too early, the result has a `failure`.
    """
    with claim_domain() as domain, temporary_folder("ldos-topology-") as folder:
        launched_ns = time.monotonic_ns()
        with _processes(topology, spec, domain, folder) as children, Conversation(children) as conversation:
            # Processes start slowly on few CPUs.
            limit_s = match_limit_s or _MATCH_LIMIT_S + _MATCH_LIMIT_OF_EACH_S * len(children)
            course = _Course(conversation, spec, limit_s)
            course.take()
        return course.recorded(launched_ns, folder)


@contextmanager
def _processes(topology: Topology, spec: TopologySpec, domain: int, folder: Path) -> Iterator[Sequence[Child]]:
    is_ros2 = spec.layer is Kind.ROS2
    with ExitStack() as resources:
        if is_ros2:
            resources.enter_context(leaving_no_memory())
        environment = environment_on(domain, spec.layer, spec.rmw, folder=folder, resources=resources)
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
            if is_ros2:
                command = [ros_program(ROS_PACKAGE, "topology_process"), str(file)]
            else:
                command = [sys.executable, "-m", _MODULE, json.dumps({"domain": domain, "plan": str(file)})]
            group.start(process.name, command, talk=True)
        yield group.children


@dataclass
class _Course:
    conversation: Conversation
    spec: TopologySpec
    match_limit_s: float
    start_ns: int = 0
    end_ns: int = 0
    ended_ns: int = 0
    failures: list[str] = field(default_factory=list)

    def take(self) -> None:
        try:
            if self._await_peers():
                self._send()
        except ProcessEnded as ended:
            if self.start_ns:
                self.ended_ns = min(self.end_ns, ended.at_ns)
                after = f"{(ended.at_ns - self.start_ns) / 1e9:.1f} s after messages began"
                self.failures.append(f"{ended.message} {after}")
            else:
                details = f": {ended.details}" if ended.details else ""
                self.failures.append(f"{ended.message} before messages began{details}")
        if self.start_ns:
            # All processes wait for messages in transit; those that are still sending stop.
            sent = {} if self.failures else {str(number): count for number, count in self._sent().items()}
            self.conversation.tell({"drain": sent})
            self.conversation.await_all("done", limit_s=_DRAIN_LIMIT_S, tolerant=True)
            self.conversation.await_end(limit_s=_END_LIMIT_S)

    def _await_peers(self) -> bool:
        late = self.conversation.await_all("matched", limit_s=self.match_limit_s)
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

    def _sent(self) -> dict[int, int]:
        reports = (report["counts"].items() for _, report in self.conversation.reports_of("sent"))
        return {int(number): count for counts in reports for number, count in counts}

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
