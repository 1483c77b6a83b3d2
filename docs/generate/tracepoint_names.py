"""The page of tracepoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from docs.generate.attributes import members_of
from docs.generate.text import code, flowing, table
from pytest_ldos.base.ros2 import AFTER_JAZZY, FIELDS, KERNEL_FIELDS, RECORDED, Kernel, Marker, Ros2

READ_ONLY: Final = AFTER_JAZZY | {
    Ros2.INTRA_PUBLISH,
    Ros2.RING_BUFFER_ENQUEUE,
    Ros2.RING_BUFFER_DEQUEUE,
    Ros2.BUFFER_TO_IPB,
    Ros2.IPB_TO_SUBSCRIPTION,
    Ros2.STATE_MACHINE_INIT,
    Ros2.LIFECYCLE_TRANSITION,
    Ros2.LINK_PERIODIC_ASYNC,
    Ros2.LINK_PARTIAL_SYNC,
}
"""Events that the analysis reads but the embedded node layer does not emit."""


def tracepoints_page() -> Iterator[str]:
    """Every event that is read, with its fields in the order of the trace."""
    yield from (
        "# Tracepoints",
        "",
        f"A recording enables {' and '.join(map(code, RECORDED))}, with the contexts `vpid`, `vtid` and `procname`.",
        "Metrics of [your own tracepoints](../how-to/gate-your-own-tracepoints.md) also enable their providers",
        "and `lttng_ust_tracef:*`. The kernel's events are read where they were recorded (lttng-modules).",
        "",
    )
    notes = members_of(Marker)
    parts = (
        ("ROS 2's own (`tracetools`)", Ros2, _note),
        ("Markers of pytest-ldos", Marker, lambda each: flowing(notes[each])),
        ("The kernel's scheduler", Kernel, lambda _: ""),
    )
    for title, events, note in parts:
        yield from (f"## {title}", "")
        yield from table(
            ("event", "fields", "note"), [(code(each), _fields(each), note(each)) for each in _sorted(events)]
        )
        yield ""


def _sorted(events: Iterable[StrEnum]) -> list[StrEnum]:
    return sorted(events, key=str)


def _fields(event: StrEnum) -> str:
    return ", ".join(map(code, {**FIELDS, **KERNEL_FIELDS}[event]))


def _note(event: StrEnum) -> str:
    if event in AFTER_JAZZY:
        return "since ROS 2 Kilted"
    return "read, not emitted by the embedded stack" if event in READ_ONLY else ""
