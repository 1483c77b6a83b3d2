"""Senders that do not keep their period are reported."""

from __future__ import annotations

from pytest_ldos.instruments.topology.rounds import find_shortfalls
from tests.builders.topologies import SECOND, recorded, topology


def notes_of(*sent: dict[int, int], **changes) -> list[str]:
    return list(find_shortfalls(topology(), [recorded([], sent=each, **changes) for each in sent]))


def test_senders_in_time_are_not_reported():
    assert notes_of({0: 99, 2: 19}, {0: 100, 2: 20}) == []


def test_slow_senders_are_reported_worst_first():
    assert notes_of({0: 60, 2: 2}, {0: 60, 2: 2}) == [
        "messages were not sent as often as declared: listener to /sum sent 4 of 38, talker on /counts sent 120 of 198"
    ]


def test_failed_start_is_ignored():
    assert notes_of({0: 10}, failure="it died", ended_ns=SECOND) == []


def test_many_senders_are_counted():
    nodes = [
        {
            "node_name": f"n{number}",
            "publishers": [{"topic_name": f"t{number}", "msg_type": "stamped10b", "period_ms": 10}],
        }
        for number in range(5)
    ]
    nodes.append({"node_name": "all", "subscribers": [{"topic_name": "t0", "msg_type": "stamped10b"}]})
    (words,) = find_shortfalls(topology({"nodes": nodes}), [recorded([], sent={number: number for number in range(5)})])
    assert "n0 on /t0 sent 0 of 99, n1 on /t1 sent 1 of 99, n2 on /t2 sent 2 of 99 and 2 more" in words
