"""Converts trial sets to JSON text and back, and validates them.

The schema is versioned; a file of another version is refused.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.files import PlainReader, RecordFormat, read_plain
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.model import USUAL_FLOOR, Measurement, Metric
from pytest_ldos.measure.trial.record import MotionTrial, RoundTrial, Trial, TrialKind, TrialSet
from pytest_ldos.scenario.loads import LoadSpec
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec
from pytest_ldos.scenario.scenario_table import parse_loads


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
    },
    FaultSpec: {"cpu_waste": 0.0, "leak_mb": 0.0},
    Metric: {"usual_floor": USUAL_FLOOR, "asked_as": ""},
    MotionTrial: {"interference": None, "numbers": {}, "reset_failure": "", "content": ""},
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
_OF_MOTIONS: Final = {each.name for each in fields(MotionTrial)} - {each.name for each in fields(RoundTrial)}


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
    values = _with_kind(document)
    trials: TrialSet = _reader(values["trial_kind"]).read(TrialSet, values, "the record")
    json.dumps(trials.loads, allow_nan=False)  # refuses values that cannot be encoded
    require_undamaged(trials)
    _refuse_no_moment(trials.started_at)
    _refuse_ways_out(trials.scenario, trials.stack_kind)
    return trials


def _refuse_ways_out(*names: str) -> None:
    """Refuses names with path components: files are named after them."""
    for name in names:
        if name.startswith((".", "/")) or ".." in name.split("/") or "\0" in name:
            raise ValueError(f"{name!r} cannot name a file")


def _refuse_no_moment(text: str) -> None:
    try:
        datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"it began at no moment: {text!r}") from None


def _with_kind(values: dict[str, Any]) -> dict[str, Any]:
    """Adds the kind of the trials to an old file, which shows in its stack's name; rounds had a motion's fields."""
    if "trial_kind" in values:
        return {**values, "trial_kind": TrialKind(values["trial_kind"])}
    if not values["stack_kind"].startswith("middleware-"):
        return {**values, "trial_kind": TrialKind.MOTION}
    trials = [{name: each[name] for name in each if name not in _OF_MOTIONS} for each in values["trials"]]
    return {**values, "trial_kind": TrialKind.ROUND, "trials": trials}


def _to_loads(values: Any, what: str) -> tuple[LoadSpec, ...]:
    return tuple(parse_loads(values, what).values())


def _to_measurement(values: Mapping[str, Any], what: str) -> Measurement:
    for name, kind in (("missing", Missing), ("invalid", Invalid)):
        if name in values:
            return Measurement(kind(read_plain(str, values[name], f"{what}.{name}")))
    read_plain(float, values["value"], "a measured value")
    measurement: Measurement = read_plain(Measurement, values, what)
    return measurement


@cache
def _reader(kind: TrialKind) -> PlainReader:
    reader = PlainReader({tuple[LoadSpec, ...]: _to_loads, Measurement: _to_measurement})
    reader.by_type[Trial] = reader.reader_of(_KINDS[kind])
    return reader
