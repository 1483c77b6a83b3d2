"""A topology: nodes, and what each of them sends and takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TopicQos:
    """Quality of service of a topic's end; history is keep-last."""

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False

    def is_offered_by(self, other: TopicQos) -> bool:
        """Whether a subscription that asks for this matches a publisher of the other."""
        return (other.reliable or not self.reliable) and (other.transient_local or not self.transient_local)


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Attributes:
    id: unique in the topology, as of everything that sends or takes.
    size_bytes: of the payload.
    by_unique_ptr: how rclcpp is given a message: moved, else by reference.
    line: of the file, for messages.
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
    """See `Publisher`."""

    id: int
    topic: str
    msg_type: str
    qos: TopicQos
    by_unique_ptr: bool
    line: int


@dataclass(frozen=True, kw_only=True)
class Client:
    """Asks a service each period; request and response have the same size."""

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
    """Attributes:
    namespace: absolute; ``/`` for none.
    executor: nodes with the same number share an executor, where there are several.
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
        """Without the first slash: ``left/gripper``."""
        return f"{self.namespace}/{self.name}".strip("/")

    @property
    def ends(self) -> int:
        """Of all kinds."""
        return len(self.publishers) + len(self.subscriptions) + len(self.clients) + len(self.servers)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Attributes:
    name: of its file, without the suffix.
    digest: of the file's content: topologies with the same one are the same.
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
