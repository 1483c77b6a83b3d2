"""Tables of an execution model: every column with its type, and its storage as Parquet files.

`id` is a row's own number. A column named like a table in the singular (`publisher`, `thread`)
holds the `id` of a row of that table, null where there is none. Times end in `_ns`: nanoseconds
since the epoch, or durations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import polars as pl

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.parquet import FAULTS, digest_of, reason_of, write_table
from pytest_ldos.base.writable import writing
from pytest_ldos.trace.ctf.files import LinkedFile
from pytest_ldos.trace.ctf.stats import Corruption, Gap, ReadStats, StreamStats
from pytest_ldos.trace.execution.model import ExecutionModel, MissingEvent, Tables

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


MANIFEST: Final = "model.json"


def write_model(model: ExecutionModel, directory: Path, *, target: Path | None = None) -> None:
    """Writes ``TABLE.parquet`` for each table; the manifest, which makes them a model, comes last.

    Args:
        target: final folder, if the given one is temporary; named in messages.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    with writing(target or directory, needs=sum(round(frame.estimated_size()) for frame in model.frames().values())):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MANIFEST).unlink(missing_ok=True)
        digests = {}
        for name, frame in model.frames().items():
            write_table(frame, directory / f"{name}.parquet")
            digests[name] = digest_of(directory / f"{name}.parquet")
        manifest = {**_manifest(model), "sha256": digests}
        (directory / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def read_model(directory: Path) -> ExecutionModel:
    """Reads a model written by `write_model`.

    Raises:
        RecordUnreadable: there is none, a table is missing or damaged, or another version wrote it.
    """
    path = directory / MANIFEST
    manifest = _read_manifest(path)
    try:
        digests = dict(manifest.get("sha256", {}))  # earlier versions wrote none
        stats = _stats(manifest["stats"])
        unknown, unpaired = dict(manifest["unknown"]), dict(manifest["unpaired"])
        missing = tuple(_missing(each) for each in manifest.get("missing_events", ()))  # earlier versions wrote none
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, f"is damaged: {type(error).__name__} {error}") from None
    names = [field.name for field in fields(Tables)]
    frames = {name: _read_table(directory / f"{name}.parquet", digests.get(name)) for name in names}
    return ExecutionModel(**frames, stats=stats, unknown=unknown, unpaired=unpaired, missing_events=missing)


def _unreadable(path: Path, reason: str) -> RecordUnreadable:
    return RecordUnreadable(f"{path}: {reason}", remedy="write the tables again: ldos analyze TRACE --output DIRECTORY")


def _manifest(model: ExecutionModel) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tables": {name: len(frame) for name, frame in model.frames().items()},
        "unknown": dict(model.unknown),
        "unpaired": dict(model.unpaired),
        "missing_events": [asdict(each) for each in model.missing_events],
        "stats": _plain(asdict(model.stats)),
    }


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise _unreadable(path, "is missing: no complete model lies there") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if version != SCHEMA_VERSION:
        raise _unreadable(path, f"has schema version {version!r}, this version reads {SCHEMA_VERSION}")
    return dict(manifest)


def _read_table(path: Path, digest: str | None) -> pl.DataFrame:
    try:
        if digest is not None and digest_of(path) != digest:
            raise _unreadable(path, "is damaged: its content is not what was written")
        return pl.read_parquet(path)
    except FAULTS as error:
        raise _unreadable(path, reason_of(error)) from None


def _plain(value: Any) -> Any:
    """Nested values as in JSON: paths become strings, tuples lists."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _stats(plain: Mapping[str, Any]) -> ReadStats:
    return ReadStats(
        streams=tuple(_stream(stream) for stream in plain["streams"]),
        linked_files=tuple(
            LinkedFile(**{name: Path(path) for name, path in each.items()}) for each in plain["linked_files"]
        ),
    )


def _missing(plain: Mapping[str, Any]) -> MissingEvent:
    return MissingEvent(**{**plain, "processes": tuple(plain["processes"]), "hides": tuple(plain["hides"])})


def _stream(plain: Mapping[str, Any]) -> StreamStats:
    corruptions = tuple(Corruption(**{**each, "path": Path(each["path"])}) for each in plain["corruptions"])
    gaps = tuple(Gap(**gap) for gap in plain["gaps"])
    return StreamStats(**{**plain, "path": Path(plain["path"]), "gaps": gaps, "corruptions": corruptions})
