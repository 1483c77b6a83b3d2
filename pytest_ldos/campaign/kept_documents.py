"""Stored documents of unfinished searches, and damaged result files."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.measure.trial.artifacts import resumable
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec

_T = TypeVar("_T")


def write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Writes a document atomically.

    Raises:
        NotWritten: it could not be written.
    """
    with resumable():
        write_atomically(file, json.dumps(document, allow_nan=False) + "\n")


def read_document(file: Path, parse: Callable[[Any], _T], *, remedy: str) -> _T:
    """Reads a document and parses it.

    Raises:
        RecordUnreadable: it is damaged; the message names it.
    """
    try:
        return parse(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RecordUnreadable(f"{file} is damaged ({type(error).__name__}: {error})", remedy=remedy) from None


def plain_spec(spec: ScenarioSpec) -> Any:
    """A scenario as JSON values, for comparison."""
    return json.loads(json.dumps(dataclasses.asdict(spec), default=str))


def plain_trials(trials: TrialSet) -> Any:
    """Trials as JSON values."""
    return json.loads(encode_trials(trials))


def set_damaged_aside(files: Iterable[Path], read: Callable[[Path], object]) -> list[Path]:
    """Renames damaged files to ``NAME.damaged`` and returns their new paths. Nothing is deleted.

    Args:
        read: reads a file; raises `RecordUnreadable` if it is damaged.

    Raises:
        RecordUnreadable: a file cannot be opened (it may be intact), or a damaged one cannot be renamed.
    """
    return [_set_aside(file) for file in files if _is_damaged(file, read)]


def _is_damaged(file: Path, read: Callable[[Path], object]) -> bool:
    try:
        file.read_bytes()
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy="see its permissions") from None
    try:
        read(file)
    except RecordUnreadable:
        return True
    return False


def _set_aside(file: Path) -> Path:
    names = (file.with_name(f"{file.name}{number}.damaged") for number in itertools.chain([""], itertools.count(2)))
    free = next(name for name in names if not name.exists())
    try:
        return file.rename(free)
    except OSError as error:
        reason = f"{file} is damaged, and cannot be renamed: {error.strerror}"
        raise RecordUnreadable(reason, remedy="delete it, then the start is measured again") from None
