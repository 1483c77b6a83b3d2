"""Synthetic traces of every shape, read by the decoder and by babeltrace2."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.ctf import Array, Enum, Event, Float, Int, Packet, Record, Seq, Struct, Text, TraceBuilder, Variant
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")

LABELS = {"none": (0, 0), "number": (1, 4), "text": (5, 9)}
RICH = Event(
    "app:rich",
    40,
    {
        "_bits": Int(5, align=1),
        "_signed": Int(11, signed=True, align=1),
        "_odd": Int(37, align=1),
        "_wide": Int(64, align=64),
        "_text": Text(),
        "_comm": Array(Int(8, text=True), 16),
        "__n": Int(16, align=16),
        "_list": Seq(Int(24, signed=True, align=1), "__n"),
        "__letters": Int(8),
        "_name": Seq(Int(8, text=True), "__letters"),
        "_ratio": Float(64, align=64),
        "_half": Float(32, align=1),
        "kind": Enum(LABELS, Int(8, signed=True)),
        "_what": Variant("kind", {"none": Struct({}), "number": Int(32, align=32), "text": Text()}, LABELS),
        "_in": Struct({"_x": Int(16), "_deeper": Struct({"_y": Text()}, own_align=32)}),
        "_grid": Array(Array(Int(4, align=1), 3), 2),
        "_points": Seq(Struct({"_x": Int(8), "_y": Int(32, align=32)}), "__n"),
    },
)
TICK = Event("app:tick", 2, {"_value": Int(3, align=1)})
CONTEXT = {"_vpid": Int(32, signed=True), "_procname": Array(Int(8, text=True), 17), "_perf": Int(64, align=64)}


def values(step: int) -> dict[str, Any]:
    kind, what = [(0, {}), (3, 1000 + step), (7, f"seven {step}")][step % 3]
    return {
        "_bits": step % 32,
        "_signed": -step,
        "_odd": (1 << 36) + step,
        "_wide": (1 << 63) + step,
        "_text": "ä" * (step % 3),
        "_comm": list(f"thread {step}".encode().ljust(16, b"\0")),
        "__n": step % 3,
        "_list": [-step - i for i in range(step % 3)],
        "__letters": step % 3,
        "_name": list(b"abc"[: step % 3]),
        "_ratio": step / 3,
        "_half": step / 4,
        "kind": kind,
        "_what": what,
        "_in": {"_x": step, "_deeper": {"_y": f"y{step}"}},
        "_grid": [[step % 16, 1, 2], [3, 4, 5]],
        "_points": [{"_x": i, "_y": step} for i in range(step % 3)],
    }


def packets(cpu: int) -> list[Packet]:
    result = []
    for number in range(3):
        records = []
        for i in range(4):
            step = 4 * number + i
            context = {"_vpid": 100 + cpu, "_procname": list(f"node{cpu}".encode().ljust(17, b"\0")), "_perf": step}
            time = (step << 30) + 10 * cpu
            records.append(Record(RICH, time, values(step), context))
            records.append(Record(TICK, time + 5, {"_value": step % 8}, context))
        result.append(Packet(records, sequence=number, cpu=cpu, instance=cpu, padding=24))
    return result


@pytest.mark.parametrize("header", ["compact", "large", "none"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_every_shape(tmp_path, header, big_endian):
    builder = TraceBuilder(
        [RICH, TICK], header=header, big_endian=big_endian, context=CONTEXT, instances=True, clock_offset=1_000_000_007
    )
    builder.write(tmp_path, {f"s_{cpu}": packets(cpu) for cpu in range(2)})
    agreement = compare_with_babeltrace(tmp_path)
    assert (agreement.outcome, agreement.difference, agreement.events) == (Outcome.EQUAL, "", 48)
