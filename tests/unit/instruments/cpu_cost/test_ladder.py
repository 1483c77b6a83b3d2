"""The real ladder with few messages on every rung, and faulty processes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence

import pytest

from pytest_ldos.instruments.cost_layers import (
    Kind,
    Layer,
    Layers,
    choose_layers,
    layers_available,
    ros2_available,
)
from pytest_ldos.instruments.cpu_cost.instrument import available, measure
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec, Exchange, Ladder, Rung
from tests.builders.children import children_left
from tests.builders.needs import needs, needs_embedded
from tests.fakes.progress import Silence

SHORT = CpuCostSpec(
    layer=Layers.EMBEDDED, topics=3, subscribers=2, nodes=3, rate_hz=200, seconds=0.2, rounds=2, starts=1
)
ANSWER = (
    '{"ticks": 5, "published": 15, "received": 30, "wall_ns": 1, '
    '"user_ns": 0, "system_ns": 0, "voluntary": 0, "involuntary": 0}'
)


@needs_embedded
@pytest.mark.measures_time
def test_every_rung_exchanges_its_messages():
    study = measure(SHORT, Silence())
    assert [each.failure for each in study.rounds] == [""] * 12
    assert all(each.details["lost_percent"] == 0 for each in study.rounds)
    cost = {}  # the smallest of each rung: a round may have a disturbance
    for each in study.rounds:
        rung, value = each.case.partition(":")[0], each.values["cpu_per_message"]
        cost[rung] = min(value, cost.get(rung, value))
    assert cost["embedded in-process calls"] < cost["embedded DDS only"] < cost["embedded one node"]
    assert study.layer == "embedded"
    assert children_left() == []


@needs(lambda: ros2_available([]))
@pytest.mark.parametrize("rmw", ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"])
@pytest.mark.measures_time
def test_every_rung_of_rclcpp_exchanges_its_messages(rmw):
    if not ros2_available([rmw]).ok:
        pytest.skip(ros2_available([rmw]).reason)
    study = measure(dataclasses.replace(SHORT, layer=Layers.ROS2, rmw=rmw), Silence())
    assert [each.failure for each in study.rounds] == [""] * 12
    assert all(each.details["lost_percent"] == 0 for each in study.rounds)
    assert (study.layer, study.middleware) == ("ros2", rmw)
    assert children_left() == []


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faulty(Layer):
    """A layer whose processes run a given Python program."""

    programs: Mapping[Rung, str]

    def command(self, module: str, program: str, settings: Mapping[str, str | int | float]) -> Sequence[str]:
        return [sys.executable, "-S", "-c", self.programs[Rung(str(settings["rung"]))]]


MATCHED = "import sys; print('{\"matched\": true}', flush=True)"
GOOD = f"{MATCHED}\nfor line in sys.stdin: print('{ANSWER}', flush=True)"
FAULTS = {
    "ends at once": ("import sys; sys.exit(4)", "embedded-dds ended with exit code 4"),
    "never matches": ("print('{\"matched\": false}', flush=True)", "did not find each other"),
    "dies while it exchanges": (f"{MATCHED}; input(); sys.exit(5)", "embedded-dds ended with exit code 5"),
    "is killed": (f"{MATCHED}; input(); import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    "answers nonsense": (
        f"{MATCHED}; input(); print('15 messages', flush=True); input()",
        "an invalid answer: '15 messages'",
    ),
    "claims too much": (
        f"{MATCHED}; input(); print('{ANSWER}'.replace('\"user_ns\": 0', '\"user_ns\": 99000000000'), flush=True); input()",
        "the kernel counted",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_failed_process_does_not_affect_other_rungs(fault):
    program, message = FAULTS[fault]
    layer = Faulty(
        kind=Kind.EMBEDDED, middleware="rmw_cyclonedds_cpp", programs={Rung.IN_PROCESS: GOOD, Rung.DDS: program}
    )
    spec = dataclasses.replace(SHORT, rungs="in_process,dds")
    found = list(Ladder(spec=spec, layer=layer, first_block=3, progress=Silence()).measure())
    assert [(each.rung, each.block) for each in found] == [
        (Rung.IN_PROCESS, 3),
        (Rung.DDS, 3),
        (Rung.DDS, 3),
        (Rung.IN_PROCESS, 3),
    ]
    assert all(isinstance(each.result, Exchange) for each in found if each.rung is Rung.IN_PROCESS)
    assert all(message in str(each.result) for each in found if each.rung is Rung.DDS)
    assert children_left() == []


def test_silent_process_is_a_failed_round(monkeypatch):
    monkeypatch.setattr("pytest_ldos.instruments.cpu_cost.ladder._GRACE_S", 0.1)
    layer = Faulty(
        kind=Kind.EMBEDDED, middleware="", programs={Rung.DDS: f"{MATCHED}; sys.stdin.read(); sys.stdin.read()"}
    )
    spec = dataclasses.replace(SHORT, rungs="dds")
    found = list(Ladder(spec=spec, layer=layer, first_block=0, progress=Silence()).measure())
    assert all("did not answer within" in str(each.result) for each in found)


def test_without_ros_rclcpp_is_refused_or_noted(monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    asked = available(CpuCostSpec(layer=Layers.ROS2))
    assert not asked.ok
    assert "ROS 2" in asked.reason
    assert not available(CpuCostSpec(rmw="rmw_cyclonedds_cpp")).ok
    layers, notes = choose_layers(Layers.AUTO, ())
    assert [layer.kind for layer in layers] == [Kind.EMBEDDED]
    assert "rclcpp was not measured" in notes[0]


def test_embedded_layer_without_its_packages_is_refused(monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.setattr("pytest_ldos.instruments.cost_layers.EMBEDDED_MODULES", ("cyclonedds_that_is_not_there",))
    for layer in (Layers.AUTO, Layers.EMBEDDED):
        asked = layers_available(layer, ())
        assert not asked.ok
        assert "cyclonedds_that_is_not_there" in asked.reason
        assert "pip install" in asked.remedy
