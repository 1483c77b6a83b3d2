"""Losses reported by the tracer."""

from __future__ import annotations

import pytest

from pytest_ldos.record.lttng import parse_losses
from pytest_ldos.record.protocol import RecordingReport


def listing(*channels: tuple[int, int]) -> str:
    counted = "".join(
        f"<channel><name>channel{i}</name><attributes><discarded_events>{discarded}</discarded_events>"
        f"<lost_packets>{lost}</lost_packets></attributes></channel>"
        for i, (discarded, lost) in enumerate(channels)
    )
    return (
        '<command xmlns="https://lttng.org/xml/ns/lttng-mi"><output><sessions><session><domains><domain>'
        f"<channels>{counted}</channels></domain></domains></session></sessions></output></command>"
    )


def test_losses_of_all_channels_are_added():
    assert parse_losses(listing((3, 0), (4, 2))) == RecordingReport(discarded_events=7, lost_packets=2)


@pytest.mark.parametrize("steps_back", [1, 2, 3])
def test_counter_that_steps_back_once_is_no_overflow(steps_back):
    """The first number is from a real recording: the consumer read an unfinished packet."""
    counted = (steps_back * (1 << 63) + 15366) % (1 << 64)
    assert parse_losses(listing((counted, 0))).discarded_events == 15366


def test_a_session_without_channels_lost_nothing():
    assert parse_losses(listing()) == RecordingReport(0, 0)
