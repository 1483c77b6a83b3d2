"""Programs that can be measured here, and the common context of all rounds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.availability import Availability, find_modules, find_programs
from pytest_ldos.host.cpu import describe_cpus, our_cpus
from pytest_ldos.host.ros import find_distro, find_ros_packages, rmw_installed
from pytest_ldos.instruments.latency.case import TASKSET, Program, Setup, setups_of
from pytest_ldos.instruments.latency.cyclone import (
    DDSPERF,
    DDSPERF_PACKAGE,
    ROUTER,
    ROUTER_PACKAGE,
    Library,
    ddsperf_library,
    embedded_library,
)
from pytest_ldos.instruments.latency.spec import NO_CPU, LatencySpec, Transport
from pytest_ldos.instruments.latency.timings import histograms_available

ROS_PACKAGE: Final = "ldos_latency"
"""Package of the ROS workspace."""

_NATIVE: Final = "pytest_ldos.instruments.latency._pingpong"
_ON_RCLCPP: Final = (Program.RCLCPP_CYCLONE, Program.RCLCPP_FASTDDS)


@dataclass(frozen=True)
class Programs:
    """The available programs.

    Attributes:
        libraries: Cyclone DDS libraries by program.
        found: programs in the order of interleaving: compared ones are adjacent.
        notes: omitted programs, with reasons.
    """

    libraries: dict[Program, Library]
    found: tuple[Program, ...]
    notes: tuple[str, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Known versions of the measured programs."""
        known = {str(program): library.version for program, library in self.libraries.items() if library.version}
        distro = find_distro()
        if distro is not None and any(each.rmw for each in self.found):
            known["ROS 2"] = distro.name
        return known

    def for_setup(self, setup: Setup) -> list[Program]:
        """Returns the programs that support the setup's transport."""
        return [each for each in self.found if self.has_transport(each, setup.transport).ok]

    def has_transport(self, program: Program, transport: Transport) -> Availability:
        """True if a program supports a transport; shared memory needs Fast DDS, or Cyclone DDS with iceoryx."""
        if transport is not Transport.SHARED_MEMORY or program is Program.RCLCPP_FASTDDS:
            return Availability(True)
        if program is Program.RCLCPP_CYCLONE:
            return Availability(False, "rmw_cyclonedds_cpp has iceoryx for types of fixed size only")
        if program is Program.DDSPERF:
            return Availability(False, "its pings go by UDP there, too")
        library = self.libraries.get(program)
        if library is None:
            return Availability(False, "its library was not found")
        built = library.shares_memory
        return find_programs([ROUTER], package=ROUTER_PACKAGE) if built.ok else built


def find_all(spec: LatencySpec) -> Programs:
    """Finds the requested programs that can be measured here."""
    libraries: dict[Program, Library] = {}
    found: list[Program] = []
    notes: list[str] = []
    built = find_modules([_NATIVE], extra="embedded")
    own = embedded_library()
    if built.ok and own is not None:
        libraries[Program.CYCLONE] = own
        found.append(Program.CYCLONE)
    else:
        missing = f"{_NATIVE} was not built" if own is not None else "its package is not installed"
        notes.append(f"cyclonedds was not measured: {missing} (pip install 'pytest-ldos[embedded]')")
    if spec.ddsperf:
        _add_ddsperf(libraries, found, notes, has_ours=built.ok)
    if spec.ros:
        _add_rclcpp(found, notes)
    programs = Programs(libraries, tuple(found), tuple(notes))
    return Programs(libraries, tuple(found), (*notes, *_without_transport(programs, spec)))


def _add_ddsperf(libraries: dict[Program, Library], found: list[Program], notes: list[str], *, has_ours: bool) -> None:
    able = find_programs([DDSPERF], package=DDSPERF_PACKAGE)
    if not able.ok:
        notes.append(f"ddsperf was not measured: {able.reason} ({able.remedy})")
        return
    library = ddsperf_library()
    if library is None:
        notes.append("the library of ddsperf was not found: ours is measured over another one")
    elif has_ours:
        libraries[Program.TWIN] = library
        found.append(Program.TWIN)
        notes.append(f"{Program.TWIN}: our loop over the library that ddsperf is linked with ({library.path.name})")
    found.append(Program.DDSPERF)


def _add_rclcpp(found: list[Program], notes: list[str]) -> None:
    able = find_ros_packages([ROS_PACKAGE])
    if not able.ok:
        notes.append(f"rclcpp was not measured: {able.reason} ({able.remedy})")
        return
    for program in _ON_RCLCPP:
        installed = rmw_installed(program.rmw)
        if installed.ok:
            found.append(program)
        else:
            notes.append(f"{program} was not measured: {installed.reason} ({installed.remedy})")


def _without_transport(programs: Programs, spec: LatencySpec) -> list[str]:
    answers = [
        (program, transport, programs.has_transport(program, transport))
        for transport in spec.transport_list
        for program in programs.found
    ]
    return [
        f"{program} over {transport} was not measured: {able.reason}" + (f" ({able.remedy})" if able.remedy else "")
        for program, transport, able in answers
        if not able.ok
    ]


def available(spec: LatencySpec) -> Availability:
    """Reports if anything can be measured on the requested CPUs."""
    beyond = {spec.ping_cpu, spec.pong_cpu} - our_cpus() - {NO_CPU}
    if beyond:
        return Availability(
            False, f"CPU {min(beyond)} is not there for us", f"name one of {describe_cpus(our_cpus())}, or -1"
        )
    is_pinned = (spec.ping_cpu, spec.pong_cpu) != (NO_CPU, NO_CPU)
    for needed in (histograms_available(), find_programs([TASKSET] if is_pinned else [], package="util-linux")):
        if not needed.ok:
            return needed
    programs = find_all(spec)
    if any(programs.for_setup(setup) for setup in setups_of(spec)):
        return Availability(True)
    reasons = _without_transport(programs, spec) or programs.notes
    return Availability(False, "; ".join(reasons), "install one of these, or ask for another transport")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings, programs, and a folder for the files of the processes."""

    spec: LatencySpec
    programs: Programs
    folder: Path

    def without_priority(self) -> Site:
        """Returns the same site with the default scheduler."""
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, priority=0))
