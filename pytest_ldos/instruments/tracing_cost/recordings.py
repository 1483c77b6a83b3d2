"""Processes under each mode of recording, and the proof that they were recorded.

Every hit of a uprobe traps into the kernel, which writes a record; bpftrace prints it as a line: time, thread,
function, first argument.

Reference: ``bpftrace(8)``; uprobes need root, a kernel with ``CONFIG_UPROBE_EVENTS`` and ``CONFIG_BPF_EVENTS``.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import RecordingFailed, TraceUnreadable
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.processes import Child, ProcessGroup, quoted
from pytest_ldos.host.ros import find_ros_package
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.emission import TRACEPOINT_SYMBOL, provider_library
from pytest_ldos.trace.ctf.read import read_trace

_LOST: Final = re.compile(r"Lost (\d{1,18}) events?")
_ATTACHED: Final = "attached"
_TRY_S: Final = 30.0
_READY_S: Final = 30.0
_POLL_S: Final = 0.02
_BEAT: Final = "recording"
_BEAT_LINE: Final = re.compile(rf"^{_BEAT} (\d{{1,20}})$", re.MULTILINE)
_BUFFER_PAGES: Final = "1024"
"""Buffer pages per CPU, for about ten thousand records."""
_UPROBES: Final = Path("/sys/bus/event_source/devices/uprobe")


@dataclass(frozen=True)
class Probes:
    """Functions of a library to probe.

    Attributes:
        functions: names of symbols.
    """

    library: str
    functions: tuple[str, ...]

    @property
    def records(self) -> str:
        """A bpftrace program that prints a line per call, with literal names, because lookups are slow."""
        return " ".join(
            f'uprobe:"{self.library}":{name} {{ printf("%llu %d {name} %llx\\n", nsecs, tid, arg0); }}'
            for name in self.functions
        )

    @property
    def points(self) -> str:
        """The probes in bpftrace's notation."""
        return ",".join(f'uprobe:"{self.library}":{name}' for name in self.functions)


def ebpf_available(probes: Probes) -> Availability:
    """Tries if bpftrace can set these probes here."""
    programs = find_programs(("bpftrace",), package="bpftrace")
    if not programs.ok:
        return programs
    if os.geteuid() != 0:
        return Availability(False, "uprobes need root", "run as root, or without eBPF")
    if not _UPROBES.exists():
        return Availability(False, "this kernel has no uprobes", "use a kernel with CONFIG_UPROBE_EVENTS")
    if not is_plain(probes.library):
        return Availability(False, f"bpftrace cannot name {probes.library!r}", "install it elsewhere")
    return _try(probes)


def is_plain(path: str) -> bool:
    """Returns True if a path needs no quoting in a bpftrace program."""
    return path.isprintable() and not set(path) & set('"\\')


@lru_cache(maxsize=16)
def _try(probes: Probes) -> Availability:
    program = f'{probes.points} {{ @ = count(); }} BEGIN {{ printf("{_ATTACHED}\\n"); exit(); }}'
    try:
        done = subprocess.run(
            ["bpftrace", "-e", program],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TRY_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(False, f"bpftrace does not run here: {error}", "run bpftrace --info")
    if _ATTACHED in done.stdout.splitlines():
        return Availability(True)
    output = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["it printed nothing"]
    return Availability(False, f"bpftrace cannot set uprobes here: {quoted(output[0])}", "run bpftrace --info")


@contextmanager
def recording(probes: Probes, pid: int, folder: Path) -> Iterator[Path]:
    """Records a process in the ``with`` block; afterwards the file has all records.

    Raises:
        RecordingFailed: bpftrace did not start in time, or ended too early.
    """
    beat = f'interval:ms:100 {{ printf("{_BEAT} %llu\\n", nsecs); }}'
    group = ProcessGroup(log_directory=folder, environment={"BPFTRACE_PERF_RB_PAGES": _BUFFER_PAGES})
    command = ["bpftrace", "-B", "line", "-p", str(pid), "-e", f"{beat} {probes.records}"]
    try:
        child = group.start("bpftrace", command)
        _await_beat(child, 0)
        yield child.log
        _await_beat(child, time.monotonic_ns())
        _await_beat(child, time.monotonic_ns())  # bpftrace reads all buffers between two beats
    finally:
        group.stop()


def _await_beat(child: Child, after_ns: int) -> None:
    """Waits until bpftrace has printed a beat that is later than `after_ns`.

    bpftrace reads the kernel's buffers one after the other, once all probes are set. (``BEGIN`` does not fire
    with ``-p``.)

    Raises:
        RecordingFailed: it ended or took too long.
    """
    deadline = time.monotonic() + _READY_S
    while _last_beat_ns(child.log) <= after_ns:
        if child.exit_code is not None or time.monotonic() > deadline:
            raise RecordingFailed("bpftrace does not record", details=child.last_lines())
        time.sleep(_POLL_S)


def _last_beat_ns(log: Path) -> int:
    """Time of the last beat on the clock of `time.monotonic_ns`; 0 if there is none."""
    beats = _BEAT_LINE.findall(log.read_text("utf-8", errors="replace"))
    return int(beats[-1]) if beats else 0


def count_records(output: Path) -> tuple[dict[str, int], int]:
    """Counts records by function, and the records that bpftrace reports as lost; ignores its other output."""
    counts: dict[str, int] = {}
    lost = 0
    for line in output.read_text("utf-8", errors="replace").splitlines():
        words = line.split()
        if len(words) == 4 and words[0].isdecimal() and words[1].isdecimal():
            counts[words[2]] = counts.get(words[2], 0) + 1
        elif found := _LOST.fullmatch(line.strip()):
            lost += int(found[1])
    return counts, lost


class Mode(StrEnum):
    """Mode of recording a process."""

    UNTRACED = "untraced"
    LTTNG = "lttng"
    EBPF = "ebpf"


TITLES: Final[Mapping[Mode, str]] = {Mode.UNTRACED: "untraced", Mode.LTTNG: "LTTng", Mode.EBPF: "eBPF"}

HOT_PATH: Final = (
    "rclcpp_publish",
    "rcl_publish",
    "rmw_publish",
    "rclcpp_executor_get_next_ready",
    "rclcpp_executor_wait_for_work",
    "rclcpp_executor_execute",
    "rmw_take",
    "rcl_take",
    "rclcpp_take",
    "callback_start",
    "callback_end",
)
"""Tracepoints on the path of a message, from its publication to the end of its callback."""

CALLBACK: Final = "callback_start"
"""The tracepoint that is hit once per received message."""


_PROVIDER: Final = "ros2:"
_FUNCTION: Final = "ros_trace_"


@dataclass
class Recorded:
    """Content of a recording at its end.

    Attributes:
        counts: numbers of events on a message's path, by name.
        lost: number of lost events, by the recorder's count.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0


@dataclass(frozen=True)
class Site:
    """The environment in which a process is recorded.

    Attributes:
        prefix, environment: prefix and environment of its command.
        attach: returns a context manager that records the running process with a pid.
        finish: ends the recording and returns its content; called after the process.
    """

    prefix: Sequence[str]
    environment: Mapping[str, str]
    attach: Callable[[int], AbstractContextManager[None]]
    finish: Callable[[], Recorded]


@contextmanager
def opened(mode: Mode, layer: Layer, folder: Path) -> Iterator[Site]:
    """Opens a site with a mode of recording for the ``with`` block.

    Raises:
        RecordingFailed: the recorder failed.
        Unavailable: there is no recorder.
    """
    if mode is Mode.LTTNG:
        recorder = choose_recorder(folder / "trace", folder)
        try:
            recorder.start()
            yield Site(recorder.prefix, recorder.environment, _nothing, lambda: _finish(recorder))
        finally:
            recorder.stop()
    elif mode is Mode.EBPF:
        yield _ebpf_site(probes_of(layer), folder)
    else:
        yield Site((), {}, _nothing, Recorded)


@contextmanager
def _nothing(_pid: int) -> Iterator[None]:
    yield


def _finish(recorder: Recorder) -> Recorded:
    """Reads the trace.

    Raises:
        RecordingFailed: it cannot be read.
    """
    losses = recorder.pause()
    try:
        events = read_trace(recorder.directory).events
    except TraceUnreadable as error:
        raise RecordingFailed(f"the trace cannot be read: {error.message}") from None
    found = {name: len(events[_PROVIDER + name]) for name in HOT_PATH if _PROVIDER + name in events}
    return Recorded(found, losses.discarded_events)


def _ebpf_site(probes: Probes, folder: Path) -> Site:
    outputs: list[Path] = []

    @contextmanager
    def attach(pid: int) -> Iterator[None]:
        with recording(probes, pid, folder) as output:
            outputs.append(output)
            yield

    def finish() -> Recorded:
        counts, lost = count_records(outputs[0])
        return Recorded({name.removeprefix(_FUNCTION): count for name, count in counts.items()}, lost)

    return Site((), {}, attach, finish)


def probes_of(layer: Layer) -> Probes:
    """Returns the functions to probe for a layer's tracepoints.

    rclcpp's tracepoints are functions of ``libtracetools``. The embedded layer's are inlined, except for the timed one.
    """
    if layer.kind is Kind.EMBEDDED:
        return Probes(provider_library(), (TRACEPOINT_SYMBOL,))
    prefix = find_ros_package("tracetools")
    assert prefix is not None
    return Probes(str(prefix / "lib" / "libtracetools.so"), tuple(f"{_FUNCTION}{name}" for name in HOT_PATH))


def mode_available(mode: Mode, layer: Layer) -> Availability:
    """Reports if a layer can be recorded in this mode; `available` checks LTTng."""
    return ebpf_available(probes_of(layer)) if mode is Mode.EBPF else Availability(True)


def exchanges_under(mode: Mode, layer: Layer) -> bool:
    """Returns True if latencies are meaningful; eBPF cannot probe the embedded layer's inlined tracepoints."""
    return mode is not Mode.EBPF or layer.kind is Kind.ROS2
