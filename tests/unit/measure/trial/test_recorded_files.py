"""Files in ``recorded/``, of the first version of this format, are read and written back byte for byte."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.campaign.sweep import decode_start, encode_start
from pytest_ldos.campaign.watching import to_trials
from pytest_ldos.instruments.study import Round
from pytest_ldos.judge.baseline.key import decode_calibration, encode_calibration
from pytest_ldos.measure.metrics.extract import Kept
from pytest_ldos.measure.metrics.model import published_clock
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials
from pytest_ldos.measure.trial.record import RoundTrial
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.loads import CpuLoadSpec, DdsFloodSpec
from tests.builders.studies import study
from tests.builders.trials import FINGERPRINT

RECORDED = Path(__file__).parent / "recorded"


def text_of(name: str) -> str:
    return (RECORDED / f"{name}.json").read_text("utf-8")


def read(name: str):
    return decode_trials(text_of(name), RECORDED / f"{name}.json")


def test_motions_come_back_byte_for_byte():
    assert encode_trials(read("motions")) == text_of("motions")


def test_calibrations_come_back_byte_for_byte(tmp_path):
    text = text_of("calibration")
    assert encode_calibration(decode_calibration(text, tmp_path)) == text


def test_starts_of_a_sweep_come_back_byte_for_byte(tmp_path):
    text = text_of("sweep_start")
    assert encode_start(decode_start(text, tmp_path)) == text


def test_motions_are_read_completely():
    trials = read("motions")
    whole, odd, failed = trials.trials
    assert trials.spec.loads == (CpuLoadSpec(), DdsFloodSpec(rate_hz=2000))
    assert whole.segments_ns["goal"] == {"latency": 1_970_000_000, "callback: /move_group": 13_000_000}
    assert whole.deadlines == {"planning": Kept(1, 1)}
    assert whole.measurements["T5"].source == published_clock("/clock")
    assert odd.measurements["T1"].value == Missing("never")
    assert odd.measurements["T2"].value == Invalid("3 events lost – at µ")
    assert (failed.outcome, failed.error_code) == (OutcomeClass.PLANNING_FAILED, -31)


def test_rounds_are_read_completely():
    study_rounds = (*study().rounds, Round(case="1 KiB", block=1, failure="no peer answered"))
    watched = study(rounds=study_rounds, watched="strace", distortion="system calls stop")
    made = to_trials(watched, commit="0123456789ab")
    # Of a process with other niceness, and of another machine, too.
    expected = dataclasses.replace(made, fingerprint=FINGERPRINT, influences={}, environment={})
    assert read("rounds") == expected
    assert {type(trial) for trial in read("rounds").trials} == {RoundTrial}


def test_rounds_come_back_byte_for_byte_with_their_kind_and_without_the_fields_of_a_motion(tmp_path):
    text = encode_trials(read("rounds"))
    assert text == text_of("rounds")
    document = json.loads(text)
    assert document["trial_kind"] == "round"
    assert list(document["trials"][0]) == ["index", "goal", "block", "outcome", "message", "measurements"]
    # Not recognised by its stack's name, which is arbitrary.
    renamed = dataclasses.replace(read("rounds"), stack_kind="other")
    assert decode_trials(encode_trials(renamed), tmp_path) == renamed


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("rounds", {"trial_kind": "motion"}, "goal_id"),
        ("motions", {"trial_kind": "round"}, "unexpected keyword argument"),
        ("motions", {"trial_kind": "dance"}, "'dance' is not a valid TrialKind"),
    ],
)
def test_trials_of_another_kind_than_their_record_are_refused(name, change, message, tmp_path):
    document = json.loads(encode_trials(read(name))) | change
    with pytest.raises(RecordUnreadable, match=message):
        decode_trials(json.dumps(document), tmp_path)


def test_set_of_two_kinds_is_refused():
    with pytest.raises(ValueError, match="trial 0 is a motion among trials that are rounds"):
        dataclasses.replace(read("rounds"), trials=read("motions").trials)


HARM: tuple[Any, ...] = (None, True, -1, 2**70, 1.5, float("nan"), "x", [], {}, [None], {"x": []})


def containers(value: Any) -> Iterator[Any]:
    """All objects and arrays in a document."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from containers(each)


def damaged(document: Any) -> Iterator[Any]:
    """Copies of the document with one value replaced, missing or added."""
    for container in [*containers(document)]:
        sound = copy.copy(container)
        for key in sound if isinstance(sound, dict) else range(len(sound)):
            for harm in HARM:
                container[key] = harm
                yield document
            del container[key]
            yield document
            container.clear()
            container.update(sound) if isinstance(sound, dict) else container.extend(sound)
        if isinstance(sound, dict):
            container["one too many"] = 0
            yield document
            del container["one too many"]


@pytest.mark.parametrize("name", [pytest.param("motions", marks=pytest.mark.acceptance), "rounds"])
def test_wrong_value_is_refused_or_writable(name, tmp_path):
    refused = 0
    for document in damaged(json.loads(text_of(name))):
        try:
            trials = decode_trials(json.dumps(document), tmp_path / "here.json")
        except RecordUnreadable:
            refused += 1
        else:
            assert encode_trials(trials)
    assert refused > 1000
