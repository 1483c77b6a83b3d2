"""Installed Cyclone DDS libraries, their configuration, and the router for shared memory."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.instruments.latency.case import Setup
from pytest_ldos.instruments.latency.spec import Transport
from pytest_ldos.robot.dds.domain import bound_to_loopback, loopback_config

DDSPERF: Final = "ddsperf"
DDSPERF_PACKAGE: Final = "cyclonedds-tools"
ROUTER: Final = "iox-roudi"
ROUTER_PACKAGE: Final = "iceoryx"

_PACKAGE: Final = "cyclonedds"
_BINDING: Final = re.compile(r"_clayer\..*\bso")
_LINKED: Final = re.compile(r"^\s*libddsc[-.]\S* => (/.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
_VERSION: Final = re.compile(r"libddsc.*?\.so\.(\d+(?:\.\d+)*)$")


@dataclass(frozen=True)
class Library:
    """A build of Cyclone DDS's C library.

    Attributes:
        version: version in the file's name; empty if there is none.
    """

    path: Path
    version: str

    @property
    def shares_memory(self) -> Availability:
        """Reports if it was built with iceoryx (shared memory)."""
        if "libiceoryx_binding_c" in _dependencies(self.path):
            return Availability(True)
        return Availability(
            False,
            f"Cyclone DDS {self.version or 'here'} was built without shared memory ({self.path.name})",
            "use one that was built with iceoryx, as Debian's is",
        )


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
    if shutil.which("ldd") is None:
        return ""
    return subprocess.run(
        ["ldd", str(program)], capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=10
    ).stdout


def environment_of(setup: Setup) -> Mapping[str, str]:
    """Environment variables of processes with a Cyclone DDS library."""
    return {"CYCLONEDDS_URI": configuration(setup), **bound_to_loopback()}


def configuration(setup: Setup) -> str:
    """The value of ``CYCLONEDDS_URI``: loopback only, plus the setup's changes; later parts add to earlier ones."""
    parts = [loopback_config()]
    general = ""
    if setup.max_message_size:
        general += f"<MaxMessageSize>{setup.max_message_size} B</MaxMessageSize>"
    if setup.fragment_size:
        general += f"<FragmentSize>{setup.fragment_size} B</FragmentSize>"
    if general:
        parts.append(_domain(f"<General>{general}</General>"))
    if setup.transport is Transport.SHARED_MEMORY:
        parts.append(_domain("<SharedMemory><Enable>true</Enable></SharedMemory>"))
    return ",".join(parts)


def _domain(content: str) -> str:
    return f'<CycloneDDS><Domain id="any">{content}</Domain></CycloneDDS>'


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
    """Runs a router in the ``with`` block, unless the machine already has one.

    Raises:
        Unavailable: it does not start.
    """
    group = ProcessGroup(log_directory=folder)
    try:
        router = group.start(ROUTER, [ROUTER])
        _await_ready(router)
        yield
    finally:
        group.stop()
        _remove_segments(router)


def _remove_segments(router: Child) -> None:
    """Removes the segments of a router that did not end cleanly, for example because a sharing process was killed."""
    if router.exit_code == 0:
        return
    for name in _SEGMENT.findall(router.log.read_text("utf-8", errors="replace")):
        (_MEMORY / name).unlink(missing_ok=True)


def _await_ready(router: Child) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            router.process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if _READY in router.log.read_text("utf-8", errors="replace"):
                return
            continue
        if _THERE_ALREADY in router.log.read_text("utf-8", errors="replace"):
            return
        raise Unavailable(f"{router.describe_end()}: {router.last_lines()}", remedy=f"see whether {ROUTER} starts")
    raise Unavailable(f"{ROUTER} was not ready within {_TIMEOUT_S:g} s", remedy=f"see whether {ROUTER} starts")
