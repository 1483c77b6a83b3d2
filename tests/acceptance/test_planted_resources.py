"""Planted faults of resources, measured interleaved with versions that have none: each is found on its metric."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from pytest_ldos import api
from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.campaign.starts import Site, measure_start
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.summary import explain_parts
from pytest_ldos.measure.metrics.catalogue import Catalogue, catalogue_of
from pytest_ldos.scenario.metrics import parse_metrics
from tests.fakes.bench import Watching

STARTS = 7
TRIALS = 3
ASKED: Final = ["cpu:state_publisher", "cpu:*", "memory:move_group", "memory:*", "rate:/joint_states", "rate:/tf"]
VERSIONS: Final[Mapping[str, Mapping[str, float]]] = {
    "base": {},
    "equal": {},
    "busy": {"cpu_waste": 0.2},
    "leaking": {"leak_mb": 0.5},
    "slow": {"control_rate_drop": 0.1},
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return catalogue_of((), parse_metrics(ASKED, BUILT_IN_PATHS))


@pytest.fixture(scope="module")
def measured(tmp_path_factory, catalogue) -> Mapping[str, api.TrialSet]:
    """Starts of all versions in turn, in each round in the other direction; a base and another one are a pair."""
    output: Path = tmp_path_factory.mktemp("resources")
    site = Site(output=output, paths=BUILT_IN_PATHS, catalogue=catalogue, observer=Watching())
    session, found = uuid.uuid4().hex, dict[str, api.TrialSet]()
    for number in range(STARTS):
        for name in list(VERSIONS)[:: -1 if number % 2 else 1]:
            stack = api.StackSpec(kind=api.StackKind.EMBEDDED, faults=api.FaultSpec(**VERSIONS[name]))
            spec = api.ScenarioSpec(name="baseline", trials=TRIALS, stack=stack)
            start = measure_start(spec, site, block=2 * number + (name != "base"))
            before = found[name].trials if name in found else ()
            later = tuple(dataclasses.replace(each, index=len(before) + each.index) for each in start.trials)
            found[name] = dataclasses.replace(start, trials=(*before, *later), session=session)
    return found


def judge(measured, catalogue, name) -> api.GateResult:
    result = api.decide(measured[name], measured["base"], Policy(metrics=frozenset(catalogue)))
    for each in result.comparisons:
        print(f"  {name} {each.metric:22} {each.verdict:12} {each.ratio:6.3f} [{each.low:.3f}, {each.high:.3f}]")
    return result


def worse(result: api.GateResult) -> set[str]:
    return {each.metric for each in result.comparisons if each.verdict is api.Verdict.REGRESSED}


def test_equal_versions_are_equal(measured, catalogue):
    assert worse(judge(measured, catalogue, "equal")) == set()


def test_a_fifth_more_cpu_time_is_found_and_its_process_named(measured, catalogue):
    result = judge(measured, catalogue, "busy")
    assert "cpu_state_publisher" in worse(result)
    assert result.comparison("cpu_state_publisher").ratio == pytest.approx(1.2, abs=0.1)
    (parts,) = explain_parts(measured["base"], measured["busy"], [catalogue["cpu_all"].description])
    assert "state_publisher" in {each.process for each in parts.parts if each.is_certain}


def test_a_leak_of_a_megabyte_a_trial_is_found_and_its_process_named(measured, catalogue):
    """In the sum of all processes, it is too small to be certain after three trials of a start."""
    result = judge(measured, catalogue, "leaking")
    assert "memory_move_group" in worse(result)
    (parts,) = explain_parts(measured["base"], measured["leaking"], [catalogue["memory_all"].description])
    assert parts.parts[0].process == "move_group"


def test_a_topic_at_nine_tenths_of_its_rate_is_found(measured, catalogue):
    result = judge(measured, catalogue, "slow")
    assert "rate_joint_states" in worse(result)
    assert result.comparison("rate_joint_states").ratio == pytest.approx(0.9, abs=0.03)
    assert "memory_all" not in worse(result)
