"""Steps of service calls, where the tracer reports them (tracetools after ROS 2 Jazzy).

Tracepoints: ``rmw_send_request``, ``rmw_take_request``, ``rmw_send_response``, ``rmw_take_response``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import INSTANCES

_STEPS: Final = {
    Ros2.RMW_SEND_REQUEST: "send_request",
    Ros2.RMW_TAKE_REQUEST: "take_request",
    Ros2.RMW_SEND_RESPONSE: "send_response",
    Ros2.RMW_TAKE_RESPONSE: "take_response",
}
_OF_CLIENT: Final = ("send_request", "take_response")


def build_requests(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    """One row per step, in time order; takes that returned nothing are left out."""
    parts = [_steps(observed.events(name), step, endpoints) for name, step in _STEPS.items()]
    return pl.concat(parts).sort("time_ns", maintain_order=True).with_columns(id=pl.int_range(pl.len(), dtype=pl.Int32))


def _steps(events: Events, step: str, endpoints: Endpoints) -> pl.DataFrame:
    nobody = np.full(len(events), -1, dtype=np.int32)
    client, service = nobody, nobody
    subject = (events.process, events.times_ns)
    if step in _OF_CLIENT:
        client = endpoints.rmw_clients.find(subject[0], events.handles("rmw_client_handle"), subject[1])
    else:
        service = endpoints.rmw_services.find(subject[0], events.handles("rmw_service_handle"), subject[1])
    columns: dict[str, Any] = {
        "time_ns": events.times_ns,
        "thread": events.thread,
        "step": [step] * len(events),
        "client": client,
        "service": service,
        "client_gid": [None] * len(events) if step in _OF_CLIENT else events.hexadecimals("client_gid"),
        "sequence": events["sequence_number"].astype(np.int64),
    }
    frame = frame_of(INSTANCES["requests"], columns)
    return frame.filter(pl.Series(events["taken"] != 0)) if step.startswith("take_") else frame
