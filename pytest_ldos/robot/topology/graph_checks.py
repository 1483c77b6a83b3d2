"""Constraints between the nodes of a topology."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.robot.topology.model import Client, Node, Publisher, Server, Subscription, Topology


def check_graph(topology: Topology, file: str) -> None:
    """Rejects connections that could never carry a message: each needs a sender with matching type and QoS.

    Raises:
        ConfigurationError: with file, line and key.
    """
    _Checks(file).check(topology)


class _Checks:
    def __init__(self, file: str) -> None:
        self._file = file

    def check(self, topology: Topology) -> None:
        self._refuse_twice("node_name", ((node.full_name, node.line) for node in topology.nodes))
        self._refuse_twice("service_name", ((each.service, each.line) for _, each in topology.servers))
        for node in topology.nodes:
            self._refuse_twice("topic_name", ((each.topic, each.line) for each in node.publishers))
            self._refuse_twice("topic_name", ((each.topic, each.line) for each in node.subscriptions))
            self._refuse_twice("service_name", ((each.service, each.line) for each in node.clients))
        self._refuse_half(topology)
        publishers: dict[str, list[tuple[Node, Publisher]]] = {}
        for node, each in topology.publishers:
            publishers.setdefault(each.topic, []).append((node, each))
        for node, subscription in topology.subscriptions:
            self._check_subscription(node, subscription, publishers)
        servers = {each.service: each for _, each in topology.servers}
        for node, client in topology.clients:
            self._check_client(node, client, servers)
        if not any(True for _ in topology.subscriptions) and not any(True for _ in topology.clients):
            self._refuse(1, "nodes", "nobody takes anything: there is nothing to measure", "add subscribers or clients")

    def _refuse_half(self, topology: Topology) -> None:
        """Refuses a file of takers alone, such as iRobot's ``debug_*``: another file has what they listen to."""
        wanted = [each.topic for _, each in topology.subscriptions] + [each.service for _, each in topology.clients]
        if wanted and not any(node.publishers or node.servers for node in topology.nodes):
            raise ConfigurationError(
                f"{self._file} declares nothing that publishes or serves: its {len(wanted)} subscribers and clients "
                f"({wanted[0]}, …) are meant to run together with the nodes of another file",
                remedy="measure both files as one: "
                f"jq -s '{{nodes: map(.nodes) | add}}' OTHER.json {self._file} > both.json",
            )

    def _check_subscription(
        self, node: Node, subscription: Subscription, publishers: Mapping[str, Collection[tuple[Node, Publisher]]]
    ) -> None:
        topic, line = subscription.topic, subscription.line
        if topic not in publishers:
            problem = f"{node.full_name} subscribes to {topic}, which nobody publishes"
            self._refuse(line, "topic_name", problem, _nearest(topic, publishers))
        for other, publisher in publishers[topic]:
            if publisher.msg_type != subscription.msg_type:
                ours, theirs = subscription.msg_type, publisher.msg_type
                problem = f"{topic} is {ours} to {node.full_name}, and {theirs} to {other.full_name}"
                self._refuse(line, "msg_type", problem, f"see line {publisher.line}: both must say the same")
            if not subscription.qos.is_offered_by(publisher.qos):
                problem = f"{node.full_name} asks more of {topic} than {other.full_name} offers: they would never meet"
                self._refuse(line, "qos_reliability, qos_durability", problem, f"see line {publisher.line}")

    def _check_client(self, node: Node, client: Client, servers: Mapping[str, Server]) -> None:
        server = servers.get(client.service)
        if server is None:
            problem = f"{node.full_name} asks {client.service}, which nobody serves"
            self._refuse(client.line, "service_name", problem, _nearest(client.service, servers))
        if server.srv_type != client.srv_type:
            problem = f"{client.service} is {client.srv_type} to {node.full_name}, and {server.srv_type} to its server"
            self._refuse(client.line, "srv_type", problem, f"see line {server.line}: both must say the same")

    def _refuse_twice(self, key: str, named: Iterable[tuple[str, int]]) -> None:
        first: dict[str, int] = {}
        for name, line in named:
            if name in first:
                self._refuse(line, key, f"'{name}' is there twice", f"see line {first[name]}: give it another name")
            first[name] = line

    def _refuse(self, line: int, key: str, problem: str, remedy: str) -> NoReturn:
        raise ConfigurationError(f"{self._file}, line {line}: {key}: {problem}", remedy=remedy)


def _nearest(name: str, known: Collection[str]) -> str:
    return suggest(name, known) if known else "declare all nodes in one file"
