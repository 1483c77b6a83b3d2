"""Metadata of each LTTng tracer, with and without the version comment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Array, Enum, Event, Field, Float, Int, Packet, Record, Seq, Text, Variant
from tests.builders.tracers import ModulesBuilder, OldUstBuilder, TracerBuilder, UstBuilder
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

needs_babeltrace = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")

NAME = Array(Int(8, signed=True, text=True), 16)
PLAIN: dict[str, Field] = {
    "_prev_comm": NAME,
    "_flags": Int(32),
    "_ret": Int(64, signed=True),
    "_filename": Text(),
    "__args_length": Int(32),
    "_args": Seq(Int(64), "__args_length"),
}
STATES = {"idle": (0, 0), 'the "first"\nof all': (1, 3), "a \\ b": (4, 4)}
NESTED: dict[str, Field] = {
    "_state": Enum(STATES, Int(8)),
    "_kind": Enum({"_number": (0, 0), "_text": (1, 1)}, Int(8)),
    "_what": Variant("_kind", {"_number": Int(32), "_text": Text()}, {"_number": (0, 0), "_text": (1, 1)}),
}
FLOAT: dict[str, Field] = {"_ratio": Float(64)}
TRACERS = [
    pytest.param(ModulesBuilder, {**PLAIN, **NESTED}, id="lttng-modules"),
    pytest.param(OldUstBuilder, {**PLAIN, **FLOAT}, id="lttng-ust before the comment"),
    pytest.param(UstBuilder, {**PLAIN, **NESTED, **FLOAT}, id="lttng-ust now"),
]
CONTEXT: dict[str, Field] = {"_vpid": Int(32, signed=True), "_procname": Array(Int(8, text=True), 17)}


def values(step: int) -> dict[str, Any]:
    return {
        "_prev_comm": list(f"task {step}".encode().ljust(16, b"\0")),
        "_flags": 1 << step,
        "_ret": -step,
        "_filename": "" if step == 2 else f"/tmp/{step}",
        "__args_length": step % 3,
        "_args": [step] * (step % 3),
        "_state": step % 5,
        "_kind": step % 2,
        "_what": f"text {step}" if step % 2 else step,
        "_ratio": step / 3,
    }


def write(directory: Path, tracer: type[TracerBuilder], members: dict[str, Field], **options: Any) -> TracerBuilder:
    event = Event("sched:switch", 3, members)
    builder = tracer(
        [event, *(Event(f"sched:other_{number}", 10 + number, members) for number in range(5))],
        context=CONTEXT,
        instances=tracer.numbered,
        clock_offset=1_700_000_000_000_000_000,
        environment={"release": 'a "\\\n b'},
        **options,
    )
    context = {"_vpid": 7, "_procname": list(b"talker".ljust(17, b"\0"))}
    steps = [Record(event, 1000 + 10 * step, values(step), context) for step in range(6)]
    packets = [Packet(steps[:3]), Packet(steps[3:], sequence=1)]
    builder.write(directory, {"channel0_0": packets, "channel0_1": [Packet(steps, cpu=1, instance=1)]})
    return builder


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("header", ["compact", "large"])
@pytest.mark.parametrize(("tracer", "members"), TRACERS)
def test_metadata_of_each_tracer(tmp_path, tracer, members, header, big_endian):
    builder = write(tmp_path, tracer, members, header=header, big_endian=big_endian)
    assert len(builder.metadata()) > 4096, "a tracer writes several packets of metadata"
    trace = read_trace(tmp_path)
    table = trace.events["sched:switch"]
    assert table["flags"].tolist() == [1 << step for step in range(6) for _ in range(2)]
    assert table["ret"].tolist() == [-step for step in range(6) for _ in range(2)]
    assert list(table.columns["filename"])[::2] == [values(step)["_filename"] for step in range(6)]
    assert trace.traces[0].environment["release"] == 'a "\\\n b'
    if "_state" in members:
        assert [(label.name, label.first, label.last) for label in table.columns["state"].labels] == [
            (name, first, last) for name, (first, last) in STATES.items()
        ]


@needs_babeltrace
@pytest.mark.parametrize("header", ["compact", "large"])
@pytest.mark.parametrize(("tracer", "members"), TRACERS)
def test_decoder_agrees_with_babeltrace2(tmp_path, tracer, members, header):
    write(tmp_path, tracer, members, header=header)
    agreement = compare_with_babeltrace(tmp_path)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", 12)
