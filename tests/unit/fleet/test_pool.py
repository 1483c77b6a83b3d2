"""Pooled goals of many traces."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.fleet.traces import GoalValue, Outcome, Status, TraceSummary, is_whole, median_of, metric_names, pool
from pytest_ldos.show.report.analysis import render_fleet


def value(number, metric="T1", source="markers"):
    status = Status.MISSING if number is None else Status.MEASURED
    plain = GoalValue(
        goal="reach 1", goal_id="a", began_ns=1, outcome=Outcome.REACHED, metric=metric, unit="ms", status=status
    )
    return dataclasses.replace(plain, value=number, source=source if number is not None else "", reason="none")


def summary(name, *numbers, **changes):
    values = tuple(value(number) for number in numbers)
    return TraceSummary(**{"trace": name, "nodes": 2, "reached": len(numbers), "values": values, **changes})


def test_metric_over_all_traces():
    (found,) = pool([summary("a", 1.0, 2.0), summary("b", 3.0, None, 4.0), summary("c")])
    assert (found.count, found.traces, found.median) == (4, 2, 2.5)
    assert found.p95 == pytest.approx(3.85)


def test_sources_are_pooled_separately():
    found = pool([summary("a", 1.0), summary("b", values=(value(100.0, source="feedback publications"),))])
    assert [(each.source, each.median) for each in found] == [("feedback publications", 100.0), ("markers", 1.0)]


@pytest.mark.parametrize(
    "fault", [{"damage": "3 missing bytes"}, {"lost_events": 7}, {"lost_packets": 1}, {"problem": "no such directory"}]
)
def test_incomplete_trace_is_left_out(fault):
    lacking = summary("b", 100.0, **fault)
    assert is_whole(summary("a", 1.0))
    assert not is_whole(lacking)
    assert pool([summary("a", 1.0), lacking]) == pool([summary("a", 1.0)])
    assert pool([lacking]) == ()


def test_number_of_omitted_traces_is_reported():
    bad = [summary(name, 100.0, damage="3 missing bytes") for name in "bc"]
    lines = render(summary("a", 1.0), *bad).splitlines()
    assert "left out: 2 traces that are damaged or lost events" in lines
    assert ["T1", "1", "1", "1.00", "ms", "1.00", "ms", "markers"] in [each.split() for each in lines]
    assert ["b", "2", "1", "reached", "100.0", "ms", "0"] in [each.split() for each in lines]
    alone = render(bad[0], TraceSummary(trace="d", problem="why")).splitlines()
    assert "left out: 1 trace that is damaged or lost events" in alone
    assert "p95" not in " ".join(alone)
    assert "left out" not in render(summary("a", 1.0), TraceSummary(trace="d", problem="why"))


def test_metrics_in_the_order_of_the_catalogue():
    values = tuple(value(1.0, metric=name) for name in ("T2", "T1", "grip"))
    assert [each.metric for each in pool([summary("a", values=values)])] == ["T2", "T1", "grip"]
    assert metric_names([summary("a", values=values), summary("b", 1.0)]) == ("T2", "T1", "grip")


def test_the_median_of_a_trace():
    assert median_of(summary("a", 1.0, None, 2.0, 6.0), "T1") == (2.0, "ms")
    assert median_of(summary("a", None), "T1") is None


def test_mixed_sources_of_a_trace_have_no_median():
    mixed = summary("a", values=(value(1.0), value(100.0, source="feedback publications")))
    assert median_of(mixed, "T1") is None
    lines = [line.split() for line in render(mixed, summary("b", 1.0)).splitlines()]
    assert ["a", "2", "–", "–", "0"] in lines


def render(*summaries, **changes):
    return render_fleet(summaries, **{"width": 160, "color": False, "whole": False, **changes})


def test_hostile_names_are_escaped():
    name, problem = "runs/\x1b[31m[bold]x\n::error::y", "no\n::error::z\x07"
    text = render(summary(name, 1.0), TraceSummary(trace=f"{name}2", problem=problem))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert not [line for line in text.splitlines() if line.startswith("::")]
    assert "[bold]x" in text


def test_all_unreadable_traces_are_listed():
    bad = [TraceSummary(trace=f"runs/{number}", problem="why") for number in range(100)]
    text = render(*bad, *(summary(f"runs/good{number}", 1.0) for number in range(100)))
    assert text.startswith("200 traces below runs: 0 events, 100 goals; 100 could not be read\n")
    assert all(f"{number}: why" in text for number in range(100))
    assert "… and 60 more (--all shows them)" in text
    assert "more (--all" not in render(*(summary(f"runs/{number}", 1.0) for number in range(100)), whole=True)


def test_goals_are_counted_by_outcome():
    text = render(summary("a", 1.0, reached=1, failed=2, unknown=3, lost_events=7, damage="7 discarded events"))
    assert "1 reached, 2 failed, 3 unknown" in text
    assert "  a: 7 discarded events" in text.splitlines()
