"""The ROS 2 workspace defines the same markers as the embedded provider, including types."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pytest_ldos.robot.dds
from pytest_ldos.base.ros2 import FIELDS, Marker, Phase
from pytest_ldos.record.lttng import LttngRecorder
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.lttng import Session
from tests.builders.needs import needs_lttng

PACKAGE = Path(__file__).parents[4] / "ros_ws/src/ldos_tracepoints"
EMBEDDED = Path(pytest_ldos.robot.dds.__file__).parent / "native/ldos_provider.h"
GOAL = "0123456789abcdef0123456789abcdef"

EMIT_ALL = """
#include "ldos_tracepoints/tracepoints.hpp"
int main()
{
  const char * goal = "0123456789abcdef0123456789abcdef";
  ldos_tracepoints::trial_begin(goal, "cpu_load", 4000000000u);
  ldos_tracepoints::phase(goal, "executing");
  ldos_tracepoints::plan(goal, -5000000000, 4000000001u);
  ldos_tracepoints::trial_end(goal, -31);
  ldos_tracepoints::control_cycle(18446744073709551615u, -1, 2000000);
  ldos_tracepoints::sim_step(18446744073709551614u, -2);
  ldos_tracepoints::cpu_speed(-3);
  ldos_tracepoints::planning_stage("search", -4);
  ldos_tracepoints::header_stamp(-5);
}
"""


def fields_of(header: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """Event names with the types and names of their fields."""
    events = {}
    text = header.read_text("utf-8")
    for match in re.finditer(r"TRACEPOINT_EVENT\(\s*(\w+),\s*(\w+),(.*?)\)\n\n", text, re.DOTALL):
        strings = r"lttng_ust_field_(string)\((\w+),"
        integers = r"lttng_ust_field_integer\((\w+), (\w+),"
        found = sorted([*re.finditer(strings, match[3]), *re.finditer(integers, match[3])], key=re.Match.start)
        events[f"{match[1]}:{match[2]}"] = tuple((field[1], field[2]) for field in found)
    return events


def test_every_marker_is_defined_with_its_fields_in_order():
    names = {event: tuple(name for _, name in fields) for event, fields in fields_of(defined()).items()}
    assert names == {str(marker): FIELDS[marker] for marker in Marker}


def test_types_match_the_embedded_provider():
    assert fields_of(defined()) == fields_of(EMBEDDED)


def test_documented_phases_are_those_that_are_read():
    documented = re.search(r"`phase` \((.*?)\)", (PACKAGE / "README.md").read_text("utf-8"))
    assert documented is not None
    assert re.findall(r"\w+", documented[1]) == [str(phase) for phase in Phase]


def defined() -> Path:
    return PACKAGE / "src/ldos_provider.h"


@pytest.fixture
def session(tmp_path):
    recorder = LttngRecorder(tmp_path / "other", tmp_path)
    recorder.start()
    try:
        yield Session(recorder, tmp_path / "wanted")
    finally:
        recorder.stop()


@pytest.fixture(scope="module")
def emitter(tmp_path_factory) -> str:
    """A program, built without ROS, that emits every marker with the package's library."""
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler (Debian, Ubuntu: g++)")
    folder = tmp_path_factory.mktemp("emitter")
    (folder / "emit_all.cpp").write_text(EMIT_ALL, "utf-8")
    include = [f"-I{PACKAGE / 'include'}", f"-I{PACKAGE / 'src'}", "-Wno-unused-function"]
    sources = [PACKAGE / "src/probes.c", PACKAGE / "src/tracepoints.c"]
    library = folder / "libldos_tracepoints.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", *include, *sources, "-o", library, "-llttng-ust", "-ldl"],
        check=True,
        capture_output=True,
    )
    program = folder / "emit_all"
    flags = ["-std=c++20", "-DLDOS_TRACEPOINTS_ENABLED", *include]
    subprocess.run(
        ["g++", *flags, folder / "emit_all.cpp", library, f"-Wl,-rpath,{folder}", "-o", program],
        check=True,
        capture_output=True,
    )
    return str(program)


@needs_lttng
def test_emitted_markers_are_read_back(session, emitter):
    session.create(events="ldos:*")
    session.run(emitter)
    session.stop()
    events = read_trace(session.directory).events
    assert {name: row_of(events[name], name) for name in events} == {
        Marker.TRIAL_BEGIN: (GOAL, "cpu_load", 4_000_000_000),
        Marker.PHASE: (GOAL, "executing"),
        Marker.PLAN: (GOAL, -5_000_000_000, 4_000_000_001),
        Marker.TRIAL_END: (GOAL, -31),
        Marker.CONTROL_CYCLE: (2**64 - 1, -1, 2_000_000),
        Marker.SIM_STEP: (2**64 - 2, -2),
        Marker.CPU_SPEED: (-3,),
        Marker.PLANNING_STAGE: ("search", -4),
        Marker.HEADER_STAMP: (-5,),
    }


def row_of(table, name: str) -> tuple:
    assert len(table) == 1
    return tuple(table.columns[field][0] for field in FIELDS[name])
