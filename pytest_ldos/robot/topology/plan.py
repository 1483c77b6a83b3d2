"""The plan of each process of a topology, with the same keys for our node layer and for rclcpp's.

`ros_ws/src/ldos_topology` reads the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pytest_ldos.robot.topology.model import Client, Node, Publisher, Subscription, TopicQos, Topology


class Processes(StrEnum):
    """The distribution of nodes over processes."""

    ONE = "one"
    NODE = "node"


@dataclass(frozen=True)
class ProcessPlan:
    """The nodes of one process; its name is the node's, or the topology's."""

    name: str
    nodes: tuple[Node, ...]


def spread(topology: Topology, processes: Processes) -> list[ProcessPlan]:
    """Distributes the nodes of a topology over its processes."""
    if processes is Processes.ONE:
        return [ProcessPlan(topology.name, topology.nodes)]
    return [ProcessPlan(node.full_name.replace("/", "."), (node,)) for node in topology.nodes]


def encode_plan(
    topology: Topology, nodes: Sequence[Node], *, samples: str, sampling_ns: int, intra_process: bool
) -> dict[str, Any]:
    """Encodes the plan of one process as JSON.

    Args:
        samples: file to which the process writes the messages that arrived; see `samples`.
    """
    ends = _Ends(topology)
    return {
        "samples": samples,
        "intra_process": intra_process,
        "sampling_ns": sampling_ns,
        "nodes": [ends.node(node) for node in nodes],
    }


class _Ends:
    """Endpoints of each topic on both sides."""

    def __init__(self, topology: Topology) -> None:
        self._writers: dict[str, list[int]] = {}
        self._readers: dict[str, int] = {}
        for _, publisher in topology.publishers:
            self._writers.setdefault(publisher.topic, []).append(publisher.id)
        for _, subscription in topology.subscriptions:
            self._readers[subscription.topic] = self._readers.get(subscription.topic, 0) + 1

    def node(self, node: Node) -> dict[str, Any]:
        return {
            "name": node.name,
            "namespace": node.namespace,
            "executor": node.executor,
            "publishers": [self._publisher(each) for each in node.publishers],
            "subscriptions": [self._subscription(each) for each in node.subscriptions],
            "clients": [_client(each) for each in node.clients],
            "services": [each.service for each in node.servers],
        }

    def _publisher(self, publisher: Publisher) -> dict[str, Any]:
        return {
            **_end(publisher),
            "size_bytes": publisher.size_bytes,
            "period_ns": publisher.period_ns,
            "readers": self._readers.get(publisher.topic, 0),
        }

    def _subscription(self, subscription: Subscription) -> dict[str, Any]:
        return {**_end(subscription), "writers": self._writers[subscription.topic]}


def _end(end: Publisher | Subscription) -> dict[str, Any]:
    return {"id": end.id, "topic": end.topic, "qos": _qos(end.qos), "by_unique_ptr": end.by_unique_ptr}


def _qos(qos: TopicQos) -> Mapping[str, int | bool]:
    return {"depth": qos.depth, "reliable": qos.reliable, "transient_local": qos.transient_local}


def _client(client: Client) -> dict[str, Any]:
    return {
        "id": client.id,
        "service": client.service,
        "size_bytes": client.size_bytes,
        "period_ns": client.period_ns,
    }
