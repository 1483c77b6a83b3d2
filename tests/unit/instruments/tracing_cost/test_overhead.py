"""Overheads of starts with known latencies."""

from __future__ import annotations

from statistics import fmean, median

import numpy as np
import pytest

from pytest_ldos.base.stats.counts import mean_interval
from pytest_ldos.host.kept import ChildFailed
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.tracing_cost.instrument import (
    Traced,
    compose,
    overhead_of,
    pair_up,
)
from pytest_ldos.instruments.tracing_cost.pairs import CALLBACK, Latencies, Mode, Recorded, Start, read_latencies
from pytest_ldos.instruments.tracing_cost.spec import SizeAndRate, TracingCostSpec

OF = ("a call", "a message, mean", "a message, median")
SMALL, LARGE = SizeAndRate(1, 100), SizeAndRate(64, 1000)
LAYER = Layer(kind=Kind.ROS2, middleware="rmw_fastrtps_cpp")
SPEC = TracingCostSpec(sizes_kib="1,64", rates_hz="100", starts=5)


def start(mode: Mode, pair: int, *, shift_us: float = 0.0, failure: str = "", **changes) -> Start:
    """Fifty messages of 40 µs and fifty of 90 µs, one in fifty 1 ms late; 2000 timed calls; everything recorded."""
    noise = np.random.default_rng([pair, len(mode)]).normal(0, 1, 50)
    cases = {}
    for case, level in ((SMALL, 40.0), (SizeAndRate(64, 100), 90.0)):
        latencies_us = level + shift_us + noise + 3.0 * pair
        latencies_us[0] += 1000
        cases[case] = Latencies(50, tuple((latencies_us * 1000).astype(int).tolist()))
    traced = mode is not Mode.UNTRACED
    given = {
        "cases": cases,
        "warm_up": 20,
        "tracepoint_ns": [200.0, 210.0, 190.0] if traced else [2.0, 2.0, 2.0],
        "timed_calls": 2000,
        "recorded": Recorded({CALLBACK: 120, "rclcpp_publish": 2120} if traced else {}),
    }
    return Start(LAYER, mode, pair, 2 * pair + traced, **{**given, **changes}, failure=failure)


def starts(shift_us: float, count: int = 5) -> list[Start]:
    return [
        each
        for pair in range(count)
        for each in (start(Mode.UNTRACED, pair), start(Mode.LTTNG, pair, shift_us=shift_us))
    ]


@pytest.mark.parametrize("center", [fmean, median])
def test_added_latency_is_found(center):
    found = overhead_of(pair_up(starts(2.5), Mode.LTTNG), [SMALL], center)
    assert found is not None
    assert found.value == pytest.approx(2.5, abs=0.5)
    assert found.low < 2.5 < found.high


def test_single_pair_has_no_interval():
    found = overhead_of(pair_up(starts(0.0, count=1), Mode.LTTNG), SPEC.cases, fmean)
    assert found is not None
    assert (found.low, found.high) == (None, None)
    assert mean_interval([1.0]) == (-np.inf, np.inf)


def test_pair_with_a_failed_start_is_left_out():
    found = [*starts(1.0, count=3), start(Mode.UNTRACED, 3), start(Mode.LTTNG, 3, failure="it died")]
    assert len(pair_up(found, Mode.LTTNG)) == 3
    assert overhead_of(pair_up(found, Mode.EBPF), SPEC.cases, fmean) is None


def test_different_sizes_are_no_overhead():
    found = overhead_of(pair_up(starts(0.0), Mode.LTTNG), SPEC.cases, median)
    assert found is not None
    assert abs(found.value) < 1


def study(found: list[Start], modes=(Mode.UNTRACED, Mode.LTTNG)):
    return compose(SPEC, [Traced(LAYER, modes, found)], notes=(), started_at="2026-01-02T03:04:05+00:00")


def test_the_study_holds_overheads_and_tracepoints():
    overheads, tracepoints = study(starts(2.0)).tables
    place = {column.name: number for number, column in enumerate(overheads.columns)}
    small, _, total = overheads.rows
    assert small[place["mean"]] == pytest.approx(2.0, abs=0.5)
    assert total[place["mean"]] == pytest.approx(2.0, abs=0.5)
    assert [row[1] for row in tracepoints.rows] == ["untraced", "LTTng"]
    assert tracepoints.rows[1][2:5] == (200.0, 200.0, 200.0)
    assert tracepoints.rows[1][5:7] == (pytest.approx(2.0), pytest.approx(0.4))
    (figure,) = study(starts(2.0)).figures
    assert [curve.label for curve in figure.curves] == ["1 KiB", "64 KiB"]


def test_ebpf_is_compared_with_lttng_in_pairs():
    slow = {"tracepoint_ns": [4200.0, 4200.0, 4200.0]}
    found = [*starts(2.0), *(start(Mode.EBPF, pair, shift_us=42.0, **slow) for pair in range(5))]
    against = study(found, (Mode.UNTRACED, Mode.LTTNG, Mode.EBPF)).tables[-1]
    calls, mean, middle = ({row[1]: row[2:] for row in against.rows}[name] for name in OF)
    assert calls == pytest.approx((0.2, 4.2, 4.0, 4.0, 4.0))
    for _, _, more, low, high in (mean, middle):
        assert more == pytest.approx(40.0, abs=0.5)
        assert low < 40.0 < high
    failed = [*starts(2.0), *(start(Mode.EBPF, pair, failure="it died") for pair in range(5))]
    assert study(failed, (Mode.UNTRACED, Mode.LTTNG, Mode.EBPF)).tables[-1].name == "tracepoints"


def test_rounds_of_a_failed_start_have_a_reason():
    found = study([start(Mode.UNTRACED, 0), start(Mode.LTTNG, 0, failure="what was to be recorded is not there")])
    failed = [each for each in found.rounds if each.failure]
    assert len(failed) == 3
    assert all("LTTng" in each.case and each.block == 1 for each in failed)


def test_lost_events_are_noted():
    lost = start(Mode.LTTNG, 0, recorded=Recorded({CALLBACK: 50, "rclcpp_publish": 2000}, lost=70))
    assert lost.is_proven
    assert any("LTTng lost 70 events" in note for note in study([start(Mode.UNTRACED, 0), lost]).notes)


@pytest.mark.parametrize(
    ("recorded", "timed", "proven"),
    [
        (Recorded({CALLBACK: 120, "rclcpp_publish": 2120}), 2000, True),
        (Recorded({}), 2000, False),
        (Recorded({CALLBACK: 120, "rclcpp_publish": 120}), 2000, False),
        (Recorded({CALLBACK: 99, "rclcpp_publish": 2120}), 2000, False),
        (Recorded({CALLBACK: 99, "rclcpp_publish": 2120}, lost=1), 2000, True),
        (Recorded({CALLBACK: 120, "rclcpp_publish": 2120}), 0, False),
    ],
)
def test_recording_proves_completeness(recorded, timed, proven):
    assert start(Mode.LTTNG, 0, recorded=recorded, timed_calls=timed).is_proven is proven


@pytest.mark.parametrize(
    "damaged",
    [
        {"published": 3},
        {"published": 3, "latencies_ns": "12"},
        {"published": 3, "latencies_ns": [1, -2]},
        {"published": 3, "latencies_ns": [1, True]},
        {"published": 3, "latencies_ns": [1.5]},
        {"published": 3, "latencies_ns": [1, 2, 3, 4]},
        {"published": 2, "latencies_ns": [1, 2]},
        {"latencies_ns": [1, 2, 3]},
    ],
)
def test_invalid_latencies_are_refused(damaged):
    with pytest.raises(ChildFailed):
        read_latencies(damaged, 3)
    assert read_latencies({"published": 3, "latencies_ns": [1, 2]}, 3) == Latencies(3, (1, 2))
