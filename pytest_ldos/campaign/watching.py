"""Profiles processes during a measurement: samples, system calls, context switches.

Failed tools are noted with reason and remedy; the measurement continues.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.errors import LdosError, ProfilingFailed, TraceUnreadable, Unavailable
from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.host.process_times import OwnSwitchCounter, SwitchCounter
from pytest_ldos.host.processes import process_names
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.record.choose import choose_profiler, resolve_profiler
from pytest_ldos.record.profiles import (
    Difference,
    FoldedStacks,
    compare_profiles,
    merge,
    render_folded,
    render_speedscope,
)
from pytest_ldos.record.protocol import Profiler
from pytest_ldos.record.strace import SyscallCount, SyscallCounter, add_syscalls, render_syscalls, strace_available
from pytest_ldos.scenario.watching import WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
from pytest_ldos.trace.ctf.read import EventTable, read_trace
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states, count_switches

PROC: Final = "/proc"
KERNEL_EVENTS: Final = "kernel events"
_PID: Final = "vpid"
_WHOLE: Final = 100


@dataclass(frozen=True)
class Switches:
    """Context switches of watched processes.

    Attributes:
        source: ``kernel events`` or ``/proc``.
        messages: number of publications in the same time; ``None`` if unknown.
        trials: number of trials in the same time; ``None`` if there were none.
    """

    counts: SwitchCounts
    seconds: float
    source: str
    messages: int | None = None
    trials: int | None = None


def with_trace(found: Switches, directory: Path, window: tuple[int, int], pids: Sequence[int]) -> Switches:
    """Adds the number of published messages, and counts switches from kernel events if recorded.

    Args:
        window: nanoseconds since the epoch.
        pids: processes whose switches and messages count; others may be recorded, too.

    Raises:
        TraceUnreadable: see `read_trace`.
    """
    trace = read_trace(directory, events={Ros2.RMW_PUBLISH, *SCHEDULING_EVENTS}, window=window)
    published = trace.events.get(Ros2.RMW_PUBLISH)
    found = dataclasses.replace(found, messages=None if published is None else _count(published, pids))
    states = build_thread_states(trace)
    if not len(states):
        return found
    tids = [int(thread.name) for pid in pids for thread in _threads(pid)]
    counts = count_switches(states, begin_ns=window[0], end_ns=window[1], tids=tids)
    return dataclasses.replace(found, counts=counts, source=KERNEL_EVENTS)


def _count(published: EventTable, pids: Sequence[int]) -> int:
    """Messages of these processes; of all processes if the trace does not contain process ids."""
    return int(np.isin(published[_PID], pids).sum()) if _PID in published.columns else len(published)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def describe_switches(counted: Sequence[Switches]) -> str:
    """Describes context switches and migrations: total, per trial and per message; empty if none were counted."""
    if not counted:
        return ""
    total = counted[0].counts
    for each in counted[1:]:
        total += each.counts
    seconds = sum(each.seconds for each in counted)
    moved = "unknown migrations" if total.migrations is None else f"{total.migrations} migrations"
    shown = f"{total.voluntary} voluntary / {total.involuntary} involuntary context switches / {moved}"
    rates = [_rates(total, what, sum(each)) for what, each in _denominators(counted) if sum(each)]
    return "; ".join([f"{shown} in {seconds:.1f} s ({counted[0].source})", *rates])


def _denominators(counted: Sequence[Switches]) -> Iterator[tuple[str, list[int]]]:
    for what, values in (
        ("trial", [each.trials for each in counted]),
        ("message", [each.messages for each in counted]),
    ):
        known = [value for value in values if value is not None]
        if len(known) == len(counted):
            yield what, known


def _rates(total: SwitchCounts, what: str, number: int) -> str:
    each = [total.voluntary, total.involuntary, *([] if total.migrations is None else [total.migrations])]
    return f"{' / '.join(_short(value / number) for value in each)} a {what} ({number})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= _WHOLE else f"{value:.3g}"


DISTORTION: Final = (
    "system calls were counted with strace, which stops processes at each: such times compare with nothing"
)


@dataclass
class Seen:
    """Results of one profiled period.

    Attributes:
        start: number of the processes' start, which may be profiled several times.
        began_ns, ended_ns: since the epoch.
    """

    start: Path
    began_ns: int = 0
    ended_ns: int = 0
    profile: FoldedStacks = field(default_factory=lambda: FoldedStacks({}))
    syscalls: tuple[SyscallCount, ...] = ()
    switches: Switches | None = None


class Watching:
    """Implements `trial.rig.Watch`; collects the results of one version, start by start.

    Attributes:
        seen: one entry per profiled period, in order.
        notes: failures with reasons, and other remarks for the report.
    """

    def __init__(self, spec: WatchSpec) -> None:
        self.seen: list[Seen] = []
        self.notes: list[str] = []
        self._rate_hz = spec.rate_hz
        self._kind = self._resolve(spec.profiler) if spec.profile else None
        self._counts = spec.syscalls and self._can_count()
        self._has_sampled = self._has_counted = False

    def _resolve(self, kind: ProfilerKind) -> ProfilerKind | None:
        try:
            return resolve_profiler(kind)
        except Unavailable as error:
            self.note(f"no profile: {_in_words(error)}")
            return None

    def _can_count(self) -> bool:
        able = strace_available()
        if not able.ok:
            self.note(f"system calls are not counted: {able.reason} → {able.remedy}")
        return able.ok

    def note(self, text: str) -> None:
        """Adds a note, unless it is a duplicate."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def tools(self) -> str:
        """Requested tools, afterwards the used ones, as in ``perf at 199 Hz and strace``; empty for none."""
        samples = self._kind is not None and (self._has_sampled or not self.seen)
        return " and ".join([*([f"{self._kind} at {self._rate_hz} Hz"] if samples else []), *self._counters()])

    @property
    def distortion(self) -> str:
        return DISTORTION if self._counters() else ""

    def _counters(self) -> list[str]:
        return ["strace"] if self._counts and (self._has_counted or not self.seen) else []

    @property
    def profile(self) -> FoldedStacks:
        return merge(each.profile for each in self.seen)

    @property
    def profiles(self) -> list[FoldedStacks]:
        """Profile of each start that has samples."""
        starts: dict[Path, list[FoldedStacks]] = {}
        for each in self.seen:
            starts.setdefault(each.start, []).append(each.profile)
        merged = [merge(of_start) for of_start in starts.values()]
        return [each for each in merged if each]

    @property
    def switches(self) -> list[Switches]:
        """Context switches of each period in which they were counted."""
        return [each.switches for each in self.seen if each.switches is not None]

    @property
    def syscalls(self) -> tuple[SyscallCount, ...]:
        return add_syscalls(each.syscalls for each in self.seen)

    @contextmanager
    def attached_to(self, rig: Rig) -> Iterator[None]:
        pids = rig.stack.pids()
        with self._watched(process_names(pids), rig.folder.path, rig.folder.logs) as seen:
            with _switches_counted(SwitchCounter(pids), seen):
                yield
            if not process_names(pids):
                seen.switches = None

    @contextmanager
    def attached_to_self(self, logs: Path) -> Iterator[None]:
        """Profiles this process and its children in the ``with`` block."""
        with self._watched({os.getpid(): "ldos"}, logs, logs) as seen, _switches_counted(OwnSwitchCounter(), seen):
            yield

    def read(self, rig: Rig, trials: int) -> None:
        seen = self.seen[-1] if self.seen else None
        if seen is None or seen.switches is None:
            return
        found = dataclasses.replace(seen.switches, trials=trials)
        try:
            window = seen.began_ns, seen.ended_ns
            seen.switches = with_trace(found, rig.recorder.directory, window, rig.stack.pids())
        except TraceUnreadable as error:
            seen.switches = found
            self.note(f"messages were not counted: {error.message}")

    @contextmanager
    def _watched(self, processes: Mapping[int, str], start: Path, logs: Path) -> Iterator[Seen]:
        """Runs the tools during a measurement; keeps their results even if it fails."""
        seen = Seen(start)
        self.seen.append(seen)
        with ExitStack() as ends:
            profiler = self._started_profiler(processes, logs)
            if profiler is not None:
                ends.callback(self._take_profile, profiler, seen)
            counter = self._started_counter(processes, logs)
            if counter is not None:
                ends.callback(self._take_syscalls, counter, seen)
            seen.began_ns = time.time_ns()
            try:
                yield seen
            finally:
                seen.ended_ns = time.time_ns()

    def _started_profiler(self, processes: Mapping[int, str], logs: Path) -> Profiler | None:
        if self._kind is None:
            return None
        try:
            _require_processes(processes)
            profiler = choose_profiler(self._kind, logs, rate_hz=self._rate_hz)
            profiler.start(processes)
        except (LdosError, OSError) as error:
            self.note(f"no profile: {_in_words(error)}")
            return None
        self._has_sampled = True
        self.note(f"sampled by {profiler.name}")
        return profiler

    def _take_profile(self, profiler: Profiler, seen: Seen) -> None:
        try:
            sampled = profiler.stop()
        except (LdosError, OSError) as error:
            self.note(f"no profile: {_in_words(error)}")
            return
        seen.profile = sampled.profile
        for note in sampled.notes:
            self.note(f"profile: {note}")
        if not sampled.profile:
            self.note("no profile: there are no samples, for nothing ran → profile for longer, or at a higher rate")

    def _started_counter(self, processes: Mapping[int, str], logs: Path) -> SyscallCounter | None:
        if not self._counts:
            return None
        counter = SyscallCounter(logs)
        try:
            _require_processes(processes)
            counter.start(processes)
        except (LdosError, OSError) as error:
            self.note(f"system calls are not counted: {_in_words(error)}")
            return None
        self._has_counted = True
        return counter

    def _take_syscalls(self, counter: SyscallCounter, seen: Seen) -> None:
        try:
            seen.syscalls = counter.stop()
        except (LdosError, OSError) as error:
            self.note(f"system calls are not counted: {_in_words(error)}")


@contextmanager
def _switches_counted(counter: SwitchCounter | OwnSwitchCounter, seen: Seen) -> Iterator[None]:
    began_s = time.monotonic()
    try:
        yield
    finally:
        seen.switches = Switches(counter.counts(), time.monotonic() - began_s, PROC)


def _require_processes(processes: Mapping[int, str]) -> None:
    if not processes:
        raise ProfilingFailed("none of the processes runs any more")


def _in_words(error: LdosError | OSError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror} → make room there, or let it be written to"
    return f"{error.message} → {error.remedy}" if error.remedy else error.message


FOLDER: Final = "profile"
FOLDED: Final = ".folded"
FLAME_FILE: Final = "flame.svg"
DIFFERENCE_FILE: Final = "difference.svg"
SPEEDSCOPE_FILE: Final = "profile.speedscope.json"
SYSCALLS_FILE: Final = "syscalls.txt"


@dataclass(frozen=True)
class Drawings:
    """Functions that draw profiles as SVG.

    Attributes:
        flame: given samples, a title and notes.
        difference: given the difference of two profiles, and a title.
    """

    flame: Callable[[FoldedStacks, str, Sequence[str]], str]
    difference: Callable[[Difference, str], str]


def write_watched(watching: Watching, folder: Path, drawings: Drawings, *, title: str) -> Iterator[str]:
    """Writes the results of one version; yields notes for its report: failures and paths of the files.

    Args:
        folder: folder of the files.
    """
    yield from watching.notes
    if watching.profiles:
        yield from _write_profile(watching, folder, drawings, title)
    if watching.syscalls:
        yield f"system calls: {folder / SYSCALLS_FILE}"
        yield from _written(folder / SYSCALLS_FILE, lambda: render_syscalls(watching.syscalls))
    if described := describe_switches(watching.switches):
        yield f"{described}{' (under strace)' if watching.syscalls else ''}"


def _write_profile(watching: Watching, folder: Path, drawings: Drawings, title: str) -> Iterator[str]:
    whole = watching.profile
    yield f"profile of {whole.samples} samples ({watching.tools}): {folder}"
    for number, profile in enumerate(watching.profiles, 1):
        yield from _written(folder / f"start-{number}{FOLDED}", partial(render_folded, profile))
    yield from _written(folder / SPEEDSCOPE_FILE, lambda: render_speedscope(whole, title))
    yield from _written(folder / FLAME_FILE, lambda: drawings.flame(whole, title, [watching.tools]))


def write_watched_difference(
    base: Watching, head: Watching, folder: Path, drawings: Drawings, *, title: str
) -> Iterator[str]:
    """Writes the difference between the profiles of two versions; yields notes for the report."""
    if not (base.profiles and head.profiles):
        return
    difference = compare_profiles(base.profiles, head.profiles)
    file = folder / DIFFERENCE_FILE
    yield f"profiles compared: {len(difference.certain())} frames changed for certain, see {file}"
    yield from _written(file, lambda: drawings.difference(difference, title))


def _written(file: Path, render: Callable[[], str]) -> Iterator[str]:
    """Writes a file; yields a note instead of an error if it cannot be written."""
    try:
        write_atomically(file, render())
    except LdosError as error:
        yield f"{file.name} is not there: {error.message} → {error.remedy}"
