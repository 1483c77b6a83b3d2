"""``ldos topology``: a declared graph of nodes, the latency and loss of their messages, and performance targets.

Reference: seed of this instrument, "Target performance": JSON with ``resources`` and ``latency_total``, whose keys are
columns of ``resources.txt`` and ``latency_total.txt``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.availability import Availability, chosen_rmw, find_distro, find_ros_packages, rmw_installed
from pytest_ldos.instruments import study
from pytest_ldos.instruments.cost_layers import (
    EMBEDDED_MIDDLEWARE,
    EMBEDDED_MODULES,
    Kind,
    embedded_available,
    ros_versions,
)
from pytest_ldos.instruments.topology.edges import Recorded
from pytest_ldos.instruments.topology.presentation import (
    MOST_EVENTS,
    figures_of_study,
    prepare_folder,
    tables_of,
    write_log,
)
from pytest_ldos.instruments.topology.rounds import MEMORY, QUANTITIES, Analysis, analyse, find_shortfalls
from pytest_ldos.instruments.topology.run import ROS_PACKAGE, TopologySpec, run_topology
from pytest_ldos.robot.dds.domain import MOST_PARTICIPANTS
from pytest_ldos.robot.topology.conversation import Processes
from pytest_ldos.robot.topology.located_json import read_located, read_source
from pytest_ldos.robot.topology.model import Topology, read_topology

MET: Final = "passed"
MISSED: Final = "failed"
UNKNOWN: Final = "not measured"

_WORDS: Final = ("topology_file", "platform", "additional_options", "comments")
_LONGEST_WORDS: Final = 10_000
_RESOURCES: Final = {"cpu[%]": "CPU", **{f"{name.removesuffix('_kb')}[KB]": "Memory" for name in MEMORY}}
_LATENESS: Final = ("late", "too_late", "lost")
_LATENCY: Final = {
    "mean[us]": "Mean latency",
    **{f"{name}[%]": "Shares of messages" for name in _LATENESS},
    **{f"{name}[#]": "Messages" for name in _LATENESS},
}
"""Titles of the limits' figures; limits with the same title share a figure."""

_UNITS: Final = {"us": "µs", "#": ""}


@dataclass(frozen=True)
class Limit:
    """An upper limit, with its name in the file (``cpu[%]``), the title of its figure, and the value if measured."""

    name: str
    figure: str
    most: float
    measured: float | None = None

    @property
    def unit(self) -> str:
        unit = self.name.partition("[")[2].removesuffix("]")
        return _UNITS.get(unit, unit)

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return UNKNOWN
        return MET if self.measured <= self.most else MISSED


@dataclass(frozen=True, kw_only=True)
class Target:
    """The content of a target file; `topology_file` is empty if not given."""

    name: str
    topology_file: str
    limits: tuple[Limit, ...]

    def differs_from(self, topology: Topology) -> bool:
        return bool(self.topology_file) and Path(self.topology_file).stem != topology.name


def read_target(file: Path) -> Target:
    """Reads a performance target; raises `ConfigurationError` with line and key if it is invalid."""
    root = read_located(read_source(file, "the target", remedy="name a file"), file.name)
    keys = root.members((*_WORDS, "resources", "latency_total"))
    words = {key: keys[key].word(longest=_LONGEST_WORDS) for key in _WORDS if key in keys}
    limits = []
    for key, known in (("resources", _RESOURCES), ("latency_total", _LATENCY)):
        for name, value in keys[key].members(known).items() if key in keys else ():
            most = value.number()
            if most < 0:
                value.refuse(f"is {value.shown}", remedy="it must be 0 or more")
            limits.append(Limit(name, known[name], most))
    if not limits:
        root.refuse("sets no limit", remedy='add one, as in "resources": {"cpu[%]": 15}')
    return Target(name=file.name, topology_file=words.get("topology_file", ""), limits=tuple(limits))


def judge_target(target: Target, analysis: Analysis) -> list[Limit]:
    """Compares each limit with CPU time up to each start's last sample, average memory, and total messages."""
    if analysis.failures:  # the usage of a failed start is unknown
        return list(target.limits)
    totals, usage = analysis.totals, analysis.usage
    measured = {"mean[us]": totals.mean_us}
    for name in _LATENESS:
        measured |= {f"{name}[#]": getattr(totals, name), f"{name}[%]": getattr(totals, f"{name}_percent")}
    if usage:
        measured["cpu[%]"] = fmean({each.start: each.cpu_percent for each in usage}.values())
        for name in MEMORY:
            measured[f"{name.removesuffix('_kb')}[KB]"] = fmean(getattr(each, name) for each in usage)
    return [replace(limit, measured=measured.get(limit.name)) for limit in target.limits]


def target_table(target: Target, judged: Sequence[Limit]) -> study.Table:
    rows = ((each.name, _whole(each.measured), _whole(each.most), each.verdict) for each in judged)
    return study.Table.of("limit, measured, at_most, verdict", rows, name="target", title=f"Target {target.name}")


def _whole(value: float | None) -> study.Cell:
    return round(value) if value is not None and value >= 1000 else value


def target_figures(judged: Sequence[Limit]) -> list[study.Figure]:
    """Returns bars of measured values, if there are any, next to their limits; related limits share a figure."""
    figures = []
    for title in dict.fromkeys(each.figure for each in judged):
        those = [each for each in judged if each.figure == title]
        measured = tuple(
            study.Point(place, each.measured) for place, each in enumerate(those) if each.measured is not None
        )
        allowed = tuple(study.Point(place, each.most) for place, each in enumerate(those))
        figures.append(
            study.Figure(
                name=f"target_{title.lower().replace(' ', '_')}",
                title=f"{title}: measured, and the target",
                x=study.Axis(title="limit", names=tuple(each.name for each in those)),
                y=study.Axis(title=title, unit=those[0].unit),
                curves=(study.Curve("measured", measured), study.Curve("target", allowed)),
                shape=study.Shape.BAR,
            )
        )
    return figures


_ROS_PACKAGES: Final = (ROS_PACKAGE, "ldos_topology_msgs")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_-]")
_SETTINGS: Final = (
    *("intra_process", "seconds", "starts", "rounds", "sampling"),
    *("late_percentage", "late_absolute", "too_late_percentage", "too_late_absolute"),
)


def available(spec: TopologySpec) -> Availability:
    if spec.layer is Kind.EMBEDDED:
        return embedded_available()
    found = find_ros_packages(_ROS_PACKAGES)
    return rmw_installed(_middleware(spec)) if found.ok else found


def read_asked(spec: TopologySpec) -> tuple[Topology, Target | None]:
    """Reads a spec's files; raises `ConfigurationError` also for more processes than a domain supports."""
    topology = read_topology(spec.file)
    if spec.processes is Processes.NODE and len(topology.nodes) > MOST_PARTICIPANTS:
        problem = f"{topology.name} has {len(topology.nodes)} nodes, and at most {MOST_PARTICIPANTS} processes can meet"
        raise ConfigurationError(problem, remedy="take one process for all of them")
    return topology, read_target(Path(spec.target)) if spec.target else None


def measure(spec: TopologySpec, progress: study.Progress) -> study.Study:
    topology, target = read_asked(spec)
    if spec.log:
        prepare_folder(Path(spec.log))
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    progress.expect(spec.starts)
    starts = []
    for number in range(spec.starts):
        again = f"start {number + 1} of {spec.starts}: " if spec.starts > 1 else ""
        progress.doing(f"{again}{len(topology.nodes)} nodes for {spec.seconds:g} s")
        recorded = run_topology(topology, spec)
        if recorded.failure:
            progress.note(recorded.failure)
        progress.step()
        starts.append(recorded)
    cores = os.cpu_count() or 1
    case = case_of(topology, spec)
    analysis = analyse(topology, starts, spec.limits, case=case, rounds=spec.rounds, cores=cores)
    if spec.log:
        write_log(analysis, Path(spec.log))
    judged = [] if target is None else judge_target(target, analysis)
    return study.Study(
        instrument=INSTRUMENT.name,
        name=f"topology-{_NO_WORD.sub('_', topology.name)}",
        layer=str(spec.layer),
        middleware=_middleware(spec),
        started_at=started_at,
        settings={
            "topology": topology.name,
            "nodes": len(topology.nodes),
            "processes": str(spec.processes),
            **{name: getattr(spec, name) for name in _SETTINGS},
        },
        quantities=QUANTITIES,
        rounds=analysis.rounds,
        tables=(*([] if target is None else [target_table(target, judged)]), *tables_of(analysis)),
        figures=(*target_figures(judged), *figures_of_study(analysis)),
        notes=tuple(_notes(topology, spec, analysis, starts, target)),
        versions=_versions(spec),
        missed=tuple(each.name for each in judged if each.verdict != MET),
    )


def case_of(topology: Topology, spec: TopologySpec) -> str:
    """Returns a name with everything that affects the numbers; a changed file is another case."""
    parts = [
        topology.name,
        topology.digest,
        "one process" if spec.processes is Processes.ONE else "a process a node",
        f"{spec.seconds / spec.rounds:g} s a round",
        f"late {spec.late_percentage:g}%/{spec.late_absolute:g}µs",
        f"too late {spec.too_late_percentage:g}%/{spec.too_late_absolute:g}µs",
    ]
    return ", ".join([*parts, *(["intra-process"] if spec.intra_process else [])])


def _notes(
    topology: Topology, spec: TopologySpec, analysis: Analysis, starts: Sequence[Recorded], target: Target | None
) -> Iterator[str]:
    if target is not None and target.differs_from(topology):
        yield f"the target {target.name} was made for {target.topology_file}, not for {topology.name}"
    yield from find_shortfalls(topology, starts)
    if len(analysis.events) > MOST_EVENTS:
        yield f"only the first {MOST_EVENTS} of {len(analysis.events)} events are shown; the log has all"
    if spec.layer is Kind.EMBEDDED:
        yield "the embedded layer is in Python, over Cyclone DDS: its latencies compare with themselves alone"
        ros2 = find_ros_packages(_ROS_PACKAGES)
        if not ros2.ok:
            yield f"rclcpp was not measured: {ros2.reason} ({ros2.remedy})"
        if len({node.executor for node in topology.nodes}) > 1:
            yield "executor_id counts for rclcpp only: nodes of one process of the embedded layer share an executor"
    if spec.processes is Processes.NODE:
        yield "memory is the sum over processes: what they share counts for each"


def _middleware(spec: TopologySpec) -> str:
    if spec.layer is Kind.EMBEDDED:
        return EMBEDDED_MIDDLEWARE
    return spec.rmw or chosen_rmw()


def _versions(spec: TopologySpec) -> Mapping[str, str]:
    if spec.layer is Kind.EMBEDDED:
        versions = {}
        for name in EMBEDDED_MODULES:
            with suppress(PackageNotFoundError):
                versions[name] = version(name)
        return versions
    distro = find_distro()
    return {**({"ros2": distro.name} if distro else {}), **ros_versions("rclcpp", _middleware(spec), ROS_PACKAGE)}


INSTRUMENT: Final = study.Instrument(
    name="topology", spec=TopologySpec, quantities=QUANTITIES, available=available, measure=measure
)
