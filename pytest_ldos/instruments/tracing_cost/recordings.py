"""Processes under each mode of recording, and the proof that they were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import RecordingFailed, TraceUnreadable
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.ros import find_ros_package
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.tracing_cost.ebpf import Probes, count_records, ebpf_available, recording
from pytest_ldos.instruments.tracing_cost.modes import HOT_PATH, Mode
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.dds.emission import TRACEPOINT_SYMBOL, provider_library
from pytest_ldos.trace.ctf.read import read_trace

_PROVIDER: Final = "ros2:"
_FUNCTION: Final = "ros_trace_"


@dataclass
class Recorded:
    """Content of a recording at its end.

    Attributes:
        counts: numbers of events by name, for the tracepoints on a message's path.
        lost: number of events that the recorder reports as lost.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0


@dataclass(frozen=True)
class Site:
    """The environment in which a process is recorded.

    Attributes:
        prefix, environment: prefix and environment of its command.
        attach: returns the context that records a running process with that pid.
        finish: ends the recording and returns its content; called when the process has ended or is no longer needed.
    """

    prefix: Sequence[str]
    environment: Mapping[str, str]
    attach: Callable[[int], AbstractContextManager[None]]
    finish: Callable[[], Recorded]


@contextmanager
def opened(mode: Mode, layer: Layer, folder: Path) -> Iterator[Site]:
    """Opens a site under a mode of recording; the recording ends with the context.

    Raises:
        RecordingFailed: the recorder refused.
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
    """Returns the functions to probe in place of a layer's tracepoints.

    rclcpp's tracepoints are functions of ``libtracetools``. The embedded layer's are expanded in place, except for the
    one that is timed.
    """
    if layer.kind is Kind.EMBEDDED:
        return Probes(provider_library(), (TRACEPOINT_SYMBOL,))
    prefix = find_ros_package("tracetools")
    assert prefix is not None
    return Probes(str(prefix / "lib" / "libtracetools.so"), tuple(f"{_FUNCTION}{name}" for name in HOT_PATH))


def mode_available(mode: Mode, layer: Layer) -> Availability:
    """Reports if a layer can be recorded in this mode; LTTng itself is checked elsewhere."""
    return ebpf_available(probes_of(layer)) if mode is Mode.EBPF else Availability(True)


def exchanges_under(mode: Mode, layer: Layer) -> bool:
    """Returns True if latencies are meaningful: on a message's path, eBPF sees no tracepoint of the embedded layer."""
    return mode is not Mode.EBPF or layer.kind is Kind.ROS2
