"""Allowed words of settings, and the names of the built-in scenarios.

Every pytest run with the plugin installed loads this module, so it needs nothing else of this package.
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
    """Values of ``--ldos-sim``: the simulator or hardware behind the arm."""

    AUTO = "auto"
    GZ = "gz"
    MOCK = "mock"


class SeedMode(StrEnum):
    """Source of the planner's random seeds."""

    FIXED = "fixed"
    RANDOM = "random"


class WhenUnavailable(StrEnum):
    """Action for a scenario whose loads cannot be applied on this machine."""

    ERROR = "error"
    SKIP = "skip"


class ProfilerKind(StrEnum):
    """Tool that samples call stacks."""

    AUTO = "auto"
    PERF = "perf"
    PY_SPY = "py-spy"


class KeepTraces(StrEnum):
    """Traces to keep on disk."""

    FAILED = "failed"
    ALL = "all"
    NONE = "none"


DEFAULT_RATE_HZ: Final = 99
"""Sampling rate of a profiler; not a round number, so that it does not stay in phase with periodic work."""

SCENARIO_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "baseline": "the arm alone",
    "cpu_load": "the arm beside CPU-bound processes",
    "msg_load": "the arm beside a flood of messages",
    "cpu_limit": "the arm on one CPU",
}
"""Descriptions of the built-in scenarios, by name."""
