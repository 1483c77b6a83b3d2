"""Parts of a flood, without DDS: schedule, errors, numbers, shares."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.dds_flood import FloodProof, build_proof
from pytest_ldos.measure.load.flood_node import FloodSchedule, NumberedText, Tally, number_of
from pytest_ldos.measure.load.flood_reports import (
    Received,
    ReportStream,
    Sent,
    bin_of,
    percentile_ns,
    shares,
    top_of,
)
from pytest_ldos.scenario.loads import DdsFloodSpec

SECOND = 1_000_000_000


def test_messages_of_a_burst_are_due_together():
    schedule = FloodSchedule(rate_hz=1000, burst=10, publishers=1, begin_ns=5)
    assert [schedule.due_ns(slot) for slot in (0, 9, 10, 19)] == [5, 5, 10_000_005, 10_000_005]
    assert schedule.due_by(4) == 0
    assert schedule.due_by(SECOND + 4) == 1000


def test_publishers_are_interleaved():
    schedule = FloodSchedule(rate_hz=100, burst=2, publishers=4, begin_ns=0)
    assert [schedule.publisher_of(slot) for slot in range(9)] == [0, 0, 1, 1, 2, 2, 3, 3, 0]
    assert schedule.due_ns(8) - schedule.due_ns(0) == SECOND * 2 // 100


@pytest.mark.parametrize("rate_hz", [0.3, 7.0, 999.9, 30_000.0])
@pytest.mark.parametrize("burst", [1, 3, 100])
def test_due_counts_agree_with_due_times(rate_hz, burst):
    schedule = FloodSchedule(rate_hz=rate_hz, burst=burst, publishers=3, begin_ns=12_345)
    for slot in range(0, 100_000, 997):
        due_ns = schedule.due_ns(slot)
        assert schedule.due_by(due_ns - 1) <= slot < schedule.due_by(due_ns)


def test_error_bins_are_narrow():
    assert [bin_of(error) for error in (0, -31, 32, 33, 63, 64, 1_000_000)] == [0, 31, 32, 32, 47, 48, 270]
    for error in range(0, 1 << 22, 77):
        top = top_of(bin_of(error))
        assert bin_of(top) == bin_of(error) != bin_of(top + 1)
        assert error <= top <= error * 17 / 16


def test_percentiles_cover_only_later_errors():
    early = Sent(0, {"/a": 51}, 0, Counter({bin_of(10): 50, bin_of(5_000_000): 1}))
    late = Sent(
        10 * SECOND, {"/a": 151}, 0, Counter({bin_of(10): 148, bin_of(20): 1, bin_of(1000): 1, bin_of(5_000_000): 1})
    )
    proof = proof_of(Reports(early, late), Reports(early, late), counter=None)
    assert proof.error_p50_us == 0.01
    assert proof.error_p99_us == 0.02
    assert proof.error_max_us == top_of(bin_of(1000)) / 1000
    assert percentile_ns(Counter(), 99) == 0


@pytest.mark.parametrize("size", [16, 17, 64, 1024])
def test_a_message_has_its_size_and_its_number(size):
    texts = NumberedText(size)
    assert len(texts.message(0)) == len(texts.message(2**64 - 1)) == -(-(8 + size + 1) // 4) * 4
    assert number_of(texts.message(0x1234)) == 0x1234


def test_gaps_between_numbers_are_losses():
    texts, tally = NumberedText(16), Tally()
    assert tally.lost == 0
    tally.add([])
    tally.add([texts.message(number) for number in (7, 8)])
    assert (tally.received, tally.lost) == (2, 0)  # messages before the first received one are not lost
    tally.add([texts.message(number) for number in (10, 14)])
    assert (tally.received, tally.lost) == (4, 4)


@pytest.mark.parametrize(
    ("participants", "sizes"), [(0, [1, 1, 1, 1, 1]), (1, [5]), (2, [3, 2]), (4, [2, 1, 1, 1]), (5, [1] * 5)]
)
def test_publishers_are_spread_evenly(participants, sizes):
    parts = list(shares(DdsFloodSpec(publishers=5, participants=participants)))
    assert [len(part) for part in parts] == sizes
    assert [number for part in parts for number in part] == [1, 2, 3, 4, 5]


def report_of(published: int, **more: object) -> Sent:
    return Sent.parse({"mono_ns": 5, "published": {"/flood_topic_1": published}, "final": False, **more})


def test_report_counts_the_publishers_messages():
    sent = report_of(7, given_up=2, error_bins={"270": 6})
    assert (sent.given_up, sent.errors.total(), sent.has_begun) == (2, 6, True)
    older = report_of(0, requested=1)
    assert (older.given_up, older.errors.total(), older.has_begun) == (0, 0, False)


@dataclass(frozen=True)
class Reports:
    """First and last report of a process."""

    first: Sent | Received | None
    last: Sent | Received | None


def sender(messages: int, *, seconds: float = 10.0, given_up: int = 0) -> Reports:
    first, last = (
        Sent(0, {"/a": 0}, 0, Counter()),
        Sent(int(seconds * SECOND), {"/a": messages}, given_up, Counter()),
    )
    return Reports(first, last)


def reader(messages: int, *, lost: int = 0, seconds: float = 10.0) -> Reports:
    return Reports(
        Received(0, {"/a": 5}, {"/a": 0}), Received(int(seconds * SECOND), {"/a": 5 + messages}, {"/a": lost})
    )


def proof_of(*publishers: Any, counter: Any, **more: Any) -> FloodProof:
    return build_proof(DdsFloodSpec(), publishers=publishers, counter=counter, failure="", **more)


@pytest.mark.parametrize(
    ("seconds", "sent", "reached"),
    [
        (10.0, 39_600, ""),
        (10.0, 39_400, "3940"),
        (4.0, 15_600, ""),  # 100 ms late at the last measurement
        (4.0, 15_500, "3875"),
        (0.0, 0, "0"),
    ],
)
@pytest.mark.parametrize("readers", [True, False])
def test_messages_sent_in_time_decide_the_shortfall(seconds, sent, reached, readers):
    counter = reader(sent, seconds=seconds) if readers else None
    proof = proof_of(sender(sent, seconds=seconds), counter=counter)
    expected = f"the flood reached {reached} of 4000 msg/s: its publishers sent no more in time" if reached else ""
    assert (proof.shortfall, proof.seconds) == (expected, seconds)


def test_losses_are_reported_and_no_shortfall():
    proof = proof_of(sender(40_000), counter=reader(10_000, lost=30_000))
    assert (proof.shortfall, proof.rate_hz, proof.received_hz, proof.received_share) == ("", 4000, 1000, 0.25)
    assert "4000 of 4000 msg/s sent, 25.0 % of them received, 30000 lost (4 publishers" in proof.describe()


def test_gap_at_the_end_is_missing():
    proof = proof_of(sender(40_000), counter=reader(19_600))
    assert (proof.shortfall, proof.lost, proof.received_share) == ("", 0, pytest.approx(0.495, abs=0.001))
    assert "49.5 % of them received (" in proof.describe()


def test_messages_in_transit_are_not_missing():
    proof = proof_of(sender(40_000), counter=reader(39_700))
    assert proof.received_share == 1
    assert "4000 of 4000 msg/s sent, all received (" in proof.describe()


def test_readers_without_messages_are_a_shortfall():
    proof = proof_of(sender(40_000), counter=reader(0))
    assert proof.shortfall == "the flood's matched readers received none of 40000 messages"
    assert "0.0 % of them received" in proof.describe()
    assert proof_of(sender(40_000), counter=reader(0), is_impaired=True).shortfall == ""
    assert proof_of(sender(40_000), counter=reader(1)).shortfall == ""


def test_silent_publisher_counts_as_stopped():
    proof = proof_of(sender(10_000), sender(5_000, seconds=5.0), counter=reader(15_000))
    assert proof.rate_hz == pytest.approx(1000 + 5000 / 9.5)
    assert "the flood reached 1526 of 4000 msg/s" in proof.shortfall


def test_invalid_report_is_reported(tmp_path):
    """Its text is shown without control characters."""
    group = ProcessGroup(log_directory=tmp_path)
    try:
        child = group.start("flood_counter", ["printf", "\\033[2Jgone\\n"], talk=True)
        changed = threading.Condition()
        stream = ReportStream(child, Received.parse, changed)
        with changed:
            assert changed.wait_for(lambda: stream.misunderstood, 10)
    finally:
        group.stop()
    assert "flood_counter printed" in stream.misunderstood
    assert "\x1b" not in stream.misunderstood
    assert "[2Jgone" in stream.misunderstood
