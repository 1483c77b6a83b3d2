"""Nodes and their publishers, subscriptions, services, clients, timers and state machines.

Tracepoints: ``rcl_node_init``, ``rcl_publisher_init``, ``rmw_publisher_init``,
``rcl_subscription_init``, ``rmw_subscription_init``, ``rcl_service_init``, ``rcl_client_init``,
``rcl_timer_init``, ``rclcpp_timer_link_node``, ``rcl_lifecycle_state_machine_init``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import NEVER, IdArray, Values, frame_of
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.registry import Registry
from pytest_ldos.trace.execution.schema import ENTITIES


@dataclass(frozen=True)
class Kind:
    """Entities of one table: their init events, their registry and their columns.

    Attributes:
        registry: finds an entity by the handle to which instances refer.
        columns: those of the schema except process, handle, birth and `known`; one row per init event.
    """

    table: str
    inits: Events
    handle: str
    registry: Registry
    columns: Mapping[str, Any] = field(default_factory=dict)

    def frame(self) -> Any:
        """The table; entities known only from their use come last, with nulls."""
        unknown = self.registry.unknown
        blank = len(unknown)
        columns: dict[str, Values] = {
            "process": np.concatenate((self.inits.process, unknown.process)),
            "handle": np.concatenate((self.inits.handles(self.handle), unknown.handle)),
            "born_ns": np.concatenate((self.inits.times_ns, np.full(blank, NEVER, dtype=np.int64))),
            "known": [True] * len(self.inits) + [False] * blank,
        }
        columns |= {name: _continued(values, blank) for name, values in self.columns.items()}
        return frame_of(ENTITIES[self.table], columns)


def _continued(values: Values, blank: int) -> Values:
    if not isinstance(values, np.ndarray):
        return [*values, *[None] * blank]
    if values.dtype == np.int32:
        return np.concatenate((values, np.full(blank, -1, dtype=np.int32)))
    return [*values.tolist(), *[None] * blank]


@dataclass(frozen=True)
class Endpoints:
    """All entities of the processes that have a handle, except callbacks."""

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
        return (
            self.nodes,
            self.publishers,
            self.subscriptions,
            self.services,
            self.clients,
            self.timers,
            self.state_machines,
        )


def build_endpoints(observed: Observed) -> Endpoints:
    """All endpoints that init events name."""
    nodes = _nodes(observed)
    publishers = observed.events(Ros2.PUBLISHER_INIT)
    subscriptions = observed.events(Ros2.SUBSCRIPTION_INIT)
    services = observed.events(Ros2.SERVICE_INIT)
    clients = observed.events(Ros2.CLIENT_INIT)
    machines = observed.events(Ros2.STATE_MACHINE_INIT)
    return Endpoints(
        nodes=nodes,
        publishers=_topic_end(observed, "publisher", publishers, observed.events(Ros2.RMW_PUBLISHER_INIT), nodes),
        subscriptions=_topic_end(
            observed, "subscription", subscriptions, observed.events(Ros2.RMW_SUBSCRIPTION_INIT), nodes
        ),
        services=_service_end("services", services, "service_handle", nodes),
        clients=_service_end("clients", clients, "client_handle", nodes),
        timers=_timers(observed, nodes),
        state_machines=Kind(
            "state_machines",
            machines,
            "state_machine",
            registry_of(machines, "state_machine"),
            {"node": _node_of(machines, nodes)},
        ),
        publishers_by_rcl=registry_of(publishers, "publisher_handle"),
        subscriptions_by_rcl=registry_of(subscriptions, "subscription_handle"),
        rmw_clients=registry_of(clients, "rmw_client_handle"),
        rmw_services=registry_of(services, "rmw_service_handle"),
    )


def registry_of(inits: Events, handle: str) -> Registry:
    return Registry(inits.process, inits.handles(handle), inits.times_ns)


def _nodes(observed: Observed) -> Kind:
    inits = observed.events(Ros2.NODE_INIT)
    names = [
        f"{namespace.rstrip('/')}/{name}"
        for namespace, name in zip(inits.texts("namespace"), inits.texts("node_name"), strict=True)
    ]
    return Kind("nodes", inits, "node_handle", registry_of(inits, "node_handle"), {"name": names})


def _node_of(inits: Events, nodes: Kind) -> IdArray:
    return nodes.registry.resolve(inits.process, inits.handles("node_handle"), inits.times_ns)


def _topic_end(observed: Observed, role: str, inits: Events, rmw_inits: Events, nodes: Kind) -> Kind:
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


def _service_end(table: str, inits: Events, handle: str, nodes: Kind) -> Kind:
    columns = {"node": _node_of(inits, nodes), "name": inits.texts("service_name")}
    return Kind(table, inits, handle, registry_of(inits, handle), columns)


def _timers(observed: Observed, nodes: Kind) -> Kind:
    inits = observed.events(Ros2.TIMER_INIT)
    registry = registry_of(inits, "timer_handle")
    links = observed.events(Ros2.TIMER_LINK_NODE)
    timer = registry.find(links.process, links.handles("timer_handle"), links.times_ns)
    node = np.full(len(inits), -1, dtype=np.int32)
    node[timer[timer >= 0][::-1]] = _node_of(links, nodes)[timer >= 0][::-1]
    return Kind("timers", inits, "timer_handle", registry, {"node": node, "period_ns": inits["period"]})
