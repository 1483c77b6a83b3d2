"""Assertions on the number and order of events, and on the flow of messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from pytest_ldos.base.ros2 import LinkSpec, PathSpec
from pytest_ldos.base.text import format_duration
from pytest_ldos.trace.ctf.read import Window
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import break_down
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path
from pytest_ldos.trace.patterns import CallbackRan, EventPattern, Evidence, Source, event, published, received, require


def assert_published(
    source: Source,
    topic: str,
    *,
    node: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that messages were published on a topic.

    Args:
        node: publishing node; any node by default.
        at_most: ``at_least=0, at_most=0`` asserts that none was published; a topic unknown to the trace
            fails nevertheless.
        within: first and last moment, nanoseconds since the epoch.

    Returns:
        The publications: rows of the model's table, with `node_name`.

    Raises:
        AssertionError: the count is out of bounds; the message lists each node's publications and their times.
    """
    __tracebackhide__ = True
    return _assert_count(source, published(topic, node=node), at_least, at_most, within)


def assert_received(
    source: Source,
    topic: str,
    *,
    node: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that messages of a topic were received; see `assert_published`."""
    __tracebackhide__ = True
    return _assert_count(source, received(topic, node=node), at_least, at_most, within)


def assert_callback_ran(  # noqa: PLR0913 - five of them name the callback
    source: Source,
    *,
    node: str | None = None,
    topic: str | None = None,
    service: str | None = None,
    timer_ms: float | None = None,
    symbol: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that a callback ran; see `callback_began` for its selection, and `assert_published`.

    Returns:
        The runs: rows of the model's table, with `node_name` and `time_ns` (their start).
    """
    __tracebackhide__ = True
    run = CallbackRan(node=node, topic=topic, service=service, timer_ms=timer_ms, symbol=symbol)
    return _assert_count(source, run, at_least, at_most, within)


def assert_event(
    source: Source,
    name: str,
    /,
    *,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
    **fields: Any,
) -> pl.DataFrame:
    """Asserts that events were recorded: ``assert_event(trace, "ros2:rcl_node_init", node_name="talker")``.

    Returns:
        The events, with `time_ns` and one column per field.
    """
    __tracebackhide__ = True
    return _assert_count(source, event(name, **fields), at_least, at_most, within)


def _assert_count(
    source: Source, pattern: EventPattern, at_least: int, at_most: int | None, within: Window | None
) -> pl.DataFrame:
    __tracebackhide__ = True
    expected = _bounds(at_least, at_most)
    require(within is None or within[0] <= within[1], f"within={within} ends before it begins")
    seen = Evidence.of(source)
    everywhere = pattern.find(seen)
    found = everywhere if within is None else everywhere.filter(pl.col("time_ns").is_between(*within))
    if not at_least <= len(found) <= (len(found) if at_most is None else at_most):
        what = pattern.describe(many=(at_most or at_least) != 1)
        where = "" if within is None else f" within {seen.span(within)}"
        in_all = "" if within is None else f" ({len(everywhere)} in all)"
        seen.fail(f"expected {expected} {what}{where}, found {len(found) or 'none'}{in_all}", pattern.instead(seen))
    if at_most is not None and pattern.hidden(seen):
        seen.fail(f"expected {expected} {pattern.describe(many=True)}, which this trace does not show")
    return found


def _bounds(at_least: int, at_most: int | None) -> str:
    require(at_least >= 0, f"at_least={at_least} makes no sense", "it must be 0 or more")
    require(at_most is None or at_most >= at_least, f"nothing can be at least {at_least} and at most {at_most}")
    require(at_least > 0 or at_most is not None, "at_least=0 alone asserts nothing", "give at_most, too")
    if at_most is None:
        return f"at least {at_least}"
    if at_most == at_least:
        return "no" if at_most == 0 else f"exactly {at_most}"
    return f"at most {at_most}" if at_least == 0 else f"{at_least} to {at_most}"


_ORDINALS = {0: "first", 1: "second", 2: "third", -1: "last"}


def assert_order(source: Source, *patterns: EventPattern) -> list[int]:
    """Asserts the order of events: of the first occurrence of each, or of the one selected by `nth`.

    ``assert_order(model, published("/a"), callback_began(node="/b", topic="/a"))``

    Returns:
        Time of each event, nanoseconds since the epoch.

    Raises:
        AssertionError: an event is missing, or the order differs; the message lists all events with their times.
    """
    __tracebackhide__ = True
    require(len(patterns) >= 2, "assert_order needs at least two events")
    seen = Evidence.of(source)
    moments = [_moment_of(seen, pattern) for pattern in patterns]
    wrong = [(one, other) for one, other in pairwise(range(len(moments))) if moments[other] < moments[one]]
    if wrong:
        one, other = wrong[0]
        earlier = format_duration(moments[one] - moments[other])
        headline = f"{_name(patterns[other])} came {earlier} before {_name(patterns[one])}"
        pairs = zip(patterns, moments, strict=True)
        listed = (f"  {seen.moment(moment, digits=6)}  {_name(pattern)}" for pattern, moment in pairs)
        seen.fail(headline, ("expected in this order:", *listed))
    return moments


def _moment_of(seen: Evidence, pattern: EventPattern) -> int:
    __tracebackhide__ = True
    times = pattern.find(seen)["time_ns"]
    needed = pattern.number + 1 if pattern.number >= 0 else -pattern.number
    if len(times) < needed:
        count = f"{len(times)} of them" if len(times) else "none"
        seen.fail(f"expected the {_name(pattern)} but found {count}", pattern.instead(seen))
    return int(times[pattern.number])


def _name(pattern: EventPattern) -> str:
    what, number = pattern.describe(many=False), pattern.number
    if number in _ORDINALS:
        return f"{_ORDINALS[number]} {what}"
    return f"{what}, number {number + 1 if number > 0 else number},"


_WORST = 3


def assert_flow(
    source: FlowGraph | ExecutionModel,
    via: PathSpec | Sequence[str],
    *,
    at_least: int = 1,
    deadline_ms: float | None = None,
    missed_at_most: int = 0,
    links: Sequence[LinkSpec] = (),
) -> PathInstances:
    """Asserts that messages flow along a path of topics, optionally within a deadline.

    Args:
        via: topics (or phases of a goal), or a path with its own deadline and links.
        at_least: required number of passages.
        deadline_ms: limit for a passage, from the publication on the first topic to that on the last.
        missed_at_most: number of passages that may exceed it.
        links: indirect causes: topics published from messages received earlier; a graph already has its own.

    Returns:
        The passages; `break_down` splits their time into segments.

    Raises:
        AssertionError: the message names the topics between which the flow ends, or the longest segments.
    """
    __tracebackhide__ = True
    path = _path_of(via, deadline_ms, links)
    require(at_least >= 1, f"at_least={at_least} makes no sense", "ask for one passage or more")
    require(not (links and isinstance(source, FlowGraph)), "this graph is built", "give `links` to build_flow")
    flow = source if isinstance(source, FlowGraph) else build_flow(source, [path])
    seen = Evidence(flow.model)
    along = f"along {' → '.join(path.via)}"
    for topic in () if path.of_phases else path.via:
        seen.demand("topic", topic, f"passages {along}")
    for link in path.links:
        seen.demand("node", link.node, f"a {link.rule} link in {link.node}")
    found = find_path(flow, path)
    if len(found) < at_least:
        count = f"only {len(found)}" if len(found) else "none"
        wanted = f"{at_least} passage{'' if at_least == 1 else 's'} {along}"
        seen.fail(f"expected at least {wanted}, found {count}", _where_it_ends(flow, seen, path))
    if found.missed > missed_at_most:
        allowed = f", at most {missed_at_most} may" if missed_at_most else ""
        verb = "takes" if found.missed == 1 else "take"
        missed = f"{found.missed} of {len(found)} passages {along} {verb}"
        limit = format_duration(found.path.deadline_ns or 0)
        seen.fail(f"{missed} longer than {limit}{allowed}", _slowest(flow, seen, found))
    return found


def _path_of(via: PathSpec | Sequence[str], deadline_ms: float | None, links: Sequence[LinkSpec]) -> PathSpec:
    if not isinstance(via, PathSpec):
        require(not isinstance(via, str), f"via={via!r} is one name", "give all topics on the way: via=[FROM, …, TO]")
        return PathSpec(name=" → ".join(via), via=tuple(via), deadline_ms=deadline_ms, links=tuple(links))
    deadline_ms = via.deadline_ms if deadline_ms is None else deadline_ms
    return dataclasses.replace(via, links=(*via.links, *links), deadline_ms=deadline_ms)


def _where_it_ends(flow: FlowGraph, seen: Evidence, path: PathSpec) -> Iterable[str]:
    if path.of_phases:
        entered = seen.model.phases.filter(pl.col("phase").is_in(list(path.via)))
        yield from (f"{phase}: entered {int((entered['phase'] == phase).sum())} times" for phase in path.via)
        return
    for one, other in pairwise(path.via):
        part = PathSpec(name=path.name, via=(one, other), links=path.links)
        sent = len(seen.model.publication_times_ns(one))
        yield f"{one} ({sent} published) → {other}: {len(find_path(flow, part)) or 'nothing'} came through"
    last = path.via[-1]
    yield f"{last}: {len(seen.model.publication_times_ns(last))} published"


def _slowest(flow: FlowGraph, seen: Evidence, found: PathInstances) -> Iterable[str]:
    worst = found.table.sort("latency_ns", descending=True, maintain_order=True).head(_WORST)
    parts = break_down(flow, PathInstances(found.path, worst))
    for row, (begin_ns, latency_ns) in enumerate(worst.select("begin_ns", "latency_ns").iter_rows()):
        longest = parts.filter(pl.col("passage") == row).sort("duration_ns", descending=True).row(0, named=True)
        most = f"{longest['kind']}: {longest['subject']}, {format_duration(longest['duration_ns'])}"
        yield f"{format_duration(latency_ns)} from {seen.moment(begin_ns)} on, most of it in {most}"
    yield f"median: {format_duration(float(found.table['latency_ns'].quantile(0.5, 'nearest') or 0))}"
