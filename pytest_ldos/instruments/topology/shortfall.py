"""Senders that did not keep their period: messages never sent are neither late nor lost, and would go unnoticed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ldos.base.units import listed
from pytest_ldos.instruments.topology.recorded import Recorded
from pytest_ldos.robot.topology.model import Topology

_KEPT: Final = 0.95
"""Share of the due messages that must be sent."""

_NAMED: Final = 3


def find_shortfalls(topology: Topology, starts: Sequence[Recorded]) -> Iterator[str]:
    """Yields a sentence if senders sent less than declared; ignores starts that failed."""
    short = [
        (sent / due, f"{name} sent {sent} of {due}")
        for number, period_ns, name in _senders(topology)
        for sent, due in [_sent_of_due(number, period_ns, starts)]
        if sent < _KEPT * due
    ]
    if short:
        yield f"messages were not sent as often as declared: {listed([words for _, words in sorted(short)], _NAMED)}"


def _senders(topology: Topology) -> Iterator[tuple[int, int, str]]:
    for node, publisher in topology.publishers:
        yield publisher.id, publisher.period_ns, f"{node.full_name} on {publisher.topic}"
    for node, client in topology.clients:
        yield client.id, client.period_ns, f"{node.full_name} to {client.service}"


def _sent_of_due(number: int, period_ns: int, starts: Sequence[Recorded]) -> tuple[int, int]:
    """Counts the first message as due one period after the beginning."""
    whole = [each for each in starts if not each.failure]
    due = sum(max(0, each.duration_ns // period_ns - 1) for each in whole)
    return sum(each.sent.get(number, 0) for each in whole), due
