"""Allowed values of settings, names of loads and built-in scenarios, and parsing of single values.

A parser's `ValueError` states the required form, to follow "it must be"; booleans and numbers may also be text.
Every pytest run with the plugin installed loads this module, so it imports nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class StackKind(StrEnum):
    """Values of ``--ldos-stack``."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    ROS2 = "ros2"
    RUNNING = "running"


class StimulusKind(StrEnum):
    MOVE_GROUP = "move_group"
    ACTION = "action"
    SERVICE = "service"
    BAG = "bag"
    WINDOW = "window"
    PLAN = "plan"
    SCRIPT = "script"


class Simulation(StrEnum):
    """Values of ``--ldos-sim``: the simulator or hardware behind the arm."""

    AUTO = "auto"
    GZ = "gz"
    MOCK = "mock"


class SeedMode(StrEnum):
    FIXED = "fixed"
    RANDOM = "random"


class WhenUnavailable(StrEnum):
    """Action for a scenario whose loads cannot be applied on this machine."""

    ERROR = "error"
    SKIP = "skip"


class ProfilerKind(StrEnum):
    AUTO = "auto"
    PERF = "perf"
    PY_SPY = "py-spy"
    BOTH = "py-spy+perf"


class KeepTraces(StrEnum):
    FAILED = "failed"
    ALL = "all"
    NONE = "none"


DEFAULT_RATE_HZ: Final = 99
"""Sampling rate of a profiler; not a round number, so that it does not stay in phase with periodic work."""

SCENARIO_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "baseline": "the arm alone",
    "cpu_load": "the arm under CPU-bound processes",
    "msg_load": "the arm under a flood of messages",
    "cpu_limit": "the arm on one CPU",
}

LOADS: Final[Mapping[str, str]] = {
    "cpu_limit": "The stack on few CPUs: ``with cpu_limit(cpus=1):``.",
    "network_impairment": "Delay and loss of the domain's messages: ``with network_impairment(delay_ms=5):``.",
    "memory_load": "Memory written and read in a loop: ``with memory_load(size_mb=512):``.",
    "cache_load": "The CPU's caches filled with other data: ``with cache_load(workers=1):``.",
    "io_load": "Files written and synced: ``with io_load(workers=1):``.",
    "cpu_load": "stress-ng's CPU load: ``with cpu_load(workers=2, percent=80) as load:``.",
    "dds_flood": "A flood of messages on the stack's domain: ``with dds_flood(publishers=4, rate_hz=1000) as flood:``.",
}
"""Texts of the loads' fixtures by kind, in the order in which several loads are applied: limits first, floods last.

A kind's spec is a class in
`scenario.loads`; its implementation is an entry of `LOADS` in a module of `measure.load`.
"""


_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def parse_word(kind: type[StrEnum], value: Any) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"one of {', '.join(kind)}") from None


def parse_truth(value: Any) -> bool:
    word = value.lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if not isinstance(word, str) or word not in _TRUE | _FALSE:
        raise ValueError("true or false")
    return word in _TRUE


def parse_number(kind: type[int | float], value: Any, what: str) -> int | float:
    exact = kind is not int or not isinstance(value, float) or value.is_integer()
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not exact:
        raise ValueError(what)
    try:
        return kind(value)
    except (ValueError, OverflowError):
        raise ValueError(what) from None
