"""User-defined metrics: registration, and results of their functions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos import api
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.series import Better, Invalid, Missing
from pytest_ldos.measure.metrics.catalogue import METRICS, catalogue_of, require_own
from pytest_ldos.trace.ctf.stats import Gap, ReadStats, StreamStats
from pytest_ldos.trace.execution.model import Plan, TrialSpan
from tests.builders.models import changed, empty_model

MS = 1_000_000
START = 1_000 * MS


def points(context, window):
    return context.trial.plan.points


def own(measure=points, **settings):
    described = {"name": "plan_points", "title": "points of the plan", "unit": "", "better": Better.LOWER}
    return api.OwnMetric(**{**described, "measure": measure, **settings})


@pytest.fixture
def model():
    phases = {Phase.GOAL_SENT: START, Phase.PLANNING: START + 2 * MS, Phase.EXECUTING: START + 14 * MS}
    phases[Phase.RESULT] = START + 114 * MS
    trial = TrialSpan(
        goal_id="a" * 32,
        scenario="baseline",
        index=0,
        begin_ns=START,
        phases=phases,
        plan=Plan(70 * MS, 10),
        end_ns=START + 115 * MS,
        error_code=1,
    )
    return changed(empty_model(), trials=[trial])


def take(model, metric):
    (found,) = api.extract_metrics(model, nominal_period_ns=2 * MS, own=[metric]).values()
    assert list(found.measurements) == [*METRICS, metric.name]
    assert found.measurements["T1"].value == 12.0
    return found.measurements[metric.name].value


def test_user_metric_is_measured_with_the_built_in_ones(model):
    assert take(model, own()) == 10.0
    assert isinstance(take(model, own(lambda context, window: np.int64(3))), float)


def test_window_is_the_requested_one(model):
    def length_ms(context, window):
        return (window[1] - window[0]) / MS

    assert take(model, own(length_ms)) == 114
    assert take(model, own(length_ms, window=api.TrialContext.execution_window)) == 100
    assert take(model, own(length_ms, window=api.TrialContext.planning_window)) == 12
    assert take(model, own(length_ms, window=lambda context: (START, START + MS))) == 1


def test_missing_window_calls_no_function(model):
    (trial,) = model.trials.values()
    short = changed(model, trials=[replace(trial, phases={Phase.GOAL_SENT: START, Phase.RESULT: START + MS})])
    metric = own(lambda context, window: 1 / 0, window=api.TrialContext.execution_window)
    (found,) = api.extract_metrics(short, nominal_period_ns=2 * MS, own=[metric]).values()
    assert found.measurements["plan_points"].value == Missing("the trial never entered phase 'executing'")


def test_absent_events_are_reported_as_missing(model):
    def age(context, window):
        passages = context.passages(api.PathSpec(name="feedback", via=("/joint_states", "/tf")), window)
        return api.Missing("no /tf") if passages.is_empty() else 1.0

    assert take(model, own(age)) == Missing("no /tf")


def test_flow_is_built_once_on_demand(model, monkeypatch):
    from pytest_ldos.measure.metrics import extract

    built = []
    monkeypatch.setattr(extract, "build_flow", lambda model: built.append(model) or api.build_flow(model))
    (trial,) = model.trials.values()
    both = changed(model, trials=[trial, replace(trial, goal_id="b" * 32)])
    api.extract_metrics(both, nominal_period_ns=2 * MS, own=[own()])
    assert built == []
    api.extract_metrics(both, nominal_period_ns=2 * MS, own=[own(lambda context, window: len(context.flow.uses))])
    assert built == [both]


def test_lost_events_invalidate_the_value(model):
    gap = Gap(START + 50 * MS, START + 51 * MS, 3, 0)
    stats = ReadStats((StreamStats(path=Path("s"), trace=0, packets=1, events=1, truncated_bytes=0, gaps=(gap,)),))
    lossy = changed(model, stats=stats)
    (found,) = api.extract_metrics(lossy, nominal_period_ns=2 * MS, own=[own()]).values()
    assert found.measurements["plan_points"].value == Invalid("3 events lost while it was measured")
    assert found.measurements["T1"].value == 12.0


def fails(context, window):
    return context.trial.plan.duration_ns / (window[0] - window[0])


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        (fails, r"plan_points could not be taken: ZeroDivisionError: division by zero \(test_own.py:\d+ in fails\)"),
        (lambda context, window: context.trial.plam, r"AttributeError: .*'plam' \(test_own.py:\d+ in <lambda>\)"),
        (lambda context, window: np.array([]).max(), r"ValueError: .* \(test_own.py:\d+ in <lambda>\)"),
        (max, r"TypeError: "),
        (lambda context, window: math.nan, r"\(test_own.py:\d+\) gave nan; it must give a finite number of 0 or more"),
        (lambda context, window: math.inf, "gave inf; it must give a finite number"),
        (lambda context, window: 10**400, "gave inf; it must give a finite number"),
        (lambda context, window: Fraction(-(10**400)), "gave inf; it must give a finite number"),
        (lambda context, window: {10**5000}, r"gave a set that cannot be shown \(ValueError\); it must give a number"),
        (lambda context, window: -0.5, "gave -0.5; it must give a finite number of 0 or more"),
        (lambda context, window: None, "gave None; it must give a number, or Missing"),
        (lambda context, window: "12 ms", "gave '12 ms'; it must give a number, or Missing"),
        (lambda context, window: True, "gave True; it must give a number"),
        (lambda context, window: [1.0] * 100, "gave .{60}…; it must give a number"),
    ],
)
def test_faulty_function_invalidates_only_its_value(model, measure, reason):
    import re

    value = take(model, own(measure))
    assert isinstance(value, Invalid)
    assert re.search(reason, value.reason), value.reason
    assert "\n" not in value.reason


def test_invalid_window(model):
    assert "is 7; it must be two whole numbers of nanoseconds" in take(model, own(window=lambda context: 7)).reason
    assert "ZeroDivisionError" in take(model, own(window=lambda context: 1 / 0)).reason
    assert "two whole numbers" in take(model, own(window=lambda context: (1.5, 2.5))).reason
    for window in ((START, START - 1), (-1, START), (START, 10**400)):
        reason = take(model, own(window=lambda context, window=window: window)).reason
        assert f"the window of plan_points is ({window[0]}, " in reason
        assert "it must begin before it ends" in reason


def test_window_of_numpy_numbers_is_accepted(model):
    def length_ns(context, window):
        assert [type(end) for end in window] == [int, int]
        return window[1] - window[0]

    ends = np.array([START, START + MS])
    assert take(model, own(length_ns, window=lambda context: tuple(ends))) == MS


@pytest.mark.parametrize("reason", [object(), ValueError("no /tf"), None, 3])
def test_reasons_are_kept_as_text(model, reason):
    assert take(model, own(lambda context, window: api.Missing(reason))) == Missing(str(reason))
    assert take(model, own(window=lambda context: api.Missing(reason))) == Missing(str(reason))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "plan points"}, "'plan points' cannot name a metric\n.*letters, digits and _"),
        ({"name": "1st"}, "'1st' cannot name"),
        ({"name": "größe"}, "cannot name a metric"),
        ({"name": ""}, "the name of a metric is ''"),
        ({"name": None}, "the name of a metric is None"),
        ({"title": ""}, "the title of metric 'plan_points' is ''"),
        ({"title": "two\nlines"}, "no single line"),
        ({"title": "\x1b[31mred"}, "no single line"),
        ({"unit": "msec"}, "unknown unit: 'msec'\n"),
        ({"unit": 3}, "unknown unit: 3"),
        ({"better": "less"}, "unknown better: 'less'\n.*known are: higher, lower"),
        ({"adjust_for": ("planned_duration",)}, "unknown covariate: .*\n.*did you mean 'planned_duration_ms'"),
        ({"largest_tolerable_mde": 0}, "largest_tolerable_mde .* is 0\n.*above 0"),
        ({"largest_tolerable_mde": "big"}, "is 'big'"),
        ({"score_weight": -1}, "score_weight .* is -1\n.*0 or more"),
        ({"score_weight": math.nan}, "score_weight .* is nan"),
        ({"measure": 3}, "measure of metric 'plan_points' is 3\n.*a function"),
        ({"window": "execution"}, "window of metric 'plan_points' is 'execution'\n.*a function"),
    ],
)
def test_invalid_description_is_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        own(**settings)


def test_direction_may_be_a_string():
    assert own(better="higher").better is Better.HIGHER


@pytest.mark.parametrize(
    ("registered", "message"),
    [
        ([own(name="T1")], r"metric 'T1' \(test_own.py:\d+\) has the name of another metric: planning latency"),
        ([own(), own(fails)], r"two metrics are called 'plan_points' \(test_own.py:\d+, test_own.py:\d+\)"),
        ([own(), "T9"], "'T9' was registered as a metric\n.*OwnMetric"),
        (own(), "no list of metrics"),
        (None, r"pytest_ldos_metrics\(\) gave None, no list of metrics"),
        ("T9", "gave 'T9', no list of metrics"),
    ],
)
def test_invalid_registrations_are_refused(registered, message):
    with pytest.raises(ConfigurationError, match=message):
        catalogue_of(registered)


def test_valid_registrations_are_accepted():
    assert require_own(iter([])) == ()
    assert list(catalogue_of(metric for metric in (own(), own(name="other")))) == [*METRICS, "plan_points", "other"]


@pytest.mark.parametrize(
    ("name", "function", "called_with"),
    [
        ("measure", lambda context: 1.0, r"\(context, window\)"),
        ("measure", lambda context, window, unit: 1.0, r"\(context, window\)"),
        ("measure", lambda *, context, window: 1.0, r"\(context, window\)"),
        ("window", lambda: (0, 1), r"\(context\)"),
    ],
)
def test_uncallable_function_is_refused_at_registration(name, function, called_with):
    message = rf"{name} of metric 'plan_points' \(test_own.py:\d+\) cannot be called with {called_with}: "
    with pytest.raises(ConfigurationError, match=message):
        own(**{name: function})


@pytest.mark.parametrize("function", [lambda *both: 1.0, lambda context, window, unit="": 1.0, max])
def test_any_callable_is_accepted(function):
    assert own(function).measure is function
