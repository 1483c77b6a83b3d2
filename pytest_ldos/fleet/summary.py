"""Summary of one trace of many: small values that are sent between processes and machines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Outcome of a goal, as far as its trace shows."""

    REACHED = "reached"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """Status of one metric of one goal."""

    MEASURED = "measured"
    MISSING = "missing"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class GoalValue:
    """One metric of one goal.

    Attributes:
        goal: scenario and number if there are markers, otherwise the goal's id.
        began_ns: since the epoch; ``None`` if it is not in the trace.
        value: in the metric's unit; ``None`` if it was not measured: `reason` then says why.
        source: where the value was taken from; empty if there is none.
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
    """Summary of one trace.

    Attributes:
        trace: path of the trace as given by the user.
        problem: why it could not be read, in which case nothing else is known; empty if it was read.
        nodes: number of ROS 2 nodes.
        reached, failed, unknown: numbers of goals by outcome.
        lost_events, lost_packets: as counted by the tracer.
        damage: description of all missing and corrupt data; empty if there is none.
        values: one per goal and metric.
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
