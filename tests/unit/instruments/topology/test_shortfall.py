"""Senders that do not keep their period are told of."""

from __future__ import annotations

from pytest_ldos.instruments.topology.rounds import find_shortfalls
from tests.builders.topologies import SECOND, recorded, topology


def said(*sent: dict[int, int], **changes) -> list[str]:
    return list(find_shortfalls(topology(), [recorded([], sent=each, **changes) for each in sent]))


def test_what_was_sent_in_time_is_not_mentioned():
    assert said({0: 99, 2: 19}, {0: 100, 2: 20}) == []


def test_who_sent_less_is_named_the_worst_first():
    assert said({0: 60, 2: 2}, {0: 60, 2: 2}) == [
        "messages were not sent as often as declared: listener to /sum sent 4 of 38, talker on /counts sent 120 of 198"
    ]


def test_a_start_that_failed_tells_nothing():
    assert said({0: 10}, failure="it died", ended_ns=SECOND) == []


def test_many_are_counted():
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
