"""Comparison of two traces: new, removed and significantly slower things."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.difference import Evidence, Kind, compare_runs, lasting_name, sample_run
from tests.builders.ros2 import Recording

US = 1_000


def system(seed, *, work_us=200, extra="/only", messages=120, messages_of_b=0):
    """/talker sends to /worker, whose callback takes about `work_us`; consecutive runs are correlated."""
    generator = np.random.default_rng(seed)
    recording = Recording()
    talker, worker = recording.process(1), recording.process(2)
    node = talker.node("/talker")
    sender, timer = node.publisher("/a"), node.timer(10_000_000)
    other_sender = node.publisher("/b") if messages_of_b else None
    receiver = worker.node("/worker").subscription("/a")
    worker.node(extra)
    one, other = talker.thread(), worker.thread()
    drift = 0.0
    for number in range(messages):
        drift = 0.8 * drift + generator.normal(scale=0.03)
        begin = 1_000_000 + number * 10_000_000 + int(generator.integers(0, 200_000))
        with one.at(begin).running(timer):
            one.spend(int(generator.integers(20, 40)) * US)
            message = one.publish(sender)
            if number < messages_of_b:
                one.publish(other_sender)
        with other.at(begin + int(generator.integers(100, 140)) * US).receiving(receiver, message):
            other.spend(int(work_us * US * (1 + drift + generator.normal(scale=0.05))))
    return build_flow(recording.model())


def compare(bases, heads):
    return compare_runs(*([sample_run(each, ()) for each in side] for side in (bases, heads)))


def differing(found):
    return {(each.kind, each.name) for each in found.compared if each.differs}


def test_a_slower_callback_is_the_only_difference():
    found = compare([system(1)], [system(2, work_us=300)])
    assert differing(found) == {(Kind.CALLBACK, "/worker: /a")}
    first = found.compared[0]
    assert (first.name, first.base_count, first.head_count) == ("/worker: /a", 120, 120)
    assert 1.4 < first.ratio < 1.6
    assert 1 < first.low < first.ratio < first.high


@pytest.mark.parametrize("seed", range(5))
def test_runs_of_one_version_do_not_differ(seed):
    assert differing(compare([system(seed)], [system(100 + seed)])) == set()


def test_new_and_removed_things_are_reported():
    found = compare([system(1, extra="/old")], [system(2, extra="/new")])
    assert ("node", "/new", 1) in found.new
    assert ("node", "/old", 1) in found.gone
    assert "/worker" not in {each.name for each in (*found.new, *found.gone)}


@pytest.mark.parametrize(
    ("name", "lasting"),
    [
        ("/transform_listener_impl_7fc41c005bc0: /tf", "/transform_listener_impl_*: /tf"),
        ("/move_group_private_93871134873792", "/move_group_private_*"),
        ("/moveit_286974773", "/moveit_*"),
        ("/static_transform_publisher_H3mHpXHEOHviTIAs", "/static_transform_publisher_*"),
        ("/camera_12", "/camera_12"),
        ("/joint_state_broadcaster", "/joint_state_broadcaster"),
        ("/arm_deadbeef_left", "/arm_deadbeef_left"),
    ],
)
def test_generated_names_match(name, lasting):
    assert lasting_name(name) == lasting


def test_difference_below_the_cost_of_an_event_is_ignored():
    found = compare([system(1, work_us=2)], [system(2, work_us=2.6)])
    assert differing(found) == set()
    assert found.compared


def test_too_few_values_are_not_compared():
    found = compare([system(1, messages=5)], [system(2, messages=5, work_us=900)])
    assert found.compared == ()


def run(seed, **how):
    """A run of a version: starts differ in speed, so that values alone would show a difference between runs."""
    speed = np.random.default_rng(900 + seed).normal(scale=0.08)
    return system(seed, work_us=how.pop("work_us", 200) * (1 + speed), messages=60, **how)


def test_runs_of_one_version_differ_by_values_but_not_by_runs():
    seen = [run(seed) for seed in range(10)]
    fooled = [differing(compare([one], [other])) for one, other in zip(seen[:5], seen[5:], strict=True)]
    assert any(fooled), "starts differ so much that one run each misleads"
    found = compare(seen[:5], seen[5:])
    assert (found.evidence, found.base_runs, found.head_runs) == (Evidence.RUNS, 5, 5)
    assert differing(found) == set()


def test_a_slower_callback_is_found_over_runs():
    found = compare([run(seed) for seed in range(5)], [run(seed, work_us=300) for seed in range(5, 10)])
    assert differing(found) == {(Kind.CALLBACK, "/worker: /a")}
    first = found.compared[0]
    assert (first.base_count, first.head_count) == (300, 300)
    assert 1.1 < first.low < first.ratio < first.high < 2


def test_with_too_few_runs_versions_must_not_overlap():
    slow = compare([run(seed) for seed in range(3)], [run(seed, work_us=400) for seed in range(3, 6)])
    assert slow.evidence is Evidence.SEPARATION
    assert differing(slow) == {(Kind.CALLBACK, "/worker: /a")}
    assert slow.compared[0].high == np.inf
    mixed = [run(3, work_us=400), run(4, work_us=400), run(5, work_us=100)]
    assert differing(compare([run(seed) for seed in range(3)], mixed)) == set()


def test_quantities_of_some_runs_are_listed():
    heads = [run(1, extra="/new"), run(2), run(3, messages_of_b=9)]
    found = compare([run(4), run(5, messages_of_b=9)], heads)
    assert ("node", "/new", 1) in found.new
    assert found.gone == ()
    assert "period of topic /b" in found.in_some_runs
    assert not [each for each in found.compared if each.name == "/b"]
