"""Files in ``recorded/``, written by the first version of this format, are read and come back byte for byte."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.campaign.sweep_records import decode_start, encode_start
from pytest_ldos.judge.baseline.calibration_codec import decode_calibration, encode_calibration
from pytest_ldos.measure.metrics.deadlines import Kept
from pytest_ldos.measure.metrics.sources import published_clock
from pytest_ldos.measure.trial.codec import decode_trials, encode_trials
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.loads.cpu_load import CpuLoadSpec
from pytest_ldos.scenario.loads.dds_flood import DdsFloodSpec

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


def test_motions_are_read_with_everything_in_them():
    trials = read("motions")
    whole, odd, failed = trials.trials
    assert trials.spec.loads == (CpuLoadSpec(), DdsFloodSpec(rate_hz=2000))
    assert whole.segments_ns["goal"] == {"latency": 1_970_000_000, "callback: /move_group": 13_000_000}
    assert whole.deadlines == {"planning": Kept(1, 1)}
    assert whole.measurements["T5"].source == published_clock("/clock")
    assert odd.measurements["T1"].value == Missing("never")
    assert odd.measurements["T2"].value == Invalid("3 events lost – at µ")
    assert (failed.outcome, failed.error_code) == (OutcomeClass.PLANNING_FAILED, -31)


def test_rounds_of_an_instrument_are_read_with_everything_in_them():
    trials = read("rounds")
    assert [trial.measurements["half_p50"].number for trial in trials.trials[:3]] == [10.0, 11.0, 12.0]
    assert [(trial.goal, trial.block) for trial in trials.trials] == [
        ("1 KiB", 0),
        ("1 KiB", 1),
        ("1 KiB", 0),
        ("1 KiB", 1),
    ]
    assert (trials.successes, trials.trials[3].message) == (3, "no peer answered")
    assert (trials.watched, trials.distortion) == ("strace", "system calls stop")


HARM: tuple[object, ...] = (None, True, -1, 2**70, 1.5, float("nan"), "x", [], {}, [None], {"x": []})


def containers(value: Any) -> Iterator[Any]:
    """Every object and array in a document."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from containers(each)


def damaged(document: Any) -> Iterator[Any]:
    """The document itself, each time with one value replaced, missing or added."""
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


@pytest.mark.parametrize("name", ["motions", "rounds"])
def test_one_wrong_value_ends_in_trials_that_can_be_written_or_in_a_refusal(name, tmp_path):
    refused = 0
    for document in damaged(json.loads(text_of(name))):
        try:
            trials = decode_trials(json.dumps(document), tmp_path / "here.json")
        except RecordUnreadable:
            refused += 1
        else:
            assert encode_trials(trials)
    assert refused > 1000
