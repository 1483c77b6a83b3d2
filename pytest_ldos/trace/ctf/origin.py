"""Origin of a trace within a session: its domain, its host, and the owner of its buffers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PER_UID = re.compile(r"(?:^|/)uid/(\d+)(?:/|$)")
_PER_PID = re.compile(r"(?:^|/)pid/(.+)-(\d+)-\d{8}-\d{6}(?:/|$)")


@dataclass(frozen=True)
class TraceInfo:
    """One trace of a session directory: a domain, or a buffer owner (uid, pid).

    Facts missing in the metadata are taken from the path that LTTng gave the trace.

    Attributes:
        directory: folder of its metadata.
        environment: the ``env`` block (``hostname``, ``domain``, ``tracer_name``, …).
        clock: name of the clock that stamps events; ``""`` where they have no time: their
            `timestamp_ns` is 0.
        clock_offset_ns: nanoseconds from that clock's zero to the epoch.
        uuid: of the trace, 32 hexadecimal digits, or ``""``. Rotated chunks of one trace
            share it.
        unread: events and fields that no column can hold (text inside arrays of structs);
            they are skipped.
        channels: names of the events that each channel (stream class) declares, by its number.
    """

    directory: Path
    environment: Mapping[str, str | int]
    clock: str
    clock_offset_ns: int
    uuid: str = ""
    unread: tuple[tuple[str, str], ...] = ()
    channels: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def domain(self) -> str:
        """``ust``, ``kernel``, …; ``""`` where unknown."""
        if "domain" in self.environment:
            return str(self.environment["domain"])
        parts = self.directory.parts
        return next((part for part in reversed(parts) if part in ("kernel", "ust")), "")

    @property
    def host(self) -> str:
        return str(self.environment.get("hostname", ""))

    @property
    def uid(self) -> int | None:
        """The user of per-user buffers."""
        if self._scheme == "uid":
            return self._number("tracer_buffering_id")
        found = _PER_UID.search(self.directory.as_posix())
        return int(found[1]) if found and not self._scheme else None

    @property
    def pid(self) -> int | None:
        """The process of per-process buffers."""
        if self._scheme == "pid":
            known = self._number("vpid")
            return self._number("tracer_buffering_id") if known is None else known
        found = _PER_PID.search(self.directory.as_posix())
        return int(found[2]) if found and not self._scheme else None

    @property
    def process_name(self) -> str:
        """Name of that process, cut to 15 characters by Linux."""
        if "procname" in self.environment:
            return str(self.environment["procname"])
        found = _PER_PID.search(self.directory.as_posix())
        return found[1] if found else ""

    @property
    def tracer(self) -> str:
        """``lttng-ust 2.13``."""
        version = ".".join(
            str(self.environment[part]) for part in ("tracer_major", "tracer_minor") if part in self.environment
        )
        return " ".join(part for part in (str(self.environment.get("tracer_name", "")), version) if part)

    @property
    def _scheme(self) -> str:
        return str(self.environment.get("tracer_buffering_scheme", ""))

    def _number(self, name: str) -> int | None:
        value = self.environment.get(name)
        return value if isinstance(value, int) else None
