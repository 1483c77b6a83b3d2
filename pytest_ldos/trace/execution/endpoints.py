"""Nodes and their publishers, subscriptions, services, clients, timers and state machines, by handle and time.

A handle is an address: it is unique only within a process, and may be reused after its owner is destroyed.
No event reports the destruction, so an entity lives from its init event until the next one with the same handle.

Tracepoints: ``rcl_*_init``, ``rmw_publisher_init``, ``rmw_subscription_init``, ``rclcpp_timer_link_node``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of
from pytest_ldos.trace.execution.model import ENTITIES
from pytest_ldos.trace.execution.observed import Events, Observed

Handles = npt.NDArray[np.uint64]

_PAIR: Final = np.dtype([("process", np.int64), ("handle", np.uint64)])

Pair = tuple[int, int]  # process and handle


@dataclass(frozen=True)
class Discovered:
    """Handles of a window that no init event names, in the order of their numbers.

    `first_call` is the first of the `calls` of `Registry.complete` that found each.
    """

    first_call: dict[Pair, int]
    calls: int


class Registry:
    """Entities of one kind by (process, handle, life); their numbers are those of their init events, in time order."""

    def __init__(self, process: IdArray, handle: Handles, born_ns: TimesNs) -> None:
        self._known = len(handle)
        self._handles = np.unique(handle)
        self._processes = int(process.max(initial=-1)) + 1
        pair = self._pairs(process, handle)
        self._order = np.lexsort((born_ns, pair))
        self._pair = pair[self._order]
        self._born = born_ns[self._order]
        self._has_reused = bool((self._pair[1:] == self._pair[:-1]).any())
        self._unknown: dict[Pair, int] = {}
        self._first_call: dict[Pair, int] = {}
        self._calls = 0

    def begin_window(self) -> None:
        """Clears the discovered handles: each window of the trace is resolved by the same calls, independently."""
        self._unknown, self._first_call, self._calls = {}, {}, 0

    def discovered(self) -> Discovered:
        """Handles that were discovered since `begin_window`."""
        return Discovered({pair: self._first_call[pair] for pair in self._unknown}, self._calls)

    def adopt(self, found: Discovered) -> IdArray | None:
        """Adds the handles that another registry of the same entities discovered.

        Returns this registry's number of each of its entities; ``None`` if unchanged.
        """
        self._calls = found.calls
        numbers = np.arange(self._known + len(found.first_call), dtype=np.int32)
        for number, (pair, call) in enumerate(found.first_call.items()):
            self._first_call[pair] = min(self._first_call.get(pair, call), call)
            numbers[self._known + number] = self._unknown.setdefault(pair, self._known + len(self._unknown))
        return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers

    def find(self, process: npt.NDArray[Any], handle: Handles, times_ns: TimesNs) -> IdArray:
        """The entity alive at each time, -1 if no init event names the handle.

        A time before the first init event belongs to the first entity: entities made asynchronously may be used before.
        """
        at, found = self._last_life(process, handle, times_ns)
        return np.where(found, self._order[at] if len(self._order) else 0, -1).astype(np.int32)

    def find_nearest(self, process: npt.NDArray[Any], handle: Handles, times_ns: TimesNs) -> IdArray:
        """The entity whose init event is nearest in time: for entities announced right before or after their use."""
        at, found = self._last_life(process, handle, times_ns)
        if not found.any():
            return np.full(len(handle), -1, dtype=np.int32)
        following = np.minimum(at + 1, len(self._pair) - 1)
        closer = self._pair[following] == self._pair[at]
        closer &= np.abs(self._born[following] - times_ns) < np.abs(self._born[at] - times_ns)
        return np.where(found, self._order[np.where(closer, following, at)], -1).astype(np.int32)

    def resolve(self, process: npt.NDArray[Any], handle: Handles, times_ns: TimesNs) -> IdArray:
        """Like `find`, but a handle without an init event gets its own entity (see `unknown`)."""
        return self.complete(self.find(process, handle, times_ns), process, handle)

    def complete(self, found: IdArray, process: npt.NDArray[Any], handle: Handles) -> IdArray:
        """Like `find`, with a new entity for each handle without one."""
        self._calls += 1
        missing = np.flatnonzero(found < 0)
        if len(missing):
            pairs = np.rec.fromarrays([process[missing], handle[missing]], dtype=_PAIR)
            distinct, inverse = np.unique(pairs, return_inverse=True)
            numbers = []
            for pair in distinct.tolist():
                self._first_call[pair] = min(self._first_call.get(pair, self._calls), self._calls)
                numbers.append(self._unknown.setdefault(pair, self._known + len(self._unknown)))
            found[missing] = np.array(numbers, dtype=np.int32)[inverse.reshape(-1)]
        return found

    def renumber(self) -> IdArray | None:
        """Reorders unknown entities as if the trace were read at once; returns new numbers, ``None`` if unchanged."""
        pairs = sorted(self._unknown, key=lambda pair: (self._first_call[pair], pair))
        if pairs == list(self._unknown):
            return None
        numbers = np.arange(self._known + len(pairs), dtype=np.int32)
        numbers[[self._unknown[pair] for pair in pairs]] = np.arange(self._known, len(numbers))
        self._unknown = {pair: self._known + number for number, pair in enumerate(pairs)}
        return numbers

    @property
    def unknown(self) -> list[Pair]:
        """Entities that `resolve` created, in the order of their numbers."""
        return list(self._unknown)

    def _pairs(self, process: npt.NDArray[Any], handle: Handles) -> npt.NDArray[np.int64]:
        """Process and handle as one number, -1 for handles without an init event."""
        if len(self._handles) == 0:
            return np.full(len(handle), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._handles, handle), len(self._handles) - 1)
        known = (self._handles[at] == handle) & (process < self._processes)
        return np.where(known, at * np.int64(self._processes) + process, -1)

    def _last_life(
        self, process: npt.NDArray[Any], handle: Handles, times_ns: TimesNs
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Position of the last life that began at or before each time, or of the first."""
        pair = self._pairs(process, handle)
        at = np.searchsorted(self._pair, pair)
        found = (at < len(self._pair)) & (pair >= 0)
        at = np.where(found, at, 0)
        found &= self._pair[at] == pair if len(self._pair) else False
        if self._has_reused:
            births_ns = np.unique(self._born)
            lives, moments = (  # pair and time as one number
                each * (len(births_ns) + 1) + np.searchsorted(births_ns, when_ns, side="right")
                for each, when_ns in ((self._pair, self._born), (pair[found], times_ns[found]))
            )
            at[found] = np.maximum(at[found], np.searchsorted(lives, moments, side="right") - 1)
        return at, found


@dataclass(frozen=True)
class Kind:
    """Entities of one table: init events, registry and columns.

    Attributes:
        registry: finds an entity by the handle to which instances refer.
        columns: those of the schema except process, handle, birth and `known`; one row per init event.
    """

    table: str
    inits: Events
    handle: str
    registry: Registry
    columns: Mapping[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """The table; entities without an init event come last, with nulls."""
        schema, inits = ENTITIES[self.table], self.inits
        handles = inits.handles(self.handle)
        columns: dict[str, Any] = {"process": inits.process, "handle": handles, "born_ns": inits.times_ns}
        known = frame_of(schema, {**columns, **self.columns, "known": np.ones(len(inits), dtype=np.bool_)})
        pairs = np.array(self.registry.unknown, dtype=_PAIR)
        ids, is_known = np.arange(len(known), len(known) + len(pairs)), np.zeros(len(pairs), dtype=np.bool_)
        columns = {"id": ids, "process": pairs["process"], "handle": pairs["handle"], "known": is_known}
        return pl.concat([known, frame_of({name: schema[name] for name in columns}, columns)], how="diagonal")


@dataclass(frozen=True)
class Endpoints:
    nodes: Kind
    publishers: Kind
    subscriptions: Kind
    services: Kind
    clients: Kind
    timers: Kind
    state_machines: Kind
    publishers_by_rcl: Registry
    subscriptions_by_rcl: Registry
    rmw_clients: Registry
    rmw_services: Registry

    def kinds(self) -> tuple[Kind, ...]:
        ends = (self.publishers, self.subscriptions, self.services, self.clients)
        return (self.nodes, *ends, self.timers, self.state_machines)


def build_endpoints(observed: Observed) -> Endpoints:
    inits = observed.events(Ros2.NODE_INIT)
    pairs = zip(inits.texts("namespace"), inits.texts("node_name"), strict=True)
    names = {"name": [f"{namespace.rstrip('/')}/{name}" for namespace, name in pairs]}
    nodes = Kind("nodes", inits, "node_handle", registry_of(inits, "node_handle"), names)
    publishers, subscriptions = observed.events(Ros2.PUBLISHER_INIT), observed.events(Ros2.SUBSCRIPTION_INIT)
    services, clients = observed.events(Ros2.SERVICE_INIT), observed.events(Ros2.CLIENT_INIT)
    return Endpoints(
        nodes=nodes,
        publishers=_topic_end("publisher", publishers, observed.events(Ros2.RMW_PUBLISHER_INIT), nodes),
        subscriptions=_topic_end("subscription", subscriptions, observed.events(Ros2.RMW_SUBSCRIPTION_INIT), nodes),
        services=_of_node("services", services, "service_handle", nodes, name=services.texts("service_name")),
        clients=_of_node("clients", clients, "client_handle", nodes, name=clients.texts("service_name")),
        timers=_timers(observed, nodes),
        state_machines=_of_node("state_machines", observed.events(Ros2.STATE_MACHINE_INIT), "state_machine", nodes),
        publishers_by_rcl=registry_of(publishers, "publisher_handle"),
        subscriptions_by_rcl=registry_of(subscriptions, "subscription_handle"),
        rmw_clients=registry_of(clients, "rmw_client_handle"),
        rmw_services=registry_of(services, "rmw_service_handle"),
    )


def registry_of(inits: Events, handle: str) -> Registry:
    return Registry(inits.process, inits.handles(handle), inits.times_ns)


def _node_of(inits: Events, nodes: Kind) -> IdArray:
    return nodes.registry.resolve(inits.process, inits.handles("node_handle"), inits.times_ns)


def _of_node(table: str, inits: Events, handle: str, nodes: Kind, **columns: Any) -> Kind:
    return Kind(table, inits, handle, registry_of(inits, handle), {"node": _node_of(inits, nodes), **columns})


def _topic_end(role: str, inits: Events, rmw_inits: Events, nodes: Kind) -> Kind:
    """Publishers or subscriptions, found by the middleware's handle, which all their events carry."""
    rmw_handle = f"rmw_{role}_handle"
    rmw = registry_of(rmw_inits, rmw_handle).find(inits.process, inits.handles(rmw_handle), inits.times_ns)
    gids = rmw_inits.hexadecimals("gid")
    return Kind(
        f"{role}s",
        inits,
        f"{role}_handle",
        registry_of(inits, rmw_handle),
        {
            "node": _node_of(inits, nodes),
            "topic": inits.texts("topic_name"),
            "depth": inits["queue_depth"],
            "rmw_handle": inits.handles(rmw_handle),
            "gid": [gids[row] if row >= 0 else None for row in rmw.tolist()],
        },
    )


def _timers(observed: Observed, nodes: Kind) -> Kind:
    inits = observed.events(Ros2.TIMER_INIT)
    registry = registry_of(inits, "timer_handle")
    links = observed.events(Ros2.TIMER_LINK_NODE)
    timer = registry.find(links.process, links.handles("timer_handle"), links.times_ns)
    node = np.full(len(inits), -1, dtype=np.int32)
    node[timer[timer >= 0][::-1]] = _node_of(links, nodes)[timer >= 0][::-1]
    return Kind("timers", inits, "timer_handle", registry, {"node": node, "period_ns": inits["period"]})
