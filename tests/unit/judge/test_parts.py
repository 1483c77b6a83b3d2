"""The process that changed a sum over several, and the path of a metric."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.summary import explain_parts, path_of
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.metrics import parse_metrics
from pytest_ldos.show.report.sentences import describe_parts
from tests.builders.reports import section_of
from tests.builders.trials import noisy_set


def metric(text):
    (spec,) = parse_metrics([text], BUILT_IN_PATHS)
    return declare(spec)


CPU = metric("cpu:*")
USUAL = {"planner": 100.0, "simulator": 200.0}


def run(seed: int, parts: Mapping[str, float] = USUAL, n: int = 15) -> TrialSet:
    """CPU time of some processes, ± 3 %."""
    trials, random = noisy_set(seed, n=n), np.random.default_rng(seed)
    changed = []
    for trial in trials.trials:
        times = {f"of_{name}_ms": value * random.normal(1, 0.03) for name, value in parts.items()}
        found = Measurement(sum(times.values()), {**times, "began": 0.0})
        changed.append(dataclasses.replace(trial, measurements={**trial.measurements, CPU.name: found}))
    return dataclasses.replace(trials, trials=tuple(changed), metrics=(*trials.metrics, CPU.description))


def test_process_with_the_largest_increase_comes_first():
    (found,) = explain_parts(run(1), run(2, {"planner": 160.0, "simulator": 200.0}), [CPU.description])
    first, second = found.parts
    assert (first.process, second.process) == ("planner", "simulator")
    assert first.low < 60 < first.high
    assert first.is_certain
    assert not second.is_certain
    assert first.share == pytest.approx(1.0, abs=0.1)
    assert describe_parts(found).startswith("cpu_all: ")
    assert " % of it in planner, +" in describe_parts(found)
    assert "simulator" not in describe_parts(found)


def test_new_process_counts_from_zero():
    (found,) = explain_parts(run(1), run(2, {**USUAL, "logger": 40.0}), [CPU.description])
    assert found.parts[0].process == "logger"
    assert found.parts[0].change == pytest.approx(40, rel=0.05)


def test_equal_runs_have_no_notable_process():
    (found,) = explain_parts(run(1), run(2), [CPU.description])
    assert describe_parts(found) == "cpu_all: no single part stands out"


def test_metric_that_is_not_a_sum_has_no_parts():
    assert explain_parts(run(1), run(2), [METRICS["T1"].description, metric("cpu:planner").description]) == []


def test_report_names_the_process_that_changed_the_sum():
    base, head = run(1), run(2, {"planner": 200.0, "simulator": 200.0})
    policy = Policy(metrics={*Policy().metrics, CPU.name})
    (note,) = section_of(head, base, policy=policy).notes
    assert note.startswith("cpu_all: ")
    assert "in planner, +" in note
    assert section_of(base, base, policy=policy).notes == ()


def test_a_metric_of_a_path_is_explained_by_its_segments():
    assert path_of(metric("path:state feedback:p99").description) == "state feedback"
    assert path_of(METRICS["T1"].description) == "planning"
    assert path_of(metric("cpu:planner").description) == path_of(METRICS["T3"].description) == ""
