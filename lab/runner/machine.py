"""State in which the machine measures: idle, not in use, and set as it should be.

Reference: the kernel's ``proc(5)``, ``Documentation/admin-guide/pm/cpufreq.rst``, ``intel_pstate.rst``.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from lab.runner.allow_list import Demands
from lab.runner.refusal import Refused, quoted

_WINDOW_S: Final = 1.0
_IDLE_FIELDS: Final = (3, 4)
"""Fields of the first line of ``/proc/stat``: idle, and waiting for a disk."""

_CPU: Final = "sys/devices/system/cpu"
_CREDENTIALS: Final = struct.Struct("3i")


def require_machine(demands: Demands, *, root: Path = Path("/"), sleep: Callable[[float], None] = time.sleep) -> None:
    """Returns if a measurement can begin.

    Args:
        root: of the kernel's files.
        sleep: lets a window pass.

    Raises:
        Refused: why none can.
    """
    require_settings(demands.settings, root)
    require_free(demands.lock)
    require_idle(demands, root, sleep)


def require_settings(settings: Mapping[str, str], root: Path) -> None:
    """Refuses another value, and one that cannot be read."""
    for name, wanted in settings.items():
        found = _READERS[name](root)
        if found != wanted:
            raise Refused(f"this machine has {name} {quoted(found)} instead of {wanted}")


def _read(file: Path) -> str:
    try:
        return file.read_text("ascii", errors="replace").strip()
    except OSError:
        return "unknown"


def _read_governor(root: Path) -> str:
    """Governor of all CPUs; several where they differ."""
    found = sorted({_read(file) for file in (root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_governor")})
    return ", ".join(found) or "unknown"


def _read_turbo(root: Path) -> str:
    """Intel's own driver has a switch that says the opposite of everybody else's."""
    no_turbo = _read(root / _CPU / "intel_pstate/no_turbo")
    if no_turbo != "unknown":
        return {"1": "off", "0": "on"}.get(no_turbo, "unknown")
    return {"1": "on", "0": "off"}.get(_read(root / _CPU / "cpufreq/boost"), "unknown")


def _read_smt(root: Path) -> str:
    return {"1": "on", "0": "off"}.get(_read(root / _CPU / "smt/active"), "unknown")


_READERS: Final[Mapping[str, Callable[[Path], str]]] = {
    "governor": _read_governor,
    "turbo": _read_turbo,
    "smt": _read_smt,
}


def require_free(lock: str) -> None:
    """Requires that no process listens on the socket of a measuring session (``pytest_ldos.host.lock``)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_WINDOW_S)
        try:
            probe.connect(f"\0{lock}")
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                return
            raise Refused(f"the lock of measurements cannot be read: {error.strerror or error}") from None
        pid, _, _ = _CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    raise Refused(f"another measurement holds this machine (process {pid})")


def require_idle(demands: Demands, root: Path, sleep: Callable[[float], None]) -> None:
    """One window of little use is enough; until then what the job before left behind may end."""
    busiest = 1.0
    for _ in range(1 + round(demands.settle_s / _WINDOW_S)):
        busiest = _busy_share(root, sleep)
        if busiest <= demands.max_busy:
            return
    raise Refused(
        f"this machine is busy: {100 * busiest:.0f} % of its CPUs' time is used, "
        f"{100 * demands.max_busy:.0f} % may be (waited {demands.settle_s:.0f} s)"
    )


def _busy_share(root: Path, sleep: Callable[[float], None]) -> float:
    """Share of all CPUs' time that was used in a window."""
    before = _read_times(root)
    sleep(_WINDOW_S)
    after = _read_times(root)
    passed = [late - early for early, late in zip(before, after, strict=True)]
    total = sum(passed)
    if total <= 0:
        raise Refused("the load of this machine cannot be determined: no time passes in /proc/stat")
    return 1 - sum(passed[field] for field in _IDLE_FIELDS) / total


def _read_times(root: Path) -> list[int]:
    """Times of all CPUs, without guests': these are in the first two as well."""
    first, _, _ = _read(root / "proc/stat").partition("\n")
    name, *values = first.split() or [""]
    if name != "cpu" or len(values) < 8 or not all(value.isdecimal() for value in values):
        raise Refused("the load of this machine cannot be determined: /proc/stat cannot be read")
    return [int(value) for value in values[:8]]
