"""Tables of an execution model: every column with its type.

`id` is a row's own number. A column named like a table in the singular (`publisher`, `thread`)
holds the `id` of a row of that table, null where there is none. Times end in `_ns`: nanoseconds
since the epoch, or durations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

SCHEMA_VERSION: Final = 3

_ID: Final = pl.Int32
_TIME: Final = pl.Int64
_HANDLE: Final = pl.UInt64

Schema = Mapping[str, type[pl.DataType] | pl.DataType]

_WITH_HANDLE: Final[Schema] = {"id": _ID, "process": _ID, "handle": _HANDLE, "born_ns": _TIME}
_KNOWN: Final[Schema] = {"known": pl.Boolean}


def _entity(**own: type[pl.DataType]) -> Schema:
    """Schema of an entity with a handle in a process, plus its own columns."""
    return {**_WITH_HANDLE, **own, **_KNOWN}


def _topic_end() -> Schema:
    return _entity(node=_ID, topic=pl.String, depth=pl.UInt64, rmw_handle=_HANDLE, gid=pl.String)


ENTITIES: Final[Mapping[str, Schema]] = {
    "hosts": {"id": _ID, "name": pl.String},
    "processes": {"id": _ID, "host": _ID, "pid": pl.Int64, "name": pl.String},
    "threads": {"id": _ID, "process": _ID, "tid": pl.Int64, "name": pl.String, "executor": _ID},
    "nodes": _entity(name=pl.String),
    "publishers": _topic_end(),
    "subscriptions": _topic_end(),
    "services": _entity(node=_ID, name=pl.String),
    "clients": _entity(node=_ID, name=pl.String),
    "timers": _entity(node=_ID, period_ns=_TIME),
    "callbacks": _entity(symbol=pl.String, subscription=_ID, timer=_ID, service=_ID, node=_ID),
    "state_machines": _entity(node=_ID),
    "actions": {"id": _ID, "node": _ID, "role": pl.String, "name": pl.String},
    "executors": {"id": _ID, "process": _ID, "threads": pl.UInt32},
    "link_annotations": {
        "id": _ID,
        "rule": pl.String,
        "process": _ID,
        "time_ns": _TIME,
        "subscriptions": pl.List,
        "publishers": pl.List,
    },
}
"""Entities.

`known` is false where no init event names the owner of a handle; `handle` is then the address that
its events carry: the middleware's for publishers and subscriptions (within a process, rcl's or that
of the buffer).
"""

INSTANCES: Final[Mapping[str, Schema]] = {
    "publications": {
        "id": _ID,
        "time_ns": _TIME,
        "thread": _ID,
        "publisher": _ID,
        "source_ns": _TIME,
        "rclcpp_ns": _TIME,
        "rcl_ns": _TIME,
        "intra_ns": _TIME,
        "intra": pl.Boolean,
    },
    "takes": {
        "id": _ID,
        "time_ns": _TIME,
        "thread": _ID,
        "subscription": _ID,
        "source_ns": _TIME,
        "rcl_ns": _TIME,
        "rclcpp_ns": _TIME,
        "intra": pl.Boolean,
        "buffer": _HANDLE,
        "slot": pl.UInt64,
    },
    "enqueues": {
        "id": _ID,
        "time_ns": _TIME,
        "thread": _ID,
        "subscription": _ID,
        "buffer": _HANDLE,
        "slot": pl.UInt64,
        "overwritten": pl.Boolean,
    },
    "callback_runs": {
        "id": _ID,
        "start_ns": _TIME,
        "end_ns": _TIME,
        "thread": _ID,
        "callback": _ID,
        "intra": pl.Boolean,
        "parent": _ID,
    },
    "waits": {"id": _ID, "begin_ns": _TIME, "end_ns": _TIME, "thread": _ID, "timeout_ns": _TIME},
    "executions": {
        "id": _ID,
        "begin_ns": _TIME,
        "end_ns": _TIME,
        "thread": _ID,
        "subscription": _ID,
        "timer": _ID,
    },
    "requests": {
        "id": _ID,
        "time_ns": _TIME,
        "thread": _ID,
        "step": pl.String,
        "client": _ID,
        "service": _ID,
        "client_gid": pl.String,
        "sequence": pl.Int64,
    },
    "transitions": {
        "id": _ID,
        "time_ns": _TIME,
        "thread": _ID,
        "state_machine": _ID,
        "from_state": pl.String,
        "to_state": pl.String,
    },
    "trial_spans": {
        "goal_id": pl.String,
        "scenario": pl.String,
        "index": pl.Int64,
        "begin_ns": _TIME,
        "end_ns": _TIME,
        "error_code": pl.Int64,
        "planned_ns": _TIME,
        "points": pl.Int64,
        "cpu_work_ns": _TIME,
        "thread": _ID,
    },
    "phases": {"goal_id": pl.String, "phase": pl.String, "time_ns": _TIME, "thread": _ID},
    "plan_requests": {"goal_id": pl.String, "begin_ns": _TIME, "end_ns": _TIME, "cpu_work_ns": _TIME, "thread": _ID},
    "planning_stages": {"time_ns": _TIME, "thread": _ID, "name": pl.String},
    "control_cycles": {"time_ns": _TIME, "thread": _ID, "cycle": pl.UInt64, "sim_time_ns": _TIME, "period_ns": _TIME},
    "sim_steps": {"time_ns": _TIME, "thread": _ID, "step": pl.UInt64, "sim_time_ns": _TIME},
    "missing_spans": {"process": _ID, "begin_ns": _TIME, "end_ns": _TIME},
}
"""Instances.

`publications.time_ns` is `rmw_publish`, in a process that writes none `rcl_publish` or `rclcpp_publish`; `intra_ns`
is `rclcpp_intra_publish`, if the same call also gave the message to subscriptions in its own process; `intra` is true
if it went to no other process (`time_ns` is then `intra_ns`). `takes.time_ns` is `rmw_take`, or the ring buffer's
dequeue; in a process that does not write that event, the begin of the callback that got the message. `source_ns` is
null where the middleware's stamp is not recorded. `requests.step` is ``send_request``, ``take_request``,
``send_response`` or ``take_response``. `plan_requests` are goals that were planned and not executed, from the begin
of planning to the result. `planning_stages.time_ns` is the end of a stage.
`missing_spans`: events of the process may be missing from the trace from `begin_ns` (null: from its begin) to `end_ns`
(null: to its end), because they were overwritten, discarded or cut off.
"""
