"""Summary tables have the same columns for any trace."""

from __future__ import annotations

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.summary import summarize_paths
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
