"""Files of a run: their locations, atomic writing, and removal.

``.ldos/runs/<time>-<id>/<scenario>/`` holds ``trials.json``, ``logs/`` and ``trace/``. For two interleaved
versions, ``trials.json`` is the head's, ``base/trials.json`` the base's, and ``blocks/<number>-<version>/``
holds the logs and the trace of each stack start.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError, NotWritten, RecordUnreadable
from pytest_ldos.base.files import write_atomically, writing
from pytest_ldos.base.text import format_bytes
from pytest_ldos.measure.trial.codec import decode_trials, encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.words import KeepTraces

RUNS: Final = "runs"
TRIALS_FILE: Final = "trials.json"
TRACE_FOLDER: Final = "trace"
BLOCKS: Final = "blocks"
BASE: Final = "base"
OTHER_OUTPUT: Final = "name another place with --ldos-output"  # remedy if a run's own folder cannot be written
LARGEST_RECORD: Final = 64 * 1024 * 1024  # bytes of a trials file, which may be untrusted; ten thousand trials fit


@dataclass(frozen=True)
class ScenarioFolder:
    path: Path

    @property
    def trials_file(self) -> Path:
        return self.path / TRIALS_FILE

    @property
    def trace(self) -> Path:
        return self.path / TRACE_FOLDER

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def base(self) -> ScenarioFolder:
        return ScenarioFolder(self.path / BASE)


def new_run_folder(output: Path) -> Path:
    """Creates the folder of a new run."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return new_folder(output, f"{RUNS}/{stamp}-{secrets.token_hex(3)}")


def new_folder(output: Path, name: str) -> Path:
    """Creates a folder below `output`, all of which git ignores; raises as `writing`."""
    folder, ignore = output / name, output / ".gitignore"
    with writing(folder, otherwise=OTHER_OUTPUT):
        folder.mkdir(parents=True, mode=0o755)
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
    return folder


def new_scenario_folder(run: Path, scenario: str) -> ScenarioFolder:
    """Creates a folder for a scenario; a duplicate name gets a number."""
    safe = re.sub(r"[^A-Za-z0-9_.+-]", "_", scenario)
    for number in range(1, 10_000):
        path = run / (safe if number == 1 else f"{safe}-{number}")
        if not path.exists():
            return _made(ScenarioFolder(path))
    raise RuntimeError(f"{run} holds too many scenarios named {scenario}")


def is_used(folder: ScenarioFolder) -> bool:
    """True if it holds files of a stack or of trials."""
    return any(folder.logs.iterdir()) or any(each != folder.logs for each in folder.path.iterdir())


def new_block_folder(folder: ScenarioFolder, number: int, version: str) -> ScenarioFolder:
    return _made(ScenarioFolder(folder.path / BLOCKS / f"{number}-{version}"))


def keep_failed_block(folder: ScenarioFolder, number: int, version: str) -> None:
    """Sets the folder of a block aside whose start failed, so that the block can be run again."""
    failed = folder.path / BLOCKS / f"{number}-{version}"
    failed.rename(failed.with_name(f"{failed.name}-failed"))


def _made(folder: ScenarioFolder) -> ScenarioFolder:
    with writing(folder.logs, otherwise=OTHER_OUTPUT):
        folder.logs.mkdir(parents=True)
    return folder


@contextmanager
def resumable() -> Iterator[None]:
    """Adds to a write error that the files so far are intact and the run can be resumed."""
    try:
        yield
    except NotWritten as error:
        goes_on = "what was kept before is whole, and the same command goes on from it"
        raise NotWritten(error.message, remedy=f"{error.remedy}; {goes_on}") from None


def write_trials(folder: ScenarioFolder, trials: TrialSet) -> None:
    """Writes the record of a scenario.

    Raises:
        NotWritten: it was written elsewhere or not at all; the message names the place and the required space.
    """
    content = encode_trials(trials)
    try:
        write_atomically(folder.trials_file, content)
    except NotWritten as error:
        whole_run = _size(folder.path) * trials.spec.trials / max(1, len(trials.trials))
        remedy = (
            f"{error.remedy} (trace and record of {trials.spec.trials} trials take about {format_bytes(whole_run)})"
        )
        raise NotWritten(f"{error.message}; {_kept_elsewhere(folder, content)}", remedy=remedy) from None


def _kept_elsewhere(folder: ScenarioFolder, content: str) -> str:
    """Saves a record in another place; returns a clause for messages that names it."""
    for refuge in (_refuge_of(folder), folder):
        if refuge is folder:
            drop_traces(folder)  # on a full disk the trace is incomplete; its space suffices for the record
        if refuge is not None:
            with contextlib.suppress(NotWritten):
                write_atomically(refuge.trials_file, content)
                return f"what was measured so far is kept in {refuge.trials_file}"
    return "what was measured since the last record there is lost: no other place has room, either"


@cache
def _refuge_of(folder: ScenarioFolder) -> ScenarioFolder | None:
    """A fixed folder for a scenario's record outside the run's folder; ``None`` if there is none."""
    for place in (tempfile.gettempdir(), "/var/tmp", Path.home()):  # noqa: S108 - a private folder in it
        with contextlib.suppress(LdosError), writing(Path(place)):
            refuge = Path(tempfile.mkdtemp(prefix=f"ldos-kept-{folder.path.name}-", dir=place))
            (refuge / TRIALS_FILE).write_bytes(b"room")
            return ScenarioFolder(refuge)
    return None


def trace_not_whole(trace: Path, reason: str) -> NotWritten:
    written = format_bytes(_size(trace))
    return NotWritten(
        f"the trace could not be written to {trace}: {reason}",
        remedy=f"make room there for much more than the {written} that it took so far, or {OTHER_OUTPUT}",
    )


def read_trials(path: str | os.PathLike[str]) -> TrialSet:
    """Reads the trials of a ``trials.json`` or of its folder.

    Raises:
        RecordUnreadable: see `decode_trials`; also if the file does not exist.
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
    """True if a trace should be kept: by default, after a regression or failure."""
    if policy is KeepTraces.FAILED:
        return regressed or trials.successes < len(trials.trials)
    return policy is KeepTraces.ALL


def drop_traces(folder: ScenarioFolder) -> None:
    for trace in (folder.trace, *folder.path.glob(f"{BLOCKS}/*/{TRACE_FOLDER}")):
        shutil.rmtree(trace, ignore_errors=True)


def drop_folder(folder: ScenarioFolder) -> None:
    """Removes all files of a scenario, and its run's folder with the last scenario."""
    shutil.rmtree(folder.path, ignore_errors=True)
    with contextlib.suppress(OSError):  # another scenario has a folder there
        folder.path.parent.rmdir()


def enforce_disk_limit(output: Path, *, limit_bytes: int, keep: Path) -> list[Path]:
    """Deletes the oldest kept traces, but none of the run `keep`, until the rest fits; returns the deleted ones."""
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
