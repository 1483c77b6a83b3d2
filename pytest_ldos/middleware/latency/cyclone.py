"""Cyclone DDS as it is measured: which libraries there are, how they are configured, whether they share memory."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Final

from pytest_ldos.dds.domain import loopback_config
from pytest_ldos.host.availability import Availability
from pytest_ldos.middleware.latency.case import Setup
from pytest_ldos.middleware.latency.spec import Transport

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
        version: empty where its name does not tell.
    """

    path: Path
    version: str

    @property
    def shares_memory(self) -> Availability:
        """Whether it was built to hand messages over in shared memory, with iceoryx."""
        if "libiceoryx_binding_c" in _dependencies(self.path):
            return Availability(True)
        return Availability(
            False,
            f"Cyclone DDS {self.version or 'here'} was built without shared memory ({self.path.name})",
            "use one that was built with iceoryx, as Debian's is",
        )


def embedded_library() -> Library | None:
    """What the embedded stack uses, through the ``cyclonedds`` package; ``None`` without it."""
    try:
        binding = next(each for each in files(_PACKAGE) or [] if _BINDING.fullmatch(each.name))
    except (PackageNotFoundError, StopIteration):
        return None
    path = _linked_library(Path(str(binding.locate())))
    return None if path is None else Library(path, version(_PACKAGE))


def ddsperf_library() -> Library | None:
    """What ``ddsperf`` is linked with; ``None`` without it."""
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
    """What the dynamic linker says of it; empty where that is not to be had."""
    if shutil.which("ldd") is None:
        return ""
    return subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False, timeout=10).stdout


def configuration(setup: Setup) -> str:
    """The value of ``CYCLONEDDS_URI``: loopback alone, and what the setup changes; later parts add to earlier ones."""
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
