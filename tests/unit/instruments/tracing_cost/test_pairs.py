"""Real pairs with and without tracing, and faulty ones."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_ldos.instruments.cost_layers import Kind, Layer, Layers, embedded_available, ros2_available
from pytest_ldos.instruments.study import Study
from pytest_ldos.instruments.tracing_cost.instrument import available, choose_modes, measure
from pytest_ldos.instruments.tracing_cost.pairs import Mode, Pairs
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec
from tests.builders.children import children_left
from tests.builders.needs import lttng_here, needs_lttng
from tests.fakes.progress import Silence

SHORT = TracingCostSpec(
    layer=Layers.EMBEDDED, sizes_kib="1", rates_hz="200", seconds=0.1, starts=1, calls=500, ebpf=False
)
TRACED = [lttng_here(), embedded_available(traced=True)]
TRACED_ROS2 = [lttng_here(), ros2_available([], traced=True)]


def why_not(needs) -> str:
    return next((each.reason for each in needs if not each.ok), "")


def tracepoints_of(study: Study) -> list[dict[str, Any]]:
    """Returns the rows of the untraced and of LTTng's tracepoints, by column."""
    (table,) = [each for each in study.tables if each.name == "tracepoints"]
    rows = [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]
    return [each for mode in ("untraced", "LTTng") for each in rows if each["recording"] == mode]


@pytest.mark.skipif(bool(why_not(TRACED)), reason=why_not(TRACED) or "available")
@pytest.mark.measures_time
def test_a_pair_of_the_embedded_layer():
    study = measure(SHORT, Silence())
    assert [each.failure for each in study.rounds] == [""] * 4
    assert {each.block for each in study.rounds} == {0, 1}
    untraced, recorded = tracepoints_of(study)
    assert untraced["time_per_call"] < recorded["time_per_call"]
    assert recorded["per_message"] >= 10
    assert recorded["lost"] == 0
    assert children_left() == []


@pytest.mark.skipif(bool(why_not(TRACED_ROS2)), reason=why_not(TRACED_ROS2) or "available")
@pytest.mark.parametrize("rmw", ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"])
@pytest.mark.measures_time
def test_a_pair_of_rclcpp(rmw):
    if not ros2_available([rmw]).ok:
        pytest.skip(ros2_available([rmw]).reason)
    study = measure(dataclasses.replace(SHORT, layer=Layers.ROS2, rmw=rmw, ebpf=True), Silence())
    assert not [each.failure for each in study.rounds if each.failure]
    untraced, recorded = tracepoints_of(study)
    assert untraced["time_per_call"] < recorded["time_per_call"]
    assert recorded["per_message"] >= 10
    assert children_left() == []


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faulty(Layer):
    """A layer whose processes run a given Python program."""

    program: str

    def command(self, module: str, program: str, settings: Mapping[str, str | int | float]) -> Sequence[str]:
        return [sys.executable, "-S", "-c", self.program]


MATCHED = "import sys; print('{\"matched\": true}', flush=True)"
UNRECORDED = f"""{MATCHED}
for line in sys.stdin:
    word, *numbers = line.split()
    if word == "tracepoints":
        print('{{"calls": 500, "elapsed_ns": 1000}}', flush=True)
    else:
        ticks = int(numbers[1])
        print('{{"published": %d, "latencies_ns": %s}}' % (ticks, [5] * ticks), flush=True)
"""
FAULTS = {
    "ends at once": ("import sys; sys.exit(4)", "ended with exit code 4"),
    "never matches": ("print('{\"matched\": false}', flush=True)", "did not find each other"),
    "dies while it exchanges": (f"{MATCHED}; input(); sys.exit(5)", "ended with exit code 5"),
    "answers nonsense": (f"{MATCHED}; input(); print('no', flush=True); input()", "an invalid answer: 'no'"),
    "sends other latencies": (
        f'{MATCHED}; input(); print(\'{{"published": 1, "latencies_ns": [1]}}\', flush=True); input()',
        "latencies that are none of theirs",
    ),
}


def faulty_start(program: str, mode: Mode):
    layer = Faulty(kind=Kind.EMBEDDED, middleware="rmw_cyclonedds_cpp", program=program)
    pairs = Pairs(spec=SHORT, layer=layer, modes=[mode], first_block=7, progress=Silence())
    (start,) = pairs.measure()
    assert children_left() == []
    return start


@pytest.mark.parametrize("fault", FAULTS)
def test_failure_is_a_result(fault):
    program, message = FAULTS[fault]
    start = faulty_start(program, Mode.UNTRACED)
    assert message in start.failure
    assert start.block == 7


@needs_lttng
def test_traced_start_without_events_is_a_failure():
    assert faulty_start(UNRECORDED, Mode.UNTRACED).failure == ""
    assert "no trace in it" in faulty_start(UNRECORDED, Mode.LTTNG).failure


def test_missing_requirement_has_a_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    assert not available(dataclasses.replace(SHORT, layer=Layers.ROS2)).ok
    monkeypatch.setenv("PATH", str(tmp_path))
    found = available(SHORT)
    assert (found.ok, found.remedy) == (False, "sudo apt-get install lttng-tools")


def test_unavailable_ebpf_is_noted(monkeypatch, tmp_path):
    pytest.importorskip("pytest_ldos.robot.dds._lttng", reason="built without LTTng-UST")
    monkeypatch.setenv("PATH", str(tmp_path))
    layer = Layer(kind=Kind.EMBEDDED, middleware="rmw_cyclonedds_cpp")
    modes, notes = choose_modes(dataclasses.replace(SHORT, ebpf=True), layer)
    assert modes == [Mode.UNTRACED, Mode.LTTNG]
    assert notes == ("eBPF was not measured: bpftrace not found (sudo apt-get install bpftrace)",)
    assert choose_modes(SHORT, layer)[1] == ()
