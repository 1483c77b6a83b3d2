"""The workspace's measuring programs match the Python ones, by their sources."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec, Exchange, Ladder, Rung
from pytest_ldos.instruments.tracing_cost import pair_program
from pytest_ldos.instruments.tracing_cost.pairs import HOT_PATH
from tests.fakes.progress import Silence

SOURCES = Path(__file__).parents[3] / "ros_ws/src/ldos_cost/src"


def text_of(name: str) -> str:
    return (SOURCES / name).read_text("utf-8")


def test_rungs():
    assert set(re.findall(r'settings\.rung == "(\w+)"', text_of("cost_ladder.cpp"))) == set(Rung)


def test_settings():
    layer = Layer(kind=Kind.ROS2, middleware="rmw_cyclonedds_cpp")
    asked = Ladder(spec=CpuCostSpec(), layer=layer, first_block=0, progress=Silence())._settings(Rung.DDS)
    known = re.findall(r'^    \{"(\w+)", ', text_of("settings.cpp"), re.MULTILINE)
    assert sorted(asked) == sorted(known)


def test_answers():
    keys = re.findall(r'\\"(\w+)\\": ', text_of("usage.cpp"))
    assert sorted(keys) == sorted(set(Exchange.__dataclass_fields__) - {"cycles", "migrations"})
    assert re.findall(r'\\"(\w+)\\": ', text_of("publish_callback.cpp")) == [
        "published",
        "latencies_ns",
        "calls",
        "elapsed_ns",
        "matched",
    ]


def test_commands():
    known = set(re.findall(r'asked (?:==|!=) "(\w+)"', text_of("publish_callback.cpp")))
    assert known == {"tracepoints", "exchange"}
    assert all(word in str(pair_program.__doc__) for word in known)


def test_hot_path_has_known_tracepoints():
    assert {f"ros2:{name}" for name in HOT_PATH} <= {str(event) for event in Ros2}
