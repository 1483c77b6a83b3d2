"""Criteria for broken trials and levels."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.series import Better, Missing
from pytest_ldos.campaign.breaking_result import MetricBeyond, SuccessBelow, parse_criterion
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from tests.builders.trials import failed_trial, trial, trial_set

THROUGHPUT = Metric(name="throughput", title="goals a minute", unit="", better=Better.HIGHER)
KNOWN = {**METRICS, "throughput": THROUGHPUT}


@pytest.mark.parametrize(("text", "boundary"), [("success<0.5", 0.5), ("success<90%", 0.1), (" success < 0.25 ", 0.75)])
def test_success_rates(text, boundary):
    criterion = parse_criterion(text, KNOWN)
    assert isinstance(criterion, SuccessBelow)
    assert criterion.boundary == pytest.approx(boundary)
    assert criterion.is_broken(failed_trial(0), None) is True
    assert criterion.is_broken(trial(0, {"T1": 1e9}), None) is False


def test_metric_beyond_a_multiple_of_its_calm_median():
    criterion = parse_criterion("T1>3x", KNOWN)
    assert isinstance(criterion, MetricBeyond)
    assert criterion.boundary == 0.5
    calm = trial_set([trial(index, {"T1": value}) for index, value in enumerate((9.0, 10.0, 14.0))])
    assert criterion.limit(calm) == 30.0
    assert criterion.is_broken(trial(0, {"T1": 31.0}), 30.0) is True
    assert criterion.is_broken(trial(0, {"T1": 30.0}), 30.0) is False
    assert criterion.is_broken(failed_trial(0), 30.0) is True
    assert criterion.is_broken(trial(0, {"T1": Missing("no")}), 30.0) is None
    assert criterion.is_broken(trial(0, {"T1": 31.0}), None) is None
    assert criterion.describe_limit(30.0) == "30.0 ms, 3 × the median of 10.0 ms"


def test_failed_trials_do_not_affect_the_calm_median():
    calm = trial_set([trial(0, {"T4": 10.0}), failed_trial(1)])
    criterion = parse_criterion("T4>2x", KNOWN)
    assert isinstance(criterion, MetricBeyond)
    assert criterion.limit(calm) == 20.0


def test_limit_is_a_fraction_if_higher_is_better():
    criterion = parse_criterion("throughput<0.5x", KNOWN)
    calm = trial_set([trial(0, {"throughput": 20.0})])
    limit = criterion.limit(calm)
    assert criterion.is_broken(trial(0, {"throughput": 9.0}), limit) is True
    assert criterion.is_broken(trial(0, {"throughput": 11.0}), limit) is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "says no criterion"),
        ("T1", "says no criterion"),
        ("T1>three", "says no criterion"),
        ("T3p98>3x", "did you mean 'T3p99'"),
        ("sucess<0.5", "did you mean 'success'"),
        ("success>0.5", "write it as success<0.5"),
        ("success<1", "between 0 and 1"),
        ("success<0", "between 0 and 1"),
        ("success<2x", "between 0 and 1"),
        ("T1>3", "write it as T1>3x"),
        ("T1<3x", "write it as T1>3x"),
        ("T1>1x", "write it as T1>3x"),
        ("T1>0.5x", "write it as T1>3x"),
        ("throughput>2x", "write it as throughput<0.5x"),
        ("throughput<0x", "write it as throughput<0.5x"),
    ],
)
def test_invalid_criterion_is_refused(text, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_criterion(text, KNOWN)
