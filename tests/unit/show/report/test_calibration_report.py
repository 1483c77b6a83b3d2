"""A calibration and a self-test as text: content and width."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.campaign.calibrate import CalibrationResult, Planted, Promise, Share, suggest
from pytest_ldos.campaign.detection import Detection, Promised
from pytest_ldos.campaign.noise import Design
from pytest_ldos.campaign.selftest import SelfTestResult
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.calibration import (
    render_calibration,
    render_calibration_json,
    render_self_test,
    render_self_test_json,
)
from tests.builders.calibrations import calibration_of
from tests.builders.command_line import lines_of
from tests.builders.trials import noisy_set

NAMES = ("T1", "T2", "T2x", "T3", "T3p99", "T4", "T5", "T5p99")
FILE = ".ldos/baselines/embedded/a_host/baseline.calibration.json"


def noise(deviation):
    return MetricNoise(trial_sd=deviation, start_sd=deviation / 2, start_df=7, run_sd=deviation, run_df=6.5, floor=0.05)


def promise(design, trials, *, modelled=0.0):
    mde = {name: 0.001 if name == "T2" else (math.inf if name == "T5p99" else 3 / trials) for name in NAMES}
    return Promise(
        design=design,
        trials=trials,
        alarms=Share(2, 200),
        by_failures=Share(1, 200),
        undecided=Share(20, 200),
        mde=mde,
        held_out=1 - modelled,
        modelled=modelled,
    )


PROMISES = tuple(promise(design, trials, modelled=float(trials > 8)) for design in Design for trials in (8, 30))
SUGGESTIONS = tuple(suggest(PROMISES, design, effect=0.15) for design in Design)
RESULT = CalibrationResult(
    calibration=calibration_of({name: noise(0.0012 if name == "T2" else 0.12) for name in NAMES}),
    effect=0.15,
    promises=PROMISES,
    suggestions=SUGGESTIONS,
    planted=tuple(
        Planted(design=each.design, metric=name, trials=trials, effect=0.15, found=Share(50, 60))
        for each in SUGGESTIONS
        for name, trials in each.by_metric.items()
        if trials is not None
    ),
    notes=("one run: how much other days differ is not in it",),
)


FIFTH = Share(12, 60)


def point(size, *, verdict=Verdict.PASSED, promised=None, share=FIFTH, seen_by=(), blamed=""):
    return Detection(
        fault="control_rate_drop" if size else "none",
        size=size,
        verdict=verdict,
        spent=10,
        seen_by=seen_by,
        blamed=blamed,
        share=share,
        promised=promised,
    )


TESTED = SelfTestResult(
    base=noisy_set(1),
    detections=(
        point(0.0, share=Share(0, 60)),
        point(0.02, promised=Promised("T3", 0.12, 0.3)),
        point(0.03, promised=Promised("T3", 0.2, 42e6)),
        point(0.05, promised=Promised("T3", 0.6, 0.3), share=Share(50, 60)),
        point(
            0.2,
            verdict=Verdict.REGRESSED,
            promised=Promised("T3", 5.36, 0.094),
            share=Share(60, 60),
            seen_by=("success", "T1", "T3", "T5"),
            blamed="transport: /joint_states → /robot_state_publisher +8.01 ms",
        ),
        Detection(
            fault="cpu_steal",
            size=0.8,
            verdict=Verdict.INFRA,
            problem=BringUpFailed("it was not ready\x1b[31m", remedy="look at the logs").summary,
        ),
    ),
    notes=("calibration: there",),
)


def text_of(result=RESULT, width=120):
    return render_calibration(result, file=FILE, width=width, color=False)


@pytest.mark.parametrize("width", [80, 120])
def test_report_fits_and_is_not_truncated(width):
    for text in (text_of(width=width), render_self_test(TESTED, width=width, color=False)):
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text.replace(" … ", "")


def test_calibration_report():
    lines = lines_of(text_of())
    assert lines[0] == "baseline: 64 trials of 8 starts of one version"
    assert "T1 12 % 6.0 % 12 % 6.5 5.0 %" in lines
    assert "T2 0.12 % 0.06 % 0.12 % 6.5 5.0 %" in lines
    assert "equal versions, judged by the gate (200 pairs drawn for each number)" in lines
    assert "8 2 (≤ 3.6 %) 10 % 2 (≤ 3.6 %) 10 %" in lines
    assert "4 of these 8 are red by failed trials alone, not by a metric" in lines
    assert "30* 10 % 0.10 % 10 % 10 % 10 % 10 % 10 % –" in lines
    assert "T1 30 83 % (71 … 92) 30 83 % (71 … 92)" in lines
    assert "T5p99 none tried none tried" in lines
    assert (
        "interleaved with the base (--ldos-base): 30 trials are enough for T1, T2, T2x, T3, T3p99, T4, T5; not for T5p99"
        in lines
    )
    assert "judged by the noise of starts that are not in the pair: interleaved 8; sequential 8" in lines
    assert lines[-1] == f"stored: {FILE}"


def test_no_number_of_trials_is_sufficient():
    suggestions = tuple(suggest(PROMISES, design, effect=1e-6) for design in Design)
    text = text_of(dataclasses.replace(RESULT, suggestions=suggestions, planted=()))
    assert text.count("no tested number of trials is enough for any metric") == 2


def test_json_has_no_infinity():
    document = json.loads(render_calibration_json([(RESULT, FILE)]), parse_constant=pytest.fail)
    (scenario,) = document["scenarios"]
    assert scenario["file"] == FILE
    assert scenario["promises"][0]["mde"]["T5p99"] is None
    assert scenario["promises"][0]["false_alarms"]["count"] == 2
    assert scenario["suggestions"][0] == {
        "design": "interleaved",
        "trials": 30,
        "by_metric": {**dict.fromkeys(NAMES, 30), "T2": 8, "T5p99": None},
    }


def test_self_test_report():
    lines = lines_of(render_self_test(TESTED, width=120, color=False))
    assert "none 0 no 10 ·········· 0 % kept" in lines
    assert "control rate drop 2 % no 10 ██········ 20 % 12 % < 30 %" in lines
    assert "control rate drop 3 % no 10 ██········ 20 % 20 % < any" in lines
    assert "control rate drop 5 % no 10 ████████·· 83 % chance 60 % ≥ 30 %" in lines
    assert "control rate drop 20 % yes 10 ██████████ 100 % success +3 kept 536 % ≥ 9.4 %" in lines
    assert "cpu steal 80 % infra 0" in lines
    assert "control rate drop 20 %: explained by transport: /joint_states → /robot_state_publisher +8.01 ms" in lines
    assert any(line.startswith("cpu steal 80 %: it was not ready") and "\x1b" not in line for line in lines)
    assert lines[-1] == "the gate kept its promises (1 was due), and did not call an equal version regressed"


def test_broken_promises_are_named():
    missed = point(0.05, promised=Promised("T3", 0.6, 0.3), share=Share(3, 60))
    wolf = point(0.0, verdict=Verdict.REGRESSED, seen_by=("T1",))
    result = dataclasses.replace(TESTED, detections=(wolf, missed))
    lines = lines_of(render_self_test(result, width=120, color=False))
    assert any(line.endswith("T1 false alarm") for line in lines)
    assert any(line.endswith("broken 60 % ≥ 30 %") for line in lines)
    assert lines[-1] == (
        "the gate did not keep its promises: an equal version was called regressed; control rate drop 5 % was missed"
    )
    document = json.loads(render_self_test_json(result))
    assert document["kept"] is False
    assert [each["keeping"] for each in document["points"]] == ["false alarm", "broken"]
