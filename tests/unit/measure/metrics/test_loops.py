"""Metrics of control loops, from statistics as a controller manager names them."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.paths import BUILT_IN_PATHS
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.metrics.context import OutsideTrace
from pytest_ldos.measure.metrics.declared import in_traces, refuse_unknown_loops, since
from pytest_ldos.measure.metrics.extract import extract_trial
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.trace.execution.model import TrialSpan
from tests.builders.models import empty_model

SAID = {
    "arm.stats/execution_time": Moments(1000, 25.0, 5.0),
    "arm.stats/periodicity": Moments(1000, 500.0, 10.0),
    "hinge.stats/read_cycle/execution_time": Moments(1000, 3.0, 1.0),
    "hinge.stats/read_cycle/periodicity": Moments(1000, 500.0, 20.0),
    "hinge.stats/write_cycle/execution_time": Moments(1000, 4.0, 1.0),
}
"""What controller_manager 4.46 publishes of a controller and a hardware component: µs and Hz."""


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


def test_an_update_takes_the_mean_of_its_durations():
    found = take("update:arm", SAID)
    assert found.value == pytest.approx(0.025)
    assert found.details == {"updates": 1000, "sd_ms": pytest.approx(0.005)}


def test_an_update_of_hardware_is_reading_and_writing():
    found = take("update:hinge", SAID)
    assert found.value == pytest.approx(0.007)
    assert found.details["write_cycle_ms"] == pytest.approx(0.004)


@pytest.mark.parametrize(("name", "expected_ms"), [("arm", 0.04), ("hinge", 0.08)])
def test_jitter_is_the_spread_of_periods_and_marked_as_approximate(name, expected_ms):
    found = take(f"jitter:{name}", SAID)
    assert found.value == pytest.approx(expected_ms)
    assert found.source.is_approximate


def test_a_controller_that_was_activated_again_has_no_number_of_the_trial():
    now = {**SAID, "arm.stats/execution_time": Moments(10, 1.0, 1.0)}
    assert "arm.stats/execution_time" not in since(now, SAID)
    reason = take("update:arm", since(now, SAID)).value.reason
    assert reason == "'arm' was not updated in the trial, or activated in it"


def test_a_trace_alone_has_none():
    assert "no trace has it" in take("update:arm", None).value.reason
    assert in_traces(specs("update:arm", "jitter:arm")) == ()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (SAID, "metric 'jitter:hing': the controller manager has no 'hing'; it has arm, hinge"),
        ({}, "metric 'jitter:hing': no controller manager publishes statistics of its loops"),
    ],
)
def test_a_name_that_it_does_not_know_is_refused(said, message):
    refuse_unknown_loops(specs("update:arm"), SAID)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        refuse_unknown_loops(specs("jitter:hing"), said)
