"""What is known of one trace of many: small values that travel between processes and machines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a goal ended, as far as its trace tells."""

    REACHED = "reached"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """What is known of a metric of a goal."""

    MEASURED = "measured"
    MISSING = "missing"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class GoalValue:
    """One metric of one goal.

    Attributes:
        goal: scenario and number where markers tell them, else the goal's id.
        began_ns: since the epoch; ``None`` where it is not in the trace.
        value: in the metric's unit; ``None`` unless it was measured, and then `reason` says why.
        source: where the number was taken; empty where there is none.
    """

    goal: str
    goal_id: str
    began_ns: int | None
    outcome: Outcome
    metric: str
    unit: str
    status: Status
    value: float | None = None
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """One trace.

    Attributes:
        trace: where it lies, as it was asked for.
        problem: why it could not be read; empty where it could, and else nothing more is known.
        nodes: of ROS 2.
        goals: how many ended in which way.
        lost_events, lost_packets: by the tracer's own count.
        damage: all that is missing or corrupt, in words; empty where nothing is.
        values: one a goal and metric.
    """

    trace: str
    problem: str = ""
    events: int = 0
    nodes: int = 0
    reached: int = 0
    failed: int = 0
    unknown: int = 0
    lost_events: int = 0
    lost_packets: int = 0
    damage: str = ""
    values: tuple[GoalValue, ...] = ()
