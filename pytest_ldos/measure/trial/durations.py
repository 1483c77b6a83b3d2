"""Files of durations: each run writes one in its record's folder, for the estimates of later runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.plain import read_plain
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.phases import Durations, RunPhase, Spent

DURATIONS_FILE: Final = "durations.json"


def write_durations(folder: ScenarioFolder, durations: Durations, *, stack: str) -> None:
    """Writes the durations of a run to its record's folder.

    Args:
        stack: its name, as in the record.

    Raises:
        NotWritten, ConfigurationError: see `write_atomically`.
    """
    phases = {phase: {"times": spent.times, "seconds": round(spent.seconds, 3)} for phase, spent in durations.items()}
    write_atomically(folder.path / DURATIONS_FILE, json.dumps({"stack": stack, "phases": phases}, indent=1) + "\n")


def read_durations(file: Path) -> tuple[str, Durations]:
    """Reads the name of the stack and the durations of a run.

    Raises:
        OSError, ValueError, LookupError, TypeError: it cannot be read, or is no such file.
    """
    document = json.loads(file.read_text("utf-8"))
    phases: Durations = read_plain(Mapping[RunPhase, Spent], document["phases"], "phases")
    return read_plain(str, document["stack"], "stack"), phases
