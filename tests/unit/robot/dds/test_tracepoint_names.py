"""Tracepoints of the provider, its stub, the table and recorded ROS 2 agree."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import pytest_ldos.robot.dds
from docs.generate.tracepoint_names import READ_ONLY
from pytest_ldos.base.ros2 import AFTER_JAZZY, FIELDS, Marker, Ros2
from pytest_ldos.trace.ctf.read import read_trace

NATIVE = Path(pytest_ldos.robot.dds.__file__).parent / "native"
EMITTED = {name: fields for name, fields in FIELDS.items() if name not in READ_ONLY}
STUB = Path(pytest_ldos.robot.dds.__file__).parent / "_lttng.pyi"


def declared_in_c() -> dict[str, tuple[str, ...]]:
    """Event names and field names of both provider headers."""
    events = {}
    for header in ("ros2_provider.h", "ldos_provider.h"):
        text = (NATIVE / header).read_text("utf-8")
        for match in re.finditer(r"TRACEPOINT_EVENT\((\w+), (\w+),(.*?)\)\n\n", text, re.DOTALL):
            fields = re.findall(r"lttng_ust_field_\w+\((?:[^,()]+, )?(\w+), \w+[,)]", match[3])
            events[f"{match[1]}:{match[2]}"] = tuple(fields)
    return events


def test_the_c_provider_has_exactly_these_events_and_fields():
    declared = declared_in_c()
    assert set(declared) == {str(name) for name in EMITTED}
    for name, fields in EMITTED.items():
        assert declared[name] == fields, name


def test_stub_has_one_function_per_event():
    functions = set(re.findall(r"^def ([a-z]\w+)", STUB.read_text("utf-8"), re.MULTILINE))
    assert functions == {name.partition(":")[2] for name in EMITTED}


def test_module_has_one_function_per_event():
    _lttng = pytest.importorskip("pytest_ldos.robot.dds._lttng", reason="built without LTTng-UST")
    functions = {name for name, value in vars(_lttng).items() if not name.startswith("_") and callable(value)}
    assert functions == {name.partition(":")[2] for name in EMITTED}


def test_every_event_is_in_the_table():
    assert {*Ros2, *Marker} == set(FIELDS)
    assert all(inspect.cleandoc(name) for name in FIELDS)


def test_recorded_ros_2_has_the_same_fields_in_the_same_order(golden):
    events = {}
    for name in ("panda_baseline_1", "service_action", "intra_process", "lifecycle", "pipeline_single_links"):
        events |= read_trace(golden(name)).events
    contexts = {"vpid", "vtid", "procname"}
    for name in set(Ros2) - AFTER_JAZZY:
        columns = tuple(column for column in events[name].columns if column not in contexts)
        assert columns == FIELDS[name], name
