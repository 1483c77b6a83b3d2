"""Permission to attach to processes that are not our children.

Reference: ``ptrace(2)``; the kernel's ``Documentation/admin-guide/LSM/Yama.rst``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ldos.host.availability import Availability

_CAP_SYS_PTRACE: Final = 19


def tracing_permitted(program: str, root: Path = Path("/")) -> Availability:
    """Asks the kernel if a child of ours may attach to other processes of this user.

    Args:
        root: below which ``proc`` is, for tests.
    """
    scope = _number(root / "proc/sys/kernel/yama/ptrace_scope")
    allowed = bool(_capabilities(root / "proc/self/status") >> _CAP_SYS_PTRACE & 1)
    if scope == 0 or (allowed and scope < 3):
        return Availability(True)
    remedy = "reboot with kernel.yama.ptrace_scope below 3" if scope >= 3 else "sudo sysctl kernel.yama.ptrace_scope=0"
    return Availability(
        False,
        f"{program} may not attach to processes (kernel.yama.ptrace_scope is {scope})",
        f"{remedy}, or run it as root",
    )


def _number(file: Path) -> int:
    """The number in a file; 0 if the kernel has no such module."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):
        return 0


def _capabilities(status: Path) -> int:
    try:
        lines = status.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
