"""Transitions of lifecycle nodes.

Tracepoints: ``rcl_lifecycle_transition``.
"""

from __future__ import annotations

import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.observed import Observed
from pytest_ldos.trace.execution.schema import INSTANCES


def build_transitions(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    """Each transition with its source and target state."""
    events = observed.events(Ros2.LIFECYCLE_TRANSITION)
    machines = endpoints.state_machines.registry
    columns = {
        "time_ns": events.times_ns,
        "thread": events.thread,
        "state_machine": machines.resolve(events.process, events.handles("state_machine"), events.times_ns),
        "from_state": events.texts("start_label"),
        "to_state": events.texts("goal_label"),
    }
    return frame_of(INSTANCES["transitions"], columns)
