"""``ldos topology``: a declared graph of nodes, and the latency and loss of their messages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import chosen_rmw, find_distro, find_ros_packages, rmw_installed
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.study import Setting, Study
from pytest_ldos.instruments.topology.log_files import prepare_folder, write_log
from pytest_ldos.instruments.topology.presentation import MOST_EVENTS, figures_of_study, tables_of
from pytest_ldos.instruments.topology.recorded import Recorded
from pytest_ldos.instruments.topology.rounds import QUANTITIES, Analysis, analyse, find_shortfalls
from pytest_ldos.instruments.topology.run import ROS_PACKAGE, run_topology
from pytest_ldos.instruments.topology.spec import Layer, TopologySpec
from pytest_ldos.instruments.topology.target import MET, Target, judge_target, read_target, target_figures, target_table
from pytest_ldos.robot.dds.domain import MOST_PARTICIPANTS
from pytest_ldos.robot.stack.ros2.installed import version_of
from pytest_ldos.robot.topology.conversation import Processes
from pytest_ldos.robot.topology.model import Topology
from pytest_ldos.robot.topology.read import read_topology

_ROS_PACKAGES: Final = (ROS_PACKAGE, "ldos_topology_msgs")
_EMBEDDED: Final = ("cyclonedds", "rosbags")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_-]")


def available(spec: TopologySpec) -> Availability:
    """Reports if the requested layer is available here."""
    if spec.layer is Layer.EMBEDDED:
        return find_modules(_EMBEDDED, extra="embedded")
    found = find_ros_packages(_ROS_PACKAGES)
    return rmw_installed(_middleware(spec)) if found.ok else found


def read_asked(spec: TopologySpec) -> tuple[Topology, Target | None]:
    """Reads a spec's files before anything is started.

    Raises:
        ConfigurationError: a file cannot be read or is invalid, or there are more processes than a domain
            supports.
    """
    topology = read_topology(spec.file)
    if spec.processes is Processes.NODE and len(topology.nodes) > MOST_PARTICIPANTS:
        problem = f"{topology.name} has {len(topology.nodes)} nodes, and at most {MOST_PARTICIPANTS} processes can meet"
        raise ConfigurationError(problem, remedy="take one process for all of them")
    return topology, read_target(Path(spec.target)) if spec.target else None


def measure(spec: TopologySpec, progress: Progress) -> Study:
    """Runs the topology in each start; see `Instrument.measure`."""
    topology, target = read_asked(spec)
    if spec.log:
        prepare_folder(Path(spec.log))
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    progress.expect(spec.starts)
    starts = [_run(topology, spec, number, progress) for number in range(spec.starts)]
    cores = os.cpu_count() or 1
    case = case_of(topology, spec)
    analysis = analyse(topology, starts, spec.limits, case=case, rounds=spec.rounds, cores=cores)
    if spec.log:
        write_log(analysis, Path(spec.log))
    study = Study(
        instrument=INSTRUMENT.name,
        name=f"topology-{_NO_WORD.sub('_', topology.name)}",
        layer=str(spec.layer),
        middleware=_middleware(spec),
        started_at=started_at,
        settings=_settings(topology, spec),
        quantities=QUANTITIES,
        rounds=analysis.rounds,
        tables=tables_of(analysis),
        figures=figures_of_study(analysis),
        notes=(*find_shortfalls(topology, starts), *_notes(topology, spec, analysis)),
        versions=_versions(spec),
    )
    return study if target is None else _with_target(study, topology, target, analysis)


def _run(topology: Topology, spec: TopologySpec, number: int, progress: Progress) -> Recorded:
    again = f"start {number + 1} of {spec.starts}: " if spec.starts > 1 else ""
    progress.doing(f"{again}{len(topology.nodes)} nodes for {spec.seconds:g} s")
    recorded = run_topology(topology, spec)
    if recorded.failure:
        progress.note(recorded.failure)
    progress.step()
    return recorded


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


def _settings(topology: Topology, spec: TopologySpec) -> Mapping[str, Setting]:
    return {
        "topology": topology.name,
        "nodes": len(topology.nodes),
        "processes": str(spec.processes),
        "intra_process": spec.intra_process,
        "seconds": spec.seconds,
        "starts": spec.starts,
        "rounds": spec.rounds,
        "sampling": spec.sampling,
        "late_percentage": spec.late_percentage,
        "late_absolute": spec.late_absolute,
        "too_late_percentage": spec.too_late_percentage,
        "too_late_absolute": spec.too_late_absolute,
    }


def _notes(topology: Topology, spec: TopologySpec, analysis: Analysis) -> Iterator[str]:
    if len(analysis.events) > MOST_EVENTS:
        yield f"only the first {MOST_EVENTS} of {len(analysis.events)} events are shown; the log has all"
    if spec.layer is Layer.EMBEDDED:
        yield "the embedded layer is in Python, over Cyclone DDS: its latencies compare with themselves alone"
        ros2 = find_ros_packages(_ROS_PACKAGES)
        if not ros2.ok:
            yield f"rclcpp was not measured: {ros2.reason} ({ros2.remedy})"
        if len({node.executor for node in topology.nodes}) > 1:
            yield "executor_id counts for rclcpp only: nodes of one process of the embedded layer share an executor"
    if spec.processes is Processes.NODE:
        yield "memory is the sum over processes: what they share counts for each"


def _with_target(study: Study, topology: Topology, target: Target, analysis: Analysis) -> Study:
    judged = judge_target(target, analysis)
    other = f"the target {target.name} was made for {target.topology_file}, not for {topology.name}"
    return replace(
        study,
        tables=(target_table(target, judged), *study.tables),
        figures=(*target_figures(judged), *study.figures),
        missed=tuple(each.limit.name for each in judged if each.verdict != MET),
        notes=(*([other] if target.differs_from(topology) else []), *study.notes),
    )


def _middleware(spec: TopologySpec) -> str:
    if spec.layer is Layer.EMBEDDED:
        return "rmw_cyclonedds_cpp"
    return spec.rmw or chosen_rmw()


def _versions(spec: TopologySpec) -> Mapping[str, str]:
    if spec.layer is Layer.EMBEDDED:
        return dict(_python_versions(_EMBEDDED))
    distro = find_distro()
    found = {name: version_of(name, None) for name in ("rclcpp", _middleware(spec), ROS_PACKAGE)}
    return {**({"ros2": distro.name} if distro else {}), **{name: each for name, each in found.items() if each}}


def _python_versions(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


INSTRUMENT: Final = Instrument(
    name="topology", spec=TopologySpec, quantities=QUANTITIES, available=available, measure=measure
)
