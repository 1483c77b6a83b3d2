"""Files of a run: trial sets as JSON text, their validation, places, atomic writing, and removal.

The schema of a trial set is versioned; a file of another version is refused.

``.ldos/runs/<time>-<id>/<scenario>/`` holds ``trials.json``, ``logs/`` and ``trace/``. For two interleaved
versions, ``trials.json`` is the head's, ``base/trials.json`` the base's, and ``blocks/<number>-<version>/``
holds the logs and the trace of each stack start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import LdosError, NotWritten, RecordUnreadable
from pytest_ldos.base.files import PlainReader, RecordFormat, read_plain, write_atomically, writing
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import format_bytes
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.measure.metrics.model import USUAL_FLOOR, Measurement, Metric
from pytest_ldos.measure.trial.record import MotionTrial, RoundTrial, Trial, TrialKind, TrialSet
from pytest_ldos.scenario.loads import LoadSpec
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec, StackSpec
from pytest_ldos.scenario.scenario_table import parse_loads
from pytest_ldos.scenario.words import KeepTraces


def require_undamaged(trials: TrialSet) -> None:
    """Raises `ValueError`, which describes the damage, if values of a record are impossible."""
    _require_described(trials)
    for load in trials.loads:
        for name in ("shortfall", "summary"):
            read_plain(str, load.get(name), f"{name} of a load")
    for number, what in _counts(trials):
        if number is not None and number < 0:
            raise ValueError(f"{what} is {number}")
    for earlier, later in pairwise(look for look in trials.looks if look.information > 0):
        if later.information <= earlier.information:
            raise ValueError(f"its looks do not ascend: {later.head} and {later.base} trials came later")
    for motion in (*trials.motions, *trials.repeated):
        for path, kept in motion.deadlines.items():
            if not 0 <= kept.in_time <= kept.passages:
                raise ValueError(f"{kept.in_time} of {kept.passages} passages of path {path!r} kept their deadline")


def _require_described(trials: TrialSet) -> None:
    described = {metric.name for metric in trials.metrics}
    if len(described) != len(trials.metrics):
        raise ValueError("it describes a metric twice")
    undescribed = {name for trial in (*trials.trials, *trials.repeated) for name in trial.measurements} - described
    if undescribed:
        raise ValueError(f"it does not say what {', '.join(sorted(undescribed))} is")


def _counts(trials: TrialSet) -> Iterator[tuple[float | None, str]]:
    """Numbers that cannot be negative, with their names."""
    yield trials.discarded_events, "discarded_events"
    yield from ((number, "a look") for look in trials.looks for number in (look.head, look.base))
    for trial in (*trials.trials, *trials.repeated):
        yield from ((trial.index, "index of a trial"), (trial.block, "block of a trial"))
    motions = (*trials.motions, *trials.repeated)
    for motion in motions:
        for name in ("plan_points", "plan_duration_ns", "cpu_work_ns"):
            yield getattr(motion, name), f"{name} of a trial"
        if (placed := motion.placed) is not None:
            yield placed.on, "work on the stack's CPUs"
            yield placed.whole - max(placed.on, 1), "work elsewhere"
    for found in (trials.surroundings, *(motion.interference for motion in motions)):
        for name, value in vars(found).items() if found is not None else ():
            for each in value.values() if isinstance(value, dict) else [value]:
                yield each, f"{name} of an interference"


SCHEMA_VERSION: Final = 5
_AGAIN: Final = "record it again with --ldos-update-baseline"
_FORMAT: Final = RecordFormat(
    "pytest-ldos trials",
    SCHEMA_VERSION,
    remedy=f"restore it, or {_AGAIN}",
    again=_AGAIN,
    instead=dict.fromkeys(("pytest-ldos report", "pytest-ldos calibration"), "name the trials.json of the same run"),
)


_NO_TRIALS: Final = '"trials": []\n}\n'

_texts: Final[dict[int, tuple[weakref.ref[Trial], str]]] = {}
"""Text of each living trial, by its identity: a record is written again after each of its trials."""


def encode_trials(trials: TrialSet) -> str:
    """JSON text of a trial set; numbers keep their full precision."""
    whole = _FORMAT.encode({**_to_plain(trials), "trials": []}, default=_to_plain)
    if not trials.trials:
        return whole
    assert whole.endswith(_NO_TRIALS)
    each = ",\n  ".join(map(_encode_trial, trials.trials))
    return f'{whole.removesuffix(_NO_TRIALS)}"trials": [\n  {each}\n ]\n}}\n'


def _encode_trial(trial: Trial) -> str:
    """JSON text of a trial, indented as in its record."""
    key = id(trial)
    if key not in _texts:
        text = json.dumps(trial, indent=1, allow_nan=False, default=_to_plain).replace("\n", "\n  ")
        _texts[key] = weakref.ref(trial, lambda _: _texts.pop(key, None)), text
    return _texts[key][1]


def decode_trials(text: str, path: Path) -> TrialSet:
    """Decodes a trial set from JSON text; raises `RecordUnreadable` as `RecordFormat.decode`."""
    return _FORMAT.decode(text, path, _to_trials)


_USUAL: Final[Mapping[type, Mapping[str, object]]] = {
    TrialSet: {
        "watched": "",
        "distortion": "",
        "trial_kind": TrialKind.MOTION,
        "surroundings": None,
        "repeated": (),
        "commit_unknown": "",
        "influences": {},
        "withheld": (),
        "environment": {},
        "other_cpus": "",
    },
    StackSpec: {"cpus": ""},
    Fingerprint: {"stack_cpus": ""},
    FaultSpec: {"cpu_waste": 0.0, "leak_mb": 0.0},
    Metric: {"usual_floor": USUAL_FLOOR, "asked_as": ""},
    MotionTrial: {"interference": None, "numbers": {}, "reset_failure": "", "content": "", "placed": None},
}
"""Values that are omitted, so that older versions without these fields can read the record."""

_LAST: Final[Mapping[type, str]] = {
    TrialSet: "looks last_look spec fingerprint metrics trials",
    MotionTrial: "goal_id seed block outcome error_code message stamps_ns plan_duration_ns plan_points "
    "position_error_m rotation_error_rad measurements segments_ns deadlines cpu_work_ns numbers reset_failure "
    "content interference",
}
"""Fields at the end of an object in a file, in order."""

_KINDS: Final[Mapping[str, type[Trial]]] = {each.KIND: each for each in (MotionTrial, RoundTrial)}


def _to_plain(value: Any) -> dict[str, Any]:
    """A dataclass or a mapping as an object of a file."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Measurement) and isinstance(value.value, Missing | Invalid):
        return {"missing" if isinstance(value.value, Missing) else "invalid": value.value.reason}
    kind = type(value)
    usual, last = _USUAL.get(kind, {}), _LAST.get(kind, "").split()
    names = [each.name for each in fields(value) if each.name not in last] + last
    plain = {name: getattr(value, name) for name in names}
    if isinstance(value, ScenarioSpec):
        plain["loads"] = {load.KIND: load for load in value.loads}
    return {name: each for name, each in plain.items() if name not in usual or each != usual[name]}


def _to_trials(document: dict[str, Any]) -> TrialSet:
    kind = TrialKind(document.get("trial_kind", TrialKind.MOTION))
    trials: TrialSet = _reader(kind).read(TrialSet, document | {"trial_kind": kind}, "the record")
    json.dumps(trials.loads, allow_nan=False)  # refuses values that cannot be encoded
    require_undamaged(trials)
    try:
        datetime.fromisoformat(trials.started_at).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"it began at no moment: {trials.started_at!r}") from None
    for name in (trials.scenario, trials.stack_kind):  # files are named after them
        if name.startswith((".", "/")) or ".." in name.split("/") or "\0" in name:
            raise ValueError(f"{name!r} cannot name a file")
    return trials


def _to_measurement(values: Mapping[str, Any], what: str) -> Measurement:
    for name, kind in (("missing", Missing), ("invalid", Invalid)):
        if name in values:
            return Measurement(kind(read_plain(str, values[name], f"{what}.{name}")))
    read_plain(float, values["value"], "a measured value")
    measurement: Measurement = read_plain(Measurement, values, what)
    return measurement


@cache
def _reader(kind: TrialKind) -> PlainReader:
    reader = PlainReader(
        {tuple[LoadSpec, ...]: lambda *given: tuple(parse_loads(*given).values()), Measurement: _to_measurement}
    )
    reader.by_type[Trial] = reader.reader_of(_KINDS[kind])
    return reader


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
    """Writes a scenario's record; raises `NotWritten`, which names the needed space, and where it is instead."""
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
