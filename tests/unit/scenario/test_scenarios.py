"""Scenarios as data: tables, combinations, and errors in them."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.judge.baseline.key import CALIBRATION_SUFFIX, PINNED_SUFFIX, SUFFIX
from pytest_ldos.scenario.loads import (
    CpuLimitSpec,
    CpuLoadSpec,
    DdsFloodSpec,
    LoadSpec,
    Reliability,
    SchedulerGroup,
)
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.settings import Sources, parse_table
from pytest_ldos.scenario.words import WhenUnavailable


def scenario(name: str, *, marker=None, **tables) -> ScenarioSpec:
    return Sources({}, {}, parse_table({"scenarios": tables})).scenario(name, marker or {})


def test_built_in_scenarios():
    assert scenario("baseline").loads == ()
    assert scenario("cpu_load").loads == (CpuLoadSpec(percent=80),)
    assert scenario("msg_load").loads == (DdsFloodSpec(publishers=4, rate_hz=1000, size_bytes=1024),)
    assert scenario("cpu_limit").loads == (CpuLimitSpec(cpus=1),)


def test_user_scenario_with_all_settings():
    found = scenario(
        "cell",
        cell={
            "trials": 20,
            "success_rate": 0.9,
            "goals": "shelf",
            "unavailable": "skip",
            "loads": {"dds_flood": {"rate_hz": 250, "reliability": "reliable", "group": "own"}, "cpu_load": True},
            "deadlines": {"planning": 300, "state feedback": {"ms": 10, "share": 0.999}},
        },
    )
    assert (found.trials, found.success_rate, found.goals) == (20, 0.9, "shelf")
    assert found.unavailable is WhenUnavailable.SKIP
    flood = DdsFloodSpec(rate_hz=250, reliability=Reliability.RELIABLE, group=SchedulerGroup.OWN)
    assert found.loads == (CpuLoadSpec(), flood), "in the order in which they are applied"
    assert found.deadlines == (
        DeadlineSpec(path="planning", ms=300),
        DeadlineSpec(path="state feedback", ms=10, share=0.999),
    )


def test_a_built_in_scenario_can_be_changed():
    assert scenario("msg_load", msg_load={"loads": {"dds_flood": {"rate_hz": 9}}}).loads == (DdsFloodSpec(rate_hz=9),)
    kept = scenario("msg_load", msg_load={"trials": 3})
    assert (kept.trials, kept.loads) == (3, (DdsFloodSpec(),)), "other settings stay"


def test_several_at_once():
    both = scenario("msg_load+cpu_load", cpu_load={"trials": 30}, msg_load={"trials": 20, "success_rate": 0.5})
    assert both.name == "cpu_load+msg_load", "one name for all spellings"
    assert both.loads == (CpuLoadSpec(), DdsFloodSpec())
    assert (both.trials, both.success_rate) == (30, 0.5)


def test_settings_of_a_combination_have_precedence():
    own = {"cpu_load+msg_load": {"trials": 5, "loads": {"dds_flood": {"rate_hz": 1}}}}
    found = scenario("msg_load+cpu_load", **own)
    assert (found.trials, found.loads) == (5, (DdsFloodSpec(rate_hz=1),))


@pytest.mark.parametrize(
    ("name", "tables", "message"),
    [
        ("msg_lod", {}, "unknown scenario 'msg_lod'\n.*did you mean 'msg_load'"),
        ("cpu_load+msg_lod", {}, "did you mean 'msg_load'"),
        ("cpu_load+cpu_load", {}, "names a part twice"),
        (
            "x",
            {"x": {"loads": {"dds_flod": {}}}},
            r"unknown load \[tool.ldos.scenarios.x.loads\] 'dds_flod'\n.*dds_flood",
        ),
        ("x", {"x": {"loads": {"dds_flood": {"rat_hz": 1}}}}, "did you mean 'rate_hz'"),
        ("x", {"x": {"loads": {"dds_flood": {"rate_hz": "fast"}}}}, "rate_hz is 'fast'\n.*it must be a number"),
        ("x", {"x": {"loads": {"dds_flood": {"depth": 1.5}}}}, "depth is 1.5\n.*a whole number"),
        ("x", {"x": {"loads": {"dds_flood": {"readers": 1}}}}, "readers is 1\n.*true or false"),
        ("x", {"x": {"loads": {"dds_flood": {"rate_hz": 0}}}}, "a flood at 0 Hz a publisher"),
        ("x", {"x": {"loads": {"dds_flood": {"rate_hz": float("nan")}}}}, "a flood at nan Hz"),
        ("x", {"x": {"loads": {"dds_flood": {"size_bytes": 1 << 21}}}}, "between 16 .* and 1048576"),
        ("x", {"x": {"loads": {"dds_flood": {"reliability": "often"}}}}, "one of best_effort, reliable"),
        ("x", {"x": {"loads": {"cpu_limit": {"cpus": "one"}}}}, 'names them as "0,2-3"'),
        ("x", {"x": {"loads": {"cpu_limit": {"cpus": 0}}}}, "cpus is 0, at least 1"),
        ("x", {"x": {"loads": {"cpu_limit": {"cpus": [1]}}}}, "a whole number or a text"),
        ("x", {"x": {"loads": {"dds_flood": {"rate_hz": 10**400}}}}, "it must be a number"),
        ("x", {"x": {"loads": {"cpu_limit": {"cpus": "0-" + 5000 * "9"}}}}, "names them as"),
        ("x", {"x": {"loads": {"cpu_limit": {"cpus": "٣-٤"}}}}, "names them as"),
        ("x", {"x": {"loads": {"cpu_limit": {"quota_percent": 1e6}}}}, "between 1 and 102400 are possible"),
        ("x", {"x": {"loads": {"cpu_load": {"percent": 101}}}}, "between 1 and 100"),
        ("x", {"x": {"loads": {"network_impairment": {"loss_percent": 101}}}}, "between 0 and 100"),
        ("x", {"x": {"loads": {"network_impairment": {"jitter_ms": 2, "delay_ms": 1}}}}, "between 0 and delay_ms"),
        ("x", {"x": {"loads": ["dds_flood"]}}, "write it as a table"),
        ("x", {"x": {"loads": {"dds_flood": 5}}}, "dds_flood is 5\n.*write it as a table"),
        ("x", {"x": {"deadlines": {"feedback": 3}}}, "unknown path in deadlines of scenario x: 'feedback'"),
        ("x", {"x": {"deadlines": {"planning": "soon"}}}, "ms is 'soon'"),
        ("x", {"x": {"deadlines": {"planning": {"ms": 3, "share": 2}}}}, "share of the deadline of path 'planning'"),
        ("x", {"x": {"deadlines": 5}}, "MILLISECONDS"),
        ("x", {"x": {"trails": 3}}, "did you mean 'trials'"),
        ("x", {"x y": {}}, "'x y' cannot be a marker"),
        (
            "cpu_load",
            {"cpu_load+msg_load": {}, "msg_load+cpu_load": {}},
            "two tables for scenario 'cpu_load[+]msg_load'",
        ),
        ("x", {"cpu_load+other": {}}, "unknown scenario in 'cpu_load[+]other': 'other'"),
    ],
)
def test_invalid_values_are_reported(name, tables, message):
    with pytest.raises(ConfigurationError, match=message):
        scenario(name, **tables)


@pytest.mark.parametrize(
    ("option", "one", "other"),
    [("seeds", "fixed", "random"), ("goals", "reach", "shelf"), ("unavailable", "skip", "error")],
)
def test_contradictory_parts_are_refused(option, one, other):
    with pytest.raises(ConfigurationError, match=rf'contradict each other in {option}\n(.|\n)*scenarios."a\+b"'):
        scenario("a+b", a={option: one}, b={option: other})


def test_contradictory_loads_are_refused():
    loads = {name: {"loads": {"dds_flood": {"rate_hz": rate}}} for name, rate in (("a", 1), ("b", 2))}
    with pytest.raises(ConfigurationError, match="contradict each other in dds_flood"):
        scenario("a+b", **loads)
    equal = scenario("a+b", a=loads["a"], b=loads["a"])
    assert equal.loads == (DdsFloodSpec(rate_hz=1),)


def test_duplicate_load_is_refused():
    loads: tuple[LoadSpec, ...] = (CpuLoadSpec(), CpuLoadSpec(percent=3))
    with pytest.raises(ConfigurationError, match="has a load twice"):
        ScenarioSpec(name="x", loads=loads)


def test_names_of_other_files_next_to_a_baseline_are_refused():
    """A baseline called ``left.pinned`` would be the pinned baseline of ``left``."""
    for suffix in (PINNED_SUFFIX, CALIBRATION_SUFFIX):
        name = f"left{suffix.removesuffix(SUFFIX)}"
        with pytest.raises(ConfigurationError, match="cannot be that of a baseline"):
            scenario("baseline", marker={"name": name})
        with pytest.raises(ConfigurationError, match="cannot be a marker"):
            parse_table({"scenarios": {name: {}}})
