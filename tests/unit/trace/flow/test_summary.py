"""Summary tables: the same columns for any trace, and rates of topics with several publishers."""

from __future__ import annotations

import pytest

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.summary import summarize_paths, summarize_topics
from tests.builders.ros2 import Recording

CHAIN = PathSpec(name="chain", via=("/scan", "/plan"))


def recorded(*, passages: int) -> Recording:
    recording = Recording()
    driver, planner = recording.process(1), recording.process(2)
    scan = driver.node("/driver").publisher("/scan")
    node = planner.node("/planner")
    heard, plan = node.subscription("/scan"), node.publisher("/plan")
    for now in range(1000, 1000 * (passages + 1), 1000):
        message = driver.thread().at(now).publish(scan)
        thread = planner.thread().at(now + 100)
        with thread.receiving(heard, message):
            thread.publish(plan)
    return recording


def test_paths_without_passages_have_the_same_columns():
    empty, full = (summarize_paths(build_flow(recorded(passages=n).model()), [CHAIN]) for n in (0, 3))
    assert (len(empty), full["passages"].to_list()) == (0, [3])
    assert empty.schema == full.schema
    assert summarize_paths(build_flow(recorded(passages=3).model()), []).schema == full.schema


@pytest.mark.parametrize(("messages", "rate_hz"), [(1, None), (2, 200.0), (11, 200.0)])
def test_rate_is_that_of_all_publishers(messages, rate_hz):
    """Two publishers that send at nearly the same time: the time between them is no period."""
    recording = Recording()
    for pid, phase_ns in ((1, 0), (2, 1000)):
        process = recording.process(pid)
        log = process.node(f"/node{pid}").publisher("/rosout")
        thread = process.thread()
        for number in range(messages):
            thread.at(1_000_000 + phase_ns + number * 10_000_000).publish(log)
    [row] = summarize_topics(build_flow(recording.model())).to_dicts()
    assert row["messages"] == 2 * messages
    assert row["rate_hz"] == (rate_hz and pytest.approx(rate_hz, rel=1e-3))
