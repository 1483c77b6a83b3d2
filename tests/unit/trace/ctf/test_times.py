"""Times equal babeltrace2's to the nanosecond for any clock; times beyond 64 bits are refused."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.ctf2 import Ctf2Builder
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

TICK = Event("app:tick", 1, {"_value": Int(32)})
TOO_LATE = "a time that does not fit 64 bits of nanoseconds"
METADATA = """/* CTF 1.8 */
trace {{ major = 1; minor = 8; byte_order = le; }};
clock {{ name = c; freq = {frequency}; offset_s = {seconds}; offset = {cycles}; }};
stream {{ event.header := struct {{ integer {{ size = 64; map = clock.c.value; }} timestamp; }}; }};
event {{ name = tick; fields := struct {{ integer {{ size = 8; }} v; }}; }};
"""


def write(directory: Path, times: list[int], *, frequency: int = 10**9, seconds: int = 0, cycles: int = 0) -> Path:
    """A trace of empty events of one clock."""
    directory.mkdir(exist_ok=True)
    (directory / "metadata").write_text(METADATA.format(frequency=frequency, seconds=seconds, cycles=cycles))
    (directory / "s").write_bytes(b"".join(struct.pack("<QB", time, 7) for time in times))
    return directory


def refusal(directory: Path) -> TraceUnreadable:
    with pytest.raises(TraceUnreadable, match=TOO_LATE) as caught:
        read_trace(directory)
    return caught.value


def moments(frequency: int) -> list[int]:
    """Cycle counts of up to 290 years, some at or just before whole nanoseconds."""
    choose = random.Random(frequency)
    latest = min(290 * 365 * 86400 * frequency, 2**64 - 1)
    found = {choose.randrange(1 << bits) for bits in range(1, latest.bit_length()) for _ in range(8)}
    whole = {ns * frequency // 10**9 + near for ns in (1, 10**9, 10**15 + 3, 10**18 + 1) for near in (-1, 0, 1)}
    return sorted(time for time in found | whole if 0 <= time <= latest)


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
@pytest.mark.parametrize("seconds", [0, -1_000_000_001])
@pytest.mark.parametrize(
    "frequency", [1, 3, 1_000, 32_768, 999_999_999, 10**9, 10**9 + 1, 2_399_987_654, 3 * 10**9, 2**40 + 1]
)
def test_times_agree_with_babeltrace2(tmp_path, frequency, seconds):
    times = moments(frequency)
    agreement = compare_with_babeltrace(
        write(tmp_path, times, frequency=frequency, seconds=seconds, cycles=3 * frequency + frequency // 3)
    )
    assert (agreement.outcome, agreement.difference) == (Outcome.EQUAL, "")
    assert agreement.events == len(times) > 150


@pytest.mark.parametrize("builder", [TraceBuilder, Ctf2Builder])
@pytest.mark.parametrize("seconds", [1_300_000_000_000_000_000, 9_223_372_036, -9_223_372_037])
def test_offset_beyond_64_bits_is_refused(tmp_path, builder, seconds):
    """Regression: the result was a time before the epoch."""
    made = builder([TICK], packetized=False)
    if builder is TraceBuilder:
        text = made.tsdl().replace("offset = 0;", f"offset_s = {seconds}; offset = 999999999;")
    else:
        text = made.tsdl().replace('"seconds": 0, "cycles": 0', f'"seconds": {seconds}, "cycles": 999999999')
    assert str(seconds) in text
    made.write(tmp_path, {"s_0": [Packet([Record(TICK, 1, {"_value": 1})])]})
    (tmp_path / "metadata").write_text(text)
    error = refusal(tmp_path)
    assert error.path == tmp_path / "metadata"
    assert "offset of clock 'monotonic'" in error.reason


@pytest.mark.parametrize(
    ("seconds", "cycles"),
    [(2**63 - 1, 1), (-(2**63), 0), (0, 2**64 - 1), (0, -(2**63) - 2 * 10**9), (9_223_372_034, 3 * 10**9)],
)
def test_sum_of_offsets_beyond_64_bits_is_refused(tmp_path, seconds, cycles):
    assert "offset of clock 'c'" in refusal(write(tmp_path, [1], seconds=seconds, cycles=cycles)).reason


def test_offsets_are_whole_numbers_of_cycles_and_may_be_negative(tmp_path):
    """LTTng writes a negative offset if the wall clock was set back; babeltrace2 refuses it."""
    trace = read_trace(write(tmp_path, [1], frequency=3, seconds=1, cycles=-4))
    assert trace.events["tick"].timestamp_ns.tolist() == [-333_333_334 + 333_333_333]
    assert trace.traces[0].clock_offset_ns == -333_333_334


LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("frequency", "seconds", "latest"),
    [
        (10**9, 0, LAST - 1),
        (10**9, 1_700_000_000, LAST - 1_700_000_000 * 10**9),
        (10**9, -1_000, LAST - 1),
        (1, 0, 9 * 10**9),
    ],
)
def test_event_beyond_64_bits_is_refused(tmp_path, frequency, seconds, latest):
    """The last representable time is read; a later event is refused, or ends its packet."""
    good = read_trace(write(tmp_path / "good", [5, latest], frequency=frequency, seconds=seconds))
    assert good.events["tick"].timestamp_ns[-1] == seconds * 10**9 + latest * (10**9 // frequency)
    beyond = write(tmp_path / "beyond", [5, max(latest + 1, 2**63), 6], frequency=frequency, seconds=seconds)
    error = refusal(beyond)
    assert (error.path, error.offset) == (beyond / "s", 9)
    trace = read_trace(beyond, on_corrupt="skip")
    assert len(trace.events["tick"]) == 1
    assert [(each.offset, each.size) for each in trace.stats.corruptions] == [(9, 18)]
    if not why_unavailable():
        assert compare_with_babeltrace(tmp_path / "good").outcome is Outcome.EQUAL
        assert compare_with_babeltrace(beyond).outcome is Outcome.BOTH_REFUSE


def test_packet_beyond_64_bits_is_refused(tmp_path):
    builder = TraceBuilder([TICK], clock_offset=1_700_000_000 * 10**9)
    packets = [Packet([Record(TICK, 5, {"_value": 1})]), Packet([Record(TICK, LAST, {"_value": 2})], sequence=1)]
    builder.write(tmp_path, {"s_0": packets})
    error = refusal(tmp_path)
    assert (error.path, error.offset) == (tmp_path / "s_0", (tmp_path / "s_0").stat().st_size // 2)
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert trace.events["app:tick"]["value"].tolist() == [1]


def test_traces_centuries_apart_are_refused(tmp_path):
    """The difference of their times exceeds 64 bits."""
    write(tmp_path / "early", [0], seconds=-9_000_000_000)
    write(tmp_path / "late", [0], seconds=9_000_000_000)
    with pytest.raises(TraceUnreadable, match="more than 292 years apart"):
        read_trace(tmp_path)
    assert len(read_trace(tmp_path / "late")) == 1


def test_events_without_time_cannot_be_merged(tmp_path):
    write(tmp_path / "timed", [3])
    other = write(tmp_path / "untimed", [])
    text = METADATA.format(frequency=1, seconds=0, cycles=0).splitlines()
    (other / "metadata").write_text("\n".join(line for line in text if not line.startswith(("clock", "stream"))))
    (other / "s").write_bytes(b"\1\2")
    assert read_trace(other).traces[0].clock == ""
    with pytest.raises(TraceUnreadable, match="there is no clock") as caught:
        read_trace(tmp_path)
    assert caught.value.path == other / "s"
    assert "by themselves" in caught.value.remedy
