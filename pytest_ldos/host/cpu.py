"""CPU settings that decide how alike two measurements can be.

Reference: the kernel's ``Documentation/admin-guide/pm/cpufreq.rst`` and ``intel_pstate.rst``,
``Documentation/ABI/testing/sysfs-devices-system-cpu``. Places are below a root, for tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

UNKNOWN: Final = "unknown"
NO_SCALING: Final = "none"
SYSFS_CPU: Final = "sys/devices/system/cpu"
SMT_CONTROL: Final = f"{SYSFS_CPU}/smt/control"
_SMT_ACTIVE: Final = f"{SYSFS_CPU}/smt/active"
_NO_TURBO: Final = f"{SYSFS_CPU}/intel_pstate/no_turbo"
_BOOST: Final = f"{SYSFS_CPU}/cpufreq/boost"
_FLAGS: Final = {"1": "on", "0": "off"}


@dataclass(frozen=True)
class TurboSwitch:
    """The file that turns the clock's boost off.

    Attributes:
        place: below the root.
        off: value to write there.
    """

    place: str
    off: str


def read_smt(root: Path = Path("/")) -> str:
    """``on``, ``off`` or ``unknown``."""
    return _FLAGS.get(read_setting(root / _SMT_ACTIVE), UNKNOWN)


def read_governors(root: Path = Path("/")) -> Mapping[str, str]:
    """Governor of each CPU, by the place of its setting; empty without frequency scaling."""
    files = sorted((root / SYSFS_CPU).glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return {str(file.relative_to(root)): read_setting(file) for file in files}


def read_governor(root: Path = Path("/")) -> str:
    """The first CPU's; ``none`` without frequency scaling."""
    return read_setting(root / SYSFS_CPU / "cpu0/cpufreq/scaling_governor") or NO_SCALING


def read_turbo(root: Path = Path("/")) -> str:
    """``on``, ``off`` or ``unknown``."""
    switch = find_turbo_switch(root)
    if switch is None:
        return UNKNOWN
    value = read_setting(root / switch.place)
    return UNKNOWN if value not in _FLAGS else "off" if value == switch.off else "on"


def find_turbo_switch(root: Path = Path("/")) -> TurboSwitch | None:
    """Finds the switch; that of Intel's own driver means the opposite of all others."""
    switches = (TurboSwitch(_NO_TURBO, off="1"), TurboSwitch(_BOOST, off="0"))
    return next((switch for switch in switches if (root / switch.place).is_file()), None)


def read_isolated_cpus(root: Path = Path("/")) -> str:
    """The kernel's list, e.g. ``2-3``; empty where the scheduler uses all."""
    return read_setting(root / SYSFS_CPU / "isolated")


def read_setting(file: Path) -> str:
    """Content of a small file, empty where it cannot be read."""
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""
