"""Assertion on the flow of messages along a path, and its deadline."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl

from pytest_ldos.base.paths import LinkSpec, PathSpec
from pytest_ldos.base.units import format_duration
from pytest_ldos.trace.assertions.evidence import Evidence, require
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.breakdown import break_down
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances, find_path

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
    """Asserts that messages flow from the first topic to the last, through those between, and in time.

    Args:
        via: topics (or phases of a goal), or a path with its own deadline and links.
        at_least: required number of passages.
        deadline_ms: limit for a passage, from the publication on the first topic to that on the last.
        missed_at_most: number of passages that may exceed it.
        links: what nodes publish from messages they received earlier; a graph already has its own.

    Returns:
        The passages; `break_down` shows where their time went.

    Raises:
        AssertionError: the message names the topics between which the flow ends, or the longest segments.
    """
    __tracebackhide__ = True
    path = _path_of(via, deadline_ms, links)
    require(at_least >= 1, f"at_least={at_least} makes no sense", "ask for one passage or more")
    require(not (links and isinstance(source, FlowGraph)), "this graph is built", "give `links` to build_flow")
    flow = source if isinstance(source, FlowGraph) else build_flow(source, [path])
    seen = Evidence(flow.model)
    _demand_ends(seen, path)
    found = find_path(flow, path)
    if len(found) < at_least:
        count = f"only {len(found)}" if len(found) else "none"
        seen.fail(
            f"expected at least {at_least} {_passages(at_least)} {_along(path)}, found {count}",
            _where_it_ends(flow, seen, path),
        )
    if found.missed > missed_at_most:
        seen.fail(_too_late(found, missed_at_most), _slowest(flow, seen, found))
    return found


def _path_of(via: PathSpec | Sequence[str], deadline_ms: float | None, links: Sequence[LinkSpec]) -> PathSpec:
    if not isinstance(via, PathSpec):
        require(not isinstance(via, str), f"via={via!r} is one name", "give all topics on the way: via=[FROM, …, TO]")
        return PathSpec(name=" → ".join(via), via=tuple(via), deadline_ms=deadline_ms, links=tuple(links))
    deadline_ms = via.deadline_ms if deadline_ms is None else deadline_ms
    return dataclasses.replace(via, links=(*via.links, *links), deadline_ms=deadline_ms)


def _demand_ends(seen: Evidence, path: PathSpec) -> None:
    __tracebackhide__ = True
    for topic in () if path.of_phases else path.via:
        seen.demand_topic(topic, f"passages {_along(path)}")
    for link in path.links:
        seen.demand_node(link.node, f"a {link.rule} link in {link.node}")


def _along(path: PathSpec) -> str:
    return f"along {' → '.join(path.via)}"


def _passages(count: int) -> str:
    return "passage" if count == 1 else "passages"


def _where_it_ends(flow: FlowGraph, seen: Evidence, path: PathSpec) -> Iterable[str]:
    """Number of passages between each two neighbouring topics."""
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


def _too_late(found: PathInstances, missed_at_most: int) -> str:
    allowed = f", at most {missed_at_most} may" if missed_at_most else ""
    deadline = format_duration(found.path.deadline_ns or 0)
    verb = "takes" if found.missed == 1 else "take"
    return f"{found.missed} of {len(found)} passages {_along(found.path)} {verb} longer than {deadline}{allowed}"


def _slowest(flow: FlowGraph, seen: Evidence, found: PathInstances) -> Iterable[str]:
    """The worst passages, each with its longest segment."""
    worst = found.table.sort("latency_ns", descending=True, maintain_order=True).head(_WORST)
    parts = break_down(flow, PathInstances(found.path, worst))
    for row, (begin_ns, latency_ns) in enumerate(worst.select("begin_ns", "latency_ns").iter_rows()):
        longest = parts.filter(pl.col("passage") == row).sort("duration_ns", descending=True).row(0, named=True)
        most = f"{longest['kind']}: {longest['subject']}, {format_duration(longest['duration_ns'])}"
        yield f"{format_duration(latency_ns)} from {seen.moment(begin_ns)} on, most of it in {most}"
    yield f"median: {format_duration(float(found.table['latency_ns'].quantile(0.5, 'nearest') or 0))}"
