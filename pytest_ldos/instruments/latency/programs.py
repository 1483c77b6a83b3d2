"""Programs and libraries that can be measured here, and the common context of all rounds."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from itertools import product
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import (
    Availability,
    find_distro,
    find_modules,
    find_programs,
    find_ros_packages,
    rmw_installed,
    run_program,
)
from pytest_ldos.host.cpu import describe_cpus, our_cpus
from pytest_ldos.host.processes import Child, ProcessGroup, comes_true
from pytest_ldos.instruments.latency.findings import histograms_available
from pytest_ldos.instruments.latency.spec import NO_CPU, TASKSET, LatencySpec, Program, Setup, Transport, setups_of
from pytest_ldos.robot.dds.domain import bound_to_loopback, loopback_config

DDSPERF: Final = "ddsperf"
ROUTER: Final = "iox-roudi"

_PACKAGE: Final = "cyclonedds"
_BINDING: Final = re.compile(r"_clayer\..*\bso")
_LINKED: Final = re.compile(r"^\s*libddsc[-.]\S* => (/.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
_VERSION: Final = re.compile(r"libddsc.*?\.so\.(\d+(?:\.\d+)*)$")


@dataclass(frozen=True)
class Library:
    """A build of Cyclone DDS's C library; `version` is that in the file's name, empty if there is none."""

    path: Path
    version: str

    @property
    def shares_memory(self) -> Availability:
        """Reports if it was built with iceoryx (shared memory)."""
        if "libiceoryx_binding_c" in _dependencies(self.path):
            return Availability(True)
        problem = f"Cyclone DDS {self.version or 'here'} was built without shared memory ({self.path.name})"
        return Availability(False, problem, "use one that was built with iceoryx, as Debian's is")


def embedded_library() -> Library | None:
    """Returns the library that the embedded stack uses through the ``cyclonedds`` package; ``None`` without it."""
    try:
        binding = next(each for each in files(_PACKAGE) or [] if _BINDING.fullmatch(each.name))
    except (PackageNotFoundError, StopIteration):
        return None
    path = _linked_library(Path(str(binding.locate())))
    return None if path is None else Library(path, version(_PACKAGE))


def ddsperf_library() -> Library | None:
    """Returns the library that ``ddsperf`` is linked with; ``None`` without it."""
    program = shutil.which(DDSPERF)
    path = None if program is None else _linked_library(Path(program))
    if path is None:
        return None
    known = _VERSION.search(path.name)
    return Library(path, known[1] if known else "")


def _linked_library(program: Path) -> Path | None:
    linked = _LINKED.search(_dependencies(program))
    return None if linked is None else Path(linked[1]).resolve()


def _dependencies(program: Path) -> str:
    """Returns the dynamic linker's list for a program; empty if it is not available."""
    return "" if shutil.which("ldd") is None else run_program(["ldd", str(program)], timeout_s=10).stdout


def environment_of(setup: Setup) -> Mapping[str, str]:
    return {"CYCLONEDDS_URI": configuration(setup), **bound_to_loopback()}


def configuration(setup: Setup) -> str:
    """The value of ``CYCLONEDDS_URI``: loopback only, plus the setup's changes; later parts add to earlier ones."""
    general = ""
    if setup.max_message_size:
        general += f"<MaxMessageSize>{setup.max_message_size} B</MaxMessageSize>"
    if setup.fragment_size:
        general += f"<FragmentSize>{setup.fragment_size} B</FragmentSize>"
    changes = [f"<General>{general}</General>"] if general else []
    if setup.transport is Transport.SHARED_MEMORY:
        changes.append("<SharedMemory><Enable>true</Enable></SharedMemory>")
    domains = (f'<CycloneDDS><Domain id="any">{change}</Domain></CycloneDDS>' for change in changes)
    return ",".join([loopback_config(), *domains])


_READY: Final = "RouDi is ready for clients"
_THERE_ALREADY: Final = "still running"
_SEGMENT: Final = re.compile(
    r"Reserving \d+ bytes in the shared memory \[([\w.-]+)\]\s+\[ Reserving shared memory successful \]"
)
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the kernel's path
_TIMEOUT_S: Final = 10.0
_LOOK_S: Final = 0.05


@contextmanager
def running_router(folder: Path) -> Iterator[None]:
    """Runs a router in the ``with`` block, unless the machine has one; raises `Unavailable` if it does not start."""
    group = ProcessGroup(log_directory=folder)
    try:
        router = group.start(ROUTER, [ROUTER])
        _await_ready(router)
        yield
    finally:
        group.stop()
        if router.exit_code != 0:  # it did not end cleanly, for example because a sharing process was killed
            for name in _SEGMENT.findall(router.log.read_text("utf-8", errors="replace")):
                (_MEMORY / name).unlink(missing_ok=True)


def _await_ready(router: Child) -> None:
    def has_printed(words: str) -> bool:
        return words in router.log.read_text("utf-8", errors="replace")

    if not comes_true(lambda: router.exit_code is not None or has_printed(_READY), limit_s=_TIMEOUT_S, poll_s=_LOOK_S):
        raise Unavailable(f"{ROUTER} was not ready within {_TIMEOUT_S:g} s", remedy=f"see whether {ROUTER} starts")
    if router.exit_code is not None and not has_printed(_THERE_ALREADY):
        raise Unavailable(f"{router.describe_end()}: {router.last_lines()}", remedy=f"see whether {ROUTER} starts")


ROS_PACKAGE: Final = "ldos_latency"

_NATIVE: Final = "pytest_ldos.instruments.latency._pingpong"
_ON_RCLCPP: Final = (Program.RCLCPP_CYCLONE, Program.RCLCPP_FASTDDS)


@dataclass(frozen=True)
class Programs:
    """The available programs in the order of interleaving, their Cyclone DDS libraries, and notes on others."""

    libraries: dict[Program, Library]
    found: tuple[Program, ...]
    notes: tuple[str, ...]

    @property
    def versions(self) -> dict[str, str]:
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
        return find_programs([ROUTER], package="iceoryx") if built.ok else built


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
        workspace = find_ros_packages([ROS_PACKAGE])
        if not workspace.ok:
            notes.append(f"rclcpp was not measured: {workspace.reason} ({workspace.remedy})")
        for program in _ON_RCLCPP if workspace.ok else ():
            installed = rmw_installed(program.rmw)
            if installed.ok:
                found.append(program)
            else:
                notes.append(f"{program} was not measured: {installed.reason} ({installed.remedy})")
    programs = Programs(libraries, tuple(found), tuple(notes))
    return Programs(libraries, tuple(found), (*notes, *_without_transport(programs, spec)))


def _add_ddsperf(libraries: dict[Program, Library], found: list[Program], notes: list[str], *, has_ours: bool) -> None:
    able = find_programs([DDSPERF], package="cyclonedds-tools")
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


def _without_transport(programs: Programs, spec: LatencySpec) -> list[str]:
    notes = []
    for transport, program in product(spec.transport_list, programs.found):
        able = programs.has_transport(program, transport)
        if not able.ok:
            remedy = f" ({able.remedy})" if able.remedy else ""
            notes.append(f"{program} over {transport} was not measured: {able.reason}{remedy}")
    return notes


def available(spec: LatencySpec) -> Availability:
    """Reports if anything can be measured on the requested CPUs."""
    beyond = {spec.ping_cpu, spec.pong_cpu} - our_cpus() - {NO_CPU}
    if beyond:
        remedy = f"name one of {describe_cpus(our_cpus())}, or -1"
        return Availability(False, f"CPU {min(beyond)} is not there for us", remedy)
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
    spec: LatencySpec
    programs: Programs
    folder: Path
