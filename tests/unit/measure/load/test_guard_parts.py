"""Parts of a guard, without DDS: control law, lateness, throttled time, proof."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.measure.load.dds_flood import build_proof as build_flood_proof
from pytest_ldos.measure.load.flood_node import ThrottledTime
from pytest_ldos.measure.load.flood_reports import Guarded, Sent, stamp_reader
from pytest_ldos.measure.load.guard import GuardHistory, GuardProof, build_proof
from pytest_ldos.measure.load.guard_node import REFERENCE_NS, PathLateness, ThrottleLaw
from pytest_ldos.measure.load.protocol import NOT_READ
from pytest_ldos.robot.dds.endpoint import default
from pytest_ldos.scenario.loads import DdsFloodSpec, GuardedTopic, GuardSpec

CASES = json.loads(Path(__file__).with_name("law_table.json").read_text("utf-8"))
MS = 1_000_000
SECOND = 1000 * MS
WALL = 1_700_000_000 * SECOND


# --- control law -------------------------------------------------------------------------------


def late_share(received: int, late: int, silent: int) -> float | None:
    """Late share of a window, from the table."""
    if silent:
        return 1.0
    return late / received if received else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_control_law(case):
    limits = [each.name for each in dataclasses.fields(ThrottleLaw) if each.init]
    law = ThrottleLaw(**{**{name: getattr(GuardSpec(), name) for name in limits}, **case["settings"]})
    shares = [law.judge(late_share(*window)) for window in case["windows"]]
    assert shares == pytest.approx(case["shares"])
    assert (law.decreases, law.increases) == (case["decreases"], case["increases"])


def test_guard_with_full_least_share_only_measures():
    law = ThrottleLaw(late_share=0.1, least_share=1.0, decrease=0.5, calm_windows=1, increase=0.5)
    assert [law.judge(1.0), law.judge(None), law.judge(0.0)] == [1.0, 1.0, 1.0]
    assert (law.decreases, law.increases) == (0, 0)


# --- lateness ------------------------------------------------------------------------------


def lateness() -> PathLateness:
    return PathLateness(deadline_ns=10 * MS, silence_ns=200 * MS, now_ns=0)


def test_wall_clock_stamp_gives_the_age():
    path = lateness()
    for number, age_ms in enumerate((0, 10, 11, 500)):
        path.note(WALL - age_ms * MS, wall_ns=WALL, mono_ns=number * MS)
    assert (path.received, path.late) == (4, 2)
    assert path.end_window(4 * MS) == 0.5


def test_simulated_stamp_is_compared_with_the_youngest_recent_one():
    path = lateness()
    for step in range(10):  # every 20 ms, with a constant offset of 3 s
        delay_ms = 30 if step == 7 else 5
        path.note((20 * step) * MS + 1, wall_ns=WALL, mono_ns=(3000 + 20 * step + delay_ms) * MS)
    assert (path.received, path.late) == (10, 1)


def test_slow_simulated_clock_is_late_until_it_keeps_up():
    path, mono_ms, stamp_ms = lateness(), 0.0, 0.0

    def run(seconds: float, pace: float) -> float | None:
        nonlocal mono_ms, stamp_ms
        path.end_window(round(mono_ms * MS))
        for _ in range(round(seconds * 20)):
            mono_ms, stamp_ms = mono_ms + 50, stamp_ms + 50 * pace
            path.note(round(stamp_ms * MS), wall_ns=WALL, mono_ns=round(mono_ms * MS))
        return path.end_window(round(mono_ms * MS))

    assert run(2.0, 1.0) == 0.0
    slow = run(2.0, 0.5)
    assert slow is not None
    assert slow > 0.9
    run(REFERENCE_NS / SECOND + 0.1, 1.0)
    assert run(1.0, 1.0) == 0.0


def test_silence_is_late_and_an_empty_window_is_unknown():
    path = lateness()
    path.note(WALL, wall_ns=WALL, mono_ns=0)
    assert [path.end_window(ns * MS) for ns in (100, 199, 200, 300)] == [0.0, None, 1.0, 1.0]
    path.note(None, wall_ns=WALL, mono_ns=301 * MS)
    assert (path.end_window(400 * MS), path.silent_windows, path.unstamped, path.received) == (None, 2, 1, 1)


def test_stamp_comes_from_header_or_first_transform():
    stamp = default("builtin_interfaces/msg/Time", sec=3, nanosec=5)
    header = default("std_msgs/msg/Header", stamp=stamp)
    assert stamp_reader("sensor_msgs/msg/Imu")(default("sensor_msgs/msg/Imu", header=header)) == 3 * SECOND + 5
    read = stamp_reader("tf2_msgs/msg/TFMessage")
    transform = default("geometry_msgs/msg/TransformStamped", header=header)
    assert read(default("tf2_msgs/msg/TFMessage", transforms=[transform])) == 3 * SECOND + 5
    assert read(default("tf2_msgs/msg/TFMessage")) is None
    assert stamp_reader("sensor_msgs/msg/Imu")(default("sensor_msgs/msg/Imu")) is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("std_msgs/msg/String", "carry no header.stamp"), ("no_such_msgs/msg/Thing", "are not known here")],
)
def test_messages_without_a_stamp_are_refused(kind, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        stamp_reader(kind)
    assert "topic" in caught.value.remedy


# --- throttled time ------------------------------------------------------------------------


def test_throttled_time_passes_more_slowly():
    time = ThrottledTime(1000)
    assert (time.passed_by(3000), time.real_ns(3000)) == (3000, 3000)
    time.throttle(0.5, 3000)
    assert (time.share, time.passed_by(5000), time.real_ns(4000)) == (0.5, 4000, 5000)
    time.throttle(1.0, 5000)
    assert (time.passed_by(6000), time.real_ns(5000)) == (5000, 6000)


def test_throttling_does_not_move_earlier_due_times():
    """A slightly late message is not delayed further by a later throttle."""
    time = ThrottledTime(0)
    time.throttle(0.01, 100 * MS)
    assert time.real_ns(90 * MS) == 90 * MS
    time.throttle(0.5, 200 * MS)
    assert (time.real_ns(90 * MS), time.real_ns(100 * MS + MS // 2)) == (90 * MS, 150 * MS)


def test_old_stretches_are_dropped():
    time = ThrottledTime(0)
    for second in range(1, 50):
        time.throttle(0.5 if second % 2 else 1.0, second * SECOND)
    assert len(time._stretches) <= 3


# --- proofs --------------------------------------------------------------------------------

WATCHED = GuardedTopic("/tf", "tf2_msgs/msg/TFMessage", 10.0)


def reported(seconds: float, share: float, *missing: str, received: int = 0, late: int = 0, decreases: int = 0) -> dict:
    return {
        "mono_ns": int(seconds * SECOND), "share": share, "received": received, "late": late, "unstamped": 0,
        "silent_windows": 0, "decreases": decreases, "increases": 0, "missing": list(missing),
    }  # fmt: skip


def guard_proof(*reports: dict, publishers: tuple[str, ...] = ("/a", "/b"), failure: str = "") -> GuardProof:
    history = GuardHistory(publishers)
    parsed: list[Guarded] = [history.parse(each) for each in reports]
    ends = {"first": parsed[0], "last": parsed[-1]} if parsed else {"first": None, "last": None}
    return build_proof(GuardSpec(), WATCHED, history, failure=failure, group=NOT_READ, **ends)


def test_proof_has_the_share_over_time():
    proof = guard_proof(
        reported(10, 1.0), reported(11, 0.5, received=20, late=4, decreases=1), reported(12.5, 1.0, received=50, late=5)
    )
    assert (proof.seconds, proof.shares, proof.least) == (2.5, (1.0, 0.5, 0.5), 0.5)
    assert (proof.share, proof.throttled_s) == (pytest.approx(0.7), 1.5)
    assert (proof.received, proof.late, proof.late_share, proof.shortfall) == (50, 5, 0.1, "")


def test_proof_as_text():
    proof = guard_proof(
        reported(0, 1.0), reported(1, 0.5, received=10, late=4, decreases=1), reported(2, 0.5, received=20, late=4)
    )
    assert proof.describe() == "guard of /tf: 4 of 20 messages later than 10 ms; never throttled 2 publishers"
    proof = guard_proof(
        reported(0, 1.0, "/b: no such node"), reported(1, 0.5, "/b: no such node", received=9, late=4, decreases=1)
    )
    assert proof.describe() == (
        "guard of /tf: 4 of 9 messages later than 10 ms; throttled 1 publisher for 0.0 of 1.0 s, to 100 % at the least, "
        "100 % in the mean; not obeyed by /b: no such node"
    )
    assert proof.shortfall == ""


def test_late_publisher_is_not_missing():
    proof = guard_proof(reported(0, 1.0, "/a: no such node", "/b: no such node"), reported(1, 1.0, received=9))
    assert (proof.obedient, proof.missing, proof.shortfall) == (2, (), "")


@pytest.mark.parametrize(
    ("reports", "shortfall"),
    [
        ([reported(0, 1.0), reported(5, 1.0)], "the guard heard nothing on /tf"),
        (
            [reported(0, 1.0, "/a: x", "/b: y", received=1), reported(5, 1.0, "/a: x", "/b: z: q", received=9)],
            r"no publisher obeyed the guard \(/a: x; /b: z: q\)",
        ),
        ([], "no publisher obeyed"),
    ],
)
def test_shortfalls_of_a_guard(reports, shortfall):
    if reports:
        assert re.match(shortfall, guard_proof(*reports).shortfall)
    assert guard_proof(*reports, failure="guard was killed").shortfall == "guard was killed"


@dataclasses.dataclass(frozen=True)
class Reports:
    """First and last report of a process."""

    first: Sent
    last: Sent


def throttled(sent: int, *, requested: int, allowed: int, seconds: float = 10.0) -> Reports:
    last = {"mono_ns": int(seconds * SECOND), "published": {"/a": sent}, "requested": requested, "allowed": allowed}
    return Reports(Sent(0, {"/a": 0}, 0, Counter()), Sent.parse(last))


def test_throttled_flood_is_complete():
    """1000 Hz each; the second publisher was throttled to a quarter."""
    spec = DdsFloodSpec(publishers=2, rate_hz=1000)
    parts = [throttled(10_000, requested=10_000, allowed=10_000), throttled(2_500, requested=10_000, allowed=2_500)]
    proof = build_flood_proof(spec, counter=None, publishers=parts, failure="")
    assert (proof.requested_hz, proof.allowed_hz, proof.rate_hz, proof.shortfall) == (2000, 1250, 1250, "")
    assert "DDS flood: 1250 of 2000 msg/s sent, throttled to 1250 (2 publishers" in proof.describe()


def test_messages_missing_beyond_the_throttle_are_a_shortfall():
    spec = DdsFloodSpec(publishers=1, rate_hz=1000)
    part = throttled(2_000, requested=10_000, allowed=2_500)
    proof = build_flood_proof(spec, counter=None, publishers=[part], failure="")
    assert proof.shortfall == "the flood reached 200 of 250 msg/s: its publishers sent no more in time"
