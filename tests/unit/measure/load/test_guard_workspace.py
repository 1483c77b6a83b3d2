"""The workspace's guard and flood publisher print the same reports as the Python ones (compares sources)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

from pytest_ldos.measure.load import flood_node, guard_node
from pytest_ldos.measure.load.flood_reports import Guarded, Sent

SOURCES = Path(__file__).parents[4] / "ros_ws/src"


def keys_in_source(file: str) -> list[str]:
    """Keys of the first line of JSON that a C++ source writes."""
    keys = re.findall(r'^    \{"(\w+)", ', (SOURCES / file).read_text("utf-8"), re.MULTILINE)
    return keys[: keys.index("final") + 1]


def said_here(function: Callable[..., object]) -> list[str]:
    return re.findall(r'^            "(\w+)": ', inspect.getsource(function), re.MULTILINE)


def test_both_guards_report_the_same():
    theirs = keys_in_source("ldos_guard/src/report.cpp")
    assert theirs == [*said_here(guard_node.Guard.report), "final"]
    known = {**dict.fromkeys(theirs, 1), "missing": ["/a: no answer"]}
    assert Guarded.parse(known).missing == ("/a: no answer",)


def test_both_flood_publishers_report_the_same():
    theirs = keys_in_source("ldos_load/src/counts.cpp")
    assert theirs == said_here(flood_node.Flood._report)
    known = {**dict.fromkeys(theirs, 1), "published": {"/a": 3}, "error_bins": {}, "requested": 9, "allowed": 4}
    assert Sent.parse(known).withheld == 5


def test_both_refuse_for_the_same_reason():
    reason = '"a reliable publisher is not throttled: its readers wait for every message"'
    assert reason in (SOURCES / "ldos_load/src/flood_publisher.cpp").read_text("utf-8")
    assert reason in inspect.getsource(flood_node)
