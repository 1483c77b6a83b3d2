"""Topology files: JSON in the format of iRobot's performance framework, read strictly.

Reference: github.com/irobot-ros/ros2-performance, ``performance_test_factory/create_new_topology.md``: ``nodes``, each
with ``node_name``, ``publishers``, ``subscribers``, ``clients``, ``servers``, ``number`` of copies, ``node_namespace``,
``executor_id``.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeVar

from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import NS_PER_MS, NS_PER_S
from pytest_ldos.robot.topology.graph_checks import check_graph
from pytest_ldos.robot.topology.located_json import Place, read_located
from pytest_ldos.robot.topology.message_types import EXAMPLES, VECTOR, size_of_type
from pytest_ldos.robot.topology.model import Client, Node, Publisher, Server, Subscription, TopicQos, Topology
from pytest_ldos.robot.topology.source_text import read_source

MOST_NODES: Final = 500
MOST_ENDS: Final = 3000
"""Publishers, subscribers, clients and servers: all their counts are sent in one line, which must fit a pipe."""

LARGEST_BYTES: Final = 64 * 1024 * 1024
LONGEST_NAME: Final = 100
_LONGEST_TITLE: Final = 60
"""Length of a topology's name, which is also used in file names."""

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
"""Accepted words of each key; where there is only one, no other setting is measured here."""

_QOS: Final = ("qos_depth", *_QOS_WORDS)
_RATE: Final = ("period_ms", "freq_hz")
_NODE_KEYS: Final = (
    "node_name",
    "node_namespace",
    "executor_id",
    "number",
    "publishers",
    "subscribers",
    "clients",
    "servers",
)
_PUBLISHER_KEYS: Final = ("topic_name", "msg_type", "msg_size", "msg_pass_by", *_RATE, *_QOS)
_SUBSCRIBER_KEYS: Final = ("topic_name", "msg_type", "msg_pass_by", *_QOS)
_CLIENT_KEYS: Final = ("service_name", "srv_type", "msg_size", *_RATE, *_QOS)
_SERVER_KEYS: Final = ("service_name", "srv_type", *_QOS)

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PATH: Final = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_FEWER: Final = f"at most {MOST_ENDS} are in all nodes together"
_OURS: Final = "topologies"
_SUFFIX: Final = ".json"

End = TypeVar("End")


def our_topologies() -> list[str]:
    """Returns the names of the topologies in this package."""
    folder = files(__package__).joinpath(_OURS)
    return sorted(each.name.removesuffix(_SUFFIX) for each in folder.iterdir() if each.name.endswith(_SUFFIX))


def read_topology(file: str) -> Topology:
    """Reads a topology by its file, or by its name if it is in this package.

    Raises:
        ConfigurationError: it cannot be read, or its content makes no sense; with line and key.
    """
    if file in our_topologies():
        return decode_topology(
            files(__package__).joinpath(_OURS, f"{file}{_SUFFIX}").read_text("utf-8"), f"{file}{_SUFFIX}"
        )
    remedy = f"name a file, or one of ours: {', '.join(our_topologies())}"
    return decode_topology(read_source(Path(file), "the topology", remedy=remedy), Path(file).name)


def decode_topology(text: str, file: str) -> Topology:
    """Decodes a topology's text; see `read_topology`."""
    root = read_located(text, file)
    nodes = tuple(_read_nodes(root.members(("nodes",), required=("nodes",))["nodes"]))
    if not nodes:
        root.refuse("declares no nodes", remedy='add one: {"node_name": "…", "publishers": […]}')
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    topology = Topology(name=one_line(Path(file).stem)[:_LONGEST_TITLE], digest=digest, nodes=nodes)
    check_graph(topology, file)
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
                place.refuse("declares more publishers, subscribers, … than can be measured", remedy=_FEWER)
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
        size_bytes=_read_size(keys["msg_type"], keys.get("msg_size")),
        period_ns=_read_period(place, keys),
        qos=_read_qos(keys),
        by_unique_ptr=_is_by_unique_ptr(keys, default=True),
        line=place.line,
    )


def _read_subscription(place: Place, namespace: str, number: int) -> Subscription:
    keys = place.members(_SUBSCRIBER_KEYS, required=("topic_name", "msg_type"))
    return Subscription(
        id=number,
        topic=_absolute(keys["topic_name"], namespace),
        msg_type=keys["msg_type"].word(),
        qos=_read_qos(keys),
        by_unique_ptr=_is_by_unique_ptr(keys, default=False),
        line=place.line,
    )


def _read_client(place: Place, namespace: str, number: int) -> Client:
    keys = place.members(_CLIENT_KEYS, required=("service_name", "srv_type"))
    _refuse_service_qos(keys)
    return Client(
        id=number,
        service=_absolute(keys["service_name"], namespace),
        srv_type=keys["srv_type"].word(),
        size_bytes=_read_size(keys["srv_type"], keys.get("msg_size")),
        period_ns=_read_period(place, keys),
        line=place.line,
    )


def _read_server(place: Place, namespace: str) -> Server:
    keys = place.members(_SERVER_KEYS, required=("service_name", "srv_type"))
    _refuse_service_qos(keys)
    service = _absolute(keys["service_name"], namespace)
    return Server(service=service, srv_type=keys["srv_type"].word(), line=place.line)


def _read_size(msg_type: Place, msg_size: Place | None) -> int:
    """Returns the payload in bytes, by the type's name or as given."""
    named = size_of_type(msg_type.word())
    if msg_size is None:
        if named is None:
            known = "its size is unknown" if msg_type.value == VECTOR else "the type is not known"
            like = f"{suggest(str(msg_type.value), EXAMPLES)} (the numbers in them are free)"
            remedy = f'add "msg_size" in bytes, or take another type; {like}'
            msg_type.refuse(f"is {msg_type.value!r}: {known}", remedy=remedy)
        return _within(named, msg_type)
    said = msg_size.whole(least=0, most=LARGEST_BYTES)
    if named is not None and said != named:
        msg_size.refuse(f"is {said}, but {msg_type.value} has {named} B", remedy=f"leave it out, or take {VECTOR}")
    return said


def _within(size_bytes: int, place: Place) -> int:
    if size_bytes > LARGEST_BYTES:
        place.refuse(f"asks for {size_bytes} B a message", remedy=f"at most {LARGEST_BYTES} B are sent")
    return size_bytes


def _read_period(owner: Place, keys: Mapping[str, Place]) -> int:
    """Returns the nanoseconds between two messages."""
    given = [keys[key] for key in _RATE if key in keys]
    if not given:
        owner.refuse("says neither 'period_ms' nor 'freq_hz'", remedy='add one, as in "period_ms": 10')
    if len(given) > 1:
        given[1].refuse("is given beside 'period_ms'", remedy="keep one of them")
    place = given[0]
    value = place.number()
    if value <= 0:
        place.refuse(f"is {place.shown}", remedy="it must be above 0")
    period_ns = value * NS_PER_MS if "period_ms" in keys else NS_PER_S / value
    if not SHORTEST_PERIOD_NS <= period_ns <= LONGEST_PERIOD_NS:
        place.refuse(f"is {place.shown}", remedy="a period must lie between 10 µs and an hour")
    return round(period_ns)


def _read_qos(keys: Mapping[str, Place]) -> TopicQos:
    said = {key: _one_of(keys[key], words) for key, words in _QOS_WORDS.items() if key in keys}
    return TopicQos(
        depth=keys["qos_depth"].whole(least=1, most=100_000) if "qos_depth" in keys else 10,
        reliable=said.get("qos_reliability") != "best_effort",
        transient_local=said.get("qos_durability") == "transient_local",
    )


def _refuse_service_qos(keys: Mapping[str, Place]) -> None:
    """Refuses other QoS for services: they have ROS 2's own, and the measurement must be what the file says."""
    usual = {"qos_depth": 10, "qos_reliability": "reliable", "qos_durability": "volatile"}
    _read_qos(keys)
    for key, value in usual.items():
        if key in keys and keys[key].value not in (value, "system_default"):
            keys[key].refuse(f"is {keys[key].shown}", remedy=f"services have ROS 2's own: {value}")


def _is_by_unique_ptr(keys: Mapping[str, Place], *, default: bool) -> bool:
    if "msg_pass_by" not in keys:
        return default
    return _one_of(keys["msg_pass_by"], ("unique_ptr", "shared_ptr")) == "unique_ptr"


def _one_of(place: Place, words: tuple[str, ...]) -> str:
    word = place.word()
    if word not in words:
        known = suggest(word, words) if len(words) > 1 else f"only {words[0]!r} can be measured"
        place.refuse(f"is {word!r}", remedy=known)
    return word


def _absolute(place: Place, namespace: str) -> str:
    """Returns a name as the middleware uses it."""
    name = _read_name(place, _PATH)
    return name if name.startswith("/") else f"{namespace.rstrip('/')}/{name}"


def _read_name(place: Place, form: re.Pattern[str]) -> str:
    name = place.word()
    if len(name) > LONGEST_NAME:
        place.refuse(f"has {len(name)} characters", remedy=f"at most {LONGEST_NAME} make a name")
    if not form.fullmatch(name):
        place.refuse(f"is {name!r}, which is no name of ROS 2", remedy="use letters, digits and _, and a letter first")
    return name
