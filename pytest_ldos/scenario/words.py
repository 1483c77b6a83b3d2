"""Words that settings may be, and the names of the scenarios that are built in.

Every pytest run in whose environment the plugin is installed loads them, so they need nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class StackKind(StrEnum):
    """Values of ``--ldos-stack``."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    ROS2 = "ros2"


class Simulation(StrEnum):
    """Values of ``--ldos-sim``: what moves the arm."""

    AUTO = "auto"
    GZ = "gz"
    MOCK = "mock"


class SeedMode(StrEnum):
    """Where the planner's random seeds come from."""

    FIXED = "fixed"
    RANDOM = "random"


class WhenUnavailable(StrEnum):
    """What becomes of a scenario whose loads cannot be applied here."""

    ERROR = "error"
    SKIP = "skip"


class ProfilerKind(StrEnum):
    """Which tool samples stacks of calls."""

    AUTO = "auto"
    PERF = "perf"
    PY_SPY = "py-spy"


class KeepTraces(StrEnum):
    """Which traces stay on disk."""

    FAILED = "failed"
    ALL = "all"
    NONE = "none"


DEFAULT_RATE_HZ: Final = 99
"""Of a profiler's samples: no round number, so that what happens in a round period is not met at the same place for
ever."""

SCENARIO_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "baseline": "the arm alone",
    "cpu_load": "the arm beside CPU-bound processes",
    "msg_load": "the arm beside a flood of messages",
    "cpu_limit": "the arm on one CPU",
}
"""Of the scenarios that are built in, by name."""
