"""Losses by the tracer's own count, from ``lttng --mi xml list SESSION``."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import one_line
from pytest_ldos.record.protocol import RecordingReport

_NAMESPACE: Final = {"mi": "https://lttng.org/xml/ns/lttng-mi"}

_FALSE_WRAP: Final = 1 << 63
"""LTTng's consumer adds this whenever a stream's counter of discarded events steps back, taking that for an overflow.

An unfinished packet has a counter of 0; with the next one the counter returns, and only this excess stays.
"""


_WRITE_FAULT: Final = re.compile(
    r"Error in write mmap .*?: (?P<reason>[^:]+?) \(in lttng_consumer_on_read_subbuffer_mmap"
)
"""Messages in the consumer's log for data that it could not write; it does not count them."""


def write_fault(log: Path) -> str:
    """Reason in its log why LTTng's consumer could not write the trace; empty if it could."""
    found = _WRITE_FAULT.search(log.read_text("utf-8", errors="replace")) if log.is_file() else None
    return "" if found is None else one_line(found["reason"])


def parse_losses(listing: str) -> RecordingReport:
    """Sums of losses over all channels of a session."""
    root = ET.fromstring(listing)  # noqa: S314 - written by our own session daemon

    def counts(name: str) -> list[int]:
        return [int(element.text or 0) for element in root.iterfind(f".//mi:{name}", _NAMESPACE)]

    discarded = sum(count % _FALSE_WRAP for count in counts("discarded_events"))
    return RecordingReport(discarded, sum(counts("lost_packets")))
