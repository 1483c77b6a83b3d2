"""Cost per message from rounds, and its presentation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.campaign.watching import to_trials
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.cpu_cost.instrument import climb_of, compose, estimate, ratio, to_round
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec, Exchange, Rung, RungRound
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.study import render_study_as

SPEC = CpuCostSpec(topics=20, subscribers=10, rate_hz=10, seconds=1, rounds=8, starts=1)
LAYER = Layer(kind=Kind.ROS2, middleware="rmw_fastrtps_cpp", versions={"rclcpp": "28.1"})


def exchange(cpu_ms: float, **changes) -> Exchange:
    whole = Exchange(
        ticks=10,
        published=200,
        received=2000,
        wall_ns=1000 * NS_PER_MS,
        user_ns=round(cpu_ms * NS_PER_MS * 0.75),
        system_ns=round(cpu_ms * NS_PER_MS * 0.25),
        voluntary=400,
        involuntary=100,
    )
    return dataclasses.replace(whole, **changes)


def measured(rung: Rung, result: Exchange | str, block: int = 0) -> RungRound:
    return RungRound(layer=LAYER, rung=rung, block=block, result=result)


def test_cost_is_per_published_message():
    found = to_round(measured(Rung.ONE_NODE, exchange(40.0, cycles=200_000, migrations=50)), SPEC)
    assert found.values == pytest.approx(
        {"cpu_per_message": 200.0, "switches_per_message": 2.5, "cycles_per_message": 1000.0}
    )
    assert found.details["system_percent"] == pytest.approx(25)
    assert found.details["load_percent"] == pytest.approx(4)
    assert found.details["migrations_per_message"] == pytest.approx(0.25)
    assert "migrations_per_message" not in to_round(measured(Rung.ONE_NODE, exchange(40.0)), SPEC).details
    assert found.case == "rclcpp rmw_fastrtps_cpp one node: 20 × 1 → 10, 10 Hz, 64 B"


def test_lost_messages_are_noted_and_no_messages_are_a_failure():
    assert to_round(measured(Rung.DDS, exchange(1, received=1500)), SPEC).details["lost_percent"] == 25
    assert to_round(measured(Rung.DDS, exchange(1, received=0)), SPEC).failure == "no message was received"
    assert "late ones of the round before" in to_round(measured(Rung.DDS, exchange(1, received=2001)), SPEC).failure
    late = to_round(measured(Rung.DDS, exchange(1, published=150)), SPEC)
    assert late.failure == "150 of 200 messages were published in time"


def test_rung_without_messages_uses_those_of_others():
    found = to_round(measured(Rung.NO_PUBLISHING, exchange(2, published=0, received=0)), SPEC)
    assert not found.failure
    assert found.values["cpu_per_message"] == pytest.approx(10)
    assert found.details["lost_percent"] == 0
    assert found.case.endswith(", 10 nodes")


def test_ratio_is_within_its_interval():
    base = {start: [10.0 + start, 10.2 + start] for start in range(5)}
    found = ratio({start: [3.5 * value * (1 + 0.01 * start) for value in of] for start, of in base.items()}, base)
    assert found is not None
    assert found.value == pytest.approx(3.57, rel=0.001)
    assert found.low == pytest.approx(3.5, rel=0.01)
    assert found.high == pytest.approx(3.64, rel=0.01)
    few = ratio({3: [35.0, 35.0, 35.0]}, {3: [10.0, 10.0]})
    assert few is not None
    assert (few.value, few.low, few.high) == (pytest.approx(3.5), None, None)
    assert ratio({}, base) is None
    assert ratio({0: [1.0], 1: [0.0]}, base) is None
    assert ratio({7: [1.0]}, base) is None, "no start has both"


def test_costs_are_not_negative():
    found = estimate({0: [0.05], 1: [0.05], 2: [12.0]})
    assert found is not None
    assert (found.value, found.low) == (pytest.approx(4.033, abs=0.001), 0.0)


def test_slow_start_does_not_affect_ratios():
    base = {0: [10.0], 1: [20.0], 2: [40.0]}
    found = ratio({start: [3.5 * value for (value,) in [of]] for start, of in base.items()}, base)
    assert found is not None
    assert found.low == found.high == pytest.approx(3.5)


def test_interval_is_based_on_starts():
    """Only starts differ: an interval over rounds would nearly always miss the mean."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(400):
        found = estimate({start: [rng.normal(100, 5)] * 20 for start in range(5)})
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        missed += not found.low < 100 < found.high
    assert missed == pytest.approx(20, abs=13)


def study(*, dds: Exchange | str | None = None):
    """All rungs with two rounds in each of four starts; DDS alone costs 20 µs per message."""
    costs = {
        Rung.IN_PROCESS: exchange(0.1),
        Rung.NO_PUBLISHING: exchange(1.0, published=0, received=0),
        Rung.DDS: dds or exchange(4.0, cycles=1_000),
        Rung.ONE_NODE: exchange(14.0, cycles=3_000, migrations=20),
        Rung.MANY_NODES: exchange(16.0),
        Rung.MANY_PARTICIPANTS: exchange(42.4),
    }
    rounds = [measured(rung, result, number // 2) for number in range(8) for rung, result in costs.items()]
    return compose(SPEC, [climb_of(SPEC, LAYER, rounds)], notes=("a note",), started_at="2026-01-02T03:04:05+00:00")


def test_ratios_are_to_dds_alone():
    table = study().tables[0]
    place = {column.name: number for number, column in enumerate(table.columns)}
    rows = {row[0]: row for row in table.rows}
    assert rows["one node"][place["ratio"]] == pytest.approx(3.5)
    assert rows["many participants"][place["ratio"]] == pytest.approx(10.6)
    assert rows["DDS only"][place["ratio"]] == 1.0


def test_switches_and_cycles_have_intervals():
    tables = {table.name.removesuffix("_rclcpp_rmw_fastrtps_cpp"): table for table in study().tables}
    rows = {name: {row[0]: row[1:] for row in table.rows} for name, table in tables.items()}
    assert rows["ladder_switches"]["one node"] == (2.5, 2.5, 2.5, 2.0, 0.5, 0.1)
    assert rows["ladder_switches"]["DDS only"] == (2.5, 2.5, 2.5, 2.0, 0.5, None)
    assert rows["ladder_cycles"]["one node"] == (15, 15, 15, *[pytest.approx(3)] * 3)
    assert rows["ladder_cycles"]["many nodes"][0] is None


def test_each_measured_rung_has_a_bar():
    (figure,) = study(dds="dds ended with exit code 3").figures
    assert "DDS only" not in figure.x.names
    (curve,) = figure.curves
    assert len(curve.points) == len(figure.x.names) == 5
    assert not study(dds="ended").tables[0].rows[2][1]


def test_ladder_without_dds_alone_has_no_ratios():
    text = render_study_as(study(dds="ros2-dds ended with exit code 3"), Format.TERMINAL, width=160)
    assert "8 rounds without a result: ros2-dds ended with exit code 3" in text


def test_rounds_are_gated_as_trials():
    trials = to_trials(study(), commit="")
    assert trials.stack_kind == "middleware-ros2"
    assert len(trials.trials) == 48
    assert {trial.goal for trial in trials.trials} == {each.case for each in study().rounds}
