"""Documents that an unfinished search keeps: JSON, each a file, whole or not there."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
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
    """Writes a document; one of before stays whole until then.

    Raises:
        NotWritten: it could not be written.
    """
    with resumable():
        write_atomically(file, json.dumps(document, allow_nan=False) + "\n")


def read_document(file: Path, parse: Callable[[Any], _T], *, remedy: str) -> _T:
    """Reads a document and parses it.

    Raises:
        RecordUnreadable: it is damaged; names it.
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
