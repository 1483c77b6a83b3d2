"""The segment that gained time, on trials with known segments."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import explain
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import LATENCY
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials
from pytest_ldos.show.report.compose import compose, report_paths
from pytest_ldos.show.report.terminal import render_failure
from pytest_ldos.show.report.words import describe_path, describe_paths, moved_paths
from tests.builders.reports import full_section, section_of
from tests.builders.trials import TYPICAL, failed_trial, trial, trial_set

MS = 1_000_000
CALLBACK, TRANSPORT, WAIT = "callback run: /b: /x", "transport: /x → /b", "executor wait: /b"


def run(n=20, *, path="state feedback", seed=1, **added_ms):
    """Trials of a path whose segments take 1 to 3 ms ± 5 %, and what is added to them by name."""
    random = np.random.default_rng(seed)
    usual = {CALLBACK: 3.0, TRANSPORT: 1.0, WAIT: 2.0}
    trials = []
    for index in range(n):
        parts = {
            name: round(MS * (each * random.normal(1, 0.05) + added_ms.get(name.split()[0].rstrip(":"), 0)))
            for name, each in usual.items()
        }
        values = {**TYPICAL, "T1": 14.0 + random.normal(0, 0.3) + sum(added_ms.values())}
        trials.append(trial(index, values, segments_ns={path: {LATENCY: sum(parts.values()), **parts}}))
    return trial_set(trials)


@pytest.mark.parametrize(("segment", "name"), [("callback", CALLBACK), ("transport", TRANSPORT), ("executor", WAIT)])
def test_the_segment_that_gained_the_time_comes_first(segment, name):
    explanation = explain(run(), run(seed=2, **{segment: 4.0}))["state feedback"]
    first, *others = explanation.changes
    assert first.segment == name
    assert first.change_ns == pytest.approx(4 * MS, rel=0.05)
    assert first.low_ns < 4 * MS < first.high_ns
    assert first.share == pytest.approx(1.0, abs=0.1)
    assert explanation.whole.change_ns == pytest.approx(4 * MS, rel=0.05)
    assert all(abs(other.share) < 0.1 for other in others)


def test_shares_of_several_segments_add_up():
    explanation = explain(run(), run(seed=2, callback=3.0, transport=1.0))["state feedback"]
    assert [each.segment for each in explanation.changes[:2]] == [CALLBACK, TRANSPORT]
    assert [each.share for each in explanation.changes[:2]] == pytest.approx([0.75, 0.25], abs=0.05)
    assert sum(each.share for each in explanation.changes) == pytest.approx(1.0)


def test_path_that_contradicts_its_metric_has_shares_of_what_became_longer():
    """As where T1mean, of other plans than the path's, became longer."""
    base, head = run(), run(seed=2, callback=1.5, executor=-1.9)
    (first, *others) = explain(base, head, directions={"state feedback": 1})["state feedback"].changes
    assert (first.segment, first.is_certain) == (CALLBACK, True)
    assert first.share == pytest.approx(1.0, abs=0.1)
    assert others[-1].segment == WAIT
    assert others[-1].share < -1
    assert explain(base, head)["state feedback"].changes[0].segment == WAIT
    agreeing = explain(base, run(seed=2, callback=4.0), directions={"state feedback": 1})
    assert agreeing == explain(base, run(seed=2, callback=4.0))


def test_equal_runs_have_no_certain_change():
    explanation = explain(run(), run(seed=2))["state feedback"]
    assert not any(each.is_certain for each in (explanation.whole, *explanation.changes))


def test_segment_of_one_run_only_counts_as_zero_in_the_other():
    base, head = run(), run(seed=2)
    added = [
        dataclasses.replace(
            each, segments_ns={"state feedback": {**each.segments_ns["state feedback"], "CPU wait: /b": 7 * MS}}
        )
        for each in head.trials
    ]
    first = explain(base, dataclasses.replace(head, trials=tuple(added)))["state feedback"].changes[0]
    assert (first.segment, first.base_ns, first.change_ns) == ("CPU wait: /b", 0, 7 * MS)


def test_failed_trials_are_not_explained():
    head = run(seed=2)
    broken = failed_trial(99, segments_ns={"state feedback": {LATENCY: 1, CALLBACK: 1}})
    with_failure = dataclasses.replace(head, trials=(*head.trials, broken))
    assert explain(run(), with_failure) == explain(run(), head)


def test_too_few_trials_have_no_interval():
    first = explain(run(2), run(2, seed=2, callback=4.0))["state feedback"].changes[0]
    assert (first.low_ns, first.high_ns) == (-math.inf, math.inf)
    assert not first.is_certain


def test_path_absent_from_one_run_is_not_explained():
    assert explain(run(path="other"), run()) == {}


def test_a_stored_baseline_explains_as_well_as_the_run_it_came_from(tmp_path):
    base, head = run(), run(seed=2, transport=4.0)
    stored = decode_trials(encode_trials(base), tmp_path / "baseline.json")
    assert explain(stored, head) == explain(base, head)


def test_a_regression_is_reported_with_its_segment():
    base, head = run(path="planning"), run(path="planning", seed=2, callback=6.0)
    result = decide(head, base, Policy())
    assert result.verdict is Verdict.REGRESSED
    message = render_failure(compose([section_of(head, base, result=result)]))
    (line,) = [line for line in message.splitlines() if line.startswith("  T1 +")]
    assert f"100 % of it in {CALLBACK}, +" in line or f"99 % of it in {CALLBACK}, +" in line


def test_changed_path_without_metric_is_mentioned():
    base, head = run(), run(seed=2, transport=4.0)
    (line,) = describe_paths(section_of(head, base))
    assert line.startswith("path state feedback +")
    assert TRANSPORT in line
    assert describe_paths(section_of(base, base)) == ()


def test_metric_that_a_path_only_explains_is_named_so():
    section = full_section()
    of_requests = dataclasses.replace(section.metrics[0], name="T1mean")
    path = dataclasses.replace(section.paths[0], metrics=("T1", "T1mean"))
    alone, both = (
        dataclasses.replace(section, metrics=metrics, paths=(path,)) for metrics in ((of_requests,), section.metrics)
    )
    (name,) = (name for name, _ in moved_paths(alone))
    assert name == "T1mean, by the path planning:"
    assert [name for name, _ in moved_paths(dataclasses.replace(both, metrics=(*both.metrics, of_requests)))] == ["T1"]


def test_segments_of_a_path_that_did_not_change_are_no_shares_of_it():
    """The metric's plans became longer; those of the path did not certainly, although one of their segments did."""
    base, head = run(path="planning"), run(path="planning", seed=2, callback=1.5, executor=-1.9)
    directions = explain(base, head, directions={"planning": 1})
    (path,) = report_paths(directions, [METRICS["T1"]])
    assert f" % of what became longer in {CALLBACK}, +" in describe_path(path, "T1mean, by the path planning:")
