"""Latencies with and without recording, from fresh processes, interleaved, with a proof of the recording.

Reference: ``bpftrace(8)``, which prints a line per hit of a uprobe: time, thread, function, first argument; uprobes
need root, a kernel with ``CONFIG_UPROBE_EVENTS`` and ``CONFIG_BPF_EVENTS``.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordingFailed, TraceUnreadable, Unavailable
from pytest_ldos.host.availability import Availability, find_programs, find_ros_package, run_program
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, summary_of, whole
from pytest_ldos.host.processes import Child, ProcessGroup, comes_true, quoted
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.instruments.cost_layers import MATCH_S, Kind, Layer, await_match, leaving_no_memory
from pytest_ldos.instruments.study import Progress, alternate
from pytest_ldos.instruments.tracing_cost.spec import SizeAndRate, TracingCostSpec
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
_BUFFER_PAGES: Final = "1024"  # buffer pages per CPU, for about ten thousand records
_UPROBES: Final = Path("/sys/bus/event_source/devices/uprobe")


@dataclass(frozen=True)
class Probes:
    """Functions of a library to probe, by the names of their symbols."""

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
        done = run_program(["bpftrace", "-e", program], timeout_s=_TRY_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(False, f"bpftrace does not run here: {error}", "run bpftrace --info")
    if _ATTACHED in done.stdout.splitlines():
        return Availability(True)
    output = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["it printed nothing"]
    return Availability(False, f"bpftrace cannot set uprobes here: {quoted(output[0])}", "run bpftrace --info")


@contextmanager
def recording(probes: Probes, pid: int, folder: Path) -> Iterator[Path]:
    """Records a process in the ``with`` block; raises `RecordingFailed` if bpftrace does not start, or ends early."""
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
    """Waits until bpftrace has printed a beat later than `after_ns`; raises `RecordingFailed` if it takes too long.

    bpftrace reads the kernel's buffers one after the other, once all probes are set. ``BEGIN`` never fires with ``-p``.
    """

    def has_beaten() -> bool:
        beats = _BEAT_LINE.findall(child.log.read_text("utf-8", errors="replace"))
        return bool(beats) and int(beats[-1]) > after_ns

    comes_true(lambda: has_beaten() or child.exit_code is not None, limit_s=_READY_S, poll_s=_POLL_S)
    if not has_beaten():
        raise RecordingFailed("bpftrace does not record", details=child.last_lines())


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

CALLBACK: Final = "callback_start"  # the tracepoint that is hit once per received message


_PROVIDER: Final = "ros2:"
_FUNCTION: Final = "ros_trace_"


@dataclass
class Recorded:
    """Content of a recording: numbers of events on a message's path, by name, and of events that the recorder lost."""

    counts: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0


@dataclass(frozen=True)
class Site:
    """Prefix and environment of the command of a process that is recorded, and functions."""

    prefix: Sequence[str]
    environment: Mapping[str, str]
    # records the running process with a pid in the ``with`` block
    attach: Callable[[int], AbstractContextManager[object]]
    finish: Callable[[], Recorded]  # ends the recording and returns its content; called after the process


@contextmanager
def opened(mode: Mode, layer: Layer, folder: Path) -> Iterator[Site]:
    """Opens a site for the ``with`` block; raises `RecordingFailed`, or `Unavailable` without a recorder."""
    if mode is Mode.LTTNG:
        recorder = choose_recorder(folder / "trace", folder)
        try:
            recorder.start()
            yield Site(recorder.prefix, recorder.environment, nullcontext, lambda: _finish(recorder))
        finally:
            recorder.stop()
    elif mode is Mode.EBPF:
        yield _ebpf_site(probes_of(layer), folder)
    else:
        yield Site((), {}, nullcontext, Recorded)


def _finish(recorder: Recorder) -> Recorded:
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
    """Returns the functions of a layer's tracepoints; the embedded layer's are inlined, except for the timed one."""
    if layer.kind is Kind.EMBEDDED:
        return Probes(provider_library(), (TRACEPOINT_SYMBOL,))
    prefix = find_ros_package("tracetools")
    assert prefix is not None
    return Probes(str(prefix / "lib" / "libtracetools.so"), tuple(f"{_FUNCTION}{name}" for name in HOT_PATH))


def exchanges_under(mode: Mode, layer: Layer) -> bool:
    """Returns True if latencies are meaningful; eBPF cannot probe the embedded layer's inlined tracepoints."""
    return mode is not Mode.EBPF or layer.kind is Kind.ROS2


LOOPS: Final = 3  # number of timed loops of tracepoints per start
_GRACE_S: Final = 20.0
"""Additional time limit of an exchange, because an eBPF probe can take longer than the interval between messages."""

_WARM_UP_MESSAGES: Final = 20
_KIB: Final = 1024
_MODULE: Final = "pytest_ldos.instruments.tracing_cost.pair_program"
_PROGRAM: Final = "publish_callback"


@dataclass(frozen=True)
class Latencies:
    """One case in one start: messages published, and the latencies from publish to callback of those received."""

    published: int
    latencies_ns: tuple[int, ...]


@dataclass
class Start:
    """Measurements of one process."""

    layer: Layer
    mode: Mode
    pair: int  # number of the pass; each pass starts every mode once
    block: int  # number of the start, counted over all layers and modes
    cases: dict[SizeAndRate, Latencies] = field(default_factory=dict)
    warm_up: int = 0  # messages received in the warm-up
    # tracepoint_ns, timed_calls: time per call, one value for each loop, and number of calls in all loops
    tracepoint_ns: list[float] = field(default_factory=list)
    timed_calls: int = 0
    recorded: Recorded = field(default_factory=Recorded)
    # reason why the measurement is incomplete; available values are valid unless nothing was recorded
    failure: str = ""

    @property
    def received(self) -> int:
        """Number of messages with a latency, without the warm-up."""
        return sum(len(each.latencies_ns) for each in self.cases.values())

    @property
    def is_proven(self) -> bool:
        """True if the recording contains every callback and timed call, or counts it as lost."""
        if self.mode is Mode.UNTRACED:
            return True
        counts, lost = self.recorded.counts, self.recorded.lost
        has_callbacks = counts.get(CALLBACK, 0) + lost >= self.received
        return has_callbacks and 0 < self.timed_calls <= sum(counts.values()) + lost


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """A layer to measure under each mode, untraced first; `first_block` is the block number of its first start."""

    spec: TracingCostSpec
    layer: Layer
    modes: Sequence[Mode]
    first_block: int
    progress: Progress

    def measure(self) -> Iterator[Start]:
        """Yields a start for each mode in each pass."""
        block = self.first_block
        for pair in range(self.spec.starts):
            for mode in alternate(self.modes, pair):
                self.progress.doing(f"{self.layer.label}, {TITLES[mode]}, {pair + 1} of {self.spec.starts}")
                yield self._measure(Start(self.layer, mode, pair, block))
                self.progress.step()
                block += 1

    def _measure(self, start: Start) -> Start:
        try:
            with ExitStack() as stack:
                stack.enter_context(leaving_no_memory())
                folder = stack.enter_context(temporary_folder("ldos-tracing-cost-"))
                site = stack.enter_context(opened(start.mode, self.layer, folder))
                self._run(start, site, folder)
                start.recorded = site.finish()
        except (ChildFailed, RecordingFailed, Unavailable) as error:
            start.failure = summary_of(error)
        else:
            start.failure = "" if start.is_proven else "what was to be recorded is not in the recording"
        return start

    def _run(self, start: Start, site: Site, folder: Path) -> None:
        with ExitStack() as stack:
            child = self.layer.start(
                str(start.mode),
                {"match_s": MATCH_S},
                module=_MODULE,
                program=_PROGRAM,
                folder=folder,
                resources=stack,
                recorded=(site.prefix, site.environment),
            )
            await_match(child)
            with site.attach(child.child.pid):
                self._ask_all(start, child)
            child.close()
            child.await_end()

    def _ask_all(self, start: Start, child: AnsweringChild) -> None:
        """Runs all exchanges, then times tracepoints, which may fill the buffers."""
        if exchanges_under(start.mode, self.layer):
            cases = alternate(self.spec.cases, start.pair)
            start.warm_up = len(self._exchange(child, cases[0], _WARM_UP_MESSAGES).latencies_ns)
            for case in cases:
                start.cases[case] = self._exchange(child, case, self.spec.ticks(case))
        for _ in range(LOOPS):
            answer = child.ask(f"tracepoints {self.spec.calls}", limit_s=_GRACE_S)
            calls = whole(answer, "calls", least=1)
            start.tracepoint_ns.append(whole(answer, "elapsed_ns", least=1) / calls)
            start.timed_calls += calls

    def _exchange(self, child: AnsweringChild, case: SizeAndRate, ticks: int) -> Latencies:
        question = f"exchange {case.size_kib * _KIB} {ticks} {case.rate_hz}"
        return read_latencies(child.ask(question, limit_s=ticks / case.rate_hz + _GRACE_S), ticks)


def read_latencies(answer: Mapping[str, Any], ticks: int) -> Latencies:
    """Reads latencies from a process's answer; raises `ChildFailed` if that is invalid."""
    published, found = whole(answer, "published"), answer.get("latencies_ns")
    is_list = isinstance(found, list) and all(type(each) is int and each >= 0 for each in found)
    if published != ticks or not is_list or len(found or ()) > published:
        raise ChildFailed(f"an answer about {ticks} messages holds {published} and latencies that are none of theirs")
    return Latencies(published, tuple(found or ()))
