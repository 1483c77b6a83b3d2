"""Stores the grounds of a verdict with its trials, so that the verdict can be reproduced.

``judged.json`` holds the policy, the base's trials, the calibration and the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.plain import PlainReader
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.judge.baseline.calibration import Calibration, decode_calibration, encode_calibration
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Grounds
from pytest_ldos.measure.trial.artifacts import LARGEST_RECORD, ScenarioFolder
from pytest_ldos.measure.trial.codec import decode_trials, encode_trials
from pytest_ldos.measure.trial.record import TrialSet

JUDGED_FILE: Final = "judged.json"
KIND: Final = "pytest-ldos judgement"
SCHEMA_VERSION: Final = 2

_REMEDY: Final = f"delete {JUDGED_FILE} to judge by what is stored now"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict with its grounds.

    Attributes:
        made_by: version of pytest-ldos.
        notes: facts about the measurement that every report of it shows.
    """

    grounds: Grounds
    verdict: Verdict
    made_by: str
    notes: tuple[str, ...] = ()


def write_judgement(folder: ScenarioFolder, judgement: Judgement) -> None:
    """Writes a judgement next to its trials.

    Raises:
        NotWritten: see `write_atomically`.
    """
    document = {"kind": KIND, "schema": SCHEMA_VERSION, **_to_plain(judgement)}
    write_atomically(folder.path / JUDGED_FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")


def read_judgement(folder: ScenarioFolder) -> Judgement | None:
    """The judgement of the trials in a folder; ``None`` if there is none.

    Raises:
        RecordUnreadable: it is damaged, or of another schema version.
    """
    file = folder.path / JUDGED_FILE
    if not file.is_file():
        return None
    try:
        if file.stat().st_size > LARGEST_RECORD:
            raise RecordUnreadable(f"{file} is larger than {LARGEST_RECORD} bytes: no run wrote it", remedy=_REMEDY)
        document = json.loads(file.read_text("utf-8", errors="replace"))
        if not isinstance(document, dict) or document.pop("kind", None) != KIND:
            raise RecordUnreadable(f"{file} is not a judgement of pytest-ldos", remedy=_REMEDY)
        if (schema := document.pop("schema", None)) != SCHEMA_VERSION:
            expected = f"this version of pytest-ldos reads {SCHEMA_VERSION}"
            raise RecordUnreadable(f"{file} has schema version {schema!r}, {expected}", remedy=_REMEDY)
        found: Judgement = _reader(file).read(Judgement, document, "")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RecordUnreadable(f"{file} is damaged ({type(error).__name__}: {error})", remedy=_REMEDY) from None
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    return found


def _to_plain(value: Any) -> Any:
    """The value as JSON data; trials and calibrations as in their own files."""
    if isinstance(value, TrialSet):
        return json.loads(encode_trials(value))
    if isinstance(value, Calibration):
        return json.loads(encode_calibration(value))
    if is_dataclass(value):
        return {each.name: _to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [_to_plain(each) for each in items]
    return str(value) if isinstance(value, Path) else value


def _reader(file: Path) -> PlainReader:
    """Reads objects by all of their fields, which distinguishes the kinds of a lookup."""
    reader = PlainReader(is_whole=True)
    reader.by_type.update(
        {
            TrialSet: lambda value, what: decode_trials(json.dumps(value), file),
            Calibration: lambda value, what: decode_calibration(json.dumps(value), file),
            Path: lambda value, what: Path(value),
            Collection[str]: lambda value, what: frozenset(reader.read(tuple[str, ...], value, what)),
        }
    )
    return reader
