"""The probability of error of a run is divided by weight among what it judges."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.series import Better
from pytest_ldos.judge.gate.case import have_little, metric_shares
from pytest_ldos.judge.gate.comparison import LOCATION, aspect_shares
from pytest_ldos.judge.gate.verdict import LateRise, Shape, Spread
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric

OWN = Metric(name="grip", title="grip force", unit="ms", better=Better.LOWER, error_share=0.04)
SHAPES = Shape(Spread(0.1, 0.1), 0.5, 0.0), Shape(LateRise(20, 1.0), 0.5, 0.0)


def test_shares_do_not_exceed_the_budget():
    assert sum(metric_shares(METRICS.values()).values()) < 1
    assert sum(metric_shares([*METRICS.values(), OWN]).values()) == pytest.approx(1)


def test_a_metric_that_is_not_measured_leaves_its_share_to_the_others():
    few, all_ = metric_shares([METRICS["T1"], METRICS["T4"]]), metric_shares(METRICS.values())
    assert few["T1"] / few["T4"] == pytest.approx(all_["T1"] / all_["T4"])
    assert few["T1"] > 2 * all_["T1"]


def test_excess_weights_share_the_whole_budget():
    heavy = [dataclasses.replace(metric.description, error_share=0.9) for metric in METRICS.values()]
    assert sum(metric_shares([*heavy, OWN]).values()) == pytest.approx(1)


def test_user_metric_does_not_change_other_shares():
    without, with_it = metric_shares(METRICS.values()), metric_shares([*METRICS.values(), OWN])
    assert {name: with_it[name] for name in without} == without


def test_metrics_of_settings_have_weight_and_own_metrics_change_no_share():
    asked = [dataclasses.replace(OWN, name=f"cpu_{name}", asked_as=f"cpu:{name}", error_share=0.06) for name in "abc"]
    without, with_it = (metric_shares([*METRICS.values(), *asked, *more]) for more in ((), (OWN,)))
    assert {name: with_it[name] for name in without} == without
    assert sum(with_it.values()) == pytest.approx(1)
    assert 0.8 < without["T1"] / metric_shares(METRICS.values())["T1"] < 1
    assert without["cpu_a"] == without["cpu_c"] == pytest.approx(without["T5"])


def test_user_metrics_alone_share_the_whole_budget():
    assert metric_shares([dataclasses.replace(OWN, error_share=1.0)]) == {"grip": 1.0}


def test_location_has_most_of_the_share_and_all_if_nothing_else_is_tested():
    assert aspect_shares(()) == {LOCATION: 1.0}
    shares = aspect_shares(SHAPES)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[LOCATION] > 0.8


@pytest.mark.parametrize(
    ("metrics", "required", "little"),
    [
        (METRICS, (), {"T2", "T3", "T5"}),
        (METRICS, ("T3", "T4"), {"T2", "T5"}),
        (("T2", "T3", "T3mean", "T5", "T5p99"), (), set()),
    ],
)
def test_metrics_with_companions_have_a_small_share(metrics, required, little):
    assert have_little(metrics, required) == little
