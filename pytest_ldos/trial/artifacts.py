"""Files of a run: their locations, atomic writing, and removal.

``.ldos/runs/<time>-<id>/<scenario>/`` holds ``trials.json``, ``logs/`` and ``trace/``. For two interleaved
versions, ``trials.json`` is the head's, ``base/trials.json`` the base's, and logs and trace of each stack
start lie in ``blocks/<number>-<version>/``.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pytest_ldos.errors import NotWritten, RecordUnreadable
from pytest_ldos.scenario.words import KeepTraces
from pytest_ldos.trial.codec import decode_trials, encode_trials
from pytest_ldos.trial.record import TrialSet

RUNS: Final = "runs"
TRIALS_FILE: Final = "trials.json"
TRACE_FOLDER: Final = "trace"
LOG_FOLDER: Final = "logs"
BLOCKS: Final = "blocks"
BASE: Final = "base"
LARGEST_RECORD: Final = 64 * 1024 * 1024
"""Largest accepted trials file in bytes, since it may come from a stranger; ten thousand trials fit."""


@dataclass(frozen=True)
class ScenarioFolder:
    """Folder of one scenario of a run."""

    path: Path

    @property
    def trials_file(self) -> Path:
        return self.path / TRIALS_FILE

    @property
    def trace(self) -> Path:
        return self.path / TRACE_FOLDER

    @property
    def logs(self) -> Path:
        return self.path / LOG_FOLDER

    @property
    def base(self) -> ScenarioFolder:
        """Folder of the other version's record, if there was one."""
        return ScenarioFolder(self.path / BASE)


def new_run_folder(output: Path) -> Path:
    """Creates a folder for a run that begins now; adds a ``.gitignore`` to `output` if it has none."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = output / RUNS / f"{stamp}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True, mode=0o755)
    ignore = output / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    return folder


def new_scenario_folder(run: Path, scenario: str) -> ScenarioFolder:
    """Creates a folder for a scenario; a second one of the same name gets a number."""
    safe = re.sub(r"[^A-Za-z0-9_.+-]", "_", scenario)
    for number in range(1, 10_000):
        path = run / (safe if number == 1 else f"{safe}-{number}")
        if not path.exists():
            folder = ScenarioFolder(path)
            folder.logs.mkdir(parents=True)
            return folder
    raise RuntimeError(f"{run} holds too many scenarios named {scenario}")


def new_block_folder(folder: ScenarioFolder, number: int, version: str) -> ScenarioFolder:
    """Creates a folder for the logs and the trace of one stack start."""
    block = ScenarioFolder(folder.path / BLOCKS / f"{number}-{version}")
    block.logs.mkdir(parents=True)
    return block


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new content, never part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def keeping(place: Path) -> Iterator[None]:
    """Turns an `OSError` while results are written into an error with a remedy.

    Raises:
        NotWritten: the disk is full, or writing is not permitted.
    """
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"what was measured could not be kept in {place}: {error.strerror}",
            remedy="make room there; what was kept before is whole, and the same command goes on from it",
        ) from None


def write_trials(folder: ScenarioFolder, trials: TrialSet) -> None:
    write_atomically(folder.trials_file, encode_trials(trials))


def read_trials(path: str | os.PathLike[str]) -> TrialSet:
    """Reads the trials of a ``trials.json`` or of the folder that holds it.

    Raises:
        RecordUnreadable: see `decode_trials`; also if there is no such file.
    """
    place = Path(path)
    file = place / TRIALS_FILE if place.is_dir() else place
    remedy = "name a file of trials or the folder of a scenario's run"
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_RECORD + 1)
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=remedy) from None
    if len(content) > LARGEST_RECORD:
        raise RecordUnreadable(f"{file} is larger than {LARGEST_RECORD} bytes: no run wrote it", remedy=remedy)
    return decode_trials(content.decode("utf-8", errors="replace"), file)


def is_worth_keeping(trials: TrialSet, *, regressed: bool, policy: KeepTraces) -> bool:
    """True if a trace is to be kept: by default, that of a scenario that regressed or had a failure."""
    if policy is KeepTraces.FAILED:
        return regressed or trials.successes < len(trials.trials)
    return policy is KeepTraces.ALL


def drop_traces(folder: ScenarioFolder) -> None:
    for trace in (folder.trace, *folder.path.glob(f"{BLOCKS}/*/{TRACE_FOLDER}")):
        shutil.rmtree(trace, ignore_errors=True)


def drop_folder(folder: ScenarioFolder) -> None:
    """Removes all files of a scenario, and its run's folder with the last scenario."""
    shutil.rmtree(folder.path, ignore_errors=True)
    with contextlib.suppress(OSError):  # another scenario's folder is there
        folder.path.parent.rmdir()


def enforce_disk_limit(output: Path, *, limit_bytes: int, keep: Path) -> list[Path]:
    """Deletes the oldest kept traces until the rest fits the limit; returns the deleted ones.

    Args:
        keep: run whose traces are never deleted: the current one.
    """
    patterns = (f"*/*/{TRACE_FOLDER}", f"*/*/{BLOCKS}/*/{TRACE_FOLDER}")
    traces = sorted(trace for pattern in patterns for trace in (output / RUNS).glob(pattern))
    sizes = {trace: _size(trace) for trace in traces}
    dropped = []
    for trace in traces:
        if sum(sizes.values()) <= limit_bytes:
            break
        if keep not in trace.parents:
            shutil.rmtree(trace, ignore_errors=True)
            del sizes[trace]
            dropped.append(trace)
    return dropped


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
