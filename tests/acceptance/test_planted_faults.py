"""Two equal runs pass; a slower planner and a slower control loop are found and named."""

from __future__ import annotations

from statistics import median

import pytest

from pytest_ldos import api
from pytest_ldos.measure.trial.record import all_series

DELAY = 2.0


def show(result: api.GateResult) -> None:
    print(f"verdict: {result.verdict}")
    for each in result.comparisons:
        print(
            f"  {each.metric:4} {each.verdict:12} {each.ratio:6.3f} [{each.low:.3f}, {each.high:.3f}]"
            f"  p {each.p_value:.2g}  detectable {100 * each.mde:.0f} %"
        )


def regressed(result: api.GateResult) -> set[str]:
    return {each.metric for each in result.comparisons if each.verdict is api.Verdict.REGRESSED}


def test_two_equal_runs_are_no_regression(base, again):
    result = api.decide(again.trials, base.trials, api.Policy())
    show(result)
    assert regressed(result) == set()
    assert result.verdict is not api.Verdict.REGRESSED


def test_planner_three_times_slower_is_found(base, measure):
    """In one start, measured later, on a host that was not calibrated: smaller changes are not distinguished from variation over time."""
    t1 = median(all_series(base.trials)["T1"].finite)
    head = measure(f"planning delayed by {DELAY * t1:.1f} ms", planning_delay_ms=DELAY * t1)
    result = api.decide(head.trials, base.trials, api.Policy())
    show(result)
    assert "T1" in regressed(result)


def test_a_control_loop_at_400_hz_is_found(base, measure):
    head = measure("control loop at 400 Hz", trials=10, control_rate_hz=400)
    result = api.decide(head.trials, base.trials, api.Policy())
    show(result)
    assert "T3mean" in regressed(result)
    assert result.comparison("T3").ratio > 1.5


def test_a_slower_callback_and_a_slower_transport_are_named_first(base, measure):
    """Each within 20 % of what was planted, and nothing else with a larger share."""
    planted = {
        "callback_delay_ms": (5.0, "callback run: /robot_state_publisher: /joint_states"),
        "transport_delay_ms": (8.0, "transport: /joint_states → /robot_state_publisher"),
    }
    for fault, (delay_ms, segment) in planted.items():
        head = measure(f"{fault} {delay_ms}", trials=10, **{fault: delay_ms})
        first = api.explain(base.trials, head.trials)["state feedback"].changes[0]
        print(f"  first: {first}")
        assert first.segment == segment
        assert first.change_ns == pytest.approx(delay_ms * 1e6, rel=0.2)
        assert first.low_ns > 0


def test_a_slower_planner_is_explained_by_its_planning(base, measure):
    head = measure("planning delayed by 10 ms", trials=10, planning_delay_ms=10.0)
    first = api.explain(base.trials, head.trials)["planning"].changes[0]
    print(f"  first: {first}")
    assert first.segment == "outside callbacks: /move_group from planning to executing"
    assert first.change_ns == pytest.approx(10e6, rel=0.2)
