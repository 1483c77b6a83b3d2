"""Stores an execution model on disk: a Parquet file for each table, and a manifest.

The only file of this room that touches Parquet.
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
from pytest_ldos.trace.execution.schema import SCHEMA_VERSION

MANIFEST: Final = "model.json"


def write_model(model: ExecutionModel, directory: Path, *, target: Path | None = None) -> None:
    """Writes ``TABLE.parquet`` for each table; the manifest, which makes them a model, comes last.

    Args:
        target: folder that takes its place later, which messages then name instead.

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
