"""Availability of the node layer's tracepoints."""

from __future__ import annotations

from pytest_ldos.host.availability import Availability
from pytest_ldos.robot.stack.embedded.installed import Installed


def tracepoints_available(found: Installed, *, where: str = "") -> Availability:
    """Availability of a pytest-ldos's tracepoints: built, and loadable.

    Args:
        where: its environment; empty for this process's.
    """
    whose = f"the pytest-ldos of {where}" if where else "pytest-ldos"
    there = " there" if where else ""
    if not found.is_traced:
        return Availability(
            False,
            f"{whose} was built without tracepoints, because LTTng-UST was missing",
            f"sudo apt-get install liblttng-ust-dev, then build again{there} "
            "(make setup, or pip install --force-reinstall --no-binary pytest-ldos)",
        )
    if found.load_fault:
        return Availability(
            False,
            f"the tracepoints of {whose} cannot be loaded: {found.load_fault}",
            "sudo apt-get install liblttng-ust-dev (LTTng-UST 2.13 or later)",
        )
    return Availability(True)
