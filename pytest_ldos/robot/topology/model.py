"""A topology: nodes with their publishers, subscriptions, clients and servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TopicQos:
    """Quality of service of a publisher or subscription; history is keep-last."""

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False

    def is_offered_by(self, other: TopicQos) -> bool:
        """Returns True if a subscription with this QoS matches a publisher with the `other` QoS."""
        return (other.reliable or not self.reliable) and (other.transient_local or not self.transient_local)


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """A periodic publisher.

    Attributes:
        id: unique in the topology, among all publishers, subscriptions and clients.
        size_bytes: size of the payload.
        by_unique_ptr: True if messages are passed to rclcpp as `unique_ptr`, False if by reference.
        line: line of the file, for messages.
    """

    id: int
    topic: str
    msg_type: str
    size_bytes: int
    period_ns: int
    qos: TopicQos
    by_unique_ptr: bool
    line: int


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """A subscription; see `Publisher`."""

    id: int
    topic: str
    msg_type: str
    qos: TopicQos
    by_unique_ptr: bool
    line: int


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client that calls a service every period; request and response have the same size."""

    id: int
    service: str
    srv_type: str
    size_bytes: int
    period_ns: int
    line: int


@dataclass(frozen=True, kw_only=True)
class Server:
    service: str
    srv_type: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node and its endpoints.

    Attributes:
        namespace: absolute; ``/`` for none.
        executor: number of the node's executor, if there are several.
    """

    name: str
    namespace: str
    executor: int
    publishers: tuple[Publisher, ...]
    subscriptions: tuple[Subscription, ...]
    clients: tuple[Client, ...]
    servers: tuple[Server, ...]
    line: int

    @property
    def full_name(self) -> str:
        """The full name without the first slash: ``left/gripper``."""
        return f"{self.namespace}/{self.name}".strip("/")

    @property
    def ends(self) -> int:
        """Number of endpoints of all kinds."""
        return len(self.publishers) + len(self.subscriptions) + len(self.clients) + len(self.servers)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A declared graph of nodes.

    Attributes:
        name: name of its file, without the suffix.
        digest: digest of the file's content; topologies with the same digest are the same.
    """

    name: str
    digest: str
    nodes: tuple[Node, ...]

    @property
    def publishers(self) -> Iterator[tuple[Node, Publisher]]:
        return ((node, each) for node in self.nodes for each in node.publishers)

    @property
    def subscriptions(self) -> Iterator[tuple[Node, Subscription]]:
        return ((node, each) for node in self.nodes for each in node.subscriptions)

    @property
    def clients(self) -> Iterator[tuple[Node, Client]]:
        return ((node, each) for node in self.nodes for each in node.clients)

    @property
    def servers(self) -> Iterator[tuple[Node, Server]]:
        return ((node, each) for node in self.nodes for each in node.servers)
