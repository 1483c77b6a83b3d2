"""Stores the commit or run to which a series is pinned, beside its files as ``pin.json``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically

FILE: Final = "pin.json"
KIND: Final = "pytest-ldos history pin"
SCHEMA_VERSION: Final = 1


@dataclass(frozen=True)
class Pin:
    """The pinned anchor of a series.

    Attributes:
        commit: a commit, with all its runs; empty if one run is pinned.
        trials: identity of the run's set of trials; empty if a commit is pinned.
        name: as given by the user.
    """

    commit: str
    trials: str
    name: str


def write_pin(folder: Path, pin: Pin) -> Path:
    """Pins a series and replaces an earlier pin.

    Raises:
        NotWritten, ConfigurationError: it cannot be written.
    """
    file = folder / FILE
    document = {"kind": KIND, "schema": SCHEMA_VERSION, **asdict(pin)}
    write_atomically(file, json.dumps(document, indent=1) + "\n")
    return file


def remove_pin(folder: Path) -> bool:
    """Removes the pin; returns True if there was one."""
    file = folder / FILE
    was_there = file.exists()
    file.unlink(missing_ok=True)
    return was_there


def read_pin(folder: Path) -> Pin | None:
    """The pin of a series; ``None`` if there is none.

    Raises:
        RecordUnreadable: the file is damaged or of another version.
    """
    file = folder / FILE
    try:
        return _decode(json.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordUnreadable(f"{file} is damaged ({error})", remedy="pin again: ldos history pin COMMIT") from None


def _decode(document: Any) -> Pin:
    if (document["kind"], document["schema"]) != (KIND, SCHEMA_VERSION):
        raise ValueError(f"kind {document['kind']!r}, schema version {document['schema']!r}")
    return Pin(str(document["commit"]), str(document["trials"]), str(document["name"]))
