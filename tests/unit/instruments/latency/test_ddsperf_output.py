"""Output of ddsperf: real and damaged lines."""

from __future__ import annotations

import pytest

from pytest_ldos.instruments.latency.instrument import DdsperfUnreadable, parse_ddsperf

# ddsperf 0.10.2: `ddsperf -D 4 ping size 1024` with a pong.
REAL = """\
[18284] participant vm:18284: new (self)
[18284] participant vm:18283: new
[18284] 2.001  vm:18283 size 1024 mean 34.585us min 8.321us 50% 10.220us 90% 12.549us 99% 789.199us max 8668.699us cnt 14030
[18284] 2.001  rss:7.4MB vcsw:13669 ivcsw:766 ddsperf:1%+0% recvUC:4%+11%
[18284] 3.000  vm:18283 size 1024 mean 41.013us min 8.577us 50% 12.228us 90% 13.349us 99% 1324.362us max 7957.787us cnt 12141
[18284] 3.000  rss:7.7MB vcsw:11406 ivcsw:765 recvUC:4%+12%
[18284] 4.004  vm:18283 size 1024 mean 95.311us min 8.472us 50% 11.607us 90% 12.994us 99% 2102.359us max 13879.554us cnt 5269
"""
LINE = REAL.splitlines()[2]


def test_real_output_is_read():
    found = parse_ddsperf(REAL)
    assert [(each.at_s, each.round_trip.count) for each in found.seconds] == [
        (2.001, 14030),
        (3.0, 12141),
        (4.004, 5269),
    ]
    first = found.seconds[0].round_trip
    halves = (34.585, 8.321, 10.220, 12.549, 789.199, 8668.699)
    assert (first.mean, first.low, first.p50, first.p90, first.p99, first.high) == tuple(2 * each for each in halves)
    assert first.p999 is None
    assert found.has_met
    assert found.lost == 0


def test_other_units_are_read():
    changed = LINE.replace("8668.699us", "8.668699ms").replace("min 8.321us", "min 8321ns")
    (second,) = parse_ddsperf(changed).seconds
    assert second.round_trip.high == pytest.approx(2 * 8668.699)
    assert second.round_trip.low == pytest.approx(2 * 8.321)


def test_missing_peer_differs_from_one_without_answers():
    assert not parse_ddsperf("[1] participant vm:1: new (self)\n").has_met
    assert parse_ddsperf("[1] participant vm:1: new (self)\n[1] participant vm:2: new\n").has_met
    assert parse_ddsperf("").seconds == ()


def test_timeouts_are_counted():
    output = "[7] ping timed out (total 1 times) ... sending new ping\n[7] ping timed out (total 4 times) ... sending new ping\n"
    assert parse_ddsperf(output).lost == 4


@pytest.mark.parametrize(
    "line",
    [
        LINE[:100],
        LINE.replace("us", "furlongs"),
        LINE.replace("mean 34.585us ", ""),
        LINE.replace("50%", "5O%"),
        LINE.replace("12.549us", "nanus"),
        LINE.replace("cnt 14030", "cnt many"),
        LINE.replace("cnt 14030", "cnt 0"),
        LINE.replace("10.220us", "99.220us"),
        LINE.replace("max 8668.699us", "max 1.0us"),
        LINE.replace("min 8.321us", "min -8.321us"),
        LINE + " \x1b[2J",
    ],
)
def test_a_damaged_line_is_refused_and_quoted(line):
    with pytest.raises(DdsperfUnreadable, match="ddsperf printed") as caught:
        parse_ddsperf(REAL + line + "\n")
    assert "\x1b" not in str(caught.value)
