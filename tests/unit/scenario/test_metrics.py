"""Metrics in the settings: valid ones, and refusals with the nearest valid one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, OwnEvent, PathSpec
from pytest_ldos.base.text import UNITS
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.scenario.metrics import MetricKind, Statistic, parse_metrics, usual_metrics
from pytest_ldos.scenario.settings import parse_table
from pytest_ldos.scenario.stimuli import BagSpec, MoveGroupSpec, WindowSpec

SCAN = PathSpec(name="scan: to map", via=("/scan", "/map"))
EVERY_KIND = (
    "path:state feedback:p50",
    "path:state feedback:p90",
    "path:state feedback:p99",
    "path:state feedback:max",
    "path:state feedback:misses",
    "rate:/scan",
    "gap:/scan",
    "cpu:move_group",
    "memory:*",
    "switches:planner_*",
    "faults:node:/planner",
    "cpu:component_container/planner",
    "update:arm_controller",
    "jitter:arm_controller",
    "number:distance_m",
    "number:hits:higher",
    "span:my_pkg:begin:my_pkg:end:p50",
    "span:my_pkg:begin[vpid,id]:my_pkg:end[vpid,goal]:max",
    "interval:my_pkg:tick:p99",
    "interval:my_pkg:tick[robot]:p90",
    "value:my_pkg:solve:cost_ms:max",
    "value:my_pkg:solve:score:p50:higher",
    "count:my_pkg:retry",
    "count:my_pkg:hit:higher",
    "topic:/planning/debug/processing_time_ms:data:p99",
    "topic:/pose:point.x:max:higher",
    "allocations:control loop",
    "frees:/node: /topic:any",
    "locks:control loop:any",
    "blocked:/node: timer of 10 ms",
    "faults:control loop",
)

MINE = PathSpec(name="mine", via=("/in", "/out"))


def parse(*texts):
    return parse_metrics(list(texts), (SCAN, *BUILT_IN_PATHS))


def test_every_kind_is_read_and_written_unchanged():
    specs = parse(*EVERY_KIND)
    assert tuple(map(str, specs)) == EVERY_KIND
    assert {spec.kind for spec in specs} == set(MetricKind)
    assert {spec.statistic for spec in specs} == {*Statistic, None}
    assert [spec.name for spec in specs] == [
        "path_state_feedback_p50",
        "path_state_feedback_p90",
        "path_state_feedback_p99",
        "path_state_feedback_max",
        "path_state_feedback_misses",
        "rate_scan",
        "gap_scan",
        "cpu_move_group",
        "memory_all",
        "switches_planner_all",
        "faults_node_planner",
        "cpu_component_container_planner",
        "update_arm_controller",
        "jitter_arm_controller",
        "number_distance_m",
        "number_hits",
        "span_my_pkg_begin_my_pkg_end_p50",
        "span_my_pkg_begin_vpid_id_my_pkg_end_vpid_goal_max",
        "interval_my_pkg_tick_p99",
        "interval_my_pkg_tick_robot_p90",
        "value_my_pkg_solve_cost_ms_max",
        "value_my_pkg_solve_score_p50",
        "count_my_pkg_retry",
        "count_my_pkg_hit",
        "topic_planning_debug_processing_time_ms_data_p99",
        "topic_pose_point_x_max",
        "allocations_control_loop",
        "frees_node_topic",
        "locks_control_loop",
        "blocked_node_timer_of_10_ms",
        "faults_control_loop",
    ]


def test_each_makes_a_metric_that_the_gate_can_judge():
    """Name, unit and all numbers are checked where a metric is made."""
    for metric in map(declare, parse(*EVERY_KIND)):
        assert metric.unit in UNITS
        assert metric.error_share > 0
        assert metric.definition
        assert metric.description.asked_as in EVERY_KIND


def test_events_have_fields_that_match_or_hold_the_value():
    of_thread, of_fields, value, count = (
        spec.events for spec in parse("span:a:b:a:c", "span:a:b[vpid,id]:a:c[vpid,goal]", "value:a:b:cost", "count:a:b")
    )
    assert of_thread == (OwnEvent("a:b", ("vtid",)), OwnEvent("a:c", ("vtid",)))
    assert of_fields == (OwnEvent("a:b", ("vpid", "id")), OwnEvent("a:c", ("vpid", "goal")))
    assert value == (OwnEvent("a:b", ("cost",)),)
    assert count == (OwnEvent("a:b"),)


def test_default_statistic_of_events_is_the_median():
    for text in ("span:a:b:a:c", "interval:a:b", "value:a:b:cost"):
        assert parse(text) == parse(f"{text}:p50") == parse(f"{text}:median")
    assert parse("path:state feedback:median") == parse("path:state feedback:p50")
    assert parse("value:a:b:cost:higher") == parse("value:a:b:cost:p50:higher")


def test_title_and_unit_of_own_events():
    texts = ("span:a:b:a:c", "interval:a:b:max", "value:a:b:cost_ms", "value:a:b:ms", "count:a:b")
    assert [(metric.title, metric.unit) for metric in map(declare, parse(*texts))] == [
        ("a:b to a:c, p50", "ms"),
        ("interval of a:b, max", "ms"),
        ("cost_ms of a:b, p50", "ms"),
        ("ms of a:b, p50", ""),
        ("number of a:b", ""),
    ]


def test_title_and_unit_of_topics():
    """The unit is in the name of the field, or in that of the topic."""
    texts = ("topic:/a/b_ms:data", "topic:/a_us:data:max", "topic:/a_sec:data", "topic:/a:left_ns", "topic:/ms:data")
    assert [(metric.title, metric.unit) for metric in map(declare, parse(*texts))] == [
        ("data of /a/b_ms, p50", "ms"),
        ("data of /a_us, max", "µs"),
        ("data of /a_sec, p50", "s"),
        ("left_ns of /a, p50", "ns"),
        ("data of /ms, p50", ""),
    ]
    assert all(metric.spec.events == () for metric in map(declare, parse(*texts)))


def test_a_subject_is_a_process_with_threads_or_that_of_a_node():
    of_thread, of_node, named = parse("cpu:container/planner", "cpu:node:/arm/planner", "cpu:move_group")
    assert (of_thread.process, of_thread.thread, of_thread.node) == ("container", "planner", "")
    assert (of_node.thread, of_node.node) == ("", "/arm/planner")
    assert (named.process, named.thread, named.node) == ("move_group", "", "")
    assert parse("rate:/a/b")[0].process == ""


def test_default_statistic_of_a_path_is_p99_even_with_a_colon_in_its_name():
    (whole, half) = parse("path:scan: to map", "path:scan: to map:p50")
    assert (whole.subject, whole.statistic, whole.path) == ("scan: to map", Statistic.P99, SCAN)
    assert (half.subject, half.statistic) == ("scan: to map", Statistic.P50)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["cpo:move_group"], "'cpo:move_group' does not begin with a kind of metric.*\n.*did you mean 'cpu'"),
        (
            ["T1"],
            "'T1' does not begin with a kind of metric.*\n.*known are: allocations, blocked, count, cpu, .*KIND:SUBJECT",
        ),
        (["cpu:"], "'cpu:' names nothing to measure.*\n.*'cpu:PROCESS'"),
        (["rate:scan"], "'rate:scan' names no topic.*\n.*'rate:/scan'"),
        (["path:state feedbck:p99"], "does not name a path.*\n.*did you mean 'state feedback'"),
        (["path:state feedbck"], "does not name a path.*\n.*did you mean 'state feedback'"),
        (["path:state feedback:p98"], "unknown statistic 'p98'.*\n.*did you mean 'p99'"),
        (["path:scan: to map:misses"], "path 'scan: to map' has none.*\n.*deadline_ms"),
        (["memory:container/planner"], "asks for the memory of a thread.*\n.*leave out what follows"),
        (["cpu:a", "cpu:a"], "'cpu:a' and 'cpu:a' would both be recorded as cpu_a"),
        (
            ["span:a:b"],
            "'span:a:b' does not name its events.*\n.*'span:my_pkg:begin:my_pkg:end:p50'; an event is PROVID",
        ),
        (["span:a:b:c"], "does not name its events"),
        (["interval:tick"], "'interval:tick' does not name its events.*\n.*'interval:my_pkg:tick:p99'"),
        (["interval:a:b[]"], "does not name its events"),
        (["interval:a:b[c"], "does not name its events"),
        (["value:a:b"], "'value:a:b' does not name its events.*\n.*'value:my_pkg:solve:cost:max'"),
        (["topic:/a"], "'topic:/a' does not name topic and field.*\n.*processing_time_ms:data:p99'; a field may be"),
        (["topic:a:b"], "does not name topic and field"),
        (["topic:/a:b:p98"], "unknown statistic 'p98'.*\n.*did you mean 'p9"),
        (["count:a:*"], "does not name its events"),
        (["count:a:b[c]"], "does not name its events"),
        (["span:a:b[id]:a:c"], "different numbers of fields.*\n.*span:a:begin.id.:a:end.id."),
        (["span:a:b:a:b"], "begins and ends with the same event.*\n.*'interval:a:b'"),
        (["span:a:b:a:c:p98"], "unknown statistic 'p98'.*\n.*did you mean 'p9"),
        (["interval:a:b:misses"], "unknown statistic 'misses'.*\n.*known are: max, p50, p90, p99"),
        (["span:a:b:a:c:p50:higher"], "ends in 'higher'.*\n.*leave it out: a statistic is the last part$"),
        (["count:a:b:p50"], "ends in 'p50'.*\n.*a count has no statistic, and higher may follow"),
        (["rate:/a/b", "rate:/a_b"], "'rate:/a/b' and 'rate:/a_b' would both be recorded as rate_a_b"),
    ],
)
def test_unknown_metric_is_refused_with_the_known_ones(texts, message):
    with pytest.raises(ConfigurationError) as refused:
        parse(*texts)
    assert str(refused.value).startswith(r"[tool.ldos] metrics: ")
    import re

    assert re.search(message, str(refused.value))


@pytest.mark.parametrize("values", ["cpu:a", ["cpu:a", 1], {"cpu": "a"}, 7])
def test_setting_is_a_list_of_strings(values):
    with pytest.raises(ConfigurationError, match=r"\[tool.ldos\] metrics is .*\n.*list of texts"):
        parse_metrics(values, BUILT_IN_PATHS)


def test_arm_behind_move_group_has_none_by_default():
    assert usual_metrics(MoveGroupSpec(), [MINE]) == ()
    found = ("path:mine:p50", "path:mine:p99", "cpu:*", "memory:*")
    assert usual_metrics(WindowSpec(), [MINE]) == usual_metrics(BagSpec(), [MINE]) == found
    assert parse_table({}).metrics == ()


def test_settings_know_their_own_paths():
    table = {"metrics": ["path:scan to map:p50"], "paths": [{"name": "scan to map", "via": ["/scan", "/map"]}]}
    (spec,) = parse_table(table).metrics
    assert spec.path == replace(SCAN, name="scan to map")
    with pytest.raises(ConfigurationError, match=r"unknown key \[tool.ldos\] 'metrcs'"):
        parse_table({"metrcs": []})
