"""Topologies: nodes with their publishers, subscriptions, clients and servers, read from files.

Files are JSON in the format of iRobot's performance framework. A type is a header and a payload: ``stamped10b`` carries
10 B, ``stamped4_int32`` four 32-bit numbers, ``stamped_vector`` ``msg_size`` bytes. All are sent as
`ldos_topology_msgs/Stamped`.

Reference: github.com/irobot-ros/ros2-performance, ``performance_test_factory/create_new_topology.md``.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S, one_line
from pytest_ldos.robot.topology.located_json import Place, read_located, read_source


@dataclass(frozen=True, kw_only=True)
class TopicQos:
    """Quality of service of a publisher or subscription; history is keep-last."""

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """A periodic publisher."""

    id: int  # unique among all publishers, subscriptions and clients of the topology
    topic: str
    msg_type: str
    size_bytes: int  # size of the payload
    period_ns: int
    qos: TopicQos
    by_unique_ptr: bool  # True if messages are passed to rclcpp as `unique_ptr`, False if by reference
    line: int  # line of the file, for messages


@dataclass(frozen=True, kw_only=True)
class Subscription:
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
    """A node and its endpoints; `namespace` is absolute, and `executor` the number of its executor."""

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
        return len(self.publishers) + len(self.subscriptions) + len(self.clients) + len(self.servers)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A declared graph of nodes, with the name of its file without the suffix, and the digest of its content."""

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
        wanted = [each.topic for _, each in topology.subscriptions] + [each.service for _, each in topology.clients]
        if not wanted:
            self._refuse(1, "nodes", "no node receives messages: nothing to measure", "add subscribers or clients")
        if not any(node.publishers or node.servers for node in topology.nodes):  # such as iRobot's ``debug_*``
            raise ConfigurationError(
                f"{self._file} declares nothing that publishes or serves: its {len(wanted)} subscribers and clients "
                f"({wanted[0]}, …) are meant to run together with the nodes of another file",
                remedy="measure both files as one: "
                f"jq -s '{{nodes: map(.nodes) | add}}' OTHER.json {self._file} > both.json",
            )
        publishers: dict[str, list[tuple[Node, Publisher]]] = {}
        for node, each in topology.publishers:
            publishers.setdefault(each.topic, []).append((node, each))
        for node, subscription in topology.subscriptions:
            self._check_subscription(node, subscription, publishers)
        servers = {each.service: each for _, each in topology.servers}
        for node, client in topology.clients:
            self._check_client(node, client, servers)

    def _check_subscription(
        self, node: Node, subscription: Subscription, publishers: Mapping[str, Collection[tuple[Node, Publisher]]]
    ) -> None:
        topic, line = subscription.topic, subscription.line
        if topic not in publishers:
            problem = f"{node.full_name} subscribes to {topic}, which no node publishes"
            self._refuse(line, "topic_name", problem, _nearest(topic, publishers))
        for other, publisher in publishers[topic]:
            if publisher.msg_type != subscription.msg_type:
                ours, theirs = subscription.msg_type, publisher.msg_type
                problem = f"{topic} is {ours} to {node.full_name}, and {theirs} to {other.full_name}"
                self._refuse(line, "msg_type", problem, f"see line {publisher.line}: both must say the same")
            asked, offered = subscription.qos, publisher.qos
            if asked.reliable > offered.reliable or asked.transient_local > offered.transient_local:
                problem = f"{node.full_name} asks more of {topic} than {other.full_name} offers: they would never meet"
                self._refuse(line, "qos_reliability, qos_durability", problem, f"see line {publisher.line}")

    def _check_client(self, node: Node, client: Client, servers: Mapping[str, Server]) -> None:
        server = servers.get(client.service)
        if server is None:
            problem = f"{node.full_name} asks {client.service}, which no node serves"
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


_NUMBERS: Final = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": 4,
    "float64": 8,
}
_MULTIPLES: Final = {"b": 1, "kb": 1024, "mb": 1024 * 1024}
_BYTES: Final = re.compile(r"stamped(\d{1,9})(b|kb|mb)")
_ARRAY: Final = re.compile(rf"stamped(\d{{0,9}})_({'|'.join(_NUMBERS)})")

VECTOR: Final = "stamped_vector"  # the type with a variable size

EXAMPLES: Final = ("stamped10b", "stamped100kb", "stamped4mb", "stamped4_int32", "stamped_int64", VECTOR)


def size_of_type(msg_type: str) -> int | None:
    """Payload of a type in bytes; ``None`` if its name does not contain it. Ignores a plugin prefix."""
    name = msg_type.rpartition("::")[2]
    if found := _BYTES.fullmatch(name):
        return int(found[1]) * _MULTIPLES[found[2]]
    if found := _ARRAY.fullmatch(name):
        return int(found[1] or 1) * _NUMBERS[found[2]]
    return None


MOST_NODES: Final = 500
MOST_ENDS: Final = 3000  # largest number of endpoints: their counts are sent in one line, which must fit in a pipe

LARGEST_BYTES: Final = 64 * 1024 * 1024
LONGEST_NAME: Final = 100
_LONGEST_TITLE: Final = 60  # largest length of a name of a topology, which is used in file names

SHORTEST_PERIOD_NS: Final = 10_000
LONGEST_PERIOD_NS: Final = 3600 * NS_PER_S

_QOS_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "qos_reliability": ("reliable", "best_effort", "system_default"),
    "qos_durability": ("volatile", "transient_local", "system_default"),
    "qos_history": ("keep_last", "system_default"),
    "qos_deadline": ("default",),
    "qos_lifespan": ("default",),
    "qos_liveliness": ("automatic", "system_default"),
    "qos_liveliness_lease_duration": ("default",),
    "qos_avoid_ros_namespace_conventions": ("false",),
}
"""Accepted words of each QoS key; keys with one word have no other supported setting."""

_QOS: Final = ("qos_depth", *_QOS_WORDS)
_RATE: Final = ("period_ms", "freq_hz")
_ENDS: Final = ("publishers", "subscribers", "clients", "servers")
_NODE_KEYS: Final = ("node_name", "node_namespace", "executor_id", "number", *_ENDS)
_PUBLISHER_KEYS: Final = ("topic_name", "msg_type", "msg_size", "msg_pass_by", *_RATE, *_QOS)
_SUBSCRIBER_KEYS: Final = ("topic_name", "msg_type", "msg_pass_by", *_QOS)
_CLIENT_KEYS: Final = ("service_name", "srv_type", "msg_size", *_RATE, *_QOS)
_SERVER_KEYS: Final = ("service_name", "srv_type", *_QOS)

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PATH: Final = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_PASSED: Final = ("unique_ptr", "shared_ptr")
_SUFFIX: Final = ".json"

End = TypeVar("End")


def our_topologies() -> list[str]:
    names = [each.name for each in files(__package__).joinpath("topologies").iterdir()]
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def read_topology(file: str) -> Topology:
    """Reads a topology from a file, or a built-in one by name; raises `ConfigurationError` with line and key."""
    if file in our_topologies():
        name = f"{file}{_SUFFIX}"
        return decode_topology(files(__package__).joinpath("topologies", name).read_text("utf-8"), name)
    remedy = f"name a file, or one of ours: {', '.join(our_topologies())}"
    return decode_topology(read_source(Path(file), "the topology", remedy=remedy), Path(file).name)


def decode_topology(text: str, file: str) -> Topology:
    root = read_located(text, file)
    nodes = tuple(_read_nodes(root.members(("nodes",), required=("nodes",))["nodes"]))
    if not nodes:
        root.refuse("declares no nodes", remedy='add one: {"node_name": "…", "publishers": […]}')
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    topology = Topology(name=one_line(Path(file).stem)[:_LONGEST_TITLE], digest=digest, nodes=nodes)
    _Checks(file).check(topology)
    return topology


def _read_nodes(places: Place) -> Iterator[Node]:
    ids = itertools.count()
    made = ends = 0
    for place in places.items():
        keys = place.members(_NODE_KEYS, required=("node_name",))
        copies = keys["number"].whole(least=1, most=MOST_NODES) if "number" in keys else 0
        made += max(1, copies)
        if made > MOST_NODES:
            place.refuse("declares more nodes than can be measured", remedy=f"at most {MOST_NODES} are")
        for suffix in [f"_{number}" for number in range(1, copies + 1)] or [""]:
            node = _read_node(place.line, keys, suffix, ids)
            ends += node.ends
            if ends > MOST_ENDS:
                remedy = f"at most {MOST_ENDS} are in all nodes together"
                place.refuse("declares more publishers, subscribers, … than can be measured", remedy=remedy)
            yield node


def _read_node(line: int, keys: Mapping[str, Place], suffix: str, ids: Iterator[int]) -> Node:
    name = _read_name(keys["node_name"], _NAME)
    namespace = "/" + _read_name(keys["node_namespace"], _PATH).strip("/") + suffix if "node_namespace" in keys else "/"

    def ends(key: str, read: Callable[[Place], End]) -> tuple[End, ...]:
        return tuple(read(each) for each in keys[key].items()) if key in keys else ()

    return Node(
        name=f"{name}{suffix}",
        namespace=namespace,
        executor=keys["executor_id"].whole(least=0, most=MOST_NODES) if "executor_id" in keys else 0,
        publishers=ends("publishers", lambda place: _read_publisher(place, namespace, next(ids))),
        subscriptions=ends("subscribers", lambda place: _read_subscription(place, namespace, next(ids))),
        clients=ends("clients", lambda place: _read_client(place, namespace, next(ids))),
        servers=ends("servers", lambda place: _read_server(place, namespace)),
        line=line,
    )


def _read_publisher(place: Place, namespace: str, number: int) -> Publisher:
    keys = place.members(_PUBLISHER_KEYS, required=("topic_name", "msg_type"))
    return Publisher(
        id=number,
        topic=_absolute(keys["topic_name"], namespace),
        msg_type=keys["msg_type"].word(),
        size_bytes=_read_size_bytes(keys["msg_type"], keys.get("msg_size")),
        period_ns=_read_period_ns(place, keys),
        qos=_read_qos(keys),
        by_unique_ptr="msg_pass_by" not in keys or _one_of(keys["msg_pass_by"], _PASSED) == _PASSED[0],
        line=place.line,
    )


def _read_subscription(place: Place, namespace: str, number: int) -> Subscription:
    keys = place.members(_SUBSCRIBER_KEYS, required=("topic_name", "msg_type"))
    return Subscription(
        id=number,
        topic=_absolute(keys["topic_name"], namespace),
        msg_type=keys["msg_type"].word(),
        qos=_read_qos(keys),
        by_unique_ptr="msg_pass_by" in keys and _one_of(keys["msg_pass_by"], _PASSED) == _PASSED[0],
        line=place.line,
    )


def _read_client(place: Place, namespace: str, number: int) -> Client:
    keys = place.members(_CLIENT_KEYS, required=("service_name", "srv_type"))
    _refuse_service_qos(keys)
    return Client(
        id=number,
        service=_absolute(keys["service_name"], namespace),
        srv_type=keys["srv_type"].word(),
        size_bytes=_read_size_bytes(keys["srv_type"], keys.get("msg_size")),
        period_ns=_read_period_ns(place, keys),
        line=place.line,
    )


def _read_server(place: Place, namespace: str) -> Server:
    keys = place.members(_SERVER_KEYS, required=("service_name", "srv_type"))
    _refuse_service_qos(keys)
    service = _absolute(keys["service_name"], namespace)
    return Server(service=service, srv_type=keys["srv_type"].word(), line=place.line)


def _read_size_bytes(msg_type: Place, msg_size: Place | None) -> int:
    named = size_of_type(msg_type.word())
    if msg_size is None:
        if named is None:
            known = "its size is unknown" if msg_type.value == VECTOR else "the type is not known"
            like = f"{suggest(str(msg_type.value), EXAMPLES)} (the numbers in them are free)"
            remedy = f'add "msg_size" in bytes, or take another type; {like}'
            msg_type.refuse(f"is {msg_type.value!r}: {known}", remedy=remedy)
        if named > LARGEST_BYTES:
            msg_type.refuse(f"asks for {named} B a message", remedy=f"at most {LARGEST_BYTES} B are sent")
        return named
    given_bytes = msg_size.whole(least=0, most=LARGEST_BYTES)
    if named is not None and given_bytes != named:
        msg_size.refuse(
            f"is {given_bytes}, but {msg_type.value} has {named} B", remedy=f"leave it out, or take {VECTOR}"
        )
    return given_bytes


def _read_period_ns(owner: Place, keys: Mapping[str, Place]) -> int:
    given = [keys[key] for key in _RATE if key in keys]
    if not given:
        owner.refuse("says neither 'period_ms' nor 'freq_hz'", remedy='add one, as in "period_ms": 10')
    if len(given) > 1:
        given[1].refuse("is given together with 'period_ms'", remedy="keep one of them")
    place = given[0]
    value = place.number()
    if value <= 0:
        place.refuse(f"is {place.shown}", remedy="it must be above 0")
    period_ns = value * NS_PER_MS if "period_ms" in keys else NS_PER_S / value
    if not SHORTEST_PERIOD_NS <= period_ns <= LONGEST_PERIOD_NS:
        place.refuse(f"is {place.shown}", remedy="a period must lie between 10 µs and an hour")
    return round(period_ns)


def _read_qos(keys: Mapping[str, Place]) -> TopicQos:
    qos = {key: _one_of(keys[key], words) for key, words in _QOS_WORDS.items() if key in keys}
    return TopicQos(
        depth=keys["qos_depth"].whole(least=1, most=100_000) if "qos_depth" in keys else 10,
        reliable=qos.get("qos_reliability") != "best_effort",
        transient_local=qos.get("qos_durability") == "transient_local",
    )


def _refuse_service_qos(keys: Mapping[str, Place]) -> None:
    usual = {"qos_depth": 10, "qos_reliability": "reliable", "qos_durability": "volatile"}
    _read_qos(keys)
    for key, value in usual.items():
        if key in keys and keys[key].value not in (value, "system_default"):
            keys[key].refuse(f"is {keys[key].shown}", remedy=f"services have ROS 2's own: {value}")


def _one_of(place: Place, words: tuple[str, ...]) -> str:
    word = place.word()
    if word not in words:
        known = suggest(word, words) if len(words) > 1 else f"only {words[0]!r} can be measured"
        place.refuse(f"is {word!r}", remedy=known)
    return word


def _absolute(place: Place, namespace: str) -> str:
    name = _read_name(place, _PATH)
    return name if name.startswith("/") else f"{namespace.rstrip('/')}/{name}"


def _read_name(place: Place, form: re.Pattern[str]) -> str:
    name = place.word()
    if len(name) > LONGEST_NAME:
        place.refuse(f"has {len(name)} characters", remedy=f"at most {LONGEST_NAME} make a name")
    if not form.fullmatch(name):
        place.refuse(f"is {name!r}, which is no name of ROS 2", remedy="use letters, digits and _, and a letter first")
    return name
