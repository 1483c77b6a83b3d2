"""Field numbers of Perfetto's trace format, limited to the fields that are written.

Reference: perfetto, ``protos/perfetto/trace/perfetto_trace.proto``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

TRACE_PACKET: Final = 1


class Packet(IntEnum):
    """Fields of ``TracePacket``."""

    CLOCK_SNAPSHOT = 6
    TIMESTAMP = 8
    SEQUENCE_ID = 10
    TRACK_EVENT = 11
    INTERNED_DATA = 12
    SEQUENCE_FLAGS = 13
    TRACK_DESCRIPTOR = 60


STATE_CLEARED: Final = 1
NEEDS_STATE: Final = 2


class TrackEvent(IntEnum):
    """Fields of ``TrackEvent``."""

    CATEGORY_IIDS = 3
    DEBUG_ANNOTATIONS = 4
    TYPE = 9
    NAME_IID = 10
    TRACK_UUID = 11
    COUNTER_VALUE = 30
    FLOW_IDS = 47


class EventType(IntEnum):
    """Values of ``TrackEvent.Type``."""

    SLICE_BEGIN = 1
    SLICE_END = 2
    INSTANT = 3
    COUNTER = 4


class Annotation(IntEnum):
    """Fields of ``DebugAnnotation``."""

    NAME_IID = 1
    STRING_VALUE_IID = 17


class Interned(IntEnum):
    """Fields of ``InternedData``; the entries of each are (1: number, 2: text)."""

    CATEGORIES = 1
    NAMES = 2
    ANNOTATION_NAMES = 3
    ANNOTATION_TEXTS = 29


class Track(IntEnum):
    """Fields of ``TrackDescriptor``."""

    UUID = 1
    NAME = 2
    PROCESS = 3
    THREAD = 4
    PARENT_UUID = 5
    COUNTER = 8


class Process(IntEnum):
    """Fields of ``ProcessDescriptor``."""

    PID = 1
    NAME = 6
    LABELS = 8


class Thread(IntEnum):
    """Fields of ``ThreadDescriptor``."""

    PID = 1
    TID = 2
    NAME = 5


class Counter(IntEnum):
    """Fields of ``CounterDescriptor``."""

    UNIT = 3
    UNIT_NAME = 6


UNIT_TIME_NS: Final = 1


class Clocks(IntEnum):
    """Fields of ``ClockSnapshot``, and of its ``Clock``."""

    CLOCKS = 1
    CLOCK_ID = 1
    TIMESTAMP = 2


REALTIME: Final = 1
BOOTTIME: Final = 6
