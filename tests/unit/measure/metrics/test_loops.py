"""Metrics of control loops, from a controller manager's statistics."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, Phase
from pytest_ldos.base.series import Moments
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.metrics.declared import in_traces, refuse_unknown_loops, since
from pytest_ldos.measure.metrics.extract import extract_trial
from pytest_ldos.measure.metrics.model import OutsideTrace
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.trace.execution.model import TrialSpan
from tests.builders.models import empty_model

STATISTICS = {
    "arm.stats/execution_time": Moments(1000, 25.0, 5.0),
    "arm.stats/periodicity": Moments(1000, 500.0, 10.0),
    "hinge.stats/read_cycle/execution_time": Moments(1000, 3.0, 1.0),
    "hinge.stats/read_cycle/periodicity": Moments(1000, 500.0, 20.0),
    "hinge.stats/write_cycle/execution_time": Moments(1000, 4.0, 1.0),
}
"""Statistics of controller_manager 4.46 for a controller and a hardware component: µs and Hz."""


def specs(*texts):
    return parse_metrics(list(texts), BUILT_IN_PATHS)


def take(text, loops):
    (spec,) = specs(text)
    phases = {Phase.GOAL_SENT: 0, Phase.RESULT: 2_000_000_000}
    trial = TrialSpan(
        goal_id="a" * 32,
        scenario="w",
        index=0,
        begin_ns=0,
        phases=phases,
        plan=None,
        end_ns=2_000_000_000,
        error_code=1,
    )
    found = extract_trial(
        trial,
        empty_model(),
        stamps_ns={},
        nominal_period_ns=2_000_000,
        catalogue=catalogue_of((), [spec]),
        outside=OutsideTrace(loops=loops),
    )
    return found.measurements[spec.name]


def test_update_duration_is_the_mean():
    found = take("update:arm", STATISTICS)
    assert found.value == pytest.approx(0.025)
    assert found.details == {"updates": 1000, "sd_ms": pytest.approx(0.005)}


def test_hardware_update_is_read_plus_write():
    found = take("update:hinge", STATISTICS)
    assert found.value == pytest.approx(0.007)
    assert found.details["write_cycle_ms"] == pytest.approx(0.004)


@pytest.mark.parametrize(("name", "expected_ms"), [("arm", 0.04), ("hinge", 0.08)])
def test_jitter_is_the_spread_of_periods_and_marked_as_approximate(name, expected_ms):
    found = take(f"jitter:{name}", STATISTICS)
    assert found.value == pytest.approx(expected_ms)
    assert found.source.is_approximate


def test_reactivated_controller_has_no_value():
    now = {**STATISTICS, "arm.stats/execution_time": Moments(10, 1.0, 1.0)}
    assert "arm.stats/execution_time" not in since(now, STATISTICS)
    reason = take("update:arm", since(now, STATISTICS)).value.reason
    assert reason == "'arm' was not updated in the trial, or activated in it"


def test_trace_alone_has_no_loop_metrics():
    assert "no trace has it" in take("update:arm", None).value.reason
    assert in_traces(specs("update:arm", "jitter:arm")) == ()


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (STATISTICS, "metric 'jitter:hing': the controller manager has no 'hing'; it has arm, hinge"),
        ({}, "metric 'jitter:hing': no controller manager publishes statistics of its loops"),
    ],
)
def test_unknown_controller_is_refused(statistics, message):
    refuse_unknown_loops(specs("update:arm"), STATISTICS)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        refuse_unknown_loops(specs("jitter:hing"), statistics)
